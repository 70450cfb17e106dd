"""Converts a model over a window of time to one that takes a few new steps at a time, with the same results.

Convolutions over time compute the new steps only; the device keeps the last steps of their inputs
(`kernels.slide.Slide`). If a layer needs the whole window (a mean, a dense layer, a recurrent one), all steps of its
input are kept, and everything after it runs as before. Layers differ only in length from those of the whole window and
use the same grids, so their bytes are equal.

A layer that pads the window with zeros has other results at the window's ends than in its middle. It is computed step
by step only if no needed result depends on the padding, as in a causal convolution of which only the last step is used.

Steps are counted in the whole window: of its `steps` steps, a stream's tensor holds the `new` ones before `edge`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod

from emberlet.errors import UnsupportedError

from .graph import Graph, Reshape, renamed
from .kernels.depthwise import Depthwise, DepthwiseFloat
from .kernels.dot import Dot, DotFloat
from .kernels.elementwise import Lookup, MapFloat, _Binary
from .kernels.layer import Layer
from .kernels.move import Copy, Move, Part, strides
from .kernels.nest import Axis, merged
from .kernels.pool import AveragePool, AveragePoolFloat, MaxPool, _Reduce
from .kernels.slide import Slide
from .kernels.softmax import Softmax, SoftmaxFloat

Windowed = Dot | DotFloat | Depthwise | DepthwiseFloat | MaxPool | AveragePool | AveragePoolFloat
OneByOne = Lookup | MapFloat | Copy

MOST_NEW = 64
"""The most new steps tried if their number is not given."""


@dataclass(frozen=True)
class Flow:
    """A tensor along time. axis: its time axis; steps: those of the whole window; new: those of each inference."""

    axis: int
    steps: int
    new: int


@dataclass(frozen=True)
class Geometry:
    """A window's geometry along time: its reach, its stride, and the zeros before and after the tensor."""

    reach: int
    stride: int
    before: int
    behind: int


Range = tuple[int, int]


def streamed(graph: Graph, axis: int, new: int | None = None) -> Graph:
    """The graph, quantized or float32, as one that takes `new` steps along an axis of the model's input per inference.

    new: None for the smallest number with which layers that compute new steps only do the largest part of the work. An
    output along time holds its new steps. Raises UnsupportedError for a model with several inputs, or if the axis or
    the number of steps does not fit.
    """
    if len(graph.inputs) != 1:
        names = ", ".join(graph.inputs)
        raise UnsupportedError(f"{graph.name}: --stream is for models of one input; this one has {names}")
    (name,) = graph.inputs
    at, steps = time_axis(graph, name, axis)
    if new is not None and not 0 < new <= steps:
        raise UnsupportedError(f"{graph.name}: --new-steps is {new}, expected 1 to {steps}, the steps of the window")
    choices = range(1, min(steps, MOST_NEW) + 1) if new is None else [new]
    best = max((_Stream(graph, Flow(at, steps, n)) for n in choices), key=lambda s: (s.saved(), -s.first.new))
    return best.graph_of()


def time_axis(graph: Graph, name: str, axis: int) -> Range:
    """The axis of an input's shape that corresponds to the model's `axis`, and its size. Raises UnsupportedError."""
    shape = graph.shapes[name]
    dims, order = graph.layouts.get(name, (shape, tuple(range(len(shape)))))
    kept = order[len(order) - len(shape) :]
    if axis not in kept or dims[axis] < 2:
        text = ", ".join(f"{k} ({dims[k]})" for k in sorted(kept) if dims[k] > 1)
        raise UnsupportedError(f"{graph.name}: --stream {axis}: input {name!r} has the axes {text}, by their sizes")
    return kept.index(axis), dims[axis]


def geometry(layer: Windowed, axis: int) -> Geometry | None:
    """The geometry along an axis of the layer's input; None if that is not a side of an image."""
    side = axis + 2 - len(layer.shape) + 1
    if len(layer.shape) < 2 or side not in (0, 1) or (len(layer.shape) > 3 and side == 0):
        return None
    w = layer.window
    return Geometry(w.reach[side], w.strides[side], w.pads[side], w.pads[side + 2])


