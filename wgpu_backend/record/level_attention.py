"""Attention of quantized transformers, whose weights are rounded to 8 bits before they are multiplied with the values,
recorded as one operation."""

from emberlet import dtypes
from emberlet.sizes.questions import known_equal
from emberlet.sizes.size import is_open, typical
from emberlet.tensor import Tensor

from .node import ELEMENTWISE, depends_on_input, is_leaf

_PRODUCTS = ("matmul", "conv", "dot_bytes")
FEW = 1 << 14  # products of elements of queries and keys, for which the kernel quantizes operands at every read


def attended(backend, weights, values, serves):
    """weights @ values where the weights are softmax(q kᵀ), times a number, rounded to multiples 0 … 255 of another
    one; else None. serves(q, keys, values): whether the kernel is a good choice."""
    found = _rounded_shares(weights.data) if len(weights.shape) == 4 and len(values.shape) == 4 else None
    product = None if found is None else _product(found[0])
    if product is None or values.dtype is not dtypes.float32 or not depends_on_input(weights.data):
        return None
    (q, turned), scale = product
    q = Tensor(q, q.dtype, q.shape, backend)
    keys = backend.permute(Tensor(turned, turned.dtype, turned.shape, backend), (0, 1, 3, 2))
    few = typical(q.size * keys.shape[2]) <= FEW
    if not few and [1 for x in (q, keys, values) if not _ends_a_kernel(x.data)]:
        return None
    leads = [x.shape[:2] for x in (q, keys, values)]
    if not known_equal(leads[0], leads[1]) or not known_equal(leads[0], leads[2]) or not serves(q, keys, values):
        return None
    arg = (scale, None, False, False, False, found[1])
    shape = q.shape[:3] + values.shape[3:]
    return backend._record("attention", [q, keys, values], (), "attention", arg, dtypes.float32, shape)


def _ends_a_kernel(node):
    """Whether a node is stored by a kernel that there is anyway: as a leaf, or at the end of a product."""
    computed = False
    while node.op in ELEMENTWISE or node.op in ("reshape", "permute"):
        computed = computed or node.op in ELEMENTWISE
        whole = [s for s in node.srcs if known_equal(s.count, node.count)]
        if not whole:
            return False
        node = whole[0]
    return node.op in _PRODUCTS or (is_leaf(node) and not computed)


def _rounded_shares(node):
    """(scores, step) of a node that is softmax(scores) along the last axis, rounded to levels 0 … 255 of the number
    step and dequantized; else None."""
    levels, step = _by_number(node, "mul")
    if levels is None or levels.op != "cast" or levels.srcs[0].dtype is not dtypes.uint8:
        return None
    cut, most = _by_number(levels.srcs[0].srcs[0], "minimum") if levels.srcs[0].op == "cast" else (None, None)
    if cut is None or most != 255 or cut.op != "where" or _number(cut.srcs[2]) != 0:
        return None
    above, rounded = cut.srcs[:2]
    if rounded.op != "unary" or rounded.arg != "round" or not _is(above, "gt") or above.srcs[0] is not rounded:
        return None
    if _number(above.srcs[1]) != 0:
        return None
    shares, divisor = _by_number(rounded.srcs[0], "div")
    scores = _scores(shares) if shares is not None and divisor == step else None
    return None if scores is None else (scores, step)


def _scores(node):
    """The node whose softmax along the last axis a node is, else None."""
    if not _is(node, "div") or node.dtype is not dtypes.float32:
        return None
    powers, total = node.srcs
    if powers.op != "unary" or powers.arg != "exp" or not _is(powers.srcs[0], "sub"):
        return None
    scores, peak = powers.srcs[0].srcs
    last = (len(scores.shape) - 1,)
    sums = total.op == "reduce" and total.arg == ("sum", last, True) and total.srcs[0] is powers
    peaks = peak.op == "reduce" and peak.arg == ("max", last, True) and peak.srcs[0] is scores
    return scores if sums and peaks else None


def _product(node):
    """((a, b), number) of a node that is a @ b times a number; else None."""
    inner, scale = _by_number(node, "mul")
    if inner is None:
        inner, scale = node, 1.0
    if inner.op != "matmul" or not known_equal(inner.shape, node.shape):
        return None
    plain = not [1 for s in inner.srcs if len(s.shape) != 4 or s.dtype is not dtypes.float32]
    return (inner.srcs, scale) if plain else None


def _is(node, op):
    return node.op == "binary" and node.arg == op


def _by_number(node, op):
    """(operand, number) of a binary node whose second operand is a number; (None, None) for other nodes."""
    number = _number(node.srcs[1]) if _is(node, op) else None
    return (None, None) if number is None else (node.srcs[0], number)


def _number(node):
    return node.arg if node.op == "full" and not is_open(node.arg) else None
