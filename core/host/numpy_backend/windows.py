"""Pooling as running maxima or sums over shifted strided views."""

from __future__ import annotations

import numpy as np

from .elementwise import Kernels, identity
from .storage import Array

_COMBINE = Kernels({"max": np.maximum, "sum": np.add}, "pool")


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
    """For each tap of a window along axis, the elements of x that it meets."""
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
    if max(kernel) == 1:  # its result has memory of its own, as that of larger windows
        x = x.copy()
    x = padded(x, padding, identity("max", x.dtype) if op == "max" else 0)
    combine = _COMBINE[op]
    last = len(kernel) - 1
    for i in range(last):
        x = _running(combine, taps(x, i + 2, kernel[i], stride[i], dilation[i]))
    return _along_lines(combine, x, kernel[last], stride[last], dilation[last])


def _along_lines(combine: np.ufunc, x: Array, kernel: int, stride: int, dilation: int) -> Array:
    """The last axis. All lines are combined as one run of memory, which is several times faster than one by one;
    results that mix two lines are dropped at the end."""
    if kernel == 1:
        return x[..., ::stride]
    reach = dilation * (kernel - 1)
    count = (x.shape[-1] - reach - 1) // stride + 1
    flat = np.ascontiguousarray(x).reshape(-1)
    used = flat.size - reach
    out = np.empty(flat.size, x.dtype)
    combine(flat[:used], flat[dilation : dilation + used], out=out[:used])
    for i in range(2, kernel):
        combine(out[:used], flat[i * dilation : i * dilation + used], out=out[:used])
    return np.ascontiguousarray(out.reshape(x.shape)[..., : (count - 1) * stride + 1 : stride])


def _running(combine: np.ufunc, parts: list[Array]) -> Array:
    if len(parts) == 1:
        return parts[0]
    out: Array = combine(parts[0], parts[1])
    for part in parts[2:]:
        combine(out, part, out=out)
    return out
