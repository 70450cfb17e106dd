"""Graphs of layers drawn at random. All numbers are small multiples of 1/8, so that float32 computes them exactly."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np
from emberlet.micro.builder.functions import Chain
from emberlet.micro.builder.graph import Graph, Grid, Reshape
from emberlet.micro.builder.kernels.depthwise import DepthwiseFloat
from emberlet.micro.builder.kernels.dot import DotFloat
from emberlet.micro.builder.kernels.elementwise import BinaryFloat, MapFloat
from emberlet.micro.builder.kernels.layer import Layer
from emberlet.micro.builder.kernels.move import Move, Part, strides
from emberlet.micro.builder.kernels.nest import Axis
from emberlet.micro.builder.kernels.state import Keep
from emberlet.micro.builder.kernels.window import Window

Array = np.ndarray[Any, Any]
IMAGE = (2, 3, 4)


class Drawn:
    """A graph under construction. All numbers are small multiples of 1/8, so that float32 computes them exactly."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.layers: list[Layer] = []
        self.shapes: dict[str, tuple[int, ...]] = {"x": IMAGE}
        self.grids: dict[str, Grid] = {}
        self.states: dict[str, float] = {}
        self.live = ["x"]  # tensors of IMAGE's shape

    def new(self, shape: tuple[int, ...] = IMAGE, live: bool = True) -> str:
        name = f"t{len(self.shapes)}"
        self.shapes[name] = shape
        if live:
            self.live.append(name)
        return name

    def some(self) -> str:
        """A tensor, more likely a late one."""
        return self.live[-1] if self.rng.random() < 0.6 else str(self.rng.choice(self.live))

    def ints(self, *shape: int) -> Array:
        return self.rng.integers(-2, 3, shape).astype(np.float32)

    def chain(self) -> Chain:
        kinds: list[Chain] = [
            (("affine", (float(self.rng.choice([-1, 0.5, 1, 2])), float(self.rng.integers(-2, 3)))),),
            (("clip", (float(self.rng.integers(-4, 1)), float(self.rng.choice([1, 3, inf])))),),
            (("clip", (0.0, inf)),),
            (("abs", ()),),
        ]
        return sum((kinds[int(self.rng.integers(4))] for _ in range(int(self.rng.integers(1, 3)))), ())

    def bounds(self) -> tuple[float, float]:
        return (-2.0, 2.0) if self.rng.random() < 0.15 else (-inf, inf)

    def map(self) -> None:
        source = self.some()
        out = self.new()
        self.layers.append(MapFloat(out, (source,), out, IMAGE, self.chain()))

    def constant(self) -> None:
        source, out = self.some(), self.new()
        operation = str(self.rng.choice(["add", "sub", "mul", "div"]))
        others = [(1,), (4,), (1, 4), (1, 1, 4), (3, 1), (3, 4), (2, 1, 1), IMAGE]
        other = others[int(self.rng.integers(len(others)))]
        c = self.rng.choice([-2.0, -1.0, 0.5, 2.0], other) if operation == "div" else self.ints(*other)
        low, high = self.bounds()
        self.layers.append(BinaryFloat(out, (source,), out, operation, IMAGE, other, c.astype(np.float32), low, high))

    def pair(self) -> None:
        first, second, out = self.some(), self.some(), self.new()
        operation = str(self.rng.choice(["add", "sub", "mul"]))
        self.layers.append(BinaryFloat(out, (first, second), out, operation, IMAGE, IMAGE, None, *self.bounds()))

    def gate(self) -> None:
        source, gate, out = self.some(), self.new(live=bool(self.rng.random() < 0.2)), self.new()
        chain: Chain = (("clip", (-1.0, 1.0)),) if self.rng.random() < 0.8 else self.chain()
        self.layers.append(MapFloat(gate, (source,), gate, IMAGE, chain))
        order = (source, gate) if self.rng.random() < 0.5 else (gate, source)
        operation = "mul" if self.rng.random() < 0.8 else "add"
        self.layers.append(BinaryFloat(out, order, out, operation, IMAGE, IMAGE, None, *self.bounds()))

    def clipped(self) -> str:
        source, out = self.some(), self.new()
        self.layers.append(MapFloat(out, (source,), out, IMAGE, (("clip", (-4.0, 4.0)),)))
        return out

    def dot(self) -> None:
        source, out = self.clipped(), self.new()
        weights = self.ints(4, 1, 1, 4)
        low, high = self.bounds()
        self.layers.append(DotFloat(out, (source,), out, IMAGE, Window((1, 1)), 1, weights, self.ints(4), low, high))

    def depthwise(self) -> None:
        source, out = self.clipped(), self.new()
        window = Window((3, 3), pads=(1, 1, 1, 1))
        self.layers.append(DepthwiseFloat(out, (source,), out, IMAGE, window, self.ints(4, 3, 3), self.ints(4)))

    def quantizer(self) -> None:
        source, out = self.some(), self.new()
        self.layers.append(MapFloat(out, (source,), out, IMAGE, ()))
        self.grids[out] = Grid(0.25, int(self.rng.choice([100, 128])))

    def reshaped(self) -> None:
        """To another shape and back, perhaps with a function in between."""
        at = self.some()
        for shape in [(6, 4), *([(24,)] if self.rng.random() < 0.5 else [])]:
            out = self.new(shape, live=False)
            self.layers.append(Reshape(out, (at,), out, shape))
            at = out
        if self.rng.random() < 0.4:
            out = self.new(self.shapes[at], live=False)
            self.layers.append(MapFloat(out, (at,), out, self.shapes[at], (("affine", (0.5, 1.0)),)))
            at = out
        out = self.new()
        self.layers.append(Reshape(out, (at,), out, IMAGE))

    def moved(self) -> None:
        source, out = self.some(), self.new()
        axes = [Axis(n, (a, a)) for n, a in zip(IMAGE, strides(IMAGE), strict=True)]
        start, kind = 0, int(self.rng.integers(4))
        fill = None
        if kind == 1:  # rows in reverse
            axes[0], start = Axis(2, (-12, 12)), 12
        elif kind == 2:  # the first row repeated
            axes[0] = Axis(2, (0, 12))
        elif kind == 3:  # only the first row
            axes[0], fill = Axis(1, (12, 12)), 0.5
        self.layers.append(Move(out, (source,), out, IMAGE, (Part(start, 0, tuple(axes)),), fill))

    def graph(self, kept: Sequence[Layer]) -> Graph:
        some = set(self.rng.choice(self.live[1:], int(self.rng.integers(1, 3)))) | {self.live[-1]}
        outputs = tuple(sorted(map(str, some)))
        return Graph(
            "m", (*self.layers, *kept), dict(self.shapes), ("x",), outputs, grids=self.grids, states=self.states
        )


KINDS = ("map", "map", "constant", "constant", "pair", "gate", "dot", "depthwise", "reshaped", "moved")


def drawn(seed: int, states: int = 0, grids: bool = False) -> tuple[Graph, list[Layer]]:
    """A graph, and its layers that write states."""
    d = Drawn(np.random.default_rng(seed))
    for k in range(states):
        d.shapes[f"s{k}"] = IMAGE
        d.states[f"s{k}"] = float(k)
        d.live.append(f"s{k}")
    kinds = (*KINDS, "quantizer", "quantizer") if grids else KINDS
    for _ in range(int(d.rng.integers(2, 9))):
        getattr(d, str(d.rng.choice(kinds)))()
    kept: list[Layer] = []
    for k in range(states):
        own = [n for n in d.live if n not in d.grids]
        kept.append(Keep(f"keep {k}", (str(d.rng.choice(own)),), f"s{k}", IMAGE))
    return d.graph(kept), kept
