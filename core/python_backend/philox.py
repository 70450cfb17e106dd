"""Philox 4×32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw (SC 2011)."""

from .. import dtypes
from ..shapes import size
from .buffers import allocate

MASK = 0xFFFFFFFF


def block(counter, key):
    """The four 32-bit words of the block with a 128-bit counter and a 64-bit key."""
    a, b, c, d = counter & MASK, counter >> 32 & MASK, counter >> 64 & MASK, counter >> 96 & MASK
    low, high = key & MASK, key >> 32 & MASK
    for _ in range(10):
        p, q = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = q >> 32 ^ b ^ low, q & MASK, p >> 32 ^ d ^ high, p & MASK
        low, high = low + 0x9E3779B9 & MASK, high + 0xBB67AE85 & MASK
    return a, b, c, d


def random_bits(backend, shape, key, counter):
    count = size(shape)
    out = allocate(dtypes.uint32, count)
    for i in range(0, count, 4):
        words = block(counter + i // 4, key)
        for j in range(min(4, count - i)):
            out[i + j] = words[j]
    return backend.new(out, dtypes.uint32, tuple(shape))
