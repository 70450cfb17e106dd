"""Packed weights of modules as single tensors with their integers, for formats that hold them as blocks."""

from __future__ import annotations

from .. import dtypes
from ..errors import UnsupportedError
from ..functional.movement.joining import concat
from ..functional.quantized.packed_weights import unpack_bits
from ..functional.quantized.weights import as_rows
from ..nn.quantized_weight import QuantizedWeight
from ..tensor import Tensor
from .snapshot import Packed, Snapshot


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
