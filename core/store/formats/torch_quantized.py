"""PyTorch's quantized tensors (torch.quantize_per_tensor, quantize_per_channel) and torchao's: numbers of few bits with
scales and zero points. https://docs.pytorch.org/docs/stable/quantization.html"""

from __future__ import annotations

from typing import NamedTuple

from ... import dtypes
from ...backend import Backend
from ...backend.on_host import host_backend
from ...tensor import Tensor
from ..snapshot import Packed, Snapshot


class Scales(NamedTuple):
    """The scale and zero point: numbers, or tensors of one for each index along an axis, or, if that is None, for each
    block."""

    scale: float | Snapshot
    zero: int | Snapshot
    axis: int | None

    def counts(self, value: float | Snapshot, shape: tuple[int, ...]) -> tuple[int, ...]:
        """How many scales or zero points there are along each axis of a tensor of this shape."""
        ones = (1,) * len(shape)
        if not isinstance(value, Snapshot):
            return ones
        if self.axis is None:
            return tuple(value.shape) or ones
        return tuple(value.size if i == self.axis else 1 for i in range(len(shape)))

    def along(self, value: float | Snapshot, shape: tuple[int, ...], backend: Backend) -> Tensor:
        """The scales or zero points, as many along each axis."""
        counts = self.counts(value, shape)
        if not isinstance(value, Snapshot):
            return backend.full(counts, float(value), dtypes.float32)
        found: Tensor = value.tensor(backend).astype(dtypes.float32).reshape(counts)
        return found

    def spread(self, value: float | Snapshot, shape: tuple[int, ...], backend: Backend) -> Tensor:
        """The same, repeated over their blocks, to be broadcast to the shape."""
        found, counts = self.along(value, shape, backend), self.counts(value, shape)
        if all(count in (1, size) for count, size in zip(counts, shape)):
            return found
        found = found.reshape(tuple(n for count in counts for n in (count, 1)))
        found = found.expand(tuple(n for count, size in zip(counts, shape) for n in (count, size // count)))
        return found.reshape(shape)


def dequantized(s: Snapshot, scales: Scales) -> Snapshot:
    """Numbers of few bits as float32, (number - zero point) * scale; integers of a matrix with 8 bits are kept."""

    def make(backend: Backend) -> Tensor:
        zero, scale = (scales.spread(one, s.shape, backend) for one in (scales.zero, scales.scale))
        found: Tensor = (s.tensor(backend).astype(dtypes.float32) - zero) * scale
        return found

    marks = [x.same if isinstance(x, Snapshot) else x for x in (scales.scale, scales.zero)]
    found = Snapshot(
        s.name, dtypes.float32, s.shape, make=make, stored=f"quantized {s.dtype}", nbytes=s.nbytes,
        same=(s.same, *marks, scales.axis),
    )  # fmt: skip
    if s.dtype in (dtypes.int8, dtypes.uint8) and len(s.shape) == 2 and s.size:
        found.packed = _packed(s, scales)
    return found


def _packed(s: Snapshot, scales: Scales) -> Packed | None:
    """The integers of a matrix as those of a layer, whose rows have a scale each, or one for each block."""
    offset = 128 if s.dtype is dtypes.int8 else 0
    rows, columns = s.shape
    counts = [scales.counts(one, s.shape) for one in (scales.scale, scales.zero)]
    blocks = max(count for _, count in counts)
    if not all(m in (1, rows) and n in (1, blocks) for m, n in counts) or (blocks == columns and blocks > 1):
        return None

    def read() -> tuple[Tensor, Tensor, None]:
        backend = host_backend()
        levels = (s.tensor(backend).astype(dtypes.int16) + offset).astype(dtypes.uint8)
        scale = scales.along(scales.scale, s.shape, backend).expand((rows, blocks))
        return levels.reshape((rows, blocks, columns // blocks)), scale, None

    def points() -> Tensor:
        return (scales.along(scales.zero, s.shape, host_backend()) + float(offset)).expand((rows, blocks))

    return Packed(0, 8, columns // blocks, 128, True, read, points)
