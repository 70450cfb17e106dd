"""Ranges of integers that follow from the recorded operations alone, whatever the values of data are: kernels that
depend on them serve other data, too."""

from emberlet.sizes.size import is_open

_SAME = ("reshape", "permute", "expand", "slice")
_DEPTH = 16  # operations that are followed back


def narrow_range(node, depth=_DEPTH):
    """(lowest, highest) possible element of a node of integers of at most 32 bits, as far as casts from 8 bits,
    differences to numbers and movements show; None if they do not."""
    own = node.dtype.range if node.dtype.is_integer and node.dtype.bits <= 16 else None
    found = _worked_out(node, depth - 1) if depth else None
    if found is None or (own is not None and (found[0] < own[0] or found[1] > own[1])):
        return own
    return found


def _worked_out(node, depth):
    op = node.op
    if op == "full":
        return None if is_open(node.arg) or not node.dtype.is_integer else (int(node.arg), int(node.arg))
    if op == "cast" or op in _SAME:
        return narrow_range(node.srcs[0], depth) if node.srcs[0].dtype.is_integer else None
    if op == "pad":
        found, fill = narrow_range(node.srcs[0], depth), node.arg[1]
        return (min(found[0], int(fill)), max(found[1], int(fill))) if found and not is_open(fill) else None
    if op == "binary" and node.arg == "sub":
        a, b = [narrow_range(s, depth) for s in node.srcs]
        return (a[0] - b[1], a[1] - b[0]) if a and b else None
    return None
