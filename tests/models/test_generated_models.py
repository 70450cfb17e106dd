"""The code generated from each model gives onnxruntime's outputs, on every backend."""

import numpy as np
import onnx
import pytest
from emberlet import Tensor, dtypes, get_backend
from emberlet.codegen import load
from models.index import Case, cases
from support.rows import every

OTHERS = [
    "numpy compiled",
    "python",
    "wasm",
    "wasm compiled",
    pytest.param("wgpu", marks=pytest.mark.needs("gpu-driver")),
]


def to_tensor(array: np.ndarray, backend: str) -> Tensor:
    return get_backend(backend).from_bytes(array.tobytes(), dtypes.dtype(array.dtype.name), array.shape)


def to_array(tensor: Tensor) -> np.ndarray:
    data = bytes(tensor.backend.to_bytes(tensor))
    return np.frombuffer(data, dtype=tensor.dtype.name).reshape(tensor.shape)


@every("case", list(cases()))
def test_generated_model_gives_onnxruntimes_outputs(case: Case) -> None:
    check(case, "numpy")


@pytest.mark.parametrize("backend", OTHERS)
@every("case", list(cases()), share=12)
def test_other_backends_give_onnxruntimes_outputs(case: Case, backend: str) -> None:
    if backend == "wgpu":
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
    for (name, want), result in zip(case.outputs().items(), results, strict=True):
        got = to_array(result)
        assert (got.dtype, got.shape) == (want.dtype, want.shape), name
        # A quantized output may round to the next level if a sum was computed in another order.
        atol = case.atol if want.dtype.kind == "f" else 1 if want.dtype.itemsize == 1 else 0
        np.testing.assert_allclose(
            got.astype(np.float64), want.astype(np.float64), atol=atol, rtol=case.rtol, err_msg=name
        )
