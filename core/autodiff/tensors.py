"""What the methods of Tensor do on an Autodiff backend (functional/gradients.py)."""

from ..errors import DTypeError, EmberletError
from ..tensor import Tensor
from .params import leaf
from .tape import Node, Value
from .tape import backward as run


def require_grad(x):
    """x as a tensor whose gradient is kept: a leaf if it has no history."""
    if not x.dtype.is_float:
        raise DTypeError("only floating-point tensors have gradients, found {}; convert with .astype()".format(x.dtype))
    node = x.data.node
    if node is None:
        return leaf(x)
    if node.required:
        return Tensor(x.data, x.dtype, x.shape, x.backend)
    kept = Node((node,), _same, True)
    return Tensor(Value(x.data.inner, kept), x.dtype, x.shape, x.backend)


def _same(g):
    return (g,)


def is_require_grad(x):
    """Whether x's gradient is kept."""
    node = x.data.node
    return node is not None and node.required


def detach(x):
    """x without its history."""
    return x.backend.from_inner(x.data.inner)


def backward(x, gradient=None, retain=False):
    """The Gradients of sum(x * gradient)."""
    node = x.data.node
    if node is None:
        raise EmberletError(
            "backward of a tensor that depends on no tensor that requires a gradient; call x = x.require_grad() on "
            "those that should have one, before they are used"
        )
    inner = x.data.inner
    if gradient is None:
        seed = inner.backend.full(x.shape, 1, x.dtype)
    else:
        seed = gradient
        if seed.backend is x.backend:
            seed = seed.data.inner
        if seed.shape != x.shape or seed.dtype is not x.dtype or seed.backend is not inner.backend:
            raise EmberletError(
                "backward: the gradient of a {} of shape {} on {!r} has that dtype and shape, found {} of shape {} on "
                "{!r}".format(x.dtype, x.shape, inner.backend, seed.dtype, seed.shape, seed.backend)
            )
    return run([node], [seed], retain)
