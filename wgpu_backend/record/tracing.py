"""Tracing: running a model's Python once, with placeholders for inputs, to record what it computes."""

from emberlet.backend.tracing import ValueNeeded, traced
from emberlet.tensor import Tensor

from .node import CONSTANTS, Node, is_leaf, of_open_size, topological


def trace(function, arguments, backend, shapes=None, fixed=()):
    """The Trace of function(*arguments), whose Tensors are taken for their dtypes and shapes; shapes: the arguments'
    shapes with Sizes for open axes, if any; fixed: positions of arguments that are taken for their values.

    Raises ValueNeeded if the function's control flow depends on values of its inputs, if it draws random numbers
    without a seed, or if an input holds strings.
    """

    def placeholder(i, x):
        if x.dtype.kind == "string":
            raise ValueNeeded("input {} holds strings, which are computed on the host".format(i))
        if i in fixed:
            return None, backend.from_bytes(bytes(x.backend.to_bytes(x)), x.dtype, x.shape)
        shape = shapes[i] if shapes else x.shape
        node = Node("input", (), i, x.dtype, shape, backend.given(x.dtype))
        return node, Tensor(node, x.dtype, shape, backend)

    def root(x):
        if not isinstance(x.data, Node) or x.data.op == "host":  # of another backend, or strings
            return None, x
        return x.data, None

    before, backend.tracing = backend.tracing, True
    try:
        return traced(function, arguments, placeholder, root)
    finally:
        backend.tracing = before


def constants(roots, launched=True):
    """Nodes to compute once: they depend on no input, are read by nodes that do, and are not mere views. launched:
    include those that depend on a user's kernel, which only a GPU can compute."""
    order = topological(roots)
    depends = {}
    for node in order:
        depends[id(node)] = (
            node.op == "input"
            or (node.op == "kernel" and not launched)
            or of_open_size(node)
            or any(depends[id(s)] for s in node.srcs)
        )
    out = []
    filters = {id(n.srcs[1]): n for n in order if n.op == "conv" and n.arg[3] > 1}  # few, which kernels read in words
    seen = {}
    frontier = [r for r in roots if not depends[id(r)]]
    for node in order:
        if depends[id(node)]:
            frontier.extend([s for s in node.srcs if not depends[id(s)]])
    while frontier:
        node = frontier.pop()
        if id(node) in seen:
            continue
        seen[id(node)] = True
        if is_leaf(node) or node.op in CONSTANTS:
            continue
        if node.op in ("reshape", "expand"):
            frontier.extend(node.srcs)
            continue
        narrow = None if id(node) in filters else _of_8_bits(node)
        if narrow is None or [s for s in narrow if s in roots]:  # results have a word for each element
            out.append(node)
            continue
        for s in narrow:
            if not is_leaf(s):
                s.word = "u8" if s.dtype.kind == "uint" else "i8"
        frontier.extend(narrow)
    return out


def _of_8_bits(node):
    """The 8-bit tensors that the int16 operand of a product is cast from, minus a zero point; None for other nodes.
    Kernels cast them again, from a quarter of the bytes."""
    if node.op != "cast" or node.dtype.name != "int16":
        return None
    source = node.srcs[0]
    out = []
    for s in source.srcs if source.op == "binary" and source.arg == "sub" else (source,):
        while s.op in ("reshape", "expand") or (s.op == "cast" and s.dtype.name == "int32"):
            s = s.srcs[0]
        if s.op in CONSTANTS:
            continue
        if not s.dtype.is_integer or s.dtype.bits != 8 or (s.op == "data" and s.word not in ("i8", "u8")):
            return None
        out.append(s)
    return out or None
