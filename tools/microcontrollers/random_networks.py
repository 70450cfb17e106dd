"""Whole networks drawn at random, by kind: several layers, branches, sums, pools, states and streams. Many of them run
in one program, each in an arena of its own, which the memory plan laid out.

The answers are those of the layers' NumPy references (`Graph.run`). Networks of floats compute with small multiples of
1/8, which float32 holds exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from math import prod
from typing import Any

import numpy as np
from emberlet.errors import UnsupportedError
from emberlet.micro.builder.assembly.variants import ALL
from emberlet.micro.builder.build import Options, calibrated
from emberlet.micro.builder.functions import Chain
from emberlet.micro.builder.fuse import fuse
from emberlet.micro.builder.graph import Graph
from emberlet.micro.builder.kernels.elementwise import BinaryFloat, MapFloat
from emberlet.micro.builder.kernels.layer import Array
from emberlet.micro.builder.kernels.move import Move, Part
from emberlet.micro.builder.kernels.nest import Axis
from emberlet.micro.builder.kernels.pool import AveragePoolFloat, MaxPool, window_counts
from emberlet.micro.builder.kernels.recurrent_float import GatedGruFloat, GruFloat, LstmFloat, RnnFloat
from emberlet.micro.builder.kernels.window import Window
from emberlet.micro.builder.plan import WORD, plan
from emberlet.micro.builder.program import Constants, Program, Step
from emberlet.micro.builder.quantization.calibrate import grid_over
from emberlet.micro.builder.quantization.distances import taken_apart
from emberlet.micro.builder.quantization.indices import stored
from emberlet.micro.builder.quantization.quantize import quantize_graph
from emberlet.micro.builder.streaming import streamed

from .drawn_graphs import drawn
from .graphs_over_time import over_time
from .networks import INF, Network

Rng = np.random.Generator

CALLS, STREAM = 3, 20
"""Inferences of each network, one after the other; of a stream with those that fill it with zeros first."""

ACTIVATIONS: tuple[Chain, ...] = (
    (("clip", (0.0, INF)),),
    (("clip", (0.0, 6.0)),),
    (("tanh", ()),),
    (("sigmoid", ()),),
    (("hard_swish", ()),),
    (("leaky_relu", (0.1,)),),
    (("elu", (1.0,)),),
)


@dataclass(frozen=True)
class Drawn:
    """A network, and for each call of it the contents of its inputs and those that its outputs must have."""

    graph: Graph
    program: Program
    given: list[list[Array]]
    due: list[list[Array]]


class _Random(Network):
    """With layers drawn at random."""

    def __init__(self, rng: Rng, shape: tuple[int, ...]) -> None:
        super().__init__("net", shape, int(rng.integers(1 << 31)))

    def some(self, low: int, high: int) -> int:
        """A number from low to high - 1."""
        return int(self.rng.integers(low, high))

    def activation(self) -> None:
        if self.rng.random() < 0.6:
            chain = ACTIVATIONS[self.some(0, len(ACTIVATIONS))]
            name, out, shape = self.next()
            self.append(MapFloat(name, (self.at,), out, shape, chain), shape)

    def any_dense(self) -> None:
        self.dense(self.some(1, 40), float(self.rng.choice([0.0, -INF])))

    def any_conv(self) -> None:
        kernel, low = (self.some(1, 4), self.some(1, 4)), float(self.rng.choice([0.0, -INF]))
        self.conv(self.some(1, 14), kernel, self.stride(), low)

    def stride(self) -> int:
        return 2 if min(self.shapes[self.at][:2]) > 3 and self.rng.random() < 0.2 else 1

    def any_depthwise(self) -> None:
        self.depthwise((self.some(1, 5), self.some(1, 5)), self.stride())

    def pool(self) -> None:
        name, out, (h, w, c) = self.next()  # type: ignore[misc]
        if min(h, w) < 2:
            return
        window = Window((2, 2), (2, 2)) if self.rng.random() < 0.5 else Window((2, 2))
        at = (name, (self.at,), out, (h, w, c), window)
        kind = self.rng.random() < 0.5
        layer = MaxPool(*at, -3.4e38) if kind else AveragePoolFloat(*at, window_counts(window, h, w))
        self.append(layer, (*window.output(h, w), c))

    def constant(self) -> None:
        name, out, shape = self.next()
        operation, other = str(self.rng.choice(["add", "mul"])), shape[-1:]
        values = self.rng.standard_normal(other).astype(np.float32)
        self.append(BinaryFloat(name, (self.at,), out, operation, shape, other, values), shape)

    def beside(self, before: str) -> None:
        """Join or add what was before."""
        first, second = self.shapes[self.at], self.shapes[before]
        if first == second and self.rng.random() < 0.6:
            name, out, shape = self.next()
            operation = str(self.rng.choice(["add", "add", "mul"]))
            self.append(BinaryFloat(name, (self.at, before), out, operation, shape, shape, None), shape)
        elif first[:-1] == second[:-1]:
            name, out, _ = self.next()
            rows, widths = prod(first[:-1]), (first[-1], second[-1])
            parts = tuple(
                Part(0, to, (Axis(rows, (width, sum(widths))), Axis(width, (1, 1))))
                for to, width in zip((0, widths[0]), widths, strict=True)
            )
            shape = (*first[:-1], sum(widths))
            self.append(Move(name, (self.at, before), out, shape, parts), shape)

    def recurrent(self, sequence: bool) -> None:
        name, out, (steps, k) = self.next()  # type: ignore[misc]
        kind = self.some(0, 4)
        make: Callable[..., Any] = (GruFloat, LstmFloat, GatedGruFloat, RnnFloat)[kind]
        hidden, gates = self.some(1, 13), (3, 4, 3, 1)[kind]
        shapes = ((gates * hidden, k), (gates * hidden, hidden), (gates * hidden,), (gates * hidden,))
        parts = [self.rng.standard_normal(shape) * 0.3 for shape in shapes]
        keep = bool(self.rng.random() < 0.4)
        reverse = not keep and bool(self.rng.random() < 0.3)
        layer = make(name, (self.at,), out, steps, hidden, *parts, reverse, sequence, keep)
        self.append(layer, (steps, hidden) if sequence else (hidden,))

    def head(self) -> Graph:
        """The graph, with a classifier behind an image's mean or behind a vector."""
        if len(self.shapes[self.at]) == 3:
            self.mean()
        self.any_dense()
        if self.rng.random() < 0.4:
            self.softmax()
        return self.graph()


