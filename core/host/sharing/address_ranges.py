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
from functools import cache
from typing import Any

HALF = 1 << 31
LARGE_PAGE = 1 << 21  # of x86-64 and usually of ARM64
LARGE = 8 << 20  # bytes of a memory in large pages: filling it takes a quarter of the time
CHUNK = 32 << 20  # bytes that tensors of files get from the system at once
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


class AddressRange:
    """A range of addresses, freed when nothing refers to it any more. begin: the first one; copies: what
    llvm/regions.py copied here. Addresses are not used again."""

    def __init__(self) -> None:
        """Raises OSError."""
        size = 2 * HALF + LARGE_PAGE
        if sys.platform != "linux" or sys.maxsize < size:
            raise OSError("there are no ranges of addresses here")
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
        found = library().mmap(None, size, 0, flags, -1, 0)
        if found in (None, ctypes.c_void_p(-1).value):
            raise _error()
        weakref.finalize(self, library().munmap, found, size).atexit = False
        self.begin = up(found, LARGE_PAGE)
        self.end = self.begin + 2 * HALF
        self.copies: dict[Any, int] = {}
        self._tensors: dict[int, int] = {}  # of files: address -> bytes
        # The first address of plans; behind the last tensor or copy; behind what tensors may be written to.
        self._lowest = self._highest = self._allowed = self.begin + HALF
        with _lock:
            _ranges.add(self)

    def below(self, nbytes: int) -> tuple[int, int] | None:
        """(address, bytes) of new memory in the lower half, zeros; None if there is no room. Raises OSError."""
        with _lock:
            begin = self._lowest - nbytes
            begin -= begin % _page(nbytes)
            if begin < self.begin:
                return None
            size = self._lowest - begin
            allow(begin, size, mmap.PROT_READ | mmap.PROT_WRITE)
            self._lowest = begin
            return begin, size

    def above(self, nbytes: int) -> tuple[int, int] | None:
        """The same in the upper half, in pages of their own."""
        with _lock:
            page = _page(nbytes)
            begin, size = up(max(self._highest, self._allowed), page), up(nbytes, page)
            if begin + size > self.end:
                return None
            allow(begin, size, mmap.PROT_READ | mmap.PROT_WRITE)
            self._highest = self._allowed = begin + size
            return begin, size

    def tensor(self, nbytes: int) -> memoryview | None:
        """Memory for a tensor in the upper half, freed when nothing refers to it; None if there is no room. Raises
        OSError."""
        with _lock:
            begin = self._highest
            end = up(begin + nbytes + 64, mmap.PAGESIZE)  # a kernel may read a vector that ends behind the last number
            if end > self._allowed:
                allowed = up(end, LARGE_PAGE) if end - begin >= CHUNK else up(begin + CHUNK, LARGE_PAGE)
                if allowed > self.end:
                    return None
                allow(self._allowed, allowed - self._allowed, mmap.PROT_READ | mmap.PROT_WRITE)
                self._allowed = allowed
            self._highest = end
            self._tensors[begin] = nbytes
        whole: Any = (ctypes.c_char * nbytes).from_address(begin)
        whole.owner = _Tensor(self, begin, end - begin)
        return memoryview(whole).cast("B")

    def holds(self, address: int, nbytes: int) -> bool:
        """Whether a tensor of a file lies there, which nothing changes."""
        return self._tensors.get(address, -1) == nbytes

    def give_back(self, address: int, nbytes: int) -> None:
        """Free memory."""
        self._tensors.pop(address, None)
        library().madvise(address, nbytes, _UNNEEDED)


class _Tensor:
    """The memory of a tensor. It holds the range, whose addresses must not be another's when this is given back."""

    def __init__(self, within: AddressRange, address: int, nbytes: int) -> None:
        weakref.finalize(self, within.give_back, address, nbytes).atexit = False


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


def _page(nbytes: int) -> int:
    """The bytes of the pages that a memory of that size is made of."""
    return LARGE_PAGE if nbytes >= LARGE else mmap.PAGESIZE


def allow(address: int, size: int, protection: int) -> None:
    """Set what pages may be used for. Raises OSError."""
    if library().mprotect(address, size, protection):
        raise _error()
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
