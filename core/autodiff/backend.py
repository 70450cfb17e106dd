"""Autodiff: the backend. It computes every primitive with the inner backend, and notes on the tape how to undo it."""

from ..backend import Backend, get_backend, operation
from ..backend.registry import lacks
from ..errors import ArgumentError, refuse
from ..tensor import Tensor
from .tape import Node, Value

COMPUTE = "compute"  # keep what the rules need
MEMORY = "memory"  # recompute chains of elementwise operations in the backward pass

# Primitives whose result does not change with small changes of the operands.
_FLAT = ("sign", "floor", "ceil", "round", "trunc")
_FLAT_PAIRS = ("floor_divide",)


def _flat(g):
    """The `pull` of these: they give nothing on, and what they are computed from has a gradient of zeros (tape.py)."""
    return ()


def _rules(family):
    return __import__("emberlet.autodiff.rules." + family, None, None, ("*",))


def _recomputing():
    from . import recomputing

    return recomputing


class Autodiff(Backend):
    """A backend whose tensors are those of another one, with a tape.

    inner: a Backend, a name, or None for the default. strategy: "compute" keeps the values that the backward pass
    needs; "memory" computes chains of elementwise operations again instead. Tensors of two Autodiff objects are on
    different backends, so that programs use `emberlet.autodiff(inner)`, which returns the same one each time.
    """

    name = "autodiff"
    OVERRIDES = ()

    def __init__(self, inner=None, strategy=COMPUTE):
        if strategy not in (COMPUTE, MEMORY):
            raise ArgumentError("strategy is 'compute' or 'memory', found {!r}".format(strategy))
        self.inner = get_backend(inner)
        self.index = 0
        self.strategy = strategy
        self.replaying = False  # whether a checkpointed block is computed again
        self.checks_indices = getattr(self.inner, "checks_indices", True)
        self.float64_is_float32 = getattr(self.inner, "float64_is_float32", False)
        from .params import attach

        attach()

    InnerBackend = property(lambda self: self.inner)  # Burn's name

    def __repr__(self):
        return "autodiff:" + repr(self.inner)

    def __reduce__(self):
        from . import autodiff

        return autodiff, (self.inner, self.strategy)

    def __getattr__(self, name):
        # Composites with a backward of their own, and operations that were added to the inner backend.
        if name[:1] == "_":
            raise AttributeError(name)
        from .dispatch import method

        found = method(self, name)
        if found is None:
            return lacks(self, name)
        return found

    # -- tensors in and out ------------------------------------------------------------------------------------------

    def from_inner(self, x):
        """x, a tensor of the inner backend, as a constant of this one."""
        return Tensor(Value(x), x.dtype, x.shape, self)

    def _noted(self, out, parents, pull):
        return Tensor(Value(out, Node(parents, pull)), out.dtype, out.shape, self)

    def realize(self, *tensors):
        self.inner.realize(*[x.data.inner for x in tensors])

    def visible(self, x):
        """The elements of x where they can be read without waiting."""
        inner = x.data.inner
        if getattr(self.inner, "checks_indices", True):
            return inner
        return self.inner.visible(inner) if hasattr(self.inner, "visible") else None

    def checked(self, index, lowest, end, message, axis):
        """index as a plan of the backend inside checks it in each call, or None (functional/indexing/visibility.py)."""
        later = operation(self.inner, "checked")
        found = later(index.data.inner, lowest, end, message, axis) if later else None
        return None if found is None else self.from_inner(found)

    def from_bytes(self, data, dtype, shape):
        return self.from_inner(self.inner.from_bytes(data, dtype, shape))

    def to_bytes(self, x):
        return self.inner.to_bytes(x.data.inner)

    def from_list(self, values, dtype, shape):
        return self.from_inner(self.inner.from_list(values, dtype, shape))

    def to_list(self, x):
        return self.inner.to_list(x.data.inner)

    # -- creation ----------------------------------------------------------------------------------------------------

    def full(self, shape, value, dtype):
        return self.from_inner(self.inner.full(shape, value, dtype))

    def arange(self, start, step, count, dtype):
        return self.from_inner(self.inner.arange(start, step, count, dtype))

    def random_bits(self, shape, key, counter):
        return self.from_inner(self.inner.random_bits(shape, key, counter))

    # -- elementwise -------------------------------------------------------------------------------------------------

    def unary(self, op, x):
        node, value = x.data.node, x.data.inner
        out = self.inner.unary(op, value)
        if node is None or not out.dtype.is_float:
            return self.from_inner(out)
        if op in _FLAT:
            return self._noted(out, (node,), _flat)
        rule = getattr(_rules("unary"), op, None)
        if rule is None:
            refuse("no backward", op, op)
        if self.strategy == MEMORY:
            return _recomputing().unary(self, op, x, out, rule)
        return self._noted(out, (node,), rule(value, out))

    def binary(self, op, a, b):
        p, q, x, y = a.data.node, b.data.node, a.data.inner, b.data.inner
        out = self.inner.binary(op, x, y)
        if (p is None and q is None) or not out.dtype.is_float:
            return self.from_inner(out)
        if op in _FLAT_PAIRS:
            return self._noted(out, (p, q), _flat)
        rule = _rules("binary").pull
        if self.strategy == MEMORY:
            return _recomputing().binary(self, op, a, b, out, rule)
        return self._noted(out, (p, q), rule(op, x, y, out, p is not None, q is not None))

    def where(self, condition, a, b):
        p, q = a.data.node, b.data.node
        condition, a, b = condition.data.inner, a.data.inner, b.data.inner
        out = self.inner.where(condition, a, b)
        if p is None and q is None:
            return self.from_inner(out)
        return self._noted(out, (p, q), _rules("selection").where(condition, a, b, p is not None, q is not None))

    def cast(self, x, dtype, saturate=True):
        node, x = x.data.node, x.data.inner
        out = self.inner.cast(x, dtype, saturate)
        if node is None or not out.dtype.is_float:
            return self.from_inner(out)
        return self._noted(out, (node,), _rules("selection").cast(x))

    def bitcast(self, x, dtype):
        return self.from_inner(self.inner.bitcast(x.data.inner, dtype))

    # -- the rest: rules that take the primitive's own arguments -----------------------------------------------------

    def _one(self, family, name, x, *args):
        """The primitive `name` of one differentiable operand x."""
        node, x = x.data.node, x.data.inner
        out = getattr(self.inner, name)(x, *args)
        if node is None or not out.dtype.is_float:
            return self.from_inner(out)
        return self._noted(out, (node,), getattr(_rules(family), name)(x, out, *args))

    def reduce(self, op, x, axes, keepdims):
        node, x = x.data.node, x.data.inner
        out = self.inner.reduce(op, x, axes, keepdims)
        if node is None or not out.dtype.is_float:
            return self.from_inner(out)
        return self._noted(out, (node,), _rules("reductions").reduce(op, x, out, axes, keepdims))

    def argreduce(self, op, x, axis, keepdims):
        return self.from_inner(self.inner.argreduce(op, x.data.inner, axis, keepdims))

    def cumulative(self, op, x, axis):
        node, x = x.data.node, x.data.inner
        out = self.inner.cumulative(op, x, axis)
        if node is None or not out.dtype.is_float:
            return self.from_inner(out)
        return self._noted(out, (node,), _rules("cumulative").cumulative(op, x, out, axis))

    def sort(self, x, axis, descending):
        node, x = x.data.node, x.data.inner
        values, indices = self.inner.sort(x, axis, descending)
        if node is None:
            return self.from_inner(values), self.from_inner(indices)
        pull = _rules("indexing").sort(x, indices, axis)
        return self._noted(values, (node,), pull), self.from_inner(indices)

    def matmul(self, a, b):
        p, q, a, b = a.data.node, b.data.node, a.data.inner, b.data.inner
        out = self.inner.matmul(a, b)
        if (p is None and q is None) or not out.dtype.is_float:
            return self.from_inner(out)
        return self._noted(out, (p, q), _rules("products").matmul(a, b, p is not None, q is not None))

    def conv(self, x, weight, bias, stride, padding, dilation, groups):
        parents = (x.data.node, weight.data.node, None if bias is None else bias.data.node)
        x, weight, bias = x.data.inner, weight.data.inner, None if bias is None else bias.data.inner
        out = self.inner.conv(x, weight, bias, stride, padding, dilation, groups)
        wants = [p is not None for p in parents]
        if not (wants[0] or wants[1] or wants[2]) or not out.dtype.is_float:
            return self.from_inner(out)
        return self._noted(
            out, parents, _rules("convolution").conv(x, weight, stride, padding, dilation, groups, wants)
        )

    def pool(self, op, x, kernel, stride, padding, dilation):
        node, x = x.data.node, x.data.inner
        out = self.inner.pool(op, x, kernel, stride, padding, dilation)
        if node is None or not out.dtype.is_float:
            return self.from_inner(out)
        return self._noted(out, (node,), _rules("pooling").pool(op, x, out, kernel, stride, padding, dilation))

    def take(self, x, indices, axis):
        return self._one("indexing", "take", x, indices.data.inner, axis)

    def gather(self, x, indices, axis):
        return self._one("indexing", "gather", x, indices.data.inner, axis)

    def scatter(self, x, indices, updates, axis, op):
        p, q = x.data.node, updates.data.node
        x, indices, updates = x.data.inner, indices.data.inner, updates.data.inner
        out = self.inner.scatter(x, indices, updates, axis, op)
        if (p is None and q is None) or not out.dtype.is_float:
            return self.from_inner(out)
        wants = (p is not None, q is not None)
        return self._noted(out, (p, q), _rules("scattering").scatter(x, indices, updates, axis, op, out, wants))

    def nonzero(self, x):
        return self.from_inner(self.inner.nonzero(x.data.inner))

    def reshape(self, x, shape):
        return self._one("movement", "reshape", x, shape)

    def permute(self, x, axes):
        return self._one("movement", "permute", x, axes)

    def expand(self, x, shape):
        return self._one("movement", "expand", x, shape)

    def slice(self, x, starts, sizes, steps):
        return self._one("movement", "slice", x, starts, sizes, steps)

    def pad(self, x, padding, value):
        return self._one("movement", "pad", x, padding, value)

    def concat(self, tensors, axis):
        parents = tuple([x.data.node for x in tensors])
        inner = [x.data.inner for x in tensors]
        out = self.inner.concat(inner, axis)
        if not [p for p in parents if p is not None] or not out.dtype.is_float:
            return self.from_inner(out)
        return self._noted(out, parents, _rules("movement").concat([x.shape[axis] for x in inner], axis))


def around(inner):
    """The Autodiff backend around a backend, of the default strategy."""
    from . import autodiff

    return autodiff(inner)
