"""Modules recovered: the code with a class for each is the flat code, value by value."""

from pathlib import Path

import onnx
import pytest
from emberlet import dtypes, get_backend
from emberlet.codegen import load
from models.index import Case, cases

BACKENDS = ["numpy", "python", pytest.param("wgpu", marks=pytest.mark.needs("gpu-driver"))]


def _arrays(model: Path, case: Case, backend: str, flat: bool) -> list[bytes]:
    home = get_backend(backend)
    given = case.inputs()
    order = [i.name for i in onnx.load(model).graph.input if i.name in given]
    tensors = [home.from_bytes(given[n].tobytes(), dtypes.dtype(given[n].dtype.name), given[n].shape) for n in order]
    results = load(model, backend=backend, flat=flat)(*tensors)
    results = results if isinstance(results, tuple) else (results,)
    return [bytes(home.to_bytes(r)) + repr((r.dtype, r.shape)).encode() for r in results]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", list(cases(contrib=False)), ids=lambda case: case.id)
def test_the_modules_compute_what_the_flat_code_does(case: Case, backend: str) -> None:
    if backend == "wgpu":
        pytest.importorskip("wgpu")
    assert _arrays(case.model, case, backend, False) == _arrays(case.model, case, backend, True)
