"""Evenly spaced numbers."""

from .buffers import build


def arange(backend, start, step, count, dtype):
    if count > 1 << 24:
        bytes(40 * count)  # the memory of the list at once: MemoryError comes before the machine has none left
    return backend.new(build(dtype, [start + i * step for i in range(count)], count), dtype, (count,))
