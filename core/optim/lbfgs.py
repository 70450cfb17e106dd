"""L-BFGS (Liu and Nocedal 1989), as in PyTorch: several iterations a step, each of which computes the loss again."""

from .. import dtypes
from ..backend import get_backend
from ..config import Config
from ..errors import ArgumentError, LoadError
from ..functional.movement.joining import concat
from .gradients import GradientsParams
from .rates import finite


class LBFGSConfig(Config):
    """max_iter: iterations of a step; max_eval: computations of the loss in a step, by default max_iter * 5 / 4;
    tolerance_grad, tolerance_change: end the step where no gradient, or no change, is larger; history_size: pairs of
    changes that are kept; line_search_fn: None, so that every iteration moves by the learning rate, or "strong_wolfe",
    a search along the direction that starts there. Raises ArgumentError for another name."""

    FIELDS = ("max_iter", "max_eval", "tolerance_grad", "tolerance_change", "history_size", "line_search_fn")

    max_iter: int = 20
    max_eval: int | None = None
    tolerance_grad: float = 1e-7
    tolerance_change: float = 1e-9
    history_size: int = 100
    line_search_fn: str | None = None

    def __init__(self, *args, **kwargs):
        Config.__init__(self, *args, **kwargs)
        if self.line_search_fn not in (None, "strong_wolfe"):
            raise ArgumentError("line_search_fn is None or 'strong_wolfe', found {!r}".format(self.line_search_fn))

    def init(self):
        """An LBFGS optimizer with these settings."""
        return LBFGS(self)


