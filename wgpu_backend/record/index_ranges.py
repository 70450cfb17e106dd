"""Finds the inputs of a plan that are indices, and their valid ranges: the host checks them before uploading."""

from emberlet.errors import IndexingError
from emberlet.sizes.questions import smaller

from .node import LOOKUP, topological

SAME_VALUES = ("reshape", "permute", "expand", "cast")


def index_ranges(roots):
    """{number of the input: length of the shortest axis that its elements index}."""
    found = {}
    for node in topological(roots):
        if node.op not in LOOKUP:
            continue
        picks = node.srcs[1]
        while picks.op in SAME_VALUES:
            picks = picks.srcs[0]
        if picks.op == "input" and picks.dtype.is_integer:
            length = node.srcs[0].shape[node.arg]
            found[picks.arg] = smaller(length, found.get(picks.arg, length))
    return found


def check_range(ends, length, what):
    """Raise IndexingError if the lowest or highest index is outside its axis."""
    if ends[0] < -length or ends[1] >= length:
        index = ends[0] if ends[0] < -length else ends[1]
        raise IndexingError("index {} is outside {} of length {}".format(index, what, length))
