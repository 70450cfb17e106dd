"""The architectures of MLPerf Tiny, the standard benchmark for microcontrollers, with random weights.

Layers and sizes as in the benchmark's reference models (github.com/mlcommons/tiny); the streaming wake word is a
separable network over 30 frames of 40 bands, of the size of that one.
"""

from __future__ import annotations

from math import prod

import numpy as np
from emberlet.micro.builder.graph import Graph
from emberlet.micro.builder.kernels.depthwise import DepthwiseFloat
from emberlet.micro.builder.kernels.dot import DotFloat
from emberlet.micro.builder.kernels.elementwise import BinaryFloat
from emberlet.micro.builder.kernels.layer import Array, Layer
from emberlet.micro.builder.kernels.pool import ReduceFloat
from emberlet.micro.builder.kernels.recurrent_float import GruFloat
from emberlet.micro.builder.kernels.softmax import SoftmaxFloat
from emberlet.micro.builder.kernels.window import Window

INF = float("inf")


class Network:
    """A graph under construction: each method appends a layer after `at` and makes its output the new `at`."""

    def __init__(self, name: str, shape: tuple[int, ...], seed: int) -> None:
        self.name = name
        self.rng = np.random.default_rng(seed)
        self.layers: list[Layer] = []
        self.shapes: dict[str, tuple[int, ...]] = {"x": shape}
        self.at = "x"

    def append(self, layer: Layer, shape: tuple[int, ...]) -> None:
        self.layers.append(layer)
        self.shapes[layer.output] = shape
        self.at = layer.output

    def next(self) -> tuple[str, str, tuple[int, ...]]:
        """A layer's name, its output's, and the shape of its input."""
        count = len(self.layers)
        return f"layer{count}", f"t{count}", self.shapes[self.at]

    def same(self, kernel: tuple[int, int], strides: tuple[int, int]) -> Window:
        """TensorFlow's "same" padding: an odd element goes below and to the right."""
        pads = []
        for side, k, s in zip(self.shapes[self.at][:2], kernel, strides, strict=True):
            total = max((-(-side // s) - 1) * s + k - side, 0)
            pads.append((total // 2, total - total // 2))
        return Window(kernel, strides, pads=(pads[0][0], pads[1][0], pads[0][1], pads[1][1]))

    def conv(self, n: int, kernel: tuple[int, int], stride: int = 1, low: float = 0.0, valid: bool = False) -> None:
        name, out, shape = self.next()
        window = Window(kernel, (stride, stride)) if valid else self.same(kernel, (stride, stride))
        weights = self.rng.standard_normal((n, *kernel, shape[2])) * (2 / (prod(kernel) * shape[2])) ** 0.5
        bias = self.rng.standard_normal(n) * 0.1
        layer = DotFloat(name, (self.at,), out, shape, window, 1, weights, bias, low, INF)
        self.append(layer, (*window.output(*shape[:2]), n))

    def depthwise(self, kernel: tuple[int, int], stride: int = 1) -> None:
        name, out, shape = self.next()
        window = self.same(kernel, (stride, stride))
        weights = self.rng.standard_normal((shape[2], *kernel)) * (2 / prod(kernel)) ** 0.5
        bias = self.rng.standard_normal(shape[2]) * 0.1
        layer = DepthwiseFloat(name, (self.at,), out, shape, window, weights, bias, 0.0, INF)
        self.append(layer, (*window.output(*shape[:2]), shape[2]))

    def dense(self, n: int, low: float = 0.0) -> None:
        name, out, shape = self.next()
        weights = self.rng.standard_normal((n, 1, 1, shape[0])) * (2 / shape[0]) ** 0.5
        bias = self.rng.standard_normal(n) * 0.1
        layer = DotFloat(name, (self.at,), out, shape, Window((1, 1)), 1, weights, bias, low, INF)
        self.append(layer, (n,))

    def add(self, other: str) -> None:
        name, out, shape = self.next()
        self.append(BinaryFloat(name, (self.at, other), out, "add", shape, shape, None, 0.0, INF), shape)

    def mean(self) -> None:
        name, out, (h, w, c) = self.next()  # type: ignore[misc]
        self.append(ReduceFloat(name, (self.at,), out, (1, h * w, c), "sum", 1 / (h * w)), (c,))

    def softmax(self) -> None:
        name, out, shape = self.next()
        self.append(SoftmaxFloat(name, (self.at,), out, 1, shape[0]), shape)

    def graph(self) -> Graph:
        return Graph(self.name, tuple(self.layers), self.shapes, ("x",), (self.at,))


def ds_cnn() -> Graph:
    """Keyword spotting: 49 frames of 10 coefficients to 12 words."""
    n = Network("ds_cnn", (49, 10, 1), 1)
    n.conv(64, (10, 4), 2)
    for _ in range(4):
        n.depthwise((3, 3))
        n.conv(64, (1, 1))
    n.mean()
    n.dense(12, -INF)
    n.softmax()
    return n.graph()


def resnet8() -> Graph:
    """Image classification: 32 × 32 in color to 10 classes."""
    n = Network("resnet8", (32, 32, 3), 2)
    n.conv(16, (3, 3))
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        before = n.at
        n.conv(channels, (3, 3), stride)
        n.conv(channels, (3, 3), low=-INF)
        if stride > 1:
            main, n.at = n.at, before
            n.conv(channels, (1, 1), stride, -INF)
            before, n.at = n.at, main
        n.add(before)
    n.mean()
    n.dense(10, -INF)
    n.softmax()
    return n.graph()


def mobilenet() -> Graph:
    """Visual wake words: MobileNetV1 of a quarter of the width, 96 × 96 in color to 2 classes."""
    n = Network("mobilenet", (96, 96, 3), 3)
    n.conv(8, (3, 3), 2)
    widths = ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *[(128, 1)] * 5, (256, 2), (256, 1))
    for channels, stride in widths:
        n.depthwise((3, 3), stride)
        n.conv(channels, (1, 1))
    n.mean()
    n.dense(2, -INF)
    n.softmax()
    return n.graph()


def autoencoder() -> Graph:
    """Anomaly detection: 640 numbers to 640."""
    n = Network("autoencoder", (640,), 4)
    for width in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        n.dense(width)
    n.dense(640, -INF)
    return n.graph()


def wake_word() -> Graph:
    """Streaming wake word: 30 frames of 40 bands to 3 classes."""
    n = Network("wake_word", (30, 1, 40), 5)
    n.conv(128, (3, 1), valid=True)
    for kernel in (5, 7, 9, 11):
        n.depthwise((kernel, 1))
        n.conv(128, (1, 1))
    n.mean()
    n.dense(3, -INF)
    n.softmax()
    return n.graph()


def _gru() -> Graph:
    rng = np.random.default_rng(6)
    parts = [rng.standard_normal(s) * 0.3 for s in ((24, 8), (24, 8), (24,), (24,))]
    layer = GruFloat("gru", ("x",), "y", 24, 8, *parts, False, False, False)  # type: ignore[arg-type]
    return Graph("gru", (layer,), {"x": (24, 8), "y": (8,)}, ("x",), ("y",))


def _dense() -> Graph:
    n = Network("dense", (16,), 7)
    n.dense(16)
    return n.graph()


def _depthwise(side: int, channels: int, kernel: int) -> Graph:
    n = Network("depthwise", (side, side, channels), 8)
    n.depthwise((kernel, kernel))
    return n.graph()


SMALL = {
    "GRU 8 → 8, 24 steps": _gru,
    "dense 16 → 16": _dense,
    "depthwise 3×3, 8×8×16": lambda: _depthwise(8, 16, 3),
    "depthwise 9×9, 16×16×8": lambda: _depthwise(16, 8, 9),
    "depthwise 3×3, 16×16×3": lambda: _depthwise(16, 3, 3),
}
"""Single layers, in which calls and the conversion of numbers weigh most."""

NETWORKS = {
    "DS-CNN": ds_cnn,
    "ResNet-8": resnet8,
    "MobileNetV1-0.25": mobilenet,
    "FC autoencoder": autoencoder,
    "streaming wake word": wake_word,
}


def forest() -> bytes:
    """The ONNX file of a forest of 20 trees of depth 6 with 16 features and three classes."""
    from skl2onnx import to_onnx
    from sklearn.datasets import make_classification
    from sklearn.ensemble import RandomForestClassifier

    x, y = make_classification(600, 16, n_informative=10, n_classes=3, random_state=0)
    x = x.astype(np.float32)
    trained = RandomForestClassifier(20, max_depth=6, random_state=0).fit(x, y)
    return bytes(to_onnx(trained, x[:1], options={"zipmap": False}).SerializeToString())


def samples(graph: Graph, count: int = 4) -> dict[str, Array]:
    """Random inputs for calibration."""
    rng = np.random.default_rng(7)
    return {"x": rng.standard_normal((count, *graph.shapes["x"])).astype(np.float32)}
