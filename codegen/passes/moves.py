"""Moves: merges consecutive permutations, reshapes and new axes into one."""

from __future__ import annotations

from typing import Any

from ..ir.argument import Argument
from ..ir.graph import Node
from ..ir.types import Dim, Shape, TensorType
from ..ir.value import ints_value
from ..ops.base import axes_of
from ..ops.internal import Sizes, SizesConfig
from ..ops.movement import Flatten, Reshape, ReshapeConfig, Squeeze, Transpose, TransposeConfig, Unsqueeze
from ..ops.reduction import Reduction
from ..records import replace
from .rewriting import Change, Walk, instead, interim, value_of

RESHAPES = (Flatten, Reshape, Squeeze, Unsqueeze)


def step(node: Node[Any], walk: Walk) -> Change | None:
    if isinstance(node, Transpose):
        return permuted(node, walk)
    if isinstance(node, RESHAPES):
        return (
            narrowed(node, walk)
            or exchanged(node, walk)
            or divided(node, walk)
            or passing(node, walk)
            or unsqueezed(node, walk)
            or reshaped(node, walk)
        )
    return None


def narrowed(node: Node[Any], walk: Walk) -> Change | None:
    """A reduction that keeps its axes and a reshape that only removes them become a reduction that removes them."""
    before = walk.producer(node.inputs[0])
    out = node.outputs[0].type
    if not isinstance(before, Reduction) or not before.config.keepdims or not walk.alone(node.inputs[0]):
        return None
    axes, kept = before.axes(), before.outputs[0].type
    if not axes or not isinstance(kept, TensorType) or not isinstance(out, TensorType) or kept.shape is None:
        return None
    rest = tuple(d for i, d in enumerate(kept.shape) if i not in axes)
    if (
        out.shape is None
        or len(out.shape) != len(rest)
        or sum(not _same(a, b) for a, b in zip(rest, out.shape, strict=True)) > 1
    ):
        return None
    made = replace(before, name=node.name, outputs=node.outputs, config=replace(before.config, keepdims=False))
    return instead(node, "let {} reductions remove their own axes", made)


def permuted(node: Transpose, walk: Walk) -> Change | None:
    """Joins a permutation of a permutation."""
    before = walk.made_by(node.inputs[0], Transpose)
    if before is None or node.tensor(0).rank is None:
        return None
    first, second = before.perm(), node.perm()
    perm = tuple(first[p] for p in second)
    config = TransposeConfig(perm)
    return instead(node, "joined {} pairs of permutations", Transpose(node.name, before.inputs, node.outputs, config))


def unsqueezed(node: Node[Any], walk: Walk) -> Change | None:
    """Joins new axes of a value that has new axes."""
    if not isinstance(node, Unsqueeze):
        return None
    before = walk.made_by(node.inputs[0], Unsqueeze)
    outer, rank = node.axes(), node.tensor(0).rank
    inner = before.axes() if before is not None else None
    if before is None or outer is None or inner is None or rank is None:
        return None
    new = set(axes_of(outer, rank + len(outer)))
    kept = [i for i in range(rank + len(outer)) if i not in new]
    axes = sorted(new | {kept[i] for i in axes_of(inner, rank)})
    given = value_of(walk.fresh(node.name + "::axes"), ints_value(tuple(axes)))
    merged = Unsqueeze(node.name, (before.inputs[0], given), node.outputs, type(node.config)(None))
    return instead(node, "joined {} pairs of new axes", merged)


def reshaped(node: Node[Any], walk: Walk) -> Change | None:
    """Skips a reshape before a reshape: the shape in between does not matter."""
    before = walk.producer(node.inputs[0])
    if not isinstance(before, RESHAPES) or not isinstance(before.type(0), TensorType):
        return None
    if isinstance(before, Unsqueeze) and isinstance(node, Unsqueeze):
        return None
    t = node.outputs[0].type
    nodes: list[Node[Any]] = []
    shape = target(t.shape, node, walk, nodes) if isinstance(t, TensorType) else None
    if shape is None:
        return None
    merged = Reshape(node.name, (before.inputs[0], shape), node.outputs, ReshapeConfig(None, True))
    return instead(node, "joined {} pairs of reshapes", *nodes, merged)


def target(shape: Shape | None, node: Node[Any], walk: Walk, nodes: list[Node[Any]]) -> Argument | None:
    """An argument that gives a shape: numbers with at most one -1, or named sizes that the inputs have; None if that is
    impossible. A node that it needs is added to `nodes`."""
    if shape is None:
        return None
    unknown = [i for i, d in enumerate(shape) if not isinstance(d, int)]
    if len(unknown) <= 1 and not (unknown and 0 in shape):
        numbers = tuple(d if isinstance(d, int) else -1 for d in shape)
        return value_of(walk.fresh(node.name + "::shape"), ints_value(numbers))
    sizes = [walk.size(d) for d in dict.fromkeys(d for d in shape if isinstance(d, str))]
    if None in shape or None in sizes:
        return None
    name = walk.fresh(node.name + "::shape")
    inputs = tuple(s for s in sizes if s is not None)
    nodes.append(Sizes(name, inputs, (interim(name),), SizesConfig(shape)))
    return nodes[-1].outputs[0]


