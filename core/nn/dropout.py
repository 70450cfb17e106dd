"""Layers that are active only in training: on an autodiff backend. Elsewhere they return their input."""

from ..errors import EmberletError
from ..functional.operands import alias
from ..module import Module


class Dropout(Module):
    """Returns x; in training, x with each element zeroed with probability `prob` and the rest scaled by
    1 / (1 - prob)."""

    SHOWN = "prob"

    def __init__(self, prob=0.5):
        if not 0 <= prob <= 1:
            raise EmberletError("Dropout: prob is {}, expected a probability in [0, 1]".format(prob))
        self.prob = prob

    def forward(self, x):
        """Another tensor of x's elements, or in training new ones."""
        return _active(self, x, "train_dropout")


class GaussianNoise(Module):
    """Returns x; in training, x plus normally distributed noise of standard deviation `std`."""

    SHOWN = "std"

    def __init__(self, std):
        if not std >= 0:
            raise EmberletError("GaussianNoise: std is {}, expected a number of at least 0".format(std))
        self.std = std

    def forward(self, x):
        """Another tensor of x's elements, or in training new ones."""
        return _active(self, x, "train_gaussian_noise")


def _active(layer, x, name):
    train = getattr(x.backend, name, None)
    return train(layer, x) if train else alias(x)
