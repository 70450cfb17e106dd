"""Weights of 2, 4 or 8 bits in blocks that share a scale, packed into bytes lowest bits first: com.microsoft
MatMulNBits and GatherBlockQuantized."""

from ... import dtypes
from ...backend import operation
from ...errors import DTypeError, ShapeError
from ...shapes import axis_of, size
from ..indexing.picking import check_bounds
from ..movement.rearranging import narrow, permute_dims, reshape
from ..operands import astype, floating, like, tensor
from ..overriding import composite
from .quantization import dequantize_linear


#: function; bits: int
@composite
def unpack_bits(x, bits):
    """uint8 (…, n) -> uint8 (…, n * 8 / bits): the 2-, 4- or 8-bit numbers in each byte, lowest bits first."""
    x = tensor(x)
    if bits not in (2, 4, 8) or x.dtype is not dtypes.uint8:
        raise DTypeError("unpack_bits takes uint8 with bits 2, 4 or 8, found {} and {}".format(x.dtype, bits))
    if bits == 8:
        return x
    backend = x.backend
    fast = operation(backend, "unpacked_bits")
    if fast:
        return fast(x, bits)
    each = 8 // bits
    shifts = backend.arange(0, bits, each, dtypes.uint8)
    parts = backend.binary("shift_right", reshape(x, x.shape + (1,)), shifts)
    parts = backend.binary("bitwise_and", parts, backend.full((), (1 << bits) - 1, dtypes.uint8))
    return reshape(parts, x.shape[:-1] + (x.shape[-1] * each,))


def _blocks(values, scales, zero_points, block_size):
    """(values - zero_points) * scales, blocked along the last axis: values (…, n), the others (…, blocks)."""
    backend = scales.backend
    n, count = values.shape[-1], scales.shape[-1]
    lead = values.shape[:-1]
    if count * block_size != n:
        values = backend.pad(values, ((0, 0),) * len(lead) + ((0, count * block_size - n),), 0)
    values = reshape(values, lead + (count, block_size))
    scales = reshape(scales, scales.shape + (1,))
    zero = reshape(zero_points, zero_points.shape + (1,)) if zero_points.ndim else zero_points
    fast = operation(backend, "from_levels")
    if fast:
        out = fast(values, zero, scales)
    else:
        out = backend.binary(
            "mul", backend.binary("sub", backend.cast(values, scales.dtype), backend.cast(zero, scales.dtype)), scales
        )
    return narrow(reshape(out, lead + (count * block_size,)), len(lead), 0, n)


