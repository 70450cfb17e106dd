"""Products with weights of 2, 4 or 8 bits (com.microsoft MatMulNBits).

A few columns are dequantized at a time, so that they stay in the processor's cache until they are multiplied. For each
token, memory is read only for the packed weights."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ...tensor import Tensor
from .storage import Array

if TYPE_CHECKING:
    from .backend import NumpyBackend

AT_ONCE = 1 << 17  # weights that are dequantized at a time
_WORDS = {8: np.float32, 4: np.uint64, 2: np.complex128}  # one word that holds the float32 numbers packed in a byte


@cache
def _numbers(bits: int, zero: int) -> Array:
    """For each possible byte, the float32 numbers packed in it, minus `zero`, as one word."""
    byte = np.arange(256)
    parts = [(byte >> shift & (1 << bits) - 1) - zero for shift in range(0, 8, bits)]
    return np.ascontiguousarray(np.stack(parts, -1), np.float32).view(_WORDS[bits]).reshape(256)


def matmul_nbits(
    backend: NumpyBackend,
    x: Any,
    weight: Any,
    scales: Any,
    zero_points: Any = None,
    group_indices: Any = None,
    bias: Any = None,
    *,
    rows: int,
    columns: int,
    bits: int = 4,
    block_size: int = 32,
) -> Tensor:
    """matmul_nbits for float32 x and scales, uint8 weights and rows of whole blocks. Everything else goes to the
    composite."""
    from ...functional.quantized.packed_weights import matmul_nbits as by_definition
    from ...functional.quantized.packed_weights import unpack_bits

    tensors = [t for t in (x, weight, scales) if isinstance(t, Tensor)]
    plain = len(tensors) == 3 and [t.dtype.name for t in tensors] == ["float32", "uint8", "float32"]
    blocks = -(-rows // block_size)
    if (
        not plain
        or group_indices is not None
        or bits not in _WORDS
        or block_size * bits % 8
        or not x.ndim
        or x.shape[-1] != rows
        or not x.size
        or not columns
        or weight.size != columns * blocks * block_size * bits // 8
        or scales.size != columns * blocks
        or not isinstance(zero_points, Tensor | None)
        or (zero_points is not None and zero_points.dtype.name not in ("uint8", "float32"))
    ):
        return by_definition.__wrapped__(
            x, weight, scales, zero_points, group_indices, bias,
            rows=rows, columns=columns, bits=bits, block_size=block_size,
        )  # fmt: skip
    packed = weight.data.reshape(columns, -1)
    scale = scales.data.reshape(columns, blocks, 1)
    zero = None
    if zero_points is not None:
        zero = zero_points.data.reshape(columns, -1)
        if zero_points.dtype.name == "uint8":
            zero = unpack_bits(backend._tensor(zero, zero_points.dtype), bits).data[:, :blocks].astype(np.float32)
        zero = zero.reshape(columns, blocks, 1)
    numbers = _numbers(bits, 0 if zero is not None else 1 << (bits - 1))
    flat = x.data.reshape(-1, rows)
    out = np.empty((flat.shape[0], columns), np.float32)
    each = max(1, AT_ONCE // (blocks * block_size))
    with np.errstate(all="ignore"):
        for at in range(0, columns, each):
            real = numbers.take(packed[at : at + each]).view(np.float32).reshape(-1, blocks, block_size)
            if zero is not None:
                real -= zero[at : at + each]
            real *= scale[at : at + each]
            np.matmul(flat, real.reshape(-1, blocks * block_size)[:, :rows].T, out=out[:, at : at + each])
        if bias is not None:
            out = out + (bias.data if isinstance(bias, Tensor) else np.asarray(bias, np.float32))
    return backend._tensor(out.reshape(*x.shape[:-1], columns), x.dtype)
