"""Quantizing values that were dequantized from 8 bits, with fewer operations, and exactly as by definition.

Moving elements and taking the largest of them commute with rounding to levels: the levels are moved instead. What is
quantized again as it was stays as it is. A costly function of a single 8-bit tensor, quantized again, is looked up in a
table of its values, which a plan computes once.
"""

from emberlet import dtypes
from emberlet.functional.quantized.quantization import rounded_levels
from emberlet.sizes.questions import known_equal
from emberlet.sizes.size import is_open
from emberlet.tensor import Tensor

from .clipped_lines import FEWEST, levels_by_line
from .host_evaluation import given
from .levels import parts
from .node import ELEMENTWISE, depends_on_input

_TABLED = (
    "exp", "expm1", "log", "log1p", "erf", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh",
    "asinh", "acosh", "atanh", "pow", "sqrt",
)  # fmt: skip
_MOST = 64  # nodes of a function that is tabled
_DEEPEST = 8  # functions of functions that are followed
_SCALES = (2.0**-60, 2.0**60)  # that give a level back from the float it stands for


def to_levels(x, zero, low, high, dtype):
    """`functional.to_levels`, for tensors that are recorded."""
    found = None
    point = None if zero is None else _number(zero.data)
    if dtype.bits == 8 and (zero is None or point is not None):
        if zero is not None:  # however many elements are filled with it
            zero = x.backend.full((), point, zero.dtype)
        scale = _divisor(x.data)
        if scale is not None:
            x = _without_cuts(x, scale, point or 0, low, high)
            levels = _Levels(x, zero, scale, low, high, dtype)
            found = levels.moved(levels.source)
        if found is None:
            found = _of_one_tensor(x, zero, low, high, dtype)
    return rounded_levels(x, zero, low, high, dtype) if found is None else found


def _divisor(node):
    """The number that each element of a quotient is divided by; else None."""
    if node.op != "binary" or node.arg != "div" or not known_equal(node.srcs[0].shape, node.shape):
        return None
    return _number(node.srcs[1])


def _without_cuts(x, scale, point, low, high):
    """x, a quotient by the number `scale`, without a maximum and a minimum before it that lie at or beyond the levels'
    ends: levels are cut to these anyway."""
    backend, node = x.backend, x.data.srcs[0]
    while node.op == "binary" and node.arg in ("maximum", "minimum") and scale > 0 and x.dtype is dtypes.float32:
        bounds = [_number(s) for s in node.srcs]
        inner = node.srcs[0] if bounds[0] is None else node.srcs[1]
        bound = bounds[1] if bounds[0] is None else bounds[0]
        if bound is None or not known_equal(inner.shape, node.shape):
            break
        host = backend.host
        parts = [host.full((), n, x.dtype) for n in (bound, scale)]
        level = host.to_list(host.unary("round", host.binary("div", *parts)))[0] + point
        if not (level <= low if node.arg == "maximum" else level >= high):
            break
        node = inner
    if node is x.data.srcs[0]:
        return x
    return backend.binary("div", _tensor(node, backend), backend.full((), scale, x.dtype))


def _number(node):
    """The number that a node is filled with; else None."""
    return node.arg if node.op == "full" and not is_open(node.arg) else None


def _tensor(node, backend):
    return Tensor(node, node.dtype, node.shape, backend)


class _Levels:
    """How a tensor is rounded to levels: x, a quotient by the number `scale`, and the other arguments of
    `to_levels`. source: the node that is divided."""

    def __init__(self, x, zero, scale, low, high, dtype):
        self.backend = x.backend
        self.source = x.data.srcs[0]
        self.scale = scale
        self.divisor = x.backend.full((), scale, x.dtype)
        self.zero, self.low, self.high, self.dtype = zero, low, high, dtype

    def moved(self, node):
        """The levels of a node that is moved from dequantized ones, or the largest of them; else None."""
        backend = self.backend
        if node.op == "pool" and node.arg[0] == "max" and self._ascends():
            inner = self._of(node.srcs[0])
            return None if inner is None else backend.pool("max", inner, *node.arg[1:])
        if node.op == "concat":
            inner = [self._of(s) for s in node.srcs]
            return None if [1 for t in inner if t is None] else backend.concat(inner, node.arg)
        return self._same(node)

    def _ascends(self):
        """Whether a larger number has a level as high or higher: the scale is positive, and as a float32 as well."""
        return _SCALES[0] < self.scale < _SCALES[1]

    def _of(self, node):
        """The levels of a dequantized node, or of one that `moved` knows; else None."""
        found = self.moved(node)
        if found is None and self._parts(node) is not None:
            x = self.backend.binary("div", _tensor(node, self.backend), self.divisor)
            found = rounded_levels(x, self.zero, self.low, self.high, self.dtype)
        return found

    def _parts(self, node):
        found = parts(_tensor(node, self.backend)) if node.dtype is dtypes.float32 else None
        if found is None or found[0].dtype.bits != 8 or found[2] is None:
            return None
        # An infinite scale makes NaN of a level that is the zero point: the largest number, but the lowest level.
        scales = given(found[2].data, self.backend.host)
        if scales is None:
            return None
        numbers = self.backend.host.to_list(self.backend.host.reshape(scales, (scales.size,)))
        return found if all(abs(n) < _SCALES[1] for n in numbers) else None

    def _same(self, node):
        """The levels that a node was dequantized from, if they are to be the same; else None."""
        found = self._parts(node)
        if found is None or found[0].dtype is not self.dtype:
            return None
        q, zero, scale = found
        points = [0 if z is None else _number(z.data) for z in (zero, self.zero)]
        same = None not in points and points[0] == points[1] and _number(scale.data) == self.scale
        return q if same and self._ascends() else None


