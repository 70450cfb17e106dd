"""Normalization by statistics gathered in training."""

from ..functional.reductions.normalization import batch_norm
from ..module import Module
from .params import constant, value


class BatchNorm(Module):
    """(x - running_mean) / sqrt(running_var + epsilon) * weight + bias per channel of x (n, num_features, …).

    weight, bias, running_mean, running_var: (num_features,); weight and bias are None if affine is False. In training,
    on an autodiff backend, the batch's own mean and variance take the place of the running ones, which move toward
    them by `momentum`.
    """

    BURN_NAMES = {"weight": "gamma", "bias": "beta"}
    SHOWN = "num_features momentum epsilon"

    def __init__(self, num_features, epsilon=1e-5, momentum=0.1, affine=True, dtype=None, backend=None):
        shape = (num_features,)
        self.num_features = num_features
        self.epsilon = epsilon
        self.momentum = momentum
        self.weight = constant(shape, 1, dtype, backend) if affine else None
        self.bias = constant(shape, 0, dtype, backend) if affine else None
        self.running_mean = constant(shape, 0, dtype, backend, False)
        self.running_var = constant(shape, 1, dtype, backend, False)

    def forward(self, x):
        """x (n, num_features, …) -> the same shape and dtype. Raises ShapeError for another number of channels."""
        train = getattr(x.backend, "train_batch_norm", None)
        if train:
            return train(self, x)
        mean, var = self.running_mean.val(), self.running_var.val()
        return batch_norm(x, mean, var, value(self.weight), value(self.bias), self.epsilon)


BatchNorm1d = BatchNorm2d = BatchNorm3d = BatchNorm  # one layer for any number of spatial axes
