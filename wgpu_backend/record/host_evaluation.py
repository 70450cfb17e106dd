"""Computes recorded nodes on the host backend, such as the constants of a plan made without a GPU."""

from emberlet import dtypes
from emberlet.backend.axes import closed
from emberlet.errors import BackendError, refuse

from ..run import storage
from .node import CONSTANTS, Node, is_leaf, of_open_size, topological

MOST = 16  # the longest history, in nodes, that `given` computes


def evaluate(nodes, host):
    """Turn each node, none of which depends on an input, into a "data" node with its value."""
    values = values_of(nodes, host)
    for i, n in enumerate(nodes):
        value, values[i] = values[i], None  # which is freed before the next one's bytes are made
        n.arg = storage.widen(host.to_bytes(value), n.dtype, n.count, n.word)
        if n.arg is None:
            raise BackendError("a constant of the plan, {} {}, holds values beyond 32 bits".format(n.dtype, n.shape))
        n.op = "data"
        n.srcs = ()


class Later:
    """The `arg` of a "data" node whose words are computed only where somebody needs them (`words_of`)."""

    def __init__(self, node, host):
        self.node = Node(node.op, node.srcs, node.arg, node.dtype, node.shape, node.word)
        self.host = host


def defer(node, host):
    """Turn a node that depends on no input into a "data" node, whose value is computed where it is needed."""
    node.arg = Later(node, host)
    node.op = "data"
    node.srcs = ()


def words_of(node):
    """The words of a "data" node."""
    if isinstance(node.arg, Later):
        later = node.arg
        evaluate([later.node], later.host)
        node.arg = later.node.arg
    return node.arg


def values_of(nodes, host):
    """The values of nodes, none of which depends on an input, as Tensors of the host backend."""
    values = _values(topological(nodes), host, nodes)
    return [values[id(n)] for n in nodes]


def given(node, host):
    """The value of a node that is computed from host data alone in a few steps; else None."""
    order = topological([node])
    if len(order) > MOST or [n for n in order if of_open_size(n)]:
        return None
    for n in order:
        if n.op != "data" and n.op not in CONSTANTS and (is_leaf(n) or n.op not in _EVALUATE):
            return None
    return _values(order, host, [node])[id(node)]


def is_evaluated(node):
    """Whether the host computes the node's operation; it does not know those of kernels of your own."""
    return is_leaf(node) or node.op in _EVALUATE


def _evaluation(node):
    if node.op not in _EVALUATE:
        refuse("no kernel", node.op, "the host")
    return _EVALUATE[node.op]


def _values(order, host, wanted):
    """{id of a wanted node: its value}; others are freed with their last use."""
    uses = {}
    for node in wanted:
        uses[id(node)] = 1
    for node in order:
        for s in node.srcs:
            uses[id(s)] = uses.get(id(s), 0) + 1
    values = {}
    for node in order:
        srcs = [values[id(s)] for s in node.srcs]
        values[id(node)] = _leaf(host, node) if is_leaf(node) else _evaluation(node)(host, node, srcs)
        for s in node.srcs:
            uses[id(s)] -= 1
            if not uses[id(s)]:
                del values[id(s)]
    return values


def evaluated(order, host, given, values):
    """The value of the last of some nodes, each after its sources and none on the GPU. given: the host's Tensor of an
    input, by its number; values: those of the open sizes' atoms, or None."""
    found = {}
    for node in order:
        if node.op == "input":
            found[id(node)] = given(node.arg)
        elif node.op == "data":
            found[id(node)] = _leaf(host, node)
        else:
            known = node if values is None else _Closed(node, values)
            found[id(node)] = _evaluation(node)(host, known, [found[id(s)] for s in node.srcs])
    return found[id(order[-1])]


class _Closed:
    """A node with numbers for its open sizes."""

    def __init__(self, node, values):
        self.arg = closed(node.arg, values)
        self.shape = closed(node.shape, values)
        self.count = closed(node.count, values)
        self.dtype = node.dtype


def _leaf(host, node):
    data = storage.narrow(words_of(node), node.dtype, node.count, node.word)
    return host.from_bytes(data, node.dtype, node.shape)


def _sort_runs(host, node, srcs):
    # Sort fully in the first step; the merging steps then change nothing.
    return host.sort(srcs[0], len(node.shape) - 1, node.arg)[1]


def _wide(host, node, srcs):
    """The operands in the dtype of the sum, which may be wider than theirs (int16 products summed in int32)."""
    return [s if s.dtype is node.dtype else host.cast(s, node.dtype) for s in srcs]


def _conv(host, node, srcs):
    x, weight = _wide(host, node, srcs)
    return host.conv(x, weight, None, *node.arg)


def _dot_bytes(host, node, srcs):
    """The sum of the products of each of the words' bytes."""
    total = None
    for byte in range(4):
        a, b = [_byte(host, words, byte) for words in srcs]
        part = host.matmul(a, b) if node.arg is None else host.conv(a, b, None, *node.arg)
        total = part if total is None else host.binary("add", total, part)
    return total


def _byte(host, words, byte):
    """A signed byte of each word, in int32."""
    up = host.binary("shift_left", host.bitcast(words, dtypes.int32), host.full((), 24 - 8 * byte, dtypes.int32))
    return host.binary("shift_right", up, host.full((), 24, dtypes.int32))


