"""The models that tests build, and the folders that they run from."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from emberlet.micro.builder.boards import BOARDS
from emberlet.micro.builder.build import BuildResult, Options, build
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.graph import Graph
from emberlet.micro.builder.kernels.depthwise import DepthwiseFloat
from emberlet.micro.builder.kernels.dot import DotFloat
from emberlet.micro.builder.kernels.elementwise import BinaryFloat, MapFloat
from emberlet.micro.builder.kernels.layer import Array
from emberlet.micro.builder.kernels.pool import MaxPool, ReduceFloat
from emberlet.micro.builder.kernels.softmax import SoftmaxFloat
from emberlet.micro.builder.kernels.window import Window
from emberlet.micro.builder.written import write

from tools.paths import ROOT

DIGITS = ROOT / "examples" / "digits"
INF = float("inf")


@cache
def digits_data() -> tuple[Array, Array]:
    """The held-out images, (n, 8, 8, 1) in 0…1, and their labels."""
    with np.load(DIGITS / "heldout.npz") as data:
        return (data["images"] / 16).astype(np.float32)[..., None], data["labels"]


@cache
def digits_graph() -> Graph:
    return read_graph(DIGITS / "digits.onnx", "digits")


def build_digits(weights: str = "file", floats: bool = False, **options: object) -> BuildResult:
    """The digit recognizer; calibrated with the first 100 images."""
    images, _ = digits_data()
    samples = None if floats else {"image": images[:100]}
    return build(digits_graph(), Options("digits", weights, **options), samples)  # type: ignore[arg-type]


def residual_graph(width: int = 32, seed: int = 0) -> Graph:
    """An image network with a residual block, a depthwise convolution and softmax: 16 × 16 × 3 to 10."""
    rng = np.random.default_rng(seed)

    def conv(name: str, x: str, y: str, shape: tuple[int, int, int], n: int, k: int, stride: int = 1) -> DotFloat:
        weights = rng.standard_normal((n, k, k, shape[2])) / (k * shape[2] ** 0.5)
        window = Window((k, k), (stride, stride), pads=(k // 2,) * 4)
        return DotFloat(name, (x,), y, shape, window, 1, weights, rng.standard_normal(n) * 0.1, 0.0, INF)

    w = width
    pads = (1, 1, 1, 1)
    deep = rng.standard_normal((w, 3, 3)) / 3
    head = rng.standard_normal((10, 1, 1, 2 * w))
    layers = (
        conv("stem", "image", "a", (16, 16, 3), w, 3, 2),
        conv("block1", "a", "b", (8, 8, w), w, 3),
        conv("block2", "b", "c", (8, 8, w), w, 3),
        BinaryFloat("residual", ("a", "c"), "d", "add", (8, 8, w), (8, 8, w), None),
        MapFloat("gelu", ("d",), "e", (8, 8, w), (("gelu", ()),)),
        DepthwiseFloat("deep", ("e",), "f", (8, 8, w), Window((3, 3), pads=pads), deep, np.zeros(w), 0.0, INF),
        MaxPool("pool", ("f",), "g", (8, 8, w), Window((3, 3), (2, 2), pads=pads), -3.4e38),
        conv("top", "g", "h", (4, 4, w), 2 * w, 3),
        ReduceFloat("mean", ("h",), "i", (1, 16, 2 * w), "sum", 1 / 16),
        DotFloat("head", ("i",), "j", (2 * w,), Window((1, 1)), 1, head, np.zeros(10)),
        SoftmaxFloat("softmax", ("j",), "classes", 1, 10),
    )
    shapes = {"image": (16, 16, 3), "classes": (10,), "i": (2 * w,), "j": (10,), "g": (4, 4, w), "h": (4, 4, 2 * w)}
    shapes |= dict.fromkeys("abcdef", (8, 8, w))
    return Graph("residual", layers, shapes, ("image",), ("classes",))


def residual_samples(count: int = 32, seed: int = 1) -> Array:
    return np.random.default_rng(seed).standard_normal((count, 16, 16, 3)).astype(np.float32)


def deployed(built: BuildResult, options: Options, out: Path, port_name: str) -> Path:
    """Write a build, and the folder of it that runs on a port of the Unix family."""
    write(built, options, out)
    arch = "armv7emdp" if "armhf" in port_name else "x64"
    return out / (arch if (out / arch).exists() else "bytecode")


def desktop_boards() -> list[object]:
    """Boards that represent the Unix ports: their instruction sets, with ample memory."""
    from dataclasses import replace

    rp2 = BOARDS["rp2"]
    return [replace(rp2, name=arch, arch=arch) for arch in ("x64", "armv7emdp")]
