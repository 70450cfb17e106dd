"""Allocates the buffers of a plan, once it is known how long each is needed.

While a plan is written, its buffers are arrays that are never accessed, so the system reserves addresses for them but
no memory. NumPy itself makes the views of them. `relocated` then translates the addresses of these views to the final
place of each buffer.
"""

from __future__ import annotations

import math
import mmap
from contextlib import suppress
from typing import Any

import numpy as np

from ....tensor import Tensor
from ..storage import Array

_ALIGNED = 64
RESERVED = 1 << 16  # minimum bytes of a buffer that the system reserves itself


class Buffer:
    """A buffer of a plan.

    fill: the initial value of its elements, which those that are never written keep; None if every call writes all of
    them. key: buffers with a fill and equal keys may share memory. first, last: the first and last step that need it.
    offset: its position in the arena.
    """

    __slots__ = ("array", "base", "fill", "first", "key", "last", "nbytes", "offset")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], fill: Any = None, key: Any = None) -> None:
        self.nbytes = max(1, math.prod(shape) * dtype.itemsize)
        self.base = _reserved(self.nbytes)
        self.array: Array = np.ndarray(shape, dtype, self.base)
        self.fill = fill
        self.key = (shape, dtype, fill, key)
        self.first = -1
        self.last = -1
        self.offset = -1


def _reserved(nbytes: int) -> Array:
    """Memory that nobody accesses. Of the C library's heap it would keep parts from others that the system has to give
    memory for: 7 MB for SqueezeNet."""
    if nbytes >= RESERVED and hasattr(mmap, "MAP_PRIVATE"):
        with suppress(OSError):  # no more addresses, or mappings, for this process
            return np.frombuffer(mmap.mmap(-1, nbytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.uint8)
    return np.empty(nbytes, np.uint8)


def owner(array: Array) -> int:
    """The id of what owns the memory of an array."""
    held: Any = array
    while getattr(held, "base", None) is not None:
        held = held.base
    return id(held)


class Buffers:
    """All buffers of a plan."""

    def __init__(self) -> None:
        self.all: list[Buffer] = []
        self._by_owner: dict[int, Buffer] = {}

    def new(self, shape: tuple[int, ...], dtype: np.dtype[Any], fill: Any = None, key: Any = None) -> Array:
        """An array of a new buffer."""
        buffer = Buffer(tuple(shape), dtype, fill, key)
        self.all.append(buffer)
        self._by_owner[owner(buffer.base)] = buffer
        return buffer.array

    def of(self, array: Array) -> Buffer | None:
        """The buffer that an array is a view of; None for a constant."""
        return self._by_owner.get(owner(array))

    def arrange(self) -> int:
        """Give every buffer that is used an offset, those with a fill a shared key; returns the size of the arena."""
        used = sorted((b for b in self.all if b.last >= 0 and b.fill is None), key=lambda b: (b.first, -b.nbytes))
        end = 0
        free: list[tuple[int, int]] = []  # (offset, size), by offset
        alive: list[Buffer] = []
        for buffer in used:
            gone = [b for b in alive if b.last < buffer.first]
            if gone:
                alive = [b for b in alive if b.last >= buffer.first]
                free = _joined(free + [(b.offset, _rounded(b.nbytes)) for b in gone])
            size = _rounded(buffer.nbytes)
            for i, (offset, room) in enumerate(free):
                if room >= size:
                    buffer.offset = offset
                    free[i : i + 1] = [(offset + size, room - size)] if room > size else []
                    break
            else:
                if free and sum(free[-1]) == end:  # the last gap grows
                    end = free.pop()[0]
                buffer.offset = end
                end += size
            alive.append(buffer)
        return end

    def filled(self) -> list[list[Buffer]]:
        """Buffers with a fill in groups that share memory: of one shape and fill, and at no time needed at once."""
        groups: dict[Any, list[list[Buffer]]] = {}
        for buffer in sorted((b for b in self.all if b.last >= 0 and b.fill is not None), key=lambda b: b.first):
            same = groups.setdefault(buffer.key, [])
            for group in same:
                if group[-1].last < buffer.first:
                    group.append(buffer)
                    break
            else:
                same.append([buffer])
        return [group for same in groups.values() for group in same]


def _rounded(nbytes: int) -> int:
    return -(-nbytes // _ALIGNED) * _ALIGNED


def _joined(free: list[tuple[int, int]]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for offset, size in sorted(free):
        if out and sum(out[-1]) == offset:
            out[-1] = (out[-1][0], out[-1][1] + size)
        else:
            out.append((offset, size))
    return out


class Memory:
    """The memory of one run of a plan at a time. arena: that of the buffers without a fill; shared: memory to take for
    it, where it is large enough."""

    def __init__(self, buffers: Buffers, arena: int, shared: Array | None = None) -> None:
        self.buffers = buffers
        self.arena = aligned(arena) if shared is None or shared.size < arena else shared
        self._places: dict[int, tuple[Array, int]] = {}
        self._views: dict[Any, Array] = {}
        for buffer in buffers.all:
            if buffer.offset >= 0:
                self._places[id(buffer.base)] = (self.arena, buffer.offset)
        for group in buffers.filled():
            shape, dtype, fill, _ = group[0].key
            array = np.full(shape, fill, dtype)
            for buffer in group:
                self._places[id(buffer.base)] = (array.reshape(-1).view(np.uint8), 0)
        self.nbytes = arena + sum(group[0].nbytes for group in buffers.filled())

    def with_places(self, places: dict[int, Array]) -> Memory:
        """The same memory, with some buffers elsewhere: id of a buffer's base -> its bytes."""
        other = object.__new__(Memory)
        other.__dict__.update(self.__dict__)
        other._views = {}
        other._places = {**self._places, **{key: (memory, 0) for key, memory in places.items()}}
        return other

    def relocated(self, x: Any) -> Any:
        """x with every array of a buffer, in lists and Tensors too, in its memory."""
        if isinstance(x, np.ndarray):
            buffer = self.buffers.of(x)
            if buffer is None:
                return x
            if not x.size:  # it may begin outside its buffer
                return np.empty(x.shape, x.dtype)
            # NumPy compares the places of two arrays in each call, which takes as long as a short call, but not those
            # of one array.
            key = (address(x), x.shape, x.strides, x.dtype)
            if key not in self._views:
                memory, offset = self._places[id(buffer.base)]
                place = offset + address(x) - address(buffer.base)
                self._views[key] = np.ndarray(x.shape, x.dtype, memory, place, x.strides)
            return self._views[key]
        if isinstance(x, Tensor):
            return Tensor(self.relocated(x.data), x.dtype, x.shape, x.backend)
        if type(x) in (list, tuple):
            return type(x)([self.relocated(v) for v in x])
        return x


def aligned(nbytes: int) -> Array:
    """That many bytes, where vectors of the processor begin."""
    whole = np.empty(nbytes + _ALIGNED, np.uint8)
    return whole[-whole.ctypes.data % _ALIGNED :][:nbytes]


def address(x: Array) -> int:
    """Where the first element of an array lies."""
    found: int = x.__array_interface__["data"][0]
    return found
