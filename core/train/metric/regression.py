"""Errors of predicted numbers: mean absolute and squared error, their root, and the share of variance explained."""

from ...errors import ShapeError
from ...functional.promotion import widened
from .base import Averaged, FormatOptions, Numeric
from .inputs import RegressionInput


def _checked(name, item):
    """Outputs and targets as floats: bytes would wrap around, and squares of float16 overflow."""
    if item.output.shape != item.targets.shape:
        raise ShapeError(
            "{} needs outputs and targets of the same shape, found {} and {}; reshape one".format(
                name, item.output.shape, item.targets.shape
            )
        )
    return widened(item.output)[0], widened(item.targets)[0]


class MaeMetric(Averaged):
    """The mean absolute error of all elements."""

    Input = RegressionInput
    name = "Mean absolute error"
    higher_is_better = False

    def update(self, item, metadata=None):
        """item: a RegressionInput. Raises ShapeError."""
        output, targets = _checked(self.name, self.input_of(item))
        errors = self._errors(output - targets)
        batch = errors.mean().item() if errors.size else float("nan")
        format = FormatOptions(self.name).precision(4)
        self._state.update(batch, errors.size, format)
        return format.entry(self.value(), self._of(batch), errors.size)

    def _errors(self, difference):
        return abs(difference)

    def _of(self, mean):
        return mean

    def value(self):
        return self._of(self._state.value())


class MseMetric(MaeMetric):
    """The mean squared error of all elements."""

    name = "Mean squared error"

    def _errors(self, difference):
        return difference * difference


class RmseMetric(MseMetric):
    """The root of the mean squared error of all elements."""

    name = "Root mean squared error"

    def _of(self, mean):
        return mean**0.5


class R2Metric(Numeric):
    """The coefficient of determination R²: 1 less the squared error over the variance of the targets.

    Of several outputs (n, outputs) it is their mean. Of targets that are all equal it is 1 if every prediction is
    right, else 0. It is NaN before the second item.
    """

    Input = RegressionInput
    name = "R²"
    higher_is_better = True

    def __init__(self):
        self.clear()

    def update(self, item, metadata=None):
        """item: a RegressionInput, (n,) or (n, outputs). Raises ShapeError."""
        output, targets = _checked(self.name, self.input_of(item))
        count = targets.shape[0] if targets.ndim else 1
        shape = (count, targets.size // count if count else 1)
        output, targets = output.reshape(shape), targets.reshape(shape)
        if not count:
            return FormatOptions(self.name).precision(4).entry(self.value(), float("nan"), 0)
        means = targets.mean(0)
        spread = targets - means
        errors = output - targets
        part = (count, means.tolist(), (spread * spread).sum(0).tolist(), (errors * errors).sum(0).tolist())
        self._state = part if self._state is None else _merged(self._state, part)
        return FormatOptions(self.name).precision(4).entry(self.value(), _determined(part), count)

    def value(self):
        return _determined(self._state)

    def clear(self):
        self._state = None


def _merged(a, b):
    """Two parts as one: counts, means, squared distances from the mean (Chan et al. 1979), squared errors."""
    if len(a[1]) != len(b[1]):
        raise ShapeError("R²: {} outputs after {}; call clear() between data sets".format(len(b[1]), len(a[1])))
    count = a[0] + b[0]
    means, spreads = [], []
    for i in range(len(a[1])):
        difference = b[1][i] - a[1][i]
        means.append(a[1][i] + difference * b[0] / count)
        spreads.append(a[2][i] + b[2][i] + difference * difference * a[0] * b[0] / count)
    return count, means, spreads, [x + y for x, y in zip(a[3], b[3])]


def _determined(state):
    if state is None or state[0] < 2:
        return float("nan")
    found = [1 - e / s if s else (0.0 if e else 1.0) for s, e in zip(state[2], state[3])]
    return sum(found) / len(found)
