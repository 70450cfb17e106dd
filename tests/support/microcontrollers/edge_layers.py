"""Layers whose sizes and constants lie at the limits of what their kernels choose by, with inputs for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from emberlet.micro.builder.kernels.arg import Arg
from emberlet.micro.builder.kernels.depthwise import Depthwise
from emberlet.micro.builder.kernels.dot import Dot
from emberlet.micro.builder.kernels.doubled_softmax import DoubledSoftmax
from emberlet.micro.builder.kernels.doubled_sum import DoubledSum
from emberlet.micro.builder.kernels.lanes import OneHot, Take, TopK
from emberlet.micro.builder.kernels.layer import Layer
from emberlet.micro.builder.kernels.move import Copy, Move, Part
from emberlet.micro.builder.kernels.nest import Axis
from emberlet.micro.builder.kernels.normalize import Normalize
from emberlet.micro.builder.kernels.norms import OPERATIONS, Norm
from emberlet.micro.builder.kernels.pool import MaxPool, Reduce
from emberlet.micro.builder.kernels.power import Power
from emberlet.micro.builder.kernels.product import Product
from emberlet.micro.builder.kernels.recurrent import Gru, Rnn
from emberlet.micro.builder.kernels.softmax import Softmax
from emberlet.micro.builder.kernels.window import Window
from emberlet.micro.builder.quantization.doubled import doubled
from emberlet.micro.builder.quantization.reference import Requant, choose, dot_bounds

from tools.microcontrollers import random_layers_16
from tools.microcontrollers.random_layers import (
    Case,
    bytes_at_random,
    requant_for,
    rows_at_random,
    weights_at_random,
)

Rng = np.random.Generator
X, Z = ("x",), ("x", "z")


# -- bytes ----------------------------------------------------------------------------------------------------


def dot(
    rng: Rng, shape: Sequence[int], n: int, window: Window | None = None, groups: int = 1, packed: bool = False
) -> Case:
    """shape: (height, width, channels)."""
    h, w, c = shape
    window = window or Window((1, 1))
    at = (n, *window.kernel, c // groups)
    weights = rng.integers(0, 16, at).astype(np.uint8) if packed else weights_at_random(rng, at)
    bias, zero, own = rng.integers(-5000, 5000, n), int(rng.integers(0, 256)), 7 if packed else 128
    requant = replace(requant_for(rng, weights, bias, zero, own), low=0, high=255)
    layer = Dot("dot", X, "y", (h, w, c), window, groups, weights, bias, zero, requant, own, packed)
    return Case(layer, (bytes_at_random(rng, (h, w, c)),), (*window.output(h, w), n), window.pads, zero)


def depthwise(rng: Rng, shape: Sequence[int], window: Window, each: int = 1) -> Case:
    h, w, c = shape
    weights, bias = weights_at_random(rng, (c * each, *window.kernel)), rng.integers(-5000, 5000, c * each)
    requant = replace(requant_for(rng, weights, bias, 9), low=0, high=255)
    layer = Depthwise("deep", X, "y", (h, w, c), window, weights, bias, 9, requant)
    return Case(layer, (bytes_at_random(rng, (h, w, c)),), (*window.output(h, w), c * each), window.pads, 9)


def dots() -> Iterator[Case]:
    rng = np.random.default_rng(51)
    for k in (1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 18, 19, 31, 32, 33, 35, 36, 37, 63, 64, 65, 72, 73):
        yield dot(rng, (1, 1, k), 1 + k % 5)
    for n in range(1, 11):
        yield dot(rng, (1, 3, 5), n)
        yield dot(rng, (2, 2, 8), n)
    for kernel in ((1, 2), (2, 1), (2, 2), (3, 3), (1, 9), (9, 1), (6, 6), (1, 36), (1, 37)):
        for c in (1, 3, 4):
            yield dot(rng, (kernel[0] + 1, kernel[1] + 2, c), 3, Window(kernel))
    for window in (
        Window((3, 3), (2, 1), (1, 2)),
        Window((3, 2), (1, 2), (2, 1), (1, 0, 2, 1)),
        Window((2, 2), (2, 2), (1, 1), (0, 1, 0, 0)),
        Window((2, 5), dilations=(2, 2)),
    ):
        yield dot(rng, (7, 9, 4), 2, window)
        yield dot(rng, (7, 9, 6), 4, window, 2)
        yield dot(rng, (7, 9, 6), 4, window, 2, packed=True)
    for groups in (7, 8, 9):
        yield dot(rng, (2, 2, 2 * groups), 2 * groups, Window((2, 2)), groups)
    for k in (1, 2, 15, 16, 17, 31, 32, 33, 48):
        yield dot(rng, (1, 2, k), 2, packed=True)
    for kernel in ((1, 3), (3, 1), (2, 3)):
        yield dot(rng, (4, 4, 3), 2, Window(kernel), packed=True)
        yield dot(rng, (4, 4, 3), 2, Window(kernel, dilations=(1, 1), strides=(2, 1)), packed=True)
    for zero, bias in ((0, 100), (255, -100), (3, 10**6)):  # biases that need no lift, or nothing else
        made = dot(rng, (1, 1, 4), 2)
        assert isinstance(made.layer, Dot)
        given = np.array([bias, bias + 1])
        requant = requant_for(rng, made.layer.weights, given, zero)
        yield replace(made, layer=replace(made.layer, zero=zero, bias=given, requant=requant), fill=zero)


def requantized() -> Iterator[Case]:
    """Every form of rescaling: with a split sum, clamped to other ranges, rounding once and twice, shifted left."""
    rng = np.random.default_rng(52)
    for ratio in (1e-6, 1e-4, 0.01, 0.2, 0.5, 0.9, 1.0, 2.0, 3.9):
        for low, high in ((0, 255), (0, 254), (1, 255), (0, 127), (60, 61)):
            made = dot(rng, (2, 1, 5), 3)
            deep = depthwise(rng, (2, 3, 4), Window((1, 2)))
            assert isinstance(made.layer, Dot) and isinstance(deep.layer, Depthwise)
            for case in (made, deep):
                layer = case.layer
                bound = np.maximum(*map(abs, dot_bounds(layer.weights, layer.bias, layer.zero)))  # type: ignore[attr-defined]
                scale = ratio * 255 / max(bound.max(), 1) if ratio < 0.5 else ratio
                scales = scale * np.linspace(0.2, 1, len(bound))
                if scale <= 256 / bound.max():
                    yield replace(case, layer=replace(layer, requant=choose(scales, bound, low, low, high)))  # type: ignore[call-arg]
                for twice in (False, True):
                    requant = doubled(scales, bound, low, low, high, twice=twice)
                    yield replace(case, layer=replace(layer, requant=requant))  # type: ignore[call-arg]


def deep() -> Iterator[Case]:
    rng = np.random.default_rng(53)
    for width in (1, 2, 3, 4, 5, 6, 8):
        for kernel in ((1, 1), (1, 5), (2, 5), (3, 2), (3, 3), (1, 10), (1, 11), (3, 7)):
            yield depthwise(rng, (kernel[0] + width % 2, kernel[1] + width - 1, 2), Window(kernel))
    for channels in (1364, 1365, 1366):  # the fourth column of the output is 4095 elements on
        yield depthwise(rng, (1, 4, channels), Window((1, 1)))
    for channels in (584, 585, 586):  # the last weight of the fourth column is
        yield depthwise(rng, (2, 4, channels), Window((2, 1)))
    for channels in range(1, 10):
        yield depthwise(rng, (4, 5, channels), Window((3, 3), (1, 2), (1, 1), (1, 1, 1, 1)))
        yield depthwise(rng, (5, 4, channels), Window((2, 2), (2, 1), (2, 2)), 1 + channels % 3)
    for taps in ((1, 16), (4, 4), (1, 17), (5, 5), (1, 25), (1, 26), (4, 8), (7, 7)):
        yield depthwise(rng, (taps[0], taps[1] + 2, 4), Window(taps))


def loops() -> Iterator[Case]:
    """Copies with every stride that a load's offset can or cannot hold."""
    rng = np.random.default_rng(54)
    for turns in range(1, 20):
        yield Case(Copy("copy", X, "y", (1, 1, turns)), (bytes_at_random(rng, (1, 1, turns)),), (1, 1, turns))
    for width in (2, 3, 4, 5, 6, 7, 8, 10, 11, 15, 16, 17, 31, 32, 33):
        for height in (2, 7, 8, 9):
            axes = (Axis(width, (1, height)), Axis(height, (width, 1)))
            layer = Move("transpose", X, "y", (width, height), (Part(0, 0, axes),))
            yield Case(layer, (bytes_at_random(rng, (height, width)),), (width, height))
    for back in (-1, -3):
        axes = (Axis(3, (7, 7)), Axis(7 // -back, (back, 1)))
        layer = Move("backwards", X, "y", (3, 7), (Part(6, 0, axes),), 5.0)
        yield Case(layer, (bytes_at_random(rng, (3, 7)),), (3, 7))
    for shape in ((1, 1, 1), (2, 1, 3), (3, 2, 1), (2, 5, 3)):
        for pads in ((0, 0, 0, 0), (1, 0, 0, 0), (0, 0, 2, 0), (0, 1, 0, 0), (0, 0, 0, 1), (2, 1, 1, 2)):
            yield Case(Copy("copy", X, "y", shape), (bytes_at_random(rng, shape),), shape, pads, 7)


def along() -> Iterator[Case]:
    """Reductions, pools, lanes and rows of lengths around the unrolled ones."""
    rng = np.random.default_rng(55)
    for length in (1, 2, 7, 8, 9, 14, 15, 16, 17, 18, 22, 23, 24, 32, 33):
        for outer, inner in ((1, 1), (2, 1), (1, 3), (2, 2)):
            x = bytes_at_random(rng, (outer, length, inner))
            requant = choose(0.7 / length, 255 * length, 9)
            how: tuple[tuple[str, Requant | None], ...] = (("sum", requant), ("max", None), ("min", None))
            operation, own = how[length % 3]
            layer: Layer = Reduce("reduce", X, "y", (outer, length, inner), operation, 3, own)
            yield Case(layer, (x,), (outer, inner))
            layer = Arg("arg", X, "y", (outer, length, inner), ("max", "min")[length % 2], outer == 1, inner == 1)
            yield Case(layer, (x // 64,), (outer, inner, 2) if inner == 1 else (outer, inner))
    for length in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16, 17, 18, 19, 20, 24, 25):
        x = bytes_at_random(rng, (1 + length % 2, length))
        rows = len(x)
        for log in (False, True):
            grid = (1 / 16, 255) if log else (1 / 255, 3)
            yield Case(Softmax("softmax", X, "y", rows, length, 0.07, log, *grid), (x,), x.shape)
        yield Case(DoubledSoftmax("softmax", X, "y", rows, length, 0.07), (x,), x.shape)
    for equal in (0, 255):  # equal numbers: the greatest sum
        x = np.full((1, 2047), equal, np.uint8)
        yield Case(DoubledSoftmax("softmax", X, "y", 1, 2047, 2.0**-20), (x,), x.shape)
        yield Case(DoubledSoftmax("softmax", X, "y", 1, 2047, 40.0), (x,), x.shape)
    for kernel in ((1, 2), (2, 1), (2, 2), (3, 3), (4, 8), (6, 6), (1, 37), (33, 1)):
        h, w = kernel[0] + 1, kernel[1] + 1
        x = bytes_at_random(rng, (h, w, 2))
        yield Case(MaxPool("max", X, "y", (h, w, 2), Window(kernel)), (x,), (2, 2, 2))
    for depth in range(1, 10):
        for batches in ((), ((2, 1, 0),), ((2, 0, 3), (3, 2, 1))):
            x, z = bytes_at_random(rng, (90,)), bytes_at_random(rng, (90,))
            at = ("product", Z, "y", 2, depth, 3, (depth, 1), (3, 1), batches)
            requant = choose(1 / (255 * depth), 255 * 255 * depth, 100)
            shape = (*(n for n, *_ in batches), 2, 3)
            yield Case(Product(*at, (5, 200), requant), (x, z), shape)
    for inner in range(1, 13):
        x = bytes_at_random(rng, (2, 5, inner))
        ids = np.array([0, 4, 5, 200], np.uint8)
        for outer in (1, 2):
            yield Case(Take("take", Z, "y", (outer, 5, inner), 4, None, 3), (x[:outer], ids), (outer, 4, inner))
        for length in (1, 5):
            how = (2, length, inner)
            layer = TopK("greatest", X, "y", how, length, bool(inner % 2), length == 1, length == 1)
            out = (2, length, inner, 2) if length == 1 else (2, length, inner)
            yield Case(layer, (x[:, :length],), out)
        layer = OneHot("ones", X, "y", 2, 3, inner, 4, 200, 1)
        yield Case(layer, (x[:, 0] % 5,), (2, 3, inner))


def constants() -> Iterator[Case]:
    """Scales at which factors, shifts and tables reach their bounds."""
    rng = np.random.default_rng(56)
    x = bytes_at_random(rng, (3, 9))
    x[1] = 77
    for scale in (1e-6, 2.0**-8, 0.02, 0.5, 8.0):
        for epsilon in (0.0, 1e-12, 1e-3, 1e30):
            for factor, shift, out in (
                (0.0, 0.0, 0.1),
                (1e-6, 1.0, 0.1),
                (1.0, -0.5, 0.02),
                (300.0, 4e4, 1e-3),
                (1e8, 1e9, 1e-3),
            ):
                factors, shifts = factor * np.linspace(-1, 1, 9), shift * np.linspace(-1, 1, 9)
                how = (0, bool(factor != 1e-6), epsilon, scale, 70, out, 128)
                yield Case(Normalize("normalize", X, "y", 3, 9, factors, shifts, *how), (x,), (3, 9))
    for operation in OPERATIONS[:5]:
        for scale, out in (
            (2.0**-10, 1.0),
            (0.02, 0.05),
            (0.05, 0.02),
            (2.0**5, 2.0**-7),
            (2.0**7, 2.0**-7),
            (2.0**-22, 1.0),
        ):
            layer = Norm("norm", X, "y", (3, 9, 1), operation, scale, 70, out, 20)
            if operation in ("l1", "square"):
                layer = replace(layer, requant=choose(255 / layer.most, layer.most, 20))
            elif operation.startswith("log"):
                layer = replace(layer, scale=0.02, scale_out=0.05)
            yield Case(layer, (x,), (3, 1))
    z = bytes_at_random(rng, (3, 9))
    for base in (1e-5, 1 / 255, 0.02, 1.0, 30.0):
        for step, zero in ((1e-4, 0), (0.01, 100), (0.2, 128)):
            for out, out_zero in ((1e-4, 0), (0.02, 0), (0.02, 255), (5.0, 128)):
                layer = Power(
                    "power", Z, "y", "pow", (1, 3, 9), (1, 3, 9), None, (base, step, out), (0, zero, out_zero)
                )
                yield Case(layer, (x.reshape(1, 3, 9), z.reshape(1, 3, 9)), (1, 3, 9))
    for operation in ("add", "sub"):
        for scales in ((0.1, 0.1, 0.2), (0.1, 0.05, 0.1), (0.3, 0.001, 0.01), (0.01, 0.02, 0.0004), (0.1, 0.1, 90.0)):
            for zero, low, high in ((0, 0, 255), (128, 0, 255), (1, 1, 255), (90, 90, 91), (255, 2, 254)):
                at = ("sum", Z, "y", operation, (1, 3, 9), (1, 3, 9), None, (0, 128))
                layer = DoubledSum(*at, scales, zero, low, high)
                yield Case(layer, (x.reshape(1, 3, 9), z.reshape(1, 3, 9)), (1, 3, 9))


def recurrences() -> Iterator[Case]:
    """Recurrent layers whose sums have lengths around the unrolled ones."""
    rng = np.random.default_rng(57)
    for k in (1, 15, 16, 17, 18, 19, 31, 32, 35, 36, 37):
        for kind, gates, more in ((Gru, 3, {}), (Rnn, 1, {"relu": True}), (Rnn, 1, {})):
            from_input, from_state = rows_at_random(rng, 2 * gates, k, 100), rows_at_random(rng, 2 * gates, 2, 128)
            how = (bool(k % 2), bool(k % 3), False)
            layer: Layer = kind("recurrent", X, "y", 1 + k % 3, 2, from_input, from_state, *how, **more)  # type: ignore[arg-type]
            shape = (1 + k % 3, 2) if how[1] else (2,)
            yield Case(layer, (bytes_at_random(rng, (1 + k % 3, k)),), shape)


# -- words ----------------------------------------------------------------------------------------------------


def word_layers() -> Iterator[Case]:
    rng = np.random.default_rng(61)
    for k in (1, 2, 3, 7, 8, 9, 10, 16, 17, 18, 31, 32, 33, 34, 63, 64, 65, 96, 100):
        yield Case(*random_layers_16.dot(rng, Window((1, 1)), 1, 2, k), 2)
        yield Case(*random_layers_16.product(rng, k), 2)
        yield Case(*random_layers_16.normalization(rng, k), 2)
        for log in (False, True):
            yield Case(*random_layers_16.softmax(rng, k, log), 2)
    for kernel in ((1, 2), (2, 1), (2, 2), (3, 3), (1, 9), (1, 10)):
        window = Window(kernel, (1, 2), (1, 1), (0, 0, 1, 0) if kernel[0] > 1 else (0, 0, 0, 0))
        yield Case(*random_layers_16.dot(rng, window, kernel[0] + 1, kernel[1] + 2), 2)
        for _ in range(3):
            yield Case(*random_layers_16.pool(rng, window, kernel[0] + 1, kernel[1] + 2), 2)
    for _ in range(40):
        yield Case(*random_layers_16.reduction(rng), 2)
        yield Case(*random_layers_16.recurrent(rng), 2)
        yield Case(*random_layers_16.others(rng), 2)


BYTES: dict[str, Callable[[], Iterator[Case]]] = {
    "dots": dots,
    "rescaling": requantized,
    "depthwise": deep,
    "loops": loops,
    "lanes": along,
    "constants": constants,
    "recurrences": recurrences,
    "edges of words": word_layers,
}