# -- functions of one tensor ------------------------------------------------------------------------------------------


def _of_one_tensor(x, zero, low, high, dtype):
    """The levels where x is a function of one 8-bit tensor in a plan: from a table if the function is costly, else by a
    shorter one; None if there is neither."""
    function = _Function()
    found = function.source([x.data], 0)
    if found is None or not depends_on_input(found):
        return None
    if not function.costly and (_MOST - function.left < FEWEST or x.dtype is not dtypes.float32):
        return None
    backend = x.backend
    least, most = found.dtype.range
    every = backend.cast(backend.arange(least, 1, most - least + 1, dtypes.int32), found.dtype)
    at_each = _again(x.data, found, every)
    if not function.costly:
        return levels_by_line(x, found, at_each, zero, low, high, dtype)
    table = rounded_levels(at_each, zero, low, high, dtype)
    at = backend.cast(_tensor(found, backend), dtypes.int32)
    if least:
        at = backend.binary("sub", at, backend.full((), least, dtypes.int32))
    return backend.take(table, at, 0)


class _Function:
    """Elementwise nodes. costly: whether one of them takes longer than a table."""

    def __init__(self):
        self.costly = False
        self.left = _MOST

    def source(self, nodes, depth):
        """The 8-bit node that some nodes are functions of, element by element; None if there is none, or several."""
        leaves = self._leaves(nodes)
        if not leaves or depth > _DEEPEST:
            return None
        chains = [[leaf] for leaf in leaves]
        while True:
            for node in chains[0]:
                if not [1 for chain in chains[1:] if node not in chain]:
                    return node
            grown = False
            for chain in chains:
                before = self._before(chain[-1], depth)
                if before is not None:
                    chain.append(before)
                    grown = True
            if not grown:
                return None

    def _before(self, node, depth):
        """The source of what an 8-bit node is computed from, element by element; else None."""
        if _is_lookup(node):
            self.costly = True
            return self.source(node.srcs[1:], depth + 1)
        return self.source(node.srcs, depth + 1) if node.op in ELEMENTWISE else None

    def _leaves(self, nodes):
        """The nearest 8-bit nodes that some nodes are functions of; None if they also depend on others."""
        shape = None
        leaves, seen, waiting = [], {}, list(nodes)
        while waiting:
            node = waiting.pop()
            if id(node) in seen or _is_scalar(node):
                continue
            seen[id(node)] = True
            self.left -= 1
            if self.left < 0 or (shape is not None and not known_equal(node.shape, shape)):
                return None
            shape = node.shape
            if node.dtype.is_integer and node.dtype.bits == 8:
                leaves.append(node)
            elif node.op in ELEMENTWISE:
                self.costly = self.costly or node.arg in _TABLED
                waiting.extend(node.srcs)
            else:
                return None
        return leaves


def _is_lookup(node):
    """Whether a node is looked up in a table."""
    return node.op == "take" and len(node.srcs[0].shape) == 1 and not depends_on_input(node.srcs[0])


def _is_scalar(node):
    return _number(node) is not None or (node.op == "data" and not is_open(node.count) and node.count == 1)


def _again(node, source, given):
    """The function of `source` that a node is, of another tensor with one axis."""
    backend = given.backend
    made = {id(source): given}
    stack = [node]
    while stack:
        at = stack[-1]
        if id(at) in made:
            stack.pop()
            continue
        if _is_scalar(at):
            made[id(at)] = backend.reshape(_tensor(at, backend), ())
            continue
        needed = at.srcs[1:] if at.op == "take" else at.srcs
        left = [s for s in needed if id(s) not in made]
        if left:
            stack.extend(left)
            continue
        made[id(at)] = _one(at, [made[id(s)] for s in needed], backend)
    return made[id(node)]


def _one(node, srcs, backend):
    """A node's operation on other operands."""
    if node.op == "take":
        return backend.take(_tensor(node.srcs[0], backend), srcs[0], 0)
    if node.op == "cast":
        return backend.cast(srcs[0], node.dtype, node.arg)
    if node.op == "bitcast":
        return backend.bitcast(srcs[0], node.dtype)
    if node.op == "where":
        return backend.where(*srcs)
    return getattr(backend, node.op)(node.arg, *srcs)
