"""The memory plan: every tensor gets a fixed offset in one arena, and memory is reused as soon as a tensor's lifetime
ends.

Weights are not copied. A tensor whose reader needs padding has a border in its buffer, which the layer that writes the
tensor skips. Elementwise layers write in place if nothing else needs the operand. Buffers are placed one by one in the
smallest gap that is free during their lifetime, and the best of several orders is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .assembly.registry import scratch
from .graph import Graph, Reshape, renamed
from .kernels.depthwise import Depthwise, DepthwiseFloat
from .kernels.dot import Dot, DotFloat
from .kernels.layer import Layer, View, as_image
from .kernels.move import Border, Copy
from .kernels.pool import AveragePool, AveragePoolFloat, MaxPool
from .kernels.sixteen.dot import Dot16
from .kernels.sixteen.pool import Pool16
from .program import Constants, First, Port, Program, Step

Windowed = Dot | DotFloat | Dot16 | Depthwise | DepthwiseFloat | MaxPool | AveragePool | AveragePoolFloat | Pool16

Pads = tuple[int, int, int, int]


@dataclass
class Buffer:
    """first, last: its lifetime in steps; place: its offset, once planned."""

    size: int
    first: int
    last: int
    place: int = -1

    def overlaps(self, other: Buffer) -> bool:
        """Whether their lifetimes overlap."""
        return self.first <= other.last and other.first <= self.last


def place(buffers: Sequence[Buffer], step: int = 1) -> int:
    """Place every buffer at a multiple of `step`; returns the size of the arena."""
    orders: tuple[Callable[[Buffer], tuple[int, ...]], ...] = (
        lambda b: (-b.size, b.first),
        lambda b: (b.first, -b.size),
        lambda b: (-(b.last - b.first), -b.size),
        lambda b: (-b.size * (b.last - b.first + 1), b.first),
    )
    best: tuple[int, list[int]] | None = None
    for key in orders:
        for b in buffers:
            b.place = -1
        size = max((_fit(b, buffers, step) for b in sorted(buffers, key=key)), default=0)
        if best is None or size < best[0]:
            best = size, [b.place for b in buffers]
    assert best is not None
    for b, at in zip(buffers, best[1], strict=True):
        b.place = at
    return best[0]


def _fit(buffer: Buffer, others: Sequence[Buffer], step: int) -> int:
    """Place a buffer in the smallest gap that holds it; returns its end."""
    taken = sorted((b.place, b.place + b.size) for b in others if b.place >= 0 and b.overlaps(buffer))
    gaps: list[tuple[int, int]] = []
    end = 0
    for low, high in taken:
        if low - end >= buffer.size:
            gaps.append((low - end, end))
        end = max(end, -(-high // step) * step)
    buffer.place = min(gaps)[1] if gaps else end
    return buffer.place + buffer.size


def fullest_step(buffers: Sequence[Buffer]) -> int:
    """The step with the most live memory."""
    return max({max(0, b.first) for b in buffers}, key=lambda step: (_living(buffers, step), -step), default=0)


def _living(buffers: Sequence[Buffer], step: int) -> int:
    return sum(b.size for b in buffers if b.first <= step <= b.last)


BEYOND = 4
"""Bytes after the arena and after the weights, since kernels in assembly read whole words."""

WORD = 4
"""Where kernels in assembly copy them, buffers begin at whole words: a copy by bytes takes six times as long."""


def plan(graph: Graph, families: Sequence[str] = (), second_core: bool = False) -> Program:
    """The program of a graph, quantized or float32.

    families: those of assembly.registry whose kernels need scratch memory in the arena; second_core: as in Program.
    """
    bordered, borders = _borders(graph)
    return _Planner(bordered, borders, families, second_core).program()


def _borders(graph: Graph) -> tuple[Graph, dict[str, tuple[Pads, float]]]:
    """The graph, with a copy of each tensor that cannot have a border itself, and the borders."""
    wanted: dict[str, tuple[Pads, float]] = {}
    for _ in range(len(graph.layers) + 1):
        conflict = _collect(graph, wanted)
        if conflict is None:
            return graph, wanted
        graph = _with_copy(graph, *conflict)
    raise AssertionError("the memory plan does not converge; this is a bug, please report it with the model")


def _collect(graph: Graph, wanted: dict[str, tuple[Pads, float]]) -> tuple[str, Layer] | None:
    """Fill `wanted`, or return the first tensor that cannot have a border and the layer that needs it."""
    wanted.clear()
    writers = {layer.output: layer for layer in graph.layers}
    consumers = graph.consumers()
    for layer in graph.layers:
        if not isinstance(layer, Windowed) or not layer.window.is_padded:
            continue
        name = layer.inputs[0]
        fill = _fill(layer, graph)
        writer = writers.get(name)
        possible = (
            writer is not None
            and writer.takes_borders
            and name not in graph.outputs
            and all(reader.takes_borders for reader in consumers[name])
        )
        if not possible or (name in wanted and wanted[name][1] != fill):
            return name, layer
        pads = layer.window.pads
        if name in wanted:
            pads = tuple(max(a, b) for a, b in zip(pads, wanted[name][0], strict=True))  # type: ignore[assignment]
        wanted[name] = pads, fill
    return None


def _fill(layer: Layer, graph: Graph) -> float:
    if isinstance(layer, MaxPool):
        return layer.fill
    return 0.0 if graph.is_float else float(layer.zero)  # type: ignore[attr-defined]


def _with_copy(graph: Graph, name: str, reader: Layer) -> Graph:
    """The graph with `reader` reading a copy of a tensor."""
    copied = f"{name}.padded"
    while copied in graph.shapes:
        copied += "_"
    copy = Copy(f"pad {reader.name}", (name,), copied, graph.shapes[name])
    layers: list[Layer] = []
    for layer in graph.layers:
        layers += [copy, renamed(layer, {name: copied})] if layer is reader else [layer]
    shapes = {**graph.shapes, copied: graph.shapes[name]}
    grids = {**graph.grids, copied: graph.grids[name]} if name in graph.grids else graph.grids
    return replace(graph, layers=tuple(layers), shapes=shapes, grids=grids)


class _Planner:
    def __init__(
        self, graph: Graph, borders: dict[str, tuple[Pads, float]], families: Sequence[str], second_core: bool
    ) -> None:
        self.graph, self.second_core = graph, second_core
        self.families = () if graph.is_float else tuple(families)
        self.views: dict[str, View] = {}
        self.sizes: dict[str, int] = {}
        for name, shape in graph.shapes.items():
            pads = borders[name][0] if name in borders else (0, 0, 0, 0)
            self.views[name], self.sizes[name] = _bordered(shape, pads)
        self.layers = self._with_borders(borders)
        self.root = {name: name for name in graph.shapes}
        self._last = self._last_reads()
        self._share()

    def _with_borders(self, borders: dict[str, tuple[Pads, float]]) -> list[Layer]:
        """The layers, each border filled right before it is first read."""
        layers: list[Layer] = []
        filled: set[str] = set()
        for layer in self.graph.layers:
            name = layer.inputs[0] if layer.inputs else ""
            if name in borders and isinstance(layer, Windowed) and layer.window.is_padded and name not in filled:
                filled.add(name)
                at, fill = (f"border {layer.name}", (name,), name), borders[name][1]
                width = 2 if not self.graph.is_float and self.graph.grids[name].wide else 1
                layers.append(Border(*at, self.views[name], self.sizes[name], fill, width))
            layers.append(layer)
        return layers

    def _last_reads(self) -> dict[str, int]:
        """The last step that needs each tensor; the number of steps for outputs."""
        last: dict[str, int] = {}
        for k, layer in enumerate(self.layers):
            for name in (*layer.inputs, layer.output):
                last[name] = k
        for name in (*self.graph.outputs, *self.graph.states):
            last[name] = len(self.layers)
        return last

    def _find(self, name: str) -> str:
        while self.root[name] != name:
            name = self.root[name]
        return name

    def _share(self) -> None:
        """Let reshapes, and elementwise layers where possible, write to the buffer they read."""
        ends = dict(self._last)
        for k, layer in enumerate(self.layers):
            if isinstance(layer, Border) or not layer.inputs:
                continue
            source = self._find(layer.inputs[0])
            if isinstance(layer, Reshape):
                self.root[layer.output] = source
                ends[source] = max(ends[source], ends[layer.output])
            elif (
                layer.in_place
                and ends[source] == k
                and self.views[layer.inputs[0]] == self.views[layer.output]
                and self.sizes[source] == self.sizes[layer.output]
                and all(self._find(other) != source for other in layer.inputs[1:])
            ):
                self.root[layer.output] = source
                ends[source] = max(ends[source], ends[layer.output])

    def program(self) -> Program:
        graph, steps = self.graph, len(self.layers)
        buffers: dict[str, Buffer] = {}
        for name in graph.inputs:
            buffers[self._find(name)] = Buffer(self.sizes[name], -1, self._last.get(name, -1))
        for name in graph.states:
            buffers[name] = Buffer(self.sizes[name], -1, steps)
        for k, layer in enumerate(self.layers):
            root = self._find(layer.output)
            buffer = buffers.setdefault(root, Buffer(self.sizes[root], k, k))
            buffer.last = max(buffer.last, self._last[layer.output])
        own: list[tuple[Buffer | None, Buffer | None, Buffer | None]] = []
        for k, layer in enumerate(self.layers):
            whole = (-1, steps) if layer.remembers else (k, k)
            state = Buffer(layer.state, *whole) if layer.state else None
            extra = scratch(layer, self.families) * (1 + (self.second_core and isinstance(layer, Dot)))
            own.append(
                (
                    state,
                    Buffer(layer.scratch, k, k) if layer.scratch else None,
                    Buffer(extra, k, k) if extra else None,
                )
            )
        everything = [*buffers.values(), *(b for these in own for b in these if b)]
        arena = place(everything, WORD if self.families else 1) + (BEYOND if self.families else 0)
        constants = Constants(graph.is_float, BEYOND if self.families else 0)
        made: list[Step] = []
        states: list[First] = []
        for layer, (state, sums, room) in zip(self.layers, own, strict=True):
            if isinstance(layer, Reshape):
                continue
            places = {f"i{k}": buffers[self._find(name)].place for k, name in enumerate(layer.inputs)}
            places["o"] = buffers[self._find(layer.output)].place
            if state:
                places["st"] = state.place
                if layer.remembers:
                    at = state.place
                    for count, repeated in layer.initial:
                        states.append((at, count * len(repeated), repeated))
                        at += count * len(repeated)
            if sums:
                places["zo"] = sums.place
            if room:
                places["zs"] = room.place
            places["wo"], places["to"] = constants.add(layer)
            made.append(Step(layer, tuple(self.views[n] for n in layer.inputs), self.views[layer.output], places))
        return Program(
            graph.name,
            graph.is_float,
            tuple(made),
            tuple(self._port(n, buffers) for n in graph.inputs),
            tuple(self._port(n, buffers) for n in graph.outputs),
            arena,
            constants.weights,
            tuple(constants.words),
            self.layers[fullest_step(everything)].name if self.layers else "",
            tuple(states),
            tuple((buffers[n].place, self.sizes[n], graph.elements(n, first)) for n, first in graph.states.items()),
            graph.calls_to_fill,
            self.second_core,
        )

    def _port(self, name: str, buffers: dict[str, Buffer]) -> Port:
        decides, columns = name == self.graph.decides, self.graph.columns.get(name)
        return replace(self._element(name, buffers), decides=decides, columns=columns)

    def _element(self, name: str, buffers: dict[str, Buffer]) -> Port:
        at = buffers[self._find(name)].place
        graph, order, labels = self.graph, self.graph.order_text(name), self.graph.labels.get(name, ())
        integer = graph.integers.get(name)
        if graph.is_float:
            return Port(name, graph.shapes[name], at, order=order, labels=labels, integer=integer)
        if name in graph.cuts or name in graph.sums:
            cuts, sums = graph.cuts.get(name), graph.sums.get(name)
            nan = graph.ranks_of_nan.get(name, ((), ()))
            return Port(name, graph.shapes[name], at, order=order, cuts=cuts, nan=nan, sums=sums, labels=labels)
        grid = self.graph.grids[name]
        if grid.wide:
            shape = graph.shapes[name]
            shape = (*shape[:-1], shape[-1] // 2)
            return Port(name, shape, at, grid.scale, grid.zero, order, labels=labels, integer=integer, width=2)
        if name in graph.words:
            shape = graph.shapes[name][:-1]
            return Port(name, shape, at, grid.scale, grid.zero, order, labels=labels, width=2)
        return Port(name, self.graph.shapes[name], at, grid.scale, grid.zero, order, labels=labels, integer=integer)


def _bordered(shape: tuple[int, ...], pads: Pads) -> tuple[View, int]:
    """The view of a tensor with a border, and the elements of its buffer."""
    h, w, c = as_image(shape)
    top, left, bottom, right = pads
    pitch = (left + w + right) * c
    return View((h, w, c), pitch, top * pitch + left * c), (top + h + bottom) * pitch
