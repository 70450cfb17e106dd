"""Counts what is true in a mask from the mask itself, not from a copy of it in integers of 64 bits."""

from __future__ import annotations

import numpy as np

from ....backend.tracing import Trace
from ..storage import Array
from .steps import Writer
from .tracing import Call, Value


def from_masks(trace: Trace) -> None:
    """Change a trace so that sums over masks that are cast to int64 become counts."""
    casts: set[Call] = set()
    for call in trace.calls:
        if call.op == "reduce" and call.args[0] == "sum" and (mask := _mask(call.args[1])) is not None:
            casts.add(call.args[1].call)
            call.op, call.args = "count", (mask, *call.args[2:])
    if casts:
        used = {*trace.roots, *(v for call in trace.calls for v in call.operands())}
        trace.calls = [c for c in trace.calls if c not in casts or c.results[0] in used]


def _mask(x: object) -> Value | None:
    """The mask that x is cast from; None if there is none, or it has no elements."""
    if type(x) is not Value or x.call is None or x.call.op != "cast" or x.dtype.name != "int64" or 0 in x.shape:
        return None
    mask = x.call.args[0]
    return mask if type(mask) is Value and mask.dtype.is_bool else None


def lower(w: Writer, call: Call) -> None:
    """Write the step of a count."""
    mask, axes, keepdims = call.args
    out = w.out(call.results[0])
    w.emit(count, w.array(mask), tuple(axes), out, keepdims, writes=(out,))


def count(mask: Array, axes: tuple[int, ...], out: Array, keepdims: bool) -> None:
    """The number of true elements over axes, into out."""
    if len(axes) == mask.ndim:
        out.fill(np.count_nonzero(mask))
    else:
        np.add.reduce(mask, axes, out.dtype, out=out, keepdims=keepdims)
