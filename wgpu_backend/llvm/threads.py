"""Runs the steps of a plan on several threads.

A shared step is cut into tasks, which threads take one by one until none is left; the step ends when all are done, so
that a thread that comes late holds up nobody. A thread takes its own share first, the same in each run of a step: what
it read last time is in its cache. Threads spin during a run and a little longer, then they park in
Python, where they wait without a lock of the interpreter. One run has them at a time; another one meanwhile is alone.

A thread says in machine code that it parks: it gets back into Python only when the interpreter's lock is free, and a
caller that computes between two runs would otherwise take it for one that still looks for work.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from emberlet.errors import BackendError
from emberlet.sizes.size import typical

from ..device import lock
from ..wasm.kernels import split

MOST = 8  # threads of a plan
PATIENCE = 4000  # looks of a thread for work after a run, before it parks: about 100 us
BACKWARD = 1 << 15  # of a step: each thread takes its last task first
PARTS = 8  # of a step that one thread runs backward
TASKS = 2  # of a shared step for each thread; all of them are at most 16, the bits for them in the word at `control`

# At the address of `control`, in lines of 64 bytes: the number of the shared step, how many threads the plan has
# scratch memory for, how many tasks the step has, with BACKWARD, and a bit for each that is taken, in 24, 8, 16 and
# 16 bits; how many tasks are done; whether a
# plan runs; the step, the plan's memory and the system's yield; of each thread but the caller's, whether it parks.
_LINES = 5
_COMMON = """
declare i64 @llvm.cttz.i64(i64, i1)
declare i64 @llvm.ctlz.i64(i64, i1)

define internal void @one(ptr %memory, ptr %step, i32 %part, i32 %parts, i32 %thread) alwaysinline {
  %function = load ptr, ptr %step
  %behind = getelementptr i8, ptr %step, i64 8
  %arguments = load ptr, ptr %behind
  call void %function(ptr %memory, ptr %arguments, i32 %part, i32 %parts, i32 %thread)
  ret void
}

define internal void @help(ptr %control, i32 %thread) alwaysinline {
  %done.at = getelementptr i8, ptr %control, i64 64
  %step.at = getelementptr i8, ptr %control, i64 192
  %memory.at = getelementptr i8, ptr %control, i64 200
  %own = zext i32 %thread to i64
  br label %take
take:
  %word = load atomic i64, ptr %control acquire, align 8
  %moved = lshr i64 %word, 16
  %tasks = and i64 %moved, 255
  %one = shl i64 1, %tasks
  %all = sub i64 %one, 1
  %others = xor i64 %word, -1
  %free = and i64 %others, %all
  %left = icmp ne i64 %free, 0
  %moved.more = lshr i64 %word, 32
  %threads = and i64 %moved.more, 255
  %room = icmp ult i64 %own, %threads
  %may = and i1 %left, %room
  br i1 %may, label %try, label %out
try:
  %share = mul i64 %own, %tasks
  %begin = udiv i64 %share, %threads
  %share.end = add i64 %share, %tasks
  %end = udiv i64 %share.end, %threads
  %from = shl i64 -1, %begin
  %to = shl i64 -1, %end
  %mine = xor i64 %from, %to
  %own.free = and i64 %free, %mine
  %any = icmp ne i64 %own.free, 0
  %some = select i1 %any, i64 %own.free, i64 %free
  %first = call i64 @llvm.cttz.i64(i64 %some, i1 true)
  %above = call i64 @llvm.ctlz.i64(i64 %some, i1 true)
  %last = sub i64 63, %above
  %order = and i64 %moved, BACKWARD
  %backward = icmp ne i64 %order, 0
  %task = select i1 %backward, i64 %last, i64 %first
  %bit = shl i64 1, %task
  %following = or i64 %word, %bit
  %tried = cmpxchg ptr %control, i64 %word, i64 %following acq_rel monotonic
  %taken = extractvalue { i64, i1 } %tried, 1
  br i1 %taken, label %work, label %take
work:
  %step = load ptr, ptr %step.at
  %memory = load ptr, ptr %memory.at
  %part = trunc i64 %task to i32
  %parts = trunc i64 %tasks to i32
  call void @one(ptr %memory, ptr %step, i32 %part, i32 %parts, i32 %thread)
  %before = atomicrmw add ptr %done.at, i32 1 release
  br label %take
out:
  ret void
}

