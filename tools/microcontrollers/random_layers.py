"""Random layers: shapes, weights, zero points, multipliers and inputs, for every kind of int8 layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from emberlet.micro.builder.assembly.registry import scratch
from emberlet.micro.builder.assembly.variants import ALL
from emberlet.micro.builder.kernels.arg import Arg, two_bytes
from emberlet.micro.builder.kernels.constant import Constant
from emberlet.micro.builder.kernels.depthwise import Depthwise
from emberlet.micro.builder.kernels.dot import Dot
from emberlet.micro.builder.kernels.doubled_softmax import DoubledSoftmax
from emberlet.micro.builder.kernels.doubled_sum import DoubledSum
from emberlet.micro.builder.kernels.elementwise import Binary, Lookup, sum_factors
from emberlet.micro.builder.kernels.interpolate import Interpolate
from emberlet.micro.builder.kernels.lanes import OneHot, RunningSum, Take, TopK
from emberlet.micro.builder.kernels.layer import Array, Layer, View, as_image, dense_view
from emberlet.micro.builder.kernels.move import Border, Copy, Move, Part, strides
from emberlet.micro.builder.kernels.nest import Axis
from emberlet.micro.builder.kernels.normalize import Normalize
from emberlet.micro.builder.kernels.norms import Norm
from emberlet.micro.builder.kernels.pairs import (
    Compare,
    Extreme,
    Quotient,
    compare_constant,
    compare_tensors,
    quotient_factor,
)
from emberlet.micro.builder.kernels.pool import AveragePool, MaxPool, Reduce, window_counts
from emberlet.micro.builder.kernels.power import Power
from emberlet.micro.builder.kernels.product import Product
from emberlet.micro.builder.kernels.recurrence import MIDDLE, Rows
from emberlet.micro.builder.kernels.recurrent import GatedGru, Gru, Lstm, Rnn
from emberlet.micro.builder.kernels.select import Select
from emberlet.micro.builder.kernels.softmax import Softmax
from emberlet.micro.builder.kernels.state import Keep
from emberlet.micro.builder.kernels.trees import Branch, Leaf, Trees
from emberlet.micro.builder.kernels.window import Window
from emberlet.micro.builder.plan import WORD
from emberlet.micro.builder.program import Constants, Program, Step
from emberlet.micro.builder.quantization.doubled import DividedRequant, doubled
from emberlet.micro.builder.quantization.reference import Requant, choose, dot_bounds

from . import random_layers_16

Rng = np.random.Generator


@dataclass(frozen=True)
class Case:
    """A layer with inputs for it. fill: the value of its first input's border, if its window needs one;
    width: bytes of an element."""

    layer: Layer
    inputs: tuple[Array, ...]
    shape: tuple[int, ...]
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    fill: float = 0
    width: int = 1

    @property
    def expected(self) -> Array:
        return self.layer.reference(*self.inputs)


def bytes_at_random(rng: Rng, shape: tuple[int, ...]) -> Array:
    """Random bytes; sometimes only the extremes, which reach the bounds of the accumulators."""
    if rng.random() < 0.2:
        return rng.choice(np.array([0, 255], np.uint8), shape)
    return rng.integers(0, 256, shape).astype(np.uint8)


def weights_at_random(rng: Rng, shape: tuple[int, ...]) -> Array:
    if rng.random() < 0.1:
        return rng.choice(np.array([1, 128, 255], np.uint8), shape)
    return rng.integers(1, 256, shape).astype(np.uint8)


def clamp_at_random(rng: Rng, zero: int) -> tuple[int, int]:
    return (zero, 255) if rng.random() < 0.3 else (0, 255) if rng.random() < 0.7 else (zero, min(255, zero + 60))


def requant_for(rng: Rng, weights: Array, bias: Array, zero: int, weight_zero: int = 128) -> Requant:
    low, high = dot_bounds(weights, bias, zero, weight_zero)
    bound = np.maximum(abs(low), abs(high))
    scale = 255 / np.maximum(bound, 1) * 10.0 ** rng.uniform(-0.5, 1)
    out = int(rng.integers(0, 256))
    return choose(scale * rng.uniform(0.1, 1, len(scale)), bound, out, *clamp_at_random(rng, out))


def dense(rng: Rng) -> Case:
    rows, k, n = int(rng.integers(1, 3)), int(rng.integers(1, 300)), int(rng.integers(1, 5))
    weights, bias, zero = weights_at_random(rng, (n, 1, 1, k)), rng.integers(-5000, 5000, n), int(rng.integers(0, 256))
    layer = Dot(
        "dense", ("x",), "y", (rows, k), Window((1, 1)), 1, weights, bias, zero, requant_for(rng, weights, bias, zero)
    )
    return Case(layer, (bytes_at_random(rng, (rows, k)),), (rows, n))


def window_at_random(rng: Rng, h: int, w: int, most: int) -> Window:
    while True:
        kernel = tuple(int(v) for v in rng.integers(1, most + 1, 2))
        window = Window(
            kernel,  # type: ignore[arg-type]
            tuple(int(v) for v in rng.integers(1, 3, 2)),  # type: ignore[arg-type]
            tuple(int(v) for v in rng.choice([1, 1, 1, 2], 2)),  # type: ignore[arg-type]
            tuple(int(v) for v in rng.integers(0, 3, 4)) if rng.random() < 0.5 else (0, 0, 0, 0),  # type: ignore[arg-type]
        )
        top, left, bottom, right = window.pads
        fits = window.reach[0] > max(top, bottom) and window.reach[1] > max(left, right)
        if prod(window.output(h, w)) and fits:
            return window


def conv(rng: Rng) -> Case:
    h, w = (int(v) for v in rng.integers(1, 6, 2))
    groups = int(rng.choice([1, 1, 1, 2, 3]))
    c, n = groups * int(rng.integers(1, 12)), groups * int(rng.integers(1, 4))
    window = window_at_random(rng, h, w, 4)
    weights = weights_at_random(rng, (n, *window.kernel, c // groups))
    bias, zero = rng.integers(-5000, 5000, n), int(rng.integers(0, 256))
    layer = Dot(
        "conv", ("x",), "y", (h, w, c), window, groups, weights, bias, zero, requant_for(rng, weights, bias, zero)
    )
    return Case(layer, (bytes_at_random(rng, (h, w, c)),), (*window.output(h, w), n), window.pads, zero)


def packed(rng: Rng) -> Case:
    """Weights of 4 bits, two in a byte."""
    h, w = (int(v) for v in rng.integers(1, 6, 2))
    groups = int(rng.choice([1, 1, 2]))
    window = Window((1, 1)) if rng.random() < 0.4 else window_at_random(rng, h, w, 4)
    each = int(rng.integers(1, 70 if window.kernel == (1, 1) else 9))
    c, n = groups * each, groups * int(rng.integers(1, 4))
    weights = rng.integers(0, 16, (n, *window.kernel, each)).astype(np.uint8)
    bias, zero, middle = rng.integers(-5000, 5000, n), int(rng.integers(0, 256)), int(rng.integers(0, 16))
    low, high = dot_bounds(weights, bias, zero, middle)
    bound = np.maximum(abs(low), abs(high))
    requant = choose(255 / np.maximum(bound, 1) * 10.0 ** rng.uniform(-0.5, 1), bound, int(rng.integers(0, 256)))
    at = ("packed", ("x",), "y", (h, w, c), window, groups)
    layer = Dot(*at, weights, bias, zero, requant, middle, True)
    return Case(layer, (bytes_at_random(rng, (h, w, c)),), (*window.output(h, w), n), window.pads, zero)


def depthwise(rng: Rng) -> Case:
    h, w, c = (int(v) for v in rng.integers(1, 7, 3))
    window = window_at_random(rng, h, w, 3)
    if rng.random() < 0.1:
        h, w = (int(v) for v in rng.integers(9, 14, 2))
        window = Window((9, int(rng.integers(7, 10))))
    n = c * int(rng.choice([1, 1, 2]))
    weights = weights_at_random(rng, (n, *window.kernel))
    bias, zero = rng.integers(-5000, 5000, n), int(rng.integers(0, 256))
    layer = Depthwise(
        "depthwise", ("x",), "y", (h, w, c), window, weights, bias, zero, requant_for(rng, weights, bias, zero)
    )
    return Case(layer, (bytes_at_random(rng, (h, w, c)),), (*window.output(h, w), n), window.pads, zero)


def pool(rng: Rng) -> Case:
    h, w, c = (int(v) for v in rng.integers(1, 8, 3))
    window = window_at_random(rng, h, w, 4)
    x, shape = bytes_at_random(rng, (h, w, c)), (*window.output(h, w), c)
    if rng.random() < 0.5:
        return Case(MaxPool("max", ("x",), "y", (h, w, c), window), (x,), shape, window.pads, 0)
    zero, taps = int(rng.integers(0, 256)), prod(window.kernel)
    counts = np.maximum(window_counts(window, h, w), 1) if rng.random() < 0.5 else np.array([taps])
    ratio = rng.uniform(0.5, 2) / counts
    requant = choose(ratio, np.full(len(ratio), 255 * taps), zero)
    return Case(AveragePool("mean", ("x",), "y", (h, w, c), window, zero, requant), (x,), shape, window.pads, zero)


def reduce(rng: Rng) -> Case:
    shape = tuple(int(v) for v in (rng.integers(1, 4), rng.integers(1, 60), rng.integers(1, 6)))
    operation = str(rng.choice(["sum", "max", "min"]))
    zero = int(rng.integers(0, 256))
    requant = (
        choose(rng.uniform(0.1, 4) / shape[1], 255 * shape[1], int(rng.integers(0, 256)))
        if operation == "sum"
        else None
    )
    layer = Reduce("reduce", ("x",), "y", shape, operation, zero, requant)  # type: ignore[arg-type]
    return Case(layer, (bytes_at_random(rng, shape),), (shape[0], shape[2]))


def binary(rng: Rng) -> Case:
    shape = tuple(int(v) for v in rng.integers(1, 7, 3))
    other = tuple(1 if rng.random() < 0.3 else side for side in shape)
    zeros = (int(rng.integers(0, 256)), int(rng.integers(0, 256)))
    zero = int(rng.integers(0, 256))
    operation = str(rng.choice(["add", "sub", "mul"]))
    low, high = clamp_at_random(rng, zero)
    if operation == "mul":
        factors, requant = (0, 0), choose(10 ** rng.uniform(-4, -1), 255 * 255, zero, low, high)
    else:
        ratios = (10 ** rng.uniform(-1.5, 0.5), 10 ** rng.uniform(-1.5, 0.5) * (-1 if operation == "sub" else 1))
        factors, requant = sum_factors(ratios, zeros, zero, low, high, "sum")
    x, second = bytes_at_random(rng, shape), bytes_at_random(rng, other)
    constant = second if rng.random() < 0.3 else None
    inputs = ("x",) if constant is not None else ("x", "z")
    layer = Binary(operation, inputs, "y", operation, shape, other, constant, zeros, factors, requant)
    return Case(layer, (x,) if constant is not None else (x, second), shape)


def lookup(rng: Rng) -> Case:
    shape = tuple(int(v) for v in rng.integers(1, 20, int(rng.integers(1, 4))))
    layer = Lookup("lookup", ("x",), "y", shape, bytes_at_random(rng, (256,)))
    return Case(layer, (bytes_at_random(rng, shape),), shape)


def transpose(rng: Rng) -> Case:
    shape = tuple(int(v) for v in rng.integers(1, 6, int(rng.integers(2, 5))))
    order = rng.permutation(len(shape))
    out = tuple(shape[k] for k in order)
    axes = tuple(Axis(shape[k], (strides(shape)[k], strides(out)[i])) for i, k in enumerate(order))
    layer = Move("transpose", ("x",), "y", out, (Part(0, 0, axes),))
    return Case(layer, (bytes_at_random(rng, shape),), out)


def concatenation(rng: Rng) -> Case:
    rows, count = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    widths = [int(v) for v in rng.integers(1, 12, count)]
    total, at, parts, inputs = sum(widths), 0, [], []
    for width in widths:
        table = bytes_at_random(rng, (256,)) if rng.random() < 0.5 else None
        parts.append(Part(0, at, (Axis(rows, (width, total)), Axis(width, (1, 1))), table))
        inputs.append(bytes_at_random(rng, (rows, width)))
        at += width
    names = tuple(f"x{k}" for k in range(count))
    fill = int(rng.integers(0, 256)) if rng.random() < 0.3 else None
    return Case(Move("concat", names, "y", (rows, total), tuple(parts), fill), tuple(inputs), (rows, total))


def joined(rng: Rng) -> Case:
    """Parts of tensors of three axes, one after the other, mostly of many bytes."""
    blocks, rows, count = (int(v) for v in rng.integers(1, [10, 6, 4]))
    widths = [int(v) for v in rng.integers(1, 5, count) * rng.choice([1, 4, 8], count)]
    total, at, parts, inputs = sum(widths), 0, [], []
    for width in widths:
        before, after = (int(v) for v in rng.choice([0, 0, 3, 4], 2))
        whole = before + width + after
        axes = (Axis(blocks, (rows * whole, rows * total)), Axis(rows, (whole, total)), Axis(width, (1, 1)))
        parts.append(Part(before, at, axes))
        inputs.append(bytes_at_random(rng, (blocks, rows, whole)))
        at += width
    names = tuple(f"x{k}" for k in range(count))
    return Case(Move("joined", names, "y", (blocks, rows, total), tuple(parts)), tuple(inputs), (blocks, rows, total))


def softmax(rng: Rng) -> Case:
    rows, length = int(rng.integers(1, 4)), int(rng.integers(1, 40))
    log = rng.random() < 0.4
    grid = (1 / 16, 255) if log else ((1 / 256, 0), (1 / 255, 0), (1 / 100, 7))[int(rng.integers(3))]
    layer = Softmax("softmax", ("x",), "y", rows, length, float(10 ** rng.uniform(-2.5, -0.5)), log, *grid)
    return Case(layer, (bytes_at_random(rng, (rows, length)),), (rows, length))


def rows_at_random(rng: Rng, rows: int, k: int, zero: int) -> Rows:
    weights, bias = weights_at_random(rng, (rows, k)), rng.integers(-3000, 3000, rows)
    low, high = dot_bounds(weights, bias, zero)
    bound = np.maximum(abs(low), abs(high))
    ratio = 512 * rng.uniform(1, 12) / np.maximum(bound, 1) * rng.uniform(0.3, 1, rows)
    return Rows(weights, bias, zero, choose(ratio, bound, MIDDLE, 0, 2 * MIDDLE - 1))


def recurrent(rng: Rng) -> Case:
    steps, k, hidden = int(rng.integers(1, 7)), int(rng.integers(1, 21)), int(rng.integers(1, 12))
    kind, gates = ((Lstm, 4), (Gru, 3), (GatedGru, 3), (Rnn, 1))[int(rng.integers(4))]
    reverse, sequence = bool(rng.random() < 0.3), bool(rng.random() < 0.5)
    from_input = rows_at_random(rng, gates * hidden, k, int(rng.integers(0, 256)))
    from_state = rows_at_random(rng, (2 if kind is GatedGru else gates) * hidden, hidden, 128)
    more: dict[str, Any] = {}
    if kind is GatedGru:
        more = {"from_gated": rows_at_random(rng, hidden, hidden, 128)}
    elif kind is Rnn and rng.random() < 0.5:
        more = {"relu": True}
    rows = (from_input, from_state)
    layer = kind("recurrent", ("x",), "y", steps, hidden, *rows, reverse, sequence, False, **more)
    return Case(layer, (bytes_at_random(rng, (steps, k)),), (steps, hidden) if sequence else (hidden,))


def short_gru(rng: Rng) -> Case:
    """A GRU of short rows and several steps, which is one call of assembly."""
    steps, k, hidden = int(rng.integers(4, 9)), int(rng.integers(1, 25)), 4 * int(rng.integers(1, 4))
    reverse, sequence = bool(rng.random() < 0.3), bool(rng.random() < 0.5)
    rows = [rows_at_random(rng, 3 * hidden, n, zero) for n, zero in ((k, int(rng.integers(0, 256))), (hidden, 128))]
    layer = Gru("recurrent", ("x",), "y", steps, hidden, rows[0], rows[1], reverse, sequence, False)
    return Case(layer, (bytes_at_random(rng, (steps, k)),), (steps, hidden) if sequence else (hidden,))


def bordered_copy(rng: Rng) -> Case:
    shape = tuple(int(v) for v in rng.integers(1, 8, 3))
    pads = tuple(int(v) for v in rng.integers(0, 3, 4))
    return Case(Copy("copy", ("x",), "y", shape), (bytes_at_random(rng, shape),), shape, pads, 7)  # type: ignore[arg-type]


def rounding_twice(rng: Rng) -> Case:
    """A layer in TensorFlow Lite's arithmetic."""
    kinds = (dense, conv, depthwise, pool, reduce, binary, many_channels, wide_depthwise, one_position, few_channels)
    made = kinds[int(rng.integers(len(kinds)))](rng)
    layer, zero = made.layer, int(rng.integers(0, 256))
    clamp = clamp_at_random(rng, zero)
    if isinstance(layer, Dot | Depthwise):
        low, high = dot_bounds(layer.weights, layer.bias, layer.zero)
        bound = np.maximum(np.maximum(abs(low), abs(high)), 1)
        ratio = 255 / bound * 10.0 ** rng.uniform(-2, 1.2, len(bound))
        layer = replace(layer, requant=doubled(np.minimum(ratio, 3.9), bound, zero, *clamp, twice=rng.random() < 0.5))
    elif isinstance(layer, AveragePool):
        counts = np.maximum(window_counts(layer.window, *layer.image[:2]), 1)
        layer = replace(layer, requant=DividedRequant(tuple(int(n) for n in counts), 0, 0, 128))
    elif isinstance(layer, Reduce) and layer.operation == "sum":
        ratio = rng.uniform(0.1, 4) / layer.shape[1]
        layer = replace(layer, requant=doubled(ratio, 255 * layer.shape[1], zero))
    elif isinstance(layer, Binary) and layer.operation == "mul":
        layer = replace(layer, requant=doubled(10 ** rng.uniform(-4, 0.5), 255 * 255, zero, *clamp))
    elif isinstance(layer, Binary):
        scales = tuple(float(v) for v in 10 ** rng.uniform(-2.5, -0.5, 2))
        out = max(scales) * float(10 ** rng.uniform(-0.5, 1))
        at = (layer.name, layer.inputs, layer.output, layer.operation, layer.shape, layer.other, layer.constant)
        layer = DoubledSum(*at, layer.zeros, (*scales, out), zero, *clamp)
    return replace(made, layer=layer)


