"""Memory in which plans share their weights, on Linux.

Kernels find buffers by distances of 32 bits from the beginning of a plan's memory. A region is a range of 4 GiB of
addresses, which takes memory only where it is used: weights lie in its upper half, each once, and plans' memories in
the lower half, so that every plan reaches all weights.

A weight is found by some of its bytes and then compared whole. So it does not matter where it comes from, and one that
was changed between two plans is another one. Nothing writes to weights that lie in a region: their pages are read-only.
A region lives as long as a plan in it.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import threading
import weakref
from functools import cache
from typing import Any

from ..device import lock
from . import threads

LEAST = 1 << 20  # bytes of weights that are worth a region
HALF = 1 << 31
LARGE_PAGE = 1 << 21
LARGE = 8 << 20  # bytes of a memory in large pages: filling it takes a quarter of the time
PIECE = 1 << 22  # bytes that a thread copies or compares at once
APART = 64  # bytes: weights begin at multiples of it
_SAMPLE = 32  # bytes at the beginning, in the middle and at the end, by which a weight is found
_NO_RESERVE = 0x4000  # Linux's MAP_NORESERVE, which Python's mmap does not have
_HUGE, _UNNEEDED = 14, 4  # MADV_HUGEPAGE, MADV_DONTNEED
_Key = tuple[int, bytes, bytes, bytes]
_sharing = lock()
_regions: weakref.WeakSet[Region] = weakref.WeakSet()


def _after_fork() -> None:
    global _sharing
    _sharing = lock()  # another thread may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Shared:
    """A plan's memory in a region, given back when nothing refers to it any more. address: where it begins; places:
    {number of a weight: its distance from there}."""

    def __init__(self, region: Region, address: int, nbytes: int, places: dict[int, int]) -> None:
        self.address = address
        self.places = places
        self._end = region.begin + 2 * HALF
        # Holds the region, whose addresses must not be another's when the memory is given back.
        weakref.finalize(self, region.give_back, address, nbytes).atexit = False

    def view(self) -> memoryview:
        """The memory and what lies behind it in the region, as far as weights may."""
        whole: Any = (ctypes.c_char * (self._end - self.address)).from_address(self.address)
        whole.owner = self
        return memoryview(whole).cast("B")


def share(weights: dict[int, Any], nbytes: int) -> Shared | None:
    """A memory of `nbytes` for a plan, with its weights ({number: bytes}) within reach. None where nothing is shared:
    on other systems, for few weights, for more than 2 GiB, and where the system refuses the addresses or memory."""
    data = {number: memoryview(w).cast("B") for number, w in weights.items()}
    total = sum([len(d) for d in data.values()])
    if not is_worth(total) or max(total, nbytes) > HALF - LARGE:
        return None
    keys = {number: _key(d) for number, d in data.items()}
    with _sharing:
        best, most = None, total // 2
        for region in list(_regions):
            held = sum([len(data[number]) for number, key in keys.items() if key in region.weights])
            if held > most:
                best, most = region, held
        try:
            found = best.place(data, keys, nbytes) if best is not None else None
            if found is None:  # there is no region of such weights, or it is full
                new = Region()
                found = new.place(data, keys, nbytes)
                _regions.add(new)
        except OSError:
            return None
        return found


def is_worth(total: int) -> bool:
    """Whether plans share so many bytes of weights."""
    return sys.platform == "linux" and total >= LEAST


def _key(data: memoryview) -> _Key:
    middle = len(data) // 2
    samples = [bytes(data[at : at + _SAMPLE]) for at in (0, middle, max(0, len(data) - _SAMPLE))]
    return (len(data), samples[0], samples[1], samples[2])


class Region:
    """begin: its first address; weights: {some of a weight's bytes: its address}."""

    def __init__(self) -> None:
        """Raises OSError."""
        size = 2 * HALF + LARGE_PAGE
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
        found = _library().mmap(None, size, 0, flags, -1, 0)
        if found in (None, ctypes.c_void_p(-1).value):
            raise _error()
        weakref.finalize(self, _library().munmap, found, size).atexit = False
        self.begin = _up(found, LARGE_PAGE)
        self.weights: dict[_Key, int] = {}
        self._lowest = self._highest = self.begin + HALF  # of plans' memories; the first address behind weights

    def place(self, data: dict[int, memoryview], keys: dict[int, _Key], nbytes: int) -> Shared | None:
        """See `share`; None if there is no room. Raises OSError."""
        known = {number: self.weights[key] for number, key in keys.items() if key in self.weights}
        same = _each(_library().memcmp, [(at, data[number]) for number, at in known.items()])
        places = {number: at for (number, at), good in zip(known.items(), same, strict=True) if good}
        new = {number: d for number, d in data.items() if number not in places}
        begin = self._lowest - nbytes
        begin -= begin % _page(nbytes)
        end = self._highest + sum([len(d) + 2 * APART for d in new.values()]) + 2 * LARGE_PAGE
        if begin < self.begin or end > self.begin + 2 * HALF:
            return None
        if new:
            places |= self._added(new, keys)
        size = self._lowest - begin
        _allow(begin, size, mmap.PROT_READ | mmap.PROT_WRITE)
        self._lowest = begin
        return Shared(self, begin, size, {number: at - begin for number, at in places.items()})

    def _added(self, data: dict[int, memoryview], keys: dict[int, _Key]) -> dict[int, int]:
        """Copy weights to pages of their own; returns their addresses."""
        room = {number: _up(len(d) + APART, APART) for number, d in data.items()}  # kernels may read a vector too far
        page = _page(sum(room.values()))
        begin = at = _up(self._highest, page)
        places = {}
        for number, nbytes in room.items():
            places[number] = at
            at += nbytes
        size = _up(at - begin, page)
        _allow(begin, size, mmap.PROT_READ | mmap.PROT_WRITE)
        self._highest = begin + size  # before copying, which an interrupt may leave to its threads
        _each(_library().memmove, [(places[number], d) for number, d in data.items()])
        _allow(begin, size, mmap.PROT_READ)
        for number, place in places.items():
            self.weights[keys[number]] = place
        return places

    def give_back(self, address: int, nbytes: int) -> None:
        """Free a plan's memory. Its addresses are not used again."""
        _library().madvise(address, nbytes, _UNNEEDED)


def _page(nbytes: int) -> int:
    """The bytes of the pages that a memory of that size is made of."""
    return LARGE_PAGE if nbytes >= LARGE else mmap.PAGESIZE


def _up(n: int, to: int) -> int:
    return (n + to - 1) // to * to


def _allow(address: int, size: int, protection: int) -> None:
    if _library().mprotect(address, size, protection):
        raise _error()
    if size >= LARGE:
        _library().madvise(address, size, _HUGE)


def _error() -> OSError:
    return OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _each(function: Any, jobs: list[tuple[int, memoryview]]) -> list[bool]:
    """Call `function(address, address of the data, size)` piece by piece, on several threads if there is much; of each
    job, whether no result was other than 0 or None."""
    good = [True] * len(jobs)
    pieces = []
    for i, (address, data) in enumerate(jobs):
        begin = _address(data)
        for at in range(0, len(data), PIECE):
            pieces.append((i, address + at, begin + at, min(PIECE, len(data) - at)))
    work = iter(pieces)

    def take() -> None:
        for i, address, begin, size in work:  # which threads share: `next` of a list's iterator is one step
            if function(address, begin, size):
                good[i] = False

    helpers = [threading.Thread(target=take, daemon=True) for _ in range(min(threads.threads(), len(pieces) // 2) - 1)]
    for helper in helpers:
        helper.start()
    take()
    for helper in helpers:
        helper.join()
    return good


class _Buffer(ctypes.Structure):
    """Python's Py_buffer."""

    _fields_ = (
        ("address", ctypes.c_void_p), ("owner", ctypes.py_object), ("nbytes", ctypes.c_ssize_t),
        ("size", ctypes.c_ssize_t), ("read_only", ctypes.c_int), ("axes", ctypes.c_int), ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("offsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    )  # fmt: skip


def _address(data: memoryview) -> int:
    """Where its bytes are, as long as it lives."""
    found = _Buffer()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(data), ctypes.byref(found), 0)
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(found))
    return int(found.address or 0)


@cache
def _library() -> Any:
    """The system's functions, which run without the interpreter's lock."""
    found = ctypes.CDLL(None, use_errno=True)
    address, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    found.mmap.argtypes = [address, size, number, number, number, ctypes.c_long]
    found.mmap.restype = address
    found.memmove.argtypes = found.memcmp.argtypes = [address, address, size]
    found.memmove.restype = None
    found.munmap.argtypes = [address, size]
    found.mprotect.argtypes = found.madvise.argtypes = [address, size, number]
    return found
