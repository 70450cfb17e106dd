"""Simplifies gathers: those from equal numbers, and those of columns that a non-maximum suppression selected.

Exporters read the three columns of the selection one by one and join them again in the order of the axes of boxes and
of scores: `F.gather_nd(boxes, F.take(selected, (0, 2), axis=1))`, `F.gather_nd(scores, selected)`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from ..ir.argument import Argument
from ..ir.graph import Graph, Node
from ..ir.value import ints_value, scalar_value
from ..ops.base import axis_of
from ..ops.expansion import Expand
from ..ops.indexing import Gather, GatherElements, GatherND
from ..ops.joining import Concat
from ..ops.movement import Transpose, Unsqueeze
from ..ops.slicing import Slice, SliceConfig
from ..records import replace
from .rewriting import Change, Rewrite, Walk, instead, replaced_by, rewrite, shape_of, value_of

SMALL = 1 << 16
EQUAL = "replaced {} gathers from equal numbers by the number"
COLUMNS = "joined {} groups of columns that were read one by one"
SELECTED = "read {} tensors by an unchanged selection"


def run(graph: Graph) -> Rewrite:
    turned: dict[str, list[Transpose]] = {}
    for node in graph.walk():
        if isinstance(node, Transpose):
            turned.setdefault(node.inputs[0].name, []).append(node)

    def step(node: Node[Any], walk: Walk) -> Change | None:
        if isinstance(node, Expand):
            return equal(node, walk)
        if isinstance(node, Concat):
            return joined(node, walk)
        if isinstance(node, GatherND):
            return selected(node, walk, turned.get(node.inputs[0].name, []))
        return None

    return rewrite(graph, step)


def equal(node: Expand, walk: Walk) -> Change | None:
    """An expanded gather from equal numbers, such as the token types of a text that has only one."""
    before = walk.made_by(node.inputs[0], GatherElements)
    value = before.value(0) if before is not None else None
    dims, out = node.dims(1), shape_of(node.outputs[0])
    if value is None or not 0 < value.size <= SMALL or not value.dtype.is_integer or dims is None or dims != out:
        return None
    numbers = set(value.ints())
    if len(numbers) > 1:
        return None
    number = value_of(walk.fresh(f"{node.name}::number"), scalar_value(numbers.pop(), value.dtype))
    return instead(node, EQUAL, Expand(node.name, (number, node.inputs[1]), node.outputs, None))


def joined(node: Concat, walk: Walk) -> Change | None:
    """Columns of one matrix, each with an axis of its own, joined along that axis."""
    found = [_column(a, walk) for a in node.inputs]
    first = found[0] if found else None
    if first is None or len(found) < 2 or any(f is None or f[0].name != first[0].name for f in found):
        return None
    if axis_of(node.config.axis, 2) != 1:
        return None
    at = tuple(f[1] for f in found if f is not None)
    matrix = first[0]
    if at == tuple(range(len(at))) and (shape_of(matrix) or ())[-1:] == (len(at),):
        return replaced_by(node, COLUMNS, matrix) if walk.alone(node.outputs[0]) else None
    step = at[1] - at[0]
    if step > 0 and all(b - a == step for a, b in pairwise(at)):
        bounds = [("start", at[0]), ("end", at[-1] + 1), ("axis", 1), ("step", step)]
        given = tuple(value_of(walk.fresh(f"{node.name}::{word}"), ints_value((n,))) for word, n in bounds)
        return instead(node, COLUMNS, Slice(node.name, (matrix, *given), node.outputs, SliceConfig(None, None, None)))
    columns = value_of(walk.fresh(f"{node.name}::columns"), ints_value(at))
    one = walk.producer(node.inputs[0])
    assert one is not None
    read = walk.made_by(one.inputs[0], Gather)
    assert read is not None
    return instead(node, COLUMNS, replace(read, name=node.name, inputs=(matrix, columns), outputs=node.outputs))


def _column(a: Argument, walk: Walk) -> tuple[Argument, int] | None:
    """(matrix, index), if a value is a column of a matrix, of the shape (rows, 1)."""
    new = walk.made_by(a, Unsqueeze)
    read = walk.made_by(new.inputs[0], Gather) if new is not None else None
    if new is None or read is None or new.axes() not in ((-1,), (1,)):
        return None
    at = read.picked()
    whole, index = shape_of(read.inputs[0]), shape_of(read.inputs[1])
    if whole is None or len(whole) != 2 or index != () or at is None or at[0] < 0 or axis_of(read.config.axis, 2) != 1:
        return None
    return read.inputs[0], at[0]


def selected(node: GatherND, walk: Walk, turned: list[Transpose]) -> Change | None:
    """A tensor read by columns of a selection in the order of the tensor's axes; if the model already has its
    permutation in the order of the selection, the selection reads that one unchanged."""
    read = walk.made_by(node.inputs[1], Gather)
    whole = shape_of(read.inputs[0]) if read is not None else None
    at = read.picked() if read is not None else None
    if read is None or whole is None or at is None or sorted(at) != list(range(len(at))):
        return None
    if len(whole) != 2 or whole[1] != len(at) or axis_of(read.config.axis, 2) != 1:
        return None
    for other in turned:
        if other.tensor(0).rank != len(at):  # so there are no batch axes
            continue
        perm = other.perm()
        if walk.visible(other) and all(at[p] == i for i, p in enumerate(perm)):
            made = replace(node, inputs=(other.outputs[0], read.inputs[0]))
            return instead(node, SELECTED, made)
    return None
