"""The loss, and what follows from it for language models."""

from math import exp

from ...errors import ShapeError
from ...functional.promotion import widened
from .base import Averaged, FormatOptions, Numeric
from .inputs import LossInput, PerplexityInput


class LossMetric(Averaged):
    """The mean loss, weighted with the sizes of the batches."""

    Input = LossInput
    name = "Loss"
    higher_is_better = False

    def update(self, item, metadata=None):
        """item: a LossInput."""
        item = self.input_of(item)
        loss = float(item.loss.mean().item()) if item.loss.size else float("nan")
        return self._state.update(loss, item.batch_size, FormatOptions(self.name).precision(4))


class PerplexityMetric(Numeric):
    """The perplexity: e to the mean cross entropy of all tokens. pad_token: the target of those that do not count."""

    Input = PerplexityInput
    name = "Perplexity"
    higher_is_better = False

    def __init__(self, pad_token=None):
        self.pad_token = pad_token
        self.clear()

    def update(self, item, metadata=None):
        """item: a PerplexityInput. Raises ShapeError."""
        item = self.input_of(item)
        if item.output.shape[:-1] != item.targets.shape:
            raise ShapeError(
                "perplexity needs scores (..., vocabulary) and targets (...), found {} and {}".format(
                    item.output.shape, item.targets.shape
                )
            )
        rows = widened(item.output)[0].reshape((-1, item.output.shape[-1])).log_softmax(1)
        targets = item.targets.reshape((-1,)).astype("int64")
        count = targets.size
        if self.pad_token is None:
            losses = -rows.gather(1, targets.reshape((-1, 1))).reshape((-1,))
        else:
            counted = targets != self.pad_token
            count = int(counted.sum(dtype="int64").item())
            inside = targets.mask_fill(targets == self.pad_token, 0)  # the pad token may lie outside the vocabulary
            losses = -rows.gather(1, inside.reshape((-1, 1))).reshape((-1,))
            losses = losses.mask_fill(targets == self.pad_token, 0)
        total = float(losses.sum().item())
        self._sum += total
        self._count += count
        batch = _exp(total / count) if count else float("nan")
        return FormatOptions(self.name).entry(self.value(), batch, count)

    def value(self):
        return _exp(self._sum / self._count) if self._count else float("nan")

    def clear(self):
        self._sum = 0.0
        self._count = 0


def _exp(x):
    try:
        return exp(x)
    except OverflowError:
        return float("inf")
