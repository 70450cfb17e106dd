"""Dequantizing ggml's blocks to float32. The layouts are those of ggml-quants.c.

Uses tensor operations, on NumPy if it is installed, else in plain Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ... import dtypes
from ...backend import Backend
from ...backend.on_host import host_backend
from ...dtypes import DType
from ...functional.movement.joining import concat, stack
from ...tensor import Tensor


class Block(NamedTuple):
    """A kind of block: its name, its number of weights and of bytes, how many weights share a scale, the bits of the
    levels as `QuantizedWeight` holds them, the level of zero, and the function that takes its bytes (n, nbytes) apart:
    (levels (n, groups, weights), scales (n, groups), None or what is subtracted (n, groups)), the last two float32."""

    name: str
    weights_each: int
    nbytes: int
    group: int
    bits: int
    zero: int
    parts: Callable[[Tensor], tuple[Tensor, Tensor, Tensor | None]]


def dequantize(raw: memoryview, block: Block, shape: tuple[int, ...]) -> Tensor:
    """The weights of rows of blocks, float32, on the host."""
    backend = host_backend()
    if len(raw) < block.nbytes:
        return backend.full(shape, 0, dtypes.float32)
    levels, scale, least = parts(raw, block)
    grouped = scale.shape + (1,)
    real = _real(levels)
    real = real * scale.reshape(grouped) if block.zero == 0 else (real - float(block.zero)) * scale.reshape(grouped)
    return (real if least is None else real - least.reshape(grouped)).reshape(shape)


def parts(raw: memoryview, block: Block) -> tuple[Tensor, Tensor, Tensor | None]:
    """The levels, scales and minima of blocks, on the host: see Block."""
    n = len(raw) // block.nbytes
    levels, scale, least = block.parts(host_backend().from_bytes(raw, dtypes.uint8, (n, block.nbytes)))
    groups = block.weights_each // block.group
    levels = levels.reshape((n, groups, block.group))
    return levels, scale.reshape((n, groups)), None if least is None else least.reshape((n, groups))


def _as(x: Tensor, dtype: DType) -> Tensor:
    """The bytes (n, k) as (n, k / width) elements of another dtype, in float32."""
    backend: Backend = x.backend
    raw = backend.to_bytes(x)
    return backend.from_bytes(raw, dtype, (x.shape[0], x.shape[1] // dtype.itemsize)).astype(dtypes.float32)


def _halves(x: Tensor) -> Tensor:
    return _as(x, dtypes.float16)


def _real(x: Tensor) -> Tensor:
    return x.astype(dtypes.float32)


def _nibbles(x: Tensor) -> Tensor:
    """(n, k) bytes -> (n, 2 k): all the low nibbles, then all the high ones."""
    return concat([x & 15, x >> 4], 1)


def _bits(x: Tensor) -> Tensor:
    """(n, 4) bytes -> their 32 bits, lowest first."""
    parts = stack([(x >> i) & 1 for i in range(8)], 2)
    return parts.reshape((x.shape[0], 32))


Parts = tuple[Tensor, Tensor, Tensor | None]


def _q4_0(x: Tensor) -> Parts:
    return _nibbles(x[:, 2:]), _halves(x[:, :2]), None


def _q4_1(x: Tensor) -> Parts:
    return _nibbles(x[:, 4:]), _halves(x[:, :2]), -_halves(x[:, 2:4])


def _q5_0(x: Tensor) -> Parts:
    return _nibbles(x[:, 6:]) | (_bits(x[:, 2:6]) << 4), _halves(x[:, :2]), None


def _q5_1(x: Tensor) -> Parts:
    return _nibbles(x[:, 8:]) | (_bits(x[:, 4:8]) << 4), _halves(x[:, :2]), -_halves(x[:, 2:4])


def _q8_0(x: Tensor) -> Parts:
    return x[:, 2:] ^ 128, _halves(x[:, :2]), None


def _scales(x: Tensor) -> tuple[Tensor, Tensor]:
    """The eight 6-bit scales and eight 6-bit minima packed in twelve bytes."""
    a, b, c = x[:, :4], x[:, 4:8], x[:, 8:]
    return (
        concat([a & 63, (c & 15) | ((a >> 6) << 4)], 1),
        concat([b & 63, (c >> 4) | ((b >> 6) << 4)], 1),
    )


def _of_k(x: Tensor, levels: Tensor) -> Parts:
    """Levels with the scales and minima of a K block."""
    scale, least = _scales(x[:, 4:16])
    return levels, _real(scale) * _halves(x[:, :2]), _real(least) * _halves(x[:, 2:4])


def _q4_k(x: Tensor) -> Parts:
    pairs = x[:, 16:].reshape((x.shape[0], 4, 1, 32))
    return _of_k(x, concat([pairs & 15, pairs >> 4], 2))


def _q5_k(x: Tensor) -> Parts:
    n = x.shape[0]
    pairs = x[:, 48:].reshape((n, 4, 1, 32))
    low = concat([pairs & 15, pairs >> 4], 2).reshape((n, 8, 32))
    high = stack([(x[:, 16:48] >> i) & 1 for i in range(8)], 1)
    return _of_k(x, low | (high << 4))


def _q6_k(x: Tensor) -> Parts:
    n = x.shape[0]
    low = x[:, :128].reshape((n, 2, 1, 64))
    low = concat([low & 15, low >> 4], 2).reshape((n, 2, 4, 32))
    high = x[:, 128:192].reshape((n, 2, 1, 32))
    high = concat([(high >> (2 * i)) & 3 for i in range(4)], 2)
    return low | (high << 4), _as(x[:, 192:208], dtypes.int8) * _halves(x[:, 208:]), None


# ggml's type number -> Block
BLOCKS = {
    2: Block("Q4_0", 32, 18, 32, 4, 8, _q4_0),
    3: Block("Q4_1", 32, 20, 32, 4, 0, _q4_1),
    6: Block("Q5_0", 32, 22, 32, 8, 16, _q5_0),
    7: Block("Q5_1", 32, 24, 32, 8, 0, _q5_1),
    8: Block("Q8_0", 32, 34, 32, 8, 128, _q8_0),
    12: Block("Q4_K", 256, 144, 32, 4, 0, _q4_k),
    13: Block("Q5_K", 256, 176, 32, 8, 0, _q5_k),
    14: Block("Q6_K", 256, 210, 16, 8, 32, _q6_k),
}
