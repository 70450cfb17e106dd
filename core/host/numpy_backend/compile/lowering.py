"""Lowers primitives to NumPy calls: movement becomes views that are made once, arithmetic writes into allocated arrays.

A primitive without a function here is called on the backend, and its results are copied (`whole`). Every function takes
the Writer and the Call, and returns False to leave the Call to `whole`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....dtypes import DType
from ....functional.indexing.visibility import OUTSIDE
from ....tensor import Tensor
from .. import elementwise
from ..elementwise import _BINARY, _REDUCE, _UNARY, WORDS
from ..storage import NARROW, WIDE, Array, numpy_dtype
from . import activations, channels_last, counts, grids, level_tables, products, ranges, recurrences
from .steps import Step, Writer, copy_cast, part
from .tracing import Call, Value, check
from .training import gradients

PIECES = 2  # most copies that take as long as picking elements by their indices

Lower = Callable[[Writer, Call], Any]


def lower(writer: Writer) -> None:
    """Write all Calls."""
    for call in writer.calls:
        function = TABLE.get(call.op)
        if call.keywords or function is None or function(writer, call) is False:
            call_backend(writer, call)
        writer.done(call)


def call_backend(w: Writer, call: Call) -> None:
    """A Call as the numpy backend itself computes it, its results copied to where they are looked for."""
    outs = [w.out(value) for value in call.results]
    run = _run_view if call.views else _run_whole
    w.emit(run, call.method, call.keywords, outs, [_filled(w, a) for a in call.args], writes=tuple(outs))


def _filled(w: Writer, x: Any) -> Any:
    """An argument with arrays for its Values."""
    if type(x) is Value:
        return _tensor(w.array(x), x.dtype)
    return type(x)([_filled(w, v) for v in x]) if type(x) in (list, tuple) else x


def _tensor(array: Array, dtype: DType) -> Tensor:
    from ....backend import get_backend

    return Tensor(array, dtype, array.shape, get_backend("numpy"))


def is_whole(step: Step) -> bool:
    """Whether a step calls a primitive as the model does, rather than NumPy."""
    return step.function in (_run_whole, _run_view)


def is_view(step: Step) -> bool:
    """Whether such a step copies a part of an argument, which the model returns as it is."""
    return step.function is _run_view


def _run_whole(method: Callable[..., Any], keywords: dict[str, Any], outs: list[Array], args: list[Any]) -> None:
    result = method(*args, **keywords)
    if isinstance(result, Tensor):
        np.copyto(outs[0], result.data)
        return
    found: list[Tensor] = []
    _collect(result, found)
    for out, x in zip(outs, found, strict=True):
        np.copyto(out, x.data)


def _run_view(method: Callable[..., Any], keywords: dict[str, Any], outs: list[Array], args: list[Any]) -> None:
    """`_run_whole` of a primitive that returns a part of an argument."""
    _run_whole(method, keywords, outs, args)


def _collect(x: Any, found: list[Tensor]) -> None:
    if isinstance(x, Tensor):
        found.append(x)
    else:
        for item in x:
            _collect(item, found)


# -- movement


def _view(w: Writer, call: Call, array: Array) -> None:
    w.put(call.results[0], array)


def reshape(w: Writer, call: Call) -> None:
    _reshape(w, call, w.array(call.args[0]))


def _reshape(w: Writer, call: Call, x: Array) -> None:
    shape = call.results[0].shape
    view = reshaped(x, shape)
    _view(w, call, w.contiguous(x).reshape(shape) if view is None else view)


def reshaped(x: Array, shape: tuple[int, ...]) -> Array | None:
    """A view of x in another shape, None where its elements do not lie so."""
    try:
        return np.reshape(x, shape, copy=False)
    except ValueError:
        return None


def permute(w: Writer, call: Call) -> None:
    _view(w, call, w.array(call.args[0]).transpose(call.args[1]))


def expand(w: Writer, call: Call) -> None:
    _view(w, call, np.broadcast_to(w.array(call.args[0]), call.results[0].shape))


def slice_(w: Writer, call: Call) -> None:
    x, starts, sizes, steps = call.args
    key = []
    for start, count, step in zip(starts, sizes, steps, strict=True):
        stop = start + count * step
        key.append(slice(start, None if stop < 0 else stop, step))
    _view(w, call, part(w.array(x), tuple(key)))


def pad(w: Writer, call: Call) -> Any:
    x, padding, value = call.args
    if type(x) is not Value:
        return False
    whole_array, middle = w.padded(x, padding, value)
    w.copy(w.array(x), middle)
    _view(w, call, whole_array)
    return None


def concat(w: Writer, call: Call) -> None:
    parts, axis = call.args
    out = w.joined(call)
    start = 0
    for x in parts:
        stop = start + x.shape[axis]
        w.copy(w.array(x), out[(*(slice(None),) * axis, slice(start, stop))])
        start = stop


def bitcast(w: Writer, call: Call) -> None:
    x, dtype = call.args
    _view(w, call, w.contiguous(w.array(x)).view(numpy_dtype(dtype)))


def complex_part(w: Writer, call: Call) -> None:
    """Of complex numbers (core/host/complex_tensors/parts.py)."""
    x, which = call.args
    array, out = w.array(x), call.results[0]
    if which == "pairs":
        _view(w, call, w.contiguous(array)[..., None].view(numpy_dtype(out.dtype)))
    else:
        _view(w, call, getattr(array, which))


def complex_joined(w: Writer, call: Call) -> None:
    array, out = w.array(call.args[0]), call.results[0]
    _view(w, call, w.contiguous(array).view(numpy_dtype(out.dtype)).reshape(out.shape))


# -- elementwise


def conjugate(w: Writer, call: Call) -> None:
    (x,) = call.args
    array = w.array(x)
    w.map(np.conjugate, array, w.out_over(call.results[0], call, x))


def unary(w: Writer, call: Call) -> Any:
    op, x = call.args
    out = call.results[0]
    if op in ("floor", "ceil", "round", "trunc") and not x.dtype.is_float:
        _view(w, call, w.array(x))
        return None
    if x.dtype.name in NARROW:
        return False
    if op == "erf":
        return activations.erf(w, call)
    if not _keeps(_UNARY[op], (x,), out):
        return False
    array = w.array(x)
    w.map(_UNARY[op], array, w.out_over(out, call, x))
    return None


def binary(w: Writer, call: Call) -> Any:
    op, a, b = call.args
    out = call.results[0]
    if a.dtype.name in NARROW or not ((op == "div" and a.dtype.is_float) or isinstance(_BINARY[op], np.ufunc)):
        if not (op == "pow" and a.dtype.is_float):
            return False
    function = {"div": np.true_divide, "pow": np.power}.get(op) or _BINARY[op]
    if not _keeps(function, (a, b), out):
        return False
    if op in ("mul", "div") and _is_one(b) and a.dtype is out.dtype and a.shape == out.shape:
        _view(w, call, w.array(a))
        return None
    left, right = w.array(a), w.array(b)
    w.map(function, left, right, w.out_over(out, call, a, b))
    return None


def _is_one(x: Any) -> bool:
    """Whether x is a constant that is 1."""
    return type(x) is not Value and x.size == 1 and bool((x.data == 1).all())


def _keeps(function: Any, operands: tuple[Any, ...], out: Value) -> bool:
    """Whether NumPy's own result has the dtype that is asked for: then writing it there changes nothing."""
    if not isinstance(function, np.ufunc):
        return False
    given = [numpy_dtype(x.dtype) for x in operands]
    try:
        return bool(function.resolve_dtypes((*given, None))[-1] == numpy_dtype(out.dtype))
    except TypeError:
        return False


