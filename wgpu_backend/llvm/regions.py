"""Memory in which plans share their weights, on Linux: a range of addresses (host/sharing/address_ranges.py). Its lower
half has plans' memories, its upper half weights.

Kernels find buffers by distances of 32 bits from the beginning of a plan's memory, so every plan reaches all weights of
its range. Weights that were read from a file lie there already. Others are copied, once: a weight is found by some of
its bytes and then compared whole, so it does not matter where it comes from, and one that was changed between two plans
is another one. Nothing writes to copies, whose pages are read-only.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import threading
import weakref
from collections.abc import Iterable
from typing import Any

from emberlet.host.sharing.address_ranges import HALF, LARGE, AddressRange, allow, library, ranges, up

from ..device import lock
from . import threads

LEAST = 1 << 20  # bytes of weights that are worth a range
PIECE = 1 << 22  # bytes that a thread copies or compares at once
APART = 64  # bytes: copies begin at multiples of it
_SAMPLE = 32  # bytes at the beginning, in the middle and at the end, by which a weight is found
_sharing = lock()


def _after_fork() -> None:
    global _sharing
    _sharing = lock()  # another thread may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Shared:
    """A plan's memory in a range, given back when nothing refers to it any more. address: where it begins; places:
    {number of a weight: its distance from there}; weights: what must live as long."""

    def __init__(
        self, within: AddressRange, address: int, nbytes: int, places: dict[int, int], weights: list[memoryview]
    ) -> None:
        self.address = address
        self.places = places
        self._weights = weights
        self._end = within.end
        # Holds the range, whose addresses must not be another's when the memory is given back.
        weakref.finalize(self, within.give_back, address, nbytes).atexit = False

    def view(self) -> memoryview:
        """The memory and what lies behind it in the range, as far as weights may."""
        whole: Any = (ctypes.c_char * (self._end - self.address)).from_address(self.address)
        whole.owner = self
        return memoryview(whole).cast("B")


class _Weight:
    """data: the bytes; address: where they lie; key: some of them."""

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.address = _address(data)
        middle, last = len(data) // 2, max(0, len(data) - _SAMPLE)
        self.key = (len(data), *[bytes(data[at : at + _SAMPLE]) for at in (0, middle, last)])

    def lies_in(self, within: AddressRange) -> bool:
        """Whether it was read from a file to there."""
        return within.holds(self.address, len(self.data))


def share(weights: dict[int, Any], nbytes: int) -> Shared | None:
    """A memory of `nbytes` for a plan, with its weights ({number: bytes}) within reach. None where nothing is shared:
    on other systems, for few weights, for more than 2 GiB, and where the system refuses the addresses or memory."""
    given = {number: _Weight(memoryview(w).cast("B")) for number, w in weights.items()}
    total = sum([len(w.data) for w in given.values()])
    if not is_worth(total) or max(total, nbytes) > HALF - LARGE:
        return None
    with _sharing:
        best, most = None, total // 2
        for within in ranges():
            held = sum([len(w.data) for w in given.values() if w.lies_in(within) or w.key in within.copies])
            if held > most:
                best, most = within, held
        try:
            found = _placed(best, given, nbytes) if best is not None else None
            # Otherwise there is no range of such weights, or it is full.
            return found or _placed(AddressRange(), given, nbytes)
        except OSError:
            return None


def is_worth(total: int) -> bool:
    """Whether plans share so many bytes of weights."""
    return sys.platform == "linux" and total >= LEAST


def _placed(within: AddressRange, given: dict[int, _Weight], nbytes: int) -> Shared | None:
    """See `share`; None if there is no room. Raises OSError."""
    places = {number: w.address for number, w in given.items() if w.lies_in(within)}
    kept = [given[number].data for number in places]
    known = {n: within.copies[w.key] for n, w in given.items() if n not in places and w.key in within.copies}
    same = _each(library().memcmp, [(at, given[number]) for number, at in known.items()])
    places |= {number: at for (number, at), good in zip(known.items(), same, strict=True) if good}
    new = {number: w for number, w in given.items() if number not in places}
    copied = _copied(within, new) if new else {}
    memory = None if copied is None else within.below(nbytes)
    if copied is None or memory is None:
        return None
    places |= copied
    begin, size = memory
    return Shared(within, begin, size, {number: at - begin for number, at in places.items()}, kept)


def _copied(within: AddressRange, new: dict[int, _Weight]) -> dict[int, int] | None:
    """The addresses of copies of weights, in pages of their own; None if there is no room. Raises OSError."""
    room = {number: up(len(w.data) + APART, APART) for number, w in new.items()}  # kernels may read a vector too far
    memory = within.above(sum(room.values()))
    if memory is None:
        return None
    places, at = {}, memory[0]
    for number, nbytes in room.items():
        places[number] = at
        at += nbytes
    _each(library().memmove, [(places[number], w) for number, w in new.items()])
    allow(*memory, mmap.PROT_READ)
    for number, w in new.items():
        within.copies[w.key] = places[number]
    return places


def _each(function: Any, jobs: Iterable[tuple[int, _Weight]]) -> list[bool]:
    """Call `function(address, address of the weight, size)` piece by piece, on several threads if there is much; of
    each job, whether no result was other than 0 or None."""
    pieces = []
    good = []
    for i, (address, w) in enumerate(jobs):
        good.append(True)
        for at in range(0, len(w.data), PIECE):
            pieces.append((i, address + at, w.address + at, min(PIECE, len(w.data) - at)))
    work = iter(pieces)

    def take() -> None:
        for i, address, begin, size in work:  # which threads share: `next` of a list's iterator is one step
            if function(address, begin, size):
                good[i] = False

    many = min(threads.threads(), len(pieces) // 2, sum([size for *_, size in pieces]) // PIECE)
    helpers = [threading.Thread(target=take, daemon=True) for _ in range(many - 1)]
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
