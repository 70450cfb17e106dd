"""Matrix products into arrays that are there, and attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..storage import WIDE, Array
from .bias import on_row
from .steps import Writer
from .tracing import Call, Value


def matmul(w: Writer, call: Call) -> Any:
    a, b = call.args
    if a.dtype.name in WIDE or not a.dtype.is_float:
        return False
    product(w, w.array(a), w.array(b), w.out(call.results[0]))
    return None


def linear(w: Writer, call: Call) -> Any:
    x, weight, bias = call.args
    if x.dtype.name in WIDE or (bias is not None and bias.dtype is not x.dtype):
        return False
    out = w.out(call.results[0])
    row = w.with_one(w.array(x)) if type(x) is Value and on_row(call, x) else None
    if row is not None:
        extended = np.ascontiguousarray(np.concatenate([w.array(weight), w.array(bias).reshape(1, -1)]))
        target = out if out.flags.c_contiguous else w.scratch(out.shape, out.dtype)
        product(w, row, extended, target.reshape(1, -1))
        w.copy(target, out)
        return None
    product(w, w.array(x), w.array(weight), out)
    if bias is not None:
        w.map(np.add, out, w.array(bias), out)
    return None


def product(w: Writer, a: Array, b: Array, out: Array) -> None:
    """out = a @ b; what is multiplied by one matrix is one matrix itself, where it lies so."""
    if not out.size or not a.size or not b.size:
        w.emit(np.matmul, a, b, out, writes=(out,))
        return
    target = out if out.flags.c_contiguous else w.scratch(out.shape, out.dtype)
    if b.ndim == 2 and a.ndim > 2:
        rows = math.prod(a.shape[:-1])
        try:
            flat = np.reshape(a, (rows, a.shape[-1]), copy=False)
            w.emit(np.matmul, flat, b, target.reshape(rows, -1), writes=(target,))
        except ValueError:
            w.emit(np.matmul, a, b, target, writes=(target,))
    else:
        w.emit(np.matmul, a, b, target, writes=(target,))
    w.copy(target, out)


def attention(w: Writer, call: Call) -> Any:
    """softmax(q @ keysᵀ * scale + bias) @ values for scores that are computed at once."""
    from ..attention import _TILE

    q, keys, values, bias, scale, softcap, _, sink = call.args
    if q.dtype.name in WIDE or any(x is not None and x.dtype is not q.dtype for x in (keys, values, bias, sink)):
        return False
    batch, heads, rows, width = q.shape
    shared, length = keys.shape[1], keys.shape[2]
    if not math.prod(q.shape) or not length or batch * heads * rows * length > _TILE or sink is not None or softcap:
        return False
    group = heads // shared
    array = w.array(q)
    left = w.scratch(q.shape, array.dtype)
    w.map(np.multiply, array, array.dtype.type(scale), left)
    left = left.reshape(batch, shared, group, rows, width)
    right, content = w.array(keys)[:, :, None], w.array(values)[:, :, None]
    scores = w.scratch((batch, shared, group, rows, length), array.dtype)
    w.emit(np.matmul, left, right.swapaxes(-1, -2), scores, writes=(scores,))
    if bias is not None:
        add = w.array(bias)
        add = add.reshape((1,) * (4 - add.ndim) + add.shape)
        split = (shared, group) if add.shape[1] > 1 else (1, 1)
        try:
            add = np.reshape(add, (add.shape[0], *split, *add.shape[2:]), copy=False)
        except ValueError:
            add = w.contiguous(add).reshape(add.shape[0], *split, *add.shape[2:])
        w.map(np.add, scores, add, scores)
    row = w.scratch((*scores.shape[:-1], 1), array.dtype)
    w.emit(np.maximum.reduce, scores, -1, None, row, True, writes=(row,))
    if bias is not None:
        w.map(_peak, row, row)
    w.map(np.subtract, scores, row, scores)
    w.map(np.exp, scores, scores)
    w.emit(np.add.reduce, scores, -1, None, row, True, writes=(row,))
    if bias is not None:
        w.map(_total, row, row)
    out = w.out(call.results[0])
    target = out if out.flags.c_contiguous else w.scratch(out.shape, out.dtype)
    split_out = target.reshape(batch, shared, group, rows, -1)
    w.emit(np.matmul, scores, content, split_out, writes=(target,))
    w.map(np.true_divide, split_out, row, split_out)
    w.copy(target, out)
    return None


def _peak(x: Array, out: Array) -> None:
    """The largest score of a query that sees nothing is 0."""
    out[out == -np.inf] = 0


def _total(x: Array, out: Array) -> None:
    """The weights of a query that sees nothing add up to 1."""
    out[out == 0] = 1
