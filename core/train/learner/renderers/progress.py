"""Where a training stands, for renderers: curves so far, the rate of items, and the time that is left."""

from __future__ import annotations

import time

from ..events import Step
from ..history import History

POINTS = 1200  # of a curve of steps; then every second one goes


class Progress:
    """Follows the events of a training. steps: {metric: [(position in epochs, value of a batch)]} of the training."""

    def __init__(self) -> None:
        self.history = History()
        self.steps: dict[str, list[tuple[float, float]]] = {}
        self.current: Step | None = None
        self.num_epochs = 0
        self.rate = 0.0
        self._every = 1
        self._count = self._items = 0
        self._began = self._epoch_began = time.monotonic()
        self._length = {"train": 0, "valid": 0}
        self._pace = {"train": 0.0, "valid": 0.0}  # seconds a step

    def begin(self, history: History, epoch: int, num_epochs: int) -> None:
        """A training begins with an epoch."""
        self.history, self.num_epochs = history, num_epochs
        self._began = time.monotonic()

    def epoch(self) -> None:
        """The training or the validation of an epoch begins."""
        self._epoch_began, self._items = time.monotonic(), 0

    def step(self, step: Step) -> None:
        """A step is done."""
        self.current = step
        self._items += step.items
        passed = time.monotonic() - self._epoch_began
        self.rate = self._items / max(passed, 1e-9)
        self._pace[step.split] = passed / step.iteration
        self._length[step.split] = step.iterations or max(step.iteration, self._length[step.split])
        if step.split != "train":
            return
        self._count += 1
        if self._count % self._every == 0:
            x = step.epoch - 1 + step.iteration / (step.iterations or max(step.iteration, 1))
            for entry in step.entries:
                value = _value(entry.serialize)
                if value is not None:
                    self.steps.setdefault(entry.name, []).append((x, value))
        if any(len(points) > POINTS for points in self.steps.values()):
            self._every *= 2
            self.steps = {name: points[1::2] for name, points in self.steps.items()}

    @property
    def elapsed(self) -> float:
        """Seconds since the training began."""
        return time.monotonic() - self._began

    @property
    def left(self) -> float | None:
        """Seconds until the last epoch ends at this pace; None before the first step."""
        step = self.current
        if step is None or not self.num_epochs:
            return None
        whole = {split: self._length[split] * self._pace[split] for split in ("train", "valid")}
        rest = (self._length[step.split] - step.iteration) * self._pace[step.split]
        if step.split == "train":
            rest += whole["valid"]
        return rest + (self.num_epochs - step.epoch) * (whole["train"] + whole["valid"])

    def metrics(self) -> list[str]:
        """The metrics that are numbers."""
        known = [name for split in self.history.values.values() for name in split]
        return list(dict.fromkeys([*self.steps, *known]))


def _value(line: str) -> float | None:
    try:
        return float(line.partition(",")[0])
    except ValueError:
        return None