define internal void @rest() alwaysinline {
  PAUSE
  ret void
}
"""
# Runs `count` steps: of each, the address of its function, that of its arguments, and its tasks, with BACKWARD.
_RUN = """
define void @run(ptr %memory, ptr %steps, i64 %count, ptr %control, i32 %threads) {
  %done.at = getelementptr i8, ptr %control, i64 64
  %step.at = getelementptr i8, ptr %control, i64 192
  %memory.at = getelementptr i8, ptr %control, i64 200
  %yield.at = getelementptr i8, ptr %control, i64 208
  %none = icmp eq i64 %count, 0
  br i1 %none, label %out, label %step
step:
  %n = phi i64 [ 0, %0 ], [ %next, %stepped ]
  %at = getelementptr { ptr, ptr, i64 }, ptr %steps, i64 %n
  %tasks.at = getelementptr i8, ptr %at, i64 16
  %shared = load i64, ptr %tasks.at
  %tasks = and i64 %shared, 255
  %order = and i64 %shared, BACKWARD
  %whole = icmp ult i64 %tasks, 2
  %single = icmp ult i32 %threads, 2
  %alone = or i1 %whole, %single
  br i1 %alone, label %by_itself, label %together
by_itself:
  %forward = icmp eq i64 %order, 0
  br i1 %forward, label %at_once, label %backward
at_once:
  call void @one(ptr %memory, ptr %at, i32 0, i32 1, i32 0)
  br label %stepped
backward:
  %parts = trunc i64 %tasks to i32
  br label %part
part:
  %behind = phi i32 [ %parts, %backward ], [ %number.of, %part ]
  %number.of = sub i32 %behind, 1
  call void @one(ptr %memory, ptr %at, i32 %number.of, i32 %parts, i32 0)
  %first = icmp eq i32 %number.of, 0
  br i1 %first, label %stepped, label %part
together:
  store ptr %at, ptr %step.at
  store ptr %memory, ptr %memory.at
  store atomic i32 0, ptr %done.at monotonic, align 4
  %before = load atomic i64, ptr %control monotonic, align 8
  %number = lshr i64 %before, 40
  %following = add i64 %number, 1
  %high = shl i64 %following, 40
  %own = zext i32 %threads to i64
  %limit = shl i64 %own, 32
  %middle = shl i64 %shared, 16
  %upper = or i64 %high, %limit
  %word = or i64 %upper, %middle
  store atomic i64 %word, ptr %control release, align 8
  call void @help(ptr %control, i32 0)
  br label %wait
wait:
  %spun = phi i32 [ 0, %together ], [ %more, %again ]
  %done = load atomic i32, ptr %done.at acquire, align 4
  %finished = zext i32 %done to i64
  %all = icmp eq i64 %finished, %tasks
  br i1 %all, label %stepped, label %spin
spin:
  call void @rest()
  %more = add i32 %spun, 1
  %long = icmp ugt i32 %more, 2000
  br i1 %long, label %yield, label %again
yield:
  %function = load ptr, ptr %yield.at
  %ignored = call i32 %function()
  br label %again
again:
  br label %wait
stepped:
  %next = add i64 %n, 1
  %further = icmp ult i64 %next, %count
  br i1 %further, label %step, label %out
out:
  ret void
}
"""
# Takes tasks until it has looked `patience` times in vain while no plan runs. After it says that it parks, it looks
# once more, for a run that has begun meanwhile.
_WORK = """
define void @work(ptr %control, i32 %thread, i32 %patience) {
  %runs.at = getelementptr i8, ptr %control, i64 128
  %parks = getelementptr i8, ptr %control, i64 256
  %before = sub i32 %thread, 1
  %parks.at = getelementptr i32, ptr %parks, i32 %before
  br label %begin
begin:
  store atomic i32 0, ptr %parks.at seq_cst, align 4
  br label %look
look:
  %idle = phi i32 [ 0, %begin ], [ %longer, %look ]
  call void @help(ptr %control, i32 %thread)
  call void @rest()
  %runs = load atomic i32, ptr %runs.at monotonic, align 4
  %one = add i32 %idle, 1
  %going = icmp ne i32 %runs, 0
  %longer = select i1 %going, i32 0, i32 %one
  %enough = icmp ugt i32 %longer, %patience
  br i1 %enough, label %park, label %look
park:
  store atomic i32 1, ptr %parks.at seq_cst, align 4
  %last = load atomic i32, ptr %runs.at seq_cst, align 4
  %begun = icmp ne i32 %last, 0
  br i1 %begun, label %begin, label %out
out:
  ret void
}
"""
RUNS = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_uint32
)  # run
_WORKS = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32)


def text(name: str, triple: str) -> str:
    """The module of the function "run" or "work", for a system by LLVM's name."""
    declared = pause = ""
    if triple.startswith("x86"):
        pause, declared = "call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"
    elif triple.startswith(("aarch64", "arm64")):
        pause, declared = "call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"
    body = _COMMON.replace("PAUSE", pause) + (_RUN if name == "run" else _WORK)
    return declared + "\n" + body.replace("BACKWARD", str(BACKWARD))


