"""Assigning to an array in place if only one tensor refers to it: the cost depends only on the assigned elements."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ...tensor import Tensor
from ..counts import COUNTS


def _references(holder: Any) -> int:
    """The reference count of holder.data in this interpreter."""
    data = holder.data
    return sys.getrefcount(data)


class _Alone:
    def __init__(self) -> None:
        self.data = np.empty(1)


_UNSHARED = _references(_Alone()) if COUNTS else 0


def assign_in_place(x: Tensor, key: Any, value: Any) -> bool:
    """x[key] = value, if only x refers to its array, key holds only integers and slices, and value needs no conversion.
    Otherwise returns False without changing anything."""
    if not COUNTS or _references(x) != _UNSHARED:
        return False
    array = x.data
    if array.base is not None or not array.flags.writeable or array.dtype.isbuiltin != 1:
        return False
    keys = key if isinstance(key, tuple) else (key,)
    if len(keys) > array.ndim or not all(_plain(k, n) for k, n in zip(keys, array.shape, strict=False)):
        return False
    if isinstance(value, Tensor):
        if value.dtype is not x.dtype or value.backend is not x.backend:
            return False
        value = value.data
    elif not _fits(value, x):
        return False
    try:
        array[key] = value
    except ValueError:  # incompatible shapes: the general code raises the error
        return False
    return True


def _plain(key: Any, n: int) -> bool:
    """Whether a key for an axis of length n means the same in NumPy."""
    if type(key) is int:
        return -n <= key < n
    if not isinstance(key, slice) or key.step == 0:
        return False
    parts = (key.start, key.stop, key.step)
    return all(part is None or (type(part) is int and -n <= part <= n) for part in parts)


def _fits(value: Any, x: Tensor) -> bool:
    if x.dtype.is_bool:
        return type(value) is bool
    if x.dtype.is_integer:
        return type(value) is int and x.dtype.range[0] <= value <= x.dtype.range[1]
    return x.dtype.is_float and x.dtype.bits >= 32 and type(value) is float
