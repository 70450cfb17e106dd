"""Philox 4×32-10 on whole arrays of counters (Salmon, Moraes, Dror and Shaw, SC 2011)."""

from __future__ import annotations

import numpy as np

from ...shapes import size
from .storage import Array

_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)


def philox(shape: tuple[int, ...], key: int, counter: int) -> Array:
    """`Backend.random_bits` as an array of uint32."""
    count = size(shape)
    blocks = -(-count // 4)
    # The 128-bit counters as four 32-bit words, carries included.
    low = np.arange(blocks, dtype=np.uint64) + np.uint64(counter & 0xFFFFFFFF)
    words = [low & _LOW]
    carry = low >> _32
    for i in (1, 2, 3):
        word = carry + np.uint64(counter >> 32 * i & 0xFFFFFFFF)
        words.append(word & _LOW)
        carry = word >> _32
    a, b, c, d = words
    k0, k1 = key & 0xFFFFFFFF, key >> 32 & 0xFFFFFFFF
    for _ in range(10):
        p, q = a * np.uint64(0xD2511F53), c * np.uint64(0xCD9E8D57)
        a, b, c, d = (q >> _32) ^ b ^ np.uint64(k0), q & _LOW, (p >> _32) ^ d ^ np.uint64(k1), p & _LOW
        k0, k1 = k0 + 0x9E3779B9 & 0xFFFFFFFF, k1 + 0xBB67AE85 & 0xFFFFFFFF
    out: Array = np.stack([a, b, c, d], axis=-1).astype(np.uint32).reshape(-1)[:count].reshape(shape)
    return out
