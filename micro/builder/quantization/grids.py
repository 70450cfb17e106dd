"""Chooses a quantization grid for every tensor: the model's own, those that a layer requires, and the rest.

If the model has no grid for a tensor and there are no samples, the grid is derived from those of the inputs: for a
function of one number, from its values at all 256 bytes; for sums and products, from their largest and smallest values.
onnxruntime, for example, writes no QuantizeLinear after ReduceMean, Tanh, Elu or LSTM.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf, log
from typing import Any

import numpy as np
from emberlet.errors import UnsupportedError
from emberlet.host.quantization.calibration import Range
from emberlet.host.quantization.multipliers import short_scales
from numpy.typing import NDArray

from ..functions import COMPARED, Chain, apply
from ..graph import Graph, Grid, Reshape, renamed
from ..kernels.arg import Arg
from ..kernels.constant import Constant
from ..kernels.depthwise import DepthwiseFloat
from ..kernels.dot import DotFloat
from ..kernels.doubled_lstm import DoubledLstmFloat
from ..kernels.elementwise import BinaryFloat, MapFloat
from ..kernels.interpolate import Interpolate
from ..kernels.lanes import Take, TopK
from ..kernels.layer import Array, Layer
from ..kernels.move import Copy, Move
from ..kernels.pairs import CompareFloat, ExtremeFloat, nearest_byte
from ..kernels.pool import AveragePoolFloat, MaxPool, ReduceFloat
from ..kernels.recurrence import HIDDEN
from ..kernels.recurrent_float import GatedGruFloat, GruFloat, LstmFloat, RnnFloat
from ..kernels.select import Select
from ..kernels.softmax import SoftmaxFloat, takes_scale
from ..kernels.state import Keep
from .calibrate import grid_over
from .reference import dequantize, quantize

HIDDEN_GRID = Grid(1 / HIDDEN, HIDDEN)
HIDDEN_WORDS = Grid(2.0**-15, 1 << 15, 16)
SOFTMAX_GRID = Grid(1 / 256, 0)
SOFTMAX_WORDS = Grid(2.0**-16, 0, 16)
WHOLE_GRID = Grid(1.0, 0)

MASK = 1e4
"""A constant beyond this in magnitude, selected by a mask, stands for minus infinity before a softmax."""

MASK_ROOM = 8.0
"""How far such a constant is placed below the numbers that are not masked: its exponential is exp(-8) of theirs."""


def with_grids(graph: Graph, ranges: Mapping[str, Range] | None) -> Graph:
    """The float32 graph with a grid for every tensor, and a layer wherever a tensor changes its grid.

    ranges: of every tensor over samples; None without samples. The graph's own grids are kept. Raises UnsupportedError
    for tensors whose grid cannot be derived without samples.
    """
    whole = {name: Grid(1.0, byte) for name, byte in graph.integers.items() if name in graph.inputs}
    grids = whole | {name: grid for name, grid in graph.grids.items() if name in graph.shapes}
    _whole(graph, grids, ranges)
    graph = _insisting(replace(graph, grids=grids), _wanted)
    grids = dict(graph.grids)
    _shared(graph, grids)
    if ranges is None:
        _derived(graph, grids)
    else:
        _seen(graph, grids, ranges)
    return _insisting(replace(graph, grids=grids), _as_input)


def _whole(graph: Graph, grids: dict[str, Grid], ranges: Mapping[str, Range] | None) -> None:
    """Steps of one for whole numbers that fit a byte."""
    for name in graph.whole & graph.shapes.keys():
        low, high = (0.0, 255.0) if ranges is None else ranges[name]
        if low >= -0.5 and high <= 255.5:
            grids.setdefault(name, WHOLE_GRID)
        elif low >= -128.5 and high <= 127.5:
            grids.setdefault(name, Grid(1.0, 128))


def keeps_bytes(layer: Layer) -> bool:
    """Whether the output's bytes are some of the input's, so that both share a grid."""
    if isinstance(layer, ReduceFloat):
        return layer.operation != "sum"
    if isinstance(layer, TopK):
        return not layer.indices
    if isinstance(layer, Take):
        return layer.table is None
    return isinstance(layer, MaxPool | Reshape | Keep | Copy | Interpolate)


def _prefers_input(layer: Layer) -> bool:
    return keeps_bytes(layer) or (isinstance(layer, Move) and len(set(layer.inputs)) == 1)


def _wanted(layer: Layer, grids: Mapping[str, Grid]) -> Grid | None:
    """The grid that a layer's kernel requires for its output, if any."""
    if isinstance(layer, DoubledLstmFloat):
        return grids.get(layer.output, layer.numbers.result)  # LiteRT copies the bytes
    if isinstance(layer, LstmFloat | GruFloat | GatedGruFloat) or (isinstance(layer, RnnFloat) and not layer.relu):
        return HIDDEN_WORDS if any(n in grids and grids[n].wide for n in (*layer.inputs, layer.output)) else HIDDEN_GRID
    if isinstance(layer, Arg | CompareFloat) or (isinstance(layer, TopK) and layer.indices):
        return WHOLE_GRID
    if isinstance(layer, SoftmaxFloat) and not layer.log:
        own = grids.get(layer.output)
        if own is not None and own.wide:
            return own
        if own is None and layer.inputs[0] in grids and grids[layer.inputs[0]].wide:
            return SOFTMAX_WORDS
        return own if own is not None and takes_scale(own.scale) else SOFTMAX_GRID
    return None


