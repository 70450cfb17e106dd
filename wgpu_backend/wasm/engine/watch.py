"""Ends WebAssembly of files that runs for too long, and lets Ctrl-C end it.

wasmtime checks a number at every loop and call, the epoch; a run whose deadline the epoch has reached traps. A thread
advances the epoch of an engine whose run takes too long. While a run keeps the main thread from the interpreter, no
handler of a signal can run, but the number of the signal is written to a socket, which the thread reads.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any

from ...device import lock

TICK = 0.05  # seconds between two looks at what runs
IDLE = 200  # looks at nothing after which the thread ends
_most = [600.0]  # seconds


def set_seconds(seconds: float | None) -> float | None:
    """Set how many seconds one call of a loaded `.wasm` file may take, None for any number; 600 unless set. Returns the
    previous setting."""
    before = _most[0]
    _most[0] = float("inf") if seconds is None else float(seconds)
    return None if before == float("inf") else before


class _Watch:
    """What this process watches. running: engines, whether the run is the main thread's, and when it must end."""

    def __init__(self) -> None:
        self.lock = lock()
        self.running: dict[int, tuple[Any, bool, float]] = {}
        self.thread: threading.Thread | None = None
        self.heard, self.told = socket.socketpair()
        self.heard.setblocking(False)
        self.told.setblocking(False)
        self.listener = -1  # who else wants to hear of signals: an event loop

    def begin(self, key: int, engine: Any, main: bool) -> None:
        with self.lock:
            self.running[key] = (engine, main, monotonic() + _most[0])
            if self.thread is None:
                self.thread = threading.Thread(target=self.loop, name="emberlet-watch", daemon=True)
                self.thread.start()

    def end(self, key: int) -> None:
        with self.lock:
            del self.running[key]

    def loop(self) -> None:
        idle = 0
        while True:
            signals = b""
            if select.select([self.heard], [], [], TICK)[0]:
                signals = self.heard.recv(4096)
            with self.lock:
                if signals and self.listener >= 0:
                    with suppress(OSError):
                        os.write(self.listener, signals)
                idle = 0 if self.running else idle + 1
                if idle > IDLE:
                    self.thread = None
                    return
                for engine, main, until in self.running.values():
                    if monotonic() > until or (main and signal.SIGINT in signals):
                        engine.increment_epoch()


_watch: list[_Watch] = []


def forget() -> None:
    """After a fork: the thread is the parent's."""
    _watch.clear()


@contextmanager
def watched(engine: Any) -> Iterator[None]:
    """Advance the engine's epoch if the block takes more seconds than it may, or at Ctrl-C in the main thread."""
    if not _watch:
        _watch.append(_Watch())
    watch, main, key = _watch[0], threading.current_thread() is threading.main_thread(), object()
    before = _listen(watch.told.fileno()) if main else None
    if before is not None:
        watch.listener = before
    watch.begin(id(key), engine, main)
    try:
        yield
    finally:
        watch.end(id(key))
        if before is not None:
            _listen(before)


def _listen(fd: int) -> int | None:
    """Send the numbers of signals to a file descriptor; the one before, -1 for none. None where that cannot be."""
    try:
        before = signal.set_wakeup_fd(fd, warn_on_full_buffer=False)
    except ValueError:  # in a sub-interpreter
        return None
    if before >= 0 and os.name != "posix" and fd >= 0:  # it is a socket, which os.write does not know
        signal.set_wakeup_fd(before, warn_on_full_buffer=False)
        return None
    return before
