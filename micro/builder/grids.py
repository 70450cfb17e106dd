"""A grid of bytes for every tensor: those a quantized model gives, those a layer insists on, and the rest.

Where a model leaves a grid open and there are no samples, the grid is derived from those before: of a function of one
number by its values at all 256 bytes, of sums and products by their greatest and least values. onnxruntime writes no
QuantizeLinear behind ReduceMean, Tanh, Elu or LSTM, for example.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import log

import numpy as np
from emberlet.errors import UnsupportedError

from .calibrate import Range, grid_over
from .functions import apply
from .graph import Graph, Grid, Reshape, renamed
from .kernels.arg import Arg
from .kernels.elementwise import BinaryFloat, MapFloat
from .kernels.layer import Layer
from .kernels.move import Copy, Move
from .kernels.pool import AveragePoolFloat, MaxPool, ReduceFloat
from .kernels.recurrent import HIDDEN
from .kernels.recurrent_float import GatedGruFloat, GruFloat, LstmFloat, RnnFloat
from .kernels.softmax import SoftmaxFloat, takes_scale
from .kernels.state import Keep
from .reference import dequantize

HIDDEN_GRID = Grid(1 / HIDDEN, HIDDEN)
SOFTMAX_GRID = Grid(1 / 256, 0)


def with_grids(graph: Graph, ranges: Mapping[str, Range] | None) -> Graph:
    """The float32 graph with a grid for every tensor, and a layer wherever bytes change from one grid to another.

    ranges: of every tensor over samples; None where there are none. Grids that the graph has are kept. Raises
    UnsupportedError, without samples, for tensors whose grid nothing tells.
    """
    whole = {name: Grid(1.0, byte) for name, byte in graph.integers.items() if name in graph.inputs}
    grids = whole | {name: grid for name, grid in graph.grids.items() if name in graph.shapes}
    graph = _insisting(replace(graph, grids=grids), _wanted)
    grids = dict(graph.grids)
    _shared(graph, grids)
    if ranges is None:
        _derived(graph, grids)
    else:
        _seen(graph, grids, ranges)
    return _insisting(replace(graph, grids=grids), _as_input)


def keeps_bytes(layer: Layer) -> bool:
    """Whether the output's bytes are some of the input's: both have one grid."""
    picks = isinstance(layer, ReduceFloat) and layer.operation != "sum"
    return isinstance(layer, MaxPool | Reshape | Keep | Copy) or picks


def _prefers_input(layer: Layer) -> bool:
    return keeps_bytes(layer) or (isinstance(layer, Move) and len(set(layer.inputs)) == 1)


def _wanted(layer: Layer, grids: Mapping[str, Grid]) -> Grid | None:
    """The grid that a layer's kernel writes, where it has no choice."""
    if isinstance(layer, LstmFloat | GruFloat | GatedGruFloat) or (isinstance(layer, RnnFloat) and not layer.relu):
        return HIDDEN_GRID
    if isinstance(layer, Arg):
        return Grid(1.0, 0)
    if isinstance(layer, SoftmaxFloat) and not layer.log:
        own = grids.get(layer.output)
        return own if own is not None and takes_scale(own.scale) else SOFTMAX_GRID
    return None


def _as_input(layer: Layer, grids: Mapping[str, Grid]) -> Grid | None:
    return grids[layer.inputs[0]] if keeps_bytes(layer) else _wanted(layer, grids)


def _insisting(graph: Graph, wanted: Callable[[Layer, Mapping[str, Grid]], Grid | None]) -> Graph:
    """The graph with a layer between a grid that is written and the one that is read, where they differ."""
    layers: list[Layer] = []
    shapes, grids = dict(graph.shapes), dict(graph.grids)
    for layer in graph.layers:
        grid = wanted(layer, grids)
        if grid is None or grids.setdefault(layer.output, grid) == grid:
            layers.append(layer)
            continue
        name, n = f"{layer.output}:bytes", 1
        while name in shapes:
            name, n = f"{layer.output}:bytes.{n}", n + 1
        shapes[name], grids[name] = shapes[layer.output], grid
        layers.append(renamed(layer, output=name))
        layers.append(MapFloat(f"{layer.name} to bytes", (name,), layer.output, shapes[name], ()))
    return replace(graph, layers=tuple(layers), shapes=shapes, grids=grids)


