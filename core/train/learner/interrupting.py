"""An end of the training between two steps: on request, by a key, or by a signal."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

SIGNALS = ("SIGINT", "SIGTERM")


class Interrupter:
    """Ends a training after the step that is being computed: `stop()`, from any thread. `stopped` is the reason."""

    def __init__(self) -> None:
        self.stopped: str | None = None

    def stop(self, reason: str = "stop() was called") -> None:
        """Let the training end after this step."""
        self.stopped = self.stopped or reason

    @contextlib.contextmanager
    def signals(self) -> Iterator[None]:
        """Context manager in which Ctrl-C and SIGTERM stop the training, and a second one ends it at once, as it would
        without this. Only the main thread can install it; elsewhere it does nothing. A signal that the process ignores,
        such as SIGINT in the background of a shell script, stays ignored."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before: dict[int, Any] = {}

        def handle(number: int, frame: FrameType | None) -> None:
            signal.signal(number, before[number])
            if self.stopped is None:
                self.stop(f"by {signal.Signals(number).name}")
            else:
                signal.raise_signal(number)

        for name in SIGNALS:
            number = getattr(signal, name)
            old = signal.getsignal(number)
            if old not in (None, signal.SIG_IGN):
                before[number] = old
                signal.signal(number, handle)
        try:
            yield
        finally:
            for number, old in before.items():
                signal.signal(number, old)
