"""Compiled networks give onnxruntime's outputs in few dispatches and without the host."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from emberlet import dtypes
from emberlet.backend import get_backend
from emberlet.codegen import load
from emberlet.wgpu_backend.compiled import compile
from models.index import Case, cases
from support.rows import every

from tools.paths import SHARED

# Their Python code depends on values: the number of a loop's rounds, boxes that suppress others.
CUT = ("detector", "loop_and_branch")
# At most this many dispatches.
DISPATCHES = {
    "bert_traced": 14, "vit": 20, "residual_cnn": 13, "mobile_cnn": 28, "unet": 34, "vae": 16, "gpt": 23,
    "transformer_encoder": 19, "audio_frontend": 22,
}  # fmt: skip


def _one_of_each() -> list[Case]:
    """The first case of every committed network; operators of contrib are tested elsewhere."""
    found: dict[str, Case] = {}
    for case in cases():
        name = case.id.rpartition("-")[0]
        if "contrib" not in case.id:
            found.setdefault(name, case)
    return list(found.values())


def _tensor(array):
    return get_backend("numpy").from_bytes(array.tobytes(), dtypes.dtype(array.dtype.name), array.shape)


@every("case", _one_of_each())
def test_a_compiled_network_gives_onnxruntimes_outputs(gpu, case):
    before = dict(gpu.fallbacks)
    given = case.inputs()
    order = [i.name for i in onnx.load(case.model).graph.input if i.name in given]
    compiled = compile(load(onnx.load(case.model), gpu, name="network"), backend=gpu)
    for _ in range(2):
        results = compiled(*[_tensor(given[name]) for name in order])
    results = results if isinstance(results, tuple) else (results,)
    for want, got in zip(case.outputs().values(), results, strict=True):
        values = np.array(gpu.to_list(got), np.float64).reshape(got.shape)
        atol = case.atol if want.dtype.kind == "f" else 1
        np.testing.assert_allclose(values, want.astype(np.float64), atol=atol, rtol=case.rtol)
    name = case.id.rpartition("-")[0]
    assert (compiled.cut is not None) == (name in CUT)
    if name not in CUT:
        assert gpu.fallbacks == before
        assert len(compiled.plan().steps) <= DISPATCHES.get(name, 100)


def test_squeezenet_takes_at_most_45_dispatches(gpu):
    from pathlib import Path

    light = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / "light_squeezenet.onnx"
    from emberlet.wgpu_backend.kernels.table import Options
    from emberlet.wgpu_backend.plan.make import make_plan
    from emberlet.wgpu_backend.record.tracing import trace

    model = load(onnx.load(light), gpu, name="squeezenet")
    traced = trace(model, [gpu.full((1, 3, 224, 224), 0.5, dtypes.float32)], gpu)
    plan, _ = make_plan(traced.roots, Options())
    assert len(plan.steps) <= 45


def test_mnist_takes_at_most_8_dispatches(gpu):
    path = SHARED / "models" / "mnist.onnx"
    if not path.is_file():
        pytest.skip("the shared folder of models is not here")
    x = gpu.full((1, 1, 28, 28), 0.5, dtypes.float32)
    compiled = compile(load(onnx.load(path), gpu, name="mnist"), x, backend=gpu)
    assert len(compiled.plan().steps) <= 8
