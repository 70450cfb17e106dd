"""Rotary embeddings written as slices, a concatenation, products and a sum become one call.

There are two conventions: an element of a head's first half is paired with one of the second half, or with its
neighbor. The file's tables are twice as wide as the call's: their halves are proved equal and computed once.
"""

from __future__ import annotations

from typing import Any

from ..ir.argument import Argument
from ..ir.graph import Node
from ..ir.types import TensorType
from ..ir.value import Inline, Value, ints_value
from ..ops.arithmetic import Add, Div, Mul, Sub
from ..ops.attention import RotaryEmbedding, RotaryEmbeddingConfig
from ..ops.base import axes_of
from ..ops.constant import Cast
from ..ops.elementwise import Cos, Neg, Sin
from ..ops.expansion import Expand
from ..ops.indexing import Gather
from ..ops.joining import Concat, Split
from ..ops.movement import AxesConfig, Flatten, Reshape, Squeeze, Unsqueeze
from ..ops.slicing import Slice
from .rewriting import Change, Walk, instead, interim, number, shape_of, value_of

SAID = "recognized {} rotary embeddings written as parts"
RESHAPES = (Reshape, Flatten)
MOST_BYTES = 1 << 26  # of a constant table


def step(node: Node[Any], walk: Walk) -> Change | None:
    if isinstance(node, Add):
        return rotation(node, walk)
    if isinstance(node, Concat):
        return partial(node, walk)
    return None


def width(a: Argument) -> int | None:
    """The size of the last of a value's four axes; None if it is unknown or the rank is not 4."""
    t = a.type
    if not isinstance(t, TensorType) or t.shape is None or len(t.shape) != 4:
        return None
    return t.shape[-1] if isinstance(t.shape[-1], int) else None


def rotation(node: Add, walk: Walk) -> Change | None:
    """x * cos + rotated(x) * sin."""
    size = width(node.outputs[0])
    if size is None or not node.dtype(0).is_float:
        return None
    for i in (0, 1):
        one, other = walk.made_by(node.inputs[i], Mul), walk.made_by(node.inputs[1 - i], Mul)
        if one is None or other is None or not (walk.alone(node.inputs[0]) and walk.alone(node.inputs[1])):
            return None
        for j in (0, 1):
            found = rotated(other.inputs[j], size, walk)
            if found is None:
                continue
            x, neighbors = found
            for k in (0, 1):
                if one.inputs[k].name != x.name or x.type != node.outputs[0].type:
                    continue
                nodes: list[Node[Any]] = []
                tables = [table(a, neighbors, walk, nodes) for a in (one.inputs[1 - k], other.inputs[1 - j])]
                if tables[0] is None or tables[1] is None:
                    continue
                inputs = (x, tables[0], tables[1])
                config = RotaryEmbeddingConfig(neighbors, 0, 0)
                return instead(node, SAID, *nodes, RotaryEmbedding(node.name, inputs, node.outputs, config))
    return None


def partial(node: Concat, walk: Walk) -> Change | None:
    """The first elements of each head are rotated, the others follow unchanged."""
    if width(node.outputs[0]) is None or len(node.inputs) != 2 or node.config.axis not in (-1, 3):
        return None
    if not walk.alone(node.inputs[0]):
        return None
    rotary = walk.made_by(node.inputs[0], RotaryEmbedding)
    rest = part(node.inputs[1], walk)
    first = part(rotary.inputs[0], walk) if rotary is not None and not rotary.config.size else None
    if rotary is None or rest is None or first is None or first[0].name != rest[0].name:
        return None
    x = first[0]
    if first[1:] != (0, rest[1]) or x.type != node.outputs[0].type:
        return None
    config = RotaryEmbeddingConfig(rotary.config.interleaved, rest[1], 0)
    inputs = (x, *rotary.inputs[1:])
    made = RotaryEmbedding(node.name, inputs, node.outputs, config)
    return instead(node, "recognized {} partial rotary embeddings", made)


# -- what is turned ---------------------------------------------------------------------------------------------------


