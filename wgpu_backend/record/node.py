"""The recorded graph: one Node per tensor, holding how to compute it until it is realized into a buffer."""

from emberlet.backend.tracing import ValueNeeded
from emberlet.shapes import size
from emberlet.sizes.questions import divides
from emberlet.sizes.size import is_open, typical

from ..run import storage
from .bounds import interval

LEAVES = ("data", "buffer", "input", "host", "numbers")
CONSTANTS = ("full", "arange", "random")
MOVEMENT = ("reshape", "permute", "expand", "slice", "pad", "concat")
ELEMENTWISE = ("unary", "binary", "where", "cast", "bitcast")
LOOKUP = ("take", "gather")
VIEWED = ("words", "bytes")  # one as the other
WIDE = 1 << 14  # from this many elements on, a plain map computes four at a time
_VIEWS = ("reshape", "permute", "expand")


class Node:
    """The `data` of a wgpu tensor.

    op and arg: "data" words as bytes, not uploaded yet; "buffer" realized; "input" a placeholder while a plan is
    traced (arg its name); "host" a tensor that does not live on the GPU (arg the host backend's Tensor); "numbers" the
    arguments of other nodes that a kernel reads from a buffer (arg [(id of the node, which of its `numbers`)]);
    otherwise an operation over `srcs` with the parameters `arg` (backend.py records them, lowering.py reads them).
    buffer: the Allocation holding the elements, row-major; None until realized. word: their storage type, "f32", "i32",
    "u32", "f16" for float16 where the device has it, or "i8" and "u8" for narrow data, four to a word (storage.py).
    holder: a weak reference to the node's Tensor, None if it has none or the port has no weak references. bounds: the
    interval of an integer node's elements, once computed (bounds.py); exact: whether it is the tightest. checks: where
    the node is an index, what its elements have to be (index_checks.py), else None.
    """

    __slots__ = (
        "arg", "bounds", "buffer", "checks", "count", "dtype", "exact", "holder", "op", "shape", "srcs", "word",
    )  # fmt: skip

    def __init__(self, op, srcs, arg, dtype, shape, word=None):
        self.op = op
        self.srcs = srcs
        self.arg = arg
        self.dtype = dtype
        self.shape = shape
        self.count = size(shape)
        self.buffer = None
        self.checks = None
        self.holder = None
        self.bounds = None
        self.exact = False
        self.word = word or storage.word(dtype)

    @property
    def nbytes(self):
        """Bytes of the elements in a buffer, a multiple of 4."""
        return storage.nbytes(self.word, self.count)

    def become_buffer(self, buffer, word=None):
        """Mark the node as realized. It forgets how it was computed, so that its sources can be freed. word: its
        storage type, if that has changed."""
        if self.dtype.bits == 64:
            interval(self)
        # No calls from here on, so that an interrupt finds the node in either state, never between them.
        self.word = word or self.word
        self.buffer = buffer
        self.op = "buffer"
        self.srcs = ()
        self.arg = None
        self.checks = None

    def __repr__(self):
        return "Node({}, {}, {})".format(self.op, self.dtype, self.shape)


def is_leaf(node):
    return node.op in LEAVES


def is_inline(node):
    """Whether the node can be part of another kernel's expression: it needs no kernel of its own."""
    op = node.op
    return op in ELEMENTWISE or op in MOVEMENT or op in CONSTANTS or op in LOOKUP or op in VIEWED


def is_wide(node):
    """Whether a plain map that stores `node` computes four elements per invocation: fewer and wider accesses, if enough
    invocations remain."""
    return typical(node.count) >= WIDE and divides(4, node.count)


def of_open_size(node):
    """Whether a node's elements, or their number, depend on a size that a plan leaves open."""
    if is_open(node.count):
        return True
    if node.op in ("full", "arange", "slice", "pad"):
        stack = [node.arg]
        while stack:
            found = stack.pop()
            if is_open(found):
                return True
            if isinstance(found, tuple):
                stack.extend(found)
    return False


def topological(roots):
    """The unrealized nodes that `roots` depend on, and the leaves, sources first. Iterative, as graphs are deep."""
    order = []
    state = {}
    for root in roots:
        stack = [root]
        while stack:
            node = stack[-1]
            key = id(node)
            if key not in state:
                state[key] = 1
                for s in node.srcs:
                    if id(s) not in state:
                        stack.append(s)
                continue
            stack.pop()
            if state[key] == 1:
                state[key] = 2
                order.append(node)
    return order