def where(w: Writer, call: Call) -> None:
    condition, a, b = map(w.array, call.args)
    out = w.out(call.results[0])
    word = WORDS.get(out.itemsize)
    if word is not None and out.dtype.kind != "O" and (call.open or out.size >= elementwise.BRANCHING):
        # With the bits, as ../elementwise.py: (a ^ b) & mask ^ b
        mask, left, right, target = w.scratch(condition.shape, word), a.view(word), b.view(word), out.view(word)
        w.map(copy_cast, condition.view(np.int8), mask)
        w.map(np.negative, mask, mask)
        w.map(np.bitwise_xor, left, right, target)
        w.map(np.bitwise_and, target, mask, target)
        w.map(np.bitwise_xor, target, right, target)
        return
    w.copy(b, out) if b.shape == out.shape else w.map(copy_broadcast, b, out)
    w.map(copy_where, condition, a, out)


def copy_broadcast(x: Array, out: Array) -> None:
    """out[...] = x."""
    np.copyto(out, x)


def copy_where(condition: Array, x: Array, out: Array) -> None:
    """out[condition] = x, all broadcast."""
    np.copyto(out, x, where=condition)


def cast(w: Writer, call: Call) -> Any:
    x, dtype = call.args[0], call.args[1]
    if x.dtype is dtype:
        _view(w, call, w.array(x))
        return None
    if "string" in (x.dtype.kind, dtype.kind) or {x.dtype.name, dtype.name} & set(NARROW):
        return False
    array = w.array(x)
    if dtype.is_bool:
        w.map(np.not_equal, array, array.dtype.type(0), w.out(call.results[0]))
        return None
    if dtype.is_integer and x.dtype.is_float:
        return False
    w.map(copy_cast, array, w.out(call.results[0]))
    return None


# -- reductions, indexing


