"""Normalizations that a file writes as means, roots and quotients become layers again."""

from __future__ import annotations

from typing import Any

from ..ir.argument import Argument
from ..ir.graph import Graph, Node
from ..ir.types import TensorType
from ..ir.value import Value
from ..ops.arithmetic import Add, Div, Mul, Pow, Sub
from ..ops.base import reshaped
from ..ops.elementwise import Reciprocal, Sqrt
from ..ops.movement import Reshape
from ..ops.normalization import (
    GroupNormalization,
    GroupNormalizationConfig,
    InstanceNormalization,
    LayerNormalization,
    NormConfig,
    RMSNormalization,
)
from ..ops.reduction import ReduceMean
from ..records import replace
from .rewriting import Change, Rewrite, Walk, instead, number, rewrite, same_shape, value_of


def run(graph: Graph) -> Rewrite:
    return rewrite(graph, step)


def step(node: Node[Any], walk: Walk) -> Change | None:
    if isinstance(node, Mul):
        return weighted(node, walk)
    if isinstance(node, Add):
        return biased(node, walk) or grouped(node, walk)
    return None


def weighted(node: Mul, walk: Walk) -> Change | None:
    """A standardized tensor times a weight per element of the last axis."""
    for i in (0, 1):
        weight, x = node.inputs[1 - i], node.inputs[i]
        if weight.value is None or (not same_shape(x, node.outputs[0]) and x.type != node.outputs[0].type):
            continue
        scale = along_last(weight.value, x)
        if scale is None or not walk.alone(x):
            continue
        given = value_of(weight.name, scale)
        found = centered(x, walk)
        if found is not None:
            made: Node[Any] = LayerNormalization(node.name, (found[0], given), node.outputs, NormConfig(-1, found[1]))
            return instead(node, "recognized {} layer normalizations written as parts", made)
        found = scaled_by_root(x, walk)
        if found is not None:
            made = RMSNormalization(node.name, (found[0], given), node.outputs, NormConfig(-1, found[1]))
            return instead(node, "recognized {} root mean square normalizations written as parts", made)
    return None


def biased(node: Add, walk: Walk) -> Change | None:
    """A layer normalization without bias, and a bias added to it."""
    for i in (0, 1):
        norm, bias = walk.made_by(node.inputs[i], LayerNormalization), node.inputs[1 - i]
        if norm is None or norm.has(2) or not walk.alone(node.inputs[i]) or bias.value is None:
            continue
        shift = along_last(bias.value, norm.inputs[0])
        if shift is not None and norm.axes() == 1:
            made = replace(
                norm,
                name=node.name,
                inputs=(*norm.inputs[:2], value_of(bias.name, shift)),
                outputs=node.outputs,
            )
            return instead(node, "joined {} layer normalizations with their bias", made)
    return None


def grouped(node: Add, walk: Walk) -> Change | None:
    """Groups of channels, standardized as channels of a reshaped tensor, then a weight and a bias per channel."""
    for i in (0, 1):
        product, bias = walk.made_by(node.inputs[i], Mul), node.value(1 - i)
        if product is None or bias is None or not walk.alone(node.inputs[i]):
            continue
        for j in (0, 1):
            back, weight = walk.made_by(product.inputs[j], Reshape), product.value(1 - j)
            norm = walk.made_by(back.inputs[0], InstanceNormalization) if back is not None else None
            cut = walk.made_by(norm.inputs[0], Reshape) if norm is not None else None
            if norm is None or cut is None or weight is None:
                continue
            ones = [uniform(norm.value(k)) for k in (1, 2)]
            x = cut.inputs[0]
            t, merged = x.type, cut.outputs[0].type
            if ones != [1.0, 0.0] or not isinstance(t, TensorType) or not isinstance(merged, TensorType):
                continue
            if t.shape is None or merged.shape is None or t != node.outputs[0].type or len(merged.shape) != 3:
                continue
            channels, groups = t.shape[1], merged.shape[1]
            if merged.shape[0] != t.shape[0] or not isinstance(groups, int) or not isinstance(channels, int):
                continue
            values = [per_channel(v, channels, len(t.shape)) for v in (weight, bias)]
            if values[0] is None or values[1] is None or channels % groups:
                continue
            names = (product.inputs[1 - j], node.inputs[1 - i])
            given = [value_of(a.name, v) for a, v in zip(names, values, strict=True) if v is not None]
            config = GroupNormalizationConfig(groups, norm.config.epsilon, False)
            made = GroupNormalization(node.name, (x, *given), node.outputs, config)
            return instead(node, "recognized {} group normalizations written as parts", made)
    return None


