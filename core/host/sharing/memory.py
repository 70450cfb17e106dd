"""The address and strides of a tensor's elements, for libraries that read them in place."""

from __future__ import annotations

import ctypes
from typing import Any

from ...errors import ShapeError, UnsupportedError
from ...python_backend import PythonBackend
from ...shapes import strides as row_major
from ...tensor import Tensor

# dtypes that other libraries can read in place
_SHARED = (
    "float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16",
    "uint8", "bool",
)  # fmt: skip


def overlap(x: Tensor, y: Tensor) -> bool:
    """Whether two tensors of the numpy backend may share memory."""
    import numpy as np

    return np.may_share_memory(x.data, y.data)


def layout(x: Tensor) -> tuple[Any, int, tuple[int, ...]]:
    """(object that keeps the memory alive, address of the first element, strides in elements).

    Raises:
        UnsupportedError: The elements are not in this process's memory, or are stored as another dtype.
        ShapeError: The tensor was constructed with a shape that its storage does not have.
    """
    if is_numpy(x.data) and x.dtype.name in _SHARED:
        array = x.data
        width = x.dtype.itemsize
        if array.shape != tuple(x.shape):
            raise mismatch(x, array.size)
        if all(s % width == 0 for s in array.strides):
            return array, array.ctypes.data, tuple(s // width for s in array.strides)
    if isinstance(x.backend, PythonBackend) and x.dtype.code not in (None, "e"):
        buffer, offset, strides = x.data
        keeper = memoryview(buffer)
        address = _address(keeper) + offset * x.dtype.itemsize
        strides = row_major(x.shape) if strides is None else strides
        spans = [(d - 1) * s for d, s in zip(x.shape, strides, strict=True)]
        first, last = offset + sum(min(0, s) for s in spans), offset + sum(max(0, s) for s in spans)
        if x.size and not 0 <= first <= last < len(buffer):
            raise mismatch(x, len(buffer) - offset)
        return keeper, address, strides
    raise UnsupportedError(f"{x.dtype} on backend {x.backend!r} cannot be shared; copy it with numpy.asarray")


def mismatch(x: Tensor, count: int) -> ShapeError:
    """The error for a Tensor whose storage has another number of elements, or other lengths, than its shape."""
    return ShapeError(f"a tensor of shape {x.shape} has the memory of {count} elements; use asarray and reshape")


def is_numpy(data: Any) -> bool:
    """Whether `data` is a NumPy array. Works without NumPy."""
    return type(data).__module__ == "numpy"


class _PyBuffer(ctypes.Structure):
    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


def _address(view: memoryview) -> int:
    """The address of a contiguous view, also of a read-only one, whose address ctypes does not give."""
    found = _PyBuffer()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(view), ctypes.byref(found), 0)
    address = found.buf or 0
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(found))
    return address


def is_readonly(keeper: Any) -> bool:
    """Whether the memory is read-only. keeper: the first item of what `layout` returns."""
    return not keeper.flags.writeable if is_numpy(keeper) else bool(keeper.readonly)
