"""Indices that follow from a plan's inputs in a few steps: the host checks them in each call, before it uploads."""

from emberlet.backend.axes import closed
from emberlet.errors.indices import refuse
from emberlet.sizes.size import is_open

from .host_evaluation import MOST, evaluated
from .node import CONSTANTS, ELEMENTWISE, MOVEMENT, Node, is_leaf, topological

LOOK = 1 << 16  # the host computes and looks at tensors of up to this many elements
_CHEAP = CONSTANTS + ELEMENTWISE + MOVEMENT + ("argreduce", "cumulative", "reduce")


class IndexCheck:
    """An index of a plan. node: the index; limits: (number of the check in the order of the model, lowest, end,
    message, axis); order: the nodes to compute it, none if they are always too large to look at."""

    def __init__(self, order, limits):
        self.node = order[-1]
        self.limits = limits
        self.inputs = [n.arg for n in order if n.op == "input"]
        large = [n for n in order if not is_open(n.count) and n.count > LOOK]
        self.order = [] if large and len(order) > 1 else _copies(order)

    def run(self, host, given, values):
        """Raise IndexingError if an element is outside. given(number of an input): its Tensor on the host backend;
        values: those of the open sizes' atoms, or None."""
        if not self.order or (len(self.order) > 1 and [n for n in self.order if closed(n.count, values) > LOOK]):
            return
        index = evaluated(self.order, host, given, values)
        if index.size:
            axes = tuple(range(index.ndim))
            low, high = [host.reduce(op, index, axes, False).item() for op in ("min", "max")]
            _, lowest, end, message, axis = self.limits
            refuse(low, high, closed(lowest, values), closed(end, values), message, axis)


def index_checks(roots):
    """The IndexChecks of a traced graph, in the order of the model. Equal ones count once: the layers of a model look
    up the same positions."""
    out = {}
    for node in topological(roots):
        if not node.checks:
            continue
        order = topological([node])
        known = [n for n in order if n.op in ("input", "data") or (n.op in _CHEAP and not is_leaf(n))]
        if len(order) <= MOST and len(known) == len(order):
            form = _form(order)
            for limits in node.checks:
                out.setdefault((form, repr(limits[1:])), IndexCheck(order, limits))
    return sorted(out.values(), key=lambda check: check.limits[0])


def _copies(order):
    """Nodes to compute the same on the host: those of a plan turn into buffers of the GPU where they are constant."""
    at = {}
    copies = []
    for n in order:
        at[id(n)] = Node(n.op, tuple([at[id(s)] for s in n.srcs]), n.arg, n.dtype, n.shape, n.word)
        copies.append(at[id(n)])
    return copies


def _form(order):
    """Equal for nodes that compute the same."""
    at = {}
    form = []
    for n in order:
        arg = id(n) if n.op == "data" else repr(n.arg)
        form.append((n.op, arg, n.dtype.name, repr(n.shape), tuple([at[id(s)] for s in n.srcs])))
        at[id(n)] = len(at)
    return tuple(form)
