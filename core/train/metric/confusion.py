"""Counts of right and wrong decisions for each class, and what follows from them: precision, recall, F-beta."""

from ...errors import ArgumentError, ShapeError
from .base import FormatOptions, Metric, MetricEntry, Numeric
from .inputs import AccuracyInput, ConfusionInput, class_indices


class _Decisions(Numeric):
    """A share of counts of decisions, in percent, of all items since the last clear.

    task: "multiclass" (the top_k highest scores of a row are its decisions), "binary" or "multilabel" (probabilities
    above `threshold` are). average: "macro" (the mean over classes, but those of a multiclass task that neither occur
    nor were decided for) or "micro" (of the counts of all classes together). Where nothing is counted, a share is 0.
    """

    Input = ConfusionInput
    higher_is_better = True

    def __init__(self, task="multiclass", average="macro", threshold=0.5, top_k=1):
        if task not in ("multiclass", "binary", "multilabel"):
            raise ArgumentError("task is 'multiclass', 'binary' or 'multilabel', found {!r}".format(task))
        if average not in ("macro", "micro"):
            raise ArgumentError("average is 'macro' or 'micro', found {!r}".format(average))
        if top_k < 1:
            raise ArgumentError("top_k is at least 1, found {}".format(top_k))
        self.task = task
        self.average = average
        self.threshold = threshold
        self.top_k = top_k
        self.clear()

    def update(self, item, metadata=None):
        """item: a ConfusionInput. Raises ShapeError."""
        item = self.input_of(item)
        found, true = self._masks(item.output, item.targets)
        counts = [
            (found & true).sum(0, dtype="int64").tolist(),
            (found & ~true).sum(0, dtype="int64").tolist(),
            (~found & true).sum(0, dtype="int64").tolist(),
        ]
        if not self._counts:
            self._counts = [[0] * len(part) for part in counts]
        if len(counts[0]) != len(self._counts[0]):
            raise ShapeError(
                "{}: {} classes after {}; call clear() between data sets".format(
                    self.name, len(counts[0]), len(self._counts[0])
                )
            )
        self._counts = [[a + b for a, b in zip(x, y)] for x, y in zip(self._counts, counts)]
        batch = self._percent(counts)
        return FormatOptions(self.name).unit("%").entry(self.value(), batch, true.shape[0])

    def _masks(self, output, targets):
        """(what was decided, what is true) as bools (n, classes)."""
        if self.task == "multiclass":
            targets = class_indices(self.name, output, targets)
            count = output.shape[1]
            if self.top_k > count:
                raise ShapeError(
                    "{}: the top {} of {} classes; choose a smaller top_k".format(self.name, self.top_k, count)
                )
            best = output.argtopk(self.top_k, 1).astype("int64") if self.top_k > 1 else output.argmax(1).astype("int64")
            _check_classes(self.name, targets, count)
            true = targets.astype("int64").one_hot(count) > 0
            found = best.one_hot(count) > 0
            return (found.any(1) if self.top_k > 1 else found), true
        if output.shape != targets.shape:
            if output.size != targets.size or self.task == "multilabel":
                raise ShapeError(
                    "{} needs outputs and targets of the same shape, found {} and {}".format(
                        self.name, output.shape, targets.shape
                    )
                )
        shape = (-1, 1) if self.task == "binary" else output.shape
        return (output > self.threshold).reshape(shape), targets.astype("bool").reshape(shape)

    def _percent(self, counts):
        if self.average == "micro":
            return 100.0 * self._share(*[sum(part) for part in counts])
        classes = list(zip(*counts))
        if self.task == "multiclass":
            classes = [c for c in classes if sum(c)]
        return 100.0 * sum([self._share(*c) for c in classes]) / len(classes) if classes else float("nan")

    def _share(self, right, wrong, missed):
        """Of a class: true positives, false positives, false negatives."""
        raise NotImplementedError

    def value(self):
        return self._percent(self._counts) if self._counts else float("nan")

    def clear(self):
        self._counts = []


def _check_classes(name, targets, count):
    if targets.size:
        low, high = targets.min().item(), targets.max().item()
        if low < 0 or high >= count:
            raise ShapeError("{}: a target of {} among {} classes".format(name, low if low < 0 else high, count))


def _ratio(part, whole):
    return part / whole if whole else 0.0


class PrecisionMetric(_Decisions):
    """How many of the decisions for a class are right, in percent."""

    name = "Precision"

    def _share(self, right, wrong, missed):
        return _ratio(right, right + wrong)


class RecallMetric(_Decisions):
    """How many of the items of a class were found, in percent."""

    name = "Recall"

    def _share(self, right, wrong, missed):
        return _ratio(right, right + missed)


class FBetaScoreMetric(_Decisions):
    """The weighted harmonic mean of precision and recall, in percent; beta is how many times recall counts as much."""

    def __init__(self, beta=1.0, task="multiclass", average="macro", threshold=0.5, top_k=1):
        if not beta > 0:
            raise ArgumentError("beta is above 0, found {}".format(beta))
        self.beta = beta
        self.name = "F{:g} score".format(beta)
        super().__init__(task, average, threshold, top_k)

    def _share(self, right, wrong, missed):
        square = self.beta * self.beta
        return _ratio((1 + square) * right, (1 + square) * right + square * missed + wrong)


class ConfusionMatrix(Metric):
    """How many items of each class (rows) were taken for each class (columns): `compute()` gives nested lists."""

    Input = AccuracyInput
    name = "Confusion matrix"

    def __init__(self):
        self.clear()

    def update(self, item, metadata=None):
        """item: an AccuracyInput. Raises ShapeError."""
        item = self.input_of(item)
        targets = class_indices(self.name, item.output, item.targets)
        count = item.output.shape[1]
        _check_classes(self.name, targets, count)
        if not self._rows:
            self._rows = [[0] * count for _ in range(count)]
        if len(self._rows) != count:
            raise ShapeError("{} classes after {}; call clear() between data sets".format(count, len(self._rows)))
        found = item.output.argmax(1).tolist()
        for true, guess in zip(targets.tolist(), found):
            self._rows[int(true)][guess] += 1
        right = sum([self._rows[i][i] for i in range(count)])
        total = sum([sum(row) for row in self._rows])
        text = "{} of {} right".format(right, total)
        return MetricEntry(self.name, text, str(self._rows))

    def compute(self):
        return [list(row) for row in self._rows]

    def clear(self):
        self._rows = []
