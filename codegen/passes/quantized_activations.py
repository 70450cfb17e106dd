"""Layers of integers out of layers with packed weights: the quantization around them becomes a part of them.

A product or convolution between DequantizeLinear and QuantizeLinear multiplies integers and rounds once, as onnxruntime
computes it. What a layer alone reads is quantized in it, and what it gives is dequantized in it where only floats are
read; a relu that quantization computes anyway is left out. Between the two, operators that move or select elements take
integers.
"""

from __future__ import annotations

import struct
from typing import Any

from emberlet import dtypes
from emberlet.dtypes import DType
from emberlet.tensor import Tensor

from ..ir.argument import ABSENT, Argument
from ..ir.graph import Graph, Node
from ..ir.value import scalar_value
from ..ops.arithmetic import Clip
from ..ops.elementwise import Relu
from ..ops.joining import Concat
from ..ops.movement import Flatten, Reshape, Squeeze, Transpose, Unsqueeze
from ..ops.pooling import MaxPool
from ..ops.quantization import DequantizeLinear, QuantizeLinear
from ..ops.quantized_layers import Grid, Grids, Packing, QuantizedConv, QuantizedLinear
from ..records import replace
from .idempotent import bounds
from .quantized import made as constant
from .quantized_operators import EXACT, grid
from .rewriting import Change, Rewrite, Walk, instead, rewrite, value_of

SAID = "made {} layers of integers"
JOINED = "joined {} quantizations with the layers beside them"
BEYOND = 1e6  # the levels of all grids
MOVED = "let {} operators take integers"
Layer = QuantizedConv | QuantizedLinear


def run(graph: Graph) -> Rewrite:
    """First all layers that can take integers take them; floats in their place would hide the integers from others."""
    for step in (between, multiplied, joined):
        after, done = rewrite(graph, step)
        if after is not graph:
            break
    return after, done


def between(node: Node[Any], walk: Walk) -> Change | None:
    return quantized(node, walk) or moved(node, walk) if isinstance(node, QuantizeLinear) else None


def joined(node: Node[Any], walk: Walk) -> Change | None:
    if isinstance(node, DequantizeLinear):
        return dequantized(node, walk)
    return given(node, walk) if isinstance(node, QuantizedConv | QuantizedLinear) else None


def multiplied(node: Node[Any], walk: Walk) -> Change | None:
    """The layer that takes integers and gives floats, which nothing quantizes."""
    if not isinstance(node, QuantizedConv | QuantizedLinear) or node.config.grids is not None or not packed(node):
        return None
    before = walk.made_by(node.inputs[0], DequantizeLinear)
    found = None if before is None else grid_of(before)
    if before is None or found is None or not walk.visible(before):
        return None
    inputs = (before.inputs[0], *whole_zero(node))
    return instead(node, SAID, replace(node, inputs=inputs, config=with_grids(node, Grids(found, None))))


def quantized(node: QuantizeLinear, walk: Walk) -> Change | None:
    """The layer that gives integers, in the place of the node that quantizes what it gives."""
    after = grid_of(node)
    source = node.inputs[0]
    if after is None or not walk.alone(source):
        return None
    layer = walk.producer(source)
    if isinstance(layer, Relu | Clip):
        if not cuts_as(layer, after) or not walk.alone(layer.inputs[0]):
            return None
        layer = walk.producer(layer.inputs[0])
    if not isinstance(layer, QuantizedConv | QuantizedLinear) or layer.config.grids is not None:
        return None
    before = walk.made_by(layer.inputs[0], DequantizeLinear)
    found = None if before is None else grid_of(before)
    if before is None or found is None or not fits(layer, found.scale) or not walk.visible(before):
        return None
    grids = Grids(found, after)
    inputs = (before.inputs[0], *whole_zero(layer))
    return instead(node, SAID, replace(layer, inputs=inputs, outputs=node.outputs, config=with_grids(layer, grids)))


def dequantized(node: DequantizeLinear, walk: Walk) -> Change | None:
    """The layer that gives floats, in the place of the node that dequantizes what it gives."""
    layer = walk.producer(node.inputs[0])
    if not isinstance(layer, QuantizedConv | QuantizedLinear) or not walk.alone(node.inputs[0]):
        return None
    grids, read = layer.config.grids, grid_of(node)
    if grids is None or read is None or grids.output != read:
        return None
    real = Grid(read.scale, read.zero + shift(read.dtype), dtypes.float32)
    made = replace(layer, outputs=node.outputs, config=with_grids(layer, Grids(grids.input, real)))
    return instead(node, JOINED, made)


