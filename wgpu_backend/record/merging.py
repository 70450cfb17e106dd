"""Merges what a trace records several times: layers that quantize the same tensor by its range each find that, and its
levels, for themselves. And lets all readers of levels read the words that products read, so that the kernel that
computes the levels stores only these."""

from emberlet import dtypes
from emberlet.sizes.questions import known_equal

from .node import Node, is_leaf, topological

_PURE = ("unary", "binary", "where", "cast", "bitcast", "reduce", "reshape", "permute", "expand", "full", "slice",
         "concat", "words", "arange", "range_levels", "bytes")  # fmt: skip


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
    _read_words(roots, kept)
    _read_floats(roots)


def _merges(node, kept):
    # `==` would note a guard: the plan would not serve the size 1 of an open axis.
    small = node.dtype.bits == 8 or node.op in ("words", "range_levels") or known_equal(node.count, 1)
    return small and node.op in _PURE and node.op != "full" and node.checks is None and id(node) not in kept


def _key(node, numbers):
    """What equal nodes have in common; None for nodes that equal no other one."""
    if node.op == "arange" and not node.dtype.is_float:
        return None  # positions: indices that are computed from them cost less than reading them
    if node.op not in _PURE or not _is_plain(node.arg) or not _is_plain(node.shape):
        return None
    return node.op, repr(node.arg), node.dtype.name, node.shape, node.word, tuple([numbers[id(s)] for s in node.srcs])


def _is_plain(arg):
    """Whether an argument's text says what it is: open sizes may not."""
    if isinstance(arg, (tuple, list)):
        return not [1 for each in arg if not _is_plain(each)]
    return arg is None or isinstance(arg, (int, float, str))


# -- words ----------------------------------------------------------------------------------------------------------


def _read_words(roots, kept):
    """Let the readers of levels of which a product reads the words (byte_words.py) read the latter's bytes."""
    order = topological(roots)
    readers = {}
    for node in order:
        for s in node.srcs:
            readers.setdefault(id(s), []).append(node)
    for node in order:
        found = _levels_of(node.srcs[0], readers) if node.op == "words" else None
        if found is None or is_leaf(found[0]) or id(found[0]) in kept:
            continue
        levels, first = found
        others = [r for r in readers.pop(id(levels), ()) if r is not first]
        if others:
            again = _levels_from(node.srcs[0], levels)
            for reader in others:
                reader.srcs = tuple([again if s is levels else s for s in reader.srcs])


def _levels_of(fours, readers):
    """(levels, their reader on the way) of int8 whose last axis are four neighbors (byte_words.words); None if there
    are no levels of the same elements."""
    if fours.op == "concat":
        parts = [_levels_of(part, readers) for part in fours.srcs]
        if [1 for part in parts if part is None]:
            return None
        levels = tuple([part[0] for part in parts])
        found = readers.get(id(levels[0]), ())  # none where another product's words are read already
        wholes = [r for r in found if r.op == "concat" and r.arg == fours.arg and r.srcs == levels]
        return (wholes[0], None) if wholes else None
    split = fours.srcs[0] if fours.op == "permute" else fours
    if split.op != "reshape":
        return None
    first, levels = split, split.srcs[0]
    if levels.op == "cast" and levels.srcs[0].op == "binary" and levels.srcs[0].arg == "sub":
        wide, less = levels.srcs[0].srcs
        if wide.op == "cast" and wide.srcs[0].dtype is dtypes.uint8 and less.op == "full" and less.arg == 128:
            first, levels = wide, wide.srcs[0]
    return (levels, first) if levels.dtype.bits == 8 else None


def _levels_from(fours, levels):
    """The levels, from the bytes of words."""
    node, part = fours, fours
    while part.op == "concat":
        part = part.srcs[0]
    if part.op == "permute":
        back = tuple([part.arg.index(axis) for axis in range(len(part.arg))])
        node = Node("permute", (node,), back, node.dtype, tuple([node.shape[axis] for axis in back]))
    node = Node("reshape", (node,), None, node.dtype, levels.shape)
    if levels.dtype is dtypes.int8:
        return node
    more = Node("full", (), 128, dtypes.int32, ())
    node = Node("cast", (node,), True, dtypes.int32, levels.shape)
    node = Node("binary", (node, more), "add", dtypes.int32, levels.shape)
    return Node("cast", (node,), True, levels.dtype, levels.shape)


# -- floats ---------------------------------------------------------------------------------------------------------


def _read_floats(roots):
    """Let the readers of the scale and zero point of a tensor's range read those beside its floats (range_levels.py),
    where nothing reads its words."""
    order = topological(roots)
    floats = {id(n.srcs[0]): n for n in order if n.op == "range_levels" and n.arg == "floats"}
    readers = {}
    for node in order:
        for s in node.srcs:
            if s.op == "range_levels" and s.arg is None and id(s.srcs[0]) in floats:
                readers.setdefault(id(s), []).append(node)
    for found in readers.values():
        words = found[0].srcs[0]
        if not [1 for n in found if n.op != "slice" or n.arg[0][0] < words.count - 2]:
            whole = floats[id(words.srcs[0])]
            for n in found:
                n.srcs = (whole,)
                n.arg = ((n.arg[0][0] + whole.count - words.count,), n.arg[1])
