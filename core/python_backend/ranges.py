"""Evenly spaced numbers."""

from .buffers import build


def arange(backend, start, step, count, dtype):
    return backend.new(build(dtype, [start + i * step for i in range(count)], count), dtype, (count,))
