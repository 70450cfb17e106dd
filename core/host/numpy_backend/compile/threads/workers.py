"""Threads that run their parts of a plan beside the thread that calls it.

NumPy lets other threads run while it computes, and OpenBLAS multiplies in the thread that asks if its own number of
threads is 1. A worker waits for a lock while it has nothing to do, which takes no processor time. The parts of a plan
meet where one reads what another writes: without Python's lock where their steps run without it (`native/`).
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from .... import blas_kernels
from ..native.machine import Machine
from ..native.records import Planned
from ..native.semaphores import Semaphores

Calls = Sequence[tuple[Callable[..., Any], Sequence[Any]]]

MOST = 4  # maximum threads of a plan: Python's own lock would hold up more of them
PATIENCE = 1.0  # seconds after which a thread that waits looks whether it waits in vain
LEAVING = 5.0  # seconds that the end of the process waits for a NumPy call of a worker


class Stopped(BaseException):
    """Another thread of the same call has failed."""


@cache
def _blas() -> tuple[Callable[[], int], Callable[[int], Any]] | None:
    """OpenBLAS's functions that get and set its number of threads; None where NumPy has another BLAS."""
    found = blas_kernels.function("get_num_threads"), blas_kernels.function("set_num_threads")
    return None if None in found else found


def available() -> int:
    """The number of threads for a plan: those of OpenBLAS. 1 where they are unknown or more than MOST, for which
    OpenBLAS's own threads are better."""
    blas = _blas()
    count = blas[0]() if blas else 1
    return count if count <= MOST else 1


class Meeting:
    """Where the threads of one call at a time wait for each other. error: what the first thread that failed raised."""

    __slots__ = ("_done", "_locks", "_semaphores", "error", "stopped", "threads")

    def __init__(self, threads: int, machine: Machine | None = None) -> None:
        self.threads = threads
        self.error: BaseException | None = None
        self.stopped = False
        # [number of the meeting % 2][who has come][who waits for it]: a thread may come to the next meeting before
        # another has seen that it came to this one.
        self._locks = [[[_held() for _ in range(threads)] for _ in range(threads)] for _ in range(2)]
        self._semaphores = None if machine is None else Semaphores(machine, threads)
        self._done = [_held() for _ in range(threads)]

    def step(self, thread: int, number: int) -> Planned:
        """A meeting as a step of a thread."""
        found = None if self._semaphores is None else self._semaphores.meeting(thread, number)
        return self.of(thread, number), (), 0.0, found

    def of(self, thread: int, number: int) -> Callable[[], None]:
        """The function by which a thread says that it has come to a meeting, and waits for the others. It raises
        Stopped where one of them has failed."""
        others = [t for t in range(self.threads) if t != thread]
        locks = self._locks[number % 2]
        give = [locks[thread][t].release for t in others]
        take = [locks[t][thread] for t in others]

        def meet() -> None:
            try:
                for release in give:
                    release()
            except RuntimeError:  # `stop` has released it
                raise Stopped from None
            for lock in take:
                self._wait(lock)

        return meet

    def _wait(self, lock: Any) -> None:
        while not lock.acquire(True, PATIENCE):
            if self.stopped:
                break
        if self.stopped:
            raise Stopped

    def stop(self, error: BaseException | None) -> None:
        """Let no thread wait for one that has failed."""
        self.stopped = True
        if self._semaphores is not None:
            self._semaphores.stop()
        if self.error is None and not isinstance(error, Stopped):
            self.error = error
        for lock in (*(lock for two in self._locks for row in two for lock in row), *self._done):
            try:
                lock.release()
            except RuntimeError:  # it is free already
                pass

    def done(self, thread: int) -> None:
        """A worker has run its part."""
        try:
            self._done[thread].release()
        except RuntimeError:
            pass

    def join(self) -> None:
        """Wait until all workers have run their parts."""
        for lock in self._done[1:]:
            self._wait(lock)


