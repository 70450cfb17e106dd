"""The address and strides of a tensor's elements, for libraries that read them in place."""

from __future__ import annotations

import ctypes
from typing import Any

from ...errors import ShapeError, UnsupportedError
from ...python_backend import PythonBackend
from ...python_backend.buffers import Borrowed
from ...shapes import strides as row_major
from ...tensor import Tensor
from .fields import replace_data

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
        keeper, offset, strides = _elements(x)
        return keeper, address_of(keeper) + offset * x.dtype.itemsize, strides
    raise UnsupportedError(f"{x.dtype} on backend {x.backend!r} cannot be shared; copy it with numpy.asarray")


def in_buffer(x: Tensor) -> tuple[memoryview, int, tuple[int, ...]]:
    """(bytes in one piece that keep the memory alive, place of the first element, strides), both in bytes.

    Raises: as `layout`.
    """
    width = x.dtype.itemsize
    if isinstance(x.backend, PythonBackend) and x.dtype.code not in (None, "e") and not is_numpy(x.data):
        view, offset, strides = _elements(x)
        return view, offset * width, tuple(s * width for s in strides)
    array, address, strides = layout(x)
    first, last = _ends(x.shape, strides) if x.size else (0, -1)
    memory: Any = (ctypes.c_char * ((last + 1 - first) * width)).from_address(address + first * width)
    memory.keeper = array
    view = memoryview(memory)
    return view if array.flags.writeable else view.toreadonly(), -first * width, tuple(s * width for s in strides)


def settled(x: Tensor) -> Any:
    """(buffer, offset, strides) of a tensor of the python backend, once its elements lie in memory."""
    buffer, offset, strides = x.data
    if isinstance(buffer, Borrowed):
        buffer = buffer.run(0, len(buffer))
        replace_data(x, (buffer, offset, strides))
    return buffer, offset, strides


def _elements(x: Tensor) -> tuple[memoryview, int, tuple[int, ...]]:
    """(the buffer of a tensor of the python backend, offset, strides), counted in elements. Raises ShapeError."""
    buffer, offset, strides = settled(x)
    if strides is None:
        strides = row_major(x.shape)
    first, last = _ends(x.shape, strides)
    if x.size and not 0 <= offset + first <= offset + last < len(buffer):
        raise mismatch(x, len(buffer) - offset)
    return memoryview(buffer), offset, strides


def _ends(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, int]:
    """The places of the lowest and the highest element of an array that is not empty."""
    first = last = 0
    for d, s in zip(shape, strides, strict=True):
        if s < 0:
            first += (d - 1) * s
        else:
            last += (d - 1) * s
    return first, last


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


def address_of(view: memoryview) -> int:
    """The address of a contiguous view, also of a read-only one, whose address ctypes does not give."""
    found = _PyBuffer()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(view), ctypes.byref(found), 0)
    address = found.buf or 0
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(found))
    return address
