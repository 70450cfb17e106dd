"""Which tensors are quantized by their range in the kernels of the products that read them, so that no kernel does it
before these: on a GPU a dispatch takes longer than what each workgroup then does again."""

from emberlet.sizes.questions import known_equal

from ..record.node import is_leaf

NEAR = 3  # the highest cost of an element of a tensor whose range each workgroup finds


def without_ranges(fusion, items):
    """The items without those of "range_levels" nodes of which all readers find the range themselves."""
    ranges = fusion.options.ranges
    found = {id(item.node): item for item in items if item.anchor is not None and item.anchor.op == "range_levels"}
    if ranges is None or not found:
        return items
    for item in items:
        here = [found[key] for key in read(item, fusion.stored) if key in found]
        if len(here) > 1 or [
            1 for one in here if levels_read(item) is not one.node or not ranges(item, one.anchor.srcs[0])
        ]:
            for one in here:
                del found[id(one.node)]
    for key in list(found):
        (x,) = found[key].anchor.srcs
        if key in fusion.roots or not _is_near(fusion, x) or known_equal(x.count, 0):
            del found[key]
        else:
            del fusion.stored[key]
    return [item for item in items if id(item.node) not in found]


def _is_near(fusion, x):
    """Whether x has a buffer, or its elements are read of one in few operations."""
    if is_leaf(x) or id(x) in fusion.stored:
        return True
    state = fusion.states[id(x)]
    return state.kind == "inline" and sum(state.members.values()) <= NEAR


def read(item, stored):
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


def levels_read(item):
    """The "range_levels" node of whose words, or floats, the first operand of an item's product consists; else None."""
    if item.anchor is None or item.anchor.op not in ("dot_bytes", "matmul", "conv"):
        return None
    node = item.anchor.srcs[0]
    while node.op in ("reshape", "slice", "bitcast"):
        node = node.srcs[0]
    return node if node.op == "range_levels" else None
