"""What the configs of optimizers share."""

from ..config import Config


class OptimizerConfig(Config):
    """Base of the configs: the settings, and the rule.

    `start(value)` is the state of a parameter before its first step, a dict of tensors and ints; `update(state, value,
    gradient, lr)` -> (the new value, the new state), of the same keys. Ints and `lr` are only computed with: in a
    compiled step they are Numbers (training_step/numbers.py).
    """

    def start(self, value):
        """No state."""
        return {}

    def init(self, groups=()):
        """An Optimizer with these settings. groups: `Group`s with a rate and settings of their own; the first that
        matches a parameter counts."""
        from .optimizer import Optimizer

        return Optimizer(self, groups)


def zeros(value):
    """Zeros of a parameter's shape."""
    return value.backend.full(value.shape, 0, value.dtype)
