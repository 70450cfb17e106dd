"""Random layers of 16-bit integers, for random_layers.py."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from emberlet.micro.builder.kernels.arg import Arg, two_bytes
from emberlet.micro.builder.kernels.constant import Constant
from emberlet.micro.builder.kernels.lanes import Take
from emberlet.micro.builder.kernels.layer import Array, Layer
from emberlet.micro.builder.kernels.move import Copy, Move, Part, strides
from emberlet.micro.builder.kernels.nest import Axis
from emberlet.micro.builder.kernels.sixteen.dot import Dot16
from emberlet.micro.builder.kernels.sixteen.maps import PiecewiseLinear16, Rescale16, knots_of
from emberlet.micro.builder.kernels.sixteen.normalize import Normalize16
from emberlet.micro.builder.kernels.sixteen.pair import Pair16
from emberlet.micro.builder.kernels.sixteen.pool import Pool16
from emberlet.micro.builder.kernels.sixteen.product import Product16
from emberlet.micro.builder.kernels.sixteen.recurrent import GatedGru16, Gru16, Lstm16, Rnn16, Sums16, sums_of
from emberlet.micro.builder.kernels.sixteen.softmax import LogSoftmax16, Softmax16
from emberlet.micro.builder.kernels.state import Keep
from emberlet.micro.builder.kernels.window import Window
from emberlet.micro.builder.quantization.sixteen import MOST, difference_requant, sum_requant, to_bytes

Rng = np.random.Generator

Made = tuple[Layer, tuple[Array, ...], tuple[int, ...], tuple[int, int, int, int], float]
"""A layer, its inputs, the shape of its output, and the border of its first input with what that holds."""

NO_PADS = (0, 0, 0, 0)


def words_at_random(rng: Rng, shape: tuple[int, ...]) -> Array:
    """Random 16-bit words as bytes; sometimes only the extremes."""
    if rng.random() < 0.2:
        return to_bytes(rng.choice(np.array([0, MOST]), shape))
    return to_bytes(rng.integers(0, MOST + 1, shape))


def _zero(rng: Rng) -> int:
    return int(rng.choice([0, 32768, MOST, int(rng.integers(0, MOST + 1))]))


def _limits(rng: Rng, zero: int) -> tuple[int, int]:
    return (zero, MOST) if rng.random() < 0.3 else (0, MOST) if rng.random() < 0.7 else (0, min(MOST, zero + 9000))


def _image(rng: Rng) -> tuple[int, int, int]:
    h, w, c = (int(v) for v in rng.integers(1, 7, 3))
    return h, w, c


def dot(rng: Rng, window: Window, h: int, w: int, each: int = 0) -> Made:
    """A dense layer or a convolution; one group for each channel is a depthwise one. each: channels of a group."""
    groups = int(rng.choice([1, 1, 2, 4]))
    few = int(rng.integers(1, 40 if window.kernel == (1, 1) else 6)) if rng.random() < 0.8 else 1
    each = each or few
    c, n, middle = groups * each, groups * int(rng.integers(1, 4)), int(rng.choice([128, 128, 0, 130]))
    weights = rng.integers(1, 256, (n, *window.kernel, each)).astype(np.uint8)
    x_zero, out_zero = _zero(rng), _zero(rng)
    size = np.abs(weights.reshape(n, -1).astype(np.int64) - middle).sum(1)
    bias = rng.integers(-(10**8), 10**8, n)
    reach = size * MOST + np.abs(bias)
    ratio = MOST / reach * 10.0 ** rng.uniform(-1, 1)  # of a step of the sums to one of the output
    requant = sum_requant(ratio, reach, out_zero, *_limits(rng, out_zero))
    if rng.random() < 0.3:
        requant = replace(requant, rests=tuple(int(v) for v in rng.integers(0, 8, n)))
    at = ("dot of 16 bits", ("x",), "y", (h, w, 2 * c), window, groups)
    layer = Dot16(*at, weights, bias, x_zero, requant, middle)
    layer.check()
    return layer, (words_at_random(rng, (h, w, c)),), (*window.output(h, w), 2 * n), window.pads, x_zero


def _sums(rng: Rng, rows: int, k: int, zero: int) -> Sums16:
    weights, bias = rng.integers(1, 256, (rows, 1, 1, k)).astype(np.uint8), rng.integers(-(10**7), 10**7, rows)
    reach = np.abs(weights.reshape(rows, -1).astype(np.int64) - 128).sum(1) * MOST + np.abs(bias)
    ratio = np.minimum(2.0**23 * 10.0 ** rng.uniform(-1, 0.5) / reach, 127)  # finer outputs are refused
    return Sums16("sums", ("x",), "y", (2 * k,), Window((1, 1)), 1, weights, bias, zero, sums_of(ratio, reach), 128)


def recurrent(rng: Rng, units: int = 0) -> Made:
    steps, k, hidden = int(rng.integers(1, 5)), int(rng.integers(1, 12)), units or int(rng.integers(1, 7))
    kind, gates = ((Lstm16, 4), (Gru16, 3), (GatedGru16, 3), (Rnn16, 1))[int(rng.integers(4))]
    zero, more = 32768, list[Any]()
    if kind is GatedGru16:
        more = [_sums(rng, hidden, hidden, zero)]
    elif kind is Rnn16 and rng.random() < 0.5:
        zero = _zero(rng)
        more = [True, zero]
    both = _sums(rng, gates * hidden, k, _zero(rng)), _sums(rng, (gates - (kind is GatedGru16)) * hidden, hidden, zero)
    how = bool(rng.random() < 0.3), bool(rng.random() < 0.5), False
    layer = kind("recurrent of 16 bits", ("x",), "y", steps, hidden, *both, *how, *more)
    return layer, (words_at_random(rng, (steps, k)),), (steps, 2 * hidden) if layer.sequence else (2 * hidden,), *NONE


def product(rng: Rng, depth: int = 0) -> Made:
    """A product of two tensors, each possibly transposed."""
    rows, columns, count = (int(v) for v in rng.integers(1, 5, 3))
    depth = depth or int(rng.choice([rng.integers(1, 9), rng.integers(1, 100)]))
    first = (depth, 1) if rng.random() < 0.5 else (1, rows)
    second = (columns, 1) if rng.random() < 0.5 else (1, depth)
    batches = ((count, rows * depth, 0 if rng.random() < 0.3 else depth * columns),) if count > 1 else ()
    drop, zeros, zero = Product16.dropped(depth), (_zero(rng), _zero(rng)), _zero(rng)
    reach = depth * MOST * MOST >> drop
    requant = sum_requant(MOST / reach * 10.0 ** rng.uniform(0, 2), reach, zero, *_limits(rng, zero))
    x, z = words_at_random(rng, (count, rows * depth)), words_at_random(rng, (count, depth * columns))
    at = ("product of 16 bits", ("x", "z"), "y", rows, depth, columns, first, second, batches)
    return Product16(*at, zeros, drop, requant), (x, z), (count, rows, 2 * columns), *NONE


def normalization(rng: Rng, stretch: int = 0) -> Made:
    rows, each = int(rng.integers(1, 5)), int(rng.choice([0, 0, 1, 3]))
    length = (stretch or int(rng.integers(1, 70))) * max(each, 1)
    count = rows * each or length
    x = words_at_random(rng, (rows, length))
    near_ = rng.random()
    if near_ < 0.4:  # numbers close to each other, or equal
        x = to_bytes(rng.integers(0, MOST - 300) + rng.integers(0, int(10 ** (5 * near_)) + 1, (rows, length)))
    factors, shifts = rng.normal(0, 1, count), rng.normal(0, 1, count)
    scale, out = 10 ** rng.uniform(-5, -2), 10 ** rng.uniform(-5, -3)
    how = (each, bool(rng.random() < 0.7), 10.0 ** rng.uniform(-8, -3), scale, _zero(rng), out, _zero(rng))
    layer = Normalize16("normalization of 16 bits", ("x",), "y", rows, length, factors, shifts, *how)
    layer.check()
    return layer, (x,), (rows, 2 * length), *NONE


def pool(rng: Rng, window: Window, h: int, w: int) -> Made:
    c, zero = int(rng.integers(1, 7)), _zero(rng)
    x, out = words_at_random(rng, (h, w, c)), (*window.output(h, w), 2 * c)
    at = ("pool of 16 bits", ("x",), "y", (h, w, 2 * c), window)
    kind = str(rng.choice(["max", "sum"]))
    if kind == "max":
        return Pool16(*at, kind), (x,), out, window.pads, 0
    taps = prod(window.kernel)
    counts = rng.integers(1, taps + 1, prod(out[:2])) if rng.random() < 0.5 else np.array([taps])
    requant = sum_requant(10.0 ** rng.uniform(-1, 2) / counts, MOST * taps, _zero(rng))
    return Pool16(*at, kind, False, zero, requant), (x,), out, window.pads, zero


def reduction(rng: Rng) -> Made:
    """Along the middle of three axes."""
    outer, length, inner = (int(v) for v in (rng.integers(1, 4), rng.integers(1, 60), rng.integers(1, 6)))
    kind, zero = str(rng.choice(["max", "min", "sum"])), _zero(rng)
    window = Window((length, 1), (length, 1))
    at = ("reduction of 16 bits", ("x",), "y", (outer * length, 1, 2 * inner), window, kind, True)
    layer = Pool16(*at)
    if kind == "sum":
        layer = Pool16(*at, zero, sum_requant(10.0 ** rng.uniform(-1, 1) / length, length * MOST, _zero(rng)))
    return layer, (words_at_random(rng, (outer, length, inner)),), (outer, 2 * inner), *NONE


def moved(rng: Rng) -> Made:
    """Rows that are joined, picked by an index, constant or kept; tensors with a border."""
    rows, width, more = (int(v) for v in rng.integers(1, 9, 3))
    x, z = words_at_random(rng, (rows, width)), words_at_random(rng, (rows, more))
    kind = str(rng.choice(["concat", "take", "constant", "keep", "copy"]))
    if kind == "concat":
        total = width + more + 1
        both = ((0, 2 * width), (2 * width, 2 * more))
        parts = tuple(Part(0, to, (Axis(rows, (n, 2 * total)), Axis(n, (1, 1)))) for to, n in both)
        fill = float(rng.integers(0, MOST + 1))
        return Move("joined", ("x", "z"), "y", (rows, 2 * total), parts, fill, 2), (x, z), (rows, 2 * total), *NONE
    if kind == "take":
        count, is_word = int(rng.integers(1, 9)), bool(rng.random() < 0.5)
        zero = int(rng.choice([0, 32768])) if is_word else 0
        ids = rng.integers(-rows if zero else 0, rows + 3, count) + zero
        table = x.reshape(1, rows, 2 * width) if rng.random() < 0.5 else None
        inputs = (two_bytes(ids) if is_word else ids.astype(np.uint8),)
        take = Take("take", ("x", "i")[table is not None :], "y", (1, rows, 2 * width), count, table, zero, is_word)
        return take, inputs if table is not None else (x, *inputs), (count, 2 * width), *NONE
    if kind == "constant":
        return Constant("constant", (), "y", x), (), x.shape, *NONE
    if kind == "keep":
        return Keep("keep", ("x",), "y", x.shape), (x,), x.shape, *NONE
    pads = tuple(int(v) for v in rng.integers(0, 3, 4))
    image = words_at_random(rng, (rows, more, width))
    layer = Copy("copy", ("x",), "y", image.shape)
    return layer, (image,), image.shape, pads, float(rng.integers(0, MOST + 1))  # type: ignore[return-value]


def softmax(rng: Rng, length: int, log: bool) -> Made:
    scale, out, rows = 10.0 ** rng.uniform(-5, -2), 10.0 ** rng.uniform(-5, -2), int(rng.integers(1, 4))
    at = ("softmax of 16 bits", ("x",), "y", rows, length, scale)
    layer: Softmax16 | LogSoftmax16
    if log:
        layer = LogSoftmax16(*at, difference_requant((scale / out,), (0,), _zero(rng)), out)
    else:
        layer = Softmax16(*at, difference_requant((2.0**-16 / 10.0 ** rng.uniform(-5, -3.5),), (0,), _zero(rng)))
    layer.check()
    return layer, (words_at_random(rng, (rows, length)),), (rows, 2 * length), *NONE


def large(rng: Rng) -> list[Made]:
    """Long rows and sums, of which kernels carry parts, and unrolled loops."""
    made = [dot(rng, Window((1, 1)), 1, 1, k) for k in (37, 128, 509)]
    made += [dot(rng, Window((3, 3), pads=(1, 1, 1, 1)), 4, 4, k) for k in (11, 32)]
    made += [product(rng, k) for k in (32, 33, 500)] + [normalization(rng, k) for k in (32, 333, 1000)]
    return [*made, *(softmax(rng, 1000, log) for log in (False, True)), *(recurrent(rng, 20) for _ in range(4))]


def others(rng: Rng) -> Made:
    """Pairs, other grids, functions, softmax and transposition."""
    h, w, c = _image(rng)
    x, shape = words_at_random(rng, (h, w, c)), (h, w, 2 * c)
    kind = str(rng.choice(["pair", "pair", "rescale", "curve", "softmax", "logarithm", "arg", "move"]))
    if kind == "pair":
        zeros, zero = (_zero(rng), _zero(rng)), _zero(rng)
        operation = "mul" if rng.random() < 0.5 else "add"
        if operation == "mul":
            how = sum_requant(10.0 ** rng.uniform(-6, -4), MOST * MOST, zero, *_limits(rng, zero))
        else:
            ratios = rng.uniform(0.01, 3), float(rng.choice([-1, 1])) * rng.uniform(0.01, 3)
            how = difference_requant(ratios, zeros, zero, *_limits(rng, zero))  # type: ignore[assignment]
        other = (h if rng.random() < 0.5 else 1, w if rng.random() < 0.5 else 1, c if rng.random() < 0.5 else 1)
        b = words_at_random(rng, other)
        constant = rng.integers(0, MOST + 1, other) if rng.random() < 0.4 else None
        at = ("pair of 16 bits", ("x",) if constant is not None else ("x", "z"), "y")
        wide = (*other[:2], 2 * other[2])
        return (
            Pair16(*at, operation, shape, wide, constant, zeros, how),
            (x,) if constant is not None else (x, b),
            shape,
            *NONE,
        )
    if kind == "rescale":
        wide = (bool(rng.random() < 0.7), bool(rng.random() < 0.7))
        zero = int(rng.integers(0, MOST + 1 if wide[1] else 256))
        how = difference_requant(
            (10.0 ** rng.uniform(-3, 1),), (_zero(rng) >> (0 if wide[0] else 8),), zero, 0, [255, MOST][wide[1]]
        )
        source = x if wide[0] else rng.integers(0, 256, (h, w, c)).astype(np.uint8)
        out = (h, w, 2 * c) if wide[1] else (h, w, c)
        return Rescale16("rescale of 16 bits", ("x",), "y", (h, w, c), wide, how), (source,), out, *NONE
    if kind == "curve":
        bend, at_ = 10.0 ** rng.uniform(-4.5, -3), rng.uniform(0, MOST)
        values = np.rint(MOST / (1 + np.exp(-bend * (np.arange(MOST + 1) - at_)))).astype(np.int64)
        return PiecewiseLinear16("curve of 16 bits", ("x",), "y", (h, w, c), knots_of(values)), (x,), shape, *NONE
    if kind in ("softmax", "logarithm"):
        return softmax(rng, int(rng.integers(1, 40)), kind == "logarithm")
    if kind == "arg":
        which, last, many = str(rng.choice(["max", "min"])), bool(rng.random() < 0.3), bool(rng.random() < 0.3)
        arg = Arg("arg of 16 bits", ("x",), "y", (h, w, c), which, last, many, 2)
        return arg, (words_at_random(rng, (h, w, c)),), (h, c, 2) if many else (h, c), *NONE
    before, after = strides((h, w, c)), strides((c, h, w + 2))
    axes = [Axis(n, (2 * a, 2 * b)) for n, a, b in zip((h, w, c), before, (after[1], 1, after[0]), strict=True)]
    part = Part(0, 2, (*axes, Axis(2, (1, 1))))
    out = (c, h, 2 * (w + 2))
    return Move("move of 16 bits", ("x",), "y", out, (part,), float(rng.integers(0, MOST + 1)), 2), (x,), out, *NONE


NONE: tuple[tuple[int, int, int, int], float] = (NO_PADS, 0.0)
