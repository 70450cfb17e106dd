"""Simplifies attention masks that exporters compute from positions: to none, `is_causal`, `window`, or one line per
condition.

A mask's elements are derived as a term of their indices (`index_terms.py`). A mask is removed only if every query is
certain to see a key: for a query that sees none, a finite mask and a hidden key give different results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from emberlet import dtypes

from ...ir.argument import ABSENT, Argument
from ...ir.graph import Graph, Node
from ...ir.types import Dim, Shape, TensorType
from ...ir.value import ints_value, scalar_value
from ...ops.arithmetic import Add, AlignConfig, And, GreaterOrEqual, Where
from ...ops.attention import Attention
from ...ops.constant import Range
from ...ops.expansion import Expand
from ...ops.movement import AxesConfig, Unsqueeze
from ...records import replace
from ..rewriting import Change, Rewrite, Walk, instead, interim, number, rewrite, shape_of, value_of
from .formulas import All, Bounds, Compared, Element, Number, Truth, constant, index, placed, size
from .index_terms import Terms

LEAST = -1e4  # a number that hides a key when added to its score
QUERY, KEY = 2, 3
SAID = "simplified {} masks computed from positions"
WIDE = "removed {} repetitions of masks"
SIMPLER = "replaced {} masks of gathered positions by comparisons"


def run(graph: Graph) -> Rewrite:
    held: list[Terms] = []
    written: dict[str, Node[Any] | None] = {}

    def step(node: Node[Any], walk: Walk) -> Change | None:
        if not isinstance(node, Attention) or not node.has(3):
            return None
        if not held:
            held.append(Terms(walk))
        return unmasked(node, held[0]) or compared(node, held[0], written) or unexpanded(node, walk)

    return rewrite(graph, step)


def seen(a: Argument, terms: Terms) -> Truth | None:
    """The term, over a mask's four indices, of whether a query sees a key."""
    t, shape = a.type, shape_of(a)
    if not isinstance(t, TensorType) or shape is None or len(shape) > 4:
        return None
    if t.dtype.is_bool:
        found = terms.of(a)
    else:
        node = terms.walk.made_by(a, Where)
        hidden = number(node.inputs[2]) if node is not None else None
        if node is None or number(node.inputs[1]) != 0.0 or hidden is None or hidden > LEAST:
            return None
        found = terms.aligned(node.inputs[0], shape)
    if found is None or isinstance(found, Number):
        return None
    whole = (1,) * (4 - len(shape)) + tuple(shape)
    moved = placed(found, [index(4 - len(shape) + i) if d != 1 else constant(0) for i, d in enumerate(shape)], whole)
    return None if isinstance(moved, Number) else Bounds(whole).settled(moved)


def unmasked(node: Attention, terms: Terms) -> Change | None:
    """An attention without its mask, if that hides nothing or only later keys."""
    c = node.config
    if node.has(6) or c.heads is not None or c.window != (None, None) or c.causal:
        return None
    truth = seen(node.inputs[3], terms)
    keys = size(dim(shape_of(node.inputs[1]), KEY - 1))
    past = size(dim(shape_of(node.inputs[4]), 2)) if node.has(4) else constant(0)
    if truth is None or past is None or keys is None:
        return None
    if size(dim(shape_of(node.inputs[3]), -1)) != keys + past:  # a shorter mask hides the keys behind it
        return None
    if truth is True:
        return instead(node, SAID, without_mask(node))
    causal, left = False, None
    for item in truth.items if isinstance(truth, All) else [truth]:
        if not isinstance(item, Compared) or item.equal:
            return None
        behind = item.number - (index(QUERY) + past - index(KEY))
        width = item.number - (index(KEY) - index(QUERY) - past)
        if not behind.parts and not causal:
            causal = True
        elif width.value is not None and width.value >= 0 and left is None:
            left = width.value
        else:
            return None
    queries = size(dim(shape_of(node.inputs[0]), 2))
    if not causal or queries is None:
        return None
    # Every query sees itself, as its own key is present.
    if not Bounds((1, 1, dim(shape_of(node.inputs[0]), 2), 1)).never_negative(keys - constant(1) - index(QUERY)):
        return None
    plain = without_mask(node)
    made = Attention(node.name, plain.inputs, node.outputs, replace(c, causal=True, window=(left, None)))
    return instead(node, SAID, made)


