"""RMSProp (Hinton 2012; centered: Graves 2013)."""

from .base import OptimizerConfig, zeros
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

    def start(self, value):
        """See `OptimizerConfig`."""
        keys = ["square"] + ["mean"] * self.centered + ["momentum"] * bool(self.momentum)
        return {key: zeros(value) for key in keys}

    def update(self, state, value, gradient, lr):
        """See `Optimizer`."""
        gradient = decayed(gradient, value, self.weight_decay)
        square = state["square"] * self.alpha + gradient * gradient * (1 - self.alpha)
        new = {"square": square}
        spread = square
        if self.centered:
            mean = new["mean"] = state["mean"] + (gradient - state["mean"]) * (1 - self.alpha)
            spread = square - mean * mean
        step = gradient / (spread.sqrt() + self.epsilon)
        if self.momentum:
            new["momentum"] = step = state["momentum"] * self.momentum + step
        return value - step * lr, new
