"""Stochastic gradient descent, with momentum (Polyak 1964) and Nesterov's (Sutskever et al. 2013)."""

from ..config import Config
from .base import OptimizerConfig
from .clipping import GradientClippingConfig
from .decay import WeightDecayConfig, decayed


class MomentumConfig(Config):
    """momentum: how much of the velocity stays; dampening: how much of the gradient does not enter it; nesterov: look
    ahead. PyTorch's dampening is 0 unless given."""

    FIELDS = ("momentum", "dampening", "nesterov")

    momentum: float = 0.9
    dampening: float = 0.1
    nesterov: bool = False


class SgdConfig(OptimizerConfig):
    """value - lr * gradient, or lr * velocity with momentum."""

    FIELDS = ("weight_decay", "momentum", "grad_clipping")
    NESTED = {"momentum": MomentumConfig, "grad_clipping": GradientClippingConfig}

    weight_decay: WeightDecayConfig | float | None = None
    momentum: MomentumConfig | None = None
    grad_clipping: GradientClippingConfig | None = None

    def update(self, state, value, gradient, lr):
        """See `Optimizer`."""
        gradient = decayed(gradient, value, self.weight_decay)
        if self.momentum is None:
            return value - gradient * lr, None
        m = self.momentum
        velocity = gradient if state is None else state["velocity"] * m.momentum + gradient * (1 - m.dampening)
        step = gradient + velocity * m.momentum if m.nesterov else velocity
        return value - step * lr, {"velocity": velocity}