def part(a: Argument, walk: Walk, step: int = 1) -> tuple[Argument, int, int] | None:
    """(x, start, stop) of x[..., start:stop:step]."""
    node = walk.producer(a)
    t = a.type
    if not isinstance(t, TensorType) or not t.shape or not isinstance(t.shape[-1], int):
        return None
    if isinstance(node, Slice) and not node.open():
        starts, _, axes, steps = node.bounds()
        rank = node.tensor(0).rank
        if rank is None or axes_of(axes, rank) != (rank - 1,) or steps != (step,) or not isinstance(starts[0], int):
            return None
        whole = node.tensor(0).shape
        last = whole[-1] if whole else None
        start = starts[0] + last if starts[0] < 0 and isinstance(last, int) else starts[0]
        return (node.inputs[0], start, start + step * t.shape[-1]) if start >= 0 else None
    if isinstance(node, Split) and step == 1 and node.config.axis in (-1, len(t.shape) - 1):
        start = 0
        for o in node.outputs:
            size = o.type.shape[-1] if isinstance(o.type, TensorType) and o.type.shape else None
            if not isinstance(size, int):
                return None
            if o.name == a.name:
                return node.inputs[0], start, start + size
            start += size
    return None


def negated(a: Argument, walk: Walk) -> Argument | None:
    """x of -x."""
    node = walk.producer(a)
    if isinstance(node, Neg):
        return node.inputs[0]
    if isinstance(node, Mul):
        for i in (0, 1):
            if number(node.inputs[i]) == -1.0:
                return node.inputs[1 - i]
    return None


