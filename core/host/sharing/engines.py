"""What sessions of a model share as long as one of them lives: its plans. Memory and states are each session's own."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from threading import Lock
from types import BuiltinFunctionType, FunctionType, NoneType
from typing import Any
from weakref import WeakValueDictionary

from ...backend import Backend
from ...dtypes import DType
from ...module import Module, items
from ...param import Param
from ...tensor import Tensor

_PLAIN = (bool, int, float, complex, str, bytes)  # compared by their values, others by identity
_FIXED = (NoneType, type, FunctionType, BuiltinFunctionType, DType, Backend)

_known: WeakValueDictionary[Any, _Shared] = WeakValueDictionary()
_lock = Lock()


def shared(model: Any, key: Any, make: Callable[[], Any]) -> Any:
    """What another session of this model shares under the key, if neither the model's attributes nor its parameters
    have changed since; else make(), which later sessions may share."""
    state = list(_held(model, set()))
    with _lock:
        found = _known.get((id(model), key))
        if found is None or found.model is not model or not _same(found.state, state):
            found = _known[id(model), key] = _Shared(model, state, make())
    return found


class _Shared:
    """what: that which is shared; model, state: what it was made from."""

    def __init__(self, model: Any, state: list[Any], what: Any) -> None:
        self.model = model
        self.state = state
        self.what = what


def _held(x: Any, seen: set[int]) -> Iterator[Any]:
    """What a model holds, in the order of its attributes: parameters and arrays by their values, modules and other
    objects by theirs and those of their classes."""
    if isinstance(x, (*_PLAIN, *_FIXED)):
        yield x
    elif isinstance(x, (Param, Tensor)):
        value = x.val() if isinstance(x, Param) else x
        yield value
        yield value.data
        yield _sum(value.data)
    elif hasattr(x, "__array_interface__"):
        yield x
        yield _sum(x)
    elif isinstance(x, (Module, list, tuple, dict)) or hasattr(x, "__dict__"):
        walked = isinstance(x, (Module, list, tuple, dict))
        yield type(x) if walked else x
        if id(x) in seen:
            return
        seen.add(id(x))
        for name, child in items(x) if walked else vars(x).items():
            if not getattr(type(child), "FOLLOWS_FROM_PARAMS", False):
                yield name
                yield from _held(child, seen)
        for kind in type(x).__mro__[:-1]:
            if id(kind) not in seen:
                seen.add(id(kind))
                yield from vars(kind).values()
    else:
        yield object()  # a set or the like may change, so nothing is shared


def _sum(data: Any) -> int | None:
    """A checksum of an array, whose elements may be assigned to; None for other data."""
    if not hasattr(data, "__array_interface__") or data.dtype.hasobject:
        return None
    return zlib.crc32(data.tobytes() if not data.flags.c_contiguous else data.reshape(-1).view("u1"))


def _same(before: list[Any], now: list[Any]) -> bool:
    return len(before) == len(now) and all(
        a is b or (type(a) is type(b) and type(a) in _PLAIN and a == b) for a, b in zip(before, now, strict=True)
    )
