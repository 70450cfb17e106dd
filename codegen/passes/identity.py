"""Identity: removes nodes that return their first input unchanged."""

from __future__ import annotations

from typing import Any

from ..ir.graph import Node
from ..ir.types import TensorType
from ..ops.arithmetic import Add, Div, Max, Mean, Min, Mul, Pow, Sub, Sum
from ..ops.constant import Cast, CastConfig, CastLike
from ..ops.expansion import Expand, Pad, Tile
from ..ops.joining import Concat, Split
from ..ops.movement import Flatten, Identity, Reshape, Squeeze, Transpose, Unsqueeze
from ..ops.normalization import Dropout
from ..ops.slicing import Slice
from .rewriting import Change, Walk, instead, number, replaced_by, same_shape

SAID = "removed {} nodes that return their input"


def step(node: Node[Any], walk: Walk) -> Change | None:
    if isinstance(node, CastLike) and node.dtype(0) is not node.dtype(1):
        config = CastConfig(node.dtype(1), node.config.saturate, node.config.round_mode)
        cast = Cast(node.name, node.inputs[:1], node.outputs, config)
        return instead(node, "replaced {} casts to a tensor's type by plain casts", cast)
    i = handed_on(node)
    if i is None or not walk.only_output(node):
        return None
    given, out = node.inputs[i], node.outputs[0]
    if isinstance(out.type, TensorType) and not isinstance(given.type, TensorType) and given.value is None:
        return None  # a Python number that becomes a tensor here
    if given.value is not None and given.type != out.type and not isinstance(node, Identity):
        return None
    return replaced_by(node, SAID, given)


# type -> the number that changes nothing, and the inputs where it may stand
_NEUTRAL_NUMBERS: dict[type, tuple[float, tuple[int, ...]]] = {
    Add: (0.0, (0, 1)),
    Sub: (0.0, (1,)),
    Mul: (1.0, (0, 1)),
    Div: (1.0, (1,)),
    Pow: (1.0, (1,)),
}


def handed_on(node: Node[Any]) -> int | None:
    """The index of the input that equals the node's first output, or None."""
    match node:
        case Identity() | CastLike():
            return 0
        case Cast():
            return 0 if node.type(0) == out_type(node) else None
        case Dropout():
            return None if node.trains() else 0
        case Concat() | Max() | Min() | Sum() | Mean():
            return 0 if len(node.inputs) == 1 else None
        case Split():
            return 0 if len(node.outputs) == 1 else None
        case Transpose():
            perm = node.config.perm
            return 0 if perm is not None and perm == tuple(range(len(perm))) else None
        case Slice():
            return 0 if not node.open() and _whole(node) else None
        case Pad():
            pads = node.config.pads if node.config.pads is not None else node.ints(1)
            return 0 if pads is not None and not any(pads) else None
        case Expand() | Flatten() | Reshape() | Squeeze() | Tile() | Unsqueeze():
            return 0 if same_shape(node.inputs[0], node.outputs[0]) else None
        case _ if type(node) in _NEUTRAL_NUMBERS:
            return _neutral(node, *_NEUTRAL_NUMBERS[type(node)])
        case _:
            return None


def out_type(node: Node[Any]) -> object:
    return node.outputs[0].type


def _whole(node: Slice) -> bool:
    """Whether a slice takes all elements, in order."""
    *_, steps = node.bounds()
    forwards = all(isinstance(s, int) and s > 0 for s in steps)
    return forwards and same_shape(node.inputs[0], node.outputs[0])


def _neutral(node: Node[Any], element: float, sides: tuple[int, ...]) -> int | None:
    """The input that remains if the other is the operation's neutral element and does not broadcast it; else None."""
    for side in sides:
        other = 1 - side
        if number(node.inputs[side]) == element and _keeps(node, other):
            return other
    return None


def _keeps(node: Node[Any], i: int) -> bool:
    """Whether the output always has the type of input i: the constant on the other side must have no more axes, all of
    size 1."""
    if same_shape(node.inputs[i], node.outputs[0]):
        return True
    constant, x, out = node.value(1 - i), node.type(i), out_type(node)
    if constant is None or not isinstance(x, TensorType) or not isinstance(out, TensorType) or x.dtype is not out.dtype:
        return False
    return constant.size == 1 and x.rank is not None and len(constant.shape) <= x.rank
