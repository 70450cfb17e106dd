"""Compiles kernels in the process, and runs the steps of a plan in one call.

Each kernel is compiled once, whatever the number of plans that use it, as long as one of them lives; the code of a plan
is kept for later processes (kept.py).
"""

from __future__ import annotations

import ctypes
import marshal
import math
import mmap
import os
import struct
import time
import weakref
from contextlib import suppress
from typing import Any

from emberlet.errors import BackendError
from emberlet.host.sharing.address_ranges import LARGE, protect

from ..device import lock
from ..wasm.assembler import Function
from . import kept, processor, render, threads
from .linking import ALIGNMENT, linked
from .regions import Shared

LONG = 1 << 28  # elements that the steps of one call read, at least: some 30 ms
# A plan that reads fewer elements, some 1 ms of work, runs alone for a while after a run with threads took LATE times
# as long as one alone: other programs have the processors. The while is one run, then 3, 7 and so on, at most REST.
SHORT, LATE, REST = 1 << 22, 2, 256
QUICK = 1 << 14  # elements that a kernel reads, at most, whose code may be slow
_Key = tuple[Function | str, int | None, bool]  # a kernel's or a name of threads.text; place_of_steps; may be slow
_RUN: _Key = ("run", None, False)
_WORK: _Key = ("work", None, False)
_compiling = lock()  # LLVM's objects are made and used by one thread at a time
# Held while LLVM works: a process that is forked meanwhile would have its locks, which nobody there gives back.
_making = lock()
_PATIENCE = 30.0  # seconds that fork() waits for it: one kernel takes less than one
_waited: list[bool] = []  # whether a fork() that goes on has it
_torn: list[bool] = []  # true if this process was forked without it
_known: weakref.WeakValueDictionary[_Key, Code] = weakref.WeakValueDictionary()


class Code:
    """A compiled function. address: where it begins, as long as this object lives; data: its code with the offset where
    it begins, None if it cannot be moved; held: what owns the memory."""

    def __init__(self, address: int, data: tuple[bytes, int] | None, held: Any) -> None:
        self.address = address
        self.data = data
        self.held = held


def codes(functions: list[Function], quick: bool = False) -> tuple[list[Code], Code, Code]:
    """The compiled forms of a plan's kernels, and of "run" and "work" (threads.py). quick: whether kernels of little
    work may be slower, for being compiled sooner; their code is not kept."""
    keys: list[_Key] = []
    for f in functions:
        soon = quick and f.lanes == 4 and f.work <= QUICK
        keys.append((f, render.place_of_steps(f), soon))
    wanted = dict.fromkeys([*keys, _RUN, _WORK])
    with _compiling:
        found = {key: _known.get(key) for key in wanted}
        if None in found.values():
            name = None if quick else processor.kept_name("code", marshal.dumps([_bytes(key) for key in wanted], 2))
            kept_codes = _kept(name, list(wanted))
            for key in [key for key, code in found.items() if code is None]:
                found[key] = _known[key] = kept_codes.get(key) or _made(key)
            if name is not None and not kept_codes:
                _keep(name, list(found.values()))
    made: dict[_Key, Any] = dict(found)
    return [made[key] for key in keys], made[_RUN], made[_WORK]


def _bytes(key: _Key) -> bytes:
    function, place, quick = key
    code: Any = function if isinstance(function, str) else function._key
    return marshal.dumps((code, place, quick), 2)


def _kept(name: str | None, keys: list[_Key]) -> dict[_Key, Code]:
    """The codes of a plan's keys that an earlier process kept; empty if none did."""
    data = kept.read(name) if name is not None else None
    if data is None:
        return {}
    pieces = []
    at = 0
    while at < len(data):
        size, entry = struct.unpack_from("<II", data, at)
        pieces.append((data[at + 8 : at + 8 + size], entry))
        at += 8 + size
    return dict(zip(keys, _placed(pieces), strict=True))


def _keep(name: str, found: list[Code | None]) -> None:
    pieces = [code.data for code in found if code is not None and code.data is not None]
    if len(pieces) == len(found):
        kept.write(name, b"".join([struct.pack("<II", len(data), entry) + data for data, entry in pieces]))


