"""The C loops of NumPy's ufuncs: functions of (char **arrays, npy_intp *sizes, npy_intp *strides, void *data), which
NumPy calls for each axis of elements (https://numpy.org/doc/stable/reference/c-api/ufunc.html).

They are found in the ufunc's public C struct, PyUFuncObject. It is read only if all else in it is what Python says of
the ufunc.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

FLOATS = "fd?"  # the types whose loops never raise a Python error


class _UFunc(ctypes.Structure):
    """PyUFuncObject of numpy/ufuncobject.h, up to what is needed."""

    _fields_ = (
        ("head", ctypes.c_ssize_t * 2),
        ("nin", ctypes.c_int),
        ("nout", ctypes.c_int),
        ("nargs", ctypes.c_int),
        ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int),
        ("reserved", ctypes.c_int),
        ("name", ctypes.c_char_p),
        ("types", ctypes.POINTER(ctypes.c_char)),
    )


@cache
def loop(ufunc: Any, types: str) -> tuple[int, int] | None:
    """(the address of a ufunc's loop for operands and a result of these types, its data); None if it is not known.

    types: a character of NumPy for each, such as "fff" for an addition of float32.
    """
    if not set(types) <= set(FLOATS) or ufunc.nout != 1 or object.__basicsize__ != 16:
        return None
    wanted = f"{types[:-1]}->{types[-1]}"
    found = _UFunc.from_address(id(ufunc))
    same = (found.nin, found.nout, found.nargs, found.ntypes) == (ufunc.nin, ufunc.nout, ufunc.nargs, ufunc.ntypes)
    if wanted not in ufunc.types or not same or found.name != ufunc.__name__.encode():
        return None
    at = ufunc.types.index(wanted)
    if list(found.types[at * ufunc.nargs : (at + 1) * ufunc.nargs]) != [np.dtype(c).num for c in types]:
        return None
    function, data = found.functions[at], found.data[at] if found.data else None
    return None if function is None else (function, data or 0)
