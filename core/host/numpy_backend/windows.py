"""Pooling as running maxima or sums over shifted strided views."""

from __future__ import annotations

import numpy as np

from .elementwise import identity
from .storage import Array


def padded(x: Array, padding: tuple[tuple[int, int], ...], value: float) -> Array:
    """x (n, c, *spatial) with `padding` on its spatial axes."""
    if not any(low or high for low, high in padding):
        return x
    spatial = [n + low + high for n, (low, high) in zip(x.shape[2:], padding, strict=True)]
    out = np.full((*x.shape[:2], *spatial), value, x.dtype)
    inside = (slice(low, low + n) for n, (low, _) in zip(x.shape[2:], padding, strict=True))
    out[(slice(None), slice(None), *inside)] = x
    return out


def taps(x: Array, axis: int, kernel: int, stride: int, dilation: int) -> list[Array]:
    """For each tap of a window along axis, the elements of x that it sees."""
    count = (x.shape[axis] - dilation * (kernel - 1) - 1) // stride + 1
    lead = (slice(None),) * axis
    return [x[(*lead, slice(i * dilation, i * dilation + (count - 1) * stride + 1, stride))] for i in range(kernel)]


def pool(
    op: str,
    x: Array,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[tuple[int, int], ...],
    dilation: tuple[int, ...],
) -> Array:
    """`Backend.pool`: one axis after the other, so that a k×k window costs 2k passes and not k²."""
    if op == "max":
        x = padded(x, padding, identity("max", x.dtype))
        for i in range(len(kernel)):
            x = _running(np.maximum, taps(x, i + 2, kernel[i], stride[i], dilation[i]))
        return x
    x = padded(x, padding, 0)
    if len(kernel) == 1:
        return _running(np.add, taps(x, 2, kernel[0], stride[0], dilation[0]))
    for i in range(len(kernel)):
        x = _running(np.add, taps(x, i + 2, kernel[i], stride[i], dilation[i]))
    return x


def _running(combine: np.ufunc, parts: list[Array]) -> Array:
    if len(parts) == 1:
        return parts[0]
    out: Array = combine(parts[0], parts[1])
    for part in parts[2:]:
        combine(out, part, out=out)
    return out
