"""Float32 layers at random, and every function, with inputs for them."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np
from emberlet.micro.builder.functions import FUNCTIONS, Chain
from emberlet.micro.builder.kernels.depthwise import DepthwiseFloat
from emberlet.micro.builder.kernels.dot import DotFloat
from emberlet.micro.builder.kernels.elementwise import BinaryFloat, MapFloat
from emberlet.micro.builder.kernels.interpolate import Interpolate
from emberlet.micro.builder.kernels.lanes import OneHot, RunningSumFloat, Take, TopK
from emberlet.micro.builder.kernels.layer import Array, Layer, dense_view
from emberlet.micro.builder.kernels.move import Border, Move, Part, strides
from emberlet.micro.builder.kernels.nest import Axis
from emberlet.micro.builder.kernels.norms import OPERATIONS as NORMS
from emberlet.micro.builder.kernels.norms import NormFloat
from emberlet.micro.builder.kernels.pairs import COMPARISONS, CompareFloat, ExtremeFloat
from emberlet.micro.builder.kernels.pool import AveragePoolFloat, MaxPool, ReduceFloat, window_counts
from emberlet.micro.builder.kernels.power import PowerFloat
from emberlet.micro.builder.kernels.recurrent_float import GatedGruFloat, GruFloat, LstmFloat, RnnFloat
from emberlet.micro.builder.kernels.softmax import SoftmaxFloat
from emberlet.micro.builder.program import Constants, Program, Step

from tools.microcontrollers.random_layers import Case, border_view, window_at_random

Rng = np.random.Generator

PARAMETERS = {
    "affine": (0.7, -0.3),
    "clip": (-0.5, 0.8),
    "leaky_relu": (0.1,),
    "elu": (1.5,),
    "selu": (1.67, 1.05),
    "hard_sigmoid": (0.2, 0.5),
    "pow": (2.0,),
    "celu": (0.8,),
    "thresholded_relu": (0.4,),
    "shrink": (0.3, 0.6),
    "greater": (0.5,),
    "greater_equal": (0.6,),
    "less": (-0.5,),
    "less_equal": (-0.6,),
    "equal": (0.0,),
}


def numbers(rng: Rng, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def function_cases() -> Iterator[Case]:
    """Each function over a range, its steep ends included."""
    x = np.concatenate([np.linspace(-6, 6, 61), [-100.0, 100.0]]).astype(np.float32)
    for name in FUNCTIONS:
        values = np.abs(x) + 0.01 if name in ("log", "sqrt", "reciprocal", "pow") else x
        chain: Chain = ((name, PARAMETERS.get(name, ())),)
        yield Case(MapFloat(name, ("x",), "y", values.shape, chain), (values,), values.shape)
    gate: Chain = (("start", ()), ("sigmoid", ()), ("times_start", ()))
    yield Case(MapFloat("gate", ("x",), "y", x.shape, gate), (x,), x.shape)


def float_cases(seed: int, count: int) -> Iterator[Case]:
    rng = np.random.default_rng(seed)
    for n in range(count):
        yield _KINDS[n % len(_KINDS)](rng)


def _dot(rng: Rng) -> Case:
    h, w = (int(v) for v in rng.integers(1, 6, 2))
    groups = int(rng.choice([1, 1, 2]))
    c, n = groups * int(rng.integers(1, 30)), groups * int(rng.integers(1, 4))
    window = window_at_random(rng, h, w, 4)
    weights = numbers(rng, n, *window.kernel, c // groups)
    low, high = (0.0, 2.0) if rng.random() < 0.5 else (-np.inf, np.inf)
    layer = DotFloat("dot", ("x",), "y", (h, w, c), window, groups, weights, numbers(rng, n), low, high)
    return Case(layer, (numbers(rng, h, w, c),), (*window.output(h, w), n), window.pads)


def _depthwise(rng: Rng) -> Case:
    h, w, c = (int(v) for v in rng.integers(1, 6, 3))
    window = window_at_random(rng, h, w, 3)
    layer = DepthwiseFloat(
        "deep", ("x",), "y", (h, w, c), window, numbers(rng, c, *window.kernel), numbers(rng, c), 0.0, np.inf
    )
    return Case(layer, (numbers(rng, h, w, c),), (*window.output(h, w), c), window.pads)


def _pool(rng: Rng) -> Case:
    h, w, c = (int(v) for v in rng.integers(1, 8, 3))
    window = window_at_random(rng, h, w, 4)
    x, out = numbers(rng, h, w, c), (*window.output(h, w), c)
    if rng.random() < 0.5:
        return Case(MaxPool("max", ("x",), "y", (h, w, c), window, -3.4e38), (x,), out, window.pads, -3.4e38)
    counts = window_counts(window, h, w) if rng.random() < 0.5 else (prod(window.kernel),)
    counts = tuple(max(1, n) for n in counts)
    return Case(AveragePoolFloat("mean", ("x",), "y", (h, w, c), window, counts), (x,), out, window.pads)


def _reduce(rng: Rng) -> Case:
    outer, length, inner = int(rng.integers(1, 4)), int(rng.integers(1, 40)), int(rng.integers(1, 6))
    operation = str(rng.choice(["sum", "max", "min"]))
    layer = ReduceFloat("reduce", ("x",), "y", (outer, length, inner), operation, 1 / length)
    return Case(layer, (numbers(rng, outer, length, inner),), (outer, inner))


def _binary(rng: Rng) -> Case:
    shape = tuple(int(v) for v in rng.integers(1, 6, 3))
    other = tuple(1 if rng.random() < 0.3 else side for side in shape)
    operation = str(rng.choice(["add", "sub", "mul", "div"]))
    second = numbers(rng, *other) + (3.0 if operation == "div" else 0.0)
    second = np.where(np.abs(second) < 0.1, 1.0, second).astype(np.float32)
    constant = second if rng.random() < 0.3 else None
    x = numbers(rng, *shape)
    inputs = (x,) if constant is not None else (x, second)
    names = ("x", "z")[: len(inputs)]
    return Case(BinaryFloat(operation, names, "y", operation, shape, other, constant, -3.0, 3.0), inputs, shape)


def _softmax(rng: Rng) -> Case:
    rows, length = int(rng.integers(1, 4)), int(rng.integers(1, 20))
    layer = SoftmaxFloat("softmax", ("x",), "y", rows, length, bool(rng.random() < 0.5))
    return Case(layer, (numbers(rng, rows, length),), (rows, length))


def _recurrent(rng: Rng) -> Case:
    steps, k, hidden = int(rng.integers(1, 5)), int(rng.integers(1, 9)), int(rng.integers(1, 6))
    kind, gates = ((LstmFloat, 4), (GruFloat, 3), (GatedGruFloat, 3), (RnnFloat, 1))[int(rng.integers(4))]
    rows = gates * hidden
    parts = numbers(rng, rows, k), numbers(rng, rows, hidden), numbers(rng, rows), numbers(rng, rows)
    reverse, sequence = bool(rng.random() < 0.5), bool(rng.random() < 0.5)
    more = {"relu": True} if kind is RnnFloat and rng.random() < 0.5 else {}
    layer = kind("recurrent", ("x",), "y", steps, hidden, *parts, reverse, sequence, False, **more)
    return Case(layer, (numbers(rng, steps, k),), (steps, hidden) if sequence else (hidden,))


def _pad(rng: Rng) -> Case:
    shape = tuple(int(v) for v in rng.integers(1, 5, 2))
    out = (shape[0] + 2, shape[1] + 3)
    axes = tuple(Axis(n, steps) for n, steps in zip(shape, zip(strides(shape), strides(out), strict=True), strict=True))
    return Case(Move("pad", ("x",), "y", out, (Part(0, out[1] + 1, axes),), 0.5), (numbers(rng, *shape),), out)


def _pair(rng: Rng) -> Case:
    """The greater or the lesser, a power, a comparison."""
    shape = tuple(int(v) for v in rng.integers(1, 6, 3))
    other = tuple(1 if rng.random() < 0.3 else side for side in shape)
    operation = str(rng.choice(["max", "min", "pow", *COMPARISONS]))
    x, second = np.abs(numbers(rng, *shape)) + 0.1, numbers(rng, *other)
    if operation in COMPARISONS:
        x, second = np.rint(x), np.rint(second)
    constant = second if rng.random() < 0.3 else None
    kind = {"max": ExtremeFloat, "min": ExtremeFloat, "pow": PowerFloat}.get(operation, CompareFloat)
    inputs = (x,) if constant is not None else (x, second)
    return Case(kind(operation, ("x", "z")[: len(inputs)], "y", operation, shape, other, constant), inputs, shape)


def _norm(rng: Rng) -> Case:
    shape = tuple(int(v) for v in (rng.integers(1, 4), rng.integers(1, 20), rng.integers(1, 6)))
    layer = NormFloat("norm", ("x",), "y", shape, str(rng.choice(NORMS)))  # type: ignore[arg-type]
    return Case(layer, (np.abs(numbers(rng, *shape)) + 0.1,), (shape[0], shape[2]))


def _along_an_axis(rng: Rng) -> Case:
    """Layers that exist for bytes and for floats, here on floats."""
    shape = tuple(int(v) for v in (rng.integers(1, 4), rng.integers(1, 20), rng.integers(1, 6)))
    outer, length, inner = shape
    x, which = numbers(rng, *shape), int(rng.integers(4))
    layer: Layer
    if which == 0:
        k = int(rng.integers(1, length + 1))
        layer = TopK("greatest", ("x",), "y", shape, k, bool(rng.random() < 0.5), bool(rng.random() < 0.5))  # type: ignore[arg-type]
        return Case(layer, (np.rint(2 * x),), (outer, k, inner))
    if which == 1:
        layer = RunningSumFloat("sum", ("x",), "y", shape, bool(rng.random() < 0.5), bool(rng.random() < 0.5))  # type: ignore[arg-type]
        return Case(layer, (x,), shape)
    count = int(rng.integers(1, 6))
    if which == 2:
        ids = rng.integers(-length, length, count).astype(np.float32)
        table = x if rng.random() < 0.5 else None
        names = ("i",) if table is not None else ("x", "i")
        layer = Take("take", names, "y", shape, count, table)  # type: ignore[arg-type]
        return Case(layer, (ids,) if table is not None else (x, ids), (outer, count, inner))
    ids = rng.integers(-length, length + 1, (outer, inner)).astype(np.float32)
    layer = OneHot("ones", ("x",), "y", outer, length, inner, -0.5, 2.5)
    return Case(layer, (ids,), shape)


def _interpolated(rng: Rng) -> Case:
    shape = tuple(int(v) for v in rng.integers(1, 7, 3))
    places = [rng.uniform(-0.5, n, int(rng.integers(1, 9))) for n in shape[:2]]
    layer = Interpolate("interpolate", ("x",), "y", shape, places[0], places[1])
    return Case(layer, (numbers(rng, *shape),), (len(places[0]), len(places[1]), shape[2]))


_KINDS = (
    _dot,
    _dot,
    _depthwise,
    _pool,
    _reduce,
    _binary,
    _softmax,
    _recurrent,
    _pad,
    _pair,
    _norm,
    _along_an_axis,
    _interpolated,
)


def float_program(batch: list[Case]) -> tuple[Program, bytes, list[tuple[int, Array]]]:
    """One program that runs every case side by side, its arena with the inputs in place, where each output is due."""
    constants, steps, arena = Constants(True), [], [np.zeros(0, np.float32)]
    due: list[tuple[int, Array]] = []
    size = 0

    def take(block: Array) -> int:
        nonlocal size
        arena.append(block.astype(np.float32).reshape(-1))
        size += block.size
        return size - block.size

    for case in batch:
        views, places = [], {}
        for k, x in enumerate(case.inputs):
            view, room = border_view(x.shape, case.pads if k == 0 else (0, 0, 0, 0))
            block = np.full(room, 99.0, np.float32)
            for row in range(view.shape[0]):
                at = view.origin + row * view.pitch
                block[at : at + view.row] = x.reshape(-1)[row * view.row : (row + 1) * view.row]
            places[f"i{k}"] = take(block)
            views.append(view)
            if k == 0 and any(case.pads):
                border: Layer = Border("border", ("x",), "x", view, room, case.fill)
                at = places["i0"]
                steps.append(Step(border, (view,), view, {"i0": at, "o": at, "wo": 0, "to": 0}))
        places["o"] = take(np.full(prod(case.shape), 77.0))
        places["st"] = take(np.zeros(case.layer.state))
        places["zo"] = take(np.zeros(case.layer.scratch))
        places["wo"], places["to"] = constants.add(case.layer)
        steps.append(Step(case.layer, tuple(views), dense_view(case.shape), places))
        due.append((places["o"], case.expected))
    blob = np.concatenate(arena).tobytes()
    return Program("layers", True, tuple(steps), (), (), size, constants.weights, tuple(constants.words)), blob, due
