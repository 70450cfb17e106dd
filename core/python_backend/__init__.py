"""The `python` backend: every primitive in plain Python over typed arrays, with no dependency at all.

A tensor's data is (buffer, offset, strides): a typed buffer, the offset of the first element, and the strides in
elements (None for row-major), so that reshape, permute, expand and slice are views. Each kernel is in a small file of
its own, imported on first use. If CPython and MicroPython need different code to be fast (C-speed list operations,
plain loops), a kernel has two files.
"""

from ..backend import Backend
from ..tensor import Tensor
from .buffers import MICRO, borrow, build, flat

# file -> its primitives and overrides, and the helpers that the backend looks up late
_KERNELS = {
    "unary": "unary",
    "binary": "binary",
    "selection": "where take gather nonzero",
    "casts": "cast bitcast",
    "reductions": "reduce argreduce cumulative",
    "sorting": "sort",
    "scattering": "scatter assign_region",
    "movement": "permute expand slice pad concat",
    "philox": "random_bits",
    "rectifier": "relu",
    "activations": "softmax sigmoid",
    "packed_bits": "unpacked_bits",
    "quantized": "to_levels from_levels centered_levels",
    "products": "matmul",
    "dense": "linear",
    "ranges": "arange",
    "convolution": "conv",
    "windows": "pool",
    "views": "gathered",
}
# Those with a file for MicroPython, called "NAME_loops".
_LOOPS = ("products", "dense", "convolution", "windows", "rectifier")


class PythonBackend(Backend):
    """Tensors in typed arrays, computed by the interpreter alone."""

    name = "python"
    # Their names are in _KERNELS: another text of them takes bytes on a device.
    OVERRIDES = tuple(
        " ".join(
            (
                _KERNELS["rectifier"],
                _KERNELS["activations"],
                _KERNELS["dense"],
                _KERNELS["packed_bits"],
                _KERNELS["quantized"],
            )
        ).split()
    )

    def __getattr__(self, name):
        for file in _KERNELS:
            if name in _KERNELS[file].split():
                if MICRO and file in _LOOPS:
                    file += "_loops"
                kernel = getattr(__import__("emberlet.python_backend." + file, None, None, ("*",)), name)
                setattr(PythonBackend, name, kernel)  # the next call gets the kernel directly
                return getattr(self, name)
        if not MICRO:
            from ..backend.registry import lacks

            return lacks(self, name)
        raise AttributeError(name)

    def from_bytes(self, data, dtype, shape):
        return Tensor((borrow(data, dtype, shape), 0, None), dtype, tuple(shape), self)

    def to_bytes(self, x):
        from .casts import to_bytes

        return to_bytes(x)

    def from_list(self, values, dtype, shape):
        return Tensor((build(dtype, values, len(values)), 0, None), dtype, tuple(shape), self)

    def to_list(self, x):
        values = flat(x)
        if x.dtype.is_bool:
            return [v != 0 for v in values]
        return values.tolist() if hasattr(values, "tolist") else list(values)

    def full(self, shape, value, dtype):
        # One element, with strides of 0.
        shape = tuple(shape)
        buffer = build(dtype, (value,), 1)
        return Tensor((buffer, 0, (0,) * len(shape) if shape else None), dtype, shape, self)

    def reshape(self, x, shape):
        if x.data[2] is None:
            return Tensor(x.data, x.dtype, shape, self)
        return Tensor((flat(x), 0, None), x.dtype, shape, self)

    def new(self, buffer, dtype, shape):
        """A tensor over a row-major buffer."""
        return Tensor((buffer, 0, None), dtype, shape, self)
