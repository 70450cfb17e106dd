"""Losses of pairs, triplets, rankings, margins and distributions. `reduction` ("mean", "sum" or "none") is the layer's;
the shapes that the loss of each element has are in the docstrings of `forward`."""

from math import pi

from ..errors import ArgumentError, ShapeError
from ..functional.elementwise.activations import log_sigmoid, softplus
from ..functional.elementwise.comparison import where
from ..functional.indexing.picking import take_along_axis
from ..functional.promotion import integers
from ..functional.reductions.over_axes import vector_norm
from .loss import _reduced, _same
from .more_losses import _Loss


class _Margin(_Loss):
    SHOWN = "reduction margin"

    def __init__(self, margin=1.0, reduction="mean"):
        super().__init__(reduction)
        self.margin = margin


class LpLoss(_Loss):
    """|prediction - target| ** p."""

    SHOWN = "reduction p"

    def __init__(self, p=2.0, reduction="mean"):
        super().__init__(reduction)
        if not p > 0:
            raise ArgumentError("LpLoss: p is {}, expected a positive number".format(p))
        self.p = p

    def _each(self, x, targets):
        return (x - targets).abs() ** self.p


class SoftMarginLoss(_Loss):
    """log(1 + exp(-target * x)) for targets of 1 and -1."""

    def _each(self, x, targets):
        return softplus(-targets.astype(x.dtype) * x)


class HingeEmbeddingLoss(_Margin):
    """x where the target is 1, max(0, margin - x) where it is -1; x is a distance."""

    def _each(self, x, targets):
        return where(targets > 0, x, (-x + self.margin).clip(0, None))


class PoissonNllLoss(_Loss):
    """-log of the Poisson distribution at the target, without its constant: exp(x) - target * x, or with log_input
    False x - target * log(x + epsilon). full: with Stirling's approximation of the constant, where targets exceed 1."""

    SHOWN = "log_input full epsilon reduction"

    def __init__(self, log_input=True, full=False, epsilon=1e-8, reduction="mean"):
        super().__init__(reduction)
        self.log_input = log_input
        self.full = full
        self.epsilon = epsilon

    def _each(self, x, targets):
        t = targets.astype(x.dtype)
        each = x.exp() - t * x if self.log_input else x - t * (x + self.epsilon).log()
        if not self.full:
            return each
        safe = where(t > 1, t, 1.0)
        return each + where(t > 1, safe * safe.log() - safe + (2 * pi * safe).log() / 2, 0.0)


class GaussianNLLLoss(_Loss):
    """(log var + (x - target)² / var) / 2, where var is at least epsilon; full: plus log(2π) / 2."""

    SHOWN = "full epsilon reduction"

    def __init__(self, full=False, epsilon=1e-6, reduction="mean"):
        super().__init__(reduction)
        self.full = full
        self.epsilon = epsilon

    def forward(self, x, targets, var):
        """x, targets and var that broadcast -> a 0-D tensor, or with "none" their shape."""
        var = var.clip(self.epsilon, None)
        each = (var.log() + (x - targets) ** 2 / var) / 2
        from math import log

        return _reduced(each + log(2 * pi) / 2 if self.full else each, self.reduction)


class MarginRankingLoss(_Margin):
    """max(0, margin - target * (x1 - x2)) for targets of 1 (x1 should rank higher) and -1."""

    def __init__(self, margin=0.0, reduction="mean"):
        super().__init__(margin, reduction)

    def forward(self, x1, x2, targets):
        """Three tensors of one shape -> a 0-D tensor, or with "none" that shape."""
        return _reduced((targets.astype(x1.dtype) * (x2 - x1) + self.margin).clip(0, None), self.reduction)


class CosineEmbeddingLoss(_Margin):
    """1 - cos(x1, x2) where the target is 1, max(0, cos(x1, x2) - margin) where it is -1."""

    def __init__(self, margin=0.0, reduction="mean"):
        super().__init__(margin, reduction)

    def forward(self, x1, x2, targets):
        """x1, x2 (n, d) and targets (n,), or (d,) and () -> a 0-D tensor, or with "none" the shape of targets."""
        # As in PyTorch: an epsilon beside each squared length.
        lengths = ((x1 * x1).sum(-1) + 1e-12) * ((x2 * x2).sum(-1) + 1e-12)
        cosine = (x1 * x2).sum(-1) / lengths.sqrt()
        return _reduced(where(targets > 0, 1 - cosine, (cosine - self.margin).clip(0, None)), self.reduction)