def kept(rng: Rng) -> Case:
    if rng.random() < 0.3:
        shape = tuple(int(v) for v in rng.integers(1, 8, 2))
        return Case(Constant("constant", (), "y", bytes_at_random(rng, shape)), (), shape)
    shape = tuple(int(v) for v in rng.integers(1, 8, 2))
    return Case(Keep("keep", ("x",), "y", shape), (bytes_at_random(rng, shape),), shape)


def product(rng: Rng) -> Case:
    """A product of two tensors, each possibly transposed."""
    rows, depth, columns = (int(v) for v in rng.integers(1, 9, 3))
    count = int(rng.integers(1, 4))
    first = (depth, 1) if rng.random() < 0.5 else (1, rows)
    second = (columns, 1) if rng.random() < 0.5 else (1, depth)
    repeated = bool(rng.random() < 0.3)
    batches = ((count, rows * depth, 0 if repeated else depth * columns),) if count > 1 else ()
    zeros = (int(rng.integers(0, 256)), int(rng.integers(0, 256)))
    reach = depth * 255 * 255
    requant = choose(255 / reach * 10 ** rng.uniform(0, 1.5), reach, int(rng.integers(0, 256)))
    inputs = bytes_at_random(rng, (count, rows * depth)), bytes_at_random(rng, (count, depth * columns))
    layer = Product("product", ("x", "z"), "y", rows, depth, columns, first, second, batches, zeros, requant)
    return Case(layer, inputs, (count, rows, columns))


