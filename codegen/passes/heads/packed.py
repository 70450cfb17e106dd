"""Queries, keys and values of one layer, side by side: `query, key, value = F.split(self.qkv(x), 3, axis=-1)`.

Exporters write this as a reshape to (..., 3, heads, size), a permutation that brings the axis of 3 to the front, and a
part of that for each. `nn.MultiheadAttention` of PyTorch, which computes with the length first, also permutes before
and after its layers; since a layer acts on the last axis alone, the two permutations are removed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir.argument import Argument
from ...ir.graph import Graph, Node
from ...ir.types import Dim
from ...ir.value import ints_value
from ...ops.indexing import Gather
from ...ops.internal import Linear
from ...ops.joining import Split, SplitConfig
from ...ops.linear_algebra import MatMul
from ...ops.movement import AxesConfig, Reshape, ReshapeConfig, Transpose, TransposeConfig, Unsqueeze
from ...ops.slicing import Slice
from ...records import dataclass, replace
from ..moves import target
from ..rewriting import Change, Rewrite, Walk, instead, interim, rewrite, shape_of, value_of

MOST = 8  # parts
SPLIT = "read {} parts of a layer's result from one split"
TURNED = "removed {} permutations around layers"


def run(graph: Graph) -> Rewrite:
    parts: dict[str, Split] = {}
    turned: dict[str, Split] = {}
    readers: dict[str, list[Node[Any]]] = {}
    for node in graph.walk():
        for a in node.uses():
            readers.setdefault(a.name, []).append(node)

    def step(node: Node[Any], walk: Walk) -> Change | None:
        if isinstance(node, Gather | Slice | Split):
            return part(node, walk, parts)
        if isinstance(node, Transpose):
            return unturned(node, walk, turned, lambda name: readers.get(name, []))
        return None

    return rewrite(graph, step)


# -- parts ------------------------------------------------------------------------------------------------------------


def _layer(a: Argument, walk: Walk) -> Linear | MatMul | None:
    """The layer that gives a value: a product with a constant matrix, on the last axis."""
    node = walk.producer(a)
    if isinstance(node, MatMul):
        weight = node.value(1)
        return node if weight is not None and len(weight.shape) == 2 else None
    return node if isinstance(node, Linear) else None


@dataclass
class PartsInFront:
    """A value that holds `count` parts side by side on its last axis, and the shape and order of axes in which each is
    used."""

    source: Reshape
    count: int
    lead: int
    shape: tuple[Dim, ...]
    order: tuple[int, ...]


def parts_in_front(a: Argument, walk: Walk) -> PartsInFront | None:
    """A layer's result, if an axis for its parts was brought to the front."""
    front = walk.made_by(a, Transpose)
    source = walk.made_by(front.inputs[0], Reshape) if front is not None else None
    if front is None or source is None or _layer(source.inputs[0], walk) is None:
        return None
    before, after = shape_of(source.inputs[0]), shape_of(source.outputs[0])
    if before is None or after is None or None in before or None in after or len(after) <= len(before):
        return None
    perm, lead = front.perm(), len(before) - 1
    count = after[lead]
    if perm[0] != lead or not isinstance(count, int) or not 1 < count <= MOST or before[:lead] != after[:lead]:
        return None
    order = tuple(p - (p > lead) for p in perm[1:])
    return PartsInFront(source, count, lead, (*after[:lead], *after[lead + 1 :]), order)


def part(node: Gather | Slice | Split, walk: Walk, parts: dict[str, Split]) -> Change | None:
    """The parts that a node takes, as outputs of a split of the layer's result."""
    found = parts_in_front(node.inputs[0], walk)
    at = _picked(node)
    if found is None or not at or max(at) >= found.count:
        return None
    nodes: list[Node[Any]] = []
    made = parts.get(found.source.outputs[0].name)
    if made is None or not walk.visible(made):
        name = walk.fresh(f"{found.source.name}::parts")
        outputs = tuple(interim(walk.fresh(f"{name} {i}")) for i in range(found.count))
        made = Split(name, (found.source.inputs[0],), outputs, SplitConfig(found.lead, None, found.count))
        nodes.append(made)
    values = [_placed(made.outputs[i], found, node, walk, nodes) for i in at]
    change = instead(node, SPLIT, *nodes)
    if change is None or None in values:
        return None
    typed = {o.name: o for n in change.nodes for o in n.outputs}
    if change.nodes and isinstance(change.nodes[0], Split):
        parts[found.source.outputs[0].name] = change.nodes[0]
    pairs = zip(node.outputs, values, strict=True)
    return replace(change, values={o.name: typed.get(v.name, v) for o, v in pairs if v is not None})


