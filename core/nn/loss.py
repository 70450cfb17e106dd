"""Losses, forward only. Each takes predictions and targets and returns the mean loss (a 0-D tensor), the sum or, with
reduction "none", the loss of every element."""

from ..errors import ArgumentError, ShapeError
from ..functional.creation.fills import arange
from ..functional.elementwise.activations import log_softmax, softplus
from ..functional.elementwise.comparison import where
from ..functional.indexing.visibility import checked
from ..functional.promotion import integers
from ..module import Module


def _reduced(x, reduction):
    if reduction in ("mean", "auto"):
        return x.mean()
    if reduction == "sum":
        return x.sum()
    if reduction == "none":
        return x
    raise ArgumentError("reduction must be mean, sum or none, found {!r}".format(reduction))


def _same(name, x, targets):
    if x.shape != targets.shape:
        raise ShapeError("{}: predictions {} and targets {} differ in shape".format(name, x.shape, targets.shape))


class MseLoss(Module):
    """(prediction - target)²."""

    def forward(self, x, targets, reduction="mean"):
        """x and targets of one shape. Raises ShapeError if the shapes differ."""
        _same("MseLoss", x, targets)
        d = x - targets
        return _reduced(d * d, reduction)


class HuberLoss(Module):
    """Half the squared difference up to delta, delta * (|difference| - delta / 2) beyond."""

    SHOWN = "delta"

    def __init__(self, delta=1.0):
        self.delta = delta

    def forward(self, x, targets, reduction="mean"):
        """x and targets of one shape. Raises ShapeError if the shapes differ."""
        _same("HuberLoss", x, targets)
        d = (x - targets).abs()
        near = d.clip(None, self.delta)
        return _reduced(near * (d - near * 0.5), reduction)


class CrossEntropyLoss(Module):
    """-log of the probability of the target class: predictions (n, classes), targets (n,) of integers -> the mean.

    logits: whether predictions are logits instead of probabilities. pad_tokens: targets to ignore. weights: a number
    per class; the mean is weighted by those of the targets. smoothing: the probability that is spread over all classes.
    """

    SHOWN = "logits smoothing pad_tokens"

    def __init__(self, pad_tokens=None, weights=None, smoothing=None, logits=True):
        self.pad_tokens = [] if pad_tokens is None else list(pad_tokens)
        if not all(isinstance(token, int) for token in self.pad_tokens):
            raise ArgumentError("CrossEntropyLoss: pad_tokens are targets to ignore; weights= has those of classes")
        self.weights = None if weights is None else list(weights)
        self.smoothing = smoothing
        self.logits = logits

    def forward(self, x, targets, reduction="mean"):
        """x (n, classes) floats, targets (n,) integers; reduction: "mean", "sum" or "none". Raises ShapeError."""
        if len(x.shape) != 2 or targets.shape != x.shape[:1]:
            raise ShapeError(
                "CrossEntropyLoss needs (n, classes) and (n,), found shapes {} and {}".format(x.shape, targets.shape)
            )
        classes = x.shape[1]
        if self.weights is not None and len(self.weights) != classes:
            raise ShapeError("CrossEntropyLoss has {} weights for {} classes".format(len(self.weights), classes))
        logs = log_softmax(x, 1) if self.logits else x.log()
        column = self._checked(targets, classes).reshape((-1, 1))
        chosen = (arange(classes, backend=x.backend).reshape((1, classes)) == column).astype(logs.dtype)
        wanted = chosen
        if self.smoothing:
            wanted = chosen * (1 - self.smoothing) + self.smoothing / classes
        weights = None
        if self.weights is not None:
            weights = x.backend.from_list(self.weights, logs.dtype, (1, classes))
            logs = logs * weights
        loss = -(wanted * logs).sum(axis=1)
        share = x.backend.full(loss.shape, 1, loss.dtype) if weights is None else (chosen * weights).sum(axis=1)
        for token in self.pad_tokens:
            counts = (targets != token).astype(loss.dtype)
            loss, share = loss * counts, share * counts
        if reduction in ("mean", "auto"):
            return loss.sum() / share.sum()
        return _reduced(loss, reduction)

    def _checked(self, targets, classes):
        """targets, with 0 for those to ignore. Raises IndexingError for one out of range, in a plan in each call."""
        targets = integers(targets, "CrossEntropyLoss")
        for token in self.pad_tokens:
            targets = where(targets == token, 0, targets)
        seen = checked(targets, 0, classes, "CrossEntropyLoss: targets are outside the {end} classes")
        return targets if seen is None else seen


class BinaryCrossEntropyLoss(Module):
    """-(t log p + (1 - t) log(1 - p)) for predictions p and targets t of one shape; logits: predictions are logits."""

    SHOWN = "logits"

    def __init__(self, logits=False):
        self.logits = logits

    def forward(self, x, targets, reduction="mean"):
        """x and targets of one shape. Raises ShapeError if the shapes differ."""
        _same("BinaryCrossEntropyLoss", x, targets)
        t = targets.astype(x.dtype)
        if self.logits:
            return _reduced(softplus(x) - x * t, reduction)
        # As in PyTorch, log is at least -100, which bounds the loss of a certain and wrong prediction.
        return _reduced(-(t * x.log().clip(-100, None) + (1 - t) * (1 - x).log().clip(-100, None)), reduction)
