"""Quantizes layers of a model with 16-bit activations, which the model quantized itself, and 8-bit weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf, prod

import numpy as np
from emberlet.errors import UnsupportedError

from ..functions import apply
from ..graph import Graph, Grid, Reshape, renamed
from ..kernels.arg import Arg
from ..kernels.constant import Constant
from ..kernels.depthwise import DepthwiseFloat
from ..kernels.dot import DotFloat
from ..kernels.elementwise import BinaryFloat, MapFloat
from ..kernels.interpolate import Interpolate
from ..kernels.lanes import OneHot, RunningSumFloat, Take, TopK
from ..kernels.layer import Array, Layer, as_image
from ..kernels.move import Copy, Move, Part
from ..kernels.nest import Axis
from ..kernels.normalize import NormalizeFloat
from ..kernels.norms import NormFloat
from ..kernels.pairs import CompareFloat, ExtremeFloat
from ..kernels.pool import AveragePoolFloat, MaxPool, ReduceFloat
from ..kernels.power import PowerFloat
from ..kernels.product import ProductFloat
from ..kernels.recurrent_float import GatedGruFloat, GruFloat, LstmFloat, RnnFloat
from ..kernels.select import Select
from ..kernels.sixteen.dot import Dot16
from ..kernels.sixteen.maps import PiecewiseLinear16, Rescale16, knots_of
from ..kernels.sixteen.normalize import Normalize16
from ..kernels.sixteen.pair import Pair16
from ..kernels.sixteen.pool import Pool16
from ..kernels.sixteen.product import Product16
from ..kernels.sixteen.softmax import LogSoftmax16, Softmax16
from ..kernels.slide import Slide
from ..kernels.softmax import SoftmaxFloat
from ..kernels.state import Keep
from ..kernels.window import Window
from .calibrate import grid_over
from .recurrences import Recurrent, recurrent16
from .reference import Floats, dequantize, steps_of
from .sixteen import ADVICE, MOST, SumRequant, difference_requant, sum_requant, to_bytes

MOST_KNOTS = 4096
"""The most knots of a function, at four bytes each."""

NAMES: dict[type[Layer], str] = {
    NormFloat: "a norm of elements",
    ExtremeFloat: "the maximum or minimum of two tensors",
    PowerFloat: "a power of two tensors",
    CompareFloat: "a comparison",
    Select: "a choice between two tensors",
    RunningSumFloat: "a running sum",
    TopK: "TopK",
    OneHot: "OneHot",
    Interpolate: "a resize that interpolates",
}
"""Names in messages for layers that have no kernel for words."""


def doubled_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a tensor of 16 bits: its last axis counts bytes."""
    return (*shape[:-1], 2 * shape[-1]) if shape else (2,)


def is_wide(graph: Graph, layer: Layer) -> bool:
    """Whether a layer reads or writes a 16-bit tensor."""
    return any(graph.grids[name].wide for name in (*layer.inputs, layer.output))


def in_8_bits(graph: Graph) -> Graph:
    """The float32 graph without its 16-bit grids, in which QuantizeLinear only saturates."""
    layers: list[Layer] = []
    for layer in graph.layers:
        grid = graph.grids.get(layer.output)
        if isinstance(layer, MapFloat) and not layer.chain and grid is not None and grid.wide:
            layer = replace(layer, chain=(("clip", grid.ends),))
        layers.append(layer)
    return replace(graph, layers=tuple(layers), grids={n: g for n, g in graph.grids.items() if not g.wide})


