"""One operator of com.microsoft: the code generated from it against onnxruntime, or against a formula."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime
from emberlet import Tensor, dtypes, get_backend
from emberlet.codegen import load
from onnx import ModelProto, helper, numpy_helper

Array = np.ndarray[Any, np.dtype[Any]]


def one_node(
    op: str,
    inputs: Sequence[Array | None],
    results: Sequence[Any],
    constants: Sequence[int] = (),
    domain: str = "com.microsoft",
    **attributes: Any,
) -> ModelProto:
    """A model of one node. None leaves an input, or an output among the dtypes `results`, out; `constants` are the
    inputs that are initializers."""
    names = ["" if x is None else f"i{i}" for i, x in enumerate(inputs)]
    outputs = ["" if d is None else f"o{i}" for i, d in enumerate(results)]
    node = helper.make_node(op, names, outputs, domain=domain, **attributes)
    graph = helper.make_graph(
        [node],
        "one_node",
        [
            helper.make_tensor_value_info(names[i], helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for i, x in enumerate(inputs)
            if x is not None and i not in constants
        ],
        [
            helper.make_tensor_value_info(o, helper.np_dtype_to_tensor_dtype(np.dtype(d)), None)
            for o, d in zip(outputs, results, strict=True)
            if d is not None
        ],
        [numpy_helper.from_array(x, names[i]) for i, x in enumerate(inputs) if x is not None and i in constants],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def fed(inputs: Sequence[Array | None], constants: Sequence[int] = ()) -> dict[str, Array]:
    return {f"i{i}": x for i, x in enumerate(inputs) if x is not None and i not in constants}


def generated(model: ModelProto, inputs: dict[str, Array], backend: str = "numpy") -> list[Array]:
    """The outputs of the code generated from a model."""
    home = get_backend(backend)
    given = [home.from_bytes(numpy_bytes(x), dtypes.dtype(x.dtype.name), x.shape) for x in inputs.values()]
    found = load(model, backend=backend)(*given)
    return [as_array(t) for t in (found if isinstance(found, tuple) else (found,))]


def numpy_bytes(x: Array) -> bytes:
    """The elements, those narrower than a byte packed lowest bits first."""
    if x.dtype.name not in ("int4", "uint4"):
        return x.tobytes()
    low = x.astype(np.uint8).reshape(-1) & 15
    low = np.append(low, np.uint8(0)) if low.size % 2 else low
    return bytes(low[0::2] | low[1::2] << 4)


def as_array(t: Tensor) -> Array:
    return np.frombuffer(bytes(t.backend.to_bytes(t)), dtype=t.dtype.name).reshape(t.shape)


def reference(model: ModelProto, inputs: dict[str, Array]) -> list[Array]:
    """onnxruntime's outputs."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=providers)
    found: list[Array] = session.run(None, inputs)
    return found


def check(
    op: str,
    inputs: Sequence[Array | None],
    *,
    results: Sequence[Any] = (np.float32,),
    constants: Sequence[int] = (),
    want: Sequence[Array | None] | None = None,
    atol: float = 1e-5,
    domain: str = "com.microsoft",
    **attributes: Any,
) -> None:
    """Assert that the generated code gives onnxruntime's outputs, or `want` (an output that is None is not
    compared)."""
    model = one_node(op, inputs, results, constants, domain, **attributes)
    given = fed(inputs, constants)
    if want is None:
        want = reference(model, given)
    compare(generated(model, given), want, atol)
    # Any input may be an initializer too: run the same node again with all inputs but the first as constants.
    held = range(1, len(inputs))
    if set(held) - set(constants):
        folded = one_node(op, inputs, results, held, domain, **attributes)
        compare(generated(folded, fed(inputs, held)), want, atol)


def compare(found: Sequence[Array], want: Sequence[Array | None], atol: float) -> None:
    assert len(found) == len(want)
    for got, expected in zip(found, want, strict=True):
        if expected is None:
            continue
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(got, expected, atol=atol, rtol=1e-4)
        else:
            # A value half way between two levels may go to either.
            off = np.abs(got.astype(np.int64) - expected.astype(np.int64))
            assert off.max() <= (1 if expected.dtype.itemsize == 1 else 0)


def normal(seed: int, *shape: int, scale: float = 1.0) -> Array:
    return (np.random.default_rng(seed).normal(size=shape) * scale).astype(np.float32)


def levels(seed: int, *shape: int, dtype: Any = np.uint8) -> Array:
    """Integers over the whole range of an 8-bit dtype."""
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, size=shape).astype(dtype)


def number(value: float, dtype: Any = np.float32) -> Array:
    return np.array(value, dtype=dtype)
