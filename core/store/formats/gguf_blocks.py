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
from ...functional.indexing.picking import take
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


def e2m1(raw: memoryview, block: Block, rows: int) -> tuple[Tensor, Tensor]:
    """The blocks of MXFP4 or NVFP4 as they lie: values float4_e2m1fn (rows, blocks, group), scales float8_e8m0fnu or
    float8_e4m3fn (rows * blocks,), on the host."""
    backend = host_backend()
    n = len(raw) // block.nbytes
    x = backend.from_bytes(raw, dtypes.uint8, (n, block.nbytes))
    head = block.weights_each // block.group
    codes = _in_runs(x[:, head:], block.group // 2).reshape((-1, block.group // 2, 2))
    packed = (codes[:, :, 0] | (codes[:, :, 1] << 4)).astype(dtypes.uint8)
    values = backend.from_bytes(backend.to_bytes(packed), dtypes.float4_e2m1fn, (rows, n * head // rows, block.group))
    wide = block.name == "MXFP4"
    scale = backend.to_bytes(x[:, :head] if wide else _unsigned(x[:, :head]))
    return values, backend.from_bytes(scale, dtypes.float8_e8m0fnu if wide else dtypes.float8_e4m3fn, (n * head,))


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


def _q2_k(x: Tensor) -> Parts:
    scale = x[:, :16]
    scales = _real(scale & 15) * _halves(x[:, 80:82])
    return _quarters(x[:, 16:80]), scales, _real(scale >> 4) * _halves(x[:, 82:])


def _q3_k(x: Tensor) -> Parts:
    n = x.shape[0]
    high = stack([(x[:, :32] >> i) & 1 for i in range(8)], 1).reshape((n, 256))
    upper = concat([(x[:, 104:108] >> i) & 3 for i in (0, 2, 4, 6)], 1)
    scale = _real(_nibbles(x[:, 96:104]) | (upper << 4)) - 32.0
    return _quarters(x[:, 32:96]) | (high << 2), scale * _halves(x[:, 108:]), None


def _quarters(x: Tensor) -> Tensor:
    """(n, k) bytes -> (n, 4 k) levels of 2 bits: of each 32 bytes all the lowest ones first."""
    n, k = x.shape
    runs = x.reshape((n, k // 32, 1, 32))
    return concat([(runs >> i) & 3 for i in (0, 2, 4, 6)], 2).reshape((n, 4 * k))


def _q8_k(x: Tensor) -> Parts:
    return x[:, 4:260] ^ 128, _as(x[:, :4], dtypes.float32), None


def _of_table(codes: Tensor, table: tuple[int, ...]) -> Tensor:
    """Levels of 8 bits, whose zero is 128, of codes for the integers of a table."""
    numbers = codes.backend.from_list([n + 128 for n in table], dtypes.uint8, (len(table),))
    found: Tensor = take(numbers, codes.reshape((-1,)).astype(dtypes.int32), axis=0)
    return found.reshape(codes.shape)


def _iq4_nl(x: Tensor) -> Parts:
    return _of_table(_nibbles(x[:, 2:]), NONLINEAR), _halves(x[:, :2]), None


def _iq4_xs(x: Tensor) -> Parts:
    n = x.shape[0]
    low = stack([x[:, 4:8] & 15, x[:, 4:8] >> 4], 2).reshape((n, 8))
    high = stack([(x[:, 2:4] >> i) & 3 for i in (0, 2, 4, 6)], 2).reshape((n, 8))
    scale = _real(low | (high << 4)) - 32.0
    return _of_table(_in_runs(x[:, 8:], 16), NONLINEAR), scale * _halves(x[:, :2]), None


def _in_runs(x: Tensor, size: int) -> Tensor:
    """(n, k) bytes -> (n, 2 k): of each `size` bytes all the low nibbles, then the high ones."""
    n, k = x.shape
    return _nibbles(x.reshape((n * k // size, size))).reshape((n, 2 * k))


def _mxfp4(x: Tensor) -> Parts:
    return _of_table(_nibbles(x[:, 1:]), DOUBLED), _as(x[:, :1], dtypes.float8_e8m0fnu) * 0.5, None


def _nvfp4(x: Tensor) -> Parts:
    return _of_table(_in_runs(x[:, 4:], 8), DOUBLED), _as(_unsigned(x[:, :4]), dtypes.float8_e4m3fn) * 0.5, None


def _unsigned(x: Tensor) -> Tensor:
    """The bytes of E4M3 numbers without their sign; NaN, of either sign, becomes 0."""
    bare = x & 127
    found: Tensor = (bare * (bare < 127).astype(dtypes.uint8)).astype(dtypes.uint8)
    return found


def _tq2_0(x: Tensor) -> Parts:
    return _quarters(x[:, :64]), _halves(x[:, 64:]), None


def _tq1_0(x: Tensor) -> Parts:
    def digits(part: Tensor, count: int) -> Tensor:
        """Five (or four) levels of 3 a byte, the most significant first."""
        whole = part.astype(dtypes.int32)
        found = concat([(((whole * 3**i) & 255) * 3) >> 8 for i in range(count)], 1)
        return found.astype(dtypes.uint8)

    return concat([digits(x[:, :32], 5), digits(x[:, 32:48], 5), digits(x[:, 48:52], 4)], 1), _halves(x[:, 52:]), None


# IQ4_NL's and IQ4_XS's levels, and those of E2M1, doubled.
NONLINEAR = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
DOUBLED = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)

# ggml's type number -> Block
BLOCKS = {
    2: Block("Q4_0", 32, 18, 32, 4, 8, _q4_0),
    3: Block("Q4_1", 32, 20, 32, 4, 0, _q4_1),
    6: Block("Q5_0", 32, 22, 32, 8, 16, _q5_0),
    7: Block("Q5_1", 32, 24, 32, 8, 0, _q5_1),
    8: Block("Q8_0", 32, 34, 32, 8, 128, _q8_0),
    10: Block("Q2_K", 256, 84, 16, 2, 0, _q2_k),
    11: Block("Q3_K", 256, 110, 16, 4, 4, _q3_k),
    12: Block("Q4_K", 256, 144, 32, 4, 0, _q4_k),
    13: Block("Q5_K", 256, 176, 32, 8, 0, _q5_k),
    14: Block("Q6_K", 256, 210, 16, 8, 32, _q6_k),
    15: Block("Q8_K", 256, 292, 256, 8, 128, _q8_k),
    20: Block("IQ4_NL", 32, 18, 32, 8, 128, _iq4_nl),
    23: Block("IQ4_XS", 256, 136, 32, 8, 128, _iq4_xs),
    34: Block("TQ1_0", 256, 54, 256, 2, 1, _tq1_0),
    35: Block("TQ2_0", 256, 66, 256, 4, 1, _tq2_0),  # a level of 3 means 2
    39: Block("MXFP4", 32, 17, 32, 8, 128, _mxfp4),
    40: Block("NVFP4", 64, 36, 16, 8, 128, _nvfp4),
}
