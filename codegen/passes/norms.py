"""Normalizations that a file writes as means, roots and quotients become layers again."""

from __future__ import annotations

from typing import Any

from ..ir.argument import Argument
from ..ir.graph import Node
from ..ir.types import TensorType
from ..ir.value import Value
from ..ops.arithmetic import Add, Mul
from ..ops.base import reshaped
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
from .patterns import Call, Named, Number, Pattern, sqrt
from .rewriting import Change, Walk, instead, same_shape, shape_of, value_of, with_constant

x, epsilon = Named("x"), Number("epsilon")


def mean(a: Pattern) -> Pattern:
    """The mean over the last axis, kept with size 1."""
    return Call(ReduceMean, a, is_over_last)


def is_over_last(node: ReduceMean) -> bool:
    rank = node.tensor(0).rank
    return node.config.keepdims and rank is not None and node.axes() == (rank - 1,)


# (formula, the operator that computes it with a weight, what to say)
TABLE: tuple[tuple[Pattern, type[Node[Any]], str], ...] = (
    (
        (x - mean(x)) / sqrt(mean((x - mean(x)) ** 2) + epsilon),
        LayerNormalization,
        "recognized {} layer normalizations written as parts",
    ),
    (
        x / sqrt(mean(x**2) + epsilon),
        RMSNormalization,
        "recognized {} root mean square normalizations written as parts",
    ),
)


def step(node: Node[Any], walk: Walk) -> Change | None:
    if isinstance(node, Mul):
        return weighted(node, walk)
    if isinstance(node, Add):
        return biased(node, walk) or grouped(node, walk)
    return None


def weighted(node: Mul, walk: Walk) -> Change | None:
    """A standardized tensor times a weight per element of the last axis."""
    for i in (0, 1):
        weight, given = node.inputs[1 - i], node.inputs[i]
        if weight.value is None or (not same_shape(given, node.outputs[0]) and given.type != node.outputs[0].type):
            continue
        scale = along_last(weight.value, given)
        if scale is None or not walk.alone(given):
            continue
        for formula, kind, said in TABLE:
            for found in formula.matches(given, walk, {}):
                inputs = (found["x"], value_of(weight.name, scale))
                config = NormConfig(-1, float(f"{found['epsilon']:.6g}"))
                return instead(node, said, kind(node.name, inputs, node.outputs, config))
    return None


def biased(node: Add, walk: Walk) -> Change | None:
    """A layer normalization without bias, and a bias added to it."""
    for norm, given, bias in with_constant(node, LayerNormalization, walk):
        shift = along_last(bias, norm.inputs[0])
        if shift is not None and norm.axes() == 1 and not norm.has(2):
            inputs = (*norm.inputs[:2], value_of(given.name, shift))
            made = replace(norm, name=node.name, inputs=inputs, outputs=node.outputs)
            return instead(node, "joined {} layer normalizations with their bias", made)
    return None


def grouped(node: Add, walk: Walk) -> Change | None:
    """Groups of channels, standardized as channels of a reshaped tensor, then a weight and a bias per channel."""
    for product, given, bias in with_constant(node, Mul, walk):
        for back, other, weight in with_constant(product, Reshape, walk):
            norm = walk.made_by(back.inputs[0], InstanceNormalization)
            cut = walk.made_by(norm.inputs[0], Reshape) if norm is not None else None
            if norm is None or cut is None or [uniform(norm.value(k)) for k in (1, 2)] != [1.0, 0.0]:
                continue
            out, shape, merged = node.outputs[0].type, shape_of(cut.inputs[0]), shape_of(cut.outputs[0])
            if shape is None or merged is None or cut.type(0) != out or len(merged) != 3 or merged[0] != shape[0]:
                continue
            channels, groups = shape[1], merged[1]
            if not isinstance(groups, int) or not isinstance(channels, int) or channels % groups:
                continue
            gain, shift = [per_channel(*c, channels, len(shape)) for c in ((other, weight), (given, bias))]
            if gain is None or shift is None:
                continue
            config = GroupNormalizationConfig(groups, norm.config.epsilon, False)
            made = GroupNormalization(node.name, (cut.inputs[0], gain, shift), node.outputs, config)
            return instead(node, "recognized {} group normalizations written as parts", made)
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


def per_channel(given: Argument, value: Value, channels: int, rank: int) -> Argument | None:
    """A constant as one number per channel of (n, channels, …), if it has that form."""
    shape = (1,) * (rank - len(value.shape)) + value.shape
    wanted = (1, channels, *(1,) * (rank - 2))
    return value_of(given.name, reshaped(value, (channels,))) if shape == wanted else None


def uniform(value: Value | None) -> float | None:
    """The number that all elements equal, if there is one."""
    if value is None or value.size > 4096 or not value.size:
        return None
    items = set(value.list())
    item = items.pop()
    return None if items or isinstance(item, str) else float(item)