class TripletMarginLoss(_Margin):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), with the p-norm of differences + epsilon as d. swap:
    d(positive, negative) counts where it is smaller than d(anchor, negative)."""

    SHOWN = "margin p epsilon swap reduction"

    def __init__(self, margin=1.0, p=2.0, epsilon=1e-6, swap=False, reduction="mean"):
        super().__init__(margin, reduction)
        self.p = p
        self.epsilon = epsilon
        self.swap = swap

    def _distance(self, a, b):
        return vector_norm(a - b + self.epsilon, axis=-1, ord=self.p)

    def forward(self, anchor, positive, negative):
        """Three tensors (…, d) -> a 0-D tensor, or with "none" (…)."""
        far = self._distance(anchor, negative)
        if self.swap:
            from ..functional.elementwise.arithmetic import minimum

            far = minimum(far, self._distance(positive, negative))
        return _reduced((self._distance(anchor, positive) - far + self.margin).clip(0, None), self.reduction)


class TripletMarginWithDistanceLoss(TripletMarginLoss):
    """TripletMarginLoss with another distance: a function of two tensors (…, d) that returns (…)."""

    SHOWN = "margin swap reduction"

    def __init__(self, distance_function=None, margin=1.0, swap=False, reduction="mean"):
        super().__init__(margin, swap=swap, reduction=reduction)
        self.distance_function = distance_function

    def _distance(self, a, b):
        return self.distance_function(a, b) if self.distance_function else super()._distance(a, b)


def _rows(name, x, targets, same):
    """x as (n, classes) and targets as (n,) or, if `same`, (n, classes)."""
    if len(x.shape) not in (1, 2) or targets.shape != (x.shape if same else x.shape[:-1]):
        raise ShapeError("{}: predictions {} do not fit targets {}".format(name, x.shape, targets.shape))
    n = 1 if len(x.shape) == 1 else x.shape[0]
    return x.reshape((n, x.shape[-1])), targets.reshape((n, x.shape[-1]) if same else (n,))


class MultiMarginLoss(_Margin):
    """The sum over the other classes of max(0, margin - x[target] + x[class]) ** p, divided by the number of classes.
    weights: a number per class, which multiplies what is raised to p."""

    SHOWN = "p margin reduction"

    def __init__(self, p=1, margin=1.0, weights=None, reduction="mean"):
        super().__init__(margin, reduction)
        self.p = p
        self.weights = weights

    def forward(self, x, targets):
        """x (n, classes) and integer targets (n,), or (classes,) and () -> a 0-D tensor, or with "none" (n,) or ()."""
        shape = targets.shape
        x, targets = _rows("MultiMarginLoss", x, integers(targets, "MultiMarginLoss"), False)
        n, classes = x.shape
        column = targets.reshape((n, 1)).astype("int64")
        gap = (x - take_along_axis(x, column, axis=1) + self.margin).clip(0, None) ** self.p
        if self.weights is not None:
            weights = self.weights
            if not hasattr(weights, "dtype"):
                weights = x.backend.from_list(list(weights), x.dtype, (classes,))
            gap = gap * weights.take(targets, 0).reshape((n, 1))
        from ..functional.creation.fills import arange

        others = arange(classes, backend=x.backend).reshape((1, classes)) != column
        return _reduced((where(others, gap, 0.0).sum(1) / classes).reshape(shape), self.reduction)


class MultiLabelMarginLoss(_Loss):
    """The sum over the classes y of the targets and all other classes i of max(0, 1 - (x[y] - x[i])), divided by the
    number of classes. A row of targets has the classes in front and -1 behind them."""

    def forward(self, x, targets):
        """x (n, classes) and integer targets of its shape, or (classes,) -> a 0-D tensor, or with "none" (n,) or ()."""
        shape = x.shape[:-1]
        x, targets = _rows("MultiLabelMarginLoss", x, integers(targets, "MultiLabelMarginLoss"), True)
        n, classes = x.shape
        from ..functional.creation.fills import arange

        # Only what stands before the first -1 counts.
        counts = (targets < 0).astype("int64").cumsum(1) == 0
        index = where(counts, targets, 0).astype("int64")
        chosen = take_along_axis(x, index, axis=1)
        places = arange(classes, backend=x.backend).reshape((1, 1, classes))
        found = ((index.reshape((n, classes, 1)) == places) & counts.reshape((n, classes, 1))).any(1)
        gap = (1 - (chosen.reshape((n, classes, 1)) - x.reshape((n, 1, classes)))).clip(0, None)
        kept = counts.reshape((n, classes, 1)) & ~found.reshape((n, 1, classes))
        return _reduced((where(kept, gap, 0.0).sum((1, 2)) / classes).reshape(shape), self.reduction)


class MultiLabelSoftMarginLoss(_Loss):
    """The mean over the classes of -(target * log sigmoid(x) + (1 - target) * log sigmoid(-x)). weights: a tensor
    (classes,), a number per class."""

    def __init__(self, weights=None, reduction="mean"):
        super().__init__(reduction)
        self.weights = weights

    def forward(self, x, targets):
        """x (…, classes) and targets (0 or 1) of its shape -> a 0-D tensor, or with "none" (…)."""
        _same("MultiLabelSoftMarginLoss", x, targets)
        t = targets.astype(x.dtype)
        each = -(t * log_sigmoid(x) + (1 - t) * log_sigmoid(-x))
        return _reduced((each if self.weights is None else each * self.weights).mean(-1), self.reduction)
