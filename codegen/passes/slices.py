"""Slices: a slice of a slice becomes one, and two parts of a tensor in exchanged order become `F.roll`.

Exporters write a slice for each axis, `x[:, ::2][:, :, 1::2]`, and a roll as a concatenation, `x[2:]` and `x[:2]`.
"""

from __future__ import annotations

from typing import Any

from ..ir.graph import Node
from ..ir.value import ints_value
from ..ops.base import axes_of, axis_of
from ..ops.internal import Roll, RollConfig
from ..ops.joining import Concat
from ..ops.slicing import Slice, SliceConfig
from ..records import dataclass
from .rewriting import Change, Walk, instead, shape_of, value_of

MERGED = "joined {} slices with the slices that they cut"
ROLLED = "replaced {} exchanges of parts by rolls"


def step(node: Node[Any], walk: Walk) -> Change | None:
    if isinstance(node, Slice):
        return merged(node, walk)
    return rolled(node, walk) if isinstance(node, Concat) else None


@dataclass(frozen=True)
class Cut:
    """The numbers of a slice, for each of its axes."""

    starts: tuple[int, ...]
    ends: tuple[int, ...]
    axes: tuple[int, ...]
    steps: tuple[int, ...]

    def rows(self) -> list[tuple[int, int, int, int]]:
        return list(zip(self.axes, self.starts, self.ends, self.steps, strict=True))


def cut_of(node: Slice) -> Cut | None:
    """A slice's numbers, if all are known."""
    shape = shape_of(node.inputs[0])
    if shape is None or node.open():
        return None
    starts, ends, axes, steps = node.bounds()
    numbers = (*starts, *ends, *steps)
    if not all(isinstance(d, int) for d in numbers):
        return None
    return Cut(starts, ends, axes_of(axes, len(shape)), steps)  # type: ignore[arg-type]


def merged(node: Slice, walk: Walk) -> Change | None:
    """A slice of a slice along other axes. The inner one stays if others read it: it costs nothing, as a view."""
    inner = walk.made_by(node.inputs[0], Slice)
    if inner is None or not walk.visible(inner):
        return None
    mine, other = cut_of(node), cut_of(inner)
    if mine is None or other is None or {*mine.axes} & {*other.axes}:
        return None
    columns = zip(*sorted((*other.rows(), *mine.rows())), strict=True)
    axes, starts, ends, steps = (ints_value(column) for column in columns)
    named = zip(("starts", "ends", "axes", "steps"), (starts, ends, axes, steps), strict=True)
    inputs = (inner.inputs[0], *(value_of(walk.fresh(f"{node.name}::{word}"), value) for word, value in named))
    return instead(node, MERGED, Slice(node.name, inputs, node.outputs, SliceConfig(None, None, None)))


def rolled(node: Concat, walk: Walk) -> Change | None:
    """x[s:] before x[:s], along one axis."""
    if len(node.inputs) != 2:
        return None
    parts = [walk.made_by(a, Slice) for a in node.inputs]
    if parts[0] is None or parts[1] is None or parts[0].inputs[0].name != parts[1].inputs[0].name:
        return None
    x = parts[0].inputs[0]
    shape, cuts = shape_of(x), [cut_of(p) for p in parts if p is not None]
    if shape is None or cuts[0] is None or cuts[1] is None or not walk.visible(parts[0]):
        return None
    axis = axis_of(node.config.axis, len(shape))
    size = shape[axis]
    if not isinstance(size, int) or cuts[0].axes != (axis,) or cuts[1].axes != (axis,):
        return None
    first, second = (range(*slice(c.starts[0], c.ends[0], c.steps[0]).indices(size)) for c in (cuts[0], cuts[1]))
    at = len(second)
    if first != range(at, size) or second != range(at) or not 0 < at < size:
        return None
    shift = -at if at <= size // 2 else size - at
    before = walk.made_by(x, Roll)
    if before is not None and walk.visible(before) and axis not in before.config.axes:
        config = RollConfig((*before.config.shifts, shift), (*before.config.axes, axis))
        return instead(node, ROLLED, Roll(node.name, before.inputs, node.outputs, config))
    return instead(node, ROLLED, Roll(node.name, (x,), node.outputs, RollConfig((shift,), (axis,))))
