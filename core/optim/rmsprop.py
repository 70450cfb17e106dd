"""RMSProp (Hinton 2012; centered: Graves 2013)."""

from .base import OptimizerConfig
from .clipping import GradientClippingConfig
from .decay import WeightDecayConfig, decayed


class RmsPropConfig(OptimizerConfig):
    """Divides by the root of the running mean of squared gradients, or with `centered` of their variance. PyTorch's
    epsilon is 1e-8 and its momentum 0."""

    FIELDS = ("alpha", "momentum", "epsilon", "centered", "weight_decay", "grad_clipping")
    NESTED = {"grad_clipping": GradientClippingConfig}

    alpha: float = 0.99
    momentum: float = 0.9
    epsilon: float = 1e-5
    centered: bool = False
    weight_decay: WeightDecayConfig | float | None = None
    grad_clipping: GradientClippingConfig | None = None

    def update(self, state, value, gradient, lr):
        """See `Optimizer`."""
        gradient = decayed(gradient, value, self.weight_decay)
        old = state or {}
        square = gradient * gradient * (1 - self.alpha)
        square = old["square"] * self.alpha + square if state else square
        new = {"square": square}
        spread = square
        if self.centered:
            mean = gradient * (1 - self.alpha)
            new["mean"] = old["mean"] + (gradient - old["mean"]) * (1 - self.alpha) if state else mean
            spread = square - new["mean"] * new["mean"]
        step = gradient / (spread.sqrt() + self.epsilon)
        if self.momentum:
            new["momentum"] = step = old["momentum"] * self.momentum + step if state else step
        return value - step * lr, new
