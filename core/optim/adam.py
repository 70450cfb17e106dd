"""Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019)."""

from .base import OptimizerConfig, zeros
from .clipping import GradientClippingConfig
from .decay import WeightDecayConfig, decayed


def _start(self, value):
    """See `OptimizerConfig`."""
    return {"time": 0, "moment_1": zeros(value), "moment_2": zeros(value)}


def _step(config, state, value, gradient, lr):
    time = state["time"] + 1
    first = state["moment_1"] + (gradient - state["moment_1"]) * (1 - config.beta_1)
    second = state["moment_2"] * config.beta_2 + gradient * gradient * (1 - config.beta_2)
    root = second.sqrt() / (1 - config.beta_2**time) ** 0.5 + config.epsilon
    value = value - first / root * (lr / (1 - config.beta_1**time))
    return value, {"time": time, "moment_1": first, "moment_2": second}


class AdamConfig(OptimizerConfig):
    """Running means of the gradient and of its square, corrected for their start at 0. PyTorch's epsilon is 1e-8."""

    FIELDS = ("beta_1", "beta_2", "epsilon", "weight_decay", "grad_clipping")
    NESTED = {"grad_clipping": GradientClippingConfig}

    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-5
    weight_decay: WeightDecayConfig | float | None = None
    grad_clipping: GradientClippingConfig | None = None

    start = _start

    def update(self, state, value, gradient, lr):
        """See `Optimizer`."""
        return _step(self, state, value, decayed(gradient, value, self.weight_decay), lr)


class AdamWConfig(AdamConfig):
    """Adam with the decay applied to the weights, not the gradients. PyTorch's epsilon is 1e-8, its decay 1e-2."""

    weight_decay: float = 1e-4

    def update(self, state, value, gradient, lr):
        """See `Optimizer`."""
        return _step(self, state, value * (1 - lr * self.weight_decay), gradient, lr)