def _shared(graph: Graph, grids: dict[str, Grid]) -> None:
    """Give tensors without a grid that of the one their elements come from, or else of the one they all go to."""
    readers = graph.consumers()
    while True:
        before = len(grids)
        for layer in graph.layers:
            if _prefers_input(layer) and layer.inputs[0] in grids:
                grids.setdefault(layer.output, grids[layer.inputs[0]])
        for layer in reversed(graph.layers):
            source = layer.inputs[0] if layer.inputs else ""
            if not _prefers_input(layer) or source in grids or source in graph.outputs or layer.output not in grids:
                continue
            # Another reader may need what this grid cuts off.
            if all(_prefers_input(r) and grids.get(r.output) == grids[layer.output] for r in readers[source]):
                grids[source] = grids[layer.output]
        if len(grids) == before:
            return


def _seen(graph: Graph, grids: dict[str, Grid], ranges: Mapping[str, Range]) -> None:
    """Grids over what was seen; tensors between which elements only move share one."""
    leader = {name: name for name in graph.shapes}

    def find(name: str) -> str:
        while leader[name] != name:
            name = leader[name]
        return name

    for layer in graph.layers:
        if _prefers_input(layer) and layer.output not in grids and layer.inputs[0] not in grids:
            leader[find(layer.output)] = find(layer.inputs[0])
    spans: dict[str, Range] = {}
    for name in graph.shapes:
        if name not in grids:
            low, high = spans.get(find(name), (0.0, 0.0))
            spans[find(name)] = min(low, ranges[name][0]), max(high, ranges[name][1])
    for name in graph.shapes:
        if name not in grids:
            grids[name] = grid_over(*spans[find(name)])


def _derived(graph: Graph, grids: dict[str, Grid]) -> None:
    """Grids from those of the layers' inputs. Raises UnsupportedError for tensors where that tells nothing."""
    missing = [name for name in graph.inputs if name not in grids]
    for layer in graph.layers:
        if layer.output in grids:
            continue
        if all(name in grids for name in layer.inputs):
            span = _span(layer, [grids[name] for name in layer.inputs])
            if span is not None and np.isfinite(span).all():
                same = _prefers_input(layer) or isinstance(layer, AveragePoolFloat)
                grids[layer.output] = grids[layer.inputs[0]] if same else grid_over(*span)
                continue
        missing.append(layer.output)
    if missing:
        raise UnsupportedError(
            f"{graph.name}: quantized only in part: no scale for {', '.join(missing[:5])}; "
            "calibrate those with samples (--calibration samples.npz), or build it in float32 (--float)"
        )


def ends(grid: Grid) -> Range:
    """The least and the greatest number of a grid."""
    return grid.scale * -grid.zero, grid.scale * (255 - grid.zero)


def _span(layer: Layer, grids: list[Grid]) -> Range | None:
    """The least and the greatest number that a layer makes of such inputs; None where that is no use as a grid."""
    low, high = (min(ends(g)[0] for g in grids), max(ends(g)[1] for g in grids)) if grids else (0.0, 0.0)
    if isinstance(layer, MapFloat):
        values = apply(layer.chain, dequantize(np.arange(256), grids[0].scale, grids[0].zero))
        return float(values.min()), float(values.max())
    if isinstance(layer, ReduceFloat) and layer.operation == "sum":
        times = layer.shape[1] * layer.factor
        return low * times, high * times
    if isinstance(layer, Move):
        fill = 0.0 if layer.fill is None else layer.fill
        return min(low, fill), max(high, fill)
    if isinstance(layer, AveragePoolFloat) or _prefers_input(layer):
        return low, high
    if isinstance(layer, SoftmaxFloat):
        return low - high - log(layer.length), 0.0
    if isinstance(layer, BinaryFloat):
        return _of_two(layer, grids)
    return None


def _of_two(layer: BinaryFloat, grids: list[Grid]) -> Range | None:
    a = ends(grids[0])
    b = ends(grids[1]) if layer.constant is None else (float(layer.constant.min()), float(layer.constant.max()))
    if layer.operation == "div":
        return None
    by = {"add": np.add, "sub": np.subtract, "mul": np.multiply}[layer.operation]
    corners = [float(by(x, y)) for x in a for y in b]
    return max(min(corners), layer.low), min(max(corners), layer.high)
