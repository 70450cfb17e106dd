"""Quantization by the range of the call, in one step."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....backend import get_backend
from ....dtypes import float32
from ....tensor import Tensor
from ..integers import find_levels
from .layout import to_last
from .steps import Writer
from .tracing import Call, Value

_POSITIVE = ("relu", "sigmoid", "softmax")
_POSITIVE_UNARY = ("exp", "abs", "sqrt")
_MOVES = ("reshape", "permute", "expand", "slice")


def as_floats(call: Call) -> Value:
    """The levels of a range_levels less their zero point, as floats, which products read: one more of its results."""
    if len(call.results) == 3:
        levels = call.results[0]
        call.method = _with_floats
        call.results.append(Value(call, 3, float32, levels.shape, levels.inputs))
    return call.results[3]


def _with_floats(x: Tensor) -> tuple[Tensor, ...]:
    levels, scale, point = get_backend("numpy").range_levels(x)
    floats = levels.data.astype(np.float32) - point.data
    return levels, scale, point, Tensor(floats, float32, levels.shape, levels.backend)


def lower(w: Writer, call: Call) -> None:
    """Lowers `range_levels` (../integers.py), without the results that nothing reads."""
    outs = [w.out(value) if value in w.roots or w.users(value) else None for value in call.results]
    levels, scale, point, floats = [*outs, None][:4]
    value = call.results[0]
    between = w.scratch(value.shape, np.dtype(np.float32), value in w.last) if floats is None else floats
    written = tuple(x for x in (levels, scale, point, between) if x is not None)
    x = w.array(call.args[0])
    if value in w.last:  # elements in the order of memory
        x, between, levels = to_last(x), to_last(between), None if levels is None else to_last(levels)
    w.emit(find_levels, x, between, levels, scale, point, _none_below(call.args[0]), writes=written)


def _none_below(x: Any) -> bool:
    """Whether no number of x is below 0."""
    call = x.call if type(x) is Value else None
    if call is None or call.keywords:
        return False
    if call.op in _MOVES:
        return _none_below(call.args[0])
    return call.op in _POSITIVE or (call.op == "unary" and call.args[0] in _POSITIVE_UNARY)
