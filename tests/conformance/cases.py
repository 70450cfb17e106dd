"""ONNX's own node cases, and how one runs: reader, passes, generated source, import, forward, comparison."""

from __future__ import annotations

import os
import pickle
import sys
import warnings
from contextlib import suppress
from functools import cache, lru_cache
from typing import Any

import numpy as np
import onnx
from emberlet import dtypes
from emberlet.backend import get_backend
from emberlet.codegen import weights
from emberlet.codegen.emit.instance import instantiate
from emberlet.codegen.generation import translate
from emberlet.codegen.onnx_backend import to_tensor
from emberlet.tensor import Tensor

from tools.paths import CACHE

from . import drawn

# Expected values that hold the rounding noise of NumPy's float32 transform (1.9e-7 where the exact answer, which the
# other backends give, is 0): name -> absolute tolerance off NumPy, 2 float32 units in the last place of the results' 1.
NOISE = {"test_dft_inverse": 2.5e-7, "test_dft_inverse_opset19": 2.5e-7}
# Slower than half a minute in plain Python: named here and left out there.
SLOW_IN_PYTHON: tuple[str, ...] = ()


@cache
def node_cases() -> dict[str, Any]:
    """Name -> onnx TestCase. ONNX computes them all in seconds, so they stay in .cache for the next process."""
    versions = "-".join([onnx.__version__, np.__version__, str(sys.version_info[1])])
    file = CACHE / "node-cases" / f"{versions}.pickle"
    with suppress(OSError, pickle.UnpicklingError, EOFError):
        found: dict[str, Any] = pickle.loads(file.read_bytes())
        return found
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        cases = {case.name: case for case in collect_testcases(None)}
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(f".{os.getpid()}")
    part.write_bytes(pickle.dumps(cases, pickle.HIGHEST_PROTOCOL))
    part.replace(file)
    return cases


def operators(model: Any) -> set[tuple[str, str]]:
    """The (domain, operator) pairs a model uses, its subgraphs and functions included."""
    out: set[tuple[str, str]] = set()

    def walk(nodes: Any) -> None:
        for node in nodes:
            out.add((node.domain, node.op_type))
            for a in node.attribute:
                if a.HasField("g"):
                    walk(a.g.node)

    walk(model.graph.node)
    for function in model.functions:
        walk(function.node)
    return out


def to_numpy(value: Any) -> Any:
    """A result as an array (float64 for the floats NumPy lacks), a list, or None."""
    if value is None:
        return None
    if isinstance(value, list | tuple):
        return [to_numpy(v) for v in value]
    assert isinstance(value, Tensor), f"expected a Tensor, found {type(value).__name__}"
    items = value.backend.to_list(value)
    if value.dtype is dtypes.string:
        return np.array(items, dtype=object).reshape(value.shape)
    kind = {"float": np.float64, "int": np.int64, "uint": np.uint64, "bool": np.bool_}[value.dtype.kind]
    return np.array(items, dtype=kind).reshape(value.shape)


def compare(name: str, got: Any, want: Any, rtol: float, atol: float) -> None:
    """Raise AssertionError unless a result has the dtype, shape and values that the case expects."""
    nothing = isinstance(want, np.ndarray) and want.dtype == object and want.shape == () and want.item() is None
    if want is None or nothing:
        assert got is None, f"expected None, found {got!r}"
        return
    if isinstance(want, list):
        assert isinstance(got, list | tuple) and len(got) == len(want), f"expected {len(want)} elements, found {got!r}"
        for g, w in zip(got, want, strict=True):
            compare(name, g, w, rtol, atol)
        return
    if hasattr(want, "raw_data"):
        want = onnx.numpy_helper.to_array(want)
    want = np.asarray(want)
    assert isinstance(got, Tensor), f"expected a Tensor, found {type(got).__name__}"
    expected = "string" if want.dtype.kind in "OUST" else want.dtype.name
    assert got.dtype.name == expected, f"dtype {got.dtype.name}, expected {expected}"
    assert got.shape == want.shape, f"shape {got.shape}, expected {want.shape}"
    if drawn.is_drawn(name):
        return
    values = to_numpy(got)
    if expected == "string":
        assert values.tolist() == want.tolist()
        return
    wanted = want.astype(np.float64) if got.dtype.is_float else want
    if got.dtype.is_float:
        if expected == "bfloat16":
            rtol = max(rtol, 2**-6)  # two units in the last place, as ONNX's own runner allows
        if got.backend.name != "numpy":
            atol = max(atol, NOISE.get(name, 0.0))
        np.testing.assert_allclose(values, wanted, rtol=rtol, atol=atol)
    else:
        whole = np.uint64 if got.dtype.kind == "uint" else np.int64
        np.testing.assert_array_equal(values.astype(whole), wanted.astype(whole))


@lru_cache(64)
def _written(name: str) -> Any:
    """The generated module of a case, which is the same for every backend."""
    return translate(node_cases()[name].model, name)[1]


def run_case(name: str, backend_name: str) -> None:
    """One case on one backend, or by a compiled model on "numpy compiled"; raises whatever goes wrong."""
    case = node_cases()[name]
    backend_name, _, compiled = backend_name.partition(" ")
    backend = get_backend(backend_name)
    model: Any = instantiate(_written(name), name, backend)
    model.load_record(weights.tensors(_written(name).record, backend), layout="burn")
    if compiled:
        model = model.compile(backend=backend)
    for inputs, outputs in case.data_sets:
        results = _run(model, inputs, backend)
        assert len(results) == len(outputs), f"{len(results)} outputs, expected {len(outputs)}"
        for got, want in zip(results, outputs, strict=True):
            compare(name, got, want, case.rtol, case.atol)
        if drawn.is_drawn(name):

            def again(inputs: Any = inputs) -> list[Any]:
                return [to_numpy(r) for r in _run(model, inputs, backend)]

            drawn.check(case, inputs, [to_numpy(r) for r in results], again)


def _run(model: Any, inputs: Any, backend: Any) -> tuple[Any, ...]:
    results = model(*(to_tensor(v, backend) for v in inputs))
    return results if isinstance(results, tuple) else (results,)
