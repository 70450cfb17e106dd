"""Stochastic gradient descent, with momentum (Polyak 1964) and Nesterov's (Sutskever et al. 2013)."""

from ..config import Config
from .base import OptimizerConfig, zeros
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

    def start(self, value):
        """See `OptimizerConfig`."""
        return {} if self.momentum is None else {"time": 0, "velocity": zeros(value)}

    def update(self, state, value, gradient, lr):
        """See `Optimizer`."""
        gradient = decayed(gradient, value, self.weight_decay)
        if self.momentum is None:
            return value - gradient * lr, state
        m = self.momentum
        time = state["time"]
        # The first velocity is the gradient itself.
        velocity = state["velocity"] * m.momentum + gradient * (1 - m.dampening * (time > 0))
        step = gradient + velocity * m.momentum if m.nesterov else velocity
        return value - step * lr, {"time": time + 1, "velocity": velocity}
