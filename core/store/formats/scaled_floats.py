"""Weights in floats of 8 bits whose scales lie beside them, as language models are published.

NAME holds the weight divided by its scales. What it is multiplied by is

NAME_scale_inv  DeepSeek-V3: one for each block of 128 x 128 weights,
                https://github.com/deepseek-ai/DeepSeek-V3/blob/main/README_WEIGHTS.md
NAME_scale      compressed-tensors: one for all, each row or each block, or, in bytes, powers of two for blocks of 32 in
                a row (MXFP8), https://github.com/vllm-project/compressed-tensors
scale_weight    in the place of `weight`: ComfyUI, one for all
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from ... import dtypes
from ...backend import Backend
from ...errors import FormatError
from ...functional.movement.rearranging import narrow, repeat
from ...tensor import Tensor
from ..snapshot import Snapshot
from ..stored import Store

ENDS = ("_scale_inv", "_scale")
BLOCK = 128  # of weights along an axis, where the number of scales allows it


def joined(store: Store) -> Store:
    """The store with such weights as floats, each with its parts, and without the scales. Raises FormatError for scales
    that do not fit their weight."""
    scales: dict[str, str] = {}
    for name in store:
        owner = _owner(name)
        if owner in store and _is_narrow(store[owner]):
            if owner in scales:
                raise FormatError(f"{store.origin}: {owner} has two scales: {scales[owner]} and {name}")
            scales[owner] = name
    if not scales:
        return store
    found = {}
    for name, snapshot in store.items():
        if name in scales:
            found[name] = _Weight.of(store, name, scales[name]).snapshot()
        elif _owner(name) not in scales:
            found[name] = snapshot
    return store.view(found, layout=store.layout or "pytorch")


def _owner(name: str) -> str:
    """The weight that a tensor of this name would scale, or ""."""
    if name.endswith(".scale_weight"):
        return name.removesuffix("scale_weight") + "weight"
    return next((name.removesuffix(end) for end in ENDS if name.endswith(end)), "")


def _is_narrow(s: Snapshot) -> bool:
    return s.dtype.is_float and s.dtype.bits == 8 and s.dtype is not dtypes.float8_e8m0fnu and s.size > 0


class _Weight(NamedTuple):
    """A weight and its scales. grid: how many there are along each axis of the weight; block: for how many weights
    each."""

    values: Snapshot
    scale: Snapshot
    grid: tuple[int, ...]
    block: tuple[int, ...]

    @classmethod
    def of(cls, store: Store, name: str, scale_name: str) -> _Weight:
        values, scale = store[name], store[scale_name]
        grid = scale.shape
        if len(grid) < 2:  # one for all, or for each row
            grid = (grid[0] if grid else 1, *[1] * (len(values.shape) - 1))
        blocks = [_block(n, count) for n, count in zip(values.shape, grid, strict=False)]
        numbers = scale.dtype.is_float or scale.dtype is dtypes.uint8
        if len(grid) != len(values.shape) or not all(blocks) or not numbers:
            raise FormatError(
                f"{store.origin}: {scale_name} is {scale.dtype} of {scale.shape}, which does not scale the weight "
                f"{name} of {values.shape}: scales are one float for all weights, each row, or each block"
            )
        return cls(values, scale, grid, tuple(blocks))

    def scales(self, backend: Backend) -> Tensor:
        """The scales, float32, in the shape of the grid."""
        if self.scale.dtype is dtypes.uint8:  # powers of two, in formats without a dtype of them
            return backend.from_bytes(self.scale.raw(), dtypes.float8_e8m0fnu, self.grid).astype(dtypes.float32)
        return self.scale.tensor(backend).astype(dtypes.float32).reshape(self.grid)

    def real(self, backend: Backend) -> Tensor:
        """The weights as floats, float32."""
        scales = self.scales(backend)
        for axis, n in enumerate(self.values.shape):
            scales = _spread(scales, axis, self.block[axis], n)
        found: Tensor = self.values.tensor(backend).astype(dtypes.float32) * scales
        return found

    def snapshot(self) -> Snapshot:
        """The weights as floats, those of a matrix with their parts."""
        values = self.values
        found = Snapshot(
            values.name, dtypes.float32, values.shape, make=self.real, original=values.original, stored=values.stored,
            nbytes=values.nbytes + self.scale.nbytes,
        )  # fmt: skip
        if len(values.shape) == 2:
            found.parts = self.parts
        return found

    def parts(self, together: int) -> dict[str, Snapshot]:
        """The values and scales of a matrix, as a QuantizedWeight holds them that has one scale for as many rows if
        these are squares in the file, too."""
        values, (rows, columns) = self.values, self.values.shape
        size, blocks = min(self.block[1], columns), self.grid[1]
        square = together == size and (self.block[0] == size or (self.grid[0] == 1 and rows <= size))

        def held(backend: Backend) -> Tensor:
            x = values.tensor(backend)
            if blocks * size != columns:
                x = x.backend.pad(x, ((0, 0), (0, blocks * size - columns)), 0.0)
            return x.reshape((rows, blocks, size))

        def scale(backend: Backend) -> Tensor:
            found = self.scales(backend)
            if not square:
                found = _spread(found, 0, self.block[0], rows).expand((rows, blocks))
            return found.reshape((-1,))

        count = (self.grid[0] if square else rows) * blocks
        one = partial(Snapshot, original=values.original)
        return {
            "values": one(values.name + ".values", values.dtype, (rows, blocks, size), make=held),
            "scale": one(values.name + ".scale", dtypes.float32, (count,), make=scale),
        }


def _block(n: int, count: int) -> int:
    """For how many of n weights each of `count` scales is; 0 if there is no such number."""
    if count == -(-n // BLOCK):
        return BLOCK
    return n // count if count and n % count == 0 else 0


def _spread(scales: Tensor, axis: int, block: int, n: int) -> Tensor:
    """The scales for each of n weights along an axis; unchanged if there is one."""
    if scales.shape[axis] == 1:
        return scales
    return narrow(repeat(scales, block, axis=axis), axis, 0, n)
