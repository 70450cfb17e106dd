"""From a float32 graph and the ranges of its tensors to a graph in int8."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import singledispatchmethod
from math import inf, prod

import numpy as np
from emberlet.errors import UnsupportedError

from .calibrate import Range, grid_over
from .functions import apply
from .graph import Graph, Grid, Reshape
from .kernels.depthwise import Depthwise, DepthwiseFloat
from .kernels.dot import Dot, DotFloat
from .kernels.elementwise import Binary, BinaryFloat, Lookup, MapFloat, sum_factors
from .kernels.layer import Array, Layer
from .kernels.move import Move
from .kernels.pool import AveragePool, AveragePoolFloat, MaxPool, Reduce, ReduceFloat
from .kernels.recurrent import GATE, HIDDEN, MIDDLE, Gru, Lstm, Rows
from .kernels.recurrent_float import GruFloat, LstmFloat
from .kernels.softmax import Softmax, SoftmaxFloat
from .reference import (
    LIMIT,
    Floats,
    Ints,
    Requant,
    choose,
    dequantize,
    dot_bounds,
    quantize,
    quantize_bias,
    quantize_weights,
)

HIDDEN_GRID = Grid(1 / HIDDEN, HIDDEN)
SOFTMAX_GRID = Grid(1 / 256, 0)

_BIAS_ROOM = LIMIT >> 3
"""A bias is kept below this in steps of its accumulator, which leaves room for the products."""


def quantize_graph(graph: Graph, ranges: Mapping[str, Range]) -> Graph:
    """The graph in int8: every tensor gets a grid, every layer its integer arithmetic.

    Tensors with a grid in `graph.grids` (of a model that came quantized) keep it. Raises UnsupportedError for a layer
    that has no integer form, naming it.
    """
    grids = _grids(graph, ranges)
    quantizer = _Quantizer(graph, grids)
    layers = tuple(quantizer.layer(layer) for layer in graph.layers)
    return replace(graph, layers=layers, grids=grids, is_float=False).check()


def _grids(graph: Graph, ranges: Mapping[str, Range]) -> dict[str, Grid]:
    """A grid for each tensor; tensors between which elements only move, or the greatest is taken, share one."""
    leader = {name: name for name in graph.shapes}

    def find(name: str) -> str:
        while leader[name] != name:
            name = leader[name]
        return name

    for layer in graph.layers:
        if _keeps_grid(layer):
            leader[find(layer.output)] = find(layer.inputs[0])
    fixed: dict[str, Grid] = {}
    for layer in graph.layers:
        if isinstance(layer, SoftmaxFloat) and not layer.log:
            fixed.setdefault(find(layer.output), SOFTMAX_GRID)
        if isinstance(layer, LstmFloat | GruFloat):
            fixed.setdefault(find(layer.output), HIDDEN_GRID)
    for name, grid in graph.grids.items():
        fixed[find(name)] = grid
    spans: dict[str, Range] = {}
    for name in graph.shapes:
        low, high = spans.get(find(name), (0.0, 0.0))
        spans[find(name)] = min(low, ranges[name][0]), max(high, ranges[name][1])
    own = {name: graph.grids[name] for name in graph.grids if name in graph.shapes}
    return {name: own.get(name) or fixed.get(find(name)) or grid_over(*spans[find(name)]) for name in graph.shapes}


def _keeps_grid(layer: Layer) -> bool:
    moves_one = isinstance(layer, Move) and len(layer.parts) == 1
    picks = isinstance(layer, ReduceFloat) and layer.operation != "sum"
    return isinstance(layer, MaxPool | Reshape) or moves_one or picks


class _Quantizer:
    def __init__(self, graph: Graph, grids: Mapping[str, Grid]) -> None:
        self.graph = graph
        self.grids = grids

    def _clamp(self, low: float, high: float, grid: Grid) -> tuple[int, int]:
        """A clamp in bytes."""
        first = 0 if low == -inf else int(quantize(low, grid.scale, grid.zero))
        last = 255 if high == inf else int(quantize(high, grid.scale, grid.zero))
        return first, last

    def _weights(self, name: str, weights: Array, bias: Array, scale_in: float) -> tuple[Array, Floats, Ints]:
        """Weights in bytes, the scale of each channel's sums, the bias in steps of it."""
        known = self.graph.weight_scales.get(name)
        if known is not None:
            scale = np.broadcast_to(np.asarray(known, np.float64).reshape(-1), len(weights))
            q = np.rint(weights / scale.reshape(-1, *[1] * (weights.ndim - 1))) + 128
            bytes_ = np.clip(q, 0, 255).astype(np.uint8)
        else:
            bytes_, scale = quantize_weights(weights, np.abs(bias) / (scale_in * _BIAS_ROOM))
        sums = scale * scale_in
        return bytes_, sums, quantize_bias(bias, sums, name)

    def _requant(self, layer: Layer, sums: Floats, bytes_: Array, bias: Ints, zero: int, clamp: Range) -> Requant:
        out = self.grids[layer.output]
        low, high = dot_bounds(bytes_, bias, zero)
        bound = np.maximum(np.abs(low), np.abs(high))
        return choose(sums / out.scale, bound, out.zero, *self._clamp(*clamp, out), what=layer.name)

    @singledispatchmethod
    def layer(self, layer: Layer) -> Layer:
        raise UnsupportedError(f"{layer.name}: {layer.kind} has no int8 form; build the model with --float")

    @layer.register
    def _(self, layer: DotFloat) -> Layer:
        x = self.grids[layer.inputs[0]]
        weights, sums, bias = self._weights(layer.name, layer.weights, layer.bias, x.scale)
        requant = self._requant(layer, sums, weights, bias, x.zero, (layer.low, layer.high))
        at = (layer.name, layer.inputs, layer.output)
        return Dot(*at, layer.shape, layer.window, layer.groups, weights, bias, x.zero, requant)

    @layer.register
    def _(self, layer: DepthwiseFloat) -> Layer:
        x = self.grids[layer.inputs[0]]
        weights, sums, bias = self._weights(layer.name, layer.weights, layer.bias, x.scale)
        requant = self._requant(layer, sums, weights, bias, x.zero, (layer.low, layer.high))
        return Depthwise(
            layer.name, layer.inputs, layer.output, layer.shape, layer.window, weights, bias, x.zero, requant
        )

    @layer.register
    def _(self, layer: BinaryFloat) -> Layer:
        a, out = self.grids[layer.inputs[0]], self.grids[layer.output]
        constant = None
        if layer.constant is None:
            b = self.grids[layer.inputs[1]]
        else:
            b = grid_over(float(layer.constant.min()), float(layer.constant.max()))
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
            raise UnsupportedError(
                f"{layer.name}: a quotient of two tensors has no int8 form; build the model with --float"
            )
        at = (layer.name, layer.inputs, layer.output)
        return Binary(*at, layer.operation, layer.shape, layer.other, constant, (a.zero, b.zero), factors, requant)

    @layer.register
    def _(self, layer: MapFloat) -> Layer:
        x, out = self.grids[layer.inputs[0]], self.grids[layer.output]
        values = apply(layer.chain, dequantize(np.arange(256), x.scale, x.zero))
        table = quantize(values, out.scale, out.zero)
        return Lookup(layer.name, layer.inputs, layer.output, layer.shape, table)

    @layer.register
    def _(self, layer: MaxPool) -> Layer:
        return replace(layer, fill=0)

    @layer.register
    def _(self, layer: Reshape) -> Layer:
        return layer

    @layer.register
    def _(self, layer: AveragePoolFloat) -> Layer:
        x, out = self.grids[layer.inputs[0]], self.grids[layer.output]
        taps = prod(layer.window.kernel)
        ratio = x.scale / out.scale / np.asarray(layer.counts, np.float64)
        requant = choose(ratio, taps * max(x.zero, 255 - x.zero), out.zero, what=layer.name)
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
        """Inputs of another grid than the output's are looked up on their way."""
        out = self.grids[layer.output]
        parts = []
        for name, part in zip(layer.inputs, layer.parts, strict=True):
            x = self.grids[name]
            values = quantize(dequantize(np.arange(256), x.scale, x.zero), out.scale, out.zero)
            parts.append(replace(part, table=None if x == out else values))
        fill = None if layer.fill is None else float(quantize(layer.fill, out.scale, out.zero))
        return replace(layer, parts=tuple(parts), fill=fill)

    @layer.register
    def _(self, layer: SoftmaxFloat) -> Layer:
        x, out = self.grids[layer.inputs[0]], self.grids[layer.output]
        at = (layer.name, layer.inputs, layer.output, layer.rows, layer.length, x.scale, layer.log)
        return Softmax(*at, out.scale, out.zero)

    @layer.register
    def _(self, layer: LstmFloat) -> Layer:
        return self._recurrent(Lstm, layer)

    @layer.register
    def _(self, layer: GruFloat) -> Layer:
        return self._recurrent(Gru, layer)

    def _recurrent(self, kind: type[Lstm] | type[Gru], layer: LstmFloat | GruFloat) -> Layer:
        from_input = self._rows(layer.name, layer.weights_input, layer.bias_input, self.grids[layer.inputs[0]])
        from_state = self._rows(layer.name, layer.weights_state, layer.bias_state, HIDDEN_GRID)
        at = (layer.name, layer.inputs, layer.output, layer.steps, layer.hidden)
        return kind(*at, from_input, from_state, layer.reverse, layer.sequence, layer.keep)

    def _rows(self, name: str, weights: Array, bias: Array, grid: Grid) -> Rows:
        bytes_, scale = quantize_weights(weights, np.abs(bias) / (grid.scale * _BIAS_ROOM))
        sums = scale * grid.scale
        steps = quantize_bias(bias, sums, name)
        low, high = dot_bounds(bytes_, steps, grid.zero)
        bound = np.maximum(np.abs(low), np.abs(high))
        requant = choose(sums * GATE, bound, MIDDLE, 0, 2 * MIDDLE - 1, what=name)
        return Rows(bytes_, steps, grid.zero, requant)
