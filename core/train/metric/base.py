"""What metrics are made of: Metric, Numeric, their state and their entries."""

from ...errors import ArgumentError


class MetricMetadata:
    """Where the training stands.

    epoch, epoch_total: counted from 1. iteration, iteration_total: steps of this epoch. lr: the learning rate, None in
    validation. progress: an emberlet.data.Progress, the items of this epoch.
    """

    def __init__(self, epoch=1, epoch_total=1, iteration=0, iteration_total=0, lr=None, progress=None):
        self.epoch = epoch
        self.epoch_total = epoch_total
        self.iteration = iteration
        self.iteration_total = iteration_total
        self.lr = lr
        self.progress = progress


class MetricEntry:
    """What a metric says after a batch.

    name: the metric's. formatted: text for people. serialize: text for the log: "value,count" of the batch, or any text
    for a metric that is no number.
    """

    def __init__(self, name, formatted, serialize):
        self.name = name
        self.formatted = formatted
        self.serialize = serialize

    def __repr__(self):
        return "MetricEntry({}: {})".format(self.name, self.formatted)


class FormatOptions:
    """How the value of a metric is written: its name, the digits behind the point, its unit."""

    def __init__(self, name):
        self.name = name
        self._precision = 2
        self._unit = ""

    def precision(self, digits):
        self._precision = digits
        return self

    def unit(self, unit):
        self._unit = unit
        return self

    def text(self, value):
        """The value with its unit: "91.25 %"."""
        text = "{:.{}f}".format(value, self._precision)
        return text + " " + self._unit if self._unit else text

    def entry(self, running, value, count):
        """The MetricEntry of a batch: `value` of `count` items, `running` of everything since the last clear."""
        formatted = "epoch {} - batch {}".format(self.text(running), self.text(value))
        return MetricEntry(self.name, formatted, "{!r},{}".format(float(value), count))


class NumericMetricState:
    """The mean of a metric over batches, weighted with their sizes."""

    def __init__(self):
        self.reset()

    def reset(self):
        self._sum = 0.0
        self._count = 0

    def update(self, value, batch_size, format):
        """Add the value of a batch; returns its MetricEntry. format: a FormatOptions. Raises ArgumentError for a
        negative batch_size."""
        if batch_size < 0:
            raise ArgumentError("a batch has no negative number of items, found {}".format(batch_size))
        if batch_size:  # an empty batch has a mean that is NaN
            self._sum += value * batch_size
            self._count += batch_size
        return format.entry(self.value(), value, batch_size)

    def value(self):
        """The mean; NaN before the first item."""
        return self._sum / self._count if self._count else float("nan")


class Metric:
    """A metric. One of your own has the class of its input as `Input` (None if it needs none), a name, `update` and
    `clear`.

    higher_is_better: which of two values is the better one; None where neither is.
    """

    Input = None
    name = "Metric"
    higher_is_better = None

    def update(self, item, metadata=None):
        """Take a batch; returns a MetricEntry. item: an Input, or an object whose `adapt` gives one."""
        raise NotImplementedError(type(self).__name__ + ".update")

    def clear(self):
        """Forget everything, before the next epoch."""
        raise NotImplementedError(type(self).__name__ + ".clear")

    def compute(self):
        """The result for everything since the last clear."""
        raise NotImplementedError(type(self).__name__ + ".compute")

    def input_of(self, item):
        """The Input that is `item`, or that its `adapt` gives. Raises ArgumentError."""
        if self.Input is None or isinstance(item, self.Input):
            return item
        adapt = getattr(item, "adapt", None)
        if adapt is None:
            raise ArgumentError(
                "{} takes {}, found {}; pass one, or an object with adapt()".format(
                    self.name, self.Input.__name__, type(item).__name__
                )
            )
        return adapt(self.Input)


class Numeric(Metric):
    """A metric that is a number, so that it can be plotted."""

    def value(self):
        """The number for everything since the last clear; NaN before the first item."""
        raise NotImplementedError(type(self).__name__ + ".value")

    def compute(self):
        return self.value()


class Averaged(Numeric):
    """A metric that is the mean over items of what its batches give to `_state`."""

    def __init__(self):
        self._state = NumericMetricState()

    def value(self):
        return self._state.value()

    def clear(self):
        self._state.reset()


class Adaptor:
    """Base of the outputs of a step, from which metrics take their inputs.

    `adapt(kind)` makes an input of the class `kind` from the attributes of the same names: a LossInput from `loss`, an
    AccuracyInput from `output` and `targets`. Override it for other names.
    """

    def adapt(self, kind):
        """Raises ArgumentError if an attribute is missing."""
        lacking = [name for name in kind.FIELDS if not hasattr(self, name)]
        if lacking:
            raise ArgumentError(
                "{} has no {}, which {} needs; give it that attribute, or override adapt()".format(
                    type(self).__name__, " and no ".join(lacking), kind.__name__
                )
            )
        return kind.of(self)