def _attention(host, node, srcs):
    from emberlet.functional.transformer.dot_product_attention import dot_product_attention

    scale, softcap, has_bias, has_sink, blind, step = node.arg
    if step is not None:
        return _rounded_attention(host, srcs, scale, step)
    bias = srcs[3] if has_bias else None
    sink = srcs[-1] if has_sink else None
    return dot_product_attention(srcs[0], srcs[1], srcs[2], bias, scale, softcap, blind, sink)


def _rounded_attention(host, srcs, scale, step):
    """Attention whose weights are rounded to levels of `step` (level_attention.py)."""
    from emberlet.functional.elementwise.activations import softmax
    from emberlet.functional.quantized.quantization import dequantize_linear, quantize_linear

    q, keys, values = srcs
    scores = host.matmul(q, host.permute(keys, (0, 1, 3, 2)))
    weights = softmax(host.binary("mul", scores, host.full((), scale, scores.dtype)))
    return host.matmul(dequantize_linear(quantize_linear(weights, step), step), values)


def _packed(host, node, srcs):
    """The product with weights of few bits that are laid out for kernels (packed_weights.py)."""
    from emberlet.functional.indexing.picking import take
    from emberlet.functional.movement.joining import concat

    x, words, scales = srcs[:3]
    bits, block = node.arg
    rows, half = x.shape[1], 1 << (bits - 1)
    panels, _, lanes = words.shape
    shifts = host.reshape(host.arange(0, bits, 32 // bits, dtypes.uint32), (32 // bits, 1))
    levels = (words.reshape((panels, words.shape[1], 1, lanes)) >> shifts) & (2 * half - 1)
    levels = levels.reshape((panels, words.shape[1] * 32 // bits, lanes))[:, :rows]
    blocks = host.arange(0, 1, rows, dtypes.int32) // block
    zeros = half if len(srcs) == 3 else take(srcs[3], blocks, axis=1)
    levels = levels ^ half if len(srcs) == 3 else levels
    out = x @ ((levels.astype(dtypes.float32) - zeros) * take(scales, blocks, axis=1))
    last = node.shape[1] - (panels - 1) * lanes  # columns that only the last panel has
    return concat([out[i] for i in range(panels - 1)] + [out[panels - 1][:, lanes - last :]], axis=1)


def _range_levels(host, node, srcs):
    """The words of levels, the scale and the zero point (range_levels.py)."""
    from emberlet.functional.quantized.quantization import dynamic_quantize_linear

    levels, scale, point = dynamic_quantize_linear(srcs[0])
    if node.arg == "floats":
        levels = host.binary("sub", *[host.cast(x, dtypes.float32) for x in (levels, point)])
    else:
        less = host.binary("sub", host.cast(levels, dtypes.int32), host.full((), 128, dtypes.int32))
        levels = host.cast(less, dtypes.int8)
    parts = levels, scale, host.cast(point, dtypes.uint32)
    return host.from_bytes(b"".join([bytes(host.to_bytes(x)) for x in parts]), node.dtype, node.shape)


def _view(host, node, srcs):
    """The same bits as another dtype."""
    return host.from_bytes(host.to_bytes(srcs[0]), node.dtype, node.shape)


_EVALUATE = {
    "full": lambda host, n, s: host.full(n.shape, n.arg, n.dtype),
    "arange": lambda host, n, s: host.arange(n.arg[0], n.arg[1], n.count, n.dtype),
    "random": lambda host, n, s: host.random_bits(n.shape, n.arg[0], n.arg[1]),
    "unary": lambda host, n, s: host.unary(n.arg, s[0]),
    "binary": lambda host, n, s: host.binary(n.arg, s[0], s[1]),
    "where": lambda host, n, s: host.where(s[0], s[1], s[2]),
    "cast": lambda host, n, s: host.cast(s[0], n.dtype, n.arg),
    "bitcast": lambda host, n, s: host.bitcast(s[0], n.dtype),
    "reduce": lambda host, n, s: host.reduce(n.arg[0], s[0], n.arg[1], n.arg[2]),
    "argreduce": lambda host, n, s: host.argreduce(n.arg[0], s[0], n.arg[1], n.arg[2]),
    "cumulative": lambda host, n, s: host.cumulative(n.arg[0], s[0], n.arg[1]),
    "sort_runs": _sort_runs,
    "merge_runs": lambda host, n, s: s[1],
    "matmul": lambda host, n, s: host.matmul(*_wide(host, n, s)),
    "conv": _conv,
    "dot_bytes": _dot_bytes,
    "packed": _packed,
    "pool": lambda host, n, s: host.pool(n.arg[0], s[0], n.arg[1], n.arg[2], n.arg[3], n.arg[4]),
    "attention": _attention,
    "take": lambda host, n, s: host.take(s[0], s[1], n.arg),
    "gather": lambda host, n, s: host.gather(s[0], s[1], n.arg),
    "scatter": lambda host, n, s: host.scatter(s[0], s[1], s[2], n.arg[0], n.arg[1]),
    "reshape": lambda host, n, s: host.reshape(s[0], n.shape),
    "permute": lambda host, n, s: host.permute(s[0], n.arg),
    "expand": lambda host, n, s: host.expand(s[0], n.shape),
    "slice": lambda host, n, s: host.slice(s[0], n.arg[0], n.shape, n.arg[1]),
    "pad": lambda host, n, s: host.pad(s[0], n.arg[0], n.arg[1]),
    "concat": lambda host, n, s: host.concat(s, n.arg),
    "words": _view,
    "bytes": _view,
    "range_levels": _range_levels,
}
