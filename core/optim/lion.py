"""Lion (Chen et al. 2023, https://arxiv.org/abs/2302.06675)."""

from .base import OptimizerConfig, zeros
from .clipping import GradientClippingConfig


class LionConfig(OptimizerConfig):
    """Steps of lr in the direction of the sign of a mix of gradient and momentum, with decay applied to the weights."""

    FIELDS = ("beta_1", "beta_2", "weight_decay", "grad_clipping")
    NESTED = {"grad_clipping": GradientClippingConfig}

    beta_1: float = 0.9
    beta_2: float = 0.99
    weight_decay: float = 0.0
    grad_clipping: GradientClippingConfig | None = None

    def start(self, value):
        """See `OptimizerConfig`."""
        return {"momentum": zeros(value)}

    def update(self, state, value, gradient, lr):
        """See `Optimizer`."""
        momentum = state["momentum"]
        direction = (momentum * self.beta_1 + gradient * (1 - self.beta_1)).sign()
        value = value * (1 - lr * self.weight_decay) - direction * lr
        return value, {"momentum": momentum * self.beta_2 + gradient * (1 - self.beta_2)}