def _placed(pieces: list[tuple[bytes, int]]) -> list[Code]:
    """Codes in executable memory."""
    whole = bytearray()
    begins = []
    for data, _ in pieces:
        whole.extend(bytes(-len(whole) % ALIGNMENT))
        begins.append(len(whole))
        whole.extend(data)
    try:
        memory = pages(len(whole))
        memory[: len(whole)] = bytes(whole)
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        protect(address, len(whole), mmap.PROT_READ | mmap.PROT_EXEC)
    except OSError as error:
        raise BackendError(f"the system refuses memory for machine code: {error}") from None
    return [Code(address + at + piece[1], piece, memory) for at, piece in zip(begins, pieces, strict=True)]


def pages(nbytes: int) -> mmap.mmap:
    """Memory of this process alone, zeros. Raises OSError."""
    if not hasattr(mmap, "MAP_PRIVATE"):  # Windows
        return mmap.mmap(-1, nbytes)
    found = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if nbytes >= LARGE and hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # the system has none
            found.madvise(mmap.MADV_HUGEPAGE)
    return found


def _made(key: _Key) -> Code:
    """Compile a kernel, or what runs steps."""
    if _torn:
        raise BackendError(
            "this process was forked while another thread compiled, so it cannot; compile before fork(), or start "
            "processes by 'spawn'"
        )
    with _making:
        return _compiled(key)


def _compiled(key: _Key) -> Code:
    function, _, quick = key
    llvm = _llvm()
    if isinstance(function, str):
        name, text = function, threads.text(function, llvm.get_process_triple())
    else:
        name, text = "kernel", render.kernel(function, processor.current().dots)
    if processor.kept_name("code", b"") is not None:
        machine = _machine(quick, reloc="pic", codemodel="small")
        moved = linked(machine.emit_object(_optimized(machine, text)), name)
        if moved is not None:
            return _placed([moved])[0]
    machine = _machine(quick)
    engine = llvm.create_mcjit_compiler(_optimized(machine, text), machine)
    engine.finalize_object()
    return Code(engine.get_function_address(name), None, engine)


def _before_fork() -> None:
    _waited.append(_making.acquire(timeout=_PATIENCE))


def _after_fork() -> None:
    if _waited.pop():
        _making.release()


def _in_forked() -> None:
    if not _waited.pop():  # else device.lock() has made it free
        _torn.append(True)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_forked)


def _machine(quick: bool, **options: str) -> Any:
    target = _llvm().Target.from_default_triple()
    for_it = processor.current()
    features = {} if for_it.features is None else {"features": for_it.features}
    return target.create_target_machine(cpu=for_it.name, opt=0 if quick else 2, jit=True, **features, **options)


def _optimized(machine: Any, text: str) -> Any:
    """The module of a text. SROA turns locals into registers. What kernels need besides is little: their loops are
    written as they are to run."""
    llvm = _llvm()
    module = llvm.parse_assembly(text)
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    return module


def set_processor(name: str | None) -> None:
    """Make code for one of `processor.NAMES`, such as "x86-64-v3": AVX2 without AVX-512; None for this processor. Plans
    that exist keep their code. It is for tests: code for another processor than this one may end the process. Raises
    BackendError for another name."""
    if name is not None and name not in processor.NAMES:
        known = ", ".join(processor.NAMES)
        raise BackendError(f"code is made for one of {known}, or for this processor with None; found {name!r}")
    with _compiling:
        processor.choose(name)
        _known.clear()


