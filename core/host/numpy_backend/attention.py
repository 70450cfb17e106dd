"""Scaled dot-product attention in tiles that fit the cache, skipping masked keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...errors import ShapeError
from ...tensor import Tensor
from .elementwise import narrowed
from .storage import WIDE, Array

if TYPE_CHECKING:
    from .backend import NumpyBackend

# The maximum number of scores computed at once (1 MB of float32), and the minimum number of queries of a tile.
_TILE = 1 << 18
_ROWS = 64


def _wide(x: Tensor) -> Array:
    array: Array = x.data
    return array.astype(WIDE[x.dtype.name]) if x.dtype.name in WIDE else array


def _columns(bias: Array, start: int, stop: int) -> tuple[int, int]:
    """The first key that any query in rows start … stop - 1 sees, and the last plus one."""
    rows = bias[..., start:stop, :] if bias.shape[-2] > 1 else bias
    seen = np.flatnonzero((rows != -np.inf).any(axis=tuple(range(rows.ndim - 1))))
    return (int(seen[0]), int(seen[-1]) + 1) if seen.size else (0, 1)


def _tile(
    q: Array, keys: Array, values: Array, bias: Array | None, softcap: float, sink: Array | None, out: Array
) -> None:
    """out = softmax(q @ keysᵀ + bias) @ values on (…, rows, size), (…, length, size); sink (…, 1, 1)."""
    scores = np.matmul(q, keys.swapaxes(-1, -2))
    if softcap:
        scores /= softcap
        np.tanh(scores, out=scores)
        scores *= softcap
    if bias is not None:
        scores += bias
    peak = scores.max(axis=-1, keepdims=True)
    if sink is not None:
        peak = np.maximum(peak, sink)
    peak[peak == -np.inf] = 0  # a query that sees nothing
    scores -= peak
    np.exp(scores, out=scores)
    total = scores.sum(axis=-1, keepdims=True)
    if sink is not None:
        total += np.exp(sink - peak)
    total[total == 0] = 1
    np.matmul(scores, values, out=out)
    out /= total


def dot_product_attention(
    backend: NumpyBackend,
    q: Tensor,
    keys: Tensor,
    values: Tensor,
    bias: Tensor | None,
    scale: float,
    softcap: float,
    blind: bool,
    sink: Tensor | None,
) -> Tensor:
    """The composite of that name (functional/transformer); it does not need `blind`."""
    batch, heads, rows, width = q.shape
    shared, length, depth = keys.shape[1], keys.shape[2], values.shape[3]
    if keys.shape[0] not in (1, batch):
        raise ShapeError(f"attention: batches of {batch} queries and {keys.shape[0]} keys do not match")
    group = heads // shared
    with np.errstate(all="ignore"):
        left = (_wide(q) * scale).astype(_wide(q).dtype, copy=False)
        left = left.reshape(batch, shared, group, rows, width)
        # One more axis for the query heads that share a key head.
        right, content = _wide(keys)[:, :, None], _wide(values)[:, :, None]
        add = None
        if bias is not None:
            add = _wide(bias).astype(left.dtype, copy=False)
            add = add.reshape((1,) * (4 - add.ndim) + add.shape)
            split = (shared, group) if add.shape[1] > 1 else (1, 1)
            add = add.reshape(add.shape[0], *split, *add.shape[2:])
            add = np.broadcast_to(add, (*add.shape[:-1], length))
        drain = None if sink is None else _wide(sink).astype(left.dtype, copy=False).reshape(1, shared, group, 1, 1)
        out = np.empty((batch, shared, group, rows, depth), left.dtype)
        if not out.size or not length:
            out[...] = 0
        elif batch * heads * rows * length <= _TILE:
            _tile(left, right, content, add, softcap, drain, out)
        else:
            _tiles(left, right, content, add, softcap, drain, out)
    return backend._tensor(narrowed(out.reshape(batch, heads, rows, depth), q.dtype), q.dtype)


def _tiles(
    q: Array, keys: Array, values: Array, bias: Array | None, softcap: float, sink: Array | None, out: Array
) -> None:
    """`_tile` head by head, some rows at a time."""
    batch, shared, group, rows, _ = q.shape
    length = keys.shape[3]
    step = max(_ROWS, min(rows, _TILE // (4 * length * group)))
    for b in range(batch):
        own = None if bias is None else bias[b if bias.shape[0] > 1 else 0]
        for start in range(0, rows, step):
            stop = min(start + step, rows)
            # Keys that a mask for all heads hides from all of these rows are skipped.
            first, last = (0, length) if own is None or own.shape[0] > 1 else _columns(own, start, stop)
            for head in range(shared):
                add = None
                if own is not None:
                    add = own[head if own.shape[0] > 1 else 0]
                    add = add[:, start:stop, first:last] if add.shape[1] > 1 else add[:, :, first:last]
                _tile(
                    q[b, head, :, start:stop],
                    keys[b, head, :, first:last],
                    values[b, head, :, first:last],
                    add,
                    softcap,
                    None if sink is None else sink[0, head],
                    out[b, head, :, start:stop],
                )