def normalization(rng: Rng) -> Case:
    rows, each = int(rng.integers(1, 5)), int(rng.choice([0, 0, 1, 3]))
    length = int(rng.integers(1, 70)) * max(each, 1)
    count = rows * each or length
    x = bytes_at_random(rng, (rows, length))
    if rng.random() < 0.2:
        x[:] = x[:, :1]
    factors, shifts = rng.normal(0, 1, count), rng.normal(0, 1, count)
    scale, out = 10 ** rng.uniform(-3, -0.5), 10 ** rng.uniform(-2.5, -1)
    zeros = int(rng.integers(0, 256)), int(rng.integers(0, 256))
    how = (each, bool(rng.random() < 0.7), 10.0 ** rng.uniform(-8, -3), scale, zeros[0], out, zeros[1])
    layer = Normalize("normalize", ("x",), "y", rows, length, factors, shifts, *how)
    return Case(layer, (x,), (rows, length))


def arg(rng: Rng) -> Case:
    shape = tuple(int(v) for v in (rng.integers(1, 4), rng.integers(1, 60), rng.integers(1, 6)))
    how = str(rng.choice(["max", "min"])), bool(rng.random() < 0.3)
    if rng.random() < 0.3:  # indices of two bytes
        shape = shape[0], 300 * shape[1] % 907 + 2, shape[2]
        layer = Arg("arg", ("x",), "y", shape, *how, words=True)
        return Case(layer, (bytes_at_random(rng, shape),), (shape[0], shape[2], 2))
    layer = Arg("arg", ("x",), "y", shape, *how)  # type: ignore[arg-type]
    return Case(layer, (bytes_at_random(rng, shape),), (shape[0], shape[2]))


