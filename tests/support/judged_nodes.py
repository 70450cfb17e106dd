"""A changed model here and in onnxruntime: inputs that fit it, and a verdict on the two outcomes."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import onnx
from conformance.cases import to_numpy
from conformance.judge import Crash, Runtime
from emberlet.backend import get_backend
from emberlet.codegen import load
from emberlet.codegen.onnx_backend import to_tensor
from emberlet.errors import EmberletError
from onnx import helper

from .exact_sums import exact, saturates

RTOL, ATOL = 1e-4, 1e-5  # for float32; float16 and bfloat16 by their own precision
PRECISION = {"float16": 4e-3, "bfloat16": 2e-2}


class Outcome(NamedTuple):
    """`values` of the outputs, or None and the text of the refusal; `fault`: what should never happen."""

    values: list[Any] | None
    refusal: str = ""
    fault: str = ""


def fitting(model: onnx.ModelProto, values: dict[str, Any]) -> dict[str, Any]:
    """Values of the model's inputs, made from the case's own: repeated or cut where a shape is another."""
    given = {}
    for info in model.graph.input:
        value = values.get(info.name)
        given[info.name] = _made(info.type) if value is None else value
        if info.type.HasField("tensor_type") and not isinstance(value, list):
            given[info.name] = _fitted(info.type.tensor_type, value)
    return given


def _made(type_: onnx.TypeProto) -> Any:
    """A value of this type: for a sequence two tensors, for a map two entries."""
    if type_.HasField("sequence_type"):
        return [_made(type_.sequence_type.elem_type)] * 2
    if type_.HasField("optional_type"):
        return _made(type_.optional_type.elem_type)
    if type_.HasField("map_type"):
        keys = ("a", "b") if type_.map_type.key_type == onnx.TensorProto.STRING else (1, 2)
        texts = type_.map_type.value_type.tensor_type.elem_type == onnx.TensorProto.STRING
        return dict(zip(keys, ("3", "4") if texts else (3.0, 4.0), strict=True))
    return _fitted(type_.tensor_type, None)


def _fitted(type_: onnx.TypeProto.Tensor, value: Any) -> Any:
    array = np.asarray(np.arange(24) % 7 - 2.0 if value is None else value)
    dtype = helper.tensor_dtype_to_np_dtype(type_.elem_type)
    if type_.HasField("shape"):
        dims = type_.shape.dim
        own = array.shape if array.ndim == len(dims) else (2,) * len(dims)
        shape = tuple(d.dim_value if d.HasField("dim_value") else n for d, n in zip(dims, own, strict=True))
        if shape != array.shape:
            array = np.resize(array, shape) if array.size else np.zeros(shape, array.dtype)
    if np.dtype(object) in (dtype, array.dtype):
        return array if dtype == array.dtype else array.astype(str).astype(object)
    if dtype.kind == "u" and array.dtype.kind == "f":
        array = array.astype(np.int64)  # a negative float has no unsigned value
    with np.errstate(invalid="ignore"):  # infinities as integers
        return array.astype(dtype)


def here(model: onnx.ModelProto, given: dict[str, Any]) -> Outcome:
    """What the generated module computes with NumPy. A fault: an exception outside of the family, or results that are
    not of the types that the module states."""
    backend = get_backend("numpy")
    try:
        module = load(model, backend, name="net")
        found = module(*(to_tensor(given[info.name], backend) for info in model.graph.input))
    except EmberletError as error:
        return Outcome(None, f"{type(error).__name__}: {error}")
    except Exception as error:
        return Outcome(None, "", f"raw {type(error).__name__}: {error}")
    results = found if isinstance(found, tuple) else (found,)
    return Outcome([_plain(r) for r in results], "", _misstated(module, results))


def _plain(result: Any) -> Any:
    """A result as arrays, in lists for sequences and in lists of values for maps."""
    if isinstance(result, list | tuple):
        return [_plain(r) for r in result]
    if isinstance(result, dict):
        return [list(result), *(_plain(v) if hasattr(v, "shape") else v for v in result.values())]
    return to_numpy(result)


def _misstated(module: Any, results: tuple[Any, ...]) -> str:
    """What OUTPUTS of the module says that its results do not have, as text; an unknown size says nothing."""
    for (name, stated, *sizes), result in zip(_stated(module), results, strict=False):
        if not hasattr(result, "shape"):
            continue
        if stated != result.dtype.name:
            return f"{name} is stated as {stated} and is {result.dtype.name}"
        if sizes and sizes[0] is not None:
            known = tuple(sizes[0])
            if len(known) != len(result.shape) or any(
                isinstance(k, int) and k != n for k, n in zip(known, result.shape, strict=True)
            ):
                return f"{name} is stated as {known} and is {result.shape}"
    return ""


def _stated(module: Any) -> list[Any]:
    return [entry for entry in getattr(type(module), "OUTPUTS", ()) if isinstance(entry, tuple)]


def valid(model: onnx.ModelProto, runtime: Runtime) -> bool:
    """Whether the standard's schemas take the model's types and shapes, as ONNX's own checker knows them."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    del made.graph.output[:]  # whose shapes the checker wants
    for info in made.graph.input:
        if info.type.HasField("tensor_type") and not info.type.tensor_type.HasField("shape"):
            return True  # nothing is known, so nothing is wrong
    try:
        return runtime.check(made.SerializeToString())
    except Crash:
        return False


