"""AdaGrad (Duchi, Hazan and Singer 2011)."""

from .base import OptimizerConfig, zeros
from .clipping import GradientClippingConfig
from .decay import WeightDecayConfig, decayed


class AdaGradConfig(OptimizerConfig):
    """Divides by the root of the sum of squared gradients; the rate falls as lr / (1 + steps * lr_decay). PyTorch's
    epsilon is 1e-10."""

    FIELDS = ("lr_decay", "epsilon", "weight_decay", "grad_clipping")
    NESTED = {"grad_clipping": GradientClippingConfig}

    lr_decay: float = 0.0
    epsilon: float = 1e-5
    weight_decay: WeightDecayConfig | float | None = None
    grad_clipping: GradientClippingConfig | None = None

    def start(self, value):
        """See `OptimizerConfig`."""
        return {"time": 0, "sum": zeros(value)}

    def update(self, state, value, gradient, lr):
        """See `Optimizer`."""
        gradient = decayed(gradient, value, self.weight_decay)
        time = state["time"]
        total = state["sum"] + gradient * gradient
        step = gradient / (total.sqrt() + self.epsilon) * (lr / (1 + time * self.lr_decay))
        return value - step, {"time": time + 1, "sum": total}
