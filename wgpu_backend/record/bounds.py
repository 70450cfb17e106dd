"""Bounds on the elements of integer nodes, which show whether the GPU's 32 bits hold a 64-bit integer result.

Interval arithmetic (Moore 1966) over the recorded graph: data are inspected, constants are known, and each operation
maps the intervals of its sources to one that holds every possible result. Bounds are mathematical: a result whose
interval lies within 32 bits has not wrapped at 64 either. Narrower integers are followed, a few steps back, only when
they are cast to 64 bits.
"""

from emberlet.shapes import size
from emberlet.sizes.size import is_open, least, most

from ..run import storage

UNKNOWN = ()  # the interval of nodes assumed to fit: inputs of a plan being traced, casts from floats
DEPTH = 16  # operations on narrow integers that are followed back
_CAP = 1 << 66  # intervals saturate here, far beyond 64 bits
_VALUES = ("data", "full", "arange")  # their intervals are exact: those of their values
_SAME = ("reshape", "permute", "expand")


def interval(node, depth=DEPTH):
    """(lowest, highest) possible element of a node of integers or bools, or UNKNOWN; cached in `node.bounds`."""
    if node.bounds is None:
        if depth == 0 or not node.dtype.is_integer:
            return _of_dtype(node.dtype)
        found = _worked_out(node, depth)
        own = _of_dtype(node.dtype)
        if own and (not found or found[0] < own[0] or found[1] > own[1]):
            found = own
        node.bounds = found
        node.exact = node.op in _VALUES or (node.op in _SAME and node.srcs[0].exact)
    return node.bounds


def within(found, dtype):
    """Whether the 32-bit word that holds elements of dtype can represent every value of an interval."""
    bits = 31 if storage.word(dtype) == "i32" else 32
    low = -(1 << 31) if bits == 31 else 0
    return not found or (found[0] >= low and found[1] < 1 << bits)


def _of_dtype(dtype):
    """The interval of all values of dtype; UNKNOWN for floats and for 64-bit integers, which the GPU cannot hold."""
    if dtype.is_bool:
        return (0, 1)
    if dtype.bits == 64 or not dtype.is_integer:
        return UNKNOWN
    return dtype.range


def _worked_out(node, depth):
    op = node.op
    if not node.count:
        return (0, 0)
    if op in _SOURCES:
        return _SOURCES[op](node)
    table, key = _OTHERS, op
    if op in _TABLES:
        table, key = _TABLES[op], (node.arg if op in ("unary", "binary") else node.arg[0])
    if key not in table:
        return UNKNOWN
    found = [interval(s, depth - 1) for s in sources(node)]
    return UNKNOWN if UNKNOWN in found else table[key](node, *found)


def sources(node):
    """The sources whose elements enter the node's own: not conditions, not indices."""
    if node.op in ("take", "gather"):
        return node.srcs[:1]
    if node.op == "scatter":
        return (node.srcs[0], node.srcs[2])
    return node.srcs[1:] if node.op == "where" else node.srcs


def _hull(*values):
    return (min(values), max(values))


def _union(a, *others):
    low, high = a
    for other in others:
        low = min(low, other[0])
        high = max(high, other[1])
    return (low, high)


def _times(a, b):
    return _hull(a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1])


def _power(base, exponent):
    """base ** exponent for base >= 0, exponent >= 0, or _CAP where it reaches that."""
    if base < 2:
        return base if exponent else 1
    out = 1
    while exponent > 0 and out < _CAP:
        out *= base
        exponent -= 1
    return min(out, _CAP)


def _reach(a):
    """The largest magnitude in an interval."""
    return max(abs(a[0]), abs(a[1]))


def _products(a, least, most):
    """The product of `least` to `most` factors out of an interval."""
    high = max(_power(_reach(a), most), _power(_reach(a), least), 1 if least == 0 else 0)
    return (0 if a[0] >= 0 else -high, high)


# -- data and constants -------------------------------------------------------------------------------------------


def _data(node):
    return storage.extremes(node.arg, node.word, node.count)


def _full(node):
    return _ends(node.arg)


def _arange(node):
    start, step = node.arg
    last = start + step * (node.count - 1)
    return _union(_ends(start), _ends(last))


def _ends(n):
    """The interval of a number; an open one fits 32 bits (`within_words`)."""
    if is_open(n):
        return (max(least(n), -(1 << 31)), min(most(n), (1 << 31) - 1))
    return (int(n), int(n))


# -- elementwise --------------------------------------------------------------------------------------------------


def _invert(node, a):
    if node.dtype.kind == "uint":
        top = (1 << node.dtype.bits) - 1
        return (top - a[1], top - a[0])
    return (-1 - a[1], -1 - a[0])


def _abs(node, a):
    return (max(0, a[0], -a[1]), _reach(a))


def _same(node, a):
    return a


def _divide(node, a, b):
    # |a / b| is at most |a|, also when a negative quotient is rounded down; the protocol defines a / 0 as 0.
    if b[0] >= 0:
        return (min(a[0], 0), max(a[1], 0))
    return (-_reach(a), _reach(a))


