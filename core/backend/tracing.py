"""Running a model's Python once, to record what it computes: what all recorders share.

A recorder is a backend whose tensors hold nodes of a graph beside or in place of elements
(host/numpy_backend/compile/tracing.py, wgpu_backend/record/). Here is what does not depend on what a node is.
"""

from ..errors import BackendError
from ..tensor import Tensor
from .drawing import Undrawn
from .structure import disassemble


class ValueNeeded(BackendError):
    """While a model is traced, Python asked for a value that depends on its inputs. inputs: their positions, as far as
    they are known."""

    def __init__(self, message, inputs=()):
        super().__init__(message)
        self.inputs = inputs


class Trace:
    """inputs: the nodes of the model's Tensors, in order; roots: the nodes to compute; structure: how the results are
    put together from the roots (structure.py); calls: what was recorded, in its order, where a recorder keeps that;
    shares: whether a result lies in the memory of an argument, where a recorder knows."""

    def __init__(self, inputs, roots, structure, calls=()):
        self.inputs = inputs
        self.roots = roots
        self.structure = structure
        self.calls = calls
        self.shares = False


def forked(model, backend):
    """A module on a backend, a function as it is. What the module would draw at random is drawn once before, for all
    its copies."""
    if not (hasattr(model, "fork") and hasattr(model, "params")):
        return model
    for param in model.params():
        param.val()
    return model.fork(backend)


def traced(function, arguments, placeholder, root, calls=()):
    """The Trace of function(*arguments).

    placeholder(i, x): the node of the Tensor at position i, None if it is taken for its value, and the Tensor to call
    the function with. root(x): (the node of a Tensor that the function returned, None), or (None, the Tensor) for one
    that no call changes.

    Raises ValueNeeded where the function draws random numbers without a seed or returns what a plan cannot make again;
    the recorder raises it where Python asks for values.
    """
    inputs = []
    given = []
    for i in range(len(arguments)):
        x = arguments[i]
        if isinstance(x, Tensor):
            node, x = placeholder(i, x)
            if node is not None:
                inputs.append(node)
        given.append(x)
    with Undrawn(ValueNeeded):
        result = function(*given)
    roots = []

    def leaf(x):
        node, constant = root(x)
        if node is None:
            return ("value", constant)
        for i in range(len(roots)):
            if roots[i] is node:
                return ("tensor", i)
        roots.append(node)
        return ("tensor", len(roots) - 1)

    return Trace(inputs, roots, disassemble(result, leaf, ValueNeeded), calls)
