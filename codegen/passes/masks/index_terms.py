"""Describes the elements of a tensor as terms of their indices: numbers as polynomials in indices and sizes, bools as
comparisons of these or as elements of tensors known only at run time.

`Terms.of(a)` gives the term of a value's element at (i0, i1, …). This reduces masks that exporters compute with ranges,
gathers and running sums to one formula, such as "i3 <= i2".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir.argument import Argument
from ...ir.graph import Node
from ...ir.types import ScalarType, Shape, ShapeType, TensorType
from ...ops.arithmetic import Add, And, Equal, Greater, GreaterOrEqual, Less, LessOrEqual, Mul, Or, Sub
from ...ops.base import axes_of, axis_of
from ...ops.constant import Cast, Range
from ...ops.elementwise import Not
from ...ops.expansion import Expand
from ...ops.indexing import Gather, GatherND
from ...ops.joining import Concat
from ...ops.movement import Flatten, Identity, Reshape, Squeeze, Transpose, Unsqueeze
from ...ops.reduction import CumSum
from ...ops.slicing import Slice
from ..rewriting import Walk, shape_of
from .formulas import (
    ZERO,
    Bounds,
    Compared,
    Element,
    Number,
    Part,
    Term,
    conjunction,
    constant,
    index,
    negated,
    placed,
    size,
)

MOST_TERMS = 12
MOST_ELEMENTS = 1 << 16
MOST_DEPTH = 200


class Terms:
    """The terms of the values of one graph, cached."""

    def __init__(self, walk: Walk) -> None:
        self.walk = walk
        self.known: dict[str, Term | None] = {}
        self.arguments: dict[str, Argument] = {}
        self.gathered: set[str] = set()
        self.depth = 0

    def of(self, a: Argument) -> Term | None:
        """The term of a value's element, None if nothing is known of it."""
        if a.value is not None:
            return self.constant(a)
        if a.name in self.known:
            return self.known[a.name]
        if self.depth > MOST_DEPTH:
            return None
        self.depth += 1
        found = self.found(a)
        self.depth -= 1
        if found is None:
            found = self.element(a)
        if isinstance(found, Number) and len(found.parts) > MOST_TERMS:
            found = None
        self.known[a.name] = found
        return found

    def element(self, a: Argument) -> Term | None:
        """The term of a bool tensor of which nothing is known: its own elements."""
        if not isinstance(a.type, TensorType) or not a.type.dtype.is_bool or a.type.shape is None:
            return None
        self.arguments[a.name] = a
        return Element(a.name, tuple(index(i) for i in range(len(a.type.shape))))

    def constant(self, a: Argument) -> Term | None:
        value = a.value
        if value is None or value.size > MOST_ELEMENTS or not value.size:
            return None
        if not (value.dtype.is_bool or value.dtype.is_integer):
            return None
        items = [int(v) for v in value.list()]
        if len(set(items)) == 1:
            return bool(items[0]) if value.dtype.is_bool else constant(items[0])
        if value.dtype.is_bool:
            return None
        out, step = constant(items[0]), 1
        for axis in range(len(value.shape) - 1, -1, -1):
            if value.shape[axis] > 1:
                out = out + index(axis) * constant(items[step] - items[0])
            step *= value.shape[axis]
        for flat, item in enumerate(items):
            places, rest = [], flat
            for d in reversed(value.shape):
                places.append(constant(rest % d))
                rest //= d
            if out.at(places[::-1]).value != item:
                return None
        return out

    def number(self, a: Argument) -> Number | None:
        """A Python number, or a tensor of one element."""
        t = a.type
        if isinstance(t, ScalarType):
            return size(t.value)
        if isinstance(t, ShapeType):
            return size(t.dims[0]) if len(t.dims) == 1 else None
        found = self.of(a)
        return found if isinstance(found, Number) and not found.axes else None

    def found(self, a: Argument) -> Term | None:
        node = self.walk.producer(a)
        shape = shape_of(a)
        if isinstance(a.type, ScalarType | ShapeType):
            return self.number(a)
        if node is None or shape is None or len(node.outputs) != 1:
            return None
        make = _RULES.get(type(node))
        return None if make is None else make(self, node, shape)

    # -- rules --------------------------------------------------------------------------------------------------------

    def aligned(self, a: Argument, shape: Shape) -> Term | None:
        """The term of an operand at the indices of the shape it is broadcast to."""
        t = self.of(a)
        own = shape_of(a) if a.value is None else a.value.shape
        if isinstance(a.type, ScalarType | ShapeType):
            own = ()
        if t is None or own is None:
            return None
        lead = len(shape) - len(own)
        for i, d in enumerate(own):
            if d != 1 and d != shape[lead + i] and d != f"min({str(d)[4:].partition(', ')[0]}, {shape[lead + i]})":
                return None  # it may be 1 at run time
        places = [index(lead + i) if d != 1 else ZERO for i, d in enumerate(own)]
        return placed(t, places, shape)

    def arithmetic(self, node: Node[Any], shape: Shape) -> Term | None:
        x, y = (self.aligned(a, shape) for a in node.inputs)
        if not isinstance(x, Number) or not isinstance(y, Number):
            return None
        return x + y if isinstance(node, Add) else x - y if isinstance(node, Sub) else x * y

    def comparison(self, node: Node[Any], shape: Shape) -> Term | None:
        x, y = (self.aligned(a, shape) for a in node.inputs)
        if not isinstance(x, Number) or not isinstance(y, Number):
            return None
        match node:
            case Equal():
                made = Compared(x - y, True)
            case Less():
                made = Compared(y - x - constant(1), False)
            case LessOrEqual():
                made = Compared(y - x, False)
            case Greater():
                made = Compared(x - y - constant(1), False)
            case _:
                made = Compared(x - y, False)
        return Bounds(shape).settled(made)

    def logic(self, node: Node[Any], shape: Shape) -> Term | None:
        x, y = (self.aligned(a, shape) for a in node.inputs)
        if x is None or y is None or isinstance(x, Number) or isinstance(y, Number):
            return None
        return conjunction(x, y) if isinstance(node, And) else negated(conjunction(negated(x), negated(y)))

    def opposite(self, node: Node[Any], shape: Shape) -> Term | None:
        x = self.of(node.inputs[0])
        return None if x is None or isinstance(x, Number) else Bounds(shape).settled(negated(x))

    def cast(self, node: Node[Any], shape: Shape) -> Term | None:
        x, to = self.of(node.inputs[0]), node.outputs[0].type
        if not isinstance(to, TensorType):
            return None
        if to.dtype.is_integer and not to.dtype.is_bool:
            return constant(int(x)) if isinstance(x, bool) else x if isinstance(x, Number) else None
        return x if to.dtype.is_bool and not isinstance(x, Number) else None

    def range(self, node: Node[Any], shape: Shape) -> Term | None:
        start, step = self.number(node.inputs[0]), self.number(node.inputs[2])
        if start is None or step is None or not node.dtype(0).is_integer:
            return None
        return start + step * index(0)

    def same(self, node: Node[Any], shape: Shape) -> Term | None:
        return self.of(node.inputs[0])

    def expanded(self, node: Node[Any], shape: Shape) -> Term | None:
        return self.aligned(node.inputs[0], shape)

    def reshaped(self, node: Node[Any], shape: Shape) -> Term | None:
        """A reshape that adds or removes axes of 1, or merges two axes."""
        t, own = self.of(node.inputs[0]), shape_of(node.inputs[0])
        if t is None or own is None:
            return None
        kept, new = ([i for i, d in enumerate(s) if d != 1] for s in (own, shape))
        if [own[i] for i in kept] == [shape[i] for i in new] and None not in own:
            places = [ZERO] * len(own)
            for i, j in zip(kept, new, strict=True):
                places[i] = index(j)
            return placed(t, places, shape)
        if (
            len(kept) == 2
            and len(new) == 1
            and isinstance(t, Element)
            and t.places == tuple(map(index, range(len(own))))
        ):
            width = size(own[kept[1]])
            if width is None:
                return None
            flat = index(new[0])
            halves = {kept[0]: Part(flat, width, False), kept[1]: Part(flat, width, True)}
            return Element(t.name, tuple(halves.get(i, ZERO) for i in range(len(own))))
        before = self.walk.producer(node.inputs[0])
        if isinstance(before, Reshape) and shape_of(before.inputs[0]) == shape:
            return self.of(before.inputs[0])
        if isinstance(before, Reshape) and None not in shape:  # through an irrelevant shape
            source = shape_of(before.inputs[0])
            if source is not None and [d for d in source if d != 1] == [d for d in shape if d != 1]:
                inner = self.of(before.inputs[0])
                a, b = ([i for i, d in enumerate(s) if d != 1] for s in (source, shape))
                places = [ZERO] * len(source)
                for i, j in zip(a, b, strict=True):
                    places[i] = index(j)
                return None if inner is None else placed(inner, places, shape)
        return None

    def permuted(self, node: Transpose, shape: Shape) -> Term | None:
        t = self.of(node.inputs[0])
        if t is None:
            return None
        places = [ZERO] * len(shape)
        for i, p in enumerate(node.perm()):
            places[p] = index(i)
        return placed(t, places, shape)

    def sliced(self, node: Slice, shape: Shape) -> Term | None:
        t = self.of(node.inputs[0])
        if t is None or node.open():
            return None
        starts, _, axes, steps = node.bounds()
        own = shape_of(node.inputs[0])
        if own is None:
            return None
        places = [index(i) for i in range(len(shape))]
        for start, axis, step in zip(starts, axes_of(axes, len(shape)), steps, strict=True):
            first = size(start)
            if first is None or step != 1:
                return None
            if first.value is not None and first.value < 0:
                whole = size(own[axis])
                first = None if whole is None else whole + first
            if first is None:
                return None
            places[axis] = index(axis) + first
        return placed(t, places, shape)

    def joined(self, node: Concat, shape: Shape) -> Term | None:
        """Concatenated parts, each of which continues the one before."""
        axis = axis_of(node.config.axis, len(shape))
        parts = []
        before: Number | None = ZERO
        for a in node.inputs:
            t, own = self.of(a), shape_of(a) if a.value is None else a.value.shape
            if not isinstance(t, Number) or own is None or before is None:
                return None
            places = [index(i) for i in range(len(shape))]
            places[axis] = index(axis) - before
            single = own[axis] == 1 or str(own[axis]).startswith("min(1, ")
            parts.append((t.at(places), before, single))
            width = constant(1) if single else size(own[axis])
            before = None if width is None else before + width
        whole = next((t for t, _, single in parts if not single), parts[0][0])
        for t, at, single in parts:
            places = [index(i) for i in range(len(shape))]
            places[axis] = at
            if t != whole and not (single and t.at(places) == whole.at(places)):
                return None
        return whole

    def coordinates(self, a: Argument) -> list[Number] | None:
        """The numbers along a value's last axis, each as a term of the other indices."""
        node, shape = self.walk.producer(a), shape_of(a)
        if not isinstance(node, Concat) or shape is None or node.config.axis not in (-1, len(shape) - 1):
            return None
        out = []
        for part in node.inputs:
            own, t = shape_of(part), self.of(part)
            if own is None or own[-1] != 1 or not isinstance(t, Number):
                return None
            out.append(t.at([*(index(i) for i in range(len(shape) - 1)), ZERO]))
        return out

    def picked(self, node: GatherND, shape: Shape) -> Term | None:
        t, places = self.of(node.inputs[0]), self.coordinates(node.inputs[1])
        own = shape_of(node.inputs[0])
        if t is None or places is None or own is None or node.config.batch_dims or len(places) > len(own):
            return None
        if not all(Bounds(shape).never_negative(p) for p in places):
            return None
        self.gathered.add(node.outputs[0].name)
        lead = len(shape) - (len(own) - len(places))
        return placed(t, [*places, *(index(lead + i) for i in range(len(own) - len(places)))], shape)

    def taken(self, node: Gather, shape: Shape) -> Term | None:
        t, at, own = self.of(node.inputs[0]), self.of(node.inputs[1]), shape_of(node.inputs[0])
        inner = shape_of(node.inputs[1]) if node.inputs[1].value is None else node.inputs[1].value.shape
        if t is None or not isinstance(at, Number) or own is None or inner is None:
            return None
        axis = axis_of(node.config.axis, len(own))
        places = [index(i) for i in range(axis)]
        places.append(at.at([index(axis + i) for i in range(len(inner))]))
        if not Bounds(shape).never_negative(places[axis]):
            return None
        self.gathered.add(node.outputs[0].name)
        places += [index(i - 1 + len(inner)) for i in range(axis + 1, len(own))]
        return placed(t, places, shape)

    def summed(self, node: CumSum, shape: Shape) -> Term | None:
        t = self.of(node.inputs[0])
        return ZERO if t == ZERO else None


_RULES: dict[type[Node[Any]], Callable[..., Term | None]] = {
    **dict.fromkeys((Add, Sub, Mul), Terms.arithmetic),
    **dict.fromkeys((Equal, Less, LessOrEqual, Greater, GreaterOrEqual), Terms.comparison),
    **dict.fromkeys((And, Or), Terms.logic),
    **dict.fromkeys((Reshape, Flatten, Squeeze, Unsqueeze), Terms.reshaped),
    Not: Terms.opposite,
    Cast: Terms.cast,
    Range: Terms.range,
    Identity: Terms.same,
    Expand: Terms.expanded,
    Transpose: Terms.permuted,
    Slice: Terms.sliced,
    Concat: Terms.joined,
    GatherND: Terms.picked,
    Gather: Terms.taken,
    CumSum: Terms.summed,
}
