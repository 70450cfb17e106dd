"""Quantization around products and convolutions becomes a part of the layers: a model of QDQ reads like one of floats,
and computes what onnxruntime does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import onnx
import onnxruntime
import pytest
from emberlet import codegen, store
from emberlet.burnpack import Burnpack
from onnx import TensorProto, helper, numpy_helper
from support.rows import every

RNG = np.random.default_rng(12)
MODELS = Path(__file__).resolve().parents[1] / "models"
STEP = np.float32(0.05)


class Net:
    """A graph that is written node by node."""

    def __init__(self, signed: bool) -> None:
        self.dtype: Any = np.int8 if signed else np.uint8
        self.nodes: list[Any] = []
        self.held: list[Any] = []

    def constant(self, x: Any, name: str = "") -> str:
        name = name or f"c{len(self.held)}"
        self.held.append(numpy_helper.from_array(np.asarray(x), name))
        return name

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [f"t{len(self.nodes)}"], **attributes))
        return f"t{len(self.nodes) - 1}"

    def grid(self, scale: Any, zero: int) -> tuple[str, str]:
        """zero: as of uint8."""
        return self.constant(np.float32(scale)), self.constant(self.dtype(zero - (128 if self.dtype is np.int8 else 0)))

    def levels(self, x: str, scale: Any, zero: int) -> str:
        """x, quantized and dequantized."""
        grid = self.grid(scale, zero)
        return self.node("DequantizeLinear", self.node("QuantizeLinear", x, *grid), *grid)

    def weight(self, shape: tuple[int, ...], axis: int, name: str) -> tuple[str, Any]:
        """int8 with a scale for each channel; returns these scales, too."""
        scales = RNG.uniform(0.001, 0.01, shape[axis]).astype(np.float32)
        values = self.constant(RNG.integers(-127, 128, shape, np.int8), f"{name}.weight")
        zeros = self.constant(np.zeros(shape[axis], np.int8))
        return self.node("DequantizeLinear", values, self.constant(scales), zeros, axis=axis), scales

    def bias(self, scales: Any, name: str) -> str:
        """int32 at the scale of the sums."""
        values = self.constant(RNG.integers(-3000, 3000, len(scales), np.int32), f"{name}.bias")
        zeros = self.constant(np.zeros(len(scales), np.int32))
        return self.node("DequantizeLinear", values, self.constant(scales * STEP), zeros, axis=0)

    def saved(self, result: str, shape: tuple[int, ...], path: Path, opset: int = 17) -> None:
        self.nodes[-1].output[0] = "y"
        io = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", shape), ("y", None))]
        graph = helper.make_graph(self.nodes, "g", io[:1], io[1:], self.held)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path)


def theirs(path: Path, x: Any, optimized: bool = True) -> Any:
    options = onnxruntime.SessionOptions()
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimized else levels.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: x})[0]


def ours(path: Path, x: Any, exact: bool = True) -> Any:
    """The result, the same on every way."""
    first = None
    for way in ("numpy", "python", "numpy compiled", "native compiled", "wasm compiled"):
        backend, _, compiled = way.partition(" ")
        model = codegen.load(path, backend)
        run = model.compile(backend=backend) if compiled else model
        found = np.asarray(run(emberlet.asarray(x, backend=backend)))
        first = found if first is None else first
        np.testing.assert_allclose(found, first, 0 if exact else 1e-5, 0 if exact else 1e-4, err_msg=way)
    return first


def text_of(path: Path) -> str:
    codegen.generate(path, path.parent, name="m", force=True)
    return (path.parent / "m.py").read_text("utf-8")


@pytest.mark.parametrize("name", ["quantized_qdq", "quantized_qdq_int8", "quantized_qoperator"])
def test_a_quantized_network_gives_onnxruntimes_levels(name: str) -> None:
    path = MODELS / name / "model.onnx"
    x = RNG.normal(size=(2, 3, 16, 16)).astype(np.float32)
    np.testing.assert_array_equal(ours(path, x), theirs(path, x))


def test_a_network_of_qdq_reads_like_its_float_network() -> None:
    text = text_of_copy("quantized_qdq")
    forward = text[text.index("def forward") :]
    assert "x = self.conv1(image)" in forward
    assert "F.leaky_relu(self.pointwise(self.depthwise(x)), negative_slope=0.1)" in forward
    assert "return self.fc2(x)" in forward
    assert forward.count("quantize_linear") == 4  # what two read, and around the sum
    assert text.count("input=(") == 6


def text_of_copy(name: str) -> str:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes((MODELS / name / "model.onnx").read_bytes())
        return text_of(path)


CLIPS = ("", "Relu", "Relu6", "its own grid", "Clip")
LAYERS = [(kind, signed, zero, clip, rounded) for kind in ("Conv", "Gemm", "MatMul") for signed in (False, True)
          for zero in (0, 100) for clip in CLIPS for rounded in (True, False)]  # fmt: skip


@every("case", LAYERS, share=4)
def test_a_layer_owns_the_quantization_around_it(case: Any, tmp_path: Path) -> None:
    kind, signed, zero, clip, rounded = case
    net, path = Net(signed), tmp_path / "m.onnx"
    shape = (2, 6, 5, 5) if kind == "Conv" else (3, 12)
    x = net.levels("x", STEP, 120)
    if kind == "Conv":
        w, scales = net.weight((8, 6, 3, 3), 0, "layer")
        y = net.node("Conv", x, w, net.bias(scales, "layer"), pads=[1, 1, 1, 1])
    else:
        w, scales = net.weight((12, 8), 1, "layer")
        y = net.node(kind, x, w, *([net.bias(scales, "layer")] if kind == "Gemm" else []))
    step = np.float32(6 / 255 if clip == "its own grid" else 0.02)
    if clip == "Relu":
        y = net.node("Relu", y)
    elif clip:  # of the whole grid, or of less
        y = net.node("Clip", y, net.constant(np.float32(0)), net.constant(np.float32(0.5 if clip == "Clip" else 6.0)))
    if rounded:
        y = net.levels(y, step, zero)
    net.saved(y, shape, path)
    given = RNG.normal(size=shape).astype(np.float32) * 2
    want, found = theirs(path, given, optimized=False), ours(path, given)
    if rounded:
        assert np.abs(np.rint((found - want) / step)).max() <= 1  # a tie may round to either
        assert (found != want).mean() < 0.05
        if kind == "Conv" and clip in ("", "Relu") and zero == 0:
            np.testing.assert_array_equal(found, theirs(path, given))
    else:
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)
    forward = text_of(path).split("def forward")[1]
    if "quantize_linear" not in text_of(path):
        loaded = codegen.load(path, "numpy")
        before = {name: np.asarray(p.val()) for name, p in loaded.named_params()}
        for _, p in loaded.named_params():
            p.set(p.val() * 0)
        loaded.load_from(store.open(path))
        for name, p in loaded.named_params():
            np.testing.assert_array_equal(np.asarray(p.val()), before[name])
    joined = rounded and (not clip or (zero == 0 and clip != "Clip"))
    assert ("quantize_linear" in forward) == (rounded and not joined)
    assert ("relu" in forward or "clip" in forward) == (bool(clip) and not joined)


def test_sums_after_quantization_are_no_bias(tmp_path: Path) -> None:
    net, path = Net(False), tmp_path / "m.onnx"
    w, _ = net.weight((12, 8), 1, "layer")
    y = net.levels(net.node("MatMul", net.levels("x", STEP, 120), w), np.float32(0.02), 90)
    net.saved(net.node("Add", y, net.constant(RNG.normal(size=8).astype(np.float32))), (3, 12), path)
    x = RNG.normal(size=(3, 12)).astype(np.float32)
    np.testing.assert_allclose(ours(path, x), theirs(path, x), rtol=1e-6, atol=1e-6)


def test_a_bias_of_other_numbers_is_not_rounded(tmp_path: Path) -> None:
    net, path = Net(False), tmp_path / "m.onnx"
    w, scales = net.weight((8, 6, 3, 3), 0, "layer")
    bias = net.constant((RNG.integers(-300, 300, 8) + 0.5).astype(np.float32) * scales * STEP)
    net.saved(net.levels(net.node("Conv", net.levels("x", STEP, 120), w, bias), 0.02, 90), (2, 6, 5, 5), path)
    x = RNG.normal(size=(2, 6, 5, 5)).astype(np.float32)
    np.testing.assert_allclose(ours(path, x), theirs(path, x, optimized=False), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("move", ["MaxPool", "Transpose", "Flatten"])
def test_what_moves_elements_takes_integers_on_one_grid(move: str, same: bool, tmp_path: Path) -> None:
    net, path = Net(True), tmp_path / "m.onnx"
    options = {"MaxPool": {"kernel_shape": [2, 2], "pads": [1, 1, 0, 0]}, "Transpose": {"perm": [0, 2, 1, 3]}}
    y = net.node(move, net.levels("x", STEP, 120), **options.get(move, {}))
    net.saved(net.levels(y, STEP if same else 2 * STEP, 120), (2, 6, 5, 5), path)
    x = RNG.normal(size=(2, 6, 5, 5)).astype(np.float32)
    np.testing.assert_array_equal(ours(path, x), theirs(path, x))
    assert (text_of(path).split("def forward")[1].count("quantize_linear") == 2) == same


def test_levels_that_others_read_stay_integers(tmp_path: Path) -> None:
    net, path = Net(False), tmp_path / "m.onnx"
    x = net.levels("x", STEP, 120)
    parts = []
    for name in ("left", "right"):
        w, scales = net.weight((6, 6, 1, 1), 0, name)
        parts.append(net.levels(net.node("Conv", x, w, net.bias(scales, name)), 0.02, 90))
    net.saved(net.levels(net.node("Add", net.node("Add", *parts), x), 0.1, 110), (2, 6, 5, 5), path)
    given = RNG.normal(size=(2, 6, 5, 5)).astype(np.float32)
    found, want = ours(path, given), theirs(path, given, optimized=False)
    assert np.abs(np.rint((found - want) / 0.1)).max() <= 1
    assert (found != want).mean() < 0.02
    assert text_of(path).count("F.quantize_linear(x, 0.05") == 1


@pytest.mark.parametrize("channels", [False, True])
@pytest.mark.parametrize("kind", ["QInt8", "QUInt8"])
def test_layers_quantize_by_the_range_of_each_call(kind: str, channels: bool, tmp_path: Path) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    net, path = Net(False), tmp_path / "m.onnx"

    def drawn(*shape: int) -> str:
        return net.constant(RNG.normal(size=shape).astype(np.float32))

    y = net.node("Relu", net.node("Conv", "x", drawn(8, 6, 3, 3), drawn(8)))
    y = net.node("Gemm", net.node("Flatten", y), drawn(72, 10), drawn(10))
    net.saved(net.node("MatMul", y, drawn(10, 5)), (2, 6, 5, 5), tmp_path / "float.onnx")
    options: dict[str, Any] = {"weight_type": QuantType[kind], "per_channel": channels}
    quantize_dynamic(tmp_path / "float.onnx", path, **options)
    x = RNG.normal(size=(2, 6, 5, 5)).astype(np.float32)
    want = theirs(path, x, optimized=False)
    found = ours(path, x, exact=False)
    np.testing.assert_allclose(found, want, atol=1e-5 * np.abs(want).max())
    assert text_of(path).count('input="dynamic"') == 3
    assert "integer" not in text_of(path)
    assert text_of(path).count("bias=False") == 1  # of the product without one


@every(
    "kind, scales, zero, dynamic",
    [
        ("MatMulInteger", (6,), (), True),
        ("MatMulInteger", (6,), (1,), True),
        ("MatMulInteger", (1, 6), (6,), True),
        ("MatMulInteger", (1, 1, 1), (), False),
        ("MatMulInteger", (1, 1, 6), (6,), False),
        ("ConvInteger", (1, 6, 1, 1), (), True),
        ("ConvInteger", (1, 1, 1, 1, 1), (), False),
    ],
)
def test_scales_of_sums_are_the_weights(
    kind: str, scales: tuple[int, ...], zero: tuple[int, ...], dynamic: bool, tmp_path: Path
) -> None:
    net, path, dense = Net(False), tmp_path / "m.onnx", kind == "MatMulInteger"
    net.nodes.append(helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]))
    weight = net.constant(RNG.integers(-100, 100, (8, 6) if dense else (6, 8, 1, 1)).astype(np.int8), "fc.weight")
    sums = net.node(kind, "q", weight, "z", net.constant(np.full(zero, 3 if dense else 0, np.int8)))
    both = net.node("Mul", "s", net.constant(RNG.uniform(0.001, 0.01, scales).astype(np.float32)))
    shape = (3, 8) if dense else (2, 8, 3, 3)
    net.saved(net.node("Mul", net.node("Cast", sums, to=1), both), shape, path)
    x = RNG.normal(size=shape).astype(np.float32)
    want = theirs(path, x, optimized=False)
    found = ours(path, x, exact=False)
    assert found.shape == want.shape
    np.testing.assert_allclose(found, want, atol=1e-6 * np.abs(want).max())
    assert text_of(path).count('input="dynamic"') == dynamic


def test_levels_of_int8_without_a_zero_point_belong_to_the_layer(tmp_path: Path) -> None:
    net, path, int8 = Net(True), tmp_path / "m.onnx", {"output_dtype": TensorProto.INT8}
    first, last = net.constant(STEP), net.constant(np.float32(0.02))
    x = net.node("DequantizeLinear", net.node("QuantizeLinear", "x", first, **int8), first)
    w, _ = net.weight((12, 8), 1, "layer")
    y = net.node("QuantizeLinear", net.node("MatMul", x, w), last, **int8)
    net.saved(net.node("DequantizeLinear", y, last), (3, 12), path, 21)
    given = RNG.normal(size=(3, 12)).astype(np.float32)
    want, found = theirs(path, given, optimized=False), ours(path, given)
    assert np.abs(np.rint((found - want) / 0.02)).max() <= 1
    assert (found != want).mean() < 0.1
    assert "quantize_linear" not in text_of(path)


def shared_convolutions(net: Net) -> tuple[str, tuple[int, ...]]:
    w, scales = net.weight((4, 4, 3, 3), 0, "conv")
    x = net.levels("x", STEP, 128)
    for zero in (128, 120):
        x = net.levels(net.node("Conv", x, w, net.bias(scales, f"conv{zero}"), pads=[1] * 4), STEP, zero)
    return x, (2, 4, 5, 6)


def shared_products(net: Net) -> tuple[str, tuple[int, ...]]:
    """One of them reads the matrix transposed."""
    values = net.constant(RNG.integers(-127, 128, (8, 8), np.int8), "fc.weight")
    w = net.node("DequantizeLinear", values, net.constant(np.float32(0.010371)), net.constant(np.int8(0)))
    x = net.levels(net.node("MatMul", net.levels("x", STEP, 128), w), 0.10173, 128)
    x = net.levels(net.node("Gemm", x, w, transB=1), 0.11319, 128)
    turned = net.node("Transpose", w, perm=[1, 0])
    return net.levels(net.node("MatMul", x, turned), 0.12791, 128), (3, 8)


def tied_embedding(net: Net) -> tuple[str, tuple[int, ...]]:
    """The scores of a language model, by the table of its embedding."""
    w, _ = net.weight((40, 8), 0, "embedding")
    at = net.node("Cast", net.node("Clip", net.node("Abs", "x"), "", net.constant(np.float32(30))), to=7)
    x = net.levels(net.node("Gather", w, at), STEP, 128)
    return net.levels(net.node("MatMul", x, net.node("Transpose", w, perm=[1, 0])), 0.02, 128), (3, 5)


@pytest.mark.parametrize(
    ("make", "layers", "integers"),
    [(shared_convolutions, 2, 144), (shared_products, 3, 128), (tied_embedding, 2, 320)],
)
@pytest.mark.parametrize("signed", [False, True])
def test_a_weight_that_several_layers_read_is_stored_once(
    make: Any, layers: int, integers: int, signed: bool, tmp_path: Path
) -> None:
    """Once for each order of its elements."""
    net = Net(signed)
    result, shape = make(net)
    net.saved(result, shape, tmp_path / "m.onnx")
    x = (RNG.normal(size=shape) * 3).astype(np.float32)
    text = text_of(tmp_path / "m.onnx")
    assert text.count("nn.Quantized") == layers
    assert "equantize_linear" not in text
    found = ours(tmp_path / "m.onnx", x)
    assert np.ptp(found) > 1
    np.testing.assert_array_equal(found, theirs(tmp_path / "m.onnx", x))
    entries = Burnpack.from_file(tmp_path / "m.bpk").tensors
    places = {(e.start, e.end) for name, e in entries.items() if name.endswith(".values")}
    assert sum(end - start for start, end in places) == integers


def test_a_weight_that_is_also_read_as_floats_stays_one(tmp_path: Path) -> None:
    net = Net(False)
    w, _ = net.weight((8, 8), 1, "fc")
    x = net.node("MatMul", net.levels("x", STEP, 128), w)
    net.node("Add", x, w)
    net.saved("", (8, 8), tmp_path / "m.onnx")
    x = RNG.normal(size=(8, 8)).astype(np.float32)
    assert "nn.Quantized" not in text_of(tmp_path / "m.onnx")
    np.testing.assert_allclose(
        ours(tmp_path / "m.onnx", x, False), theirs(tmp_path / "m.onnx", x, False), atol=1e-5
    )  # fmt: skip
