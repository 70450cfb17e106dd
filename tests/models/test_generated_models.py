"""The code generated from each model gives onnxruntime's outputs, on every backend."""

import onnx
import pytest
from emberlet.codegen import load
from emberlet.codegen.onnx_backend import to_array, to_tensor
from models.index import Case, cases
from support.rows import every

OTHERS = [
    "numpy compiled",
    "python",
    "wasm",
    "wasm compiled",
    pytest.param("wgpu", marks=pytest.mark.needs("gpu-driver")),
    pytest.param("wgpu compiled", marks=pytest.mark.needs("gpu-driver")),
]


@every("case", list(cases()))
def test_generated_model_gives_onnxruntimes_outputs(case: Case) -> None:
    check(case, "numpy")


@pytest.mark.parametrize("backend", OTHERS)
@every("case", list(cases()), share=12)
def test_other_backends_give_onnxruntimes_outputs(case: Case, backend: str) -> None:
    if backend.startswith("wgpu"):
        pytest.importorskip("wgpu")
    if backend.startswith("wasm"):
        pytest.importorskip("wasmtime")
    check(case, backend)


def check(case: Case, backend: str) -> None:
    """Run a case on a backend, or compiled on it ("numpy compiled"). Raises AssertionError if a result is wrong."""
    backend, _, compiled = backend.partition(" ")
    model = load(case.model, backend=backend)
    if compiled:
        model = model.compile(backend=backend)
    given = case.inputs()
    order = [i.name for i in onnx.load(case.model).graph.input if i.name in given]
    results = model(*(to_tensor(given[name], backend) for name in order))
    results = results if isinstance(results, tuple) else (results,)
    case.check({name: to_array(result) for name, result in zip(case.outputs(), results, strict=True)})
