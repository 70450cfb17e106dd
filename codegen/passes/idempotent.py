"""Removes redundant operations: the second Relu of two, both Neg of two."""

from __future__ import annotations

from typing import Any

from ..ir.graph import Node
from ..ops.activations import HardSigmoid
from ..ops.arithmetic import Clip
from ..ops.constant import Cast
from ..ops.elementwise import Abs, Ceil, Exp, Floor, Neg, Not, Relu, Round, Sigmoid, Sign, Softplus, Sqrt
from ..ops.reduction import ReduceL1, ReduceL2, ReduceSumSquare
from ..ops.softmax import Softmax
from .rewriting import Change, Walk, instead, number, replaced_by

TWICE_IS_ONCE = (Abs, Ceil, Floor, Relu, Round, Sign)
WHOLE = (Ceil, Floor, Round, Sign)
NEVER_NEGATIVE = (
    Abs, Exp, HardSigmoid, ReduceL1, ReduceL2, ReduceSumSquare, Relu, Sigmoid, Softmax, Softplus, Sqrt,
)  # fmt: skip


def step(node: Node[Any], walk: Walk) -> Change | None:
    before = walk.producer(node.inputs[0]) if node.inputs else None
    if before is None:
        return None
    if isinstance(node, TWICE_IS_ONCE) and (
        type(before) is type(node)
        or (isinstance(node, Ceil | Floor | Round) and isinstance(before, WHOLE))
        or (isinstance(node, Relu | Abs) and isinstance(before, NEVER_NEGATIVE))
    ):
        return replaced_by(node, "removed {} operations that change nothing", node.inputs[0])
    if (isinstance(node, Neg) and isinstance(before, Neg)) or (isinstance(node, Not) and isinstance(before, Not)):
        return replaced_by(node, "removed {} pairs that undo each other", before.inputs[0])
    if isinstance(node, Abs) and isinstance(before, Neg):
        positive = Abs(node.name, before.inputs, node.outputs, None)
        return instead(node, "removed {} signs in front of an absolute value", positive)
    if isinstance(node, Cast) and isinstance(before, Cast) and _holds(before):
        if node.config.dtype is before.dtype(0):
            return replaced_by(node, "removed {} pairs that undo each other", before.inputs[0])
        return instead(node, "joined {} pairs of casts", Cast(node.name, before.inputs, node.outputs, node.config))
    if isinstance(node, Clip | Relu) and isinstance(before, Clip) and _inside(before, node):
        return replaced_by(node, "removed {} operations that change nothing", node.inputs[0])
    return None


def _holds(cast: Cast) -> bool:
    """Whether a cast preserves every value."""
    a, b = cast.dtype(0), cast.config.dtype
    if a.is_bool:
        return b.is_float or b.is_integer
    if a.is_integer and b.is_integer:
        signs = a.kind == b.kind or (a.kind == "uint" and b.kind == "int")
        return signs and (b.bits > a.bits or (a.kind == b.kind and b.bits == a.bits))
    if a.is_float and b.is_float:
        return b.bits > a.bits and a.bits >= 16 and {a.name, b.name} != {"float16", "bfloat16"}
    return a.is_integer and b.is_float and a.bits < {16: 11, 32: 24, 64: 53}.get(b.bits, 0) and b.name != "bfloat16"


def bounds(node: Clip | Relu) -> tuple[float, float] | None:
    """(low, high) of a node that clamps its input; None if they are unknown."""
    if isinstance(node, Relu):
        return 0.0, float("inf")
    found = []
    for i, given, limit in ((1, node.config.low, float("-inf")), (2, node.config.high, float("inf"))):
        if node.has(i):
            n = number(node.inputs[i])
            if n is None:
                return None
            found.append(n)
        else:
            found.append(limit if given is None else given)
    return found[0], found[1]


def _inside(first: Clip, second: Clip | Relu) -> bool:
    """Whether the range of the first lies within that of the second."""
    a, b = bounds(first), bounds(second)
    return a is not None and b is not None and b[0] <= a[0] <= a[1] <= b[1]
