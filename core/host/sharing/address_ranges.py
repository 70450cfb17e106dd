"""Ranges of 4 GiB of addresses on Linux, which take memory only where it is used.

The large tensors of a file lie in the upper half of one, and native plans (emberlet.wgpu_backend.llvm.regions) in the
lower half, from where they reach the tensors by distances of 32 bits, without copies.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import threading
import weakref
from bisect import bisect
from functools import cache
from typing import Any

HALF = 1 << 31
LARGE_PAGE = 1 << 21  # of x86-64 and usually of ARM64
LARGE = 8 << 20  # bytes of a memory in large pages: filling it takes a quarter of the time
CHUNK = 32 << 20  # bytes that weights get from the system at once
APART = 64  # bytes behind weights: a kernel may read a vector that ends behind the last number
_NO_RESERVE = 0x4000  # Linux's MAP_NORESERVE, which Python's mmap does not have
_HUGE, _UNNEEDED = 14, 4  # MADV_HUGEPAGE, MADV_DONTNEED
_lock = threading.Lock()
_ranges: weakref.WeakSet[AddressRange] = weakref.WeakSet()
_latest: list[weakref.ref[AddressRange]] = []  # that tensors of files were put into


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()  # another thread may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Memory:
    """A part of a range, given back when nothing refers to it any more. It holds the range.

    within: the range; address: where it begins; nbytes: as many as were asked for.
    """

    def __init__(self, within: AddressRange, address: int, nbytes: int, size: int) -> None:
        self.within = within
        self.address = address
        self.nbytes = nbytes
        weakref.finalize(self, within.give_back, address, size).atexit = False

    def view(self, nbytes: int, owner: Any) -> memoryview:
        """The bytes from its beginning on, which hold `owner`."""
        whole: Any = (ctypes.c_char * nbytes).from_address(self.address)
        whole.owner = owner
        return memoryview(whole).cast("B")


class AddressRange:
    """A range of addresses, freed when nothing refers to it any more. end: behind the last one; copies: the weights
    that llvm/regions.py copied here, with what it finds them by."""

    def __init__(self) -> None:
        """Raises OSError."""
        size = 2 * HALF + LARGE_PAGE
        if sys.platform != "linux" or sys.maxsize < size:
            raise OSError("there are no ranges of addresses here")
        import resource

        if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
            raise OSError("addresses are limited, and a range would take the program's")
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
        found = library().mmap(None, size, 0, flags, -1, 0)
        if found in (None, ctypes.c_void_p(-1).value):
            raise _error()
        weakref.finalize(self, library().munmap, found, size).atexit = False
        begin = up(found, LARGE_PAGE)
        self._middle = self._allowed = begin + HALF  # allowed: behind what tensors may be written to
        self.end = begin + 2 * HALF
        self.copies: weakref.WeakKeyDictionary[Memory, Any] = weakref.WeakKeyDictionary()
        self._tensors: weakref.WeakValueDictionary[int, Memory] = weakref.WeakValueDictionary()  # of files
        self._gaps = [(begin, self._middle), (self._middle, self.end)]  # what is free, in order, of one half each
        self._given_back: list[tuple[int, int]] = []  # further such parts
        with _lock:
            _ranges.add(self)

    def below(self, nbytes: int) -> Memory | None:
        """New memory in the lower half, zeros; None if there is no room. Raises OSError."""
        page = LARGE_PAGE if nbytes >= LARGE else mmap.PAGESIZE
        size = up(nbytes, page)
        with _lock:
            for begin, end in reversed(self._free()):  # near to weights
                at = (end - size) // page * page
                if begin <= at < self._middle:
                    memory = self._taken((begin, end), at, nbytes, size)
                    allow(at, size, mmap.PROT_READ | mmap.PROT_WRITE)
                    return memory
        return None

    def above(self, nbytes: int) -> Memory | None:
        """The same in the upper half, in pages of their own."""
        size = up(nbytes, mmap.PAGESIZE)
        with _lock:
            for begin, end in self._free():
                if begin >= self._middle and begin + size <= end:
                    memory = self._taken((begin, end), begin, nbytes, size)
                    stop = begin + size
                    if stop > self._allowed:
                        stop = min(up(max(stop, begin + CHUNK), LARGE_PAGE), self.end)
                    allow(begin, stop - begin, mmap.PROT_READ | mmap.PROT_WRITE)  # it may have been a copy
                    self._allowed = max(self._allowed, stop)
                    return memory
        return None

    def tensor(self, nbytes: int) -> memoryview | None:
        """Memory for a tensor in the upper half, freed when nothing refers to it; None if there is no room. Raises
        OSError."""
        memory = self.above(nbytes + APART)
        if memory is None:
            return None
        self._tensors[memory.address] = memory
        return memory.view(nbytes, memory)

    def holds(self, address: int, nbytes: int) -> bool:
        """Whether a tensor of a file lies there, which nothing changes."""
        found = self._tensors.get(address)
        return found is not None and found.nbytes == nbytes + APART

    def give_back(self, address: int, size: int) -> None:
        """Free pages. It takes no lock: it is called wherever garbage is collected, also while this thread has it."""
        if not library().madvise(address, size, _UNNEEDED):  # which locked pages refuse
            self._given_back.append((address, address + size))

    def _free(self) -> list[tuple[int, int]]:
        """The gaps, with what was given back."""
        while self._given_back:
            begin, end = self._given_back.pop()
            i = bisect(self._gaps, (begin, end))
            first = last = i
            if i and self._gaps[i - 1][1] == begin != self._middle:
                first, begin = i - 1, self._gaps[i - 1][0]
            if i < len(self._gaps) and self._gaps[i][0] == end != self._middle:
                last, end = i + 1, self._gaps[i][1]
            self._gaps[first:last] = [(begin, end)]
        return self._gaps

    def _taken(self, gap: tuple[int, int], at: int, nbytes: int, size: int) -> Memory:
        i = self._gaps.index(gap)
        self._gaps[i : i + 1] = [(b, e) for b, e in ((gap[0], at), (at + size, gap[1])) if b < e]
        return Memory(self, at, nbytes, size)


def memory_for_tensor(nbytes: int) -> memoryview | None:
    """Memory to read a tensor of a file into, once; only views without write access may be given to others. None where
    there are no such ranges."""
    if sys.platform != "linux" or nbytes > HALF // 2:
        return None
    try:
        latest = _latest[0]() if _latest else None
        found = None if latest is None else latest.tensor(nbytes)
        if found is None:
            new = AddressRange()
            found = new.tensor(nbytes)
            _latest[:] = [weakref.ref(new)]
        return found
    except OSError:
        return None


def ranges() -> list[AddressRange]:
    """Those in use."""
    with _lock:
        return list(_ranges)


def up(n: int, to: int) -> int:
    """The next multiple."""
    return (n + to - 1) // to * to


def protect(address: int, size: int, protection: int) -> None:
    """Set what pages may be used for. Raises OSError."""
    if library().mprotect(address, size, protection):
        raise _error()


def allow(address: int, size: int, protection: int) -> None:
    """The same, with large pages for much memory."""
    protect(address, size, protection)
    if size >= LARGE:
        library().madvise(address, size, _HUGE)


def _error() -> OSError:
    return OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@cache
def library() -> Any:
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
