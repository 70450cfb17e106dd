"""Calls a list of C functions with one call from Python: on Linux for x86-64, whose calling convention (System V AMD64
ABI) the instructions below follow.

A table has a record of 22 words of 64 bits for each function:

    0       its address
    1       how often it is called
    2, 3    what is added to its first and second argument after each call
    4-9     its first six integers or pointers
    10, 11  its first two floats
    12-21   its other integers and pointers

The memory of the instructions is writable only until they are there. Where a system allows no such memory, or
EMBERLET_CALLS is "python", Python calls each function.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from .....errors import BackendError
from ....sharing.address_ranges import protect

VARIABLE, PYTHON = "EMBERLET_CALLS", "python"
WORDS, REGISTERS, FLOATS, STACK = 22, 6, 2, 10  # of a record; of the rest, how many a function can have

# run(table, its end)
_RUN = """
    f30f1efa 55 53                  # endbr64; push rbp, rbx
    4154 4155 4156 4157             # push r12, r13, r14, r15
    4883ec58                        # sub rsp, 88  (ten words for arguments; calls find rsp at a multiple of 16)
    4889fb 4989f4                   # mov rbx, rdi; mov r12, rsi
    4c39e3 737c                     # cmp rbx, r12; jae end
    4c8b6b08                        # mov r13, [rbx+8]  (record: how often)
    4c8b7320 4c8b7b28               # mov r14, [rbx+32]; mov r15, [rbx+40]
    0f104360 0f104b70               # movups xmm0, [rbx+96]; movups xmm1, [rbx+112]  (again: arguments on the stack)
    0f109380000000                  # movups xmm2, [rbx+128]
    0f109b90000000                  # movups xmm3, [rbx+144]
    0f10a3a0000000                  # movups xmm4, [rbx+160]
    0f110424 0f114c2410             # movups [rsp], xmm0; movups [rsp+16], xmm1
    0f11542420                      # movups [rsp+32], xmm2
    0f115c2430                      # movups [rsp+48], xmm3
    0f11642440                      # movups [rsp+64], xmm4
    4c89f7 4c89fe                   # mov rdi, r14; mov rsi, r15
    488b5330 488b4b38               # mov rdx, [rbx+48]; mov rcx, [rbx+56]
    4c8b4340 4c8b4b48               # mov r8, [rbx+64]; mov r9, [rbx+72]
    f20f104350                      # movsd xmm0, [rbx+80]
    f20f104b58                      # movsd xmm1, [rbx+88]
    ff13                            # call [rbx]
    4c037310 4c037b18               # add r14, [rbx+16]; add r15, [rbx+24]
    49ffcd 759c                     # dec r13; jnz again
    4881c3b0000000                  # add rbx, 176
    4c39e3 7284                     # cmp rbx, r12; jb record
    4883c458                        # add rsp, 88  (end)
    415f 415e 415d 415c 5b 5d c3    # pop r15, r14, r13, r12, rbx, rbp; ret
"""
# take(semaphore, stop, sem_trywait, sem_wait): wait for the semaphore, or until stop is not 0. The first 1000 looks,
# which take about as long as waking a thread, are made without giving up the processor.
_TAKE = """
    53 4154 4155 4156 4157          # push rbx, r12, r13, r14, r15
    4889fb 4989f4 4989d5 4989ce     # mov rbx, rdi; mov r12, rsi; mov r13, rdx; mov r14, rcx
    41bfe8030000                    # mov r15d, 1000
    41833c2400 7522                 # cmp dword [r12], 0; jne end  (look)
    4889df 41ffd5                   # mov rdi, rbx; call r13
    85c0 7418                       # test eax, eax; jz end
    f390 41ffcf 75e8                # pause; dec r15d; jnz look
    41833c2400 750a                 # cmp dword [r12], 0; jne end  (sleep)
    4889df 41ffd6                   # mov rdi, rbx; call r14
    85c0 75ef                       # test eax, eax; jnz sleep  (a signal woke it)
    415f 415e 415d 415c 5b c3       # pop r15, r14, r13, r12, rbx; ret  (end)
"""


def address_of(function: Any) -> int:
    """The address of a function of ctypes."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _code(listing: str) -> bytes:
    """The bytes of a listing: the hexadecimal numbers in front of each line's instructions."""
    return b"".join(bytes.fromhex(line.partition("#")[0]) for line in listing.splitlines())


class Machine:
    """The instructions in memory. take: the address of those above; copy, post, try_wait, wait: of memcpy, sem_post,
    sem_trywait and sem_wait of the C library."""

    def __init__(self, memory: Any, offsets: Sequence[int]) -> None:
        self._memory = memory
        start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        run, self.take = (start + offset for offset in offsets)
        self.run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(run)
        libc = ctypes.CDLL(None)
        self.copy, self.post, self.try_wait, self.wait = (
            address_of(f) for f in (libc.memcpy, libc.sem_post, libc.sem_trywait, libc.sem_wait)
        )
        self._semaphore = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint)(
            address_of(libc.sem_init)
        )
        self.release = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(self.post)

    def make_semaphore(self, at: int) -> None:
        """A semaphore of this process, which is 0, in 32 bytes."""
        self._semaphore(at, 0, 0)

    def call(self, records: Sequence[Any], held: Any) -> tuple[Any, tuple[Any, ...]]:
        """(a function, its arguments) that call the functions of arrays of records. held: what their addresses are
        of."""
        table = np.concatenate(records)
        start: int = table.__array_interface__["data"][0]
        at = _Place(start)
        at.held = table, held, self
        return self.run, (at, start + table.nbytes)


class _Place(ctypes.c_void_p):
    """An address that keeps what lies there, and what that needs."""

    held: Any = None


@cache
def machine() -> Machine | None:
    """The Machine, the same for all plans; None where there is none. Raises BackendError for a wrong EMBERLET_CALLS."""
    if wanted := os.environ.get(VARIABLE):
        if wanted != PYTHON:
            raise BackendError(f"{VARIABLE}={wanted} is not {PYTHON}: set it to {PYTHON}, or not at all")
        return None
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "AMD64") or sys.maxsize < 1 << 32:
        return None
    if sys.implementation.name != "cpython":  # where id() is the address of a ufunc
        return None
    parts = [_code(listing) for listing in (_RUN, _TAKE)]
    offsets = [0]
    for part in parts[:-1]:
        offsets.append(-(-(offsets[-1] + len(part)) // 16) * 16)
    try:
        memory = mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        for offset, part in zip(offsets, parts, strict=True):
            memory[offset : offset + len(part)] = part
        start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        protect(start, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_EXEC)
        return Machine(memory, offsets)
    except (OSError, AttributeError):
        return None


def record(
    function: int,
    integers: Sequence[int],
    floats: Sequence[float] = (),
    count: int = 1,
    steps: tuple[int, int] = (0, 0),
) -> Any:
    """An array of one record. floats: of single precision; steps: what is added to the first two integers."""
    records = np.zeros((1, WORDS), np.int64)
    found = records[0]
    found[:4] = function, count, *steps
    found[4 : 4 + min(REGISTERS, len(integers))] = integers[:REGISTERS]
    found[12 : 12 + max(0, len(integers) - REGISTERS)] = integers[REGISTERS:]
    found[10:12].view(np.float32)[: 2 * len(floats) : 2] = floats
    return records