def centered(a: Argument, walk: Walk) -> tuple[Argument, float] | None:
    """(x, epsilon) of (x - mean) / sqrt(variance + epsilon) over the last axis."""
    parts = quotient(a, walk)
    if parts is None:
        return None
    difference, epsilon, mean = parts
    sub = walk.made_by(difference, Sub)
    squares = averaged(mean, walk)
    if sub is None or squares is None:
        return None
    other = squared(squares, walk)
    again = walk.made_by(other, Sub) if other is not None else None
    if again is None or [x.name for x in again.inputs] != [x.name for x in sub.inputs]:
        return None
    x = averaged(sub.inputs[1], walk)
    return (x, epsilon) if x is not None and x.name == sub.inputs[0].name else None


def scaled_by_root(a: Argument, walk: Walk) -> tuple[Argument, float] | None:
    """(x, epsilon) of x / sqrt(mean of x² + epsilon) over the last axis."""
    parts = quotient(a, walk)
    if parts is None:
        return None
    x, epsilon, mean = parts
    squares = averaged(mean, walk)
    found = squared(squares, walk) if squares is not None else None
    return (x, epsilon) if found is not None and found.name == x.name else None


def quotient(a: Argument, walk: Walk) -> tuple[Argument, float, Argument] | None:
    """(numerator, epsilon, mean) of numerator / sqrt(mean + epsilon), or times the reciprocal of the root."""
    node = walk.producer(a)
    if isinstance(node, Div):
        pairs = [(node.inputs[0], node.inputs[1])]
    elif isinstance(node, Mul):
        pairs = []
        for i in (0, 1):
            inverse = walk.made_by(node.inputs[i], Reciprocal)
            if inverse is not None:
                pairs.append((node.inputs[1 - i], inverse.inputs[0]))
            fraction = walk.made_by(node.inputs[i], Div)
            if fraction is not None and number(fraction.inputs[0]) == 1.0:
                pairs.append((node.inputs[1 - i], fraction.inputs[1]))
            power = walk.made_by(node.inputs[i], Pow)
            if power is not None and number(power.inputs[1]) == -0.5:
                found = summed(power.inputs[0], walk)
                return None if found is None else (node.inputs[1 - i], *found)
    else:
        return None
    for numerator, denominator in pairs:
        root = walk.made_by(denominator, Sqrt)
        power = walk.made_by(denominator, Pow)
        if power is not None and number(power.inputs[1]) == 0.5:
            found = summed(power.inputs[0], walk)
        else:
            found = summed(root.inputs[0], walk) if root is not None else None
        if found is not None:
            return (numerator, *found)
    return None


def summed(a: Argument, walk: Walk) -> tuple[float, Argument] | None:
    """(epsilon, mean) of mean + epsilon."""
    node = walk.made_by(a, Add)
    for i in (0, 1) if node is not None else ():
        epsilon = number(node.inputs[i]) if node is not None else None
        if epsilon is not None and node is not None:
            return float(f"{epsilon:.6g}"), node.inputs[1 - i]
    return None


def averaged(a: Argument, walk: Walk) -> Argument | None:
    """The x of which a value is the mean over the last axis, kept with size 1."""
    node = walk.made_by(a, ReduceMean)
    if node is None or not node.config.keepdims:
        return None
    rank = node.tensor(0).rank
    return node.inputs[0] if rank is not None and node.axes() == (rank - 1,) else None


def squared(a: Argument, walk: Walk) -> Argument | None:
    """The x of which a value is the square."""
    node = walk.producer(a)
    if isinstance(node, Pow) and number(node.inputs[1]) == 2.0:
        return node.inputs[0]
    if isinstance(node, Mul) and node.inputs[0].name == node.inputs[1].name and node.inputs[0].value is None:
        return node.inputs[0]
    return None


def along_last(value: Value, x: Argument) -> Value | None:
    """A constant as one number per element of x's last axis, if it has that form."""
    t = x.type
    if not isinstance(t, TensorType) or not t.shape or not isinstance(t.shape[-1], int) or t.shape[-1] < 2:
        return None
    width = t.shape[-1]
    if value.size != width or value.shape[-1:] != (width,) or len(value.shape) > len(t.shape):
        return None
    return reshaped(value, (width,)) if value.dtype is t.dtype else None


def per_channel(value: Value, channels: int, rank: int) -> Value | None:
    """A constant as one number per channel of (n, channels, …), if it has that form."""
    shape = (1,) * (rank - len(value.shape)) + value.shape
    wanted = (1, channels, *(1,) * (rank - 2))
    return reshaped(value, (channels,)) if shape == wanted else None


def uniform(value: Value | None) -> float | None:
    """The number that all elements equal, if there is one."""
    if value is None or value.size > 4096 or not value.size:
        return None
    items = set(value.list())
    item = items.pop()
    return None if items or isinstance(item, str) else float(item)
