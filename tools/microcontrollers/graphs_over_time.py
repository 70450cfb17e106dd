"""Graphs over time drawn at random, built of layers."""

from __future__ import annotations

import numpy as np
from emberlet.micro.builder.graph import Graph, Reshape
from emberlet.micro.builder.kernels.depthwise import DepthwiseFloat
from emberlet.micro.builder.kernels.dot import DotFloat
from emberlet.micro.builder.kernels.elementwise import BinaryFloat, MapFloat
from emberlet.micro.builder.kernels.layer import Layer
from emberlet.micro.builder.kernels.move import Move, Part, strides
from emberlet.micro.builder.kernels.nest import Axis
from emberlet.micro.builder.kernels.pool import AveragePoolFloat, MaxPool, ReduceFloat, window_counts
from emberlet.micro.builder.kernels.softmax import SoftmaxFloat
from emberlet.micro.builder.kernels.window import Window

CHANNELS, BANDS = 4, 3


class Over:
    """A graph over time. at: the time axis of tensors in the form of the input: (time, channels), (time, bands,
    channels) or (bands, time, channels)."""

    def __init__(self, rng: np.random.Generator, steps: int = 16, form: int | None = None) -> None:
        self.rng = rng
        self.form = int(rng.integers(3)) if form is None else form
        self.at = 1 if self.form == 2 else 0
        self.layers: list[Layer] = []
        self.shapes = {"x": self.shape(steps)}
        self.live = ["x"]

    def shape(self, steps: int) -> tuple[int, ...]:
        return ((steps, CHANNELS), (steps, BANDS, CHANNELS), (BANDS, steps, CHANNELS))[self.form]

    def new(self, shape: tuple[int, ...], live: bool = True) -> str:
        name = f"t{len(self.shapes)}"
        self.shapes[name] = shape
        if live:
            self.live.append(name)
        return name

    def some(self) -> str:
        return self.live[-1] if self.rng.random() < 0.75 else str(self.rng.choice(self.live))

    def steps(self, name: str) -> int:
        return self.shapes[name][self.at]

    def window(self, reach: int, stride: int, dilation: int, before: int, behind: int) -> Window:
        kernel = [1, 1]
        side = 0 if self.form == 1 else 1
        kernel[side] = reach
        sizes = [1, 1], [1, 1], [0, 0, 0, 0]
        sizes[0][side], sizes[1][side], sizes[2][side], sizes[2][side + 2] = stride, dilation, before, behind
        return Window(*(tuple(v) for v in (kernel, *sizes)))  # type: ignore[arg-type]

    def windowed(self, kind: str) -> None:
        source, rng = self.some(), self.rng
        n, k, d = self.steps(source), int(rng.integers(1, 4)), int(rng.choice([1, 1, 2]))
        s = int(rng.choice([1, 1, 1, 2]))
        reach = (k - 1) * d + 1
        before, behind = (reach - 1, int(rng.choice([0, reach - 1]))) if rng.random() < 0.3 and s == 1 else (0, 0)
        if kind in ("MaxPool", "AveragePool"):
            before = behind = 0
            d = 1
            reach = k
        if n + before + behind - reach < 2 * s:
            return
        window, shape = self.window(k, s, d, before, behind), self.shapes[source]
        out = self.new(self.shape((n + before + behind - reach) // s + 1))
        at = (out, (source,), out, shape, window)
        if kind == "conv":
            weights = rng.normal(0, 0.5, (CHANNELS, *window.kernel, CHANNELS)).astype(np.float32)
            self.layers.append(DotFloat(*at, 1, weights, rng.normal(0, 1, CHANNELS).astype(np.float32)))
        elif kind == "depthwise":
            weights = rng.normal(0, 0.5, (CHANNELS, *window.kernel)).astype(np.float32)
            self.layers.append(DepthwiseFloat(*at, weights, rng.normal(0, 1, CHANNELS).astype(np.float32)))
        elif kind == "MaxPool":
            self.layers.append(MaxPool(*at, -3.4e38))
        else:
            h, w = (1, *shape[:-1])[-2:]
            self.layers.append(AveragePoolFloat(*at, window_counts(window, h, w)))

    def mapped(self) -> None:
        source = self.some()
        out = self.new(self.shapes[source])
        self.layers.append(MapFloat(out, (source,), out, self.shapes[source], (("tanh", ()),)))

    def softmax(self) -> None:
        source = self.some()
        shape = self.shapes[source]
        out = self.new(shape)
        rows = int(np.prod(shape[:-1]))
        self.layers.append(SoftmaxFloat(out, (source,), out, rows, CHANNELS, bool(self.rng.integers(2))))

    def constant(self) -> None:
        source = self.some()
        shape = self.shapes[source]
        others = [(1,), (CHANNELS,), (1, CHANNELS), shape, (*shape[:-1], 1)]
        if len(shape) == 3:
            others += [(1, shape[1], 1), (1, shape[1], CHANNELS)]
        other = others[int(self.rng.integers(len(others)))]
        out, c = self.new(shape), self.rng.normal(0, 1, other).astype(np.float32)
        operation = str(self.rng.choice(["add", "mul"]))
        self.layers.append(BinaryFloat(out, (source,), out, operation, shape, other, c))

    def cut(self, source: str, start: int, steps: int, live: bool = True) -> str:
        """Some steps of a tensor."""
        ins = strides(self.shapes[source])
        out = self.new(self.shape(steps), live)
        outs = strides(self.shapes[out])
        axes = tuple(Axis(n, (a, b)) for n, a, b in zip(self.shapes[out], ins, outs, strict=True))
        part = Part(start * ins[self.at], 0, axes)
        self.layers.append(Move(out, (source,), out, self.shapes[out], (part,)))
        return out

    def part(self) -> None:
        source = self.some()
        n = self.steps(source)
        keep = int(self.rng.integers(max(n - 4, 2), n + 1))
        self.cut(source, int(self.rng.integers(0, n - keep + 1)), keep)

    def padded(self) -> None:
        """Zeros in front of a tensor."""
        source = self.some()
        n, more = self.steps(source), int(self.rng.integers(1, 4))
        out = self.new(self.shape(n + more))
        ins, outs = strides(self.shapes[source]), strides(self.shapes[out])
        axes = tuple(Axis(k, (a, b)) for k, a, b in zip(self.shapes[source], ins, outs, strict=True))
        part = Part(0, more * outs[self.at], axes)
        self.layers.append(Move(out, (source,), out, self.shapes[out], (part,), 0.0))

    def pair(self) -> None:
        first, second = self.some(), str(self.rng.choice(self.live))
        n, m = self.steps(first), self.steps(second)
        if n > m:
            first = self.cut(first, int(self.rng.choice([0, n - m])), m, live=False)
        elif m > n:
            second = self.cut(second, int(self.rng.choice([0, m - n])), n, live=False)
        out = self.new(self.shapes[first])
        self.layers.append(BinaryFloat(out, (first, second), out, "add", self.shapes[out], self.shapes[out], None))

    def graph(self) -> Graph:
        """With an output along time, one that is a sum over each step's channels, and one over all steps."""
        last = self.live[-1]
        shape = self.shapes[last]
        outer = int(np.prod(shape[:-1]))
        each = self.new(shape[:-1], live=False)
        self.layers.append(ReduceFloat(each, (last,), each, (outer, CHANNELS, 1), "max"))
        wide = self.new((*shape[: self.at], 1, *shape[self.at :]), live=False)
        self.layers.append(Reshape(wide, (last,), wide, self.shapes[wide]))
        total = self.new((CHANNELS,), live=False)
        self.layers.append(ReduceFloat(total, (last,), total, (1, outer, CHANNELS), "sum", 1 / outer))
        outputs = [last, each, wide, total] if last != "x" else [each, wide, total]
        some = self.rng.permutation(outputs)[: int(self.rng.integers(1, 5))]
        return Graph("m", tuple(self.layers), dict(self.shapes), ("x",), tuple(map(str, some)))


KINDS = (
    "conv",
    "conv",
    "depthwise",
    "MaxPool",
    "AveragePool",
    "mapped",
    "softmax",
    "constant",
    "part",
    "padded",
    "pair",
)


def over_time(seed: int) -> tuple[Graph, int]:
    """A graph and its time axis."""
    over = Over(np.random.default_rng(seed))
    for _ in range(int(over.rng.integers(1, 6))):
        kind = str(over.rng.choice(KINDS))
        if kind[0].isupper() or kind in ("conv", "depthwise"):
            over.windowed(kind)
        else:
            getattr(over, kind)()
    return over.graph(), over.at
