"""Weights whose levels are numbers of a table instead of steps of one size: NF4 (Dettmers et al. 2023, QLoRA,
Appendix E).

https://arxiv.org/abs/2305.14314
"""

from ... import dtypes
from ..indexing.picking import take
from ..movement.rearranging import reshape
from .packed_weights import unpack_bits

# Quantiles of a normal distribution, scaled to -1 to 1, with an exact 0.
NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip
CODEBOOKS = {"nf4": NF4}


def nearest(x, name):
    """The number of the nearest level of each x, uint8."""
    table = CODEBOOKS[name]
    backend = x.backend
    found = backend.full(x.shape, 0, dtypes.uint8)
    for i in range(len(table) - 1):
        middle = backend.full((), (table[i] + table[i + 1]) / 2, dtypes.float32)
        found = found + backend.binary("gt", x, middle).astype(dtypes.uint8)
    return found


def numbers(values, table):
    """Packed 4-bit levels (channels, blocks, bytes) as the numbers of a table (16,), (channels, blocks, size)."""
    levels = unpack_bits(values, 4)
    return reshape(take(table, reshape(levels, (-1,)).astype(dtypes.int32), axis=0), levels.shape)
