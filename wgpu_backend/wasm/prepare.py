"""Rewrites a graph before fusion: padded inputs of convolutions and poolings are stored with their border."""

from emberlet.sizes.questions import known_equal

from ..lower.reductions import identity
from ..record.host_evaluation import evaluate
from ..record.node import Node, topological
from ..run import storage


def prepare(roots):
    """Give convolutions and poolings operands with the border added, so that kernels need no bounds test per element.
    Returns the added nodes."""
    added = []
    for node in topological(roots):
        if node.op == "conv":
            stride, padding, dilation, groups = node.arg
            fill = 0
            rest = (dilation, groups)
            place = 1
        elif node.op == "pool":
            op, _, stride, padding, dilation = node.arg
            fill = identity(op, storage.word(node.dtype))
            if node.dtype.is_integer:  # which may take a byte
                fill = max(fill, node.dtype.range[0])
            place = 3
        else:
            continue
        if not [p for p in padding if not known_equal(p, (0, 0))] or known_equal(node.count, 0):
            continue
        x = node.srcs[0]
        around = ((0, 0), (0, 0)) + tuple(padding)
        shape = tuple([x.shape[i] + around[i][0] + around[i][1] for i in range(len(x.shape))])
        added.append(Node("pad", (x,), (around, fill), x.dtype, shape, storage.word(x.dtype)))
        none = tuple([(0, 0) for _ in padding])
        node.arg = (stride, none) + rest if place == 1 else node.arg[:3] + (none,) + node.arg[4:]
        node.srcs = (added[-1],) + tuple(node.srcs[1:])
    return added


def materialize(roots, host):
    """Store weights that repeat a single number: the kernels of products read weights from memory."""
    wanted = {}
    for node in topological(roots):
        if node.op in ("matmul", "conv"):
            for s in node.srcs:
                while s.op in ("reshape", "permute", "expand"):
                    s = s.srcs[0]
                if s.op == "full" and not known_equal(s.count, 0):
                    wanted[id(s)] = s
    evaluate(list(wanted.values()), host)