def forest(rng: Rng) -> Case:
    features, targets, wide = int(rng.integers(1, 6)), int(rng.integers(1, 4)), bool(rng.random() < 0.4)
    nodes: list[Branch | Leaf] = []

    def grown(depth: int) -> int:
        at = len(nodes)
        nodes.append(Leaf(()))
        if depth and rng.random() < 0.8:
            cut = int(rng.integers(0, 40000 if wide else 256))
            low, high = grown(depth - 1), grown(depth - 1)
            nodes[at] = Branch(int(rng.integers(features)), cut, low, high)
        else:
            count = int(rng.integers(0, 3))
            nodes[at] = Leaf(
                tuple((int(rng.integers(targets)), int(rng.integers(-(1 << 24), 1 << 24))) for _ in range(count))
            )
        return at

    roots = tuple(grown(int(rng.integers(0, 6))) for _ in range(int(rng.integers(1, 5))))
    base = tuple(int(v) for v in rng.integers(-(1 << 20), 1 << 20, targets))
    x = bytes_at_random(rng, (features * (2 if wide else 1),))
    return Case(Trees("forest", ("x",), "y", tuple(nodes), roots, base, wide), (x,), (4 * targets,))


def asymmetric(rng: Rng) -> Case:
    """A layer whose weights have a zero point of their own."""
    kinds = (dense, conv, depthwise, many_channels, wide_depthwise, one_position, few_channels)
    case = kinds[int(rng.integers(len(kinds)))](rng)
    layer, own = case.layer, int(rng.choice([0, 255, int(rng.integers(0, 256))]))
    assert isinstance(layer, Dot | Depthwise)
    requant = requant_for(rng, layer.weights, layer.bias, layer.zero, own)
    return replace(case, layer=replace(layer, weight_zero=own, requant=requant))


