"""The dense layer: a matrix product with the weights, plus a bias."""

from ..backend import operation
from ..errors import refuse
from .operands import floating, like
from .reshaping import reshape


def linear(x, weight, bias=None):
    """x (…, d_input) @ weight (d_input, d_output) + bias (d_output,), with the weight in Burn's layout. Raises
    ShapeError if the inner sizes differ or the bias has another size."""
    x = floating(x)
    weight = like(weight, x)
    if len(weight.shape) != 2 or not x.ndim or x.shape[-1] != weight.shape[0]:
        refuse("linear", x.shape, weight.shape)
    if bias is not None:
        bias = like(bias, x)
        if bias.shape != weight.shape[1:]:
            refuse("bias", bias.shape, weight.shape)
    backend = x.backend
    fast = operation(backend, "linear")
    if fast:
        return fast(x, weight, bias)
    lead = x.shape[:-1]
    if x.ndim != 2:
        x = reshape(x, (-1 if x.size else 0, x.shape[-1]))
    out = backend.matmul(x, weight)
    if bias is not None:
        out = backend.binary("add", out, bias)
    return reshape(out, lead + (weight.shape[1],))
