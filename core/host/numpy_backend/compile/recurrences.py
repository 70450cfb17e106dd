"""LSTM and GRU, step by step into arrays that are there."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..storage import WIDE, Array
from .steps import Writer
from .tracing import Call

_UNROLLED = 64  # steps in time up to which each is written out; more, and open lengths, are left to ../recurrent.py


def _sigmoid(w: Writer, x: Array) -> None:
    """(tanh(x / 2) + 1) / 2, in place, as ../recurrent.py computes it."""
    half, one = x.dtype.type(0.5), np.add
    w.map(np.multiply, x, half, x)
    w.map(np.tanh, x, x)
    w.map(np.multiply, x, half, x)
    w.map(one, x, half, x)


def _state(x: Array) -> Array:
    """Without the axis of directions where there is one alone."""
    return x[0] if x.shape[0] == 1 else x


def lstm_steps(w: Writer, call: Call) -> Any:
    part, recurrent, states, backwards = call.args
    if call.open or part.dtype.name in WIDE or part.shape[1] > _UNROLLED or not part.shape[1]:
        return False
    directions, steps, batch, _ = part.shape
    n = recurrent.shape[1]
    x, matrix = _state(w.array(part)), _state(w.array(recurrent))
    matrix = w.contiguous(matrix)
    h, start = _state(w.array(states[0])), _state(w.array(states[1]))
    whole = w.scratch((steps, directions, batch, n), x.dtype)
    y = whole.reshape(steps, *h.shape)
    c, before = w.scratch(h.shape, x.dtype), start
    z = w.scratch((*h.shape[:-1], 4 * n), x.dtype)
    enter, leave, keep, new = (z[..., i * n : (i + 1) * n] for i in range(4))
    for t in range(steps - 1, -1, -1) if backwards else range(steps):
        w.emit(np.matmul, h, matrix, z, writes=(z,))
        w.map(np.add, z, x[..., t, :, :], z)
        _sigmoid(w, z[..., : 3 * n])
        w.map(np.tanh, new, new)
        w.map(np.multiply, before, keep, c)
        before = c
        w.map(np.multiply, new, enter, new)
        w.map(np.add, c, new, c)
        h = y[t]
        w.map(np.tanh, c, h)
        w.map(np.multiply, h, leave, h)
    _give(w, call, whole, h, c)
    return None


def _give(w: Writer, call: Call, *found: Array) -> None:
    """The results of a call, which lie in arrays without gaps."""
    for value, array in zip(call.results, found, strict=True):
        w.put(value, array.reshape(value.shape))


def gru_steps(w: Writer, call: Call) -> Any:
    part, recurrent, states, backwards, bias_new, linear_before_reset = call.args
    if call.open or part.dtype.name in WIDE or part.shape[1] > _UNROLLED or not part.shape[1]:
        return False
    directions, steps, batch, _ = part.shape
    n = recurrent.shape[1]
    x, matrix = _state(w.array(part)), w.contiguous(_state(w.array(recurrent)))
    h = _state(w.array(states[0]))
    shift = None if bias_new is None else _state(w.array(bias_new))
    whole = w.scratch((steps, directions, batch, n), x.dtype)
    y = whole.reshape(steps, *h.shape)
    back = w.scratch((*h.shape[:-1], 3 * n), x.dtype)
    gates, new = back[..., : 2 * n], back[..., 2 * n :]
    update, reset = back[..., :n], back[..., n : 2 * n]
    product = w.scratch((*h.shape[:-1], 2 * n), x.dtype)
    second = w.scratch(h.shape, x.dtype)
    for t in range(steps - 1, -1, -1) if backwards else range(steps):
        seen = x[..., t, :, :]
        if linear_before_reset:
            w.emit(np.matmul, h, matrix, back, writes=(back,))
            if shift is not None:
                w.map(np.add, new, shift, new)
        else:
            w.emit(np.matmul, h, matrix[..., : 2 * n], product, writes=(product,))
            w.copy(product, gates)
        w.map(np.add, gates, seen[..., : 2 * n], gates)
        _sigmoid(w, gates)
        if linear_before_reset:
            w.map(np.multiply, new, reset, new)
        else:
            w.map(np.multiply, reset, h, reset)
            w.emit(np.matmul, reset, matrix[..., 2 * n :], second, writes=(second,))
            w.copy(second, new)
        w.map(np.add, new, seen[..., 2 * n :], new)
        w.map(np.tanh, new, new)
        out = y[t]
        w.map(np.subtract, h, new, out)
        w.map(np.multiply, out, update, out)
        w.map(np.add, out, new, out)
        h = out
    _give(w, call, whole, h)
    return None
