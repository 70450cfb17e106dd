"""Masks that hide the padding of sequences, the keys from a length on, become the option `kv_lengths=lengths`.

Exporters write `arange(keys) < lengths[:, None]` and turn it into zeros and large negative numbers. -inf hides a key as
`kv_lengths` does. A finite number does so only if a length is certain to be at least 1: for a query that sees no key,
it gives the mean of the values.
"""

from __future__ import annotations

from typing import Any

from ...ir.argument import ABSENT, Argument
from ...ir.graph import Graph, Node
from ...ir.types import Shape, TensorType
from ...ir.value import ints_value
from ...ops.arithmetic import Clip, Greater, GreaterOrEqual, Less, LessOrEqual, Max, Mul, Sub, Where
from ...ops.attention import Attention
from ...ops.constant import Cast, ConstantOfShape
from ...ops.expansion import Expand
from ...ops.movement import AxesConfig, Reshape, Squeeze, Transpose, Unsqueeze
from ...records import dataclass
from ..rewriting import Change, Rewrite, Walk, instead, interim, number, rewrite, shape_of, value_of
from .formulas import Bounds, Element, Negated, Number, Truth, constant, index, negated, placed
from .index_terms import Terms

LEAST = -1e4  # a number that hides a key when added to its score
BATCH, KEY = 0, 3
SAID = "replaced {} padding masks by lengths"
_FLIPPED = (Greater, GreaterOrEqual)
_STRICT = (Less, Greater)


def run(graph: Graph) -> Rewrite:
    held: list[Terms] = []

    def step(node: Node[Any], walk: Walk) -> Change | None:
        if not isinstance(node, Attention) or not node.has(3):
            return None
        if not held:
            held.append(Terms(walk))
        return limited(node, held[0])

    return rewrite(graph, step)


def limited(node: Attention, terms: Terms) -> Change | None:
    """An attention with lengths in place of its mask."""
    c = node.config
    if c.causal or c.window != (None, None) or any(node.has(i) for i in (4, 5, 6)):
        return None
    mask, keys = shape_of(node.inputs[3]), shape_of(node.inputs[1])
    queries = shape_of(node.inputs[0])
    if mask is None or keys is None or queries is None or len(keys) != len(queries):
        return None
    if mask[-1:] != keys[-2:-1] or None in mask[-1:]:
        return None
    found = hidden(node.inputs[3], terms)
    counted = None if found is None else lengths(found.seen, terms)
    if found is None or counted is None:
        return None
    batch = shape_of(counted)
    if batch is None or batch[0] is None or batch[0] != queries[0]:
        return None
    if not found.surely and not positive(counted, terms.walk):
        return None
    made: list[Node[Any]] = []
    if len(batch) > 1:
        axes = value_of(terms.walk.fresh(f"{node.name}::axes"), ints_value(tuple(range(1, len(batch)))))
        flat = terms.walk.fresh(f"{node.name}::lengths")
        made.append(Squeeze(flat, (counted, axes), (interim(flat),), AxesConfig(None)))
        counted = made[0].outputs[0]
    inputs = (*node.inputs[:3], ABSENT, ABSENT, ABSENT, counted)
    return instead(node, SAID, *made, Attention(node.name, inputs, node.outputs, c))


@dataclass(frozen=True)
class Hidden:
    """What a mask says: the term of whether a key is seen, over the four indices of a mask of this shape; surely:
    whether an unseen key is hidden even if the query sees no key at all."""

    seen: Truth
    shape: Shape
    surely: bool


def hidden(a: Argument, terms: Terms) -> Hidden | None:
    """A mask as a Hidden; None if it does more than hide keys, or nothing is known about it."""
    shape = shape_of(a)
    if shape is None or len(shape) > 4 or not isinstance(a.type, TensorType):
        return None
    surely = True
    if not a.type.dtype.is_bool:
        source = moved(a, terms.walk)
        parts, own = condition(source, terms.walk), shape_of(source)
        if parts is None or own is None or parts[2] > LEAST:
            return None
        term = terms.aligned(parts[0], own)
        if term is None or isinstance(term, Number):
            return None
        # The rules for views read this as if the numbers were bools.
        terms.known[source.name] = term if parts[1] else negated(term)
        surely = parts[2] == float("-inf")
    found = terms.of(a)
    if found is None or isinstance(found, Number):
        return None
    whole = (1,) * (4 - len(shape)) + tuple(shape)
    whose = placed(found, [index(4 - len(shape) + i) if d != 1 else constant(0) for i, d in enumerate(shape)], whole)
    return None if isinstance(whose, Number) else Hidden(Bounds(whole).settled(whose), whole, surely)


def moved(a: Argument, walk: Walk) -> Argument:
    """The value of which a value is a view, or that it repeats."""
    while isinstance(node := walk.producer(a), Reshape | Unsqueeze | Squeeze | Expand | Transpose):
        a = node.inputs[0]
    return a