def uniform(graph: Graph) -> Graph:
    """The graph with a layer wherever a tensor changes between 8 and 16 bits, or a move changes its 16-bit grid."""
    layers: list[Layer] = []
    shapes, grids = dict(graph.shapes), dict(graph.grids)

    def other(name: str, grid: Grid) -> str:
        made, n = f"{name}:words", 1
        while made in shapes:
            n += 1
            made = f"{name}:words.{n}"
        shapes[made], grids[made] = shapes[name], grid
        return made

    for layer in graph.layers:
        # Arg's output is an index of one or two bytes, whatever its input.
        if not is_wide(graph, layer) or isinstance(layer, Arg) or (isinstance(layer, MapFloat) and is_rescale(layer)):
            layers.append(layer)
            continue
        out, changed = grids[layer.output], dict[str, str]()
        data = layer.inputs[:-1] if isinstance(layer, Take) else layer.inputs
        for name in dict.fromkeys(data):
            grid = grids[name]
            wanted = grid if grid.wide else _finer(grid)
            if isinstance(layer, Move) and out.wide:
                wanted = out
            if grid != wanted:
                changed[name] = other(name, wanted)
                layers.append(MapFloat(f"{layer.name} from {name}", (name,), changed[name], shapes[name], ()))
        if out.wide:
            layers.append(renamed(layer, changed))
            continue
        words = other(layer.output, _finer(out))
        layers.append(renamed(layer, changed, words))
        layers.append(MapFloat(f"{layer.name} to bytes", (words,), layer.output, shapes[words], ()))
    return replace(graph, layers=tuple(layers), shapes=shapes, grids=grids)


def _finer(grid: Grid) -> Grid:
    """A grid of words with all numbers of a grid of bytes, and 255 more between two of them."""
    return Grid(grid.scale / 256, grid.zero * 256, 16)


def is_rescale(layer: MapFloat) -> bool:
    """Whether a function only clamps, so that it is just a change of grids."""
    return not layer.chain or (len(layer.chain) == 1 and layer.chain[0][0] == "clip")


