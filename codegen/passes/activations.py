"""Activations that a file writes as products and sums become calls by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from ..ir.choices import GeluApproximation
from ..ir.graph import Node
from ..ir.types import TensorType
from ..ops.activations import AlphaConfig, Gelu, GeluConfig, HardSigmoid, Swish
from ..ops.arithmetic import Clip, Div, Mul
from ..ops.elementwise import Erf, HardSwish, Mish, Sigmoid, Softplus, Tanh
from .idempotent import bounds
from .patterns import Call, Found, Named, Number, Pattern, Product, close, product
from .rewriting import Change, Walk, instead

SAID = "recognized {} activations written as parts"

x, alpha = Named("x"), Number("alpha")
erf, tanh, sigmoid, softplus = (partial(Call, kind) for kind in (Erf, Tanh, Sigmoid, Softplus))


def clip_to_6(a: Pattern) -> Pattern:
    return Call(Clip, a, lambda node: bounds(node) == (0.0, 6.0))


def hard_sigmoid(a: Pattern) -> Pattern:
    return Call(HardSigmoid, a, lambda node: close(node.config.alpha, 1 / 6) and close(node.config.beta, 0.5))


# (formula, the operator that computes it, its config)
TABLE: tuple[tuple[Product, type[Node[Any]], Callable[[Found], Any]], ...] = (
    (0.5 * x * (1 + erf(math.sqrt(0.5) * x)), Gelu, lambda found: GeluConfig(GeluApproximation.NONE)),
    (
        0.5 * x * (1 + tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        Gelu,
        lambda found: GeluConfig(GeluApproximation.TANH),
    ),
    (x * sigmoid(alpha * x), Swish, lambda found: AlphaConfig(float(f"{found['alpha']:.7g}"))),
    (x * clip_to_6(x + 3) / 6, HardSwish, lambda found: None),
    (x * hard_sigmoid(x), HardSwish, lambda found: None),
    (x * tanh(softplus(x)), Mish, lambda found: None),
)


def step(node: Node[Any], walk: Walk) -> Change | None:
    out = node.outputs[0]
    if not isinstance(node, Mul | Div) or not node.dtype(0).is_float or not isinstance(out.type, TensorType):
        return None
    parts = product(node, walk)
    if parts is None:
        return None
    for formula, kind, config in TABLE:
        for found in formula.made_of(parts, walk, {}):
            if found["x"].type == out.type:
                return instead(node, SAID, kind(node.name, (found["x"],), node.outputs, config(found)))
    return None
