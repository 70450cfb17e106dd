"""Operators on two tensors, on axes and on indices, with random shapes, axes and attributes: equal to onnxruntime in
float32, close in int8, and byte-equal to the int8 reference under MicroPython."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from emberlet.micro.builder.build import BuildResult, Options, build, calibrated
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.fuse import fuse
from emberlet.micro.builder.graph import Graph
from emberlet.micro.builder.quantization.calibrate import check_samples, each
from emberlet.micro.builder.quantization.indices import numbers, stored
from emberlet.micro.builder.quantization.reference import dequantize
from onnx import TensorProto, helper, numpy_helper
from support.draws import some
from support.microcontrollers.modules import importable
from support.rows import every

from tools.micropython import Port

Rng = np.random.Generator
Array = npt.NDArray[Any]

COUNT = 24
"""Samples of a model."""


class Drawn:
    """A random model under construction: its inputs with samples, its nodes, and the tolerance for int8.

    steps: root mean square of the difference, in steps of the output's bytes.
    """

    def __init__(self, rng: Rng, steps: float = 1.0) -> None:
        self.rng, self.steps = rng, steps
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.samples: dict[str, Array] = {}
        self.types: dict[str, int] = {}

    def input(self, name: str, shape: list[int], low: float = -2.0, high: float = 2.0) -> None:
        self.samples[name] = self.rng.uniform(low, high, (COUNT, *shape)).astype(np.float32)
        self.types[name] = TensorProto.FLOAT

    def indices(self, name: str, shape: list[int], low: int, high: int) -> None:
        self.samples[name] = self.rng.integers(low, high, (COUNT, *shape))
        self.types[name] = TensorProto.INT64

    def constant(self, name: str, value: npt.ArrayLike, dtype: npt.DTypeLike = np.float32) -> None:
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))

    def __call__(self, op: str, inputs: str, outputs: str = "y", **attributes: Any) -> None:
        names = ["" if n == "_" else n for n in inputs.split()]
        self.nodes.append(helper.make_node(op, names, outputs.split(), f"{op} {outputs}", **attributes))

    def model(self, outputs: str = "y") -> bytes:
        inputs = [helper.make_tensor_value_info(n, self.types[n], [1, *x.shape[2:]]) for n, x in self.batched().items()]
        wanted = [onnx.ValueInfoProto(name=name) for name in outputs.split()]
        graph = helper.make_graph(self.nodes, "g", inputs, wanted, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        return bytes(onnx.shape_inference.infer_shapes(model).SerializeToString())

    def batched(self) -> dict[str, Array]:
        """The samples, each in the model's shape."""
        return {name: x[:, None] for name, x in self.samples.items()}


def shape(rng: Rng, least: int = 2, most: int = 6) -> list[int]:
    return [int(n) for n in rng.integers(least, most + 1, int(rng.integers(1, 4)))]


def narrowed(rng: Rng, sides: list[int]) -> list[int]:
    """Some sides are 1; sometimes the first are missing."""
    found = [1 if rng.random() < 0.35 else n for n in sides]
    return found[int(rng.integers(len(found))) :] if rng.random() < 0.3 else found


def two(rng: Rng, steps: float = 1.0, **ranges: tuple[float, float]) -> Drawn:
    """Inputs a and b, either of which may be repeated; or b is constant."""
    d, full = Drawn(rng, steps), shape(rng)
    first = narrowed(rng, full) if rng.random() < 0.3 else full
    second = narrowed(rng, full)
    bounds = {"a": (-2.0, 2.0), "b": (-2.0, 2.0)} | ranges
    d.input("a", first, *bounds["a"])
    if rng.random() < 0.3:
        d.constant("b", rng.uniform(*bounds["b"], [1, *second]))
    else:
        d.input("b", second, *bounds["b"])
    if rng.random() < 0.5:
        d("Relu", "a", "r") if bounds["a"][0] >= 0 else d("Tanh", "a", "r")
    else:
        d("Identity", "a", "r")
    return d


def extreme(rng: Rng) -> Drawn:
    d = two(rng)
    more = ""
    if rng.random() < 0.3:
        d.constant("c", rng.uniform(-1, 1))
        more = " c"
    d(str(rng.choice(["Max", "Min"])), "r b" + more)
    return d


