"""How well scores rank: the areas under the ROC curve and under the curve of precision and recall.

Both need the scores of all items at once: they are kept until `clear`, and one value sorts them.
"""

from ...backend.on_host import host_backend
from ...errors import ShapeError
from .base import FormatOptions, MetricEntry, Numeric
from .inputs import RankingInput


class _Ranking(Numeric):
    Input = RankingInput
    higher_is_better = True

    def __init__(self):
        self.clear()

    def update(self, item, metadata=None):
        """item: a RankingInput. Raises ShapeError."""
        item = self.input_of(item)
        output, targets = item.output, item.targets.reshape((-1,))
        if output.ndim == 2 and output.shape[1] == 2:
            output = output[:, 1] - output[:, 0]
        if output.size != targets.size:
            raise ShapeError(
                "{} needs scores (n,) or (n, 2) and targets (n,), found {} and {}".format(
                    self.name, item.output.shape, item.targets.shape
                )
            )
        scores = output.reshape((-1,)).to(host_backend())
        true = targets.astype("bool").to(host_backend())
        self._parts.append((scores[true], scores[~true]))
        self._value = None
        batch = self._percent([self._parts[-1]])
        return _Late(self, batch, targets.size)

    def value(self):
        """NaN if there are only items of one kind."""
        if self._value is None:
            self._value = self._percent(self._parts)
        return self._value

    def clear(self):
        self._parts = []
        self._value = None

    def _percent(self, parts):
        from ...functional.movement.joining import concat

        right = concat([p[0] for p in parts]).sort() if parts else None
        wrong = concat([p[1] for p in parts]).sort() if parts else None
        if right is None or not right.size or not wrong.size:
            return float("nan")
        return 100.0 * self._area(right, wrong)


class _Late(MetricEntry):
    """A MetricEntry whose text is made when it is read, since the value of the epoch sorts all scores."""

    def __init__(self, metric, batch, count):
        self.name = metric.name
        self._metric = metric
        self._batch = batch
        self.serialize = "{!r},{}".format(batch, count)

    @property
    def formatted(self):
        return FormatOptions(self.name).unit("%").entry(self._metric.value(), self._batch, 0).formatted


class AurocMetric(_Ranking):
    """The area under the ROC curve in percent: how likely a true item has a higher score than a false one, where equal
    scores count half."""

    name = "AUROC"

    def _area(self, right, wrong):
        from ...functional.reductions.sorting import searchsorted

        below = searchsorted(wrong, right, side="left").sum(dtype="int64").item()
        equal = searchsorted(wrong, right, side="right").sum(dtype="int64").item()
        return (below + equal) / 2 / (right.size * wrong.size)


class AucPrMetric(_Ranking):
    """The area under the curve of precision and recall in percent, as average precision: the mean over the true items
    of the precision among the scores that are at least as high."""

    name = "AUC-PR"

    def _area(self, right, wrong):
        from ...functional.reductions.sorting import searchsorted

        found = right.size - searchsorted(right, right, side="left")
        taken = found + wrong.size - searchsorted(wrong, right, side="left")
        return (found.astype("float64") / taken.astype("float64")).mean().item()
