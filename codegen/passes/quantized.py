"""Layers with weights of few bits: MatMulNBits, GatherBlockQuantized, and products, convolutions and look-ups of a
constant that is dequantized, as layers that hold the packed weight. Plans multiply integers where the input is
dequantized, too."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, NamedTuple

from emberlet import dtypes
from emberlet.dtypes import DType
from emberlet.functional.quantized.packed_weights import unpack_bits
from emberlet.functional.quantized.weights import pack_levels
from emberlet.store.formats.onnx_weights import plain_name
from emberlet.store.integer_blocks import IntegerBlocks
from emberlet.store.quantizing import is_large
from emberlet.tensor import Tensor

from ..ir.argument import ABSENT, Argument
from ..ir.graph import Graph, Node
from ..ir.value import Stored, Value
from ..ops.arithmetic import Add
from ..ops.base import reshaped
from ..ops.convolution import Conv
from ..ops.indexing import Gather
from ..ops.linear_algebra import Gemm, MatMul
from ..ops.microsoft_products import GatherBlockQuantized, MatMulNBits
from ..ops.movement import Transpose
from ..ops.quantization import DequantizeLinear
from ..ops.quantized_layers import (
    Packing,
    QuantizedConv,
    QuantizedConvConfig,
    QuantizedEmbedding,
    QuantizedLinear,
    QuantizedLinearConfig,
)
from ..records import replace
from .rewriting import Change, Rewrite, Walk, as_bias, instead, rewrite, value_of, with_constant

SAID = "made {} layers with packed weights"


Others = frozenset[str]
"""The values that a node reads otherwise than as its weight: no layer takes them in."""


def run(graph: Graph) -> Rewrite:
    return rewrite(graph, partial(step, others=read_otherwise(graph)))


def step(node: Node[Any], walk: Walk, others: Others) -> Change | None:
    if isinstance(node, Add):
        return biased(node, walk)
    if isinstance(node, DequantizeLinear):
        made: Node[Any] | None = looked_up(node, walk)
    elif isinstance(node, MatMulNBits):
        made = packed(node)
    elif isinstance(node, GatherBlockQuantized):
        made = table(node)
    elif isinstance(node, MatMul | Gemm | Conv | Gather):
        made = MAKERS[type(node)](node, walk, others)
    else:
        return None
    return None if made is None else instead(node, SAID, made)


def read_otherwise(graph: Graph) -> Others:
    """See Others. A matrix that is transposed is read as what is transposed is."""
    found: set[str] = set()
    turned: list[Transpose] = []
    graphs = [graph]
    for each in graphs:
        found.update(a.name for a in each.outputs)
        for node in each.nodes:
            graphs += node.graphs()
            if isinstance(node, Transpose):
                turned.append(node)
                continue
            weight = 1 if isinstance(node, MatMul | Gemm | Conv) else 0 if isinstance(node, Gather) else None
            found.update(a.name for i, a in enumerate(node.inputs) if i != weight)
    for node in reversed(turned):
        if node.outputs[0].name in found:
            found.add(node.inputs[0].name)
    return frozenset(found)


def biased(node: Add, walk: Walk) -> Change | None:
    """The layer with its bias."""
    for layer, given, value in with_constant(node, QuantizedLinear, walk):
        grids = layer.config.grids
        rounded = grids is not None and grids.output is not None  # before the sum
        bias = None if layer.has(4) or rounded else as_bias(given, value, layer.tensor(0).rank, layer.config.columns)
        if bias is not None:
            made = QuantizedLinear(node.name, (*layer.inputs[:4], bias), node.outputs, layer.config)
            return instead(node, "joined {} products with their bias", made)
    return None


class Weight(NamedTuple):
    """values uint8 (columns, blocks, bytes), scale and zero float32 (columns * blocks,), zero None if it is that of
    symmetric weights; block: None if a column is one."""

    values: Value
    scale: Value
    zero: Value | None
    bits: int
    block: int | None

    def parts(self, node: Node[Any]) -> list[Argument]:
        """The inputs of a layer in the place of a node that hold its weight."""
        held = zip(("w", "s", "z"), self[:3], strict=True)
        return [value_of(f"{node.name}::{k}", v) if v else ABSENT for k, v in held]

    @property
    def packing(self) -> Packing:
        return Packing(self.bits, self.block)


def layer(node: Node[Any], x: Argument, rows: int, columns: int, w: Weight, bias: Argument) -> QuantizedLinear:
    config = QuantizedLinearConfig(rows, columns, w.packing)
    return QuantizedLinear(node.name, (x, *w.parts(node), bias), node.outputs, config)


def made(key: Hashable, name: Hashable, dtype: DType, shape: tuple[int, ...], read: Callable[[], Tensor]) -> Value:
    """A part of a packed weight, computed when it is read. name: its origin, after which the layer is named if it is
    an initializer's."""

    def load() -> bytes:
        x = read().astype(dtype)
        return bytes(x.backend.to_bytes(x))

    return Value(dtype, shape, Stored(load, key), plain_name(name) if isinstance(name, str) else name)


