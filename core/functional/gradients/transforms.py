"""Gradients of functions, in the words of JAX."""

from .tensors import _own


#: function; JAX value_and_grad; f: Any; argnums: int | Sequence[int]; has_aux: bool -> Any
def value_and_grad(f, argnums=0, has_aux=False):
    """A function that gives (f(…), its gradient in the arguments at `argnums`), as JAX's value_and_grad.

    f gives a tensor of one element; has_aux: a pair of that and anything else, which is passed on. Arguments are
    tensors, Modules, or lists, tuples and dicts of these.
    """
    return _own("transforms").value_and_grad(f, argnums, has_aux)


#: function; JAX vjp; f: Any; arrays: Any -> Any
def vjp(f, *arrays):
    """(f(*arrays), pull): pull(cotangent) gives the gradients of sum(f * cotangent) in each argument, as JAX's vjp."""
    return _own("transforms").vjp(f, *arrays)


#: function; JAX jvp; f: Any; arrays: Any; tangents: Any -> Any
def jvp(f, arrays, tangents):
    """(f(*arrays), its change along `tangents`), as JAX's jvp, found by differentiating twice."""
    return _own("transforms").jvp(f, arrays, tangents)


#: function; JAX check_grads; f: Any; args: Any; epsilon: float; rtol: float; atol: float -> None
def check_grads(f, args, epsilon=None, rtol=None, atol=None):
    """Compare the gradients of f(*args) with finite differences along random directions; raises EmberletError, with
    both numbers, where they differ.

    args: tensors; the floats among them are checked, best as float64. epsilon: the step; rtol, atol: the tolerance;
    all three depend on the dtype unless given.
    """
    return _own("checking").check_grads(f, args, epsilon, rtol, atol)
