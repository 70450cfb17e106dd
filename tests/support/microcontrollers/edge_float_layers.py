"""Float32 layers of every kind, with sizes around the unrolled ones and numbers that are treated apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from emberlet.micro.builder.functions import FUNCTIONS
from emberlet.micro.builder.kernels.arg import Arg
from emberlet.micro.builder.kernels.constant import Constant
from emberlet.micro.builder.kernels.coupling import CouplingFloat
from emberlet.micro.builder.kernels.depthwise import DepthwiseFloat
from emberlet.micro.builder.kernels.distance import DistanceFloat
from emberlet.micro.builder.kernels.dot import DotFloat
from emberlet.micro.builder.kernels.elementwise import BinaryFloat, ImputeFloat, MapFloat, WholeQuotientFloat
from emberlet.micro.builder.kernels.lanes import RunningSumFloat
from emberlet.micro.builder.kernels.layer import Array, Layer
from emberlet.micro.builder.kernels.move import Copy, strides
from emberlet.micro.builder.kernels.nest import Axis
from emberlet.micro.builder.kernels.normalize import NormalizeFloat
from emberlet.micro.builder.kernels.norms import OPERATIONS, NormFloat
from emberlet.micro.builder.kernels.pool import ReduceFloat
from emberlet.micro.builder.kernels.product import ProductFloat
from emberlet.micro.builder.kernels.recurrent_float import GatedGruFloat, GruFloat, LstmFloat, RnnFloat
from emberlet.micro.builder.kernels.select import Select
from emberlet.micro.builder.kernels.softmax import SoftmaxFloat
from emberlet.micro.builder.kernels.state import Keep
from emberlet.micro.builder.kernels.trees_float import FloatBranch, FloatLeaf, TreesFloat
from emberlet.micro.builder.kernels.window import Window

from tools.microcontrollers.random_layers import Case

Rng = np.random.Generator
X, Z = ("x",), ("x", "z")


def numbers(rng: Rng, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def _trees(rng: Rng, targets: int, divisor: int) -> TreesFloat:
    nodes: list[FloatBranch | FloatLeaf] = []

    def grown(depth: int) -> int:
        at = len(nodes)
        nodes.append(FloatLeaf(()))
        if depth:
            cut, feature = float(np.float32(rng.normal())), int(rng.integers(3))
            low, high = grown(depth - 1), grown(depth - 1 - int(rng.integers(0, depth)))
            nodes[at] = FloatBranch(feature, cut, low, high, bool(rng.random() < 0.5))
        else:
            adds = range(int(rng.integers(0, 3)))
            nodes[at] = FloatLeaf(tuple((int(rng.integers(targets)), float(np.float32(rng.normal()))) for _ in adds))
        return at

    roots = tuple(grown(depth) for depth in (0, 1, 3))
    return TreesFloat("trees", X, "y", tuple(nodes), roots, tuple(range(targets)), divisor)


def _float_rows(rng: Rng) -> Iterator[Case]:
    """Rows that are normalized, sums of lanes, products, distances."""
    for length in (1, 3, 8):
        for each, centered in ((0, True), (0, False), (1, True), (2, False)):
            x = numbers(rng, 3, length * max(each, 1))
            count = 3 * each or length
            at = (3, x.shape[1], numbers(rng, count), numbers(rng, count), each, centered, 1e-5)
            yield Case(NormalizeFloat("normalize", X, "y", *at), (x,), x.shape)
    for depth in (1, 2, 3, 4, 5, 8):
        for batches in ((), ((2, 1, 0),), ((2, 0, 3), (3, 2, 1))):
            at = ("product", Z, "y", 2, depth, 3, (depth, 1), (3, 1), batches)
            shape = (*(n for n, *_ in batches), 2, 3)
            yield Case(ProductFloat(*at), (numbers(rng, 60), numbers(rng, 60)), shape)
    for name in ("abs", "leaky_relu"):
        layer = DistanceFloat("distance", X, "y", numbers(rng, 4, 5), ((name, (0.1,) if name != "abs" else ()),))
        yield Case(layer, (numbers(rng, 5),), (4,))
    for length in (1, 7, 8, 9, 16, 17):
        for outer, inner in ((1, 1), (2, 1), (1, 3), (2, 2)):
            x = np.abs(numbers(rng, outer, length, inner)) + 0.1
            for operation, factor in (("sum", 1.0), ("sum", 0.5), ("max", 1.0), ("min", 1.0)):
                layer = ReduceFloat("reduce", X, "y", x.shape, operation, factor)
                yield Case(layer, (x,), (outer, inner))
            operation = OPERATIONS[length % 6]
            yield Case(NormFloat("norm", X, "y", x.shape, operation), (x,), (outer, inner))
            yield Case(RunningSumFloat("sum", X, "y", x.shape, outer == 1, inner == 1), (x,), x.shape)
            layer = Arg("arg", X, "y", x.shape, ("max", "min")[length % 2], outer == 1)
            yield Case(layer, (np.rint(x),), (outer, inner))
    for length in (1, 2, 9):
        for log in (False, True):
            x = 30 * numbers(rng, 2, length)
            yield Case(SoftmaxFloat("softmax", X, "y", 2, length, log), (x,), x.shape)


def _float_windows(rng: Rng) -> Iterator[Case]:
    for window in (Window((1, 1)), Window((2, 3), (2, 1), (1, 2), (1, 0, 0, 2)), Window((6, 6)), Window((1, 37))):
        h, w = window.kernel[0] + 2, window.reach[1] + 3
        for low, high in ((-np.inf, np.inf), (0.0, np.inf), (-np.inf, 1.0), (-1.0, 1.0)):
            x = numbers(rng, h, w, 4)
            at = ("dot", X, "y", x.shape, window, 2, numbers(rng, 4, *window.kernel, 2), numbers(rng, 4), low, high)
            yield Case(DotFloat(*at), (x,), (*window.output(h, w), 4), window.pads)
            if window.kernel[0] * window.kernel[1] < 32:
                own = (numbers(rng, 8, *window.kernel), numbers(rng, 8), low, high)
                layer = DepthwiseFloat("deep", X, "y", x.shape, window, *own)
                yield Case(layer, (x,), (*window.output(h, w), 8), window.pads)


def _float_pairs(rng: Rng) -> Iterator[Case]:
    x, z = numbers(rng, 2, 3, 4), numbers(rng, 1, 3, 1)
    z[0, 0, 0] = 0.0
    for operation in ("add", "sub", "mul", "div"):
        for low, high in ((-np.inf, np.inf), (0.0, np.inf), (-1.0, 1.0)):
            layer: Layer = BinaryFloat(operation, Z, "y", operation, x.shape, z.shape, None, low, high)
            yield Case(layer, (x, z), x.shape)
    for gap in (np.nan, np.inf, -np.inf, 1.5, 0.1):
        given = x.copy()
        given[0, 1] = gap
        layer = ImputeFloat("impute", X, "y", "impute", x.shape, (1, 1, 4), numbers(rng, 1, 1, 4), gap)
        yield Case(layer, (given,), x.shape)
    whole = np.rint(8 * x)
    layer = WholeQuotientFloat("quotient", Z, "y", "quotient", x.shape, z.shape, None)
    yield Case(layer, (whole, np.rint(4 * z)), x.shape)
    chosen = (x > 0).astype(np.float32)
    axes = tuple(Axis(n, (s, s, 0, s)) for n, s in zip(x.shape, strides(x.shape), strict=True))
    for constant in (None, numbers(rng, 1)):
        inputs = (chosen, x) if constant is not None else (chosen, x, numbers(rng, 1))
        names = ("c", "x", "z")[: len(inputs)]
        yield Case(Select("select", names, "y", x.shape, axes, (None, None, constant)), inputs, x.shape)
    for chain in ((("relu", ()), ("affine", (2.0, 1.0))), (("start", ()), ("tanh", ()), ("times_start", ()))):
        if all(name in FUNCTIONS or name.endswith("start") for name, _ in chain):
            yield Case(MapFloat("map", X, "y", x.shape, chain), (x,), x.shape)


def _float_rest(rng: Rng) -> Iterator[Case]:
    x = numbers(rng, 3, 4)
    yield Case(Copy("copy", X, "y", (3, 4)), (x,), (3, 4), (1, 2, 0, 1), 0.5)
    yield Case(Keep("keep", X, "y", (3, 4)), (x,), (3, 4))
    yield Case(Constant("constant", (), "y", x), (), (3, 4))
    for targets, divisor in ((1, 1), (2, 3)):
        features = numbers(rng, 3)
        features[1] = np.nan
        yield Case(_trees(rng, targets, divisor), (features,), (targets,))
        yield Case(_trees(rng, targets, divisor), (numbers(rng, 3),), (targets,))
    for classes in (2, 3, 5):
        pairs = classes * (classes - 1) // 2
        layer = CouplingFloat("coupling", X, "y", classes, tuple(-np.ones(pairs)), tuple(np.linspace(-0.2, 0.2, pairs)))
        for size in (3, 1000):  # far from zero, probabilities are bounded
            yield Case(layer, (size * numbers(rng, pairs),), (classes,))
    for kind, gates in ((LstmFloat, 4), (GruFloat, 3), (GatedGruFloat, 3), (RnnFloat, 1)):
        for k, (reverse, sequence) in ((1, (0, 1)), (36, (1, 0)), (37, (1, 1)), (2, (0, 0))):
            steps = 1 + k % 3
            parts = (
                numbers(rng, 2 * gates, k),
                numbers(rng, 2 * gates, 2),
                numbers(rng, 2 * gates),
                numbers(rng, 2 * gates),
            )
            more: dict[str, Any] = {"relu": bool(k % 2)} if kind is RnnFloat else {}
            recurrent = kind("recurrent", X, "y", steps, 2, *parts, bool(reverse), bool(sequence), False, **more)
            yield Case(recurrent, (numbers(rng, steps, k),), (steps, 2) if sequence else (2,))


def float_layers() -> Iterator[Case]:
    for k, make in enumerate((_float_rows, _float_windows, _float_pairs, _float_rest)):
        yield from make(np.random.default_rng([62, k]))
