"""Memory in which plans share their weights, on Linux: a range of addresses (host/sharing/address_ranges.py). Its lower
half has plans' memories, its upper half weights.

Kernels find buffers by distances of 32 bits from the beginning of a plan's memory, so every plan reaches all weights of
its range. Weights that were read from a file lie there already. Others are copied, once: a weight is found by some of
its bytes and then compared whole, so it does not matter where it comes from, and one that was changed between two plans
is another one. Nothing writes to copies, whose pages are read-only. A copy lives as long as a plan that has it.
"""

from __future__ import annotations

import mmap
import sys
import threading
from contextlib import suppress
from typing import Any

from emberlet.host.sharing.address_ranges import (
    APART,
    HALF,
    LARGE,
    AddressRange,
    Memory,
    library,
    protect,
    ranges,
    up,
)
from emberlet.host.sharing.memory import address_of

from ..device import lock
from . import threads

LEAST = 1 << 20  # bytes of weights that are worth a range
PIECE = 1 << 22  # bytes that a thread copies or compares at once
_SAMPLE = 32  # bytes at the beginning, in the middle and at the end, by which a weight is found
_sharing = lock()


class Shared:
    """A plan's memory in a range, given back when nothing refers to it any more. address: where it begins; places:
    {number of a weight: its distance from there}; held: what must live as long; weights: their bytes."""

    def __init__(self, memory: Memory, places: dict[int, int], held: list[Any], weights: int) -> None:
        self.address = memory.address
        self.weights = weights
        self.places = places
        self._memory = memory
        self._held = held

    def view(self) -> memoryview:
        """The memory and what lies behind it in the range, as far as weights may."""
        return self._memory.view(self._memory.within.end - self.address, self)


class _Weight:
    """data: the bytes; address: where they lie; key: some of them."""

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.address = address_of(data)
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

    def held(within: AddressRange) -> int:
        keys = set(within.copies.values())
        return sum([len(w.data) for w in given.values() if w.lies_in(within) or w.key in keys])

    with _sharing:
        try:
            for within in sorted(ranges(), key=held, reverse=True):
                if found := _placed(within, given, nbytes):
                    return found
            return _placed(AddressRange(), given, nbytes)
        except OSError:
            return None


def is_worth(total: int) -> bool:
    """Whether plans share so many bytes of weights."""
    return sys.platform == "linux" and total >= LEAST


def _placed(within: AddressRange, given: dict[int, _Weight], nbytes: int) -> Shared | None:
    """See `share`; None if there is no room. Raises OSError."""
    memory = within.below(nbytes)
    if memory is None:
        return None
    there = {number: w for number, w in given.items() if w.lies_in(within)}
    others = {number: w for number, w in given.items() if number not in there}
    copies = _found(within, others)
    new = {number: w for number, w in others.items() if number not in copies}
    if not _copied(within, new, copies):
        return None
    places = {number: w.address for number, w in there.items()} | {number: c.address for number, c in copies.items()}
    begin = memory.address
    total = sum([len(w.data) for w in given.values()])
    return Shared(memory, {number: at - begin for number, at in places.items()}, [copies, there], total)


def _found(within: AddressRange, weights: dict[int, _Weight]) -> dict[int, Memory]:
    """The copies that there are of weights."""
    alike: dict[Any, list[Memory]] = {}
    for copy, key in within.copies.items():
        alike.setdefault(key, []).append(copy)
    found: dict[int, Memory] = {}
    for i in range(max(map(len, alike.values()), default=0)):
        rest = [n for n, w in weights.items() if n not in found and i < len(alike.get(w.key, ()))]
        if not rest:
            break
        jobs = [(alike[weights[n].key][i], weights[n]) for n in rest]
        same = _each(library().memcmp, jobs)
        found |= {n: copy for n, (copy, _), good in zip(rest, jobs, same, strict=True) if good}
    return found


def _copied(within: AddressRange, weights: dict[int, _Weight], copies: dict[int, Memory]) -> bool:
    """Copy weights and add the copies; False if there is no room. Raises OSError."""
    jobs = []
    for number, w in weights.items():
        memory = within.above(len(w.data) + APART)
        if memory is None:
            return False
        copies[number] = memory
        jobs.append((memory, w))
    _each(library().memmove, jobs)
    for memory, w in jobs:
        protect(memory.address, up(memory.nbytes, mmap.PAGESIZE), mmap.PROT_READ)
        within.copies[memory] = w.key
    return True


def _each(function: Any, jobs: list[tuple[Memory, _Weight]]) -> list[bool]:
    """Call `function(address of the memory, address of the weight, size)` piece by piece, on several threads if there
    is much; of each job, whether no result was other than 0 or None."""
    good = [True] * len(jobs)
    pieces = []
    for i, (_, w) in enumerate(jobs):
        pieces += [(i, at, min(PIECE, len(w.data) - at)) for at in range(0, len(w.data), PIECE)]
    work = iter(pieces)

    def take() -> None:
        for i, at, size in work:  # which threads share: `next` of a list's iterator is one step
            memory, w = jobs[i]  # a thread holds both, whatever ends the caller
            if function(memory.address + at, w.address + at, size):
                good[i] = False

    many = min(threads.threads(), len(pieces) // 2, sum([size for *_, size in pieces]) // PIECE)
    helpers: list[threading.Thread] = []
    try:
        with suppress(RuntimeError):  # the system starts no more
            for _ in range(many - 1):
                helper = threading.Thread(target=take, daemon=True)
                helper.start()
                helpers.append(helper)
        take()
    finally:
        for _ in work:
            pass  # after Ctrl-C nothing more is begun
        for helper in helpers:
            helper.join()
    return good
