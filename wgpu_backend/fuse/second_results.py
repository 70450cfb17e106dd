"""Which bytes are stored by the kernel of the result that they are computed of, beside that result: the sum of a
shortcut and its levels, which the next product reads. On a GPU another dispatch would take longer."""

from emberlet.sizes.questions import known_equal

from ..record.node import ELEMENTWISE, is_leaf
from .items import is_table
from .own_ranges import read

MOST = 48  # nodes behind an anchor: bounds the length of a shader


def joined_to_others(fusion, items):
    """The items without those that the kernel of another one stores as its second result."""
    if fusion.options.joins is None:
        return items
    makers = {id(item.node): item for item in items if item.anchor is not None and _is_whole(item)}
    out = []
    for item in items:
        maker = None
        bytes_alone = item.anchor is None and _is_whole(item) and item.node.word in ("i8", "u8")
        if bytes_alone and id(item.node) not in fusion.roots:
            source, chain, leaves = _behind(item.node, fusion.stored)
            maker = makers.get(id(source))
        if maker is None or maker.second is not None or not _fits(fusion, maker, item.node, chain, leaves):
            out.append(item)
        else:
            maker.second = (item.node, chain)
    return out


def _is_whole(item):
    return item.region is None and not item.copy


def _fits(fusion, maker, node, chain, leaves):
    """Whether the kernel of an item can store a node, too."""
    if maker.node.word in ("i8", "u8") or len(maker.chain) + len(chain) > MOST:
        return False
    leaves.update(read(maker, fusion.stored))
    return len(leaves) <= fusion.max_inputs and fusion.options.joins(maker, node, chain)


def _behind(node, stored):
    """(the only node computed by a kernel that `node` follows from, element by element; the nodes from there on; the
    ids of leaves that it reads besides). None for the first if there is no such node, or more than one."""
    nothing = (None, (), {})
    paths = {}  # id -> None for what follows from leaves alone, else (the node, moves, chain)
    leaves = {}
    stack = [node]
    while stack:
        at = stack[-1]
        if id(at) in paths:
            stack.pop()
        elif is_leaf(at):
            paths[id(at)] = None
            leaves[id(at)] = True
        elif at is not node and id(at) in stored:
            paths[id(at)] = (at, (), ())
        else:
            left = [s for s in at.srcs if id(s) not in paths]
            stack.extend(left)
            if not left:
                found = _joined(at, paths)
                if found is False:
                    return nothing
                paths[id(at)] = found
    found = paths[id(node)]
    return nothing if found is None else (found[0], found[2], leaves)


def _joined(node, paths):
    """The path of a node from those of its sources; False if its elements do not follow from one each."""
    sources = [s for s in node.srcs if paths[id(s)] is not None]
    if not sources:
        return None
    maker, moves, chain = paths[id(sources[0])]
    if node.op in ("reshape", "permute"):
        return maker, moves + (id(node),), chain + (node,)
    if not (node.op in ELEMENTWISE or (is_table(node) and paths[id(node.srcs[0])] is None)):
        return False
    for s in sources:
        other = paths[id(s)]
        if other[0] is not maker or other[1] != moves or not known_equal(s.shape, node.shape):
            return False
    return maker, moves, chain + (node,)
