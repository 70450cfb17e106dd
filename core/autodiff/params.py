"""Params on an Autodiff backend: their value is a leaf of the graph, which requires a gradient if the Param does.

`Param.val` is replaced when the first Autodiff backend is made, so that Params cost nothing more before.
"""

from ..param import Param
from ..tensor import Tensor
from .tape import Node, Value

_plain = Param.val


def leaf(x, required=True):
    """A tensor of x's elements without history."""
    node = Node((), None, True) if required and x.dtype.is_float else None
    return Tensor(Value(x.data.inner, node), x.dtype, x.shape, x.backend)


def _val(self):
    """The value, initialized now if this Param is lazy; on an Autodiff backend a leaf of the graph."""
    value = _plain(self)
    if type(value) is not Tensor and hasattr(type(value), "copied"):  # it lies in the memory of a compiled step
        value = self._value = value.copied(self.require_grad)
    data = value.data
    if type(data) is Value:
        node = data.node
        required = self.require_grad and value.dtype.is_float
        if (node is not None) != required or (node is not None and not (node.pull is None and node.required)):
            value = self._value = leaf(value, required)
    return value


def attach():
    """Make Params on Autodiff backends require their gradients."""
    if Param.val is not _val:
        Param.val = _val
