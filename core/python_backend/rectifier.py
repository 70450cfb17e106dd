"""ReLU in one pass over the elements."""

from .buffers import MICRO, allocate, flat, store


def relu(backend, x):
    zero = 0.0 if x.dtype.is_float else 0
    # NaN is not below zero, and stays.
    values = flat(x)
    if MICRO:  # without a list of boxed floats
        out = allocate(x.dtype, x.size)
        for i in range(x.size):
            v = values[i]
            if not v < 0:
                out[i] = v
        return backend.new(out, x.dtype, x.shape)
    return backend.new(store(x.dtype, [zero if v < 0 else v for v in values], x.size), x.dtype, x.shape)
