"""The loop of an LSTM whose state is quantized at each step, in place: BLAS multiplies levels as floats, exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...tensor import Tensor
from .elementwise import clipping
from .storage import Array

if TYPE_CHECKING:
    from .backend import NumpyBackend

_EXACT = 1 << 24  # float32 holds all smaller integers
_LEVELS = 255
_TOP, _ONE, _LEAST = np.array(_LEVELS, np.float32), np.array(1, np.float32), np.finfo(np.float32).tiny


def quantized_lstm_steps(
    backend: NumpyBackend, part: Tensor, weight: Tensor, scale: Tensor, states: list[Tensor], backwards: bool
) -> tuple[Tensor, list[Tensor]]:
    """`lstm_steps` of float32 with the state quantized to 8 bits at each step, each sequence by its own range: weight
    (directions, d_hidden, 4 * d_hidden) holds integers as floats, scale (directions, 1, 1 or 4 * d_hidden) theirs."""
    x, matrix, step = part.data, weight.data, scale.data
    directions, steps, batch, width = x.shape
    n = width // 4
    if n * _LEVELS * _LEVELS >= _EXACT and np.abs(matrix).sum(-2).max(initial=0) * _LEVELS >= _EXACT:
        matrix = matrix.astype(np.float64)
    h, c = states[0].data, states[1].data.copy()
    y = np.empty((steps, *h.shape), x.dtype)
    z = np.empty((directions, batch, width), x.dtype)
    enter, leave, keep, new = (z[..., i * n : (i + 1) * n] for i in range(4))
    gates = z[..., : 3 * n]
    quantize = _Rows(h.shape)
    scales = np.empty(np.broadcast_shapes(quantize.scale.shape, step.shape), x.dtype)
    with np.errstate(all="ignore"):
        for t in range(steps - 1, -1, -1) if backwards else range(steps):
            np.matmul(quantize(h), matrix, out=z, casting="same_kind")
            np.multiply(quantize.scale, step, out=scales)
            np.multiply(z, scales, out=z)
            np.add(z, x[:, t], out=z)
            _sigmoid(gates)
            np.tanh(new, out=new)
            np.multiply(c, keep, out=c)
            np.multiply(new, enter, out=new)
            np.add(c, new, out=c)
            h = y[t]
            np.tanh(c, out=h)
            np.multiply(h, leave, out=h)
    return backend._tensor(y, part.dtype), [backend._tensor(s, part.dtype) for s in (h.copy(), c)]


def _sigmoid(x: Array) -> None:
    """In place, as composites.py computes it: other roundings would give other levels."""
    np.negative(x, out=x)
    np.exp(x, out=x)
    np.add(x, _ONE, out=x)
    np.reciprocal(x, out=x)


class _Rows:
    """Quantizes the rows of arrays of a shape (directions, sequences, elements), each by its range and 0. Called with
    one, it returns the levels less their zero points; scale: those of the rows."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.levels = np.empty(shape, np.float32)
        self.scale, self.low, self.high = (np.empty((*shape[:-1], 1), np.float32) for _ in range(3))

    def __call__(self, x: Array) -> Array:
        levels, scale, low, high = self.levels, self.scale, self.low, self.high
        np.maximum.reduce(x, axis=-1, out=high, keepdims=True, initial=0)
        np.minimum.reduce(x, axis=-1, out=low, keepdims=True, initial=0)
        np.subtract(high, low, out=scale)
        np.divide(scale, _TOP, out=scale)
        np.maximum(scale, _LEAST, out=scale)  # rows of zeros have any
        np.divide(low, scale, out=low)
        np.rint(low, out=low)
        np.add(low, _TOP, out=high)
        np.divide(x, scale, out=levels)
        np.rint(levels, out=levels)
        clipping(levels, low, high, levels)
        return levels
