"""The numbers of 2 or 4 bits in bytes, in one pass."""

from .buffers import flat, store


def unpacked_bits(backend, x, bits):
    each = 8 // bits
    mask = (1 << bits) - 1
    shifts = range(0, 8, bits)
    out = [v >> s & mask for v in flat(x) for s in shifts]
    return backend.new(store(x.dtype, out, len(out)), x.dtype, x.shape[:-1] + (x.shape[-1] * each,))
