"""What the model's integers stand for: the grids of its tensors, and the scales of its weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from emberlet.codegen.ir.argument import Argument
from emberlet.codegen.ir.graph import Node
from emberlet.codegen.ir.types import TensorType

from ..graph import Grid, Reshape
from ..kernels.interpolate import Interpolate
from ..kernels.layer import Array, Layer
from ..kernels.move import Move
from ..kernels.pool import MaxPool, ReduceFloat
from ..quantization.reference import ZERO
from .layout import StoredTensor
from .values import BYTES, NARROW, numpy_of


@dataclass
class Grids:
    """tensors: the grids of tensors of the graph; constants: of constants that a .tflite file quantized; weights: of
    the model's constants that were dequantized, the scales, their axis, and the byte that stands for 0; narrow: those
    of them with 4 bits; coded: tensors looked up in a table of bytes and not yet dequantized -> what is added to the
    table's numbers to store them; weight_scales, weight_zeros, packed, integers, whole: as in Graph.
    """

    tensors: dict[str, Grid] = field(default_factory=dict)
    constants: dict[str, Grid] = field(default_factory=dict)
    weights: dict[str, tuple[Array, int, int]] = field(default_factory=dict)
    narrow: set[str] = field(default_factory=set)
    coded: dict[str, int] = field(default_factory=dict)
    weight_scales: dict[str, Array] = field(default_factory=dict)
    weight_zeros: dict[str, int] = field(default_factory=dict)
    packed: set[str] = field(default_factory=set)
    integers: dict[str, int] = field(default_factory=dict)
    whole: set[str] = field(default_factory=set)

    def follow(self, name: str, source: str) -> None:
        """Give a tensor the grid of the one whose elements it has."""
        if source in self.tensors:
            self.tensors[name] = self.tensors[source]

    def note_whole(self, argument: Argument, held: StoredTensor) -> None:
        """Record integer tensors. Those of at most 16 bits come from QuantizeLinear and have a scale."""
        dtype = argument.type.dtype if isinstance(argument.type, TensorType) else None
        if dtype is not None and (dtype.is_bool or (dtype.is_integer and dtype.bits > 16)):
            self.whole.add(held.name)

    def note_constant(self, node: Node[Any]) -> None:
        """Record the scales of quantized constant weights."""
        scale = numpy_of(node.value(1)) if node.value(1) is not None else None  # type: ignore[arg-type]
        zero = numpy_of(node.value(2)) if node.has(2) and node.value(2) is not None else np.zeros(1)  # type: ignore[arg-type]
        value = node.value(0)
        if scale is None or value is None or value.dtype.name not in BYTES or scale.ndim > 1:
            return
        if np.any(zero != zero.reshape(-1)[0]) or node.config.block_size:
            return  # one zero point per channel: such weights are quantized again
        axis = node.config.axis % len(value.shape) if scale.ndim else 0
        steps = numpy_of(value).astype(np.int64) - int(zero.reshape(-1)[0])
        # If possible, weights are bytes around 128, which assembly kernels require.
        fits = steps.size and steps.min() >= -ZERO and steps.max() < ZERO
        byte = ZERO if fits else int(zero.reshape(-1)[0]) + BYTES[value.dtype.name]
        self.weights[node.outputs[0].name] = scale.astype(np.float64).reshape(-1), axis, byte
        if value.dtype.name in NARROW:
            self.narrow.add(node.outputs[0].name)

    def keep_scales(self, node: Node[Any], weight: Argument, axis: int, channels: int, factor: float = 1.0) -> None:
        """Record the scale of each channel of a layer whose weights the model quantized along `axis`.

        factor: the layer's factor on the weights.
        """
        if weight.name not in self.weights or not factor:
            return
        scale, along, zero = self.weights[weight.name]
        if scale.size != 1 and (along != axis or scale.size != channels):
            return
        self.weight_scales[node.name] = np.broadcast_to(scale, (channels,)) * abs(factor)
        if weight.name in self.narrow:
            self.packed.add(node.name)
        if zero != ZERO:
            self.weight_zeros[node.name] = zero if factor > 0 else 255 - zero

    def of_constant(self, argument: Argument) -> Grid | None:
        """The grid of a constant that the model quantized with one scale."""
        scale, _, zero = self.weights.get(argument.name, (np.zeros(0), 0, 0))
        return Grid(float(scale[0]), zero) if scale.size == 1 and scale[0] > 0 else None


def keeps_grid(layer: Layer) -> bool:
    """Whether a layer only copies bytes, so that input and output have the same grid."""
    if isinstance(layer, Move):
        return len(set(layer.inputs)) == 1 and layer.fill is None
    picks = isinstance(layer, ReduceFloat) and layer.operation != "sum"
    return isinstance(layer, MaxPool | Reshape | Interpolate) or picks
