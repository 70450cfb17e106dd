"""Integers with scales along an axis or in blocks, as ONNX's DequantizeLinear takes them, in the form of a
QuantizedWeight."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from .. import dtypes
from ..dtypes import DType
from ..functional.quantized.weights import as_rows
from ..tensor import Tensor


class IntegerBlocks(NamedTuple):
    """How a tensor of integers lies. axis: that of the channels; weights: of each; bits: of a level; size:
    how many weights of a channel share a scale; blocks: of a channel; offset: what is added to integers to make them
    levels of 0 to 2 ** bits - 1."""

    axis: int
    channels: int
    weights: int
    bits: int
    size: int
    blocks: int
    offset: int

    @staticmethod
    def of(
        shape: Sequence[int], dtype: DType, scale: Sequence[int], zero: Sequence[int] | None, along: int,
        block_size: int, axis: int,
    ) -> IntegerBlocks | None:  # fmt: skip
        """The form of integers of `shape` with scales of the shape `scale`, and zero points of the shape `zero` if
        there are any, along an axis, in blocks if there is a block_size; None if channels along `axis` have no scales
        of their own, and for parts that do not fit."""
        if not dtype.is_integer or dtype.bits not in (2, 4, 8) or len(shape) < 2:
            return None
        channels, count = shape[axis], prod(n for i, n in enumerate(shape) if i != axis)
        each = 8 // dtype.bits
        size, blocks = max(1, -(-count // each)) * each, 1
        one = not block_size and prod(scale) == 1
        if not -len(shape) <= along < len(shape):
            return None
        if zero is not None and tuple(zero) != tuple(scale) and not (one and prod(zero) == 1):
            return None
        along %= len(shape)
        if block_size:
            size = min(block_size, size)
            blocks = -(-count // size)
            grid = tuple(blocks if i == along else n for i, n in enumerate(shape))
            if len(shape) != 2 or along == axis or size % each or tuple(scale) != grid:
                return None
        elif not one and (tuple(scale) != (channels,) or along != axis):
            return None
        offset = 0 if dtype.name.startswith("u") else 1 << (dtype.bits - 1)
        return IntegerBlocks(axis, channels, count, dtype.bits, size, blocks, offset)

    def levels(self, x: Tensor) -> Tensor:
        """Integers of the tensor's shape -> levels uint8 (channels, blocks, size), zeros past the last weight."""
        rows = (as_rows(x.astype(dtypes.int16), self.axis) + self.offset).astype(dtypes.uint8)
        rows = rows.backend.pad(rows, ((0, 0), (0, self.blocks * self.size - self.weights)), self.offset)
        found: Tensor = rows.reshape((self.channels, self.blocks, self.size))
        return found

    def scales(self, x: Tensor) -> Tensor:
        """A number for each block, float32 (channels, blocks)."""
        x = x.astype(dtypes.float32)
        if x.size == 1:
            return x.reshape((1, 1)).expand((self.channels, self.blocks))
        found: Tensor = as_rows(x, self.axis) if x.ndim > 1 else x.reshape((self.channels, 1))
        return found

    def points(self, zero: Tensor | None, scale: Tensor) -> Tensor:
        """The level of zero of each block, float32 (channels, blocks). zero: the zero points of a file, or None."""
        given = self.scales(scale) * 0.0 if zero is None else self.scales(zero)
        return given + float(self.offset)