class Quantizer16:
    """weights: a layer's weights as bytes, and their scales; weight_zero: the byte that stands for zero."""

    def __init__(
        self,
        graph: Graph,
        weights: Callable[[DotFloat | DepthwiseFloat], tuple[Array, Array]],
        weight_zero: Callable[[DotFloat | DepthwiseFloat], int],
    ) -> None:
        self.graph, self.weights, self.weight_zero = graph, weights, weight_zero

    def layer(self, layer: Layer) -> Layer:
        """The layer on words. Raises UnsupportedError."""
        kinds: dict[type[Layer], Callable[..., Layer]] = {
            DotFloat: self._dot,
            DepthwiseFloat: self._depthwise,
            BinaryFloat: self._pair,
            MapFloat: self._map,
            MaxPool: self._max_pool,
            AveragePoolFloat: self._average,
            ReduceFloat: self._reduce,
            SoftmaxFloat: self._softmax,
            Move: self._move,
            Take: self._take,
            Arg: lambda layer: replace(layer, words=layer.output in self.graph.words, width=2),
            Constant: self._constant,
            ProductFloat: self._product,
            NormalizeFloat: self._normalize,
            **dict.fromkeys((LstmFloat, GruFloat, GatedGruFloat, RnnFloat), self._recurrent),
            Reshape: lambda layer: replace(layer, shape=doubled_shape(layer.shape)),
            Copy: lambda layer: replace(layer, shape=doubled_shape(layer.shape)),
            Keep: lambda layer: replace(layer, shape=doubled_shape(layer.shape)),
            Slide: self._slide,
        }
        if type(layer) not in kinds:
            what = NAMES.get(type(layer), f"a layer of kind {layer.kind!r}")
            raise UnsupportedError(f"{layer.name}: {what} is not supported with 16-bit activations; {ADVICE}")
        return kinds[type(layer)](layer)

    def _grids(self, layer: Layer) -> tuple[Grid, Grid]:
        return self.graph.grids[layer.inputs[0]], self.graph.grids[layer.output]

    @staticmethod
    def _limits(low: float, high: float, grid: Grid) -> tuple[int, int]:
        """A clamp in steps of a grid."""
        most = (1 << grid.bits) - 1
        return (
            0 if low == -inf else int(steps_of(low, grid.scale, grid.zero, grid.bits)),
            most if high == inf else int(steps_of(high, grid.scale, grid.zero, grid.bits)),
        )

    def _dot(self, layer: DotFloat) -> Layer:
        return self._windowed(layer, layer.weights.shape, layer.groups)

    def _depthwise(self, layer: DepthwiseFloat) -> Layer:
        return self._windowed(layer, (*layer.weights.shape, 1), as_image(layer.shape)[2])

    def _windowed(self, layer: DotFloat | DepthwiseFloat, shape: tuple[int, ...], groups: int) -> Layer:
        x, out = self._grids(layer)
        weights, scale = self.weights(layer)
        zero, sums = self.weight_zero(layer), scale * x.scale
        bias = np.rint(layer.bias.astype(np.float64) / sums).astype(np.int64)
        size = np.abs(weights.reshape(len(weights), -1).astype(np.int64) - zero).sum(1)
        bound = size * float(max(x.zero, MOST - x.zero)) + np.abs(bias)
        requant = self._requant(sums / out.scale, bound, out.zero, self._limits(layer.low, layer.high, out), layer.name)
        at = (layer.name, layer.inputs, layer.output, doubled_shape(layer.shape), layer.window, groups)
        made = Dot16(*at, weights.reshape(shape), bias, x.zero, requant, zero)
        made.check()
        return made

    def _requant(self, ratios: Floats, bound: Floats, zero: int, limits: tuple[int, int], what: str) -> SumRequant:
        return sum_requant(ratios, bound, zero, *limits, what=what)

    def _pair(self, layer: BinaryFloat) -> Layer:
        a, out = self._grids(layer)
        constant = None
        if layer.constant is None:
            b = self.graph.grids[layer.inputs[1]]
        else:
            over = grid_over(float(layer.constant.min()), float(layer.constant.max()), 16)
            b = over if layer.grid is None else Grid(*layer.grid, 16)
            constant = steps_of(layer.constant, b.scale, b.zero, 16)
        limits = self._limits(layer.low, layer.high, out)
        own = (layer.name, layer.inputs, layer.output, layer.operation)
        at = (*own, doubled_shape(layer.shape), doubled_shape(layer.other), constant)
        if layer.operation == "mul":
            reach = max(a.zero, MOST - a.zero) * max(b.zero, MOST - b.zero)
            how = sum_requant(a.scale * b.scale / out.scale, reach, out.zero, *limits, what=layer.name)
            return Pair16(*at, (a.zero, b.zero), how)
        if layer.operation == "div":
            raise UnsupportedError(f"{layer.name}: a quotient is not supported with 16-bit activations; {ADVICE}")
        sign = 1 if layer.operation == "add" else -1
        ratios = (a.scale / out.scale, sign * b.scale / out.scale)
        return Pair16(
            *at, (a.zero, b.zero), difference_requant(ratios, (a.zero, b.zero), out.zero, *limits, what=layer.name)
        )

    def _map(self, layer: MapFloat) -> Layer:
        x, out = self._grids(layer)
        at = (layer.name, layer.inputs, layer.output, layer.shape)
        if is_rescale(layer):
            low, high = layer.chain[0][1] if layer.chain else (-inf, inf)
            limits = self._limits(low, high, out)
            how = difference_requant((x.scale / out.scale,), (x.zero,), out.zero, *limits, what=layer.name)
            return Rescale16(*at, (x.wide, out.wide), how)
        exact = steps_of(apply(layer.chain, dequantize(np.arange(MOST + 1), x.scale, x.zero)), out.scale, out.zero, 16)
        knots = knots_of(exact.astype(np.int64))
        if len(knots) > MOST_KNOTS:
            raise UnsupportedError(
                f"{layer.name}: at 16 bits this function takes {len(knots)} line segments; at most {MOST_KNOTS} are "
                f"supported; {ADVICE}"
            )
        return PiecewiseLinear16(*at, knots)

    def _max_pool(self, layer: MaxPool) -> Layer:
        return Pool16(layer.name, layer.inputs, layer.output, doubled_shape(layer.shape), layer.window, "max")

    def _average(self, layer: AveragePoolFloat) -> Layer:
        x, out = self._grids(layer)
        reach = prod(layer.window.kernel) * max(x.zero, MOST - x.zero)
        ratio = x.scale / out.scale / np.asarray(layer.counts, np.float64)
        requant = sum_requant(ratio, reach, out.zero, what=layer.name)
        at = (layer.name, layer.inputs, layer.output, doubled_shape(layer.shape), layer.window)
        return Pool16(*at, "sum", False, x.zero, requant)

    def _reduce(self, layer: ReduceFloat) -> Layer:
        """A window along the middle axis."""
        x, out = self._grids(layer)
        outer, length, inner = layer.shape
        window = Window((length, 1), (length, 1))
        at = (layer.name, layer.inputs, layer.output, (outer * length, 1, 2 * inner), window, layer.operation, True)
        if layer.operation != "sum":
            return Pool16(*at)
        reach = length * max(x.zero, MOST - x.zero)
        return Pool16(*at, x.zero, sum_requant(x.scale * layer.factor / out.scale, reach, out.zero, what=layer.name))

    def _softmax(self, layer: SoftmaxFloat) -> Layer:
        x, out = self._grids(layer)
        at = (layer.name, layer.inputs, layer.output, layer.rows, layer.length, x.scale)
        made: Softmax16 | LogSoftmax16
        if layer.log:
            made = LogSoftmax16(
                *at, difference_requant((x.scale / out.scale,), (0,), out.zero, what=layer.name), out.scale
            )
        else:
            made = Softmax16(*at, difference_requant((2.0**-16 / out.scale,), (0,), out.zero, what=layer.name))
        made.check()
        return made

    def _move(self, layer: Move) -> Layer:
        _, out = self._grids(layer)
        parts = []
        for part in layer.parts:
            axes = tuple(Axis(axis.turns, tuple(2 * step for step in axis.steps)) for axis in part.axes)
            parts.append(Part(2 * part.start, 2 * part.to, (*axes, Axis(2, (1, 1)))))
        fill = None if layer.fill is None else float(steps_of(layer.fill, out.scale, out.zero, 16))
        return replace(layer, shape=doubled_shape(layer.shape), parts=tuple(parts), fill=fill, width=2)

    def _take(self, layer: Take) -> Layer:
        out, indices = self.graph.grids[layer.output], self.graph.grids[layer.inputs[-1]]
        words = layer.inputs[-1] in self.graph.words
        if indices.scale != 1 or (layer.shape[1] > 256 and not words):
            raise UnsupportedError(f"{layer.name}: an index of one of {layer.shape[1]} that is computed; {ADVICE}")
        outer, length, inner = layer.shape
        table = layer.table
        if table is not None:
            table = to_bytes(steps_of(table, out.scale, out.zero, 16).reshape(outer, length, inner))
        return replace(layer, shape=(outer, length, 2 * inner), table=table, zero=indices.zero, words=words)

    def _slide(self, layer: Slide) -> Layer:
        last = layer.axis == len(layer.shape) - 1
        return replace(layer, shape=doubled_shape(layer.shape), new=2 * layer.new if last else layer.new)

    def _product(self, layer: ProductFloat) -> Layer:
        a, b = (self.graph.grids[name] for name in layer.inputs)
        out = self.graph.grids[layer.output]
        reach = layer.depth * max(a.zero, MOST - a.zero) * max(b.zero, MOST - b.zero)
        drop = Product16.dropped(layer.depth)
        ratio = a.scale * b.scale * 2**drop / out.scale
        requant = sum_requant(ratio, (reach >> drop) + 1, out.zero, what=layer.name)
        at = (layer.name, layer.inputs, layer.output, layer.rows, layer.depth, layer.columns, layer.first, layer.second)
        return Product16(*at, layer.batches, (a.zero, b.zero), drop, requant)

    def _normalize(self, layer: NormalizeFloat) -> Layer:
        x, out = self._grids(layer)
        at = (layer.name, layer.inputs, layer.output, layer.rows, layer.length, layer.factors, layer.shifts)
        how = (layer.each, layer.centered, layer.epsilon)
        made = Normalize16(*at, *how, x.scale, x.zero, out.scale, out.zero)
        made.check()
        return made

    def _recurrent(self, layer: Recurrent) -> Layer:
        return recurrent16(layer, self.graph.grids)

    def _constant(self, layer: Constant) -> Layer:
        out = self.graph.grids[layer.output]
        value = steps_of(layer.value, out.scale, out.zero, 16)
        return replace(layer, value=to_bytes(value.reshape(value.shape or (1,))))