class LBFGS:
    """Made by LBFGSConfig.init. It reads the loss and a few products in each iteration, to decide when to stop."""

    def __init__(self, config):
        self.config = config
        self.most = config.max_eval or config.max_iter * 5 // 4
        self.iterations = 0
        self.direction = self.last = None  # the direction and the gradient of the last iteration
        self.length = 0.0
        self.scale = 1.0
        self.pairs = []  # (change of the weights, change of the gradient, 1 / their product)

    def step(self, lr, model, loss):
        """Minimize loss(model), a tensor of one element, over the parameters of a model in training; returns the
        model. An interrupted step changes nothing. Raises ArgumentError for a rate that is negative or not finite."""
        finite("the learning rate", lr)
        params = [p for p in model.params() if p.require_grad]
        weights = [p.val() for p in params]
        state = dict(self.__dict__, pairs=list(self.pairs))
        try:
            self._iterate(lr, model, params, loss)
        except BaseException:
            for p, old in zip(params, weights):
                p.set(old)
            self.__dict__.update(state)
            raise
        return model

    def _iterate(self, lr, model, params, loss):
        c = self.config
        value, gradient = _evaluated(model, params, loss)
        evaluations = 1
        if _largest(gradient) <= c.tolerance_grad:
            return
        self._move_to(gradient.backend)
        for i in range(c.max_iter):
            self._turn(gradient)
            before = value
            self.length = min(1.0, 1.0 / gradient.abs().sum().item()) * lr if self.iterations == 1 else lr
            slope = (gradient * self.direction).sum().item()
            if slope > -c.tolerance_change:
                break
            last = i + 1 == c.max_iter
            if c.line_search_fn:
                value, gradient, count = self._search(model, params, loss, value, gradient, slope, evaluations)
                evaluations += count
            else:
                _add(params, self.direction * self.length)
                if not last:
                    value, gradient = _evaluated(model, params, loss)
                    evaluations += 1
            move = _largest(self.direction * self.length)
            flat = _largest(gradient) <= c.tolerance_grad or move <= c.tolerance_change
            if last or evaluations >= self.most or flat or abs(value - before) < c.tolerance_change:
                break

    def _search(self, model, params, loss, value, gradient, slope, evaluations):
        """(the loss, the gradient, computations of the loss) after a step along the direction."""
        from .line_search import Point, strong_wolfe

        weights = [p.val() for p in params]

        def moved(length):
            for p, old in zip(params, weights):
                p.set(old)
            _add(params, self.direction * length)

        def evaluate(length):
            moved(length)
            new, there = _evaluated(model, params, loss)
            return Point(length, new, there, (there * self.direction).sum().item())

        start = Point(0.0, value, gradient, slope)
        largest = _largest(self.direction)
        most = self.most - evaluations
        found, count = strong_wolfe(evaluate, start, self.length, largest, self.config.tolerance_change, most)
        self.length = found.length
        moved(found.length)
        return found.value, found.gradient, count

    def _turn(self, gradient):
        """The direction of the next iteration, by the two-loop recursion."""
        self.iterations += 1
        if self.direction is None:
            self.direction = -gradient
        else:
            y, s = gradient - self.last, self.direction * self.length
            product = (y * s).sum().item()
            if product > 1e-10:
                if len(self.pairs) == self.config.history_size:
                    self.pairs.pop(0)
                self.pairs.append((s, y, 1.0 / product))
                self.scale = product / (y * y).sum().item()
            q, weights = -gradient, []
            for s, y, rho in reversed(self.pairs):
                weights.append((s * q).sum() * rho)
                q = q - y * weights[-1]
            r = q * self.scale
            for (s, y, rho), weight in zip(self.pairs, reversed(weights)):
                r = r + s * (weight - (y * r).sum() * rho)
            self.direction = r
        self.last = gradient

    def _move_to(self, backend):
        """The state on the parameters' backend, after a record was loaded."""
        if self.direction is not None and self.direction.backend is not backend:
            self.direction, self.last = self.direction.to(backend), self.last.to(backend)
            self.pairs = [(s.to(backend), y.to(backend), rho) for s, y, rho in self.pairs]

    def to_record(self):
        """The state as a Record, which can be saved as a burnpack."""
        from ..module.record import Record

        numbers = [float(self.iterations), self.length, self.scale] + [rho for _, _, rho in self.pairs]
        tensors = {"lbfgs.numbers": get_backend("python").from_list(numbers, dtypes.float64, (len(numbers),))}
        if self.direction is not None:
            tensors["lbfgs.direction"], tensors["lbfgs.gradient"] = self.direction, self.last
        for i in range(len(self.pairs)):
            tensors["lbfgs.steps.{}".format(i)], tensors["lbfgs.changes.{}".format(i)] = self.pairs[i][:2]
        return Record(tensors)

    def load_record(self, record):
        """Take the state of a Record, a dict of name -> Tensor, or an open burnpack; returns the optimizer. Raises
        LoadError if it is not the state of an LBFGS optimizer."""
        names = list(record.tensors if hasattr(record, "raw") else record)
        if "lbfgs.numbers" not in names:
            raise LoadError("this is not the state of an LBFGS optimizer, which has 'lbfgs.numbers'")

        def tensor(name):
            if name not in names:
                raise LoadError("the state of this LBFGS optimizer lacks {!r}".format(name))
            return record.tensor(name) if hasattr(record, "raw") else record[name]

        numbers = tensor("lbfgs.numbers").tolist()
        pairs = []
        for i in range(len(numbers) - 3):
            pairs.append((tensor("lbfgs.steps.{}".format(i)), tensor("lbfgs.changes.{}".format(i)), numbers[3 + i]))
        moved = bool(numbers[0])
        direction = tensor("lbfgs.direction") if moved else None
        last = tensor("lbfgs.gradient") if moved else None
        self.iterations, self.length, self.scale = int(numbers[0]), numbers[1], numbers[2]
        self.direction, self.last, self.pairs = direction, last, pairs
        return self


def _largest(x):
    return x.abs().max().item()


def _evaluated(model, params, loss):
    """(the loss as a float, the gradients of all parameters as one vector)."""
    result = loss(model)
    found = GradientsParams.from_grads(result.backward(), model)
    parts = []
    for p in params:
        g = found.remove(p.id)
        value = p.val().inner()
        parts.append((value.backend.full(value.shape, 0, value.dtype) if g is None else g).reshape(-1))
    return result.item(), concat(parts)


def _add(params, move):
    start = 0
    for p in params:
        value = p.val()
        part = move[start : start + p.size].reshape(p.shape)
        start += p.size
        p.set(value.backend.from_inner(value.inner() + part))
