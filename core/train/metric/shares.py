"""The share of right answers: accuracy, top-k accuracy, and the Hamming score of several labels."""

from ...errors import ArgumentError, ShapeError
from .base import Averaged, FormatOptions
from .inputs import AccuracyInput, ConfusionInput, class_indices


def accuracy(output, targets):
    """The share, in percent, of the rows of scores `output` (n, classes) whose largest one is at the index that
    `targets` (n,) says. Raises ShapeError."""
    targets = class_indices("accuracy", output, targets)
    return _share(output.argmax(1), targets)


def _share(found, targets, counted=None):
    """How many percent of `found` equal `targets`, where `counted`; NaN of nothing."""
    right = found.astype(targets.dtype) == targets
    total = targets.size
    if counted is not None:
        right, total = right & counted, int(counted.sum(dtype="int64").item())
    return 100.0 * right.sum(dtype="int64").item() / total if total else float("nan")


class _Shares(Averaged):
    """A metric that is the mean over items of a share in percent."""

    higher_is_better = True

    def _update(self, percent, count):
        return self._state.update(percent, count, FormatOptions(self.name).unit("%"))


class AccuracyMetric(_Shares):
    """The share of right classes in percent. pad_token: the target of rows that do not count."""

    Input = AccuracyInput
    name = "Accuracy"

    def __init__(self, pad_token=None):
        super().__init__()
        self.pad_token = pad_token

    def update(self, item, metadata=None):
        """item: an AccuracyInput. Raises ShapeError."""
        item = self.input_of(item)
        targets = class_indices(self.name, item.output, item.targets)
        found = item.output.argmax(1)
        if self.pad_token is None:
            return self._update(_share(found, targets), targets.size)
        counted = targets != self.pad_token
        return self._update(_share(found, targets, counted), int(counted.sum(dtype="int64").item()))


class TopKAccuracyMetric(_Shares):
    """The share, in percent, of rows whose right class is among those with the k highest scores; of equal ones, those
    with lower indices count as higher. pad_token: the target of rows that do not count."""

    Input = AccuracyInput

    def __init__(self, k, pad_token=None):
        super().__init__()
        if k < 1:
            raise ArgumentError("top-k accuracy needs k of at least 1, found {}".format(k))
        self.k = k
        self.pad_token = pad_token
        self.name = "Top-{} accuracy".format(k)

    def update(self, item, metadata=None):
        """item: an AccuracyInput. Raises ShapeError if there are fewer than k classes."""
        item = self.input_of(item)
        targets = class_indices(self.name, item.output, item.targets)
        if item.output.shape[1] < self.k:
            raise ShapeError("top-{} accuracy of {} classes; choose a smaller k".format(self.k, item.output.shape[1]))
        best = item.output.argtopk(self.k, 1)
        hits = (best.astype(targets.dtype) == targets.reshape((targets.size, 1))).any(1)
        count = targets.size
        if self.pad_token is not None:
            counted = targets != self.pad_token
            hits, count = hits & counted, int(counted.sum(dtype="int64").item())
        share = 100.0 * hits.sum(dtype="int64").item() / count if count else float("nan")
        return self._update(share, count)


class HammingScore(_Shares):
    """The share, in percent, of labels that are right, of those that are there and those that are not: 100 percent less
    the Hamming loss. threshold: the probability from which a label is there; sigmoid: whether outputs are scores that
    become probabilities first."""

    Input = ConfusionInput
    name = "Hamming score"

    def __init__(self, threshold=0.5, sigmoid=False):
        super().__init__()
        self.threshold = threshold
        self.sigmoid = sigmoid

    def update(self, item, metadata=None):
        """item: a ConfusionInput of several labels. Raises ShapeError."""
        item = self.input_of(item)
        if item.output.shape != item.targets.shape or item.output.ndim != 2:
            raise ShapeError(
                "the Hamming score needs outputs and targets (n, labels), found {} and {}".format(
                    item.output.shape, item.targets.shape
                )
            )
        output = item.output.sigmoid() if self.sigmoid else item.output
        return self._update(_share(output > self.threshold, item.targets.astype("bool")), item.targets.shape[0])