def _floor_divide(node, a, b):
    if b[0] > 0:
        return _hull(a[0] // b[0], a[0] // b[1], a[1] // b[0], a[1] // b[1])
    return _divide(node, a, b)


def _remainder(node, a, b):
    low, high = min(b[0] + 1, 0), max(b[1] - 1, 0)
    if a[0] >= 0 and b[0] >= 0:
        high = min(high, a[1])
    return (low, high)


def _fmod(node, a, b):
    most = max(_reach(b) - 1, 0)
    return (max(min(a[0], 0), -most), min(max(a[1], 0), most))


def _pow(node, a, b):
    # The protocol defines a negative power as -1, 0 or 1.
    low, high = _products(a, max(b[0], 0), max(b[1], 0))
    if b[0] < 0:
        return (min(low, 0 if a[0] >= 0 else -1), max(high, 1))
    return (low, high)


def _covering(a, b):
    """The smallest (-2**k or 0, 2**k - 1) that contains both intervals."""
    low, high = _union(a, b)
    top = 1
    while top <= high or -top > low:
        top *= 2
    return (0 if low >= 0 else -top, top - 1)


def _and(node, a, b):
    most = [x[1] for x in (a, b) if x[0] >= 0]
    return (0, min(most)) if most else _covering(a, b)


def _or(node, a, b):
    return _covering(a, b)


def _shift_left(node, a, b):
    if b[0] < 0:
        return (-_CAP, _CAP)
    return _times(a, (1 << min(b[0], 66), 1 << min(b[1], 66)))


def _shift_right(node, a, b):
    if b[0] < 0:
        return (-_CAP, _CAP)
    least, most = min(b[0], 66), min(b[1], 66)
    return _hull(a[0] >> least, a[0] >> most, a[1] >> least, a[1] >> most)


_UNARY = {
    "neg": lambda node, a: (-a[1], -a[0]),
    "abs": _abs,
    "sign": lambda node, a: (max(-1, min(1, a[0])), max(-1, min(1, a[1]))),
    "floor": _same, "ceil": _same, "round": _same, "trunc": _same,
    "bitwise_not": _invert,
}  # fmt: skip
_BINARY = {
    "add": lambda node, a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda node, a, b: (a[0] - b[1], a[1] - b[0]),
    "mul": lambda node, a, b: _times(a, b),
    "div": _divide, "floor_divide": _floor_divide, "remainder": _remainder, "fmod": _fmod, "pow": _pow,
    "maximum": lambda node, a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "minimum": lambda node, a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "bitwise_and": _and, "bitwise_or": _or, "bitwise_xor": _or,
    "shift_left": _shift_left, "shift_right": _shift_right,
}  # fmt: skip


# -- several elements ---------------------------------------------------------------------------------------------


def _reduced(node):
    n = 1
    for axis in node.arg[1]:
        n *= node.srcs[0].shape[axis]
    return n


def _sum(node, a):
    n = _reduced(node)
    return _times(a, (least(n), most(n)))


def _prod(node, a):
    n = _reduced(node)
    return _products(a, least(n), most(n))


def _running_sum(node, a):
    n = most(node.shape[node.arg[1]])
    return (min(a[0], a[0] * n), max(a[1], a[1] * n))


def _running_prod(node, a):
    return _products(a, 1, most(node.shape[node.arg[1]]))


def _sums_of_products(a, b, most):
    """Sums of at most `most` products."""
    low, high = _times(a, b)
    return (min(0, low * most), max(0, high * most))


def _matmul(node, a, b):
    return _sums_of_products(a, b, most(node.srcs[0].shape[-1]))


def _conv(node, a, b):
    n = size(node.srcs[1].shape[1:])
    return _sums_of_products(a, b, most(n))


def _pool_sum(node, a):
    n = size(node.arg[1])
    return (min(0, a[0] * n), max(0, a[1] * n))


def _scatter(node, a, b):
    axis, op = node.arg
    n = most(node.srcs[1].shape[axis])  # at most this many updates hit one element
    if op == "add":
        return (a[0] + min(0, b[0] * n), a[1] + max(0, b[1] * n))
    if op == "mul":
        return _times(a, _products(b, 0, n))
    return _union(a, b)


_REDUCE = {"sum": _sum, "prod": _prod, "max": _same, "min": _same}
_CUMULATIVE = {"sum": _running_sum, "prod": _running_prod, "max": _same, "min": _same}
_POOL = {"sum": _pool_sum, "max": _same}
_TABLES = {"unary": _UNARY, "binary": _BINARY, "reduce": _REDUCE, "cumulative": _CUMULATIVE, "pool": _POOL}
_SOURCES = {
    "data": _data, "full": _full, "arange": _arange,
    "argreduce": lambda node: (0, most(node.srcs[0].shape[node.arg[1]]) - 1),
    "sort_runs": lambda node: (0, most(node.shape[-1]) - 1),
    "merge_runs": lambda node: (0, most(node.shape[-1]) - 1),
}  # fmt: skip
_OTHERS = {
    "cast": _same, "reshape": _same, "permute": _same, "expand": _same, "slice": _same, "take": _same, "gather": _same,
    "where": lambda node, a, b: _union(a, b),
    "concat": lambda node, *parts: _union(*parts),
    "pad": lambda node, a: _union(a, (int(node.arg[1]), int(node.arg[1]))),
    "matmul": _matmul, "conv": _conv, "scatter": _scatter,
}  # fmt: skip