def quotient(rng: Rng) -> Drawn:
    sign = 1.0 if rng.random() < 0.7 else -1.0
    d = two(rng, 2.0, b=(0.7 * sign, 2.5 * sign) if sign > 0 else (-2.5, -0.7))
    d("Div", "r b")
    return d


def power(rng: Rng) -> Drawn:
    d = two(rng, 2.0, a=(0.05, 2.0), b=(0.2, 2.5))
    if rng.random() < 0.2:
        d.constant("base", 1.7)
        d("Pow", "base r")
    else:
        d("Pow", "r b")
    return d


def several(rng: Rng) -> Drawn:
    d = two(rng)
    d.constant("c", rng.uniform(-1, 1, 1))
    d(str(rng.choice(["Sum", "Mean"])), "r b c")
    return d


def comparison(rng: Rng) -> Drawn:
    """A comparison of numbers that are equal or at least a step apart, so that bytes distinguish them."""
    d = Drawn(rng, 0.0)
    full = shape(rng)
    for name in "ab":
        d.input(name, full if name == "a" else narrowed(rng, full))
        d.samples[name] = np.rint(d.samples[name] * 8).astype(np.float32) * 0.125
    op = str(rng.choice(["Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"]))
    kind = rng.random()
    if kind < 0.3:
        d.constant("c", np.rint(rng.uniform(-2, 2) * 8) / 8)
        d(op, *(["a c"] if rng.random() < 0.5 else ["c a"]), "z")
        d.samples.pop("b")
    elif kind < 0.5:
        d.constant("c", np.rint(rng.uniform(-2, 2, [1, *narrowed(rng, full)]) * 8) / 8)
        d(op, "a c", "z")
        d.samples.pop("b")
    else:
        d(op, "a b" if rng.random() < 0.5 else "b a", "z")
    d("Cast", "z", "y", to=TensorProto.FLOAT)
    return d


def logic(rng: Rng) -> Drawn:
    d = Drawn(rng, 0.0)
    full = shape(rng)
    d.input("a", full)
    d.input("b", narrowed(rng, full))
    d.constant("zero", 0.0)
    d("Greater", "a zero", "p")
    d("Less", "b zero", "q")
    d(str(rng.choice(["And", "Or", "Xor"])), "p q", "r")
    d("Not", "r", "n")
    d("Cast", "n", "y", to=TensorProto.FLOAT)
    # Numbers near zero may fall to either side in bytes.
    for x in d.samples.values():
        x += np.sign(x) * 0.1
    return d


def choice(rng: Rng) -> Drawn:
    d, full = Drawn(rng), shape(rng)
    d.input("a", full)
    d.input("b", narrowed(rng, full), -1, 4)
    d.input("m", narrowed(rng, full))
    d.samples["m"] += np.sign(d.samples["m"]) * 0.1
    d.constant("zero", 0.0)
    d.constant("c", rng.uniform(-1, 1, [1, *narrowed(rng, full)]))
    d("Less", "m zero", "p")
    kind = int(rng.integers(4))
    if kind == 3:
        d.constant("mask", rng.random([1, *full]) < 0.5, bool)
        d("Where", "mask a b")
        d.samples.pop("m")
        d.nodes.pop(0)
    else:
        d("Where", ("p a b", "p c a", "p b c")[kind])
        for name in {"a", "b"} - set("a b c".split() if kind == 0 else ("c a" if kind == 1 else "b c").split()):
            d.samples.pop(name)
    return d


def masked_attention(rng: Rng) -> Drawn:
    """Scores that a causal mask hides, as minus infinity or the least number, before softmax."""
    d, n = Drawn(rng), int(rng.integers(3, 8))
    d.input("a", [2, n, n], -3, 3)
    d.constant("mask", np.tril(np.ones((n, n), bool))[None, None], bool)
    d.constant("least", -np.inf if rng.random() < 0.5 else np.finfo(np.float32).min)
    d("Where", "mask a least", "s")
    d("Softmax", "s", "y", axis=-1)
    return d


