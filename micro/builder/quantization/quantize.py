"""Quantizes a float32 graph, given the ranges of its tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import singledispatchmethod
from math import prod

import numpy as np
from emberlet.errors import UnsupportedError
from emberlet.host.quantization.calibration import Range

from ..functions import apply
from ..graph import Graph, Grid, Reshape
from ..kernels.arg import Arg
from ..kernels.constant import Constant
from ..kernels.depthwise import Depthwise, DepthwiseFloat
from ..kernels.dot import Dot, DotFloat
from ..kernels.elementwise import Binary, BinaryFloat, Lookup, MapFloat, _Binary, sum_factors
from ..kernels.interpolate import Interpolate
from ..kernels.lanes import OneHot, RunningSum, RunningSumFloat, Take, TopK
from ..kernels.layer import Array, Layer
from ..kernels.move import Copy, Move
from ..kernels.normalize import Normalize, NormalizeFloat
from ..kernels.norms import Norm, NormFloat
from ..kernels.pairs import (
    Compare,
    CompareFloat,
    Extreme,
    ExtremeFloat,
    Quotient,
    compare_constant,
    compare_tensors,
    quotient_factor,
)
from ..kernels.pool import AveragePool, AveragePoolFloat, MaxPool, Reduce, ReduceFloat
from ..kernels.power import Power, PowerFloat
from ..kernels.product import Product, ProductFloat
from ..kernels.recurrent_float import GatedGruFloat, GruFloat, LstmFloat, RnnFloat
from ..kernels.select import Select
from ..kernels.slide import Slide
from ..kernels.softmax import Softmax, SoftmaxFloat
from ..kernels.state import Keep
from .calibrate import grid_over
from .floats_only import no_int8_form
from .grids import bytes_of, clamp_of, coarser, on_grid, with_grids
from .indices import MOST_IN_A_BYTE, with_words
from .quantize16 import Quantizer16, doubled_shape, is_wide, uniform
from .recurrences import BIAS_ROOM, recurrent
from .reference import (
    ZERO,
    Floats,
    Ints,
    Requant,
    choose,
    dequantize,
    dot_bounds,
    error_of,
    quantize,
    quantize_bias,
    quantize_weights,
    quantize_weights_by,
    steps_of,
)

_BIAS_ROOMS = tuple(BIAS_ROOM >> n for n in range(0, 16, 3))
"""Limits for a bias in steps, smaller ones if the layer's other channels leave less room. A smaller limit makes the
channel's weights coarser."""

_CLOSE = 1 / 8
"""An error, in steps of the output, at which the search for a better split of a word stops."""


def quantize_graph(
    graph: Graph, ranges: Mapping[str, Range] | None = None, stream: Callable[[Graph], Graph] | None = None
) -> Graph:
    """The graph in int8: every tensor gets a grid, every layer its integer arithmetic.

    ranges: of the tensors over samples; None for a quantized model. stream: makes the graph a stream, once tensors have
    grids. Raises UnsupportedError, with names, for a layer without an integer form, or a tensor without a grid.
    """
    graph = with_grids(with_words(graph, ranges), ranges)
    graph = uniform(graph) if graph.wide else graph
    graph = stream(graph) if stream else graph
    quantizer = QUANTIZERS[graph.doubled](graph, graph.grids)
    wide = quantizer.sixteen() if graph.wide else None
    layers = tuple(
        wide.layer(layer) if wide and is_wide(graph, layer) else quantizer.layer(layer) for layer in graph.layers
    )
    grids = graph.grids
    shapes = {
        name: (*shape, 2) if name in graph.words else doubled_shape(shape) if grids[name].wide else shape
        for name, shape in graph.shapes.items()
    }
    states = {
        n: float(steps_of(first, grids[n].scale, grids[n].zero, grids[n].bits)) for n, first in graph.states.items()
    }
    return replace(graph, layers=layers, shapes=shapes, states=states, is_float=False).check()


def _at(layer: _Binary) -> tuple[str, tuple[str, ...], str, str, tuple[int, ...], tuple[int, ...]]:
    return layer.name, layer.inputs, layer.output, layer.operation, layer.shape, layer.other


