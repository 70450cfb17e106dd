"""Activation functions by the names that ONNX's recurrent operators and com.microsoft's fused ones use."""

from ...errors import UnsupportedError
from ..rectifiers import relu as _relu
from . import activations as _a
from .transcendental import tanh


def _affine(x, alpha, beta):
    return x * alpha + beta


def _scaled_tanh(x, alpha, beta):
    return tanh(x * beta) * alpha


# name in lower case -> (function, default alpha, default beta); None where it has no such parameter.
_KNOWN = {
    "relu": (_relu, None, None),
    "tanh": (tanh, None, None),
    "sigmoid": (_a.sigmoid, None, None),
    "affine": (_affine, 1.0, 0.0),
    "leakyrelu": (_a.leaky_relu, 0.01, None),
    "thresholdedrelu": (_a.thresholded_relu, 1.0, None),
    "scaledtanh": (_scaled_tanh, 1.0, 1.0),
    "hardsigmoid": (_a.hard_sigmoid, 0.2, 0.5),
    "elu": (_a.elu, 1.0, None),
    "softsign": (_a.softsign, None, None),
    "softplus": (_a.softplus, None, None),
}


#: function; name: str | Callable[[Tensor], Tensor] -> Callable[[Tensor], Tensor]
def activation(name, alphas=(), betas=()):
    """The function called `name` (a function is returned as it is), with its parameters taken from the front of the
    lists `alphas` and `betas` as far as they reach. Raises UnsupportedError for an unknown name."""
    if not isinstance(name, str):
        return name
    known = _KNOWN.get(name.lower())
    if known is None:
        raise UnsupportedError("there is no activation {!r}; there are {}".format(name, ", ".join(sorted(_KNOWN))))
    function, alpha, beta = known
    if alpha is None:
        return function
    alpha = alphas.pop(0) if alphas else alpha
    if beta is None:
        return lambda x: function(x, alpha)
    beta = betas.pop(0) if betas else beta
    return lambda x: function(x, alpha, beta)