def reduction(op: str) -> Callable[[Rng], Drawn]:
    def draw(rng: Rng) -> Drawn:
        d, sides = Drawn(rng), shape(rng)
        d.input("a", sides, *((0.1, 2.0) if op == "ReduceLogSum" else (-2.0, 2.0)))
        rank = len(sides) + 1
        axes = rng.permutation(np.arange(1, rank))[: int(rng.integers(1, rank))]
        d.constant("axes", np.sort(axes) - (rank if rng.random() < 0.5 else 0), np.int64)
        d(op, "a axes", keepdims=int(rng.integers(2)))
        return d

    draw.__name__ = op
    return draw


def added_mask(rng: Rng) -> Drawn:
    """An added mask, as scaled_dot_product_attention is exported; it may contain other numbers too."""
    d, n = Drawn(rng), int(rng.integers(3, 8))
    d.input("a", [2, n, n], -3, 3)
    hidden = np.triu(np.full((n, n), float(rng.choice([-np.inf, np.finfo(np.float32).min, -1e9]))), 1)
    if rng.random() < 0.5:
        hidden = hidden + rng.uniform(-1, 1, (n, n)) * np.tri(n)
    d.constant("mask", np.where(np.isnan(hidden), 0, hidden))
    d("Add", "a mask" if rng.random() < 0.7 else "mask a", "masked")
    d("Softmax", "masked", axis=-1)
    return d


def class_token(rng: Rng) -> Drawn:
    """A constant that is joined to what the model computes, as in vision transformers."""
    d, sides = Drawn(rng), shape(rng)
    d.input("a", sides)
    axis = int(rng.integers(len(sides)))
    d("Tanh", "a", "t")
    for name in "uv":
        own = [int(rng.integers(1, 4)) if k == axis else n for k, n in enumerate(sides)]
        d.constant(name, rng.uniform(-1, 1, [1, *own]))
    d("Concat", str(rng.choice(["u t", "t u", "u t v"])), "j", axis=axis + 1)
    d("Softmax", "j", axis=-1) if rng.random() < 0.5 else d("Relu", "j")
    return d


def group_norm(rng: Rng) -> Drawn:
    groups = int(rng.choice([1, 2, 3]))
    channels = groups * int(rng.integers(1, 4))
    d = Drawn(rng, 1.5)
    d.input("a", [channels, int(rng.integers(2, 6)), int(rng.integers(2, 6))])
    for name in ("g", "b"):
        d.constant(name, rng.normal(0.5, 1, channels))
    d("GroupNormalization", "a g b", num_groups=groups)
    return d


def to_length_one(rng: Rng) -> Drawn:
    d, sides = Drawn(rng, 2.0), shape(rng, 3, 7)
    d.input("a", sides)
    axis = int(rng.integers(1, len(sides) + 1))
    d("LpNormalization", "a", axis=axis, p=int(rng.integers(1, 3)))
    return d


def greatest(rng: Rng) -> Drawn:
    d, sides = Drawn(rng), shape(rng, 3, 7)
    d.input("a", sides)
    axis = int(rng.integers(len(sides)))
    d.constant("k", [int(rng.integers(1, sides[axis] + 1))], np.int64)
    d("TopK", "a k", "y i", axis=axis + 1, largest=int(rng.integers(2)))
    return d


def indices_of_greatest(rng: Rng) -> Drawn:
    """Of numbers that bytes distinguish."""
    d, n = Drawn(rng, 0.0), int(rng.integers(3, 20))
    d.input("a", [n])
    d.samples["a"] = np.stack([rng.permutation(n) for _ in range(COUNT)]).astype(np.float32)
    d.constant("k", [int(rng.integers(1, n + 1))], np.int64)
    d("TopK", "a k", "v i", largest=int(rng.integers(2)))
    d("Cast", "i", "y", to=TensorProto.FLOAT)
    return d


def running_sum(rng: Rng) -> Drawn:
    d, sides = Drawn(rng), shape(rng)
    d.input("a", sides)
    d.constant("axis", int(rng.integers(1, len(sides) + 1)), np.int64)
    d("CumSum", "a axis", exclusive=int(rng.integers(2)), reverse=int(rng.integers(2)))
    return d


def embedding(rng: Rng) -> Drawn:
    d, rows = Drawn(rng), int(rng.integers(2, 250))
    d.indices("i", [int(rng.integers(1, 9))], 0 if rng.random() < 0.7 or rows > 127 else -rows, rows)
    d.constant("w", rng.normal(0, 1, (rows, int(rng.integers(1, 20)))))
    d("Gather", "w i", "e")
    d("Tanh", "e", "y")
    return d