def _held() -> Any:
    lock = threading.Lock()
    lock.acquire()
    return lock


class _Worker:
    def __init__(self) -> None:
        self.free = threading.Lock()  # held while a call has this worker
        self.job: tuple[Meeting, int, Calls] | None = None
        self._wake = _held()
        threading.Thread(target=self._work, name="emberlet-plan", daemon=True).start()

    def start(self, meeting: Meeting, thread: int, calls: Calls) -> None:
        self.job = (meeting, thread, calls)
        self._wake.release()

    def _work(self) -> None:
        with np.errstate(all="ignore"):
            while True:
                self._wake.acquire()
                if self.job is not None:
                    self._run(*self.job)

    def _run(self, meeting: Meeting, thread: int, calls: Calls) -> None:
        try:
            for function, args in calls:
                if meeting.stopped:
                    break
                function(*args)
        except BaseException as error:
            meeting.stop(error)
        self.job = None  # and with it the memory of the plan
        self.free.release()
        meeting.done(thread)


_workers: list[_Worker] = []
_calling = threading.Lock()  # held by the call that has the workers
_usual = 0  # OpenBLAS's number of threads outside of such a call, while there is one


def run(meeting: Meeting, parts: Sequence[Calls], alone: Calls) -> None:
    """Run the parts of a plan, the first in this thread; `alone`, the same calls in one order, where the workers are in
    use by another call or the process may have one thread only. Raises what a part raises, once no part runs any more.
    """
    global _usual
    blas = _blas()
    if blas is None or not _calling.acquire(False):
        _in_order(alone)
        return
    try:
        before = blas[0]()
        team = _taken(len(parts) - 1) if before >= len(parts) else None
        if team is None:
            _in_order(alone)
            return
        try:
            _usual = before
            blas[1](1)
            _together(meeting, parts, team)
        finally:
            blas[1](before)
            _usual = 0
    finally:
        _calling.release()


def _in_order(calls: Calls) -> None:
    for function, args in calls:
        function(*args)


def _together(meeting: Meeting, parts: Sequence[Calls], team: list[_Worker]) -> None:
    started: list[_Worker] = []
    try:
        for thread, worker in enumerate(team, 1):
            started.append(worker)
            worker.start(meeting, thread, parts[thread])
        for function, args in parts[0]:
            if meeting.stopped:
                raise Stopped
            function(*args)
        meeting.join()
        if meeting.error is not None:
            raise meeting.error
    except BaseException as error:
        meeting.stop(error)
        for worker in team:
            if worker not in started:
                worker.free.release()
            elif worker.free.acquire(True, LEAVING):
                worker.free.release()
            else:
                _workers.remove(worker)
        if isinstance(error, Stopped) and meeting.error is not None:
            raise meeting.error from None
        raise


def _taken(count: int) -> list[_Worker] | None:
    """So many workers, which are this call's now; None where they do not stop or no thread can be started."""
    try:
        while len(_workers) < count:
            _workers.append(_Worker())
    except RuntimeError:  # no threads here, or no more of them
        return None
    team: list[_Worker] = []
    for worker in _workers[:count]:
        # Only this call has workers. One that is not free without a job was taken by a call that was interrupted.
        if not worker.free.acquire(True, PATIENCE) and worker.job is not None:
            for other in team:
                other.free.release()
            return None
        team.append(worker)
    return team


def _forget() -> None:
    """A forked process has none of the threads, and nobody releases the locks that they held."""
    global _calling, _usual
    _workers.clear()
    _calling = threading.Lock()
    blas = _blas()
    if _usual and blas:
        blas[1](_usual)
        _usual = 0


def _leave() -> None:
    """Wait for what workers still compute: libraries are taken down behind the end of Python."""
    for worker in _workers:
        job = worker.job
        if job is not None:
            job[0].stop(None)
            worker.free.acquire(True, LEAVING)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
atexit.register(_leave)
