"""Activation functions by the names that ONNX's recurrent operators and com.microsoft's fused operators use."""

from ...errors import UnsupportedError
from ..rectifiers import relu as _relu
from . import activations as _a
from .transcendental import tanh


def _affine(x, alpha=1.0, beta=0.0):
    return x * alpha + beta


def _scaled_tanh(x, alpha=1.0, beta=1.0):
    return tanh(x * beta) * alpha


# ONNX's name -> (function, its parameters in ONNX's order); their defaults are ONNX's too.
ACTIVATIONS = {
    "Affine": (_affine, ("alpha", "beta")),
    "Elu": (_a.elu, ("alpha",)),
    "HardSigmoid": (_a.hard_sigmoid, ("alpha", "beta")),
    "LeakyRelu": (_a.leaky_relu, ("negative_slope",)),
    "Relu": (_relu, ()),
    "ScaledTanh": (_scaled_tanh, ("alpha", "beta")),
    "Selu": (_a.selu, ("alpha", "gamma")),
    "Sigmoid": (_a.sigmoid, ()),
    "Softplus": (_a.softplus, ()),
    "Softsign": (_a.softsign, ()),
    "Tanh": (tanh, ()),
    "ThresholdedRelu": (_a.thresholded_relu, ("alpha",)),
}


#: function; name: str | Callable[[Tensor], Tensor] -> Callable[[Tensor], Tensor]
def activation(name, alphas=(), betas=()):
    """The function called `name` (a function is returned as it is), with its parameters popped from the front of the
    lists `alphas` and `betas`; defaults apply once these are empty. Raises UnsupportedError for an unknown name."""
    if not isinstance(name, str):
        return name
    for known in ACTIVATIONS:
        if known.lower() == name.lower():
            break
    else:
        raise UnsupportedError(
            "unknown activation {!r}; known activations: {}".format(name, ", ".join(sorted(ACTIVATIONS)))
        )
    function, parameters = ACTIVATIONS[known]
    given = {}
    for parameter, values in zip(parameters, (alphas, betas)):
        if values:
            given[parameter] = values.pop(0)
    return (lambda x: function(x, **given)) if given else function