def unexpanded(node: Attention, walk: Walk) -> Change | None:
    """A mask as it was before it was repeated for every head or query, which attention does itself."""
    wide = walk.made_by(node.inputs[3], Expand)
    if wide is None:
        return None
    before, after = shape_of(wide.inputs[0]), shape_of(wide.outputs[0])
    if before is None or after is None or len(before) != 4 or len(after) != 4 or None in after:
        return None
    if before[3] != after[3] or any(b not in (1, a) for a, b in zip(after, before, strict=True)):
        return None
    inputs = (*node.inputs[:3], wide.inputs[0], *node.inputs[4:])
    return instead(node, WIDE, replace(node, inputs=inputs))


def dim(shape: Shape | None, axis: int) -> Dim:
    return shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None


def without_mask(node: Attention) -> Attention:
    inputs = list(node.inputs)
    inputs[3] = ABSENT
    while inputs and not inputs[-1].present:
        inputs.pop()
    return replace(node, inputs=tuple(inputs))


# -- comparisons ------------------------------------------------------------------------------------------------------


def compared(node: Attention, terms: Terms, written: dict[str, Node[Any] | None]) -> Change | None:
    """A mask whose conditions are gathered by position, rewritten as comparisons of positions and the inputs' masks.
    written: {name of a mask: its rewritten form}, for reuse."""
    mask = node.inputs[3]
    made: tuple[Node[Any], ...] = ()
    if mask.name not in written:
        made = in_comparisons(mask, terms)
        written[mask.name] = made[-1] if made else None
    last = written[mask.name]
    if last is None or not (made or terms.walk.visible(last)):
        return None
    inputs = (*node.inputs[:3], last.outputs[0], *node.inputs[4:])
    return instead(node, SIMPLER, *made, replace(node, inputs=inputs))


def in_comparisons(mask: Argument, terms: Terms) -> tuple[Node[Any], ...]:
    """Nodes that compute a mask, the last of which is its result; none if it is already simple or cannot be written."""
    node, shape = terms.walk.made_by(mask, Where), shape_of(mask)
    if node is None or shape is None or len(shape) != 4 or None in shape:
        return ()
    if number(node.inputs[1]) is None or number(node.inputs[2]) is None or node.inputs[0].value is not None:
        return ()
    truth = terms.aligned(node.inputs[0], shape)
    if truth is None or isinstance(truth, Number | bool) or not _gathers(node.inputs[0], terms):
        return ()
    writer = _Writer(node, terms, shape)
    condition = writer.condition(Bounds(shape).settled(truth))
    if condition is None:
        return ()
    name = terms.walk.fresh(f"{node.name}::mask")
    last = Where(name, (condition, *node.inputs[1:]), (interim(name),), None)
    change = instead(node, "", *writer.nodes, last)
    if change is None:
        return ()
    made = shape_of(change.nodes[-1].outputs[0])
    same = made is not None and all(d in (1, e) for d, e in zip(reversed(made), reversed(shape), strict=False))
    return change.nodes if same and made and made[-1] == shape[-1] else ()


def _gathers(a: Argument, terms: Terms) -> bool:
    """Whether a condition gathers by position."""
    todo, done = [a], set[str]()
    while todo:
        at = todo.pop()
        if at.name in terms.gathered:
            return True
        node = terms.walk.producer(at)
        if node is not None and at.name not in done and len(done) < 200:
            done.add(at.name)
            todo += [i for i in node.inputs if i.value is None and i.present]
    return False