def divided(node: Node[Any], walk: Walk) -> Change | None:
    """(a, b · c, d) with the first two axes exchanged and then b and c separated, as in attention: separates them
    first."""
    swap = walk.made_by(node.inputs[0], Transpose)
    flat = walk.producer(swap.inputs[0]) if swap is not None else None
    if (
        swap is None
        or swap.config.perm != (1, 0, 2)
        or not isinstance(flat, RESHAPES)
        or not walk.alone(node.inputs[0])
    ):
        return None
    merged, out = flat.outputs[0].type, node.outputs[0].type
    if not isinstance(merged, TensorType) or not isinstance(out, TensorType):
        return None
    a, b = merged.shape, out.shape
    if a is None or b is None or len(b) != 4 or None in b or (a[0], a[2]) != (b[2], b[3]):
        return None
    nodes: list[Node[Any]] = []
    shape = target((b[2], b[0], b[1], b[3]), node, walk, nodes)
    if shape is None:
        return None
    unmerged = interim(walk.fresh(node.name + "::apart"))
    nodes.append(Reshape(unmerged.name, (flat.inputs[0], shape), (unmerged,), ReshapeConfig(None, True)))
    made = Transpose(node.name, (unmerged,), node.outputs, TransposeConfig((1, 2, 0, 3)))
    return instead(node, "separated {} pairs of merged axes before a permutation", *nodes, made)


def passing(node: Node[Any], walk: Walk) -> Change | None:
    """An axis of 1 that a reshape adds, a permutation moves and a reshape removes: removes it before the
    permutation."""
    if not isinstance(node, Squeeze):
        return None
    turned = walk.made_by(node.inputs[0], Transpose)
    if turned is None or not walk.alone(node.inputs[0]) or not isinstance(walk.producer(turned.inputs[0]), RESHAPES):
        return None
    gone, perm = node.axes(), turned.perm()
    if gone is None:
        return None
    removed = set(axes_of(gone, len(perm)))
    axes = tuple(sorted(perm[i] for i in removed))
    kept = [p for i, p in enumerate(perm) if i not in removed]
    places = {p: i for i, p in enumerate(sorted(kept))}
    thin = interim(walk.fresh(node.name + "::thin"))
    given = value_of(walk.fresh(node.name + "::axes"), ints_value(axes))
    squeeze = Squeeze(thin.name, (turned.inputs[0], given), (thin,), type(node.config)(None))
    made = Transpose(node.name, (thin,), node.outputs, TransposeConfig(tuple(places[p] for p in kept)))
    return instead(node, "removed {} axes of 1 before a permutation", squeeze, made)


def exchanged(node: Node[Any], walk: Walk) -> Change | None:
    """Leading axes merged, the last two exchanged, and the leading axes restored: keeps only the exchange."""
    swap = walk.made_by(node.inputs[0], Transpose)
    flat = walk.producer(swap.inputs[0]) if swap is not None else None
    if swap is None or swap.config.perm != (0, 2, 1) or not isinstance(flat, RESHAPES):
        return None
    source, out = flat.type(0), node.outputs[0].type
    merged = flat.outputs[0].type
    if not (isinstance(source, TensorType) and isinstance(out, TensorType) and isinstance(merged, TensorType)):
        return None
    a, b, c = source.shape, merged.shape, out.shape
    if a is None or b is None or c is None or len(a) != len(c) or len(b) != 3 or len(a) < 3:
        return None
    if not (_sure(a[-2:]) and a[-2:] == b[-2:] and c[-2:] == (a[-1], a[-2]) and _leading(a, c)):
        return None
    rank = len(a)
    config = TransposeConfig((*range(rank - 2), rank - 1, rank - 2))
    return instead(
        node,
        "simplified {} merged axes around an exchange",
        Transpose(node.name, flat.inputs[:1], node.outputs, config),
    )


def _leading(a: Shape, c: Shape) -> bool:
    """Whether the leading axes are certain to be restored: all are known, or all but one."""
    lead = list(zip(a[:-2], c[:-2], strict=True))
    return sum(not _same(x, y) for x, y in lead) <= 1


def _sure(shape: Shape) -> bool:
    return None not in shape


def _same(x: Dim, y: Dim) -> bool:
    return x is not None and x == y
