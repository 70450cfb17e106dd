"""Which narrow results are stored four to a word, or a byte each.

A map computes four neighbors at a time. The bytes that a product reads as words ("words" nodes, record/byte_words.py)
are stored as such by the kernel that computes them, whatever its anchor, if it has four neighbors at hand: no other
kernel then packs them, and the words are the buffer of the bytes. In WebAssembly and machine code, which store single
bytes, every kernel stores 8-bit integers so, and convolutions read these instead of the int16 that they multiply.
"""

from emberlet.sizes.questions import divides
from emberlet.sizes.size import is_open

from ..record.node import is_leaf, is_wide
from ..run import storage
from .items import reads


def visit_words(fusion, node):
    """Whether the bytes of a "words" node are stored as words; they are then."""
    (source,) = node.srcs
    if _is_computed_anew(fusion, node, source):
        fusion.anew[id(node)] = True
        return False
    if not _stores_words(fusion, source):
        return False
    fusion.store(source)
    fusion.packed[id(source)] = True
    return True


def _is_computed_anew(fusion, node, source):
    """Whether the products that read a "words" node compute it at every read in less time than a dispatch takes."""
    if fusion.states[id(source)].kind != "inline":
        return False
    cost = fusion.members_cost(fusion.states[id(source)])
    total, waiting = 0, [node]
    while waiting:
        at = waiting.pop()
        for reader in fusion.consumers.get(id(at), ()):
            if reader.op in ("pad", "reshape"):
                waiting.append(reader)
            elif reader.op == "dot_bytes":
                total += reads(reader) * cost  # of four elements, which at least four results of a tile share
            else:
                return False
    return 0 < total <= fusion.options.little_words


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


def reads_bytes(fusion, node, source):
    """Whether a convolution's kernel computes its picture, 8-bit integers less a number, while it copies that. These
    integers are stored then, and the picture is inline."""
    if node.op != "conv" or source is not node.srcs[0]:
        return False
    padded = [source] if node.arg[3] > 1 and fusion.pads(node, source) else []
    found = _widened(source.srcs[0] if padded else source)
    if found is None or (node.arg[3] > 1 and not padded):
        return False
    chain = padded + found
    if [1 for link in chain[:-1] if fusion.states[id(link)].kind != "inline"]:
        return False
    narrow = fusion.states[id(chain[-1])]
    if narrow.kind == "inline":
        fusion.store(chain[-1])
        for link in reversed(chain[:-1]):
            fusion.states[id(link)] = fusion.inline(link)
    return narrow.kind in ("leaf", "stored")


def is_widened(fusion, node):
    """Whether all that is done with 8-bit integers is that a convolution reads them as its picture."""
    if node.dtype.bits != 8:
        return False
    while True:
        readers = fusion.consumers.get(id(node), ())
        if len(readers) != 1:
            return False
        if readers[0].op == "conv":
            return _widened(node.srcs[0] if node.op == "pad" else node) is not None
        node = readers[0]
        if node.op not in ("cast", "pad") and not (node.op == "binary" and node.arg == "sub"):
            return False


def _widened(node):
    """The nodes from a product's operand in int16 to the 8-bit integers that it is cast from, perhaps less a number;
    None for other nodes."""
    if node.op != "cast" or node.dtype.name != "int16":
        return None
    chain = [node, node.srcs[0]]
    if chain[-1].op == "binary" and chain[-1].arg == "sub" and chain[-1].srcs[1].op == "full":
        chain.append(chain[-1].srcs[0])
    while chain[-1].op == "cast" and chain[-1].dtype.bits > 8:
        chain.append(chain[-1].srcs[0])
    return chain if chain[-1].dtype.is_integer and chain[-1].dtype.bits == 8 else None


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
        if key in fusion.packed or (fusion.options.stores_bytes and _takes_bytes(fusion, node, wanted)):
            node.word = narrow
        elif key in fusion.stored and key not in fusion.regions and key not in wanted:
            if aliased(fusion, node) is not None:
                node.word = node.srcs[0].word
            elif fusion.states[key].anchor is None and is_wide(node):
                node.word = narrow


def _takes_bytes(fusion, node, wanted):
    """Whether a tensor of 8-bit integers takes a byte each where kernels can store single bytes."""
    key = id(node)
    if node.dtype.is_bool or key in wanted or key not in fusion.stored:
        return False
    if is_open(node.count) and not divides(4, node.count):  # buffers are whole words
        return False
    return aliased(fusion, node) is None and (key not in fusion.regions or node.op == "concat")


def aliased(fusion, node):
    """The node whose buffer a stored node can share: the source of a reshape, if that has a buffer, or of words whose
    bytes are stored as such; else None."""
    if fusion.states[id(node)].anchor is not None:
        return None
    source = node.srcs[0] if node.op in ("reshape", "words") else None
    if source is None or not (is_leaf(source) or id(source) in fusion.stored):
        return None
    return None if node.op == "words" and source.word != storage.packed(source.dtype) else source