class Steps:
    """The steps of a plan. each: (kernel's function, the words of its table of arguments); count: of threads; alike:
    whether all runs take about the same time, so that one on several threads can be found late."""

    def __init__(
        self, each: list[tuple[Function, list[int]]], count: int, quick: bool = False, alike: bool = True
    ) -> None:
        functions = [function for function, _ in each]
        self.codes, self._runner, self._worker = codes(functions, quick)
        self._arguments = [(ctypes.c_uint32 * len(given))(*given) for _, given in each]
        words = []
        turned: dict[int, bool] = {}  # of a matrix: whether the next step that reads it goes backward
        for compiled, given, f in zip(self.codes, self._arguments, functions, strict=True):
            backward = False
            if f.streams is not None:  # it begins with what the caches still have of the matrix
                backward = turned.get(given[f.streams], False)
                turned[given[f.streams]] = not backward
            words += [compiled.address, ctypes.addressof(given), threads.tasks(f, count, backward)]
        self._table = (ctypes.c_uint64 * len(words))(*words)
        self.call = threads.RUNS(self._runner.address)
        self.threads = count
        self._watched = alike and count > 1 and sum([f.work for f in functions]) < SHORT
        self._alone = int(self._watched)  # how many of the next runs are on one thread; the first one is, to compare
        self._rest = 0
        self._best = math.inf  # ns of a run alone
        self.pieces = []  # (the address of the first of some steps, how many): one call each
        begin = work = 0
        for n, f in enumerate(functions):
            work += f.work
            if work >= LONG or n + 1 == len(functions):
                self.pieces.append((ctypes.addressof(self._table) + 24 * begin, n + 1 - begin))
                begin, work = n + 1, 0

    def run(self, memory: int) -> None:
        """Run them on a memory at this address. Between two pieces, Python answers interrupts."""
        begin = time.perf_counter_ns() if self._watched else 0
        if self.threads == 1 or self._alone:
            for at, count in self.pieces:
                self.call(memory, at, count, None, 1)
            if self._watched:
                self._alone = max(0, self._alone - 1)
                self._best = min(self._best, time.perf_counter_ns() - begin)
            return
        pool = threads.pool()
        with pool.taken(self.threads, self._worker) as many:
            for at, count in self.pieces:
                self.call(memory, at, count, pool.control, many)
        if self._watched:
            late = time.perf_counter_ns() - begin > LATE * self._best
            self._alone = self._rest = min(REST, 2 * self._rest + 1) if late else self._rest // 2

    def timed(self, memory: int) -> list[tuple[float, float]]:
        """Run them one by one; when each began and ended, in nanoseconds."""
        out = []
        table = ctypes.addressof(self._table)
        with threads.pool().taken(self.threads, self._worker) as many:
            for n in range(len(self.codes)):
                begin = time.perf_counter_ns()
                self.call(memory, table + 24 * n, 1, threads.pool().control, many)
                out.append((float(begin), float(time.perf_counter_ns())))
        return out


class Instance:
    """A memory, and the steps that run on it. shared: the memory, where it has its weights in common with others: they
    lie elsewhere, and `memory` reaches as far as they may. nbytes: of it and of these weights."""

    def __init__(self, steps: Steps, nbytes: int, shared: Shared | None = None) -> None:
        self.steps = steps
        self.nbytes = nbytes if shared is None else nbytes + shared.weights
        if shared is not None:
            self.memory, self.address = shared.view(), shared.address
            return
        try:
            found = pages(nbytes)
        except OSError as error:
            raise BackendError(f"this plan takes {nbytes} bytes of memory, which the system refuses: {error}") from None
        self.memory = memoryview(found)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(found))

    def write(self, at: int, data: Any) -> None:
        given = memoryview(data).cast("B")
        self.memory[at : at + len(given)] = given

    def read(self, at: int, nbytes: int) -> bytes:
        return bytes(self.memory[at : at + nbytes])

    def run(self) -> None:
        self.steps.run(self.address)

    def timed(self) -> list[tuple[float, float]]:
        """`run` step by step, as Steps.timed says."""
        return self.steps.timed(self.address)

    def release(self) -> None:
        """Does nothing: the memory is freed with the instance."""


def available() -> None:
    """Raise BackendError without the package llvmlite."""
    try:
        processor.current()
    except (ImportError, OSError) as error:
        raise _not_loaded(error) from None


def _llvm() -> Any:
    """llvmlite's binding. Raises BackendError if it cannot be loaded, which `available` does not find out where an
    earlier process kept what it said about the processor."""
    try:
        return processor.llvm()
    except (ImportError, OSError) as error:
        raise _not_loaded(error) from None


def _not_loaded(error: ImportError | OSError) -> BackendError:
    from emberlet.host.extras import not_loaded

    missing = error if isinstance(error, ImportError) else ImportError(str(error))
    return BackendError(not_loaded("backend 'native'", "llvmlite", missing))
