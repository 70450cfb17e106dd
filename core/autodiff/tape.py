"""The tape: the graph that hangs on tensors, the backward pass over it, and the gradients that it gives.

`data` of a Tensor on an Autodiff backend is a Value: the inner tensor, and the Node that says how it was computed, or
None where no gradient is asked for. A Node keeps its parents and a function from the gradient of its result to
those of its parents; that function keeps whatever values it needs, and nothing else does.
"""

from ..errors import EmberletError
from .pieces import Pieces


class Value:
    """`data` of a tensor on an Autodiff backend. inner: its elements, a Tensor of the inner backend; node: or None;
    again: how to compute the elements again (recomputing.py), or None."""

    __slots__ = ("again", "inner", "node")

    def __init__(self, inner, node=None):
        self.inner = inner
        self.node = node
        self.again = None


class Node:
    """How a value was computed. parents: Nodes, None where no gradient is wanted; pull(gradient) -> their gradients,
    None for a leaf; required: whether `Gradients` keeps this one; slot: which result of the parent it is, if that has
    several; depth: larger than that of any parent."""

    __slots__ = ("depth", "parents", "pull", "required", "slot")

    def __init__(self, parents, pull, required=False, slot=None):
        self.parents = parents
        self.pull = pull
        self.required = required
        self.slot = slot
        depth = 0
        for p in parents:
            if p is not None and p.depth >= depth:
                depth = p.depth + 1
        self.depth = depth

    @property
    def is_leaf(self):
        """Whether it was not computed."""
        return self.pull is None


def consumed(gradient):
    """The `pull` of a node that a backward pass went through."""
    raise EmberletError(
        "backward went through this part of the graph before and freed it; compute the result again, or keep the graph "
        "with loss.backward(retain=True)"
    )


class Gradients:
    """What `backward` gives: the gradients of the tensors that required one. They are tensors of the inner backend,
    held nowhere else, and may be handed to another thread."""

    def __init__(self):
        self._found = {}  # id of a node -> (the node, its gradient)

    def of(self, x, remove=False):
        """The gradient of x, a tensor on an Autodiff backend: zeros if no change of x changes the result, None if the
        result is not computed from x. Raises EmberletError if x never asked for one."""
        node = getattr(x.data, "node", None)
        if node is None or not node.required:
            raise EmberletError(
                "no gradient was asked for: call x = x.require_grad() on a tensor of an autodiff backend, before it is "
                "used; this one is {} on {!r}".format("computed" if node is not None else "untracked", x.backend)
            )
        found = self._found.pop(id(node), None) if remove else self._found.get(id(node))
        if found is None:
            return None
        return x.data.inner.backend.full(x.shape, 0, x.dtype) if found[1] is None else found[1]

    def of_node(self, node):
        """The gradient of a node, or None."""
        found = self._found.get(id(node))
        return None if found is None else found[1]

    def keep(self, node, gradient):
        """Store the gradient of a node, None for zeros."""
        self._found[id(node)] = (node, gradient)

    def __len__(self):
        return len(self._found)

    def __repr__(self):
        return "Gradients({} tensors)".format(len(self._found))


def _ordered(root):
    """The nodes below `root`, each before its parents."""
    seen = {id(root): root}
    stack = [root]
    while stack:
        node = stack.pop()
        if node.pull is consumed:
            consumed(None)
        for p in node.parents:
            if p is not None and id(p) not in seen:
                seen[id(p)] = p
                stack.append(p)
    return sorted(seen.values(), key=lambda node: -node.depth)


def backward(roots, seeds, retain=False):
    """Gradients of the sum of roots * seeds. roots: Nodes; seeds: inner tensors of their shapes; retain: keep the graph
    for another pass, where it is freed otherwise."""
    out = Gradients()
    root = roots[0] if len(roots) == 1 else Node(tuple(roots), lambda g: g)
    pending = {id(root): seeds[0] if len(roots) == 1 else seeds}
    for node in _ordered(root):
        gradient = pending.pop(id(node), None)
        if isinstance(gradient, Pieces):
            gradient = gradient.joined()
        if node.required:
            out.keep(node, gradient)
        if gradient is None or node.pull is None:
            continue
        if node.slot is not None:
            _collect(pending, node.parents[0], node.slot, gradient)
        else:
            _spread(pending, node.parents, node.pull(gradient))
        if not retain:
            node.pull = consumed
            node.parents = ()
    return out


def _collect(pending, parent, slot, gradient):
    """Note the gradient of one of the parent's results."""
    found = pending.get(id(parent))
    if found is None:
        found = pending[id(parent)] = {}
    found[slot] = gradient if slot not in found else _sum(found[slot], gradient)


def _spread(pending, parents, gradients):
    for p, g in zip(parents, gradients):
        if p is not None and g is not None:
            old = pending.get(id(p))
            pending[id(p)] = g if old is None else _sum(old, g)


def _sum(a, b):
    if isinstance(a, Pieces):
        return a.plus(b)
    if isinstance(b, Pieces):
        return b.plus(a)
    return a.backend.binary("add", a, b)