def softmax_as_litert(rng: Rng) -> Case:
    rows, length = int(rng.integers(1, 4)), int(rng.choice([1, 2, 10, int(rng.integers(3, 300))]))
    layer = DoubledSoftmax("softmax", ("x",), "y", rows, length, float(10 ** rng.uniform(-3, 0.3)))
    return Case(layer, (bytes_at_random(rng, (rows, length)),), (rows, length))


def pair(rng: Rng) -> Case:
    """A maximum, minimum, quotient, power or comparison of two tensors, or of a tensor and a constant."""
    shape = tuple(int(v) for v in rng.integers(1, 7, 3))
    other = tuple(1 if rng.random() < 0.3 else side for side in shape)
    x, second = bytes_at_random(rng, shape), bytes_at_random(rng, other)
    constant = second if rng.random() < 0.3 else None
    zeros = int(rng.integers(0, 256)), int(rng.integers(0, 256))
    zero = int(rng.integers(0, 256))
    scales = tuple(float(v) for v in 10 ** rng.uniform(-2.5, -1, 2))
    operation = str(rng.choice(["max", "min", "div", "pow", "greater", "greater_equal", "less", "less_equal", "equal"]))
    names = ("x",) if constant is not None else ("x", "z")
    at = (operation, names, "y", operation, shape, other)
    layer: Layer
    if operation in ("max", "min"):
        factors, requant = sum_factors((scales[0] * 20, scales[1] * 20), zeros, zero, 0, 255, "extreme")
        layer = Extreme(*at, constant, zeros, factors, requant)
    elif operation == "div":
        low, high = clamp_at_random(rng, zero)
        factor, requant = quotient_factor(10 ** rng.uniform(-1, 3), zero, low, high, "quotient")
        layer = Quotient(*at, constant, zeros, factor, requant)
    elif operation == "pow":
        out = 10 ** rng.uniform(-2.5, -0.5)
        layer = Power(*at, constant, (*scales, float(out)), (0, zeros[1], int(rng.choice([0, 0, zero]))))
    elif constant is None:
        layer = Compare(*at, None, **compare_tensors(operation, scales, zeros))
    else:
        numbers = rng.normal(0, 100 * scales[0], other)
        constant, bounds = compare_constant(operation, numbers, scales[0], zeros[0])
        layer = Compare(*at, constant, **bounds)
    return Case(layer, (x,) if constant is not None else (x, second), shape)


def chosen(rng: Rng) -> Case:
    """A choice by a mask; each operand may be constant or broadcast, and have its own grid."""
    shape = tuple(int(v) for v in rng.integers(1, 6, int(rng.integers(1, 5))))
    sides = [tuple(1 if rng.random() < 0.3 else side for side in shape) for _ in range(3)]
    operands = [bytes_at_random(rng, side) for side in sides]
    operands[0] = (operands[0] > 127).astype(np.uint8)
    fixed = [rng.random() < 0.25 for _ in range(3)]
    fixed[int(rng.integers(3))] = False
    constants = tuple(x if is_fixed else None for x, is_fixed in zip(operands, fixed, strict=True))
    own = [[step if n > 1 else 0 for n, step in zip(side, strides(side), strict=True)] for side in sides]
    axes = tuple(Axis(n, tuple(steps)) for n, *steps in zip(shape, *own, strides(shape), strict=True))
    tables = tuple(
        bytes_at_random(rng, (256,)) if not is_fixed and rng.random() < 0.4 else None for is_fixed in fixed[1:]
    )
    inputs = tuple(x for x, is_fixed in zip(operands, fixed, strict=True) if not is_fixed)
    names = tuple(f"x{k}" for k in range(len(inputs)))
    return Case(Select("select", names, "y", shape, axes, constants, tables), inputs, shape)  # type: ignore[arg-type]


