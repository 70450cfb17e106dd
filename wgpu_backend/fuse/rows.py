"""Finds row regions, which one kernel computes row by row: softmax, normalizations, variances and the like.

A row region starts at a reduction (axes kept, extent 1) and grows by nodes that only need the same row: elementwise
nodes of the full shape or of one value per row, and further reductions over the same axes. It must have one exit: no
other member is read from outside.
"""

from emberlet.shapes import size
from emberlet.sizes.questions import known_equal
from emberlet.sizes.size import most

from ..record.node import ELEMENTWISE

MAX_LENGTH = 1 << 20  # elements of a row; longer rows are reduced in two steps by many workgroups


class Region:
    """reductions: in order; scalars: elementwise members with one value a row, in order; full: the full shape; axes:
    the reduced axes; exit: the member that is stored; members: id -> node."""

    def __init__(self, reductions, scalars, full, axes, exit, members):
        self.reductions = reductions
        self.scalars = scalars
        self.full = full
        self.axes = axes
        self.exit = exit
        self.members = members

    def externals(self):
        """Nodes outside the region that its members read."""
        out = []
        for key in self.members:
            for s in self.members[key].srcs:
                if id(s) not in self.members and s not in out:
                    out.append(s)
        return out


def find_regions(order, consumers, roots, max_outside=None):
    """id -> Region of every member of a row region of the graph; regions do not overlap. max_outside: the most nodes
    with a buffer that a region may read, None for any number."""
    found = {}
    for at in range(len(order)):
        node = order[at]
        if node.op == "reduce" and id(node) not in found and _keeps(node) and not known_equal(node.srcs[0].count, 0):
            region = _grow(order, at, consumers, roots, found, max_outside)
            if region is not None:
                for key in region.members:
                    found[key] = region
    return found


def _keeps(node):
    return node.arg[2] and node.arg[0] in ("sum", "prod", "max", "min") and not known_equal(node.count, 0)


def _grow(order, at, consumers, roots, found, max_outside):
    first = order[at]
    full = first.srcs[0].shape
    row = first.shape
    axes = first.arg[1]
    if known_equal(full, row) or most(size([full[a] for a in axes])) > MAX_LENGTH:
        return None
    members = {id(first): first}
    taken = {}  # ids of members that something else reads, or that depend on one: no later exit may depend on them
    best = None
    for node in order[at + 1 :]:
        inside = [s for s in node.srcs if id(s) in members]
        if not inside:
            continue
        if id(node) in found or not _joins(node, full, row, axes):
            for s in inside:
                taken[id(s)] = True
            continue
        members[id(node)] = node
        if [s for s in inside if id(s) in taken or id(s) in roots]:
            taken[id(node)] = True
            continue
        chosen = _closed(node, members, consumers, roots)
        if chosen is not None and id(first) in chosen and _reads_few(chosen, max_outside):
            best = (node, chosen)
    if best is None:
        return None
    exit, chosen = best
    ordered = [n for n in order[at:] if id(n) in chosen]
    if not [n for n in ordered if known_equal(n.shape, full)]:
        return None
    reductions = [n for n in ordered if n.op == "reduce"]
    scalars = [n for n in ordered if n.op != "reduce" and known_equal(n.shape, row) and n is not exit]
    return Region(reductions, scalars, full, axes, exit, {id(n): n for n in ordered})


def _joins(node, full, row, axes):
    """Whether a node that reads a member may be one."""
    if node.op in ELEMENTWISE:
        return known_equal(node.shape, full) or known_equal(node.shape, row)
    return node.op == "reduce" and _keeps(node) and node.arg[1] == axes and known_equal(node.srcs[0].shape, full)


def _closed(exit, members, consumers, roots):
    """The members that `exit` depends on, or None if any of them but `exit` is read from outside."""
    chosen = {}
    stack = [exit]
    while stack:
        node = stack.pop()
        if id(node) not in chosen:
            chosen[id(node)] = node
            stack.extend([s for s in node.srcs if id(s) in members])
    for key in chosen:
        if chosen[key] is exit:
            continue
        if key in roots:
            return None
        for reader in consumers[key]:
            if id(reader) not in chosen:
                return None
    return chosen


def _reads_few(members, max_outside):
    """Whether members (id -> node) read at most `max_outside` nodes from outside, numbers apart."""
    if max_outside is None:
        return True
    outside = {}
    for key in members:
        for s in members[key].srcs:
            if id(s) not in members and s.op not in ("full", "arange"):
                outside[id(s)] = s
    return len(outside) <= max_outside
