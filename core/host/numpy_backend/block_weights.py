"""Products with weights of 2, 4 or 8 bits (com.microsoft MatMulNBits).

A few columns are dequantized at a time, so that they stay in the processor's cache until they are multiplied. For each
token, memory is read only for the packed weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...tensor import Tensor
from .storage import Array

if TYPE_CHECKING:
    from .backend import NumpyBackend

AT_ONCE = 1 << 17  # weights that are dequantized at a time
FEW_ROWS = 8  # for as many rows of x, scaling the products of blocks takes less than scaling the weights


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
    from ...functional.quantized.packed_weights import compose_matmul_nbits, unpack_bits

    tensors = [t for t in (x, weight, scales) if isinstance(t, Tensor)]
    plain = len(tensors) == 3 and [t.dtype.name for t in tensors] == ["float32", "uint8", "float32"]
    blocks = -(-rows // block_size)
    if (
        not plain
        or group_indices is not None
        or bits not in (2, 4, 8)
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
        return compose_matmul_nbits(
            x, weight, scales, zero_points, group_indices, bias,
            rows=rows, columns=columns, bits=bits, block_size=block_size,
        )  # fmt: skip
    packed = weight.data.reshape(columns, -1)
    scale = scales.data.reshape(columns, 1, blocks, 1)
    zero = None
    if zero_points is not None:
        zero = zero_points.data.reshape(columns, -1)
        if zero_points.dtype.name == "uint8":
            zero = unpack_bits(backend._tensor(zero, zero_points.dtype), bits).data[:, :blocks].astype(np.float32)
        zero = zero.reshape(columns, 1, blocks, 1)
    flat = x.data.reshape(-1, rows)
    parts, whole = 8 // bits, blocks * block_size
    nbytes = block_size // parts
    if whole != rows:
        flat = np.pad(flat, ((0, 0), (0, whole - rows)))
    # The weights of a byte lie in as many arrays, and so do the inputs that they are multiplied by.
    given = flat.reshape(-1, blocks, nbytes, parts)
    few = len(flat) <= FEW_ROWS <= block_size
    given = given.transpose(3, 1, 2, 0) if few else given.transpose(0, 3, 1, 2).reshape(-1, whole)
    given = np.ascontiguousarray(given)
    out = np.empty((len(flat), columns), np.float32)
    each = max(1, (AT_ONCE if few else 4 * AT_ONCE) // whole)
    middle = 1 << (bits - 1)
    with np.errstate(all="ignore"):
        for at in range(0, columns, each):
            some = slice(at, at + each)
            real = _floats(packed[some], bits, middle if zero is None else 0).reshape(-1, parts, blocks, nbytes)
            if zero is not None:
                real -= zero[some]
            if few:
                products = np.matmul(real.transpose(1, 2, 0, 3), given).sum(0)  # (blocks, columns, rows of x)
                products *= scale[some, 0].transpose(1, 0, 2)
                out[:, some] = products.sum(0).T
                continue
            real *= scale[some] if blocks == 1 else np.repeat(scale[some], nbytes, 3)
            out[:, some] = np.matmul(real.reshape(-1, whole), given.T).T  # faster than given @ real.T
        if bias is not None:
            out = out + (bias.data if isinstance(bias, Tensor) else np.asarray(bias, np.float32))
    return backend._tensor(out.reshape(*x.shape[:-1], columns), x.dtype)


def _floats(packed: Array, bits: int, middle: int) -> Array:
    """Bytes (columns, n) -> the levels minus `middle`, float32 (columns, 8 / bits, n): first the lowest bits of all
    bytes."""
    levels = packed[:, None]
    if bits < 8:
        levels = np.empty((len(packed), 8 // bits, packed.shape[1]), np.uint8)
        for i in range(8 // bits):
            np.right_shift(packed, bits * i, out=levels[:, i])
        levels &= (1 << bits) - 1
    if middle:
        levels = (levels - np.uint8(middle)).view(np.int8)
    return levels.astype(np.float32)
