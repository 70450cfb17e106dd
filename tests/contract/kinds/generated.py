"""Modules that codegen writes for drawn ONNX graphs of repeated blocks, also with half of the bits: they give what
onnxruntime gives, whatever the blocks look like (scales of any rank, weights beyond float16, gates, depthwise and
quantized convolutions), and however they are named."""

from __future__ import annotations

import importlib.util
import random
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import emberlet
import numpy as np
import onnxruntime
from emberlet import codegen
from onnx import TensorProto, helper, numpy_helper

from ..case import COUNTED
from ..reference import choice

NEEDS: tuple[str, ...] = ()
CHANNELS = 4
MOST_OFF = 0.1  # of the largest result: zeros are off by 1
ZERO = np.array(128, np.uint8)
LEVEL = 0.04  # from one result of a quantized convolution to the next


class Drawn(NamedTuple):
    """pieces: of PIECES, one block; times: how often the block is repeated; half: whether weights are stored as
    float16; seed: of weights and values."""

    pieces: tuple[str, ...]
    times: int
    half: bool
    seed: int


class _Graph:
    """Nodes and constants under fresh names. choose: what a block looks like; values: its weights."""

    def __init__(self, choose: random.Random, values: random.Random) -> None:
        self.choose = choose
        self.values = values
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.step = 1e-6  # how far off a quantization may be, relative to the largest result

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], f"n{len(self.nodes)}", **attributes))
        return name

    def constant(self, array: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def weights(self, *shape: int, size: float = 0.4) -> str:
        array = size * np.random.default_rng(self.values.randrange(1 << 30)).standard_normal(shape)
        return self.constant(array.astype(np.float32))

    def scale(self, value: float, channels: int = 1) -> str:
        """A scale of any of the ranks that ONNX allows."""
        shape = self.choose.choice([(), (1,)] + [(channels,)] * (channels > 1))
        self.step = 0.02
        return self.constant(np.full(shape, value, np.float32))


def _conv(g: _Graph, x: str, taps: int, groups: int = 1, size: float = 0.3) -> str:
    weight = g.weights(CHANNELS, CHANNELS // groups, taps, taps, size=size)
    # Beside weights below half a bias loses them in float32, too: a softmax of what is left compares rounding errors.
    bias = [g.weights(CHANNELS)] * (g.choose.random() < 0.6 and size > 1e-6)
    return g.add("Conv", x, weight, *bias, group=groups, pads=[taps // 2] * 4)


def _qlinear(g: _Graph, x: str, groups: int) -> str:
    """QLinearConv between QuantizeLinear and DequantizeLinear."""
    zero, scale = g.constant(ZERO), g.constant(np.float32(LEVEL))
    quantized = g.add("QuantizeLinear", x, scale, zero)
    draw = np.random.default_rng(g.values.randrange(1 << 30))
    weight = g.constant(draw.integers(-90, 90, (CHANNELS, CHANNELS // groups, 3, 3)).astype(np.int8))
    ws = g.scale(0.004, CHANNELS)
    per_channel = np.shape(numpy_helper.to_array(g.constants[-1]))
    wz = g.constant(np.zeros(per_channel, np.int8))
    bias = [g.constant(draw.integers(-500, 500, CHANNELS).astype(np.int32))] * (g.choose.random() < 0.5)
    found = g.add("QLinearConv", quantized, g.scale(LEVEL), zero, weight, ws, wz, g.scale(LEVEL), zero, *bias,
                  group=groups, pads=[1] * 4)  # fmt: skip
    return g.add("DequantizeLinear", found, scale, zero)


def _fake(g: _Graph, x: str) -> str:
    scale, zero = g.scale(0.03), g.constant(ZERO)
    return g.add("DequantizeLinear", g.add("QuantizeLinear", x, scale, zero), scale, zero)


def _norm(g: _Graph, x: str) -> str:
    variance = g.choose.choice([1.0, 1e-7, 1e5])
    return g.add("BatchNormalization", x, g.weights(CHANNELS), g.weights(CHANNELS), g.weights(CHANNELS),
                 g.constant(np.full(CHANNELS, variance, np.float32)), epsilon=1e-3)  # fmt: skip


def _gate(g: _Graph, x: str) -> str:
    mean = g.add("GlobalAveragePool", x)
    return g.add("Mul", x, g.add("HardSigmoid", _conv(g, g.add("Relu", _conv(g, mean, 1)), 1)))


def _masked(g: _Graph, x: str) -> str:
    """A mask as float16 has none: -3.4e38 where it hides."""
    mask = np.zeros((1, 1, 1, 5), np.float32)
    mask[..., g.choose.randrange(5)] = np.finfo(np.float32).min
    return g.add("Mul", g.add("Softmax", g.add("Add", x, g.constant(mask)), axis=-1), x)


PIECES: dict[str, Callable[[_Graph, str], str]] = {
    "pointwise": lambda g, x: _conv(g, x, 1),
    "convolution": lambda g, x: _conv(g, x, 3),
    "depthwise": lambda g, x: _conv(g, x, 3, CHANNELS),
    "beyond half": lambda g, x: g.add("Mul", _conv(g, x, 1, size=2e5), g.constant(np.float32([[[[1e-5]]]]))),
    "below half": lambda g, x: g.add("Mul", _conv(g, x, 1, size=1e-9), g.constant(np.float32([[[[1e8]]]]))),
    "quantized": lambda g, x: _qlinear(g, x, 1),
    "quantized depthwise": lambda g, x: _qlinear(g, x, CHANNELS),
    "fake quantized": _fake,
    "norm": _norm,
    "rectifier": lambda g, x: g.add("Relu", x),
    "clip": lambda g, x: g.add("Clip", x, g.constant(np.float32(-1)), g.constant(np.float32(1.5))),
    "pool": lambda g, x: g.add("AveragePool", x, kernel_shape=[3, 3], pads=[1] * 4),
    "gate": _gate,
    "masked": _masked,
    "sum": lambda g, x: g.add("Add", x, _conv(g, x, 1)),
    "joined": lambda g, x: g.add(
        "Conv", g.add("Concat", x, _conv(g, x, 1), axis=1), g.weights(CHANNELS, 2 * CHANNELS, 1, 1)
    ),
}


def draw(choose: random.Random) -> Drawn | None:
    names = [*sorted(PIECES), "quantized", *["quantized depthwise"] * 3]
    pieces = tuple(choose.choice(names) for _ in range(choose.randint(1, 5)))
    return Drawn(pieces, choose.choice([1, 2, 2, 3]), choose.random() < 0.4, choose.randrange(1 << 30))


def model_of(drawn: Drawn) -> tuple[Any, float]:
    """The model, and how far off results may be, relative to the largest."""
    g = _Graph(choice(drawn.seed, "graph"), choice(drawn.seed, "values"))
    x = "x"
    for _ in range(drawn.times):
        if drawn.seed % 4:  # else blocks of equal operators may look different
            g.choose = choice(drawn.seed, "graph")
        for piece in drawn.pieces:
            x = PIECES[piece](g, x)
    value = helper.make_tensor_value_info
    shape = [1, CHANNELS, 5, 5]
    graph = helper.make_graph(g.nodes, "drawn", [value("x", TensorProto.FLOAT, shape)],
                              [value(x, TensorProto.FLOAT, shape)], g.constants)  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    count = drawn.times * len(drawn.pieces)
    limit = min(max(g.step * 5, 0.02 if drawn.half else 0.0) * count, MOST_OFF)
    if drawn.half and any("quantized" in piece for piece in drawn.pieces):
        limit = 0.5  # what is rounded first is another step of small results
    return model, max(limit, 1e-4)


def difference(drawn: Drawn) -> str:
    COUNTED["generated modules"] += 1
    model, limit = model_of(drawn)
    x = np.random.default_rng(drawn.seed).standard_normal((1, CHANNELS, 5, 5)).astype(np.float32)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    # Its own rewriting takes no scale of one axis everywhere.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    wanted = session.run(None, {"x": x})[0]
    try:
        with warnings.catch_warnings(record=True) as said, tempfile.TemporaryDirectory() as folder:
            warnings.simplefilter("always")
            made = codegen.generate(model, folder, "Drawn", half=drawn.half)
            found = np.asarray(_loaded(Path(made.module)).from_file(str(made.weights))(emberlet.asarray(x)))
    except Exception as error:
        return f"raises {type(error).__name__}: {error}"
    if cut := [str(w.message) for w in said if "Its modules are not found" in str(w.message)]:
        return cut[0]
    if found.shape != wanted.shape:
        return f"shape {found.shape}, onnxruntime {wanted.shape}"
    most = float(np.abs(wanted).max())
    off = float(np.abs(found - wanted).max())
    allowed = limit * (1e-3 + most)
    if limit > MOST_OFF and most < 3 * LEVEL:
        allowed = LEVEL * 1.001  # a result of one or two levels, each of which may be rounded to the next
    right = np.isfinite(found).all() and off <= allowed
    return "" if right else f"off by {off} where the largest is {most}"


def _loaded(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"contract_generated_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[spec.name]
    return module.Drawn


def simpler(drawn: Drawn) -> Iterable[Drawn]:
    if drawn.times > 1:
        yield drawn._replace(times=1)
    if drawn.half:
        yield drawn._replace(half=False)
    for k in range(len(drawn.pieces) if len(drawn.pieces) > 1 else 0):
        yield drawn._replace(pieces=drawn.pieces[:k] + drawn.pieces[k + 1 :])


def program(drawn: Drawn) -> str:
    return f"from contract.kinds.generated import Drawn, difference\n\nprint(difference({drawn!r}))"
