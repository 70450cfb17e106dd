"""Keys: when one node can stand for another."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import fields, is_dataclass
from typing import Any

from .argument import Argument
from .graph import Node
from .value import Value


def node_key(node: Node[Any]) -> Hashable | None:
    """A key that is equal for two nodes only if one can replace the other; None if no other can.

    Weights are equal only if they are the same initializer: layers with equal values are still separate layers, whose
    weights training would change separately. Numbers, sizes and axes are compared by value.
    """
    if not node.pure or node.graphs():
        return None
    inputs = tuple(_argument_key(a, i in node.static) for i, a in enumerate(node.inputs))
    present = tuple(o.present for o in node.outputs)
    return (type(node), inputs, present, _config_key(node.config))


def _argument_key(a: Argument, layer: bool) -> Hashable:
    if a.value is None:
        return a.name
    if layer and a.value.origin is None and len(a.value.shape) > 1 and trainable(a.value):
        return (a.name, a.value.key())  # a node of the file made it, for this layer
    return a.value.key() if trainable(a.value) else a.value.content()


def trainable(value: Value) -> bool:
    """Whether a constant may be a layer's weight rather than a number, a size or an axis."""
    return bool(value.shape) and (value.dtype.is_float or (value.dtype.bits <= 8 and not value.dtype.is_bool))


def _config_key(held: Any) -> Hashable:
    """A hashable form of a config."""
    if isinstance(held, Value):
        return held.content()
    if is_dataclass(held) and not isinstance(held, type):
        return (type(held).__name__, *(_config_key(getattr(held, f.name)) for f in fields(held)))
    if isinstance(held, tuple):
        return tuple(_config_key(v) for v in held)
    if isinstance(held, float):
        return repr(held)
    return held