def there(model: onnx.ModelProto, given: dict[str, Any], runtime: Runtime) -> list[Any] | None:
    """onnxruntime's results, with exact sums, or None where it refuses or crashes."""
    data = model.SerializeToString()
    try:
        return runtime.run(given) if runtime.open(exact(data) if saturates() else data) else None
    except Crash:
        return None


def difference(ours: list[Any], theirs: list[Any]) -> str:
    """Where two lists of results differ, in words; empty where they do not."""
    if len(ours) != len(theirs):
        return f"{len(ours)} results, onnxruntime has {len(theirs)}"
    for at, (x, y) in enumerate(zip(ours, theirs, strict=True)):
        if isinstance(y, dict):
            y = [list(y), *y.values()]
        if isinstance(x, list) and isinstance(y, list):
            if said := difference(x, y):
                return said
        elif x is not None and y is not None and (said := _differ(np.asarray(x), np.asarray(y))):
            return f"result {at}: {said}"
    return ""


def _differ(x: Any, y: Any) -> str:
    if x.shape != y.shape:
        return f"shape {x.shape}, onnxruntime's {y.shape}"
    if y.dtype == object or y.dtype.kind in "US":
        return "" if x.tolist() == y.tolist() else f"{x.tolist()}, onnxruntime's {y.tolist()}"
    if y.dtype.kind not in "fiub":
        return ""
    near = PRECISION.get(y.dtype.name, RTOL)
    wanted = y.astype(np.float64)
    largest = float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0))
    if np.allclose(x.astype(np.float64), wanted, rtol=near, atol=ATOL * max(1.0, largest), equal_nan=True):
        return ""
    at = int(np.argmax(~np.isclose(x.astype(np.float64), wanted, rtol=near, atol=ATOL, equal_nan=True)))
    return f"element {at} is {x.reshape(-1)[at]}, onnxruntime's {wanted.reshape(-1)[at]}"


def verdict(ours: Outcome, theirs: list[Any] | None) -> str:
    """What is wrong with our outcome, beside onnxruntime's; empty where nothing is."""
    if ours.fault.startswith("raw"):
        return ours.fault
    if theirs is None:
        return ""
    if ours.values is None:
        return f"refused, onnxruntime computes: {ours.refusal}"
    return difference(ours.values, theirs) or ours.fault


def matches(text: str, rules: dict[str, str]) -> bool:
    """Whether a rule, a regular expression with its reason, describes this text."""
    return any(re.search(rule, text) for rule in rules)
