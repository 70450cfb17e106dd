"""The loops of LSTM and GRU with the usual activations, step by step in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...tensor import Tensor
from .elementwise import narrowed
from .storage import WIDE, Array

if TYPE_CHECKING:
    from .backend import NumpyBackend


APART = 1 << 21  # bytes of the matrices of two directions that do not stay in the cache together


def directions_apart(r: Tensor) -> bool:
    """Whether a recurrent layer runs one direction after the other: each step then finds its matrix r in the cache."""
    return r.size * 4 >= APART


def _wide(x: Tensor) -> Array:
    """x's array in the dtype of the computation, without the axis of directions if there is only one direction."""
    array: Array = x.data
    array = array.astype(WIDE[x.dtype.name]) if x.dtype.name in WIDE else array
    return array[0] if array.shape[0] == 1 else array


def _sigmoid(x: Array) -> None:
    """1 / (1 + exp(-x)) = (tanh(x / 2) + 1) / 2, in place."""
    x *= 0.5
    np.tanh(x, out=x)
    x *= 0.5
    x += 0.5


def _back(backend: NumpyBackend, array: Array, like: Tensor, shape: tuple[int, ...]) -> Tensor:
    return backend._tensor(narrowed(array, like.dtype).reshape(shape), like.dtype)


def lstm_steps(
    backend: NumpyBackend, part: Tensor, r: Tensor, states: list[Tensor], backwards: bool
) -> tuple[Tensor, list[Tensor]]:
    """(y (steps, directions, batch, d_hidden), [h, c]): part (directions, steps, batch, 4 * d_hidden) is the
    contribution of x and of the biases, r (directions, d_hidden, 4 * d_hidden); gates i o f c."""
    directions, steps, batch, _ = part.shape
    n = r.shape[1]
    x, w = _wide(part), _wide(r)
    h, c = _wide(states[0]), _wide(states[1]).copy()
    y = np.empty((steps, *h.shape), x.dtype)
    z = np.empty((*h.shape[:-1], 4 * n), x.dtype)
    enter, leave, keep, new = (z[..., i * n : (i + 1) * n] for i in range(4))
    gates = z[..., : 3 * n]
    with np.errstate(all="ignore"):
        for t in range(steps - 1, -1, -1) if backwards else range(steps):
            np.matmul(h, w, out=z)
            z += x[..., t, :, :]
            _sigmoid(gates)
            np.tanh(new, out=new)
            c *= keep
            new *= enter
            c += new
            h = y[t]
            np.tanh(c, out=h)
            h *= leave
    state = (directions, batch, n)
    out = _back(backend, y, part, (steps, *state))
    return out, [_back(backend, h, part, state), _back(backend, c, part, state)]


def gru_steps(
    backend: NumpyBackend,
    part: Tensor,
    r: Tensor,
    states: list[Tensor],
    backwards: bool,
    bias_new: Tensor | None,
    linear_before_reset: bool,
) -> tuple[Tensor, list[Tensor]]:
    """(y, [h]) like `lstm_steps`; gates z r h. bias_new (directions, 1, d_hidden) is added to the product that the
    reset gate multiplies, if it does so after the product."""
    directions, steps, batch, _ = part.shape
    n = r.shape[1]
    x, w = _wide(part), _wide(r)
    h = _wide(states[0])
    shift = None if bias_new is None else _wide(bias_new)
    y = np.empty((steps, *h.shape), x.dtype)
    back = np.empty((*h.shape[:-1], 3 * n), x.dtype)
    gates, new = back[..., : 2 * n], back[..., 2 * n :]
    update, reset = back[..., :n], back[..., n : 2 * n]
    if not linear_before_reset:
        w_gates, w_new = w[..., : 2 * n], w[..., 2 * n :]
    with np.errstate(all="ignore"):
        for t in range(steps - 1, -1, -1) if backwards else range(steps):
            seen = x[..., t, :, :]
            if linear_before_reset:
                np.matmul(h, w, out=back)
                if shift is not None:
                    new += shift
            else:
                gates[...] = np.matmul(h, w_gates)
            gates += seen[..., : 2 * n]
            _sigmoid(gates)
            if linear_before_reset:
                new *= reset
            else:
                reset *= h
                new[...] = np.matmul(reset, w_new)
            new += seen[..., 2 * n :]
            np.tanh(new, out=new)
            # (1 - update) * new + update * h
            out = y[t]
            np.subtract(h, new, out=out)
            out *= update
            out += new
            h = out
    state = (directions, batch, n)
    return _back(backend, y, part, (steps, *state)), [_back(backend, h, part, state)]