def unpacked(node):
    """`node`, or an unpacked copy with one word per element."""
    if node.word not in ("i8", "u8"):
        return node
    return Node("permute", (node,), tuple(range(len(node.shape))), node.dtype, node.shape)


def live_nodes(order, roots):
    """Nodes of `order` to compute along with `roots`, because live Tensors hold them. If they were left out, reading
    such a Tensor later would recompute its history, which for a state carried from call to call keeps growing.

    A view of a node with a buffer needs none of its own; a view of any other node keeps that node.
    """
    kept = {}
    for r in roots:
        kept[id(r)] = r
    out = []
    for node in order:
        if node.holder is None or node.holder() is None:
            continue
        while node.op in _VIEWS and id(node) not in kept:
            node = node.srcs[0]
        if node.op == "slice" and (is_leaf(node.srcs[0]) or id(node.srcs[0]) in kept):
            continue
        if id(node) not in kept and node.count and not is_leaf(node) and node.op not in CONSTANTS:
            kept[id(node)] = node
            out.append(node)
    return out


def numbers(node):
    """The parameters, as unsigned words, that this node's kernel reads from a buffer if it is to serve other values
    too: a fill, the start and step of an arange, a random stream's key, the starts of a slice. () if it has none."""
    op = node.op
    if op == "full":
        return (storage.word_of(node.arg, node.dtype),)
    if op == "pad":
        return (storage.word_of(node.arg[1], node.dtype),)
    if op == "arange":
        return tuple([storage.word_of(n, node.dtype) for n in node.arg])
    if op == "slice":
        return node.arg[0]
    if op == "random":
        key, counter = node.arg
        whole = counter & ((1 << 128) - 1) | (key & ((1 << 64) - 1)) << 128
        return tuple([(whole >> (32 * i)) & 0xFFFFFFFF for i in range(6)])
    return ()


def own_numbers(node):
    """Which of a node's `numbers` are passed to its kernel at run time; signatures leave them out."""
    if node.op == "slice":
        return [i for i in range(len(node.shape)) if node.shape[i] != node.srcs[0].shape[i]]
    if node.op == "arange" and node.arg == (0, 1):
        return []  # plain positions, so that index expressions can be simplified
    return range(len(numbers(node)))


def signature(order, roots):
    """A key that is equal for graphs that one plan serves: their structure, without the values of leaves and the
    `numbers` that kernels read at run time."""
    number = {}
    out = []
    for i in range(len(order)):
        node = order[i]
        number[id(node)] = i
        if node.op in LEAVES:
            out.append((node.dtype.name, node.word, node.shape))
        else:
            srcs = tuple([number[id(s)] for s in node.srcs])
            out.append((node.op, structure(node), node.dtype.name, node.shape, srcs))
    out.append(tuple([number[id(r)] for r in roots]))
    return tuple(out)


def structure(node):
    """The part of a node's argument that its kernel depends on."""
    if node.op in ("full", "random"):
        return None
    if node.op == "arange":
        return node.arg == (0, 1)
    if node.op == "pad":
        # Kernels may add a border of zeros themselves.
        return (node.arg[0], not is_open(node.arg[1]) and node.arg[1] == 0)
    if node.op == "slice":
        bound = own_numbers(node)
        return (node.arg[1], tuple([None if i in bound else node.arg[0][i] for i in range(len(node.shape))]))
    return node.arg


def depends_on_input(node):
    """Whether `node` depends on an input of the plan being traced, or on an open size."""
    for n in topological([node]):
        if n.op == "input" or of_open_size(n):
            return True
    return False


def refuse_values(node):
    """Raise ValueNeeded for a node that depends on an input of the plan being traced."""
    for n in topological([node]):
        if n.op == "input":
            what = node.arg if node.op in ("unary", "binary") else node.op
            raise ValueNeeded(
                "the model's control flow depends on the value of {} {}{}, which depends on input {!r}".format(
                    what, node.dtype, node.shape, n.arg
                ),
                (n.arg,),
            )
        if of_open_size(n):
            raise ValueNeeded(
                "the model's control flow depends on the value of {} {}{}, which depends on an open size".format(
                    node.op, node.dtype, node.shape
                )
            )
