"""Finds which axis of an input holds the channels, from how the model uses it.

PyTorch's images are (batch, channels, height, width). TensorFlow's exporters keep (batch, height, width, channels) and
insert a Transpose after the input. The axis that the first convolution, pool or batch norm uses as its channels
decides.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from emberlet.codegen.ir.argument import Argument
from emberlet.codegen.ir.graph import Node
from emberlet.codegen.ir.types import TensorType
from emberlet.codegen.ops import movement as m
from emberlet.codegen.ops.blocks import DepthToSpace, SpaceToDepth
from emberlet.codegen.ops.convolution import Conv, ConvTranspose
from emberlet.codegen.ops.normalization import BatchNormalization, GroupNormalization, InstanceNormalization
from emberlet.codegen.ops.pooling import GlobalPool, Pool

from .layout import Order, channels_last

WITH_CHANNELS = (
    Conv,
    ConvTranspose,
    Pool,
    GlobalPool,
    BatchNormalization,
    InstanceNormalization,
    GroupNormalization,
    DepthToSpace,
    SpaceToDepth,
)
"""Operators whose channel axis is 1."""

COLORS = 4
"""If no layer determines the channel axis, it is the last one if that has at most this many elements and the second has
more."""

Axes = tuple[int | None, ...]


@dataclass
class Channels:
    """axis: for each input, the axis that the first layer with channels uses for them; inputs without such a layer are
    missing."""

    axis: dict[str, int] = field(default_factory=dict)
    _from: dict[str, tuple[str, Axes]] = field(default_factory=dict)

    def add_input(self, argument: Argument) -> None:
        self._from[argument.name] = argument.name, tuple(range(len(_shape(argument))))

    def see(self, node: Node[Any]) -> None:
        """Record the channel axes that a node implies; its types are known."""
        source = next((a for a in node.inputs if a.present and a.name in self._from), None)
        if source is None:
            return
        name, axes = self._from[source.name]
        if isinstance(node, WITH_CHANNELS) and len(axes) > 1:
            if axes[1] is not None:
                self.axis.setdefault(name, axes[1])
            return
        for output in node.outputs:
            if output.present and isinstance(output.type, TensorType):
                kept = _kept(node, axes, _shape(source), _shape(output))
                if kept is not None:
                    self._from[output.name] = name, kept


def _shape(argument: Argument) -> tuple[int, ...]:
    return (argument.type.static_shape if isinstance(argument.type, TensorType) else None) or ()


def _kept(node: Node[Any], axes: Axes, before: tuple[int, ...], after: tuple[int, ...]) -> Axes | None:
    """The input axis that each axis of an output corresponds to; None if there is none."""
    if isinstance(node, m.Transpose):
        return tuple(axes[k] for k in node.perm())
    if len(after) == len(before) and not isinstance(node, m.Reshape):
        return axes
    old, new = [k for k, n in enumerate(before) if n != 1], [k for k, n in enumerate(after) if n != 1]
    if [before[k] for k in old] != [after[k] for k in new]:
        return None
    place = dict(zip(new, old, strict=True))
    return tuple(axes[place[k]] if k in place else None for k in range(len(after)))


def input_order(dims: tuple[int, ...], axis: int | None) -> Order:
    """The order in which an image's elements are passed: channels last, whatever the model's order.

    axis: the channel axis. If it is None, since no layer determines it, it is the second, as in ONNX, unless the shape
    suggests the last.
    """
    if axis is None:
        axis = len(dims) - 1 if dims[-1] <= COLORS < dims[1] else 1
    return channels_last(len(dims)) if axis == 1 else (*(k for k in range(len(dims)) if k != axis), axis)
