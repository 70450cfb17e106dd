"""What a learner reports while it trains. Loggers and renderers are Events; what they do not override does nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .learner import Learner


class Step:
    """One step of an epoch.

    split: "train" or "valid"; epoch, iteration: from 1; iterations: of the epoch, or None where nobody knows; items:
    in this batch; entries: the metrics' MetricEntry; lr: the rate; metrics: the metrics themselves.
    """

    __slots__ = ("entries", "epoch", "items", "iteration", "iterations", "lr", "metrics", "split")

    def __init__(
        self, split: str, epoch: int, iteration: int, iterations: int | None, items: int, entries: list[Any],
        lr: float | None, metrics: list[Any],
    ) -> None:  # fmt: skip
        self.split, self.epoch, self.iteration, self.iterations = split, epoch, iteration, iterations
        self.items, self.entries, self.lr, self.metrics = items, entries, lr, metrics

    @property
    def values(self) -> dict[str, float]:
        """{metric: its value over the epoch so far}, computed now."""
        return values(self.metrics)


def values(metrics: Iterable[Any]) -> dict[str, float]:
    """{name: value} of those metrics that are numbers and have one."""
    found = {}
    for metric in metrics:
        value = metric.value() if hasattr(metric, "value") else None
        if value is not None and (value == value or metric.Input is not None):  # no learning rate in validation
            found[metric.name] = float(value)
    return found


class Events:
    """Base of loggers and renderers. Epochs count from 1; split is "train" or "valid"."""

    def begin(self, learner: Learner, epoch: int) -> None:
        """A training begins with this epoch."""

    def epoch(self, split: str, epoch: int) -> None:
        """The training or the validation of an epoch begins."""

    def step(self, step: Step) -> None:
        """A step is done."""

    def epoch_end(self, split: str, epoch: int, values: dict[str, float], seconds: float, items: int) -> None:
        """The training or the validation of an epoch is done. values: of the metrics, over the whole of it."""

    def checkpoint(self, epoch: int, deleted: list[int]) -> None:
        """A checkpoint is written, and those of older epochs are deleted."""

    def end(self, reason: str | None, summary: Any) -> None:
        """The training ended: after its last epoch (reason is None), or before."""

    def close(self) -> None:
        """Give back files, threads and the terminal; also after an error."""


class All(Events):
    """Hands every event to each of several."""

    def __init__(self, parts: list[Events]) -> None:
        self.parts = parts

    def begin(self, learner: Learner, epoch: int) -> None:
        for part in self.parts:
            part.begin(learner, epoch)

    def epoch(self, split: str, epoch: int) -> None:
        for part in self.parts:
            part.epoch(split, epoch)

    def step(self, step: Step) -> None:
        for part in self.parts:
            part.step(step)

    def epoch_end(self, split: str, epoch: int, values: dict[str, float], seconds: float, items: int) -> None:
        for part in self.parts:
            part.epoch_end(split, epoch, values, seconds, items)

    def checkpoint(self, epoch: int, deleted: list[int]) -> None:
        for part in self.parts:
            part.checkpoint(epoch, deleted)

    def end(self, reason: str | None, summary: Any) -> None:
        for part in self.parts:
            part.end(reason, summary)

    def close(self) -> None:
        for part in reversed(self.parts):
            part.close()
