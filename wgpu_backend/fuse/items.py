"""What fusion makes of a graph: items, and what was decided of each node."""

from emberlet.shapes import size
from emberlet.sizes.size import typical

from ..record.node import CONSTANTS, ELEMENTWISE, LOOKUP, is_leaf

# Elementwise operations of about one instruction; all others cost as much as eight of them.
_CHEAP = (
    "neg", "abs", "sign", "floor", "ceil", "round", "trunc", "isnan", "isinf", "add", "sub", "mul",
    "maximum", "minimum", "bitwise_not", "bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right",
    "logical_not", "logical_and", "logical_or", "logical_xor", "eq", "ne", "lt", "le", "gt", "ge",
)  # fmt: skip


def reads(node):
    """How many elements of an operand a product, a convolution or attention with rounded weights reads, again and
    again; 0 for other nodes."""
    if node.op == "attention" and node.arg[5] is not None:
        return typical(node.srcs[0].count * node.srcs[1].shape[2])
    if node.op not in ("matmul", "conv", "dot_bytes"):
        return 0
    weight = node.srcs[1].shape
    terms = weight[-2] if node.arg is None else size(weight[1:])
    return typical(node.count * terms)


class Item:
    """One kernel, which computes `node` from `anchor` (None: by a plain map) and stores it. copy: the node already has
    a buffer and is copied (into a region).

    chain: the nodes from the anchor (exclusive) to `node` (inclusive). region: None, or (concat node, starts): the
    result goes into the concatenation's buffer, offset by `starts` along each axis.

    second: None, or (another node that the kernel stores, the nodes from `node` (exclusive) to that (inclusive)).
    """

    second = None

    def __init__(self, node, anchor, chain=(), region=None, copy=False):
        self.copy = copy
        self.node = node
        self.anchor = anchor
        self.chain = chain
        self.region = region


class Stored(dict):
    """id -> node of everything that gets a buffer. bind_numbers: whether kernels take the numbers of fills, slices and
    so on (node.numbers) from a buffer, so that one kernel serves any values. limits: the Limits of the device's arrays,
    None for WebGPU's baseline."""

    bind_numbers = False
    limits = None


class State:
    """What was decided of a node: its kind. leaves: ids of the nodes that its expression reads; members: the cost of
    each node in it but numbers, by id; anchor, chain: of an epilogue, as in Item."""

    def __init__(self, kind, leaves, members, anchor=None, chain=()):
        self.kind = kind
        self.leaves = leaves
        self.members = members
        self.anchor = anchor
        self.chain = chain


def is_simple(node):
    """Whether a node is a leaf, a constant, or a view of one."""
    while node.op in ("reshape", "permute", "expand", "slice"):
        node = node.srcs[0]
    return is_leaf(node) or node.op in CONSTANTS


def is_table(node):
    """Whether each element of a node is looked up in a constant table by the element of its index."""
    return node.op == "take" and len(node.srcs[0].shape) == 1 and is_leaf(node.srcs[0])


def is_picked(node):
    """Whether a node's elements are picked by an index: kernels of products read the rows that are stored in place."""
    while node.op in ("cast", "reshape"):
        node = node.srcs[0]
    return node.op in LOOKUP


def cost(node):
    if node.op in ("unary", "binary"):
        return 1 if node.arg in _CHEAP else 8
    if node.op in ELEMENTWISE:
        return 1
    if node.op in ("words", "bytes"):
        return 8 if node.op == "words" else 2
    return 2 if node.op in ("pad", "concat", "take", "gather", "random") else 0


def joined(*dicts):
    out = {}
    for d in dicts:
        out.update(d)
    return out
