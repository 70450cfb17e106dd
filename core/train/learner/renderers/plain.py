"""Plain lines on stderr: one for each epoch, and one now and then in between."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, TextIO

from ..events import Events, Step
from ..summary import number

if TYPE_CHECKING:
    from ..learner import Learner

EVERY = 30.0  # seconds between lines within an epoch


class PlainRenderer(Events):
    """file: where lines go, stderr by default; every: the seconds between lines within an epoch."""

    def __init__(self, file: TextIO | None = None, every: float = EVERY) -> None:
        self._file = file
        self._every = every
        self._last = time.monotonic()
        self._begin = 0.0
        self._items = 0
        self._num_epochs = 0
        self._summary = False

    def _say(self, text: str) -> None:
        print(text, file=self._file or sys.stderr, flush=True)

    def begin(self, learner: Learner, epoch: int) -> None:
        self._num_epochs, self._summary = learner.num_epochs, learner.show_summary
        if epoch > 1:
            self._say(f"going on with epoch {epoch} of {self._num_epochs}")

    def epoch(self, split: str, epoch: int) -> None:
        self._begin = self._last = time.monotonic()
        self._items = 0

    def step(self, step: Step) -> None:
        self._items += step.items
        now = time.monotonic()
        if now - self._last < self._every:
            return
        self._last = now
        of = f" of {step.iterations}" if step.iterations else ""
        rate = self._items / max(now - self._begin, 1e-9)
        self._say(f"{self._head(step.split, step.epoch)}, step {step.iteration}{of}: {_told(step.values, rate)}")

    def epoch_end(self, split: str, epoch: int, values: dict[str, float], seconds: float, items: int) -> None:
        self._say(f"{self._head(split, epoch)}: {_told(values, items / max(seconds, 1e-9))}")

    def end(self, reason: str | None, summary: Any) -> None:
        if reason is not None:
            self._say(f"ended: {reason}")
        if self._summary:
            self._say(str(summary))

    def _head(self, split: str, epoch: int) -> str:
        return f"epoch {epoch}/{self._num_epochs} {split}"


def _told(values: dict[str, float], rate: float) -> str:
    return ", ".join([*(f"{name} {number(value)}" for name, value in values.items()), f"{rate:,.0f} items/s"])