def _as_input(layer: Layer, grids: Mapping[str, Grid]) -> Grid | None:
    return grids[layer.inputs[0]] if keeps_bytes(layer) else _wanted(layer, grids)


def _insisting(graph: Graph, wanted: Callable[[Layer, Mapping[str, Grid]], Grid | None]) -> Graph:
    """The graph with a layer wherever a tensor is read on another grid than it is written."""
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
    """Give each tensor without a grid that of the tensor its elements come from, or else of the one they all go to."""
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
            # Another reader may need values that this grid saturates.
            if all(_prefers_input(r) and grids.get(r.output) == grids[layer.output] for r in readers[source]):
                grids[source] = grids[layer.output]
        if len(grids) == before:
            return


def _seen(graph: Graph, grids: dict[str, Grid], ranges: Mapping[str, Range]) -> None:
    """Grids over the observed ranges. Tensors that only exchange elements share that of the one they come from, as in
    files of QuantizeLinear and DequantizeLinear, with what they are filled with."""
    leader = {name: name for name in graph.shapes}

    def find(name: str) -> str:
        while leader[name] != name:
            name = leader[name]
        return name

    for layer in graph.layers:
        if _prefers_input(layer) and layer.output not in grids and layer.inputs[0] not in grids:
            leader[find(layer.output)] = find(layer.inputs[0])
    for layer in reversed(graph.layers):
        for name in _joined_alone(graph, layer) if layer.output not in grids else ():
            if name not in grids:
                leader[find(name)] = find(layer.output)
    spans = {**ranges, **_masked(graph, ranges)}
    for layer in graph.layers:
        if isinstance(layer, Move) and layer.fill:
            low, high = spans[find(layer.output)]
            spans[find(layer.output)] = min(low, layer.fill), max(high, layer.fill)
    for name in graph.shapes:
        if name not in grids:
            grids[name] = grid_over(*spans[find(name)])


def _joined_alone(graph: Graph, layer: Layer) -> list[str]:
    """The operands of a concatenation that nothing else reads, nor what their elements come from."""
    if not isinstance(layer, Move) or layer.fill is not None or len(set(layer.inputs)) == 1:
        return []
    readers, made = graph.consumers(), {each.output: each for each in graph.layers}
    found = []
    for name in layer.inputs:
        chain = [name]
        while chain[-1] in made and _prefers_input(made[chain[-1]]):
            chain.append(made[chain[-1]].inputs[0])
        if all(len(readers[n]) == 1 and n not in graph.outputs for n in chain) and chain[-1] in made:
            found.append(name)
    return found


def _masked(graph: Graph, ranges: Mapping[str, Range]) -> dict[str, Range]:
    """The ranges with room for a mask's constant, so that a byte can stand for it."""
    found: dict[str, Range] = {}
    masking = _masking(graph)
    for layer in graph.layers:
        if layer.output in masking:
            source, low, high = masking[layer.output]
            if source is not None:
                least, greatest = found.get(source, ranges[source])
                low, high = min(low, least), max(high, greatest)
            found[layer.output] = low - MASK_ROOM, high
    for layer in graph.layers:
        if isinstance(layer, Reshape | Move) and layer.inputs[0] in found:
            found[layer.output] = found[layer.inputs[0]]
    return found


def _masking(graph: Graph) -> dict[str, tuple[str | None, float, float]]:
    """The outputs of masks, which choose between numbers and a substitute for minus infinity before a softmax.

    For each, the tensor that it chooses from (None if it chooses among constants), and the smallest and the largest of
    the constants that it does not hide (inf and -inf if there are none).
    """
    readers = graph.consumers()

    def only_softmax(name: str) -> bool:
        return bool(readers[name]) and all(
            isinstance(r, SoftmaxFloat) or (isinstance(r, Reshape | Move) and only_softmax(r.output))
            for r in readers[name]
        )

    found: dict[str, tuple[str | None, float, float]] = {}
    for layer in graph.layers:
        if not isinstance(layer, Select) or not only_softmax(layer.output):
            continue
        constants = [c for c in layer.constants_of[1:] if c is not None]
        shown = [c[c > -MASK] for c in constants]
        if sum(c.size for c in constants) == sum(c.size for c in shown):
            continue
        source = layer.inputs[-1] if len(constants) < 2 else None
        low = min((float(c.min()) for c in shown if c.size), default=np.inf)
        high = max((float(c.max()) for c in shown if c.size), default=-np.inf)
        if source is not None or any(c.size for c in shown):
            found[layer.output] = source, low, high
    return found


