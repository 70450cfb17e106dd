"""The training or the validation of one epoch, as metrics and events see it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ...data import Progress
from ..metric import MetricMetadata
from .batches import as_tensors
from .events import Events, Step, values

if TYPE_CHECKING:
    from .learner import Learner


class Epoch:
    """Updates metrics and reports steps."""

    def __init__(self, learner: Learner, split: str, epoch: int, loader: Iterable[Any], events: Events) -> None:
        self._learner, self._split, self._epoch, self._events = learner, split, epoch, events
        self._metrics = learner.metrics[split]
        width = len(learner.devices) * (learner.group.size if learner.group else 1) if split == "train" else 1
        length = _length(loader)
        self._length = None if length is None else -(-length // width)
        self._total = loader.num_items() if hasattr(loader, "num_items") else None
        self.steps = self._items = self._new = 0
        self._entries: list[Any] = []
        self._start = time.monotonic()
        for metric in self._metrics:
            metric.clear()
        events.epoch(split, epoch)

    def add(self, item: Any, items: int, lr: float | None) -> None:
        """Update the metrics with an output."""
        self._new += items
        progress = None if self._total is None else Progress(self._items + self._new, self._total)
        metadata = MetricMetadata(
            epoch=self._epoch, epoch_total=self._learner.num_epochs, iteration=self.steps,
            iteration_total=self._length, lr=lr, progress=progress,
        )  # fmt: skip
        self._entries = [metric.update(item, metadata) for metric in self._metrics]

    def told(self, lr: float | None) -> None:
        """Report the step."""
        step = Step(self._split, self._epoch, self.steps, self._length, self._new, self._entries, lr, self._metrics)
        self._items += self._new
        self._new = 0
        self._events.step(step)

    def end(self) -> None:
        """Note the values of the epoch, unless it was interrupted."""
        if self._learner.interrupter.stopped is not None:
            return
        found = values(self._metrics)
        self._learner.history.add(self._split, self._epoch, found)
        self._events.epoch_end(self._split, self._epoch, found, time.monotonic() - self._start, self._items)


def _length(loader: Iterable[Any]) -> int | None:
    try:
        return len(loader)  # type: ignore[arg-type]
    except TypeError:
        return None


def batches_of(loader: Iterable[Any], epoch: int) -> Iterable[Any]:
    """The batches of an epoch, in its order. NumPy's arrays in a batch without tensors become tensors."""
    if hasattr(loader, "set_epoch"):
        loader.set_epoch(epoch - 1)
    return map(as_tensors, loader)
