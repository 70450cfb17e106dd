"""Packed weights of modules as single tensors with their integers, for formats that hold them as blocks: GGUF, and
Burn's quantized tensors in burnpacks."""

from __future__ import annotations

from math import prod

from .. import dtypes
from ..errors import UnsupportedError
from ..functional.indexing.picking import take
from ..functional.movement.joining import concat
from ..functional.quantized.packed_weights import unpack_bits
from ..functional.quantized.weights import as_rows, from_rows
from ..nn.quantized_weight import QuantizedWeight
from ..tensor import Tensor
from .quantizing import MAX_AXES, MAX_BLOCK, VALUES, quantized_scheme
from .snapshot import Packed, Quantized, Snapshot

SMALLEST = 16  # of the parts that a block is split into
SCALES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "float8_e8m0fnu": "UE8M0"}


def packs(holder: object) -> bool:
    """Whether a parameter's holder is a packed weight."""
    return isinstance(holder, QuantizedWeight)


def as_blocks(name: str, weight: QuantizedWeight) -> Snapshot:
    """A packed matrix as one tensor (channels, weights of each) with its integers, for formats that hold it so. Raises
    UnsupportedError for a weight that is no matrix of integers."""
    if _is_mxfp4(weight):
        return _mxfp4(name, weight)
    integers = weight.scheme.value is None and weight.levels is None and weight.rows == 1
    if len(weight.shape) != 2 or not integers or weight.input_scale is not None:
        raise UnsupportedError(
            f"{name}: only matrices of integers, or of MXFP4, without input scales are written as blocks"
        )
    shape = (weight.shape[weight.axis], weight.count)
    affine = weight.zero_point is not None

    def read() -> tuple[Tensor, Tensor, Tensor | None]:
        values = weight.values.val()
        rows = (values.shape[0], values.shape[1])
        levels = unpack_bits(values, weight.bits).reshape((*rows, weight.block_size))
        scale = weight.scales().reshape(rows)
        zeros = weight.zero_point
        return levels, scale, None if zeros is None else zeros.val().reshape(rows) * scale

    found = Snapshot(
        name, dtypes.float32, shape, make=lambda b: as_rows(weight.val(), weight.axis).astype(dtypes.float32).to(b),
        param_id=None,
    )  # fmt: skip
    zero = 0 if affine else 1 << (weight.bits - 1)
    found.packed = Packed(0, weight.bits, weight.block_size, zero, affine, read)
    return found


def _is_mxfp4(weight: QuantizedWeight) -> bool:
    """Whether a weight is a matrix of E2M1's numbers with powers of two as scales for blocks of 32 that fill rows."""
    scheme = weight.scheme
    return (
        len(weight.shape) == 2
        and scheme.value is dtypes.float4_e2m1fn
        and scheme.scale is dtypes.float8_e8m0fnu
        and (weight.block_size, weight.rows) == (32, 1)
        and weight.count % 32 == 0
        and weight.input_scale is None
    )


def _mxfp4(name: str, weight: QuantizedWeight) -> Snapshot:
    """Such a matrix as GGUF's blocks MXFP4: the scale, then 16 bytes of the first and the last 16 values."""

    def read() -> memoryview:
        values = weight.values.val()
        backend = values.backend
        packed = backend.from_bytes(backend.to_bytes(values), dtypes.uint8, (values.size // 32, 16))
        codes = unpack_bits(packed, 4)
        scale = backend.from_bytes(backend.to_bytes(weight.scale.val()), dtypes.uint8, (values.size // 32, 1))
        joined = concat([scale, (codes[:, :16] | (codes[:, 16:] << 4)).astype(dtypes.uint8)], 1)
        return memoryview(backend.to_bytes(joined))

    found = Snapshot(
        name, dtypes.float32, (weight.shape[weight.axis], weight.count),
        make=lambda b: as_rows(weight.val(), weight.axis).astype(dtypes.float32).to(b), param_id=None,
    )  # fmt: skip
    found.blocks = "MXFP4", read
    return found


def as_burn(name: str, weight: QuantizedWeight, param_id: int | None) -> Snapshot:
    """A packed weight as one float32 tensor that a burnpack stores as Burn's quantized tensors: symmetric integers with
    scales of one level. Weights that Burn has no form for are floats."""
    found = Snapshot(
        name, dtypes.float32, tuple(weight.shape), make=lambda b: weight.val().astype(dtypes.float32).to(b),
        param_id=param_id,
    )  # fmt: skip
    block = _block(weight)
    scale = SCALES.get(weight.scheme.scale.name)
    others = (weight.zero_point, weight.input_scale, weight.levels, weight.tensor_scale, weight.scheme.value)
    if block is None or scale is None or any(part is not None for part in others):
        return found
    value, dtype = VALUES[weight.bits]
    grid = [-(-n // b) for n, b in zip(weight.shape, block, strict=True)]
    unit = 32 // weight.bits
    nbytes = -(-found.size // unit) * 4 + int(weight.scheme.scale.itemsize) * prod(grid)

    def read() -> memoryview:
        levels = _levels(weight)
        raw = bytes(levels.backend.to_bytes(levels.astype(dtype)))
        scales = _scales(weight, block, grid)
        return memoryview(raw + bytes(-len(raw) % 4) + bytes(scales.backend.to_bytes(scales)))

    found.stored, found.nbytes = f"{value} in u32", nbytes
    found.quantized = Quantized(quantized_scheme(value, block, scale), read, nbytes)
    return found


def _extents(weight: QuantizedWeight) -> tuple[int, ...]:
    """How many weights along each axis share a scale."""
    one = weight.values.shape[1] == 1
    return tuple(
        weight.rows if i == weight.axis else n if one else weight.block_size for i, n in enumerate(weight.shape)
    )


def _block(weight: QuantizedWeight) -> tuple[int, ...] | None:
    """The same for the tensor of Burn, whose blocks have at most 255 along an axis: a block, or parts of it; None where
    these would be so small that their scales take more than the integers save."""
    shape = weight.shape
    if 0 in shape or len(shape) > MAX_AXES or (weight.values.shape[1] > 1 and len(shape) != 2):
        return None
    extents = _extents(weight)
    parts = tuple(max(k for k in range(1, MAX_BLOCK + 1) if n % k == 0) for n in extents)
    return parts if parts == extents or prod(parts) >= SMALLEST else None


def _levels(weight: QuantizedWeight) -> Tensor:
    """The integers in the weight's shape, zero in the middle, float32."""
    values = weight.values.val()
    rows = unpack_bits(values, weight.bits).reshape((values.shape[0], -1))[:, : weight.count]
    found: Tensor = from_rows(rows, weight.shape, weight.axis).astype(dtypes.float32) - float(1 << (weight.bits - 1))
    return found


def _scales(weight: QuantizedWeight, block: tuple[int, ...], grid: list[int]) -> Tensor:
    """The scale of each block of the tensor of Burn."""
    blocks = weight.values.shape[1]
    x = weight.scale.val().reshape((-1, blocks))  # (groups of channels, blocks of each)
    groups = x.shape[0]
    x = x.mT if weight.axis == 1 else x
    x = x.reshape(tuple(groups if i == weight.axis else blocks for i in range(len(grid))))
    for i, (n, extent) in enumerate(zip(grid, _extents(weight), strict=True)):
        at = [j * block[i] // extent for j in range(n)]
        x = take(x, x.backend.from_list(at, dtypes.int64, (n,)), axis=i)
    return x
