"""Merges what a trace records several times: layers that quantize the same tensor by its range each find that, and its
levels, for themselves."""

from emberlet.sizes.questions import known_equal

from .node import topological

_PURE = ("unary", "binary", "where", "cast", "bitcast", "reduce", "reshape", "permute", "expand", "full")


def merge_levels(roots):
    """Let the readers of equal numbers, and of equal tensors of 8 bits, read one of them. Other equal nodes stay apart:
    kernels compute elementwise ones again where they are read."""
    numbers, alike, first = {}, {}, {}
    kept = {id(r) for r in roots}
    for node in topological(roots):
        node.srcs = tuple([first.get(numbers[id(s)], s) if _merges(s, kept) else s for s in node.srcs])
        key = _key(node, numbers)
        number = len(alike) if key is None else alike.setdefault(key, len(alike))
        if key is None:
            alike[id(node)] = number
        numbers[id(node)] = number
        if _merges(node, kept):
            first.setdefault(number, node)


def _merges(node, kept):
    # `==` would note a guard: the plan would not serve the size 1 of an open axis.
    small = node.dtype.bits == 8 or known_equal(node.count, 1)
    return small and node.op in _PURE and node.op != "full" and node.checks is None and id(node) not in kept


def _key(node, numbers):
    """What equal nodes have in common; None for nodes that equal no other one."""
    if node.op not in _PURE or not _is_plain(node.arg) or not _is_plain(node.shape):
        return None
    return node.op, repr(node.arg), node.dtype.name, node.shape, node.word, tuple([numbers[id(s)] for s in node.srcs])


def _is_plain(arg):
    """Whether an argument's text says what it is: open sizes may not."""
    if isinstance(arg, (tuple, list)):
        return not [1 for each in arg if not _is_plain(each)]
    return arg is None or isinstance(arg, (int, float, str))
