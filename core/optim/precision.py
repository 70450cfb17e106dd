"""Mixed precision (Micikevicius et al. 2018): a model computes in float16 and keeps float32 weights, and its loss is
scaled so that small gradients do not round to 0."""

from .. import dtypes
from ..config import Config
from ..errors import ArgumentError, DTypeError
from ..functional.operands import astype
from ..module.copying import rebuilt
from ..param import Param


class _Rounded(Param):
    """A parameter of a model in another dtype; its gradient is that of the parameter itself, `master`."""

    __slots__ = ("lower", "master")

    def val(self):
        """The value of `master` in the dtype `lower`, cast anew for each use: a pass backward frees its graph."""
        return astype(self.master.val(), self.lower)


def mixed_precision(model, dtype="float16"):
    """A view of `model`, which is in training, that computes with its float32 parameters cast to `dtype`. Gradients
    reach the parameters themselves, which an optimizer goes on updating in float32; running statistics stay float32.

    dtype: "float16" or "bfloat16". Raises DTypeError for another one.
    """
    lower = dtypes.dtype(dtype)
    if lower not in (dtypes.float16, dtypes.bfloat16):
        raise DTypeError("mixed precision is float16 or bfloat16, found {}".format(lower))

    def change(leaf):
        if leaf.dtype is not dtypes.float32:
            return leaf
        if not isinstance(leaf, Param):
            return astype(leaf, lower)
        if not leaf.require_grad:
            return leaf
        out = _Rounded(leaf.val(), leaf.id)
        out.master, out.lower = leaf, lower
        return out

    return rebuilt(model, {}, change, True)


class GradScalerConfig(Config):
    """PyTorch's settings of `GradScaler`. init_scale: what the loss is multiplied with at first; backoff_factor: what
    the scale is multiplied with after a step whose gradients were not finite; growth_factor: after growth_interval
    steps in a row whose gradients were."""

    FIELDS = ("init_scale", "growth_factor", "backoff_factor", "growth_interval")

    init_scale: float = 65536.0
    growth_factor: float = 2.0
    backoff_factor: float = 0.5
    growth_interval: int = 2000

    def init(self):
        """A GradScaler with these settings."""
        return GradScaler(self)


class GradScaler:
    """Scales a loss, and takes the scale out of its gradients again (PyTorch's torch.amp.GradScaler).

    A step whose gradients are not finite is left out and makes the scale smaller.
    """

    def __init__(self, config=None):
        self.config = config or GradScalerConfig()
        self.factor = float(self.config.init_scale)
        self.good = 0  # steps since the scale changed

    def scale(self, loss):
        """The loss times the scale. Raises DTypeError unless it is of float32 or float64: in float16 the scale itself
        may be infinite."""
        if loss.dtype.bits < 32:
            raise DTypeError(
                "compute the loss in float32, such as from logits.astype('float32'); this one is of {}".format(
                    loss.dtype
                )
            )
        return loss * self.factor

    def step(self, optimizer, lr, model, grads):
        """`optimizer.step(lr, model, grads)` with the scale taken out of the GradientsParams, unless one of them is not
        finite; returns the model. Reads one number back."""
        total = None
        for param in model.params():
            gradient = grads.get(param.id)
            if gradient is not None:
                gradient = gradient * (1.0 / self.factor)
                grads.register(param.id, gradient)
                zero = (gradient * 0.0).sum()  # NaN unless all are finite
                total = zero if total is None else total + zero.to(total.backend)
        if total is not None and not total.item() == 0.0:
            self.factor *= self.config.backoff_factor
            self.good = 0
            return model
        model = optimizer.step(lr, model, grads)
        self.good += 1
        if self.good >= self.config.growth_interval:
            self.factor *= self.config.growth_factor
            self.good = 0
        return model

    def to_record(self):
        """The state, a dict of numbers."""
        return {"scale": self.factor, "good": self.good}

    def load_record(self, record):
        """Continue where the scaler of the record was; returns the scaler. Raises ArgumentError for a scale that is not
        above 0."""
        factor = float(record["scale"])
        if not factor > 0:
            raise ArgumentError("the scale of a GradScaler is above 0, found {}".format(factor))
        self.factor, self.good = factor, int(record["good"])
        return self
