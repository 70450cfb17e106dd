"""The committed models are whole, small, free of the exporting machine's paths, and onnxruntime still agrees."""

import re

import pytest
from models.index import HERE, Case, cases
from support.rows import every

CASES = list(cases())
MODELS = {case.name: case for case in CASES}


def test_every_file_is_in_the_index() -> None:
    indexed = {case.file for case in CASES} | {case.model for case in CASES}
    there = set(HERE.rglob("*.onnx")) | set(HERE.rglob("*.npz"))
    # What export_modules.py writes has checkpoints in the place of cases: tests/codegen/test_hierarchy.py.
    assert indexed == {f for f in there if HERE / "modules" not in f.parents}


@every("case", MODELS.values())
def test_model_is_small_and_names_no_folder_of_the_machine_it_was_made_on(case: Case) -> None:
    data = case.model.read_bytes()
    assert len(data) <= 300_000
    assert not re.search(rb"site-packages|/home/|/Users/|/root/|\.py\"", data)


@every("case", CASES)
def test_onnxruntime_gives_the_recorded_outputs(case: Case) -> None:
    ort = pytest.importorskip("onnxruntime")
    options = ort.SessionOptions()
    options.log_severity_level = 3
    if case.literal:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(case.model, options, providers=["CPUExecutionProvider"])
    names = list(case.outputs())
    case.check(dict(zip(names, session.run(names, case.inputs()), strict=True)), exact=True)