def embedding_of_many(rng: Rng) -> Drawn:
    """Indices of two bytes."""
    d, rows = Drawn(rng), int(rng.integers(257, 1000))
    d.indices("i", [int(rng.integers(1, 9))], 0 if rng.random() < 0.7 else -rows, rows)
    d.constant("w", rng.normal(0, 1, (rows, int(rng.integers(1, 20)))))
    d("Gather", "w i", "e")
    d("Tanh", "e", "y")
    return d


def place_of_many(rng: Rng) -> Drawn:
    """The index of the only element that is not zero, or of several that bytes distinguish."""
    d, n = Drawn(rng, 0.0), int(rng.integers(257, 700))
    d.input("a", [n])
    several = int(rng.integers(1, 5))
    d.samples["a"] = np.zeros((COUNT, n), np.float32)
    for row in d.samples["a"]:
        row[rng.permutation(n)[:several]] = np.arange(several, dtype=np.float32) + 1
    if rng.random() < 0.5:
        d("ArgMax", "a", "i", axis=1, keepdims=int(rng.integers(2)))
    else:
        d.constant("k", [several], np.int64)
        d("TopK", "a k", "v i")
    if rng.random() < 0.5:
        d.constant("w", rng.normal(0, 1, (n, 3)))
        d("Gather", "w i", "y")
        d.steps = 0.51
    else:
        d("Cast", "i", "y", to=TensorProto.FLOAT)
    return d


def gathered(rng: Rng) -> Drawn:
    d, sides = Drawn(rng), shape(rng, 2, 6)
    axis = int(rng.integers(len(sides)))
    d.input("a", sides)
    d.indices("i", [int(rng.integers(1, 5))], 0, sides[axis])
    d("Gather", "a i", axis=axis + 1)
    return d


def one_hot(rng: Rng) -> Drawn:
    d, depth = Drawn(rng, 0.51), int(rng.integers(2, 9))
    sides = shape(rng, 1, 4)
    d.indices("i", sides, 0, depth + 1)
    d.constant("depth", depth, np.int64)
    d.constant("values", [0, 1] if rng.random() < 0.5 else [-1, 1])
    d("OneHot", "i depth values", axis=int(rng.integers(-1, len(sides) + 1)))
    return d


def bilinear(rng: Rng) -> Drawn:
    d = Drawn(rng)
    sides = [int(n) for n in rng.integers(2, 8, 3)]
    d.input("a", sides)
    sizes = [1, sides[0], *(int(n) for n in rng.integers(1, 14, 2))]
    d.constant("sizes", sizes, np.int64)
    where = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
    how = {"mode": "linear", "coordinate_transformation_mode": str(rng.choice(where))}
    d("Resize", "a _ _ sizes", **how)
    return d


def linear(rng: Rng) -> Drawn:
    d = Drawn(rng)
    sides = [int(n) for n in rng.integers(2, 9, 2)]
    d.input("a", sides)
    d.constant("sizes", [1, sides[0], int(rng.integers(1, 14))], np.int64)
    d("Resize", "a _ _ sizes", mode="linear")
    return d


def average(rng: Rng) -> Drawn:
    """Windows that extend beyond the padding, which may count or not; padding added by ceil_mode never counts."""
    d = Drawn(rng)
    c, *sides = (int(n) for n in rng.integers(1, 10, int(rng.integers(2, 4))))
    kernel = [int(rng.integers(1, min(n, 4) + 1)) for n in sides]
    pads = [int(rng.integers(0, k)) for k in (*kernel, *kernel)]
    d.input("a", [c, *sides])
    strides = [int(rng.integers(1, k + 1)) for k in kernel]
    flags = {"ceil_mode": int(rng.integers(0, 2)), "count_include_pad": int(rng.integers(0, 2))}
    d("AveragePool", "a", kernel_shape=kernel, pads=pads, strides=strides, **flags)
    return d


def index_of_last(rng: Rng) -> Drawn:
    d = Drawn(rng, 0.0)
    n = int(rng.integers(2, 9))
    d.input("a", [int(rng.integers(1, 4)), n])
    d.samples["a"] = np.rint(d.samples["a"])
    d(str(rng.choice(["ArgMax", "ArgMin"])), "a", "i", axis=2, select_last_index=int(rng.integers(2)))
    d("Cast", "i", "y", to=TensorProto.FLOAT)
    return d


