"""Rows of a constant table of integers, each with a scale or several, that are dequantized after they are looked up:
the table is dequantized before, which other passes and board builds know, and make a table of few bits of.

The scales, and zero points, are looked up by the same indices. What multiplies is DequantizeLinear with blocks, or
(integers - zero points) * scales, cast to float32.
"""

from __future__ import annotations

from typing import Any

from emberlet import dtypes

from ..ir.argument import Argument
from ..ir.graph import Node
from ..ops.arithmetic import Mul, Sub
from ..ops.constant import Cast
from ..ops.indexing import Gather
from ..ops.quantization import DequantizeLinear, QuantizeConfig
from ..records import replace
from .quantized import rows_of
from .rewriting import Change, Walk, instead, interim

SAID = "dequantized {} tables before their rows are looked up"


def step(node: Node[Any], walk: Walk) -> Change | None:
    if isinstance(node, DequantizeLinear):
        rank = node.tensor(0).rank
        if not node.config.block_size or rank is None or node.config.axis not in (-1, rank - 1):
            return None
        return looked_up(node, node.inputs, node.config.block_size, walk)
    return looked_up(node, multiplied(node, walk), 0, walk) if isinstance(node, Mul) else None


def looked_up(node: Node[Any], parts: tuple[Argument, ...], block: int, walk: Walk) -> Change | None:
    """A look-up of what is dequantized. parts: the rows of integers, scales and zero points; block: how many numbers of
    a row share a scale, 0 for all."""
    given = [walk.made_by(a, Gather) for a in parts]
    found = [g for g in given if g is not None]
    if not found or len(found) < len(given) or not walk.alone(parts[0]):
        return None
    first = found[0]
    table = first.value(0)
    if table is None or len(table.shape) != 2:
        return None
    if any(g.config != first.config or g.inputs[1].name != first.inputs[1].name for g in found):
        return None
    whole = interim(walk.fresh(f"{node.name}::table"))
    config = QuantizeConfig(1, block or table.shape[1], None, True)
    dequantized = DequantizeLinear(whole.name, tuple([g.inputs[0] for g in found]), (whole,), config)
    if rows_of(node, first, dequantized) is None:
        return None
    return instead(node, SAID, dequantized, replace(first, name=node.name, inputs=(whole, first.inputs[1]),
                                                    outputs=node.outputs))  # fmt: skip


def multiplied(node: Mul, walk: Walk) -> tuple[Argument, ...]:
    """The integers, scales and zero points of (integers - zero points) * scales; none of any other product."""
    for a, scale in (node.inputs, node.inputs[::-1]):
        less = walk.made_by(a, Sub)
        casts = [walk.made_by(x, Cast) for x in (less.inputs if less is not None else (a,))]
        whole = [c.inputs[0] for c in casts if c is not None and c.config.dtype is dtypes.float32]
        if len(whole) == len(casts):
            return (whole[0], scale, *whole[1:])
    return ()
