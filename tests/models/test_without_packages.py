"""Each model is compiled and run in a process of its own in which no package is installed: neither NumPy nor onnx.

Earlier calls in a process can load what a later one needs, so each model has a fork of a process that has computed
nothing.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models.index import Case, cases
from support.published_models import MODELS as PUBLISHED
from support.rows import every

from tools import model_packages
from tools.paths import ROOT

FIRST = {case.name: case for case in reversed(list(cases()))}
"""A case for each model."""

SCRIPT = """
import emberlet, emberlet.onnxruntime as ort, json, os, sys
from emberlet import codegen

for line in sys.stdin:
    task = json.loads(line)
    child = os.fork()
    if not child:
        try:
            if "folder" in task:
                print(json.dumps([len(codegen.generate(task["model"], task["folder"]).module.read_text())]), flush=True)
                os._exit(0)
            session = ort.InferenceSession(task["model"])
            inputs = {name: emberlet.zeros(x) if 0 in x else values for name, (x, values) in task["inputs"].items()}
            found = session.run(task["outputs"], inputs)
            print(json.dumps([x.tolist() for x in found]), flush=True)
        except BaseException as error:
            print(json.dumps(type(error).__name__ + ": " + str(error)), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator["subprocess.Popen[str]"]:
    """A process without site-packages that answers each line, a task, with a line."""
    path = tmp_path_factory.mktemp("path")
    package = path / "emberlet"
    package.mkdir()
    for part in [*(ROOT / "core").iterdir(), *(ROOT / name for name in ("codegen", "micro", "wgpu_backend"))]:
        (package / part.name).symlink_to(part)
    environment = {**os.environ, "PYTHONPATH": str(path)}
    command = [sys.executable, "-S", "-c", SCRIPT]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, encoding="utf-8", env=environment) as process:
        yield process
        assert process.stdin
        process.stdin.close()


@every("case", list(FIRST.values()), share=3)
def test_model_runs_alone_and_gives_onnxruntimes_outputs(bare: "subprocess.Popen[str]", case: Case) -> None:
    expected = case.outputs()
    task = {
        "model": str(case.model),
        "inputs": {name: (x.shape, x.tolist()) for name, x in case.inputs().items()},
        "outputs": list(expected),
    }
    found = zip(expected.items(), answer(bare, task), strict=True)
    case.check({name: np.asarray(got, want.dtype).reshape(want.shape) for (name, want), got in found})


@pytest.mark.needs("model-packages")
@every("name", PUBLISHED, share=3)
def test_a_published_model_becomes_a_module_alone(bare: "subprocess.Popen[str]", name: str, tmp_path: Path) -> None:
    task = {"model": str(model_packages.FOLDER / f"{name}.onnx"), "folder": str(tmp_path)}
    (length,) = answer(bare, task)
    assert length > 1000


def answer(bare: "subprocess.Popen[str]", task: dict[str, Any]) -> list[Any]:
    """What the process answers to a task. Raises AssertionError with the error that it met."""
    assert bare.stdin and bare.stdout
    bare.stdin.write(json.dumps(task) + "\n")
    bare.stdin.flush()
    found = json.loads(bare.stdout.readline())
    assert isinstance(found, list), found
    return found
