"""How the training goes: the learning rate and the speed."""

from time import time

from .base import FormatOptions, MetricEntry, Numeric


class LearningRateMetric(Numeric):
    """The learning rate of the last step."""

    name = "Learning rate"

    def __init__(self):
        self.clear()

    def update(self, item=None, metadata=None):
        """Takes `metadata.lr`."""
        if metadata is not None and metadata.lr is not None:
            self._last = float(metadata.lr)
        return MetricEntry(self.name, "{:.2e}".format(self._last), "{!r},1".format(self._last))

    def value(self):
        return self._last

    def clear(self):
        self._last = float("nan")


class IterationSpeedMetric(Numeric):
    """Items a second since the first update after a clear, where `metadata.progress` says how many items there were,
    else steps a second. clock: a function of the time in seconds."""

    name = "Iteration speed"
    higher_is_better = True

    def __init__(self, clock=time):
        self._clock = clock
        self.clear()

    def update(self, item=None, metadata=None):
        progress = getattr(metadata, "progress", None)
        now = self._clock()
        done = self._steps + 1 if progress is None else progress.items_processed
        self._steps += 1
        if self._first is None:
            self._first = self._last = (now, done)
            return MetricEntry(self.name, "-", "nan,0")
        count = done - self._last[1]
        batch = _rate(self._last, (now, done))
        self._last = (now, done)
        unit = "steps/s" if progress is None else "items/s"
        return FormatOptions(self.name).unit(unit).entry(self.value(), batch, count)

    def value(self):
        return float("nan") if self._first is None else _rate(self._first, self._last)

    def clear(self):
        self._first = self._last = None
        self._steps = 0


def _rate(start, end):
    seconds = end[0] - start[0]
    return (end[1] - start[1]) / seconds if seconds > 0 else float("nan")