def _placed(x: Argument, found: PartsInFront, node: Node[Any], walk: Walk, nodes: list[Node[Any]]) -> Argument | None:
    """A part in the shape and order of axes in which it is used; the nodes for that are added to `nodes`."""

    def add(kind: type[Node[Any]], what: str, config: Any, *more: Argument) -> Argument:
        name = walk.fresh(f"{node.name}::{what}")
        nodes.append(kind(name, (x, *more), (interim(name),), config))
        return nodes[-1].outputs[0]

    if len(found.shape) > found.lead + 1:
        shape = target(found.shape, node, walk, nodes)
        if shape is not None:
            x = add(Reshape, "apart", ReshapeConfig(None, True), shape)
        else:
            rest = [d for d in found.shape[found.lead :] if isinstance(d, int)]
            numbers = (*(0 for _ in range(found.lead)), *rest)
            if len(numbers) < len(found.shape):
                return None
            kept = value_of(walk.fresh(f"{node.name}::shape"), ints_value(numbers))
            x = add(Reshape, "apart", ReshapeConfig(None, False), kept)
    if found.order != tuple(range(len(found.order))):
        x = add(Transpose, "turned", TransposeConfig(found.order))
    if not isinstance(node, Gather):
        x = add(Unsqueeze, "kept", AxesConfig(None), value_of(walk.fresh(f"{node.name}::axes"), ints_value((0,))))
    return x


def _picked(node: Gather | Slice | Split) -> tuple[int, ...] | None:
    """Which elements of the first axis a node takes, as far as that is known. All but Gather keep the axis."""
    if isinstance(node, Split):
        one = all((shape_of(o) or (0,))[0] == 1 for o in node.outputs)
        return tuple(range(len(node.outputs))) if node.config.axis == 0 and one else None
    if isinstance(node, Gather):
        at = node.picked()
        return at if node.config.axis == 0 and shape_of(node.inputs[1]) == () and at and at[0] >= 0 else None
    if node.open():
        return None
    starts, ends, axes, steps = node.bounds()
    if axes != (0,) or steps != (1,) or not isinstance(starts[0], int) or ends[0] != starts[0] + 1:
        return None
    return (starts[0],) if starts[0] >= 0 else None


# -- permutations around layers ---------------------------------------------------------------------------------------


def unturned(
    node: Transpose, walk: Walk, turned: dict[str, Split], readers: Callable[[str], list[Node[Any]]]
) -> Change | None:
    """A layer without the permutation before it and the inverse one after it, or after the parts of its result."""
    if node.tensor(0).rank is None:
        return None
    perm = node.perm()
    rank = len(perm)
    if not rank or perm[-1] != rank - 1 or not walk.alone(node.inputs[0]):
        return None
    split = walk.made_by(node.inputs[0], Split)
    layer = _layer(split.inputs[0] if split is not None else node.inputs[0], walk)
    if layer is None:
        return None
    before = walk.made_by(layer.inputs[0], Transpose)
    if before is None or before.tensor(0).rank != rank or any(before.perm()[p] != i for i, p in enumerate(perm)):
        return None
    x = before.inputs[0]
    if split is None:
        return instead(
            node, TURNED, replace(layer, name=node.name, inputs=(x, *layer.inputs[1:]), outputs=node.outputs)
        )
    if split.config.axis not in (-1, rank - 1) or not walk.alone(split.inputs[0]):
        return None
    at = [o.name for o in split.outputs].index(node.inputs[0].name)
    if split.name in turned:
        known = turned[split.name]
        return Change(TURNED, (), {node.outputs[0].name: known.outputs[at]}) if walk.visible(known) else None
    for o in split.outputs:
        if not all(isinstance(r, Transpose) and r.tensor(0).rank == rank and r.perm() == perm for r in readers(o.name)):
            return None
    name = walk.fresh(f"{layer.name}::straight")
    straight = replace(layer, name=name, inputs=(x, *layer.inputs[1:]), outputs=(interim(name),))
    name = walk.fresh(f"{split.name}::straight")
    outputs: tuple[Argument, ...] = tuple(interim(walk.fresh(f"{name} {i}")) for i in range(len(split.outputs)))
    whole = Split(name, (straight.outputs[0], *split.inputs[1:]), outputs, split.config)
    change = instead(node, TURNED, straight, whole)
    if change is None:
        return None
    last = change.nodes[-1]
    assert isinstance(last, Split)
    turned[split.name] = last
    return replace(change, values={node.outputs[0].name: last.outputs[at]})
