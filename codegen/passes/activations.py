"""Activations that a file writes as products and sums become calls by name."""

from __future__ import annotations

import math
from typing import Any

from ..ir.argument import Argument
from ..ir.choices import GeluApproximation
from ..ir.graph import Graph, Node
from ..ir.types import TensorType
from ..ops.activations import AlphaConfig, Gelu, GeluConfig, HardSigmoid, Swish
from ..ops.arithmetic import Add, Clip, Div, Mul, Pow
from ..ops.elementwise import Erf, HardSwish, Mish, Sigmoid, Softplus, Tanh
from .idempotent import bounds
from .rewriting import Change, Rewrite, Walk, instead, number, rewrite

SAID = "recognized {} activations written as parts"


def run(graph: Graph) -> Rewrite:
    return rewrite(graph, step)


def step(node: Node[Any], walk: Walk) -> Change | None:
    if not isinstance(node, Mul | Div) or not node.dtype(0).is_float:
        return None
    constant, factors = product(node, walk)
    if len(factors) != 2:
        return None
    for x, other in (factors, factors[::-1]):
        if x.type != node.outputs[0].type or not isinstance(x.type, TensorType):
            continue
        made = named(node, constant, x, walk.producer(other), walk)
        if made is not None:
            return instead(node, SAID, made)
    return None


def product(node: Node[Any], walk: Walk) -> tuple[float, list[Argument]]:
    """(the product of the constants, the other factors) of a value, through nested products."""
    constant = 1.0
    factors: list[Argument] = []
    for i, a in enumerate(node.inputs):
        n = number(a)
        inner = walk.producer(a)
        if n is not None and (n or isinstance(node, Mul)):
            constant = constant * n if isinstance(node, Mul) or i == 0 else constant / n
        elif isinstance(node, Div) and i == 1:
            return 0.0, []
        elif isinstance(inner, Mul | Div) and walk.alone(a):
            more, rest = product(inner, walk)
            constant *= more
            factors += rest
        else:
            factors.append(a)
    return constant, factors


def close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-4)


def named(node: Node[Any], constant: float, x: Argument, other: Node[Any] | None, walk: Walk) -> Node[Any] | None:
    """The activation equal to constant · x · other, or None."""
    match other:
        case Add() if close(constant, 0.5):
            return _gelu(node, x, other, walk)
        case Clip() if close(constant, 1 / 6) and bounds(other) == (0.0, 6.0):
            shifted = walk.made_by(other.inputs[0], Add)
            for i in (0, 1) if shifted is not None else ():
                if shifted is not None and number(shifted.inputs[i]) == 3.0 and shifted.inputs[1 - i].name == x.name:
                    return HardSwish(node.name, (x,), node.outputs, None)
        case Sigmoid() if constant == 1.0:
            return _swish(node, x, other, walk)
        case HardSigmoid() if constant == 1.0 and other.inputs[0].name == x.name:
            if close(other.config.alpha, 1 / 6) and close(other.config.beta, 0.5):
                return HardSwish(node.name, (x,), node.outputs, None)
        case Tanh() if constant == 1.0:
            soft = walk.made_by(other.inputs[0], Softplus)
            if soft is not None and soft.inputs[0].name == x.name:
                return Mish(node.name, (x,), node.outputs, None)
    return None


def _gelu(node: Node[Any], x: Argument, other: Add, walk: Walk) -> Node[Any] | None:
    for i in (0, 1):
        inner = walk.producer(other.inputs[1 - i])
        if number(other.inputs[i]) != 1.0:
            continue
        if isinstance(inner, Erf) and scaled(inner.inputs[0], x, math.sqrt(0.5), walk):
            return Gelu(node.name, (x,), node.outputs, GeluConfig(GeluApproximation.NONE))
        if isinstance(inner, Tanh) and is_tanh_gelu_argument(inner.inputs[0], x, walk):
            return Gelu(node.name, (x,), node.outputs, GeluConfig(GeluApproximation.TANH))
    return None


def _swish(node: Node[Any], x: Argument, other: Sigmoid, walk: Walk) -> Node[Any] | None:
    alpha, inner_factors = 1.0, [other.inputs[0]]
    before = walk.producer(other.inputs[0])
    if other.inputs[0].name != x.name and isinstance(before, Mul):
        alpha, inner_factors = product(before, walk)
    if len(inner_factors) == 1 and inner_factors[0].name == x.name:
        return Swish(node.name, (x,), node.outputs, AlphaConfig(float(f"{alpha:.7g}")))
    return None


def scaled(a: Argument, x: Argument, factor: float, walk: Walk) -> bool:
    """Whether a value is x times a factor."""
    node = walk.producer(a)
    if not isinstance(node, Mul | Div):
        return False
    constant, factors = product(node, walk)
    return len(factors) == 1 and factors[0].name == x.name and close(constant, factor)


def is_tanh_gelu_argument(a: Argument, x: Argument, walk: Walk) -> bool:
    """Whether a value is sqrt(2 / pi) · (x + 0.044715 x³)."""
    node = walk.producer(a)
    if not isinstance(node, Mul):
        return False
    constant, factors = product(node, walk)
    if len(factors) != 1 or not close(constant, math.sqrt(2 / math.pi)):
        return False
    total = walk.made_by(factors[0], Add)
    for i in (0, 1) if total is not None else ():
        if total is None or total.inputs[i].name != x.name:
            continue
        cube = walk.producer(total.inputs[1 - i])
        if not isinstance(cube, Mul):
            continue
        weight, parts = product(cube, walk)
        power = walk.made_by(parts[0], Pow) if len(parts) == 1 else None
        cubed = power is not None and power.inputs[0].name == x.name and number(power.inputs[1]) == 3.0
        if close(weight, 0.044715) and (cubed or [p.name for p in parts] == [x.name] * 3):
            return True
    return False