def shift_of(layer: Layer, source: tuple[int, ...], out: tuple[int, ...], axis: int) -> int | None:
    """For a Move that cuts or pads along one axis only, the input step that the output starts at."""
    if not isinstance(layer, Move) or len(layer.parts) != 1 or len(source) != len(out):
        return None
    (part,) = layer.parts
    if part.table is not None or any(a != b for k, (a, b) in enumerate(zip(source, out, strict=True)) if k != axis):
        return None
    ins, outs = strides(source), strides(out)
    first, place = divmod(part.start, ins[axis]), divmod(part.to, outs[axis])
    if first[1] or place[1] or (first[0] and place[0]):
        return None
    count = min(source[axis] - first[0], out[axis] - place[0])
    turns = [count if k == axis else n for k, n in enumerate(source)]
    expected = [Axis(n, (a, b)) for n, a, b in zip(turns, ins, outs, strict=True)]
    return first[0] - place[0] if merged(part.axes) == merged(expected) else None


@dataclass
class _Stream:
    """flows: of the tensors along time; needs: which of their steps are needed; local: indices of the layers that
    compute new steps only; edges: of the tensors that hold new steps only."""

    graph: Graph
    first: Flow
    flows: dict[str, Flow] = field(default_factory=dict)
    needs: dict[str, Range] = field(default_factory=dict)
    local: set[int] = field(default_factory=set)
    edges: dict[str, int] = field(default_factory=dict)
    layers: list[Layer] = field(default_factory=list)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    origin: dict[str, str] = field(default_factory=dict)
    states: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        (name,) = self.graph.inputs
        self.flows[name] = self.first
        for k, layer in enumerate(self.graph.layers):
            flow = self._flow(layer)
            if flow is not None:
                self.flows[layer.output] = flow
                self.local.add(k)
        for name in self.graph.outputs:
            if name in self.flows:
                self._need(name, (self.flows[name].steps - self.flows[name].new, self.flows[name].steps))
        for k in reversed(range(len(self.graph.layers))):
            self._read(k, self.graph.layers[k])
        known = {*self.graph.inputs}
        for k, layer in enumerate(self.graph.layers):
            # A layer after one that needs the whole window also has the whole window.
            if k in self.local and all(n in known for n in layer.inputs if n in self.flows):
                known.add(layer.output)
            else:
                self.local.discard(k)

    def saved(self) -> int:
        """Multiply-accumulates of the layers that compute new steps only."""
        return sum(self.graph.layers[k].macs for k in self.local)

    # -- what flows ---------------------------------------------------------------------------------------------------

    def _flow(self, layer: Layer) -> Flow | None:
        """The output along time of a layer whose steps depend on few steps of its inputs."""
        given = [self.flows.get(name) for name in layer.inputs]
        if not given or given[0] is None:
            return None
        flow, out = given[0], self.graph.shapes[layer.output]
        if isinstance(layer, OneByOne):
            return flow
        if isinstance(layer, Softmax | SoftmaxFloat):
            return flow if flow.axis < len(out) - 1 else None
        if isinstance(layer, Reshape):
            return self._reshaped(flow, self.graph.shapes[layer.inputs[0]], out)
        if isinstance(layer, _Binary):
            own = flow.axis - (len(layer.shape) - len(layer.other))
            varies = own >= 0 and layer.other[own] != 1
            if layer.constant is not None:
                return None if varies else flow
            return flow if given[1] == (replace(flow, axis=own) if varies else None) else None
        if isinstance(layer, _Reduce):
            source = self.graph.shapes[layer.inputs[0]]
            inside = layer.shape[1] * layer.shape[2]
            return self._reshaped(flow, source, out) if prod(source[flow.axis + 1 :]) % inside == 0 else None
        if isinstance(layer, Windowed):
            return self._windowed(layer, flow, out)
        if shift_of(layer, self.graph.shapes[layer.inputs[0]], out, flow.axis) is not None:
            return replace(flow, steps=out[flow.axis]) if out[flow.axis] >= flow.new else None
        return None

    @staticmethod
    def _reshaped(flow: Flow, source: tuple[int, ...], out: tuple[int, ...]) -> Flow | None:
        """The output's time axis, if it has one with as many elements before it."""
        for k, n in enumerate(out):
            if n == flow.steps and prod(out[:k]) == prod(source[: flow.axis]):
                return replace(flow, axis=k)
        return None

    def _windowed(self, layer: Windowed, flow: Flow, out: tuple[int, ...]) -> Flow | None:
        along = geometry(layer, flow.axis)
        many = len(layer.requant.multipliers) if isinstance(layer, AveragePool) else 1
        many = len(layer.counts) if isinstance(layer, AveragePoolFloat) else many
        if along is None or many > 1 or flow.new % along.stride or len(out) != len(layer.shape):
            return None
        new = flow.new // along.stride
        return Flow(flow.axis, out[flow.axis], new) if out[flow.axis] >= new else None

    # -- what is needed -----------------------------------------------------------------------------------------------

    def _need(self, name: str, steps: Range) -> None:
        low, high = self.needs.get(name, steps)
        self.needs[name] = min(low, steps[0]), max(high, steps[1])

    def _read(self, k: int, layer: Layer) -> None:
        """Record which steps of its inputs a layer reads; it is not local if that includes padding."""
        along = [name for name in layer.inputs if name in self.flows]
        if k in self.local:
            wanted = self._read_by(layer, self.needs.get(layer.output, (0, self.flows[layer.output].steps)))
            if wanted is not None:
                for name in along:
                    self._need(name, wanted)
                return
            self.local.discard(k)
        for name in along:
            self._need(name, self._taken(layer, name))

    def _taken(self, layer: Layer, name: str) -> Range:
        """The steps of an input that a layer over the whole window reads: all of them, or those that it cuts out."""
        flow, out = self.flows[name], self.graph.shapes[layer.output]
        shift = shift_of(layer, self.graph.shapes[name], out, flow.axis)
        if shift is None or shift < 0 or shift + out[flow.axis] > flow.steps:
            return 0, flow.steps
        return shift, shift + out[flow.axis]

    def _read_by(self, layer: Layer, needed: Range) -> Range | None:
        """The steps of a local layer's inputs that the needed ones depend on; None if that includes padding."""
        flow, (low, high) = self.flows[layer.inputs[0]], needed
        if isinstance(layer, Windowed):
            g = geometry(layer, flow.axis)
            assert g
            wanted = low * g.stride - g.before, (high - 1) * g.stride - g.before + g.reach
        else:
            shift = shift_of(layer, self.graph.shapes[layer.inputs[0]], self.graph.shapes[layer.output], flow.axis)
            wanted = (low + shift, high + shift) if shift is not None else needed
        return wanted if wanted[0] >= 0 and wanted[1] <= flow.steps else None

    # -- the graph of a step ------------------------------------------------------------------------------------------

    def graph_of(self) -> Graph:
        graph = self.graph
        self.shapes = dict(graph.shapes)
        (name,) = graph.inputs
        self._hold(name, self.first.steps)
        for k, layer in enumerate(graph.layers):
            if k in self.local:
                self._step(layer)
            else:
                given = {n: self._whole(n, layer) for n in layer.inputs if n in self.edges}
                self.layers.append(self._cut_of(layer, given))
        for n in graph.outputs:
            if n in self.edges and self.edges[n] != self.flows[n].steps:
                raise AssertionError(f"{n} ends before the window does")
        grids = {**graph.grids, **{n: graph.grids[o] for n, o in self.origin.items() if o in graph.grids}}
        first = {n: 0.0 if graph.is_float else float(grids[n].zero) for n in self.states}
        return replace(
            graph,
            layers=tuple(self.layers),
            shapes=self.shapes,
            grids=grids,
            states={**graph.states, **first},
            calls_to_fill=-(-self.first.steps // self.first.new),
        ).check()

    def _hold(self, name: str, edge: int) -> None:
        """Record that a tensor holds its new steps only, those before `edge`."""
        flow = self.flows[name]
        self.shapes[name] = _with(self.graph.shapes[name], flow.axis, flow.new)
        self.edges[name] = edge

    def _tensor(self, name: str, what: str, steps: int) -> str:
        made = f"{name}:{what}"
        while made in self.shapes:
            made += "_"
        self.shapes[made] = _with(self.graph.shapes[name], self.flows[name].axis, steps)
        self.origin[made] = name
        return made

    def _last(self, name: str, steps: int) -> str:
        """The tensor of the last `steps` steps: kept from before if the new steps are fewer, cut if they are more."""
        flow = self.flows[name]
        if steps == flow.new:
            return name
        if steps < flow.new:
            return self._cut(name, name, flow.new, flow.new - steps, steps)
        made = next((n for n in self.states if self.origin[n] == name and self.shapes[n][flow.axis] == steps), None)
        if made is None:
            made = self._tensor(name, f"last {steps}", steps)
            self.states.append(made)
            self.layers.append(Slide(f"keep {name}", (made, name), made, self.shapes[made], flow.axis, flow.new))
        return made

    def _cut(self, name: str, source: str, held: int, start: int, steps: int) -> str:
        """`steps` steps from `start` on, of those of a tensor that `source` holds."""
        if steps == held:
            return source
        axis = self.flows[name].axis
        out = self._tensor(name, f"{start} to {start + steps}", steps)
        ins, outs = strides(self.shapes[source]), strides(self.shapes[out])
        axes = tuple(Axis(n, (a, b)) for n, a, b in zip(self.shapes[out], ins, outs, strict=True))
        part = Part(start * ins[axis], 0, axes)
        self.layers.append(Move(f"cut {name}", (source,), out, self.shapes[out], (part,)))
        return out

    def _until(self, name: str, edge: int) -> str:
        """The steps of a tensor that are new when the stream is at `edge`."""
        flow = self.flows[name]
        late = self.edges[name] - edge
        return self._cut(name, self._last(name, flow.new + late), flow.new + late, 0, flow.new) if late else name

    def _step(self, layer: Layer) -> None:
        """A layer that computes new steps only."""
        name, flow, out = layer.inputs[0], self.flows[layer.inputs[0]], self.flows[layer.output]
        edge = self.needs.get(layer.output, (0, out.steps))[1]
        if isinstance(layer, Windowed):
            g = geometry(layer, flow.axis)
            assert g
            start = (edge - out.new) * g.stride - g.before
            length = (out.new - 1) * g.stride + g.reach
            held = self.edges[name] - start
            source = self._last(name, held)
            if held - length >= g.stride:
                source, held = self._cut(name, source, held, 0, length), length
            self.layers.append(_of_window(layer, source, flow.axis, held))
            self._hold(layer.output, edge)
            return
        shape, target = self.graph.shapes[name], self.graph.shapes[layer.output]
        shift = shift_of(layer, shape, target, flow.axis)
        if shift is not None:
            source = self._until(name, edge + shift)
            self._hold(layer.output, edge)
            made = Reshape(layer.name, (source,), layer.output, self.shapes[layer.output])
        else:
            along = [n for n in layer.inputs if n in self.flows]
            edge = min(self.edges[n] for n in along)
            given = {n: self._until(n, edge) for n in along}
            self._hold(layer.output, edge)
            made = _of_steps(renamed(layer, given), flow, self.shapes[layer.output])  # type: ignore[assignment]
        self.layers.append(made)

    def _whole(self, name: str, layer: Layer) -> str:
        """The input of a layer that computes the whole window: as many last steps of a tensor as it reads."""
        return self._last(name, self.edges[name] - self._taken(layer, name)[0])

    def _cut_of(self, layer: Layer, given: Mapping[str, str]) -> Layer:
        """A layer that computes the whole window and reads `given` instead of its inputs."""
        if len(given) != 1 or not isinstance(layer, Move):
            return renamed(layer, given) if given else layer
        ((name, source),) = given.items()
        if self._taken(layer, name) == (0, self.flows[name].steps):
            return renamed(layer, given)
        shape = self.graph.shapes[layer.output]
        ins, outs = strides(self.shapes[source]), strides(shape)
        axes = tuple(Axis(n, (a, b)) for n, a, b in zip(shape, ins, outs, strict=True))
        return replace(layer, inputs=(source,), parts=(Part(0, 0, axes),))


def _with(shape: tuple[int, ...], axis: int, steps: int) -> tuple[int, ...]:
    return (*shape[:axis], steps, *shape[axis + 1 :])


def _of_window(layer: Windowed, source: str, axis: int, steps: int) -> Layer:
    """A layer over `steps` steps of its input, without zeros before and after them."""
    side = axis + 2 - len(layer.shape) + 1
    pads = tuple(0 if k in (side, side + 2) else p for k, p in enumerate(layer.window.pads))
    window = replace(layer.window, pads=pads)  # type: ignore[arg-type]
    return replace(layer, inputs=(source,), shape=_with(layer.shape, axis, steps), window=window)


def _of_steps(layer: Layer, flow: Flow, shape: tuple[int, ...]) -> Layer:
    """A layer that handles steps one by one, reduced to the new ones. shape: of its output."""
    if isinstance(layer, OneByOne | Reshape):
        return replace(layer, shape=shape)
    if isinstance(layer, _Binary):
        own = flow.axis - (len(layer.shape) - len(layer.other))
        varies = own >= 0 and layer.other[own] != 1
        return replace(layer, shape=shape, other=_with(layer.other, own, flow.new) if varies else layer.other)
    if isinstance(layer, Softmax | SoftmaxFloat):
        return replace(layer, rows=layer.rows * flow.new // flow.steps)
    assert isinstance(layer, _Reduce)
    outer, length, inner = layer.shape
    return replace(layer, shape=(outer * flow.new // flow.steps, length, inner))
