"""Gradients: the methods of tensors on an autodiff backend.

On a backend that records nothing, `detach`, `require_grad` and `set_require_grad` return another tensor of the same
elements, and `is_require_grad` is False.
"""

from ...errors import BackendError
from ..operands import alias


def _recording(x):
    return hasattr(x.backend, "from_inner")


def _own(file):
    # By name: autodiff/ is built on the functions, and loaded only where gradients are asked for.
    return __import__("emberlet.autodiff." + file, None, None, ("*",))


def _recorded(x, what):
    if not _recording(x):
        raise BackendError(
            "{} needs a backend that records gradients, found {!r}; use {!r}, as in x.to({!r}).require_grad()".format(
                what, x.backend, *["autodiff:" + repr(x.backend)] * 2
            )
        )
    return x


#: method; Burn detach
def detach(x):
    """x without its history: no gradient flows through it."""
    return _own("tensors").detach(x) if _recording(x) else alias(x)


#: method; Burn require_grad; require: bool
def require_grad(x, require=True):
    """x as a tensor whose gradient `backward` keeps; `require` False is `detach`. Raises DTypeError for integers and
    bools on an autodiff backend."""
    if not _recording(x):
        return alias(x)
    return _own("tensors").require_grad(x) if require else detach(x)


#: method; Burn set_require_grad; require: bool
def set_require_grad(x, require=True):
    """`require_grad` by another name."""
    return require_grad(x, require)


#: method; Burn is_require_grad -> bool
def is_require_grad(x):
    """Whether x's gradient will be kept."""
    return _recording(x) and _own("tensors").is_require_grad(x)


#: method; Burn inner
def inner(x):
    """x on the backend inside its autodiff backend. Raises BackendError on another backend."""
    return alias(_recorded(x, "inner").data.inner)


#: method; Burn from_inner
def from_inner(x):
    """x on the autodiff backend around its own, as a constant."""
    return _own("backend").around(x.backend).from_inner(x)


#: method; Burn backward; gradient: Any; retain: bool -> Any
def backward(x, gradient=None, retain=False):
    """The Gradients of x, or of the sum of its elements, with respect to every tensor that requires one. The graph is
    freed on the way unless `retain` is True.

    gradient: of the final result with respect to x; ones unless given. Raises EmberletError if nothing requires a
    gradient, BackendError if x's backend records none.
    """
    return _own("tensors").backward(_recorded(x, "backward"), gradient, retain)


#: method; Burn grad; JAX grad; x: Any; grads: Any; argnums: int | Sequence[int] -> Any
def grad(x, grads=None, argnums=0):
    """x.grad(grads): the gradient of x, on the inner backend, or None if there is none. grad(f): a function that gives
    the gradient of f in the arguments at `argnums`.

    Raises EmberletError if x never asked for a gradient.
    """
    if callable(x):
        return _own("transforms").grad(x, argnums if grads is None else grads)
    return grads.of(_recorded(x, "grad"))


#: method; Burn grad_remove; grads: Any -> Any
def grad_remove(x, grads):
    """`grad`, which also removes the gradient from `grads`."""
    return grads.of(_recorded(x, "grad_remove"), True)
