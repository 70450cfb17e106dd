"""Layers that only act in training; here they pass their input through."""

from ..errors import EmberletError
from ..module import Module


class Dropout(Module):
    """x as it is. prob: the share of elements that training would set to zero."""

    SHOWN = "prob"

    def __init__(self, prob=0.5):
        if not 0 <= prob <= 1:
            raise EmberletError("Dropout: prob is {}, expected a probability in [0, 1]".format(prob))
        self.prob = prob

    def forward(self, x):
        """Returns x."""
        return x


class GaussianNoise(Module):
    """x as it is. std: the standard deviation of the noise that training would add."""

    SHOWN = "std"

    def __init__(self, std):
        if not std >= 0:
            raise EmberletError("GaussianNoise: std is {}, expected a number of at least 0".format(std))
        self.std = std

    def forward(self, x):
        """Returns x."""
        return x