def reduce(w: Writer, call: Call) -> Any:
    op, x, axes, keepdims = call.args
    array = w.array(x)
    if x.dtype.name in WIDE or not array.size or (op in ("any", "all") and not x.dtype.is_bool):
        return False
    if op in ("sum", "prod", "max", "min") and array.dtype == numpy_dtype(call.results[0].dtype):
        if all(x.shape[a] == 1 for a in axes):
            _reshape(w, call, array)
            return None
    out = w.out(call.results[0])
    w.emit(_REDUCE[op], array, tuple(axes), out.dtype, out, keepdims, writes=(out,))
    return None


def arange(w: Writer, call: Call) -> Any:
    """Where it is no constant, its length is open."""
    start, step, count, dtype = call.args
    if not dtype.is_integer or dtype.name in NARROW or any(isinstance(n, float) for n in (start, step)):
        return False
    out = w.out(call.results[0])
    w.emit(arange_into, start, step, count, out, writes=(out,))
    return None


def arange_into(start: int, step: int, count: int, out: Array) -> None:
    """start, start + step, …"""
    np.copyto(out, np.arange(start, start + count * step, step), casting="unsafe")


def checked(w: Writer, call: Call) -> Any:
    index, lowest, end, message, axis = call.args
    if index.dtype.name in NARROW:
        return False
    array = w.array(index)
    w.emit(check, array, lowest, end, message, axis, writes=())
    _view(w, call, array)
    return None


def take(w: Writer, call: Call) -> Any:
    x, indices, axis = call.args
    out = w.out(call.results[0])
    pieces = _pieces(indices, x.shape[axis])
    if pieces is not None:
        lead = (slice(None),) * axis
        for source, place in pieces:
            w.copy(w.array(x)[(*lead, source)], out[(*lead, place)])
        return None
    if not out.flags.c_contiguous or x.dtype.kind == "string":
        out = w.scratch(out.shape, out.dtype)
    known = type(indices) is Value and indices.call is not None and indices.call.op == "checked"
    w.emit(take_checked if known else take_into, w.array(x), w.array(indices), axis, out, writes=(out,))
    w.copy(out, w.array(call.results[0]))
    return None


def _pieces(indices: Any, n: int) -> list[tuple[slice, slice]] | None:
    """(a slice of an axis of length n, where its elements go) for each run of a step in constant indices, if there are
    few; None for others."""
    if type(indices) is Value or indices.data.ndim != 1 or indices.size < 2:
        return None
    at = indices.data.astype(np.int64)
    if at.min() < -n or at.max() >= n:
        return None
    at = np.where(at < 0, at + n, at).tolist()
    found: list[tuple[slice, slice]] = []
    start = 0
    while start < len(at):
        end, step = start + 1, (at[start + 1] - at[start] if start + 1 < len(at) else 1)
        while end < len(at) and step and at[end] - at[end - 1] == step:
            end += 1
        stop = at[end - 1] + (1 if step >= 0 else -1)
        found.append((slice(at[start], None if stop < 0 else stop, step or 1), slice(start, end)))
        if len(found) > PIECES:
            return None
        start = end
    return found


def take_into(x: Array, indices: Array, axis: int, out: Array) -> None:
    """np.take into an array. With the mode that refuses, NumPy fills another array first."""
    n = x.shape[axis]
    check(indices, -n, n, OUTSIDE, axis)
    take_checked(x, indices, axis, out)


def take_checked(x: Array, indices: Array, axis: int, out: Array) -> None:
    """`take_into` for indices that are known to be inside."""
    if indices.ndim == 0:
        key: tuple[Any, ...] = (*(slice(None),) * axis, int(indices))
        np.copyto(out, x[key])
    else:
        x.take(indices, axis, out, "wrap")


TABLE: dict[str, Lower] = {
    "reshape": reshape, "permute": permute, "expand": expand, "slice": slice_, "pad": pad, "concat": concat,
    "bitcast": bitcast, "unary": unary, "binary": binary, "where": where, "cast": cast, "reduce": reduce, "take": take,
    "checked": checked, "arange": arange, "count": counts.lower,
    "relu": activations.relu, "sigmoid": activations.sigmoid, "softmax": activations.softmax,
    "log_softmax": activations.log_softmax, "gelu": activations.gelu, "clip": activations.clip,
    "layer_norm": activations.layer_norm, "rms_norm": activations.rms_norm, "batch_norm": activations.batch_norm,
    "matmul": products.matmul, "linear": products.linear, "dot_product_attention": products.attention,
    "conv": channels_last.conv, "pool": channels_last.pool, "lstm_steps": recurrences.lstm_steps,
    "gru_steps": recurrences.gru_steps, "gather": gradients.gather, "scatter": gradients.scatter,
    "conv_input_gradient": gradients.conv_input, "conv_weight_gradient": gradients.conv_weight,
    "max_pool_gradient": gradients.max_pool, "part": complex_part, "joined": complex_joined,
    "conjugate": conjugate, "grid": grids.grid,
    "level_table": level_tables.lower, "to_levels": grids.to_levels, "from_levels": grids.from_levels,
    "range_levels": ranges.lower,
}  # fmt: skip
