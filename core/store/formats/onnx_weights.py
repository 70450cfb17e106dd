"""The quantized weights of an ONNX file: the integers that DequantizeLinear, GatherBlockQuantized, MatMulNBits,
QLinearConv, QLinearMatMul and QGemm read, with their scales and zero points, as float tensors that know their integers;
and biases, as floats."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from math import prod
from typing import NamedTuple

from ... import dtypes
from ...backend import Backend
from ...functional.movement.rearranging import narrow, repeat
from ...functional.quantized.packed_weights import unpack_bits
from ...functional.quantized.weights import from_rows
from ...tensor import Tensor
from ..integer_blocks import IntegerBlocks
from ..snapshot import Packed, Snapshot

ENDING = re.compile(r"(_quantized|_[Qq]\d(G\d+)?|_DequantizeLinear_Output|_dequantized)$")
# operator -> the inputs with the integers, the scale and the zero point
READS = {
    "DequantizeLinear": (0, 1, 2), "GatherBlockQuantized": (0, 2, 3), "MatMulNBits": (1, 2, 3),
    "QLinearConv": (3, 4, 5), "QLinearMatMul": (3, 4, 5), "QGemm": (3, 4, 5),
}  # fmt: skip
BIASES = {"QLinearConv": 8, "QGemm": 6}  # operator -> the input with a bias
INPUT_SCALE = 1  # of these
LOOK_UPS = {"Gather", "Cast", "Sub", "Mul"}  # which dequantize the rows of a table that are looked up
FLOAT = 1  # ONNX's number for float32


class Reading(NamedTuple):
    """A node of an ONNX file that reads integers: its operator, inputs, result, and attributes that are integers."""

    kind: str
    inputs: tuple[str, ...]
    output: str
    ints: Mapping[str, int]


def plain_name(name: str) -> str:
    """ "fc.weight" of "fc.weight_quantized" and "fc.weight_Q4", as quantizers name the integers of a weight."""
    return ENDING.sub("", name)


def join(found: Mapping[str, Snapshot], nodes: list[Reading]) -> None:
    """Give the integers that these nodes read a `real`: the weight as floats."""
    for node in _of_tables(found, nodes):
        parts = [found.get(node.inputs[i]) if i < len(node.inputs) else None for i in READS[node.kind]]
        values, scale, zero = parts
        at = READS[node.kind][2]
        if values is None or scale is None or (zero is None and any(node.inputs[at : at + 1])):
            continue
        if scale.dtype.is_float and values.real is None:
            make = {"MatMulNBits": _of_nbits, "GatherBlockQuantized": _of_table}.get(node.kind, _of_integers)
            values.real = make(node, values, scale, zero)
        if scale.dtype.is_float:
            _join_bias(found, node, values, scale, zero)


def _of_tables(found: Mapping[str, Snapshot], nodes: list[Reading]) -> Iterator[Reading]:
    """The nodes, with those that dequantize rows of a table as what dequantizes the whole of it."""
    rows: dict[str, tuple[str, ...]] = {}  # a tensor -> the indices of its rows, the table, and what is subtracted
    for node in nodes:
        given = [rows.get(name) for name in node.inputs]
        parts = [each for each in given if each]
        alike = len({each[0] for each in parts}) == 1 and len(parts) == len(given)
        if node.kind == "Gather" and len(node.inputs) == 2 and not node.ints.get("axis") and node.inputs[0] in found:
            rows[node.output] = node.inputs[::-1]
        elif (node.kind, node.ints.get("to")) == ("Cast", FLOAT) and alike:
            rows[node.output] = parts[0]
        elif node.kind == "Sub" and alike and [len(each) for each in parts] == [2, 2]:
            rows[node.output] = (*parts[0], parts[1][1])
        elif node.kind == "Mul" and alike and len(parts) == 2:
            (_, levels, *zero), (_, scale, *_) = sorted(parts, key=lambda each: found[each[1]].dtype.is_float)
            size = {"axis": 1, "block_size": (0, *found[levels].shape)[-1]}
            yield Reading("DequantizeLinear", (levels, scale, *zero), node.output, size)
        elif node.kind == "DequantizeLinear" and any(given[:1]):
            names = [name if each is None else each[1] for name, each in zip(node.inputs, given, strict=True)]
            yield Reading(node.kind, tuple(names), node.output, {**node.ints, "axis": 1} if alike else node.ints)
        elif node.kind in READS:
            yield node


def _join_bias(
    found: Mapping[str, Snapshot], node: Reading, values: Snapshot, scale: Snapshot, zero: Snapshot | None
) -> None:
    """Give a bias of int32 a `real`: its integers, less zero points that it has, times its scale, or those of the
    weight and the input."""
    scales = [scale]
    bias = points = None
    if node.kind in BIASES:
        at = node.inputs[INPUT_SCALE : INPUT_SCALE + 1] + node.inputs[BIASES[node.kind] :][:1]
        given, bias = [found.get(name) for name in at] if len(at) == 2 else (None, None)
        if given is None or not given.dtype.is_float or given.size != 1:
            return
        scales.append(given)
    elif node.kind == "DequantizeLinear":
        bias, points = values, zero
    if bias is None or bias.real is not None or bias.dtype is not dtypes.int32 or len(bias.shape) != 1:
        return
    if all(part is None or part.shape in ((), (1,), bias.shape) for part in (scale, points)):
        bias.real = Snapshot(
            plain_name(bias.name), dtypes.float32, bias.shape, make=partial(_real_bias, bias, points, scales),
            original=bias.original,
        )  # fmt: skip


def _real_bias(bias: Snapshot, points: Snapshot | None, scales: list[Snapshot], backend: Backend) -> Tensor:
    whole = scales[0].tensor().astype(dtypes.float32).reshape((-1,))
    for scale in scales[1:]:
        whole = whole * scale.tensor().astype(dtypes.float32).reshape((1,))
    levels = bias.tensor() if points is None else bias.tensor() - points.tensor().astype(dtypes.int32)
    found: Tensor = (levels.astype(dtypes.float32) * whole).to(backend)
    return found


def _of_integers(node: Reading, values: Snapshot, scale: Snapshot, zero: Snapshot | None) -> Snapshot | None:
    own = {"QLinearConv": 0, "QLinearMatMul": -1, "QGemm": 0 if node.ints.get("transB", 0) else 1}
    along = own.get(node.kind, node.ints.get("axis", 1))
    block = node.ints.get("block_size", 0)
    rank = len(values.shape)
    if rank < 2 or not -rank <= along < rank:
        return None
    axis = along % rank
    if block:
        axis = 1 - axis if rank == 2 else axis
    elif scale.size == 1:
        axis = rank - 1 if rank == 2 else 0
    if values.dtype.is_float and values.dtype.bits == 8:
        return _of_floats(values, scale, along % rank, block)

    def packed(axis: int) -> Packed | None:
        return _packed(values, scale, zero, (along, block, axis))

    made = packed(axis)
    if made is not None and scale.size == 1 and not block:
        made = made._replace(along=packed)
    count = prod(n for i, n in enumerate(values.shape) if i != axis)
    return None if made is None else _real(values, values.shape, count, made)


def _packed(values: Snapshot, scale: Snapshot, zero: Snapshot | None, where: tuple[int, int, int]) -> Packed | None:
    """Integers with channels along an axis. where: the axis of the scales, the size of a block or 0, that axis."""
    along, block, axis = where
    points_shape = None if zero is None else zero.shape
    form = IntegerBlocks.of(values.shape, values.dtype, scale.shape, points_shape, along, block, axis)
    if form is None:
        return None

    def read() -> tuple[Tensor, Tensor, Tensor | None]:
        return form.levels(values.tensor()), form.scales(scale.tensor()), None

    def points() -> Tensor:
        return form.points(None if zero is None else zero.tensor(), scale.tensor())

    return Packed(axis, form.bits, form.size, middle(form.bits), True, read, points)


def _of_floats(values: Snapshot, scale: Snapshot, along: int, block: int) -> Snapshot | None:
    """Floats of 8 bits, which are dequantized as they are."""
    shape = values.shape
    grid = tuple(-(-n // block) if block and i == along else n for i, n in enumerate(shape))
    if scale.size != 1 and tuple(scale.shape) != (grid if block else (shape[along],)):
        return None

    def make(backend: Backend) -> Tensor:
        scales = scale.tensor().astype(dtypes.float32)
        if block:
            scales = narrow(repeat(scales, block, axis=along), along, 0, shape[along])
        elif scales.size > 1:
            scales = scales.reshape(tuple(n if i == along else 1 for i, n in enumerate(shape)))
        found: Tensor = (values.tensor().astype(dtypes.float32) * scales).to(backend)
        return found

    return Snapshot(plain_name(values.name), dtypes.float32, shape, make=make, original=values.original)


def _of_nbits(node: Reading, values: Snapshot, scale: Snapshot, zero: Snapshot | None) -> Snapshot | None:
    """The matrix (rows, columns) that MatMulNBits multiplies by."""
    columns, rows, block = (node.ints.get(key, 0) for key in ("N", "K", "block_size"))
    if any(node.inputs[4:5]):
        return None
    form = Blocks(columns, rows, block, node.ints.get("bits", 4), block)
    return _of_blocks(form, (rows, columns), 1, values, scale, zero)


def _of_table(node: Reading, values: Snapshot, scale: Snapshot, zero: Snapshot | None) -> Snapshot | None:
    """The matrix whose rows GatherBlockQuantized reads."""
    block, bits = node.ints.get("block_size", 128), node.ints.get("bits", 4)
    axes = node.ints.get("gather_axis", 0), node.ints.get("quantize_axis", 1)
    if len(values.shape) != 2 or axes[0] not in (0, -2) or axes[1] not in (1, -1):
        return None
    rows, columns = values.shape[0], values.shape[1] * 8 // max(bits, 1)
    if columns > block and columns % max(block, 1):
        return None
    form = Blocks(rows, columns, block, bits, min(block, columns))
    return _of_blocks(form, (rows, columns), 0, values, scale, zero)


class Blocks(NamedTuple):
    """How a packed matrix lies in a file. weights: of each channel; block: how many of them share a scale; stored: how
    many numbers the file has for a block, of which the last may be padding."""

    channels: int
    weights: int
    block: int
    bits: int
    stored: int


def _of_blocks(
    form: Blocks, shape: tuple[int, int], axis: int, values: Snapshot, scale: Snapshot, zero: Snapshot | None
) -> Snapshot | None:
    channels, count, block, bits, stored = form
    if bits not in (2, 4, 8) or min(channels, count, block) < 1:
        return None
    blocks, each = -(-count // block), 8 // bits
    size = min(block, -(-count // each) * each)
    if values.size != channels * blocks * stored // each or scale.size != channels * blocks:
        return None
    sizes = {dtypes.uint8: channels * -(-blocks // each), dtypes.float32: channels * blocks}
    if values.dtype is not dtypes.uint8 or (zero is not None and sizes.get(zero.dtype) != zero.size):
        return None

    def read() -> tuple[Tensor, Tensor, Tensor | None]:
        levels = unpack_bits(values.tensor(), bits).reshape((channels, blocks, stored))[:, :, :size]
        return levels, scale.tensor().astype(dtypes.float32).reshape((channels, blocks)), None

    def points() -> Tensor:
        if zero is None:
            return scale.tensor().astype(dtypes.float32).reshape((channels, blocks)) * 0.0 + float(middle(bits))
        found = zero.tensor().reshape((channels, -1))
        if zero.dtype is dtypes.uint8:
            found = unpack_bits(found, bits)[:, :blocks]
        return found.astype(dtypes.float32)

    return _real(values, shape, count, Packed(axis, bits, size, middle(bits), True, read, points))


def middle(bits: int) -> int:
    """The level of zero of symmetric weights."""
    return 1 << (bits - 1)


def _real(values: Snapshot, shape: tuple[int, ...], count: int, packed: Packed) -> Snapshot:
    """The float weight of these integers; count: the weights of a channel."""

    def make(backend: Backend) -> Tensor:
        levels, scales, _ = packed.read()
        assert packed.points is not None
        parts = (*scales.shape, 1)
        real = (levels.astype(dtypes.float32) - packed.points().reshape(parts)) * scales.reshape(parts)
        channels, blocks, size = real.shape
        rows = real.reshape((channels, blocks * size))[:, :count]
        found: Tensor = from_rows(rows, shape, packed.axis).to(backend)
        return found

    found = Snapshot(plain_name(values.name), dtypes.float32, shape, make=make, original=values.original)
    found.packed = packed
    return found
