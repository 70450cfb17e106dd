"""Which narrow results are stored four to a word.

A map computes four neighbors at a time. The bytes that a product reads as words ("words" nodes, record/byte_words.py)
are stored as such by the kernel that computes them, whatever its anchor, if it has four neighbors at hand: no other
kernel then packs them, and the words are the buffer of the bytes.
"""

from ..record.node import is_leaf, is_wide
from ..run import storage


def visit_words(fusion, node):
    """Whether the bytes of a "words" node are stored as words; they are then."""
    (source,) = node.srcs
    if not _stores_words(fusion, source):
        return False
    fusion.store(source)
    fusion.packed[id(source)] = True
    return True


def _stores_words(fusion, node):
    state = fusion.states[id(node)]
    if state.kind == "leaf":
        return node.word == storage.packed(node.dtype)
    items = fusion.regions.get(id(node))
    if items is None:
        return _packs(fusion, state)
    return not [1 for item in items if not _packs(fusion, item)]


def _packs(fusion, ending):
    """Whether the kernel of an anchor and a chain, those of a State or Item, can store four bytes as a word."""
    if ending.anchor is None:
        return fusion.options.packs is not None
    return fusion.options.packs is not None and fusion.options.packs(ending.anchor, ending.chain)


def pack(fusion, results):
    """Store narrow elements four to a word where a map computes four at a time, and bytes of words; roots only if
    `results`.

    Tensors that a user's kernel reads, directly or through reshapes, keep one word per element.
    """
    wanted = set()  # ids of those that keep one word per element
    for i in range(len(fusion.order) - 1, -1, -1):
        node = fusion.order[i]
        if id(node) in fusion.roots and not results:
            wanted.add(id(node))
        if node.op == "kernel" or (node.op == "reshape" and id(node) in wanted):
            for s in node.srcs:
                wanted.add(id(s))
    for node in fusion.order:
        key = id(node)
        narrow = storage.packed(node.dtype)
        if is_leaf(node) or narrow is None:
            continue
        node.word = storage.word(node.dtype)  # also where an earlier plan packed it
        if key in fusion.packed:
            node.word = narrow
        elif key in fusion.stored and key not in fusion.regions and key not in wanted:
            if aliased(fusion, node) is not None:
                node.word = node.srcs[0].word
            elif fusion.states[key].anchor is None and is_wide(node):
                node.word = narrow


def aliased(fusion, node):
    """The node whose buffer a stored node can share: the source of a reshape, if that has a buffer, or of words whose
    bytes are stored as such; else None."""
    if fusion.states[id(node)].anchor is not None:
        return None
    source = node.srcs[0] if node.op in ("reshape", "words") else None
    if source is None or not (is_leaf(source) or id(source) in fusion.stored):
        return None
    return None if node.op == "words" and source.word != storage.packed(source.dtype) else source
