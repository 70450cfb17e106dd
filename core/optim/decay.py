"""Weight decay that is added to the gradients (L2)."""

from ..config import Config


class WeightDecayConfig(Config):
    """penalty: what the weight is multiplied with before it is added to its gradient."""

    FIELDS = ("penalty",)

    penalty: float


def penalty_of(decay):
    """The penalty of a WeightDecayConfig, a number, or None."""
    return getattr(decay, "penalty", decay) or 0.0


def decayed(gradient, weight, decay):
    """The gradient with the penalty."""
    penalty = penalty_of(decay)
    return gradient + weight * penalty if penalty else gradient
