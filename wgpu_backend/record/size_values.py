"""Evaluates small integer tensors computed from open sizes, such as shapes that a model handles as tensors. Their
elements are numbers and Sizes, and no GPU is needed."""

from emberlet.sizes.questions import greater, smaller
from emberlet.sizes.size import is_open

from ..run import storage
from .node import of_open_size, topological

MOST = 64  # the most elements of such a tensor
LONGEST = 200  # the most nodes of its history


def _divided(a, b):
    return None if is_open(b) or b <= 0 or (is_open(a) and not a >= 0) or (not is_open(a) and a < 0) else a // b


_BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "maximum": greater,
    "minimum": smaller,
    "div": lambda a, b: 1 if a is b or (is_open(a) and is_open(b) and a.terms == b.terms) else _divided(a, b),
    "floor_divide": _divided,
    "remainder": lambda a, b: None if _divided(a, b) is None else a % b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "logical_and": lambda a, b: bool(a) and bool(b),
    "logical_or": lambda a, b: bool(a) or bool(b),
}


def size_values(node):
    """The elements of a node as a list of numbers and Sizes; None if it contains no open size, or if they cannot be
    evaluated."""
    if not _small(node) or node.op in ("data", "buffer", "host", "input"):
        return None
    order = topological([node])
    if len(order) > LONGEST or not [n for n in order if of_open_size(n)]:
        return None
    values = {}
    for n in order:
        found = _values(n, [values[id(s)] for s in n.srcs]) if _small(n) else None
        if found is None:
            return None
        values[id(n)] = found
    return values[id(node)]


def _small(node):
    return (node.dtype.is_integer or node.dtype.is_bool) and not is_open(node.count) and node.count <= MOST


def _values(node, srcs):
    op = node.op
    if op == "data":
        return storage.to_list(node.arg, node.dtype, node.count, node.word)
    if op == "full":
        return [node.arg] * node.count
    if op == "reshape" or (op == "cast" and node.srcs[0].dtype.is_integer == node.dtype.is_integer):
        return srcs[0]
    if op == "expand":
        return srcs[0] * node.count if len(srcs[0]) == 1 else None
    if op in ("binary", "where"):
        return _each(node, srcs)
    if op == "unary" and node.arg == "logical_not":
        return [not v for v in srcs[0]]
    if len(node.shape) != 1:
        return None
    if op == "concat":
        return [v for part in srcs for v in part]
    if op == "slice" and not is_open(node.arg[0][0]):
        start, step = node.arg[0][0], node.arg[1][0]
        return [srcs[0][start + i * step] for i in range(node.count)]
    return None


def _each(node, srcs):
    """An elementwise operation; sources of one element broadcast."""
    srcs = [v * node.count if len(v) == 1 else v for v in srcs]
    if [v for v in srcs if len(v) != node.count]:
        return None
    if node.op == "where":
        return [b if a else c for a, b, c in zip(*srcs)]
    act = _BINARY.get(node.arg)
    out = [None] if act is None else [act(a, b) for a, b in zip(*srcs)]
    return None if any(v is None for v in out) else out
