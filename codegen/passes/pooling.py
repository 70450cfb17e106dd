"""The masked mean over a sequence, which ends many sentence models, becomes `F.masked_mean(x, mask)`.

Exporters expand the mask to the shape of x, multiply, sum both over the length, and divide by the sum of the mask, kept
above a small number.
"""

from __future__ import annotations

from typing import Any

from emberlet.dtypes import DType

from ..ir.argument import Argument
from ..ir.graph import Node
from ..ir.types import TensorType
from ..ops.arithmetic import Clip, Div, Max, Mul
from ..ops.constant import Cast
from ..ops.expansion import Expand
from ..ops.internal import MaskedMean, MaskedMeanConfig
from ..ops.movement import Unsqueeze
from ..ops.reduction import ReduceSum
from .idempotent import bounds
from .rewriting import Change, Walk, instead, number, shape_of

SAID = "recognized {} masked means"


def step(node: Node[Any], walk: Walk) -> Change | None:
    if not isinstance(node, Div) or not node.dtype(0).is_float:
        return None
    count = at_least(node.inputs[1], walk)
    total = over_length(node.inputs[0], walk)
    product = walk.made_by(total, Mul) if total is not None else None
    summed = over_length(count[0], walk) if count is not None else None
    if count is None or product is None or summed is None:
        return None
    if not all(map(walk.alone, (*node.inputs, count[0]))):
        return None
    for x, given in (product.inputs, product.inputs[::-1]):
        shape = shape_of(x)
        if shape is None or None in shape or shape != shape_of(product.outputs[0]):
            continue
        if (shape[0], shape[2]) != shape_of(node.outputs[0]) or dtype_of(x) is not node.dtype(0):
            continue
        mask = selecting(given, x, walk)
        other = selecting(summed, x, walk)
        if mask is not None and other is not None and mask.name == other.name:
            made = MaskedMean(node.name, (x, mask), node.outputs, MaskedMeanConfig(count[1]))
            return instead(node, SAID, made)
    return None


def at_least(a: Argument, walk: Walk) -> tuple[Argument, float] | None:
    """(x, a positive number) of the larger of the two."""
    node = walk.producer(a)
    if isinstance(node, Clip):
        limits = bounds(node)
        found = None if limits is None or limits[1] != float("inf") else (node.inputs[0], limits[0])
    elif isinstance(node, Max) and len(node.inputs) == 2:
        pairs = [(node.inputs[1 - i], number(node.inputs[i])) for i in (0, 1)]
        found = next(((x, n) for x, n in pairs if n is not None), None)
    else:
        return None
    return None if found is None or found[1] <= 0 else (found[0], float(f"{found[1]:.7g}"))


def over_length(a: Argument, walk: Walk) -> Argument | None:
    """The x (batch, length, features) of which a value is the sum over the length."""
    node = walk.made_by(a, ReduceSum)
    shape = shape_of(node.inputs[0]) if node is not None else None
    if node is None or shape is None or len(shape) != 3 or node.config.keepdims or node.axes() != (1,):
        return None
    return node.inputs[0]


def selecting(a: Argument, x: Argument, walk: Walk) -> Argument | None:
    """The mask (batch, length) that a factor of x (batch, length, features) repeats for each feature."""
    shape, dtype = shape_of(x), dtype_of(x)
    cast = wide = False
    while True:
        node, held = walk.producer(a), shape_of(a)
        if isinstance(node, Cast) and not cast and node.config.dtype is dtype:
            cast = True
        elif shape is None or held is None or (held == shape[:2] and not isinstance(node, Unsqueeze)):
            return a if wide and held is not None and (cast or dtype_of(a) is dtype) else None
        elif isinstance(node, Unsqueeze) and len(held) == 3 and node.axes() in ((2,), (-1,)):
            wide = True
        elif not isinstance(node, Expand) or len(held) != 3 or len(shape_of(node.inputs[0]) or ()) != 3:
            return None
        a = node.inputs[0]


def dtype_of(a: Argument) -> DType | None:
    return a.type.dtype if isinstance(a.type, TensorType) else None