def norm(rng: Rng) -> Case:
    shape = tuple(int(v) for v in (rng.integers(1, 4), rng.integers(1, 60), rng.integers(1, 6)))
    operation = str(rng.choice(["l1", "square", "l2", "logsum", "logsumexp"]))
    scale, out = float(10 ** rng.uniform(-2.5, -1)), float(10 ** rng.uniform(-2, -0.5))
    zeros = int(rng.integers(0, 256)), int(rng.integers(0, 256))
    layer = Norm("norm", ("x",), "y", shape, operation, scale, zeros[0], out, zeros[1])  # type: ignore[arg-type]
    if operation in ("l1", "square"):
        requant = choose(255 / layer.most * 10 ** rng.uniform(-0.3, 1), layer.most, zeros[1])
        layer = replace(layer, requant=requant)
    return Case(layer, (bytes_at_random(rng, shape),), (shape[0], shape[2]))


def along_an_axis(rng: Rng) -> Case:
    """TopK, CumSum, Gather or OneHot."""
    shape = tuple(int(v) for v in (rng.integers(1, 4), rng.integers(1, 40), rng.integers(1, 6)))
    outer, length, inner = shape
    x, which = bytes_at_random(rng, shape), int(rng.integers(4))
    if which == 0:
        k = int(rng.integers(1, min(length, 9) + 1))
        how = k, bool(rng.random() < 0.5), bool(rng.random() < 0.5)
        words = how[2] and rng.random() < 0.5
        out = (outer, k, inner, 2) if words else (outer, k, inner)
        return Case(TopK("greatest", ("x",), "y", shape, *how, words), (x,), out)  # type: ignore[arg-type]
    if which == 1:
        how = bool(rng.random() < 0.5), bool(rng.random() < 0.5)
        requant = choose(10 ** rng.uniform(-1, 0.5) / length, 255 * length, int(rng.integers(0, 256)))
        zero = int(rng.integers(0, 256))
        layer: Layer = RunningSum("running", ("x",), "y", shape, *how, zero, requant)  # type: ignore[arg-type]
        return Case(layer, (x,), shape)
    count, zero = int(rng.integers(1, 7)), int(rng.choice([0, 0, 128]))
    if which == 2:
        ids = bytes_at_random(rng, (count,)) if rng.random() < 0.3 else rng.integers(0, length, count).astype(np.uint8)
        table = x if rng.random() < 0.5 else None
        names = ("i",) if table is not None else ("x", "i")
        words = rng.random() < 0.3
        if words:
            zero = int(rng.choice([0, 32768]))
            ids = two_bytes(rng.integers(-length if zero else 0, length + 300, count) + zero)
        layer = Take("take", names, "y", shape, count, table, zero, words)  # type: ignore[arg-type]
        return Case(layer, (ids,) if table is not None else (x, ids), (outer, count, inner))
    ids = rng.integers(0, length + 2, (outer, inner)).astype(np.uint8)
    off, on = (int(v) for v in rng.integers(0, 256, 2))
    layer = OneHot("ones", ("x",), "y", outer, length, inner, off, on, zero)
    return Case(layer, (ids,), (outer, length, inner))


def interpolated(rng: Rng) -> Case:
    shape = tuple(int(v) for v in rng.integers(1, 7, 3))
    places = [rng.uniform(-0.5, n, int(rng.integers(1, 9))) for n in shape[:2]]
    layer = Interpolate("interpolate", ("x",), "y", shape, *places, True)
    return Case(layer, (bytes_at_random(rng, shape),), (len(places[0]), len(places[1]), shape[2]))


def of_sixteen_bits(rng: Rng) -> Case:
    """Tensors of words."""
    kinds = (*[random_layers_16.others] * 3, random_layers_16.moved, random_layers_16.reduction)
    kinds += (random_layers_16.recurrent, random_layers_16.product, random_layers_16.normalization)
    kind = int(rng.integers(len(kinds) + 4))
    if kind < len(kinds):
        return Case(*kinds[kind](rng), 2)
    h, w = (int(v) for v in rng.integers(1, 7, 2))
    window = Window((1, 1)) if rng.random() < 0.3 else window_at_random(rng, h, w, 4)
    make = random_layers_16.pool if kind == len(kinds) else random_layers_16.dot
    return Case(*make(rng, window, h, w), 2)


KINDS: tuple[Callable[[Rng], Case], ...] = (
    dense,
    conv,
    conv,
    depthwise,
    pool,
    reduce,
    binary,
    lookup,
    transpose,
    concatenation,
    softmax,
    recurrent,
    bordered_copy,
    rounding_twice,
    rounding_twice,
    kept,
    forest,
    product,
    normalization,
    arg,
    asymmetric,
    softmax_as_litert,
    pair,
    pair,
    chosen,
    norm,
    along_an_axis,
    along_an_axis,
    interpolated,
    of_sixteen_bits,
    of_sixteen_bits,
    packed,
)


