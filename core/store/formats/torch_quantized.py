"""PyTorch's quantized tensors (torch.quantize_per_tensor, quantize_per_channel): integers with scales and zero points.
https://docs.pytorch.org/docs/stable/quantization.html"""

from __future__ import annotations

from typing import NamedTuple

from ... import dtypes
from ...backend import Backend
from ...backend.on_host import host_backend
from ...tensor import Tensor
from ..snapshot import Packed, Snapshot


class Scales(NamedTuple):
    """The scale and zero point: numbers, or tensors of one for each index along an axis."""

    scale: float | Snapshot
    zero: int | Snapshot
    axis: int


def dequantized(s: Snapshot, scales: Scales) -> Snapshot:
    """Integers as float32, (integer - zero point) * scale; those of a matrix with 8 bits keep their integers."""

    def along(value: float | Snapshot, backend: Backend) -> Tensor:
        shape = [1] * len(s.shape)
        if not isinstance(value, Snapshot):
            return backend.full(tuple(shape), float(value), dtypes.float32)
        shape[scales.axis] = value.size
        found: Tensor = value.tensor(backend).astype(dtypes.float32).reshape(tuple(shape))
        return found

    def make(backend: Backend) -> Tensor:
        found: Tensor = (s.tensor(backend).astype(dtypes.float32) - along(scales.zero, backend)) * along(
            scales.scale, backend
        )
        return found

    marks = [x.same if isinstance(x, Snapshot) else x for x in (scales.scale, scales.zero)]
    found = Snapshot(
        s.name, dtypes.float32, s.shape, make=make, stored=f"quantized {s.dtype}", nbytes=s.nbytes,
        same=(s.same, *marks, scales.axis),
    )  # fmt: skip
    rows = not isinstance(scales.scale, Snapshot) or scales.axis == 0
    if s.dtype.bits == 8 and len(s.shape) == 2 and s.size and rows:
        offset = 128 if s.dtype is dtypes.int8 else 0
        grid = (s.shape[0], 1)

        def read() -> tuple[Tensor, Tensor, None]:
            backend = host_backend()
            levels = (s.tensor(backend).astype(dtypes.int16) + offset).astype(dtypes.uint8)
            return levels.reshape((s.shape[0], 1, s.shape[1])), along(scales.scale, backend).expand(grid), None

        def points() -> Tensor:
            return (along(scales.zero, host_backend()) + float(offset)).expand(grid)

        found.packed = Packed(0, 8, s.shape[1], 128, True, read, points)
    return found
