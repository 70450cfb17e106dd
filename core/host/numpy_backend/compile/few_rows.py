"""Products of a few rows with large constant weights, split into small products.

OpenBLAS copies the weights into the layout of its kernels for every product, which for a few rows takes as long as
multiplying. With its AVX-512 kernels it computes small products without this copy. Splitting a large product into small
ones makes it 1.1 to 2.7 times as fast: 1.3 to 1.5 times for the last images of ResNet-50, which have 49 positions.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from ... import blas_kernels
from ..storage import Array
from .steps import Writer

MOST = 100  # maximum rows: larger products are as fast unsplit
LEAST = 1 << 16  # minimum number of weights
WIDTH = 32  # columns of a part
SMALL = 10**6  # multiplications of a product that OpenBLAS computes without copying (sgemm_small_kernel_permit)


@cache
def are_faster_in_parts() -> bool:
    """Whether NumPy's BLAS computes small products without copying."""
    return blas_kernels.running() in blas_kernels.WITH_AVX512


def product(w: Writer, x: Array, weights: Array, out: Array) -> None:
    """out = x @ weights, which are constant: (rows, n), (n, columns), (rows, columns)."""
    rows, n = x.shape
    columns = weights.shape[1]
    fits = 1 < rows <= MOST and weights.size >= LEAST and columns % WIDTH == 0
    if not (fits and (blas_kernels.threads() or 1) == 1 and are_faster_in_parts()):
        w.emit(np.matmul, x, weights, out, writes=(out,))
        return
    parts = next((p for p in range(1, n + 1) if n % p == 0 and rows * (n // p) * WIDTH <= SMALL), n)
    # (parts, columns / WIDTH, n / parts, WIDTH): each part of the weights in one piece
    cut = np.ascontiguousarray(weights.reshape(parts, n // parts, -1, WIDTH).transpose(0, 2, 1, 3))
    sums = out[None] if parts == 1 else w.scratch((parts, *out.shape), out.dtype)
    left = x.reshape(rows, parts, 1, n // parts, copy=False).transpose(1, 2, 0, 3)
    places = sums.reshape(parts, rows, -1, WIDTH, copy=False).transpose(0, 2, 1, 3)
    w.emit(np.matmul, left, cut, places, writes=(sums,))
    if parts > 1:
        w.emit(np.add.reduce, sums, 0, None, out, writes=(out,))