#: function; com.microsoft MatMulBnb4; rows: int
@composite
def dequantize_nbits(weight, scales, zero_points=None, *, rows, columns, bits=4, block_size=32, group_indices=None):
    """MatMulNBits' packed (columns, blocks, block_size * bits / 8) bytes, dequantized to (columns, rows).

    scales: (columns * blocks,). zero_points: packed like the weight, one row per column, or in the scales' dtype
    (columns * blocks,); None means 2 ** (bits - 1). group_indices (rows,): the block of each row, if not
    in order.
    """
    weight = tensor(weight)
    backend = weight.backend
    scales = floating(scales)
    count = -(-rows // block_size)
    if weight.size != columns * count * block_size * bits // 8 or scales.size != columns * count:
        raise ShapeError(
            "{} bytes and {} scales are not {} columns of {} weights of {} bits in blocks of {}".format(
                weight.size, scales.size, columns, rows, bits, block_size
            )
        )
    scales = reshape(scales, (columns, count))
    values = unpack_bits(reshape(weight, (columns, count * block_size * bits // 8)), bits)
    if zero_points is None:
        zero = backend.full((), 1 << (bits - 1), dtypes.uint8)
    elif zero_points.dtype is dtypes.uint8:
        packed = reshape(zero_points, (columns, zero_points.size // max(columns, 1)))
        zero = narrow(unpack_bits(packed, bits), 1, 0, count)
    else:
        zero = reshape(zero_points, (columns, count))
    if count == 1 and group_indices is None and scales.dtype is dtypes.float32:
        # As DequantizeLinear, which plans find before a product, so that integers are multiplied.
        zero = reshape(zero, (columns,)) if zero.ndim else zero
        return dequantize_linear(narrow(values, 1, 0, rows), reshape(scales, (columns,)), zero, axis=0)
    if group_indices is not None:
        at, _ = check_bounds(tensor(group_indices), count, 1)
        scales = backend.take(scales, at, 1)
        zero = backend.take(zero, at, 1) if zero.ndim else zero
        return _blocks(narrow(values, 1, 0, rows), scales, zero, 1)
    return narrow(_blocks(values, scales, zero, block_size), 1, 0, rows)


#: function; com.microsoft MatMulNBits; rows: int
@composite
def matmul_nbits(
    x, weight, scales, zero_points=None, group_indices=None, bias=None, *, rows, columns, bits=4, block_size=32
):
    """x (…, rows) @ weight (rows, columns) + bias, with the weight packed in 2, 4 or 8 bits (see
    `dequantize_nbits`)."""
    return compose_matmul_nbits(
        x, weight, scales, zero_points, group_indices, bias,
        rows=rows, columns=columns, bits=bits, block_size=block_size,
    )  # fmt: skip


def compose_matmul_nbits(x, weight, scales, zero_points, group_indices, bias, *, rows, columns, bits=4, block_size=32):
    """`matmul_nbits` by its definition."""
    x = floating(x)
    if not x.ndim or x.shape[-1] != rows:
        raise ShapeError("matmul_nbits: input {} does not fit a weight of {} rows".format(x.shape, rows))
    real = dequantize_nbits(
        weight, scales, zero_points, rows=rows, columns=columns, bits=bits, block_size=block_size,
        group_indices=group_indices,
    )  # fmt: skip
    backend = x.backend
    flat = reshape(x, (-1 if x.size else size(x.shape[:-1]), rows))
    out = backend.matmul(flat, permute_dims(astype(real, x.dtype), (1, 0)))
    if bias is not None:
        out = backend.binary("add", out, like(bias, out))
    return reshape(out, x.shape[:-1] + (columns,))


#: function; com.microsoft GatherBlockQuantized; table: TensorLike
@composite
def gather_block_quantized(
    table, indices, scales, zero_points=None, *, gather_axis=0, quantize_axis=-1, block_size=128, bits=4
):
    """Slices of a quantized table at `indices` along gather_axis, dequantized.

    table: int4, uint4 or other integers; or uint8 with `bits` 2 or 4, packed along its last axis. Blocks of block_size
    along quantize_axis share a scale and a zero point (packed like the table; 0 by default, 2 ** (bits - 1) if packed).
    Raises ShapeError if the scales do not fit the table, IndexingError for an index out of range.
    """
    table, scales = tensor(table), floating(scales)
    backend = table.backend
    packed = table.dtype is dtypes.uint8
    gather_axis, quantize_axis = axis_of(gather_axis, table.ndim), axis_of(quantize_axis, table.ndim)
    if gather_axis == quantize_axis or (packed and bits < 8 and gather_axis == table.ndim - 1):
        raise ShapeError("gather_block_quantized cannot gather along its quantized axis {}".format(gather_axis))
    if not table.dtype.is_integer:
        raise DTypeError("gather_block_quantized: a table holds integers, found {}".format(table.dtype))
    for part in (scales,) if zero_points is None else (scales, tensor(zero_points, backend)):
        if part.ndim != table.ndim or part.shape[gather_axis] != table.shape[gather_axis]:
            raise ShapeError(
                "gather_block_quantized: scales or zero points of shape {} do not fit a table {}".format(
                    part.shape, table.shape
                )
            )
    indices, _ = check_bounds(tensor(indices, backend), table.shape[gather_axis], gather_axis)
    table, scales = backend.take(table, indices, gather_axis), backend.take(scales, indices, gather_axis)
    if packed:
        table = unpack_bits(table, bits)
    if zero_points is None:
        zero = backend.full((), 1 << (bits - 1) if packed else 0, scales.dtype)
    else:
        zero = backend.take(tensor(zero_points, backend), indices, gather_axis)
        zero = unpack_bits(zero, bits) if packed else zero
    # The quantized axis is moved last, and back afterwards.
    axis = quantize_axis + (indices.ndim - 1 if gather_axis < quantize_axis else 0)
    last = [i for i in range(table.ndim) if i != axis] + [axis]
    back = [last.index(i) for i in range(table.ndim)]
    scales = permute_dims(scales, last)
    if zero.ndim:
        zero = narrow(permute_dims(zero, last), len(last) - 1, 0, scales.shape[-1])
    return permute_dims(_blocks(permute_dims(table, last), scales, zero, block_size), back)
