"""PyTorch's common losses under its names: `reduction` ("mean", "sum" or "none") belongs to the layer."""

from ..errors import ArgumentError
from ..functional.elementwise.comparison import where
from ..functional.reductions.losses import nll_loss
from ..module import Module
from .loss import BinaryCrossEntropyLoss, MseLoss, _reduced, _same


class _Loss(Module):
    SHOWN = "reduction"

    def __init__(self, reduction="mean"):
        if reduction not in ("mean", "sum", "none"):
            raise ArgumentError("{}: reduction is mean, sum or none, found {!r}".format(type(self).__name__, reduction))
        self.reduction = reduction

    def forward(self, x, targets):
        """x and targets of one shape -> a 0-D tensor, or with "none" that shape. Raises ShapeError."""
        _same(type(self).__name__, x, targets)
        return _reduced(self._each(x, targets), self.reduction)


class L1Loss(_Loss):
    """|prediction - target|."""

    def _each(self, x, targets):
        return (x - targets).abs()


class SmoothL1Loss(_Loss):
    """difference² / (2 beta) below beta, |difference| - beta / 2 beyond."""

    SHOWN = "reduction beta"

    def __init__(self, reduction="mean", beta=1.0):
        super().__init__(reduction)
        self.beta = beta

    def _each(self, x, targets):
        d = (x - targets).abs()
        if self.beta == 0:
            return d
        return where(d < self.beta, d * d / (2 * self.beta), d - self.beta / 2)


class MSELoss(_Loss):
    """(prediction - target)²; `MseLoss` with the reduction given once."""

    def forward(self, x, targets):
        """x and targets of one shape -> a 0-D tensor, or with "none" that shape. Raises ShapeError."""
        return MseLoss()(x, targets, self.reduction)


class BCELoss(_Loss):
    """`BinaryCrossEntropyLoss` of probabilities, with the reduction given once."""

    LOGITS = False

    def forward(self, x, targets):
        """x and targets of one shape -> a 0-D tensor, or with "none" that shape. Raises ShapeError."""
        return BinaryCrossEntropyLoss(self.LOGITS)(x, targets, self.reduction)


class BCEWithLogitsLoss(BCELoss):
    """`BinaryCrossEntropyLoss` of logits, with the reduction given once."""

    LOGITS = True


class NLLLoss(_Loss):
    """-x at the target class, for log-probabilities x (n, classes, …) and integer targets (n, …). weight: a tensor
    (classes,); ignore_index: a target that is not counted."""

    SHOWN = "reduction ignore_index"

    def __init__(self, weight=None, ignore_index=-100, reduction="mean"):
        super().__init__(reduction)
        self.weight = weight
        self.ignore_index = ignore_index

    def forward(self, x, targets):
        """x (n, classes, …), targets (n, …) -> a 0-D tensor, or with "none" (n, …). Raises ShapeError."""
        return nll_loss(x, targets, self.weight, self.ignore_index, self.reduction)


class KLDivLoss(_Loss):
    """target * (log target - x) for log-probabilities x. log_target: targets are log-probabilities too. reduction:
    also "batchmean", the sum divided by the first axis, which is the divergence."""

    SHOWN = "reduction log_target"

    def __init__(self, reduction="mean", log_target=False):
        super().__init__("sum" if reduction == "batchmean" else reduction)
        self.reduction = reduction
        self.log_target = log_target

    def forward(self, x, targets):
        """x and targets of one shape -> a 0-D tensor, or with "none" that shape. Raises ShapeError."""
        _same("KLDivLoss", x, targets)
        if self.log_target:
            each = targets.exp() * (targets - x)
        else:
            each = where(targets > 0, targets * (where(targets > 0, targets, 1.0).log() - x), 0.0)
        if self.reduction == "batchmean":
            return each.sum() / x.shape[0]
        return _reduced(each, self.reduction)
