"""Layers that are active only in training; here they return their input."""

from ..errors import EmberletError
from ..functional.operands import alias
from ..module import Module


class Dropout(Module):
    """Returns x. prob: the probability with which training would zero an element."""

    SHOWN = "prob"

    def __init__(self, prob=0.5):
        if not 0 <= prob <= 1:
            raise EmberletError("Dropout: prob is {}, expected a probability in [0, 1]".format(prob))
        self.prob = prob

    def forward(self, x):
        """Another tensor of x's elements."""
        return alias(x)


class GaussianNoise(Module):
    """Returns x. std: the standard deviation of the noise that training would add."""

    SHOWN = "std"

    def __init__(self, std):
        if not std >= 0:
            raise EmberletError("GaussianNoise: std is {}, expected a number of at least 0".format(std))
        self.std = std

    def forward(self, x):
        """Another tensor of x's elements."""
        return alias(x)