def rotated(a: Argument, size: int, walk: Walk) -> tuple[Argument, bool] | None:
    """(x, whether pairs are neighbors), if a value has (-b, a) in place of each pair (a, b) of x."""
    joined = walk.made_by(a, Concat)
    if joined is not None and len(joined.inputs) == 2 and joined.config.axis in (-1, 3):
        second = negated(joined.inputs[0], walk)
        low = part(joined.inputs[1], walk)
        high = part(second, walk) if second is not None else None
        if low is None or high is None or low[0].name != high[0].name:
            return None
        return (low[0], False) if low[1:] == (0, size // 2) and high[1:] == (size // 2, size) else None
    flat = walk.producer(a)
    if not isinstance(flat, RESHAPES):
        return None
    joined = walk.made_by(flat.inputs[0], Concat)
    if joined is None or len(joined.inputs) != 2 or joined.config.axis not in (-1, 4):
        return None
    wide = [walk.made_by(i, Unsqueeze) for i in joined.inputs]
    if wide[0] is None or wide[1] is None or any(w.axes() not in ((-1,), (4,)) for w in wide if w is not None):
        return None
    second = negated(wide[0].inputs[0], walk)
    even = part(wide[1].inputs[0], walk, 2)
    odd = part(second, walk, 2) if second is not None else None
    if even is None or odd is None or even[0].name != odd[0].name or width(even[0]) != size:
        return None
    return (even[0], True) if (even[1], odd[1]) == (0, 1) else None


# -- its tables -------------------------------------------------------------------------------------------------------


def table(a: Argument, neighbors: bool, walk: Walk, nodes: list[Node[Any]]) -> Argument | None:
    """The narrow table, (batch or 1, length, size / 2), of a wide one, (batch or 1, 1, length, size)."""
    t = a.type
    if not isinstance(t, TensorType) or t.shape is None or len(t.shape) not in (2, 3, 4):
        return None
    made = _Halves(neighbors, walk, nodes)
    if len(t.shape) < 4:
        half = made.of(a)
        if half is None or (len(t.shape) == 3 and t.shape[0] != 1):
            return None
        return half if len(t.shape) == 3 else made.widened(half, (0,))
    if t.shape[1] != 1:
        return None
    node = walk.made_by(a, Unsqueeze)
    axes = node.axes() if node is not None else None
    if node is not None and axes is not None and 1 in axes_of(axes, 4):
        half = made.of(node.inputs[0])
        rest = tuple(max(i - 1, 0) for i in axes_of(axes, 4) if i != 1)
        return half if half is None or not rest else made.widened(half, rest)
    half = made.of(a)
    return made.narrowed(half) if half is not None else None


class _Halves:
    """Rebuilds the nodes of a table, half as wide."""

    def __init__(self, neighbors: bool, walk: Walk, nodes: list[Node[Any]]) -> None:
        self.neighbors = neighbors
        self.walk = walk
        self.nodes = nodes

    def of(self, a: Argument) -> Argument | None:
        if a.value is not None:
            return self.constant(a, a.value)
        node = self.walk.producer(a)
        match node:
            case Cos() | Sin() | Cast() | Neg():
                half = self.of(node.inputs[0])
                return None if half is None else self.again(node, (half,))
            case Mul() | Div() | Add() | Sub():
                return self.with_number(node)
            case Unsqueeze():
                axes, shape = node.axes(), shape_of(node.outputs[0])
                if axes is None or shape is None or len(shape) - 1 in axes_of(axes, len(shape)):
                    return None
                half = self.of(node.inputs[0])
                return None if half is None else self.again(node, (half, *node.inputs[1:]))
            case Gather():
                value = node.value(0)
                if value is None or len(value.shape) != 2 or node.config.axis not in (0, -2):
                    return None
                half = self.constant(node.inputs[0], value)
                return None if half is None else self.again(node, (half, node.inputs[1]))
            case Concat() if (
                not self.neighbors and len(node.inputs) == 2 and node.inputs[0].name == node.inputs[1].name
            ):
                whole = shape_of(node.outputs[0])
                return node.inputs[0] if whole and node.config.axis in (-1, len(whole) - 1) else None
            case Reshape() | Flatten() if self.neighbors:
                return self.repeated(node)
            case _:
                return None

    def with_number(self, node: Node[Any]) -> Argument | None:
        """The half of a node of which one input is a number."""
        for i in (0, 1):
            if number(node.inputs[1 - i]) is not None and node.inputs[i].type == node.outputs[0].type:
                half = self.of(node.inputs[i])
                if half is None:
                    return None
                return self.again(node, (half, node.inputs[1]) if i == 0 else (node.inputs[0], half))
        return None

    def repeated(self, node: Node[Any]) -> Argument | None:
        """x, if a value holds each element of x's last axis twice."""
        wide = self.walk.producer(node.inputs[0])
        if isinstance(wide, Concat):
            twice = len(wide.inputs) == 2 and wide.inputs[0].name == wide.inputs[1].name
            narrow = self.walk.made_by(wide.inputs[0], Unsqueeze) if twice else None
        else:
            narrow = self.walk.made_by(wide.inputs[0], Unsqueeze) if isinstance(wide, Expand) else None
        if narrow is None or wide is None:
            return None
        pairs, made = shape_of(wide.outputs[0]), shape_of(node.outputs[0])
        axes, inner = narrow.axes(), shape_of(narrow.inputs[0])
        if axes is None or inner is None or made is None or None in made:
            return None
        rank = len(inner)
        if axes_of(axes, rank + 1) != (rank,) or pairs != (*inner, 2) or made[:-1] != inner[:-1]:
            return None
        return narrow.inputs[0]

    def again(self, node: Node[Any], inputs: tuple[Argument, ...]) -> Argument:
        name = self.walk.fresh(node.name.partition("::half")[0] + "::half")
        self.nodes.append(type(node)(name, inputs, (interim(name),), node.config))
        return self.nodes[-1].outputs[0]

    def constant(self, a: Argument, value: Value) -> Argument | None:
        """Half of a constant, if the halves of its last axis are equal."""
        size = value.shape[-1] if value.shape else 0
        width = value.dtype.bits // 8
        if size < 2 or size % 2 or not width or value.nbytes > MOST_BYTES:  # width 0: of strings and 4 bits
            return None
        data = bytes(value.raw())
        rows = [data[i : i + size * width] for i in range(0, len(data), size * width)]
        halves = []
        for row in rows:
            if self.neighbors:
                items = [row[i : i + width] for i in range(0, len(row), width)]
                low, high = b"".join(items[::2]), b"".join(items[1::2])
            else:
                low, high = row[: len(row) // 2], row[len(row) // 2 :]
            if low != high:
                return None
            halves.append(low)
        held = Value(value.dtype, (*value.shape[:-1], size // 2), Inline(b"".join(halves)), ("half", value.key()))
        return value_of(a.name + "::half", held)

    def widened(self, half: Argument, axes: tuple[int, ...]) -> Argument:
        name = self.walk.fresh(half.name.partition("::")[0] + "::half")
        given = value_of(self.walk.fresh(name + "::axes"), ints_value(axes))
        self.nodes.append(Unsqueeze(name, (half, given), (interim(name),), AxesConfig(None)))
        return self.nodes[-1].outputs[0]

    def narrowed(self, half: Argument) -> Argument:
        name = self.walk.fresh(half.name.partition("::")[0] + "::half")
        given = value_of(self.walk.fresh(name + "::axes"), ints_value((1,)))
        self.nodes.append(Squeeze(name, (half, given), (interim(name),), AxesConfig(None)))
        return self.nodes[-1].outputs[0]
