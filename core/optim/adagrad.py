"""AdaGrad (Duchi, Hazan and Singer 2011)."""

from .base import OptimizerConfig
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

    def update(self, state, value, gradient, lr):
        """See `Optimizer`."""
        gradient = decayed(gradient, value, self.weight_decay)
        time = 0 if state is None else state["time"]
        square = gradient * gradient
        total = square if state is None else state["sum"] + square
        step = gradient / (total.sqrt() + self.epsilon) * (lr / (1 + time * self.lr_decay))
        return value - step, {"time": time + 1, "sum": total}