class _Writer:
    """Writes the nodes of a term."""

    def __init__(self, node: Node[Any], terms: Terms, shape: Shape) -> None:
        self.node = node
        self.terms = terms
        self.walk = terms.walk
        self.shape = shape
        self.nodes: list[Node[Any]] = []
        self.ranges: dict[Dim, Argument] = {}

    def add(self, kind: type[Node[Any]], what: str, inputs: Sequence[Argument], config: Any = None) -> Argument:
        name = self.walk.fresh(f"{self.node.name}::{what}")
        self.nodes.append(kind(name, tuple(inputs), (interim(name),), config))
        return self.nodes[-1].outputs[0]

    def condition(self, t: Truth) -> Argument | None:
        out: Argument | None = None
        items = sorted(t.items, key=lambda i: (isinstance(i, Element), repr(i))) if isinstance(t, All) else [t]
        for item in items:
            made = self.element(item) if isinstance(item, Element) else self.comparison(item)
            if made is None:
                return None
            out = made if out is None else self.add(And, "both", (out, made), AlignConfig())
        return out

    def element(self, t: Element) -> Argument | None:
        """A tensor of the model at some of the indices, in order."""
        axes = []
        a = self.terms.arguments[t.name]
        own = shape_of(a)
        for p, d in zip(t.places, own or (), strict=True):
            found = [i for i in range(4) if p == index(i)]
            if not found or d != self.shape[found[0]]:
                return None
            axes.append(found[0])
        if axes != sorted(set(axes)):
            return None
        return self.spread(a, axes)

    def spread(self, a: Argument, axes: Sequence[int]) -> Argument:
        """A tensor spread to four axes: it has the given ones, the others are of size 1; leading ones may be
        omitted."""
        first = min(axes)
        new = tuple(i - first for i in range(first, 4) if i not in axes)
        if not new:
            return a
        given = value_of(self.walk.fresh(f"{self.node.name}::axes"), ints_value(new))
        return self.add(Unsqueeze, "spread", (a, given), AxesConfig(None))

    def comparison(self, t: Truth) -> Argument | None:
        """i + a >= j + b."""
        if not isinstance(t, Compared) or t.equal:
            return None
        sides = [
            Number(tuple((m, abs(n)) for m, n in t.number.parts if (n > 0) == positive)) for positive in (True, False)
        ]
        made = [self.number(side) for side in sides]
        if made[0] is None or made[1] is None:
            return None
        return self.add(GreaterOrEqual, "seen", (made[0], made[1]), AlignConfig())

    def number(self, n: Number) -> Argument | None:
        """An index, or an index plus a size."""
        axes = sorted(n.axes)
        if len(axes) > 1 or any(k != 1 for m, k in n.parts if m) or any(len(m) > 1 for m, _ in n.parts):
            return None
        if not axes:
            if n.value is None:
                return None
            return value_of(self.walk.fresh(f"{self.node.name}::number"), scalar_value(n.value, dtypes.int64))
        rest = n - index(axes[0])
        found = self.positions(self.shape[axes[0]], rest)
        return None if found is None else self.spread(found, axes)

    def positions(self, d: Dim, start: Number) -> Argument | None:
        """start, start + 1, …, as many as the size."""
        limit = self.size(d)
        if limit is None:
            return None
        zero, one = (
            value_of(self.walk.fresh(f"{self.node.name}::{what}"), scalar_value(i, dtypes.int64))
            for i, what in enumerate(("zero", "one"))
        )
        if d not in self.ranges:
            self.ranges[d] = self.add(Range, "positions", (zero, limit, one))
        if not start.parts:
            return self.ranges[d]
        if start.value is not None:
            shift: Argument | None = value_of(
                self.walk.fresh(f"{self.node.name}::shift"), scalar_value(start.value, dtypes.int64)
            )
        else:
            names = [m[0] for m, k in start.parts if len(m) == 1 and k == 1]
            shift = self.walk.size(str(names[0])) if len(names) == len(start.parts) == 1 else None
        return None if shift is None else self.add(Add, "shifted", (self.ranges[d], shift), AlignConfig())

    def size(self, d: Dim) -> Argument | None:
        if isinstance(d, int):
            return value_of(self.walk.fresh(f"{self.node.name}::size"), scalar_value(d, dtypes.int64))
        found = size(d)
        if d is None or found is None:
            return None
        out: Argument | None = None
        for m, k in found.parts:
            named = self.walk.size(str(m[0])) if len(m) == 1 and k == 1 else None
            if named is None:
                return None
            out = named if out is None else self.add(Add, "size", (out, named), AlignConfig())
        return out