def condition(a: Argument, walk: Walk) -> tuple[Argument, bool, float] | None:
    """(condition, whether it is true for keys that are seen, the number added for those that are not)."""
    node = walk.producer(a)
    if isinstance(node, Where):
        for kept, other in ((1, 2), (2, 1)):
            low = filled(node.inputs[other], walk)
            if filled(node.inputs[kept], walk) == 0.0 and low is not None:
                return node.inputs[0], kept == 1, low
    if isinstance(node, Mul):
        for given, factor in (node.inputs, node.inputs[::-1]):
            low = number(factor)
            if low is None:
                continue
            less = walk.made_by(given, Sub)  # 1 - mask
            kept = less is not None and number(less.inputs[0]) == 1.0
            cast = walk.made_by(less.inputs[1] if less is not None and kept else given, Cast)
            t = cast.inputs[0].type if cast is not None else None
            if cast is not None and isinstance(t, TensorType) and t.dtype.is_bool:
                return cast.inputs[0], kept, low
    return None


def filled(a: Argument, walk: Walk) -> float | None:
    """The number that all elements of a value are, or None."""
    node = walk.made_by(a, ConstantOfShape)
    return number(a) if node is None else float(node.config.value.item())


def lengths(seen: Truth, terms: Terms) -> Argument | None:
    """The lengths, (batch) or (batch, 1, …), if a term says that the key's index is less than they are."""
    truth, holds = (seen.item, False) if isinstance(seen, Negated) else (seen, True)
    if not isinstance(truth, Element) or truth.name not in terms.arguments:
        return None
    node = terms.walk.producer(terms.arguments[truth.name])
    if not isinstance(node, Less | LessOrEqual | Greater | GreaterOrEqual):
        return None
    low, high = node.inputs[::-1] if isinstance(node, _FLIPPED) else node.inputs
    strict = isinstance(node, _STRICT)
    if not holds:  # not low < high is high <= low
        low, high, strict = high, low, not strict
    own = shape_of(node.outputs[0])
    if own is None:
        return None
    at = [i for i, p in enumerate(truth.places) if p == index(KEY)]
    rows = [i for i, p in enumerate(truth.places) if p == index(BATCH)]
    others = [p for p in truth.places if p not in (index(KEY), index(BATCH), constant(0))]
    if len(at) != 1 or len(rows) != 1 or others:
        return None
    # low is the key's index, or that and 1 where equal is enough.
    if terms.aligned(low, own) != index(at[0]) + constant(0 if strict else 1):
        return None
    return by_row(high, len(own), rows[0], terms.walk)


def by_row(a: Argument, rank: int, row: int, walk: Walk) -> Argument | None:
    """The integers, one for each index of the axis `row`, that a value of this rank repeats along its other axes,
    before axes of 1 were added."""
    while True:
        shape, t = shape_of(a), a.type
        if a.value is not None or shape is None or not isinstance(t, TensorType) or not t.dtype.is_integer:
            return None
        lead = rank - len(shape)
        if not 0 <= row - lead < len(shape) or any(d != 1 for i, d in enumerate(shape) if lead + i != row):
            return None
        if row == lead:
            inner = plain(a, walk)
            return a if inner is None else inner
        node = walk.producer(a)
        if not isinstance(node, Unsqueeze | Reshape | Cast):
            return None
        source = shape_of(node.inputs[0])
        if source is None or [d for d in source if d != 1] != [shape[row - lead]]:
            return None
        if isinstance(node, Cast) and not wider(node):
            return None
        a, row = node.inputs[0], next(i for i, d in enumerate(source) if d != 1)
        rank = len(source)


def plain(a: Argument, walk: Walk) -> Argument | None:
    """The integers (batch) of which a value (batch, 1, …) is a view or a wider copy; None if there are none."""
    found = None
    while True:
        node = walk.producer(a)
        if isinstance(node, Cast):
            if not wider(node):
                return found
        elif not isinstance(node, Unsqueeze | Reshape):
            return found
        source, shape = shape_of(node.inputs[0]), shape_of(a)
        if source is None or shape is None or source[:1] != shape[:1] or any(d != 1 for d in source[1:]):
            return found
        a = found = node.inputs[0]


def wider(node: Cast) -> bool:
    """Whether a cast of integers keeps every value."""
    t, to = node.inputs[0].type, node.config.dtype
    if not isinstance(t, TensorType) or not t.dtype.is_integer or not to.is_integer:
        return False
    (low, high), (least, most) = t.dtype.range, to.range
    return least <= low and high <= most


def positive(a: Argument, walk: Walk) -> bool:
    """Whether all integers of a value are certain to be at least 1."""
    while True:
        node = walk.producer(a)
        if isinstance(node, Unsqueeze | Squeeze | Reshape) or (isinstance(node, Cast) and wider(node)):
            a = node.inputs[0]
        elif isinstance(node, Clip):
            low = number(node.inputs[1]) if node.has(1) else node.config.low
            return low is not None and low >= 1
        elif isinstance(node, Max):
            return any((number(i) or 0) >= 1 for i in node.inputs)
        else:
            return False