_set: list[int] = []  # the number that was set, if one was


def set_threads(count: int | None) -> int | None:
    """Set how many threads, 1 to 8, plans made from now on may have; None for as many as the process has processors, at
    most 8. Returns the previous setting. Raises BackendError."""
    whole = isinstance(count, int) or hasattr(count, "__index__")  # the latter: NumPy's integers
    if count is not None and not (whole and 1 <= count <= MOST):
        raise BackendError(f"a plan runs on 1 to {MOST} threads, or on the system's number with None; found {count!r}")
    before = _set[0] if _set else None
    _set[:] = [] if count is None else [int(count)]
    return before


def threads() -> int:
    """How many threads a plan has that is made now."""
    if _set:
        return _set[0]
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(MOST, here)


def tasks(function: Any, count: int, backward: bool = False) -> int:
    """How many tasks `count` threads share a kernel's function in, with BACKWARD if the last one is to be first: one
    for each, if more of them would do more. A step that threads of a plan do not share goes forward."""
    steps = int(typical(function.steps))
    parts = count if function.repeats else TASKS * count
    many = min(steps, parts) if count > 1 and split.shares(function) else 1
    if not backward or (count > 1 and many == 1):
        return many
    return BACKWARD | (many if many > 1 else min(steps, PARTS))


class Pool:
    """The threads that help, and the memory by which they hear of work."""

    def __init__(self) -> None:
        self.memory = (ctypes.c_char * (64 * (_LINES + 1)))()
        self.control = (ctypes.addressof(self.memory) + 63) // 64 * 64
        self._runs = ctypes.c_int32.from_address(self.control + 128)
        ctypes.c_void_p.from_address(self.control + 208).value = _yield()
        self._lock = lock()
        self._parks = (ctypes.c_int32 * MOST).from_address(self.control + 256)
        self._gates: list[Any] = []  # one for each thread, held until it may look for work

    @contextmanager
    def taken(self, count: int, code: Any) -> Iterator[int]:
        """How many threads a run has: `count`, fewer if the system starts no more, or 1 if another run has them. code:
        that of the function "work"."""
        if not self._lock.acquire(False):
            yield 1
            return
        try:
            self._runs.value = 1
            many = 1
            while many < count and self._call(many - 1, code):
                many += 1
            yield many
        finally:
            self._runs.value = 0
            self._lock.release()

    def _call(self, n: int, code: Any) -> bool:
        """Let thread n look for work, if it parks. Returns False if the system does not start it."""
        if n == len(self._gates):
            self._gates.append(threading.Lock())
            try:
                threading.Thread(target=self._help, args=(n, code), name=f"emberlet-{n + 1}", daemon=True).start()
            except RuntimeError:
                self._gates.pop()
                return False
        elif self._parks[n]:
            self._parks[n] = 0
            if self._gates[n].locked():  # else it was let through before, and has not come to its gate yet
                self._gates[n].release()
        return True

    def _help(self, n: int, code: Any) -> None:
        work, gate = _WORKS(code.address), self._gates[n]
        gate.acquire()
        while True:
            work(self.control, n + 1, PATIENCE)
            gate.acquire()


def _yield() -> int | None:
    """The address of the system's function by which a thread lets others run."""
    library = ctypes.WinDLL("kernel32") if os.name == "nt" else ctypes.CDLL(None)  # type: ignore[attr-defined]
    found = library.SwitchToThread if os.name == "nt" else library.sched_yield
    return ctypes.cast(found, ctypes.c_void_p).value


_pools: list[Pool] = []


def pool() -> Pool:
    """The threads of this process."""
    if not _pools:
        _pools.append(Pool())
    return _pools[0]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.clear)  # whose threads are only the parent's