def dense(rng: Rng) -> Graph:
    n = _Random(rng, (int(rng.integers(1, 60)),))
    for _ in range(n.some(1, 4)):
        before = n.at
        n.any_dense()
        n.activation()
        if n.rng.random() < 0.3:
            n.beside(before)
    return n.head()


def convolution(rng: Rng) -> Graph:
    n = _Random(rng, tuple(int(v) for v in rng.integers([4, 4, 1], [11, 11, 6])))
    for _ in range(n.some(1, 4)):
        n.any_conv()
        n.activation()
        if n.rng.random() < 0.3:
            n.pool()
    return n.head()


def branches(rng: Rng) -> Graph:
    """Depthwise convolutions, and what is added to or joined with what came before."""
    n = _Random(rng, tuple(int(v) for v in rng.integers([3, 3, 1], [9, 9, 10])))
    for _ in range(n.some(1, 4)):
        before = n.at
        n.any_depthwise()
        n.activation()
        if n.rng.random() < 0.6:
            n.conv(n.shapes[before][-1] if n.rng.random() < 0.5 else n.some(1, 12), (1, 1), low=-INF)
        n.beside(before)
        if n.rng.random() < 0.3:
            n.constant()
    return n.head()


def recurrent(rng: Rng) -> Graph:
    n = _Random(rng, (int(rng.integers(1, 9)), int(rng.integers(1, 13))))
    for _ in range(n.some(0, 2)):
        n.recurrent(sequence=True)
        n.activation()
    n.recurrent(sequence=False)
    return n.head()


def in_bytes(graph: Graph, rng: Rng, stream: int | None = None) -> Graph:
    """The graph in int8. stream: the time axis of its input."""
    (name,) = graph.inputs
    samples = {name: rng.standard_normal((4, *graph.shapes[name])).astype(np.float32)}
    options = Options("net", method="minmax", stream=0 if stream is None else stream)
    graph = calibrated(fuse(taken_apart(graph)), samples, options)[0]
    return graph if stream is None else streamed(graph, stream, int(rng.integers(1, 4)))


def in_words(graph: Graph, rng: Rng) -> Graph:
    """The graph with 16-bit activations."""
    graph = fuse(graph)
    (name,) = graph.inputs
    runs = [graph.run({name: rng.standard_normal(graph.shapes[name]).astype(np.float32)}) for _ in range(4)]
    ends = {n: (min(float(r[n].min()) for r in runs), max(float(r[n].max()) for r in runs)) for n in runs[0]}
    return quantize_graph(replace(graph, grids={n: grid_over(*found, 16) for n, found in ends.items()}))