def given(layer: Layer, walk: Walk) -> Change | None:
    """The layer that takes floats, if nothing else reads them quantized."""
    grids = layer.config.grids
    before = walk.made_by(layer.inputs[0], QuantizeLinear)
    if grids is None or grids.input is None or before is None or not walk.visible(before):
        return None
    if not walk.alone(layer.inputs[0]):
        return None
    if grid_of(before) != grids.input or before.dtype(0) is not dtypes.float32:
        return None
    taken = Grid(grids.input.scale, grids.input.zero + shift(grids.input.dtype), dtypes.uint8)
    inputs = (before.inputs[0], *layer.inputs[1:])
    made = replace(layer, inputs=inputs, config=with_grids(layer, Grids(taken, grids.output)))
    return instead(layer, JOINED, made)


def moved(node: QuantizeLinear, walk: Walk) -> Change | None:
    """An operator that moves or selects elements, between one grid and the same."""
    move = walk.producer(node.inputs[0])
    if isinstance(move, Concat):
        return concatenated(node, move, walk)
    if not isinstance(move, MaxPool | Flatten | Reshape | Squeeze | Transpose | Unsqueeze):
        return None
    if not walk.alone(node.inputs[0]) or not walk.only_output(move):
        return None
    before = walk.made_by(move.inputs[0], DequantizeLinear)
    found = grid_of(node)
    if before is None or found is None or grid_of(before) != found or not walk.visible(before):
        return None
    inputs = (before.inputs[0], *move.inputs[1:])
    return instead(node, MOVED, replace(move, inputs=inputs, outputs=node.outputs))


def concatenated(node: QuantizeLinear, join: Concat, walk: Walk) -> Change | None:
    """The integers of one grid, joined as they are."""
    found = grid_of(node)
    if found is None or not walk.alone(node.inputs[0]) or not walk.only_output(join):
        return None
    parts = [walk.made_by(x, DequantizeLinear) for x in join.inputs]
    if any(part is None or grid_of(part) != found or not walk.visible(part) for part in parts):
        return None
    inputs = tuple(part.inputs[0] for part in parts if part is not None)
    return instead(node, MOVED, replace(join, inputs=inputs, outputs=node.outputs))


def grid_of(node: QuantizeLinear | DequantizeLinear) -> Grid | None:
    """The one grid between float32 and integers of 8 bits; None for any other."""
    c = node.config
    floats = node.dtype(0) if isinstance(node, QuantizeLinear) else c.dtype or dtypes.float32
    if c.block_size or floats is not dtypes.float32:
        return None
    if node.has(2):
        return grid(node, 1, 2)
    dtype = node.result() if isinstance(node, QuantizeLinear) else node.dtype(0)
    if dtype not in (dtypes.uint8, dtypes.int8):
        return None
    zero = value_of(f"{node.name}::zero", scalar_value(0, dtype))
    return grid(replace(node, inputs=(*node.inputs[:2], zero)), 1, 2)


def shift(dtype: DType) -> int:
    """What turns levels of a dtype into those of uint8."""
    return 128 if dtype is dtypes.int8 else 0


def cuts_as(node: Relu | Clip, after: Grid) -> bool:
    """Whether quantization to a grid cuts off whatever a relu or a clip does."""
    lowest, found = -shift(after.dtype), bounds(node)
    if found is None or any(n != n for n in found):
        return False
    low, high = (level_of(n, after) for n in found)
    return low <= lowest and high >= lowest + 255


def level_of(number: float, after: Grid) -> int:
    """The level of a number on a grid, not cut to the ends, as float32 rounds it."""
    quotient = max(-BEYOND, min(BEYOND, float32(number) / float32(after.scale)))
    return round(float32(quotient)) + after.zero


def float32(number: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", number))[0])


def with_grids(layer: Layer, grids: Grids) -> Any:
    return replace(layer.config, grids=grids)


def packed(layer: Layer) -> bool:
    """Whether a layer's weight has one scale for each output, of 8 bits."""
    return layer.config.packing == Packing(8, None)


def fits(layer: Layer, scale: float) -> bool:
    """Whether a layer's weight has one scale for each output, of 8 bits, and its bias is whole in these scales."""
    if not packed(layer):
        return False
    bias, scales = layer.value(4), layer.value(2)
    if not layer.has(4):
        return True
    if bias is None or scales is None:
        return False
    real = bias.tensor().astype(dtypes.float64) / (scales.tensor().astype(dtypes.float64) * scale)
    near = real.round()
    off = abs(real - near) > abs(near) * 2.0**-21 + 2.0**-12
    return not bool((off | (abs(near) > float(EXACT)) | (real != real)).any())


def whole_zero(layer: Layer) -> tuple[Argument, ...]:
    """The other inputs of a layer, its weight's zero points as uint8."""
    zero = layer.value(3)
    if zero is None:
        return layer.inputs[1:]
    key = (True, zero.content())

    def read() -> Tensor:
        return zero.tensor()

    return (
        *layer.inputs[1:3],
        value_of(layer.inputs[3].name, constant(key, zero.origin, dtypes.uint8, zero.shape, read)),
        *(layer.inputs[4:] or (ABSENT,)),
    )
