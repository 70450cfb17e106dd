"""Bounds on gradients: by value, by the norm of each, and by the norm of all."""

from ..config import Config
from ..errors import ArgumentError
from ..functional.elementwise.arithmetic import clip
from ..functional.elementwise.arithmetic import minimum as least

_KINDS = ("value", "norm", "global_norm")


class GradientClippingConfig(Config):
    """kind: "value", which bounds every element to ±threshold; "norm", which scales each gradient whose 2-norm is
    larger than the threshold down to it; "global_norm", which scales all of them by one factor, as PyTorch's
    clip_grad_norm_."""

    FIELDS = ("kind", "threshold")

    kind: str
    threshold: float

    def __init__(self, *args, **kwargs):
        Config.__init__(self, *args, **kwargs)
        if self.kind not in _KINDS or not self.threshold > 0:
            raise ArgumentError(
                "gradients are clipped by {} with a threshold above 0, found {!r} and {}".format(
                    ", ".join(_KINDS), self.kind, self.threshold
                )
            )

    @staticmethod
    def value(threshold):
        """Clip every element."""
        return GradientClippingConfig("value", threshold)

    @staticmethod
    def norm(threshold):
        """Clip the norm of each gradient."""
        return GradientClippingConfig("norm", threshold)

    @staticmethod
    def global_norm(threshold):
        """Clip the norm of all gradients together."""
        return GradientClippingConfig("global_norm", threshold)

    def clipped(self, gradients):
        """A list of gradients, clipped."""
        if self.kind == "value":
            return [clip(g, -self.threshold, self.threshold) for g in gradients]
        if self.kind == "norm":
            return [g * self._factor(_square(g)) for g in gradients]
        if not gradients:
            return gradients
        total = None
        for g in gradients:
            square = _square(g)
            total = square if total is None else total + square.to(total.backend).astype(total.dtype)
        factor = self._factor(total)
        return [g * factor.to(g.backend).astype(g.dtype) for g in gradients]

    def _factor(self, square):
        # As in PyTorch: a small number keeps the quotient finite.
        return least(self.threshold / (square.sqrt() + 1e-6), 1.0)


def _square(g):
    return (g * g).sum()