REDUCTIONS = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare",
              "ReduceLogSum", "ReduceLogSumExp")  # fmt: skip

DRAWS: dict[str, Callable[[Rng], Drawn]] = {
    draw.__name__: draw
    for draw in (
        extreme, quotient, power, several, comparison, logic, choice, masked_attention, added_mask, class_token,
        group_norm, to_length_one, greatest, indices_of_greatest, running_sum, embedding, embedding_of_many,
        place_of_many, gathered, one_hot, bilinear, linear, index_of_last, average, *map(reduction, REDUCTIONS),
    )
}  # fmt: skip
SEEDS = some(range(8), 4, __name__)


def drawn(name: str, seed: int) -> tuple[Drawn, bytes]:
    print(f"{name}, seed {seed}")
    made = DRAWS[name](np.random.default_rng([seed, len(name)]))
    return made, made.model()


@every("name", DRAWS)
@pytest.mark.parametrize("seed", SEEDS)
def test_numbers_are_those_of_onnxruntime(name: str, seed: int) -> None:
    made, data = drawn(name, seed)
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    graph = fuse(read_graph(data, "m"))
    laid = check_samples(made.samples, graph)
    given = made.batched()
    for k in range(4):
        wanted = session.run(["y"], {n: x[k] for n, x in given.items()})[0]
        found = graph.run({n: x[k] for n, x in laid.items()})[graph.outputs[0]]
        np.testing.assert_allclose(found.reshape(-1), np.asarray(wanted).reshape(-1), rtol=1e-4, atol=2e-5)
    own = calibrated(graph, made.samples, Options("m", method="minmax"))[0]
    assert steps_off(graph, own, laid) <= made.steps


def steps_off(graph: Graph, own: Graph, laid: dict[str, Array]) -> float:
    """Root mean square difference between int8 and float32, in steps of the output."""
    out, off = own.grids[own.outputs[0]], []
    for row in each(laid):
        given = {n: stored(own, n, x) for n, x in row.items()}
        y = own.run(given)[own.outputs[0]]
        found = numbers(own, own.outputs[0], y) if own.outputs[0] in own.words else dequantize(y, out.scale, out.zero)
        off.append((found - graph.run(row)[graph.outputs[0]].reshape(found.shape)) / out.scale)
    return round(float(np.sqrt(np.mean(np.square(off)))), 4)


def predictions(result: BuildResult, rows: list[list[Array]], port: Port, folder: Path, bytecode: bool) -> Array:
    """The module's `predict` for each row of inputs."""
    for old in folder.iterdir():
        old.unlink()
    lines = [f"print(*m.predict({', '.join(repr(x.reshape(-1).tolist()) for x in row)}))" for row in rows]
    script = importable(folder, result, bytecode=bytecode) + "import m\n" + "\n".join(lines)
    out = port.run(script, heap="16M", micropypath=[]).check().stdout
    return np.array([[float(v) for v in line.split()] for line in out.splitlines()])


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("how", ["viper", "bytecode", "float"])
def test_micropython_computes_the_same(name: str, how: str, unix_port: Port, tmp_path: Path) -> None:
    for seed in (100, 101):
        made, data = drawn(name, seed)
        graph = read_graph(data, "m")
        result = build(graph, Options("m", floats=how == "float"), None if how == "float" else made.samples)
        own, laid = result.graph, check_samples(made.samples, graph)
        rows = [[laid[n][k] for n in own.inputs] for k in range(5)]
        found = predictions(result, rows, unix_port, tmp_path, how == "bytecode")
        for row, y in zip(rows, found, strict=True):
            if how == "float":
                wanted = fuse(graph).run(dict(zip(own.inputs, row, strict=True)))[own.outputs[0]].reshape(-1)
                np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-4)
                continue
            given = {n: stored(own, n, x) for n, x in zip(own.inputs, row, strict=True)}
            port = result.program.outputs[0]
            wanted = own.run(given)[own.outputs[0]].reshape(-1)
            if port.width == 2:
                assert np.array_equal(y, numbers(own, own.outputs[0], wanted))
                continue
            assert np.array_equal(np.rint(y / port.scale) + port.zero, wanted)
