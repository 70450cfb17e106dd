"""Which tensors are quantized by their range in the kernels of the products that read them, so that no kernel does it
before these: on a GPU a dispatch takes longer than what each workgroup then does again."""

from emberlet.sizes.questions import known_equal

from ..record.node import is_leaf


def without_ranges(fusion, items):
    """The items without those of "range_levels" nodes of which all readers find the range themselves."""
    ranges = fusion.options.ranges
    found = {id(item.node): item for item in items if item.anchor is not None and item.anchor.op == "range_levels"}
    if ranges is None or not found:
        return items
    for item in items:
        here = [found[key] for key in _read(item, fusion.stored) if key in found]
        if [1 for one in here if len(here) > 1 or not _is_left(item, one.node) or not ranges(item, one.anchor.srcs[0])]:
            for one in here:
                del found[id(one.node)]
    for key in list(found):
        (x,) = found[key].anchor.srcs
        if key in fusion.roots or not (is_leaf(x) or id(x) in fusion.stored) or known_equal(x.count, 0):
            del found[key]
        else:
            del fusion.stored[key]
    return [item for item in items if id(item.node) not in found]


def _read(item, stored):
    """The ids of the nodes whose buffers an item reads."""
    out, seen, stack = {}, {}, [item.node] if item.copy else list(item.node.srcs)
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen[id(node)] = True
        if is_leaf(node) or id(node) in stored:
            out[id(node)] = True
        else:
            stack.extend(node.srcs)
    return out


def _is_left(item, levels):
    """Whether the left operand of an item's product is some of the words of a "range_levels" node."""
    node = item.anchor.srcs[0] if item.anchor is not None and item.anchor.op == "dot_bytes" else None
    while node is not None and node.op in ("reshape", "slice"):
        node = node.srcs[0]
    return node is levels