def _stream(rng: Rng) -> Graph:
    graph, axis = over_time(int(rng.integers(1 << 31)))
    return in_bytes(graph, rng, axis)


def _words(rng: Rng) -> Graph:
    return in_words((dense, convolution, branches, recurrent)[int(rng.integers(4))](rng), rng)


def _floats(rng: Rng) -> Graph:
    return fuse(drawn(int(rng.integers(1 << 31)), states=int(rng.integers(3)))[0])


KINDS: dict[str, Callable[[Rng], Graph]] = {
    "dense": lambda rng: in_bytes(dense(rng), rng),
    "convolution": lambda rng: in_bytes(convolution(rng), rng),
    "branches": lambda rng: in_bytes(branches(rng), rng),
    "recurrent": lambda rng: in_bytes(recurrent(rng), rng),
    "stream": _stream,
    "words": _words,
    "float": _floats,
}


def networks(kind: str, first: int) -> Iterator[Drawn]:
    """Networks of a kind, without end, of seeds from `first` on. Those that the builder refuses are left out."""
    for seed in count(first):
        rng = np.random.default_rng([seed, list(KINDS).index(kind)])
        with suppress(UnsupportedError):
            yield _drawn(KINDS[kind](rng), rng)


def _drawn(graph: Graph, rng: Rng) -> Drawn:
    program = plan(graph, () if graph.is_float else ALL)
    started, states = replace(graph, calls_to_fill=0), dict[str, Any]()
    calls = STREAM if graph.calls_to_fill else CALLS
    given = [
        [graph.zeros[name] if k < graph.calls_to_fill else _at_random(graph, name, rng) for name in graph.inputs]
        for k in range(calls)
    ]
    found = [started.run(dict(zip(graph.inputs, each, strict=True)), states) for each in given]
    return Drawn(graph, program, given, [[values[name] for name in graph.outputs] for values in found])


def _at_random(graph: Graph, name: str, rng: Rng) -> Array:
    shape = graph.shapes[name]
    if graph.is_float:
        return rng.integers(-16, 17, shape).astype(np.float32) / 4
    if rng.random() < 0.5:
        return rng.integers(0, 256, shape).astype(np.uint8)
    wide = graph.grids[name].wide
    numbers = rng.standard_normal((*shape[:-1], shape[-1] // 2) if wide else shape).astype(np.float32)
    return stored(graph, name, numbers).reshape(shape)


@dataclass(frozen=True)
class Batch:
    """Networks in one program. arena: its first contents; calls: for each call the contents of all inputs; due: those
    of all outputs; inputs, outputs: where they are, in bytes, and how many; networks: which of them each output is of.
    """

    program: Program
    arena: bytes
    inputs: list[tuple[int, int]]
    outputs: list[tuple[int, int]]
    calls: list[bytes]
    due: list[bytes]
    networks: list[int]


def batch_of(made: Sequence[Drawn]) -> Batch:
    """Networks of one kind."""
    is_float, steps = made[0].program.is_float, list[Step]()
    whose = [k for k, each in enumerate(made) for _ in each.program.outputs]
    constants, width = Constants(is_float, WORD), 4 if is_float else 1
    inputs: list[tuple[int, int]] = []
    outputs: list[tuple[int, int]] = []
    arena = np.empty(0, np.float32 if is_float else np.uint8)
    for each in made:
        program, base = each.program, len(arena)
        own = np.full(-(-program.arena // WORD) * WORD, 0.5 if is_float else 0xA5, arena.dtype)
        for at, size, repeated in (*program.states, *program.kept):
            own[at : at + size] = np.resize(np.array(repeated, arena.dtype), size)
        arena = np.concatenate([arena, own])
        for step in program.steps:
            places = {key: at + base for key, at in step.places.items()}
            places["wo"], places["to"] = constants.add(step.layer)
            steps.append(replace(step, places=places))
        for ports, found in ((program.inputs, inputs), (program.outputs, outputs)):
            found += [(width * (base + port.place), width * port.size) for port in ports]
    size = len(arena) + WORD
    merged = Program("net", is_float, tuple(steps), (), (), size, constants.weights, tuple(constants.words))
    calls, due = (
        [b"".join(x.tobytes() for each in made for x in contents(each)[k]) for k in range(len(made[0].given))]
        for contents in (lambda each: each.given, lambda each: each.due)
    )
    return Batch(merged, arena.tobytes() + bytes(width * WORD), inputs, outputs, calls, due, whose)
