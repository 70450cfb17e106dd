"""An interrupt at a random moment of a call, raised by another thread as a watchdog raises it."""

from __future__ import annotations

import ctypes
import queue
import random
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from soak import models
from soak.telling import Clock, Told

WHAT = "KeyboardInterrupt, SystemExit or MemoryError at a random moment of a compiled, eager or plan call"
NEEDS = ("gpu-driver",)
SHARE = 3

ERRORS: tuple[type[BaseException], ...] = (KeyboardInterrupt, SystemExit, MemoryError)


class Interrupter(threading.Thread):
    """Raises exceptions in the thread that made it."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._target = ctypes.c_ulong(threading.get_ident())
        self._moments: queue.SimpleQueue[tuple[int, float, type[BaseException]]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._open = 0  # the number of the call that may be interrupted now
        self._count = 0
        self.start()

    def run(self) -> None:
        while True:
            number, delay, error = self._moments.get()
            end = time.perf_counter() + delay
            while time.perf_counter() < end:
                time.sleep(0)
            with self._lock:
                if self._open == number:
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(self._target, ctypes.py_object(error))
                    self._open = 0

    def interrupt(self, call: Callable[[], Any], delay: float, error: type[BaseException]) -> bool:
        """Make the call, with `error` raised in it after `delay` seconds; whether it was."""
        self._count += 1
        try:
            self._open = self._count
            try:
                self._moments.put((self._count, delay, error))
                call()
            finally:
                with self._lock:
                    missed, self._open = self._open == self._count, 0
            for _ in range(0 if missed else 100):  # it will arrive, unless it hit a destructor
                time.sleep(0.001)
        except error:
            return True
        return False


def run(clock: Clock, choose: random.Random) -> Told:
    told = Told("interrupts")
    sys.unraisablehook = lambda told: None  # an interrupt within __del__ is printed and does not reach the caller
    want = models.wanted(models.given(4))
    calls = models.ways()
    took = {}
    for name, call in calls.items():
        begin = time.perf_counter()
        call()
        took[name] = time.perf_counter() - begin
    interrupter = Interrupter()
    by_call = dict.fromkeys(calls, 0)
    while clock and len(told.failures) < 20:
        name, error = choose.choice(list(calls)), choose.choice(ERRORS)
        hit = True
        try:
            hit = interrupter.interrupt(calls[name], choose.uniform(0.0, took[name]), error)
        except Exception as other:
            told.failures.append(f"{name}, interrupted by {error.__name__}: {other!r}")
        by_call[name] += hit
        told.tried += hit
        for again in choose.sample(list(calls), 2):
            try:
                if off := models.wrong(calls[again](), want):
                    told.failures.append(f"{again} after {error.__name__} in {name}: {off}")
            except Exception as other:
                told.failures.append(f"{again} after {error.__name__} in {name}: {other!r}")
            told.checked += 1
    told.facts["interrupts by call"] = by_call
    begin = time.process_time()
    time.sleep(0.5)
    told.facts["processor seconds of an idle second"] = round(2 * (time.process_time() - begin), 2)
    return told