def large_cases() -> list[Case]:
    """Layers with the largest kernels, whose loops must stay within the range of a jump."""
    rng = np.random.default_rng(5)

    def dot(shape: tuple[int, ...], n: int, window: Window, groups: int = 1) -> Case:
        c = shape[-1]
        weights = weights_at_random(rng, (n, *window.kernel, c // groups))
        bias, zero = rng.integers(-5000, 5000, n), 77
        requant = requant_for(rng, weights, bias, zero)
        layer = Dot("dot", ("x",), "y", shape, window, groups, weights, bias, zero, requant)
        out = (*window.output(*as_image(shape)[:2]), n) if len(shape) == 3 else (n,)
        return Case(layer, (bytes_at_random(rng, shape),), out, window.pads, zero)

    def deep(shape: tuple[int, int, int], window: Window, each: int = 1) -> Case:
        n = shape[2] * each
        weights, bias = weights_at_random(rng, (n, *window.kernel)), rng.integers(-5000, 5000, n)
        layer = Depthwise("deep", ("x",), "y", shape, window, weights, bias, 9, requant_for(rng, weights, bias, 9))
        return Case(layer, (bytes_at_random(rng, shape),), (*window.output(*shape[:2]), n), window.pads, 9)

    made = [dot((k,), 3, Window((1, 1))) for k in (36, 37, 61, 97, 127, 509, 784)]
    made += [dot((6, 6, c), 3, Window((3, 3), pads=(1, 1, 1, 1))) for c in (3, 4, 5, 11, 12, 13, 21, 64)]
    made += [dot((9, 9, 2), 3, Window((5, 5), (2, 2))), dot((8, 8, 36), 4, Window((3, 3), (1, 1), (2, 2)), 2)]
    made += [deep((12, 12, 5), Window((3, 3), pads=(1, 1, 1, 1))), deep((12, 12, 40), Window((3, 3)), 2)]
    made += [deep((12, 12, 3), Window((5, 5))), deep((1, 80, 7), Window((1, 32)))]
    x = bytes_at_random(rng, (10, 10, 7))
    made.append(Case(MaxPool("max", ("x",), "y", x.shape, Window((6, 6))), (x,), (5, 5, 7)))
    requant = choose(1 / 49, 255 * 49, 3)
    made.append(Case(AveragePool("mean", ("x",), "y", x.shape, Window((7, 7)), 3, requant), (x,), (4, 4, 7)))
    for log in (False, True):
        layer = Softmax("softmax", ("x",), "y", 2, 1000, 0.05, log, 1 / 8, 200)
        made.append(Case(layer, (bytes_at_random(rng, (2, 1000)),), (2, 1000)))
    for kind, gates in ((Lstm, 4), (Gru, 3)):
        rows = rows_at_random(rng, gates * 37, 61, 5), rows_at_random(rng, gates * 37, 37, 128)
        layer = kind("recurrent", ("x",), "y", 2, 37, *rows, False, True, False)  # type: ignore[assignment]
        made.append(Case(layer, (bytes_at_random(rng, (2, 61)),), (2, 37)))
    return [*made, *(Case(*of_words, 2) for of_words in random_layers_16.large(rng))]


def cases(seed: int, count: int) -> Iterator[Case]:
    rng = np.random.default_rng(seed)
    for n in range(count):
        yield KINDS[n % len(KINDS)](rng)


VIPER_KINDS = (
    *(pair, chosen, norm, along_an_axis, interpolated, normalization, arg, product, softmax, transpose),
    *(of_sixteen_bits, of_sixteen_bits, packed),
)
"""Kinds of layers that run in viper everywhere, and whose loops, tables and divisions differ from the others'."""


def viper_cases(seed: int, count: int) -> Iterator[Case]:
    """Layers of those kinds."""
    rng = np.random.default_rng([seed, 9])
    for n in range(count):
        yield VIPER_KINDS[n % len(VIPER_KINDS)](rng)


def word_cases(seed: int, count: int) -> Iterator[Case]:
    """Layers on 16-bit integers."""
    rng = np.random.default_rng([seed, 16])
    for _ in range(count):
        yield of_sixteen_bits(rng)


def wide_depthwise(rng: Rng) -> Case:
    """A depthwise layer with as many channels as assembly requires, and more columns than it processes at once."""
    h, w = (int(v) for v in rng.integers(1, 9, 2))
    c = int(rng.integers(4, 14))
    window = window_at_random(rng, h, w, 7)
    weights = weights_at_random(rng, (c, *window.kernel))
    bias, zero = rng.integers(-5000, 5000, c), int(rng.integers(0, 256))
    layer = Depthwise(
        "depthwise", ("x",), "y", (h, w, c), window, weights, bias, zero, requant_for(rng, weights, bias, zero)
    )
    return Case(layer, (bytes_at_random(rng, (h, w, c)),), (*window.output(h, w), c), window.pads, zero)


def few_channels(rng: Rng) -> Case:
    """A depthwise layer of fewer than four channels, with windows of three rows that move by one."""
    kernel, h, w, c = (3, int(rng.integers(1, 10))), *(int(v) for v in rng.integers(1, 10, 2)), int(rng.integers(1, 4))
    pads = tuple(int(v) for v in rng.integers(0, (3, kernel[1], 3, kernel[1])))
    h, w = max(h, 3 - pads[0] - pads[2]), max(w, kernel[1] - pads[1] - pads[3])
    window = Window(kernel, pads=pads)  # type: ignore[arg-type]
    weights = weights_at_random(rng, (c, *window.kernel))
    bias, zero = rng.integers(-5000, 5000, c), int(rng.integers(0, 256))
    requant = requant_for(rng, weights, bias, zero)
    layer = Depthwise("depthwise", ("x",), "y", (h, w, c), window, weights, bias, zero, requant)
    return Case(layer, (bytes_at_random(rng, (h, w, c)),), (*window.output(h, w), c), window.pads, zero)


def one_position(rng: Rng) -> Case:
    """A depthwise layer whose window is the whole image, or a dense layer of few channels and whole words, as streams
    and classifiers have them."""
    if rng.random() < 0.3:
        n = int(rng.integers(1, 5))
        k = 4 * int(rng.integers(1, 80)) + 1024 * (n > 2)
        weights, bias, zero = weights_at_random(rng, (n, 1, 1, k)), rng.integers(-5000, 5000, n), int(rng.integers(256))
        requant = requant_for(rng, weights, bias, zero)
        layer: Dot | Depthwise = Dot("dense", ("x",), "y", (k,), Window((1, 1)), 1, weights, bias, zero, requant)
        return Case(layer, (bytes_at_random(rng, (k,)),), (n,))
    shapes = (int(rng.integers(1, 24)), 1), (1, int(rng.integers(1, 24))), (int(rng.integers(1, 7)), 3)
    kernel, c = shapes[int(rng.integers(3))], int(rng.integers(4, 14))
    pads = (1, 0, 0, 1) if min(kernel) > 1 and rng.random() < 0.3 else (0, 0, 0, 0)
    window = Window(kernel, dilations=tuple(int(v) for v in rng.integers(1, 3, 2)), pads=pads)  # type: ignore[arg-type]
    h, w = window.reach[0] - pads[0] - pads[2], window.reach[1] - pads[1] - pads[3]
    weights = weights_at_random(rng, (c, *kernel))
    bias, zero = rng.integers(-5000, 5000, c), int(rng.integers(0, 256))
    requant = requant_for(rng, weights, bias, zero)
    layer = Depthwise("depthwise", ("x",), "y", (h, w, c), window, weights, bias, zero, requant)
    return Case(layer, (bytes_at_random(rng, (h, w, c)),), (1, 1, c), pads, zero)


def many_channels(rng: Rng) -> Case:
    """A convolution of whole words, with many channels, on an image."""
    h, w = (int(v) for v in rng.integers(1, 7, 2))
    c, n = 4 * int(rng.integers(1, 9)), int(rng.integers(1, 14))
    window = window_at_random(rng, h, w, 3)
    weights = weights_at_random(rng, (n, *window.kernel, c))
    bias, zero = rng.integers(-5000, 5000, n), int(rng.integers(0, 256))
    layer = Dot("conv", ("x",), "y", (h, w, c), window, 1, weights, bias, zero, requant_for(rng, weights, bias, zero))
    return Case(layer, (bytes_at_random(rng, (h, w, c)),), (*window.output(h, w), n), window.pads, zero)


ASSEMBLY_KINDS = (
    *(dense, conv, many_channels, wide_depthwise, one_position, depthwise, recurrent, binary, pool, reduce),
    *(asymmetric, rounding_twice, rounding_twice, bordered_copy, forest, joined, concatenation, short_gru),
    few_channels,
)
"""Kinds of layers that some instruction set has kernels in assembly for."""


def assembly_cases(seed: int, count: int) -> Iterator[Case]:
    """Layers of those kinds."""
    rng = np.random.default_rng([seed, 20])
    for n in range(count):
        yield ASSEMBLY_KINDS[n % len(ASSEMBLY_KINDS)](rng)


def border_view(shape: tuple[int, ...], pads: tuple[int, int, int, int]) -> tuple[View, int]:
    """The view of a tensor with a border, and the size of its buffer."""
    h, w, c = as_image(shape)
    top, left, bottom, right = pads
    pitch = (left + w + right) * c
    return View((h, w, c), pitch, top * pitch + left * c), (top + h + bottom) * pitch


def program_of(batch: list[Case]) -> tuple[Program, bytes, list[tuple[int, Array]]]:
    """(a program that runs every case, its arena with the inputs in place, the offset of each output)."""
    constants, steps, arena = Constants(False), [], bytearray()
    due: list[tuple[int, Array]] = []
    for case in batch:
        views, places = [], {}
        for k, x in enumerate(case.inputs):
            view, size = border_view(x.shape, case.pads if k == 0 else (0, 0, 0, 0))
            block = np.full(size, 0xA5, np.uint8)
            for row in range(view.shape[0]):
                at = view.origin + row * view.pitch
                block[at : at + view.row] = x.reshape(-1)[row * view.row : (row + 1) * view.row]
            places[f"i{k}"] = len(arena)
            arena += block.tobytes()
            views.append(view)
            if k == 0 and any(case.pads):
                border = Border("border", ("x",), "x", view, size, case.fill, case.width)
                at = places["i0"]
                steps.append(Step(border, (view,), view, {"i0": at, "o": at, "wo": 0, "to": 0}))
        arena += bytes(-len(arena) % WORD) if isinstance(case.layer, Trees) else b""
        places["o"] = len(arena)
        arena += bytes([0x5A]) * prod(case.shape)
        places["st"] = len(arena)
        arena += bytes(case.layer.state)
        places["zo"] = len(arena)
        arena += bytes(case.layer.scratch)
        places["zs"] = len(arena)
        arena += bytes([0xC3]) * scratch(case.layer, ALL)
        places["wo"], places["to"] = constants.add(case.layer)
        steps.append(Step(case.layer, tuple(views), dense_view(case.shape), places))
        due.append((places["o"], case.expected))
    words, weights = tuple(constants.words), constants.weights
    return Program("layers", False, tuple(steps), (), (), len(arena), weights, words), bytes(arena), due
