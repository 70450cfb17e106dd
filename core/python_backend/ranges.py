"""Evenly spaced numbers."""

from .buffers import build


def arange(backend, start, step, count, dtype):
    if count > 1 << 24:
        bytes(40 * count)  # what the list takes: MemoryError now, and not once the machine has no memory left
    return backend.new(build(dtype, [start + i * step for i in range(count)], count), dtype, (count,))
