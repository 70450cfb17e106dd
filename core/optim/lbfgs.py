"""L-BFGS (Liu and Nocedal 1989), as in PyTorch: several iterations a step, each of which computes the loss again."""

from ..config import Config
from ..functional.movement.joining import concat
from .gradients import GradientsParams


class LBFGSConfig(Config):
    """max_iter: iterations of a step; max_eval: computations of the loss in a step, by default max_iter * 5 / 4;
    tolerance_grad, tolerance_change: end the step where no gradient, or no change, is larger; history_size: pairs of
    changes that are kept."""

    FIELDS = ("max_iter", "max_eval", "tolerance_grad", "tolerance_change", "history_size")

    max_iter: int = 20
    max_eval: int | None = None
    tolerance_grad: float = 1e-7
    tolerance_change: float = 1e-9
    history_size: int = 100

    def init(self):
        """An LBFGS optimizer with these settings."""
        return LBFGS(self)


class LBFGS:
    """Made by LBFGSConfig.init. It reads the loss and a few products in each iteration, to decide when to stop."""

    def __init__(self, config):
        self.config = config
        self.most = config.max_eval or config.max_iter * 5 // 4
        self._reset()

    def _reset(self):
        self.iterations = 0
        self.direction = self.last = None
        self.length = 0.0
        self.steps, self.changes = [], []
        self.scale = 1.0

    def step(self, lr, model, loss):
        """Minimize loss(model), a tensor of one element, over the parameters of a model in training; returns the
        model."""
        c = self.config
        params = [p for p in model.params() if p.require_grad]
        value, gradient = _evaluated(model, params, loss)
        evaluations = 1
        if _largest(gradient) <= c.tolerance_grad:
            return model
        for i in range(c.max_iter):
            self._turn(gradient)
            before = value
            first = self.iterations == 1
            self.length = min(1.0, 1.0 / float(gradient.abs().sum())) * lr if first else lr
            if float((gradient * self.direction).sum()) > -c.tolerance_change:
                break
            move = self.direction * self.length
            _add(params, move)
            if i + 1 < c.max_iter:
                value, gradient = _evaluated(model, params, loss)
                evaluations += 1
            flat = _largest(gradient) <= c.tolerance_grad or _largest(move) <= c.tolerance_change
            if evaluations >= self.most or flat or (i + 1 < c.max_iter and abs(value - before) < c.tolerance_change):
                break
        return model

    def _turn(self, gradient):
        """The direction of the next iteration, by the two-loop recursion."""
        self.iterations += 1
        if self.direction is None:
            self.direction = -gradient
        else:
            y, s = gradient - self.last, self.direction * self.length
            product = float((y * s).sum())
            if product > 1e-10:
                if len(self.steps) == self.config.history_size:
                    self.steps.pop(0)
                    self.changes.pop(0)
                self.steps.append(s)
                self.changes.append((y, 1.0 / product))
                self.scale = product / float((y * y).sum())
            q, weights = -gradient, []
            for s, (y, rho) in zip(reversed(self.steps), reversed(self.changes)):
                weights.append((s * q).sum() * rho)
                q = q - y * weights[-1]
            r = q * self.scale
            for s, (y, rho), weight in zip(self.steps, self.changes, reversed(weights)):
                r = r + s * (weight - (y * r).sum() * rho)
            self.direction = r
        self.last = gradient


def _largest(x):
    return float(x.abs().max())


def _evaluated(model, params, loss):
    """(the loss as a float, the gradients of all parameters as one vector)."""
    result = loss(model)
    found = GradientsParams.from_grads(result.backward(), model)
    parts = []
    for p in params:
        g = found.remove(p.id)
        value = p.val().inner()
        parts.append((value.backend.full(value.shape, 0, value.dtype) if g is None else g).reshape(-1))
    return float(result), concat(parts)


def _add(params, move):
    start = 0
    for p in params:
        value = p.val()
        part = move[start : start + p.size].reshape(p.shape)
        start += p.size
        p.set(value.backend.from_inner(value.inner() + part))