class Quantizer:
    def __init__(self, graph: Graph, grids: Mapping[str, Grid]) -> None:
        self.graph = graph
        self.grids = grids

    def sixteen(self) -> Quantizer16:
        """The quantizer of layers that read or write 16-bit tensors."""
        return Quantizer16(self.graph, lambda layer: self._weights(layer, np.zeros(1))[:2], self._weight_zero)

    def _clamp(self, low: float, high: float, grid: Grid) -> tuple[int, int]:
        return clamp_of(low, high, grid)

    def _product(self, layer: DotFloat | DepthwiseFloat) -> tuple[Array, Ints, Requant]:
        """A layer's weights in bytes, its bias in steps, and the requantization of its sums.

        If a channel's weights are nearly zero relative to its bias, the bias would not fit a word; the weights then get
        a coarser scale, even if the model quantized them. Raises UnsupportedError.
        """
        best: tuple[float, Array, Ints, Requant] | None = None
        problem: UnsupportedError | None = None
        x, out = self.grids[layer.inputs[0]], self.grids[layer.output]
        for room in _BIAS_ROOMS:
            try:
                weights, scale, coarser = self._weights(layer, np.abs(layer.bias.astype(np.float64)) / (x.scale * room))
                sums = scale * x.scale
                bias = quantize_bias(np.asarray(layer.bias, np.float32), sums, layer.name)
                low, high = dot_bounds(weights, bias, x.zero, self._weight_zero(layer))
                bound = np.maximum(np.abs(low), np.abs(high))
                clamp = self._clamp(layer.low, layer.high, out)
                requant = choose(sums / out.scale, bound, out.zero, *clamp, what=layer.name)
            except UnsupportedError as error:
                problem = problem or error
                continue
            off = error_of(sums / out.scale, bound, requant) + coarser * x.scale / out.scale
            if best is None or off < best[0]:
                best = off, weights, bias, requant
            if off < _CLOSE:
                break
        if best is None:
            assert problem
            raise problem
        return best[1:]

    def _weights(self, layer: DotFloat | DepthwiseFloat, least: Floats) -> tuple[Array, Floats, float]:
        """Weights in bytes, each channel's scale (at least `least`), and the largest error of a sum due to a coarser
        scale, in steps of the input."""
        known = self.graph.weight_scales.get(layer.name)
        if known is None:
            return *quantize_weights(layer.weights, least, coarser(layer, self.grids)), 0.0
        return quantize_weights_by(known, layer.weights, least, self._weight_zero(layer))

    def _weight_zero(self, layer: DotFloat | DepthwiseFloat) -> int:
        """The byte that stands for a weight of zero."""
        return self.graph.weight_zeros.get(layer.name, ZERO)

    @singledispatchmethod
    def layer(self, layer: Layer) -> Layer:
        raise no_int8_form(layer)

    @layer.register
    def _(self, layer: DotFloat) -> Layer:
        x = self.grids[layer.inputs[0]]
        weights, bias, requant = self._product(layer)
        at = (layer.name, layer.inputs, layer.output)
        how = (layer.shape, layer.window, layer.groups)
        zero, packed = self._weight_zero(layer), False
        if layer.name in self.graph.packed:
            # Weights that fit 16 consecutive values are stored relative to the smallest, without loss.
            least = min(int(weights.min()), zero)
            if int(weights.max()) - least < 16:
                weights, zero, packed = (weights - least).astype(np.uint8), zero - least, True
        return Dot(*at, *how, weights, bias, x.zero, requant, zero, packed)

    @layer.register
    def _(self, layer: DepthwiseFloat) -> Layer:
        x = self.grids[layer.inputs[0]]
        weights, bias, requant = self._product(layer)
        at = (layer.name, layer.inputs, layer.output)
        how = (layer.shape, layer.window)
        return Depthwise(*at, *how, weights, bias, x.zero, requant, self._weight_zero(layer))

    @layer.register
    def _(self, layer: BinaryFloat) -> Layer:
        a, out = self.grids[layer.inputs[0]], self.grids[layer.output]
        constant = None
        if layer.constant is None:
            b = self.grids[layer.inputs[1]]
        else:
            own = grid_over(float(layer.constant.min()), float(layer.constant.max()))
            b = own if layer.grid is None else Grid(*layer.grid)
            constant = quantize(layer.constant, b.scale, b.zero)
        low, high = self._clamp(layer.low, layer.high, out)
        if layer.operation == "mul":
            reach = max(a.zero, 255 - a.zero) * max(b.zero, 255 - b.zero)
            requant = choose(a.scale * b.scale / out.scale, reach, out.zero, low, high, layer.name)
            factors = (0, 0)
        elif layer.operation in ("add", "sub"):
            sign = 1 if layer.operation == "add" else -1
            ratios = (a.scale / out.scale, sign * b.scale / out.scale)
            factors, requant = sum_factors(ratios, (a.zero, b.zero), out.zero, low, high, layer.name)
        else:
            factor, requant = quotient_factor(a.scale / (b.scale * out.scale), out.zero, low, high, layer.name)
            return Quotient(*_at(layer), constant, (a.zero, b.zero), factor, requant)
        return Binary(*_at(layer), constant, (a.zero, b.zero), factors, requant)

    @layer.register
    def _(self, layer: ExtremeFloat) -> Layer:
        a, out = self.grids[layer.inputs[0]], self.grids[layer.output]
        b, constant = self._second(layer)
        ratios = (a.scale / out.scale, b.scale / out.scale)
        factors, requant = sum_factors(ratios, (a.zero, b.zero), out.zero, 0, 255, layer.name)
        return Extreme(*_at(layer), constant, (a.zero, b.zero), factors, requant)

    @layer.register
    def _(self, layer: PowerFloat) -> Layer:
        a, out = self.grids[layer.inputs[0]], self.grids[layer.output]
        b, constant = self._second(layer)
        made = Power(*_at(layer), constant, (a.scale, b.scale, out.scale), (a.zero, b.zero, out.zero))
        made.check()
        return made

    @layer.register
    def _(self, layer: CompareFloat) -> Layer:
        a = self.grids[layer.inputs[0]]
        constant = None
        if layer.constant is None:
            b = self.grids[layer.inputs[1]]
            numbers = compare_tensors(layer.operation, (a.scale, b.scale), (a.zero, b.zero))
        else:
            constant, numbers = compare_constant(layer.operation, layer.constant, a.scale, a.zero)
        return Compare(*_at(layer), constant, **numbers)  # type: ignore[arg-type]

    def _second(self, layer: ExtremeFloat | PowerFloat) -> tuple[Grid, Array | None]:
        """The grid of a second operand, and its bytes if it is constant."""
        if layer.constant is None:
            return self.grids[layer.inputs[1]], None
        b = grid_over(float(layer.constant.min()), float(layer.constant.max()))
        return b, quantize(layer.constant, b.scale, b.zero)

    @layer.register
    def _(self, layer: Select) -> Layer:
        """Constants become the output's bytes; operands on another grid are mapped through a table."""
        out, names = self.grids[layer.output], iter(layer.inputs)
        mask, first, second = layer.constants_of
        if mask is None and self.grids[next(names)].zero:
            raise UnsupportedError(f"{layer.name}: the condition holds numbers other than 0 and 1")

        def side(given: Array | None) -> tuple[Array | None, Array | None]:
            """Bytes of a constant, and a table for a tensor."""
            if given is not None:
                return quantize(given, out.scale, out.zero), None
            grid = self.grids[next(names)]
            return None, None if grid == out else bytes_of(grid, out)

        (one, one_table), (other, other_table) = side(first), side(second)
        constants = (None if mask is None else (mask != 0).astype(np.uint8), one, other)
        return replace(layer, constants_of=constants, tables=(one_table, other_table))

    @layer.register
    def _(self, layer: NormFloat) -> Layer:
        x, out = self.grids[layer.inputs[0]], self.grids[layer.output]
        at = (layer.name, layer.inputs, layer.output, layer.shape, layer.operation)
        made = Norm(*at, x.scale, x.zero, out.scale, out.zero)
        made.check()
        if layer.operation not in ("l1", "square"):
            return made
        ratio = x.scale / out.scale * (x.scale if layer.operation == "square" else 1)
        return replace(made, requant=choose(ratio, made.most, out.zero, what=layer.name))

    @layer.register
    def _(self, layer: RunningSumFloat) -> Layer:
        x, out = self.grids[layer.inputs[0]], self.grids[layer.output]
        reach = layer.shape[1] * max(x.zero, 255 - x.zero)
        requant = choose(x.scale / out.scale, reach, out.zero, what=layer.name)
        at = (layer.name, layer.inputs, layer.output, layer.shape, layer.exclusive, layer.reverse)
        return RunningSum(*at, x.zero, requant)

    @layer.register
    def _(self, layer: Take) -> Layer:
        out = self.grids[layer.output]
        table = None if layer.table is None else quantize(layer.table, out.scale, out.zero)
        words = layer.inputs[-1] in self.graph.words
        return replace(layer, table=table, zero=self._indices(layer, layer.shape[1]), words=words)

    @layer.register
    def _(self, layer: OneHot) -> Layer:
        out = self.grids[layer.output]
        off, on = (int(quantize(v, out.scale, out.zero)) for v in (layer.off, layer.on))
        return replace(layer, off=off, on=on, zero=self._indices(layer, layer.depth))

    def _indices(self, layer: Layer, count: int) -> int:
        """The zero point of a layer's last input, which holds indices into `count`. Raises UnsupportedError."""
        grid = self.grids[layer.inputs[-1]]
        if grid.scale != 1 or (count > MOST_IN_A_BYTE and layer.inputs[-1] not in self.graph.words):
            raise UnsupportedError(
                f"{layer.name}: an index of one of {count}; in int8 an index is a byte here, one of at most "
                f"{MOST_IN_A_BYTE}: build the model with --float"
            )
        return grid.zero

    @layer.register(Arg)
    @layer.register(TopK)
    def _(self, layer: Arg | TopK) -> Layer:
        return replace(layer, words=layer.output in self.graph.words)

    @layer.register
    def _(self, layer: Interpolate) -> Layer:
        return replace(layer, quantized=True)

    @layer.register
    def _(self, layer: MapFloat) -> Layer:
        x, out = self.grids[layer.inputs[0]], self.grids[layer.output]
        values = apply(on_grid(layer.chain, x), dequantize(np.arange(256), x.scale, x.zero))
        table = quantize(values, out.scale, out.zero)
        return Lookup(layer.name, layer.inputs, layer.output, layer.shape, table)

    @layer.register
    def _(self, layer: ProductFloat) -> Layer:
        a, b = (self.grids[name] for name in layer.inputs)
        out = self.grids[layer.output]
        reach = layer.depth * max(a.zero, 255 - a.zero) * max(b.zero, 255 - b.zero)
        requant = choose(a.scale * b.scale / out.scale, reach, out.zero, what=layer.name)
        at = (layer.name, layer.inputs, layer.output, layer.rows, layer.depth, layer.columns, layer.first, layer.second)
        return Product(*at, layer.batches, (a.zero, b.zero), requant)

    @layer.register
    def _(self, layer: NormalizeFloat) -> Layer:
        x, out = self.grids[layer.inputs[0]], self.grids[layer.output]
        at = (layer.name, layer.inputs, layer.output, layer.rows, layer.length, layer.factors, layer.shifts)
        how = (layer.each, layer.centered, layer.epsilon)
        return Normalize(*at, *how, x.scale, x.zero, out.scale, out.zero)

    @layer.register
    def _(self, layer: MaxPool) -> Layer:
        return replace(layer, fill=0)

    @layer.register
    def _(self, layer: Constant) -> Layer:
        out = self.grids[layer.output]
        return replace(layer, value=quantize(layer.value, out.scale, out.zero))

    @layer.register
    def _(self, layer: Reshape) -> Layer:
        return replace(layer, shape=(*layer.shape, 2)) if layer.output in self.graph.words else layer

    @layer.register(Copy)
    @layer.register(Keep)
    @layer.register(Slide)
    def _(self, layer: Layer) -> Layer:
        return layer

    @layer.register
    def _(self, layer: AveragePoolFloat) -> Layer:
        x, out = self.grids[layer.inputs[0]], self.grids[layer.output]
        ratio, reach = x.scale / out.scale / np.asarray(layer.counts, np.float64), max(x.zero, 255 - x.zero)
        requant = choose(ratio, prod(layer.window.kernel) * reach, out.zero, what=layer.name)
        return AveragePool(layer.name, layer.inputs, layer.output, layer.shape, layer.window, x.zero, requant)

    @layer.register
    def _(self, layer: ReduceFloat) -> Layer:
        x, out = self.grids[layer.inputs[0]], self.grids[layer.output]
        at = (layer.name, layer.inputs, layer.output, layer.shape, layer.operation)
        if layer.operation != "sum":
            return Reduce(*at)
        reach = layer.shape[1] * max(x.zero, 255 - x.zero)
        requant = choose(x.scale * layer.factor / out.scale, reach, out.zero, what=layer.name)
        return Reduce(*at, x.zero, requant)

    @layer.register
    def _(self, layer: Move) -> Layer:
        """Inputs on another grid than the output's are mapped through a table."""
        out = self.grids[layer.output]
        parts = []
        for name, part in zip(layer.inputs, layer.parts, strict=True):
            x = self.grids[name]
            parts.append(replace(part, table=None if x == out else bytes_of(x, out)))
        fill = None if layer.fill is None else float(quantize(layer.fill, out.scale, out.zero))
        return replace(layer, parts=tuple(parts), fill=fill)

    @layer.register
    def _(self, layer: SoftmaxFloat) -> Layer:
        x, out = self.grids[layer.inputs[0]], self.grids[layer.output]
        at = (layer.name, layer.inputs, layer.output, layer.rows, layer.length, x.scale, layer.log)
        return Softmax(*at, out.scale, out.zero)

    @layer.register(LstmFloat)
    @layer.register(GruFloat)
    @layer.register(GatedGruFloat)
    @layer.register(RnnFloat)
    def _(self, layer: LstmFloat | GruFloat | GatedGruFloat | RnnFloat) -> Layer:
        return recurrent(layer, self.grids)


QUANTIZERS = {False: Quantizer}
"""Quantizers by `Graph.doubled`; tflite/importing.py adds the other one."""
