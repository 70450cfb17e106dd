"""Attention of several heads on (batch, length, heads * size): the axes that are split and exchanged around it become
`num_heads`.

Every multi-head attention has this form: its layers compute and take the heads of a token side by side.
"""

from __future__ import annotations

from typing import Any

from ...ir.argument import Argument
from ...ir.graph import Node
from ...ir.types import Dim
from ...ops.attention import Attention, RotaryEmbedding
from ...ops.movement import Reshape, Transpose, TransposeConfig
from ...records import replace
from ..rewriting import Change, Walk, instead, interim, shape_of

SAID = "kept the heads of {} attentions side by side"
SPLIT: dict[tuple[int, ...], bool] = {(0, 2, 1, 3): False, (1, 2, 0, 3): True}
"""How (batch, length, heads, size) becomes (batch, heads, length, size), and whether the length comes first before."""
JOINED: dict[tuple[int, ...], bool] = {(0, 2, 1, 3): False, (2, 0, 1, 3): True}


def step(node: Node[Any], walk: Walk) -> Change | None:
    if not isinstance(node, Reshape) or not walk.alone(node.inputs[0]):
        return None
    turned = walk.made_by(node.inputs[0], Transpose)
    if turned is None or turned.perm() not in JOINED or not walk.alone(turned.inputs[0]):
        return None
    attention = walk.made_by(turned.inputs[0], Attention)
    if attention is None or attention.config.heads is not None or attention.tensor(0).rank != 4:
        return None
    if attention.has(4) or not walk.only_output(attention):
        return None
    after, out = shape_of(turned.outputs[0]), shape_of(node.outputs[0])
    if after is None or out is None or len(out) != 3 or not _split(out, after):
        return None
    nodes: list[Node[Any]] = []
    query, key, value = (beside(attention.inputs[i], walk, nodes) for i in range(3))
    if query is None or key is None or value is None or key[1] != value[1]:
        return None
    config = replace(attention.config, heads=query[1], kv_heads=key[1])
    inputs = (query[0], key[0], value[0], *attention.inputs[3:])
    if not JOINED[turned.perm()]:
        return instead(node, SAID, *nodes, Attention(node.name, inputs, node.outputs, config))
    made = walk.fresh(f"{node.name}::attended")
    nodes.append(Attention(made, inputs, (interim(made),), config))
    return instead(node, SAID, *nodes, Transpose(node.name, (interim(made),), node.outputs, TransposeConfig((1, 0, 2))))


def beside(a: Argument, walk: Walk, nodes: list[Node[Any]]) -> tuple[Argument, int] | None:
    """A value (batch, heads, length, size) as it was, (batch, length, heads * size), and how many heads there are."""
    node = walk.producer(a)
    if not walk.alone(a):
        return None
    if isinstance(node, RotaryEmbedding):
        if node.has(3) or node.config.heads:
            return None
        inner = beside(node.inputs[0], walk, nodes)
        if inner is None:
            return None
        name = walk.fresh(f"{node.name}::turned")
        config = replace(node.config, heads=inner[1] if node.config.size else 0)
        nodes.append(RotaryEmbedding(name, (inner[0], *node.inputs[1:]), (interim(name),), config))
        return nodes[-1].outputs[0], inner[1]
    if not isinstance(node, Transpose) or node.perm() not in SPLIT or not walk.alone(node.inputs[0]):
        return None
    split = walk.made_by(node.inputs[0], Reshape)
    if split is None:
        return None
    before, after = shape_of(split.inputs[0]), shape_of(split.outputs[0])
    if before is None or after is None or len(before) != 3 or not _split(before, after):
        return None
    x = split.inputs[0]
    if SPLIT[node.perm()]:
        name = walk.fresh(f"{split.name}::first")
        nodes.append(Transpose(name, (x,), (interim(name),), TransposeConfig((1, 0, 2))))
        x = nodes[-1].outputs[0]
    heads = after[2]
    return (x, heads) if isinstance(heads, int) else None


def _split(whole: tuple[Dim, ...], parts: tuple[Dim, ...]) -> bool:
    """Whether (a, b, heads * size) and (a, b, heads, size), of as many elements, are certain to be one layout. Two
    equal sizes and the number of elements determine the third, however it is written."""
    if None in whole or None in parts or not (whole[0] == parts[0] or whole[1] == parts[1]):
        return False
    heads, size = parts[2:]
    return isinstance(heads, int) and isinstance(size, int) and whole[2] == heads * size