def _derived(graph: Graph, grids: dict[str, Grid]) -> None:
    """Derive grids from those of the layers' inputs. Raises UnsupportedError for tensors where that is impossible."""
    missing = [name for name in graph.inputs if name not in grids]
    masking = _masking(graph)
    for layer in graph.layers:
        if layer.output in grids:
            continue
        if layer.output in masking:
            source, low, high = masking[layer.output]
            grid = None if source is None else grids.get(source)
            if grid is not None:
                low, high = min(low, ends(grid)[0]), max(high, ends(grid)[1])
            if source is None or grid is not None:
                grids[layer.output] = grid_over(low - MASK_ROOM, high, 8 if grid is None else grid.bits)
                continue
        if all(name in grids for name in layer.inputs):
            span = _span(layer, [grids[name] for name in layer.inputs])
            if span is not None and np.isfinite(span).all():
                same = _prefers_input(layer) or isinstance(layer, AveragePoolFloat)
                grids[layer.output] = grids[layer.inputs[0]] if same else grid_over(*span, _bits(layer, grids))
                continue
        missing.append(layer.output)
    if missing:
        raise UnsupportedError(
            f"{graph.name}: quantized only in part: no scale for {', '.join(missing[:5])}; "
            "calibrate those with samples (--calibration samples.npz), or build it in float32 (--float)"
        )


def _bits(layer: Layer, grids: Mapping[str, Grid]) -> int:
    return max((grids[name].bits for name in layer.inputs), default=8)


def ends(grid: Grid) -> Range:
    """The smallest and the largest number of a grid."""
    return grid.ends


def _span(layer: Layer, grids: list[Grid]) -> Range | None:
    """The smallest and the largest result of a layer for inputs in these ranges; None if that is useless as a grid."""
    low, high = (min(ends(g)[0] for g in grids), max(ends(g)[1] for g in grids)) if grids else (0.0, 0.0)
    if isinstance(layer, Constant):
        return float(layer.value.min()), float(layer.value.max())
    if isinstance(layer, MapFloat):
        values = apply(layer.chain, dequantize(np.arange(1 << grids[0].bits), grids[0].scale, grids[0].zero))
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
    if isinstance(layer, ExtremeFloat | Select):
        return _with_constants(layer, low, high)
    return None


def _with_constants(layer: ExtremeFloat | Select, low: float, high: float) -> Range:
    constants = layer.constants_of[1:] if isinstance(layer, Select) else (layer.constant,)
    for c in (c for c in constants if c is not None):
        low, high = min(low, float(c.min())), max(high, float(c.max()))
    return low, high


def _of_two(layer: BinaryFloat, grids: list[Grid]) -> Range | None:
    a = ends(grids[0])
    b = ends(grids[1]) if layer.constant is None else (float(layer.constant.min()), float(layer.constant.max()))
    if layer.operation == "div":
        return None
    by = {"add": np.add, "sub": np.subtract, "mul": np.multiply}[layer.operation]
    corners = [float(by(x, y)) for x in a for y in b]
    return max(min(corners), layer.low), min(max(corners), layer.high)


def coarser(
    layer: DotFloat | DepthwiseFloat, grids: Mapping[str, Grid]
) -> Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]] | None:
    """Gives (weights of each channel, scales) the larger scales that the ONNX file of the same quantized model has."""
    x, out = grids[layer.inputs[0]], grids[layer.output]
    if x.bits != 8 or out.bits != 8:
        return None
    return lambda rows, scales: short_scales(rows, scales, (x.scale, x.zero), out.scale, layer.bias)


def on_grid(chain: Chain, grid: Grid) -> Chain:
    """A comparison with a number in the grid's range, replaced by the number of the nearest byte."""
    if not chain or chain[0][0] not in COMPARED:
        return chain
    (name, (number,)), rest = chain[0], chain[1:]
    nearest = nearest_byte(np.array([number]), grid.scale, grid.zero)
    if 0 <= nearest[0] <= 255:
        number = float(dequantize(nearest, grid.scale, grid.zero)[0])
    return ((name, (number,)), *rest)


def bytes_of(x: Grid, out: Grid) -> Array:
    """Each byte of a grid as a byte of another one."""
    return quantize(dequantize(np.arange(256), x.scale, x.zero), out.scale, out.zero)


def clamp_of(low: float, high: float, grid: Grid) -> tuple[int, int]:
    """A clamp in bytes."""
    first = 0 if low == -inf else int(quantize(low, grid.scale, grid.zero))
    last = 255 if high == inf else int(quantize(high, grid.scale, grid.zero))
    return first, last