def packed(node: MatMulNBits) -> QuantizedLinear | None:
    """MatMulNBits whose weight is constant and whose blocks are in order."""
    c = node.config
    if node.has(4) or node.dtype(0) is not dtypes.float32 or (node.has(5) and node.value(5) is None):
        return None
    stored = c.block_size * c.bits // 8
    w = in_blocks(node, node.value(1), c.columns, c.rows, c.bits, c.block_size, stored)
    bias = node.inputs[5] if node.has(5) else ABSENT
    return None if w is None else layer(node, node.inputs[0], c.rows, c.columns, w, bias)


def table(node: GatherBlockQuantized) -> QuantizedEmbedding | None:
    """GatherBlockQuantized of the rows of a constant matrix in uint8."""
    c, value = node.config, node.value(0)
    if value is None or len(value.shape) != 2 or c.gather_axis not in (0, -2) or c.quantize_axis not in (1, -1):
        return None
    if node.value(1) is not None or node.tensor(1).rank is None or c.block_size < 1:
        return None
    rows, columns = value.shape[0], value.shape[1] * (8 // c.bits)
    if columns > c.block_size and columns % c.block_size:
        return None
    stored = min(c.block_size, columns) * c.bits // 8
    w = in_blocks(node, value, rows, columns, c.bits, c.block_size, stored)
    if w is None:
        return None
    config = QuantizedLinearConfig(rows, columns, w.packing)
    return QuantizedEmbedding(node.name, (node.inputs[1], *w.parts(node)), node.outputs, config)


def in_blocks(
    node: Node[Any], weight: Value | None, channels: int, count: int, bits: int, block_size: int, stored: int
) -> Weight | None:
    """A constant weight of uint8, whose scales and zero points are inputs 2 and 3. count: the numbers of a channel;
    stored: the bytes that hold a block, the last of which may be padded."""
    scale, zero = node.value(2), node.value(3)
    if weight is None or scale is None or (node.has(3) and zero is None):
        return None
    if min(block_size, count, channels) < 1 or not is_large((count, channels), 1):
        return None
    blocks = -(-count // block_size)
    each = 8 // bits
    size = min(block_size, -(-count // each) * each)
    held = (channels, blocks, stored)
    if scale.dtype is not dtypes.float32 or scale.size != channels * blocks:
        return None
    if weight.dtype is not dtypes.uint8 or weight.size != held[0] * held[1] * held[2]:
        return None
    short = size // each  # bytes of a block that is longer than its channel
    key = ("values", weight.content(), held, short)
    values = made(
        key, weight.origin, dtypes.uint8, (*held[:2], short), lambda: weight.tensor().reshape(held)[..., :short]
    )
    points = None
    if zero is not None:
        sizes = {dtypes.uint8: channels * -(-blocks // each), dtypes.float32: channels * blocks}
        if sizes.get(zero.dtype) != zero.size:
            return None

        def read() -> Tensor:
            found = zero.tensor().reshape((channels, -1))
            if zero.dtype is dtypes.uint8:
                found = unpack_bits(found, bits)[:, :blocks]
            return found.reshape((-1,)).astype(dtypes.float32)

        which: Hashable = ("zero_point", zero.content(), held)
        points = None if _middle(read(), bits) else made(which, which, dtypes.float32, (scale.size,), read)
    return Weight(values, reshaped(scale, (scale.size,)), points, bits, None if blocks == 1 else size)


def _middle(points: Tensor, bits: int) -> bool:
    """Whether zero points are those of symmetric weights."""
    return not bool((points != float(1 << (bits - 1))).any())


def dequantized(node: MatMul | Gemm, walk: Walk, others: Others) -> QuantizedLinear | None:
    """A product of floats with a constant that is dequantized just before."""
    if node.dtype(0) is not dtypes.float32:
        return None
    bias = ABSENT
    turned = False
    if isinstance(node, Gemm):
        c = node.config
        given = node.value(2)
        if c.trans_a or c.alpha != 1.0 or (node.has(2) and (given is None or c.beta != 1.0)):
            return None
        turned = c.trans_b
    source = node.inputs[1]
    before = walk.made_by(source, Transpose)
    if before is not None and before.tensor(0).rank == 2 and before.perm() == (1, 0):
        turned, source = not turned, before.inputs[0]
    dq = walk.made_by(source, DequantizeLinear)
    if dq is None or source.name in others:
        return None
    axis = 0 if turned else 1
    weight = unpacked(dq, axis)
    if weight is None:
        return None
    value = dq.value(0)
    assert value is not None
    columns, rows = value.shape[axis], value.shape[1 - axis]
    if isinstance(node, Gemm) and node.has(2):
        given = node.value(2)
        assert given is not None
        if given.shape not in ((columns,), (1, columns)):
            return None
        bias = value_of(node.inputs[2].name, reshaped(given, (columns,)))
    return layer(node, node.inputs[0], rows, columns, weight, bias)


def convolution(node: Conv, walk: Walk, others: Others) -> QuantizedConv | None:
    """A convolution with a constant that is dequantized just before."""
    dq, bias = walk.made_by(node.inputs[1], DequantizeLinear), node.value(2)
    if dq is None or node.inputs[1].name in others or (node.has(2) and bias is None):
        return None
    if node.dtype(0) is not dtypes.float32:
        return None
    w, value = unpacked(dq, 0), dq.value(0)
    if w is None or value is None or not 3 <= len(value.shape) <= 5:
        return None
    config = QuantizedConvConfig(node.config, value.shape, w.packing)
    return QuantizedConv(
        node.name, (node.inputs[0], *w.parts(node), node.inputs[2] if node.has(2) else ABSENT), node.outputs, config
    )  # fmt: skip


def embedding(node: Gather, walk: Walk, others: Others) -> QuantizedEmbedding | None:
    """Rows of a constant matrix that is dequantized just before."""
    dq = walk.made_by(node.inputs[0], DequantizeLinear)
    return None if dq is None or node.inputs[0].name in others else rows_of(node, node, dq)


def looked_up(node: DequantizeLinear, walk: Walk) -> QuantizedEmbedding | None:
    """Rows of a constant matrix with one scale that are dequantized afterwards."""
    gather = walk.made_by(node.inputs[0], Gather)
    value, scale = (None, None) if gather is None else (gather.value(0), node.value(1))
    if gather is None or value is None or scale is None or scale.size != 1 or node.config.block_size:
        return None
    if not walk.alone(node.inputs[0]):
        return None
    return rows_of(node, gather, replace(node, inputs=(gather.inputs[0], *node.inputs[1:])))


def rows_of(node: Node[Any], gather: Gather, dq: DequantizeLinear) -> QuantizedEmbedding | None:
    """The embedding in the place of a node that gathers rows of what is dequantized."""
    w, value = unpacked(dq, 0), dq.value(0)
    if w is None or value is None or len(value.shape) != 2 or gather.config.axis not in (0, -2):
        return None
    if gather.value(1) is not None or gather.tensor(1).rank is None:
        return None
    config = QuantizedLinearConfig(*value.shape, w.packing)
    return QuantizedEmbedding(node.name, (gather.inputs[1], *w.parts(node)), node.outputs, config)


MAKERS: dict[type, Callable[[Any, Walk, Others], Node[Any] | None]] = {
    MatMul: dequantized, Gemm: dequantized, Conv: convolution, Gather: embedding,
}  # fmt: skip


def unpacked(node: DequantizeLinear, axis: int, whole: bool = False) -> Weight | None:
    """The packed form of a constant that is dequantized. axis: that of its channels; whole: zero points are uint8."""
    value, scale, zero = node.value(0), node.value(1), node.value(2)
    if value is None or scale is None or (node.has(2) and zero is None) or len(value.shape) < 2:
        return None
    if scale.dtype is not dtypes.float32 or node.config.dtype not in (None, dtypes.float32):
        return None
    points_shape = None if zero is None else zero.shape
    c = node.config
    form = IntegerBlocks.of(value.shape, value.dtype, scale.shape, points_shape, c.axis, c.block_size, axis)
    if form is None or not is_large(value.shape, axis):
        return None

    def levels() -> Tensor:
        return pack_levels(form.levels(value.tensor()), form.bits)

    def points() -> Tensor:
        return form.points(None if zero is None else zero.tensor(), scale.tensor()).reshape((-1,))

    zeros = dtypes.uint8 if whole else dtypes.float32
    what = value.content(), scale.content(), None if zero is None else zero.content(), form
    keys = [(part, *what) for part in ("values", "scale", "zero_point")]
    count = (form.channels * form.blocks,)
    shape = (form.channels, form.blocks, form.size * form.bits // 8)
    return Weight(
        made(keys[0], value.origin, dtypes.uint8, shape, levels),
        made(keys[1], keys[1], dtypes.float32, count, lambda: form.scales(scale.tensor()).reshape((-1,))),
        None if _middle(points(), form.bits) else made((whole, *keys[2]), keys[2], zeros, count, points),
        form.bits, None if form.blocks == 1 else form.size,
    )  # fmt: skip
