"""The form of an ONNX model that its quantization starts from computes the same in onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emberlet import codegen
from emberlet.codegen.quantized import preparing

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(11)
NORM = {"g": (6,), "b": (6,), "m": (6,), "v": (6,)}


def model_of(text: str, **shapes: tuple[int, ...]) -> Any:
    """The model of ONNX's text with drawn weights of these shapes; `v` are variances."""
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 17, "own" : 1]> {text}')
    for name, shape in shapes.items():
        x = np.abs(drawn(*shape)) + np.float32(0.5) if name == "v" else drawn(*shape)
        model.graph.initializer.append(onnx.numpy_helper.from_array(x, name))
    return model


def drawn(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


def run(model: Any, *inputs: Any) -> Any:
    """What onnxruntime computes without rounding activations."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    data = model if isinstance(model, str) else model.SerializeToString()
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip((i.name for i in session.get_inputs()), inputs, strict=True)))[0]


NETS = {
    "convolution": ("float[n, 4, 5, 5] x", "Conv(x, w)", (6, 4, 3, 3)),
    "transposed convolution": ("float[n, 4, 5, 5] x", "ConvTranspose<strides = [2, 2]>(x, w, d)", (4, 6, 2, 2)),
    "groups": ("float[n, 4, 5, 5] x", "ConvTranspose<group = 2>(x, w)", (4, 3, 2, 2)),
    "dense layer": ("float[n, 4] x", "Gemm(x, w, d)", (4, 6)),
    "dense layer as a product": ("float[n, 4] x", "MatMul(x, w)", (4, 6)),
    "transposed dense layer": ("float[n, 4] x", "Gemm<transB = 1>(x, w)", (6, 4)),
}


@pytest.mark.parametrize("name", NETS)
def test_a_batch_norm_is_folded_into_the_product_before_it(name: str, tmp_path: Path) -> None:
    given, product, shape = NETS[name]
    model = model_of(
        f"net ({given}) => (float y) {{ c = {product} y = BatchNormalization(c, g, b, m, v) }}", w=shape, d=(6,), **NORM
    )
    x = drawn(3, *(4, 5, 5)[: 1 if "dense" in name else 3])
    found = preparing.prepared(model)
    assert len(found.graph.node) == 1
    np.testing.assert_allclose(run(found, x), run(model, x), rtol=1e-4, atol=1e-5)
    onnx.save(model, tmp_path / "net.onnx")
    small, _ = codegen.quantize(tmp_path / "net.onnx", x, onnx="qdq", out=tmp_path / "small")
    np.testing.assert_allclose(np.asarray(small(x)), run(str(tmp_path / "small" / "net.onnx"), x), rtol=1e-4, atol=1e-5)


def test_a_batch_norm_behind_a_scaled_product_stays() -> None:
    text = "net (float[n, 4] x) => (float y) { c = Gemm<alpha = 0.5>(x, w) y = BatchNormalization(c, g, b, m, v) }"
    model, x = model_of(text, w=(4, 6), **NORM), drawn(3, 4)
    np.testing.assert_array_equal(run(preparing.prepared(model), x), run(model, x))


def test_a_batch_norm_behind_a_row_for_each_sample_stays() -> None:
    for shape in ((6, 6), (6, 1)):
        model = model_of(
            "net (float[6, 4] x) => (float y) { c = Gemm(x, w, d) y = BatchNormalization(c, g, b, m, v) }",
            w=(4, 6), d=shape, **NORM,
        )  # fmt: skip
        x = drawn(6, 4)
        np.testing.assert_allclose(run(preparing.prepared(model), x), run(model, x), rtol=1e-5, atol=1e-6)


def test_a_batch_norm_behind_the_axes_of_a_product_stays() -> None:
    text = "net (float[n, 6, 4] x) => (float y) { c = MatMul(x, w) y = BatchNormalization(c, g, b, m, v) }"
    model, x = model_of(text, w=(4, 5), **NORM), drawn(3, 6, 4)
    np.testing.assert_array_equal(run(preparing.prepared(model), x), run(model, x))


BRANCHES = """net (float[n, 6] x) => (float[n, 6] y)
{ t = ReduceSum<keepdims = 0>(x)
  o = Sub(t, t)
  c = Greater(t, o)
  s = If(c) <then_branch = a () => (float[n, 6] p) { p = MatMul(x, w) },
             else_branch = b () => (float[n, 6] q) { r = MatMul(x, w)
                q = If(c) <then_branch = d () => (float[n, 6] e) { e = MatMul(r, w) },
                           else_branch = f () => (float[n, 6] h) { h = Gemm(r, w, u) }> }>
  y = MatMul(s, z) }"""


@pytest.mark.parametrize("activations", [None, "dynamic"])
def test_weights_in_branches_are_quantized_each_by_itself(activations: str | None, tmp_path: Path) -> None:
    model = model_of(BRANCHES, z=(6, 6), u=(6,))
    then, other = (a.g for a in next(n for n in model.graph.node if n.op_type == "If").attribute)
    then.initializer.append(onnx.numpy_helper.from_array(drawn(6, 6), "w"))
    made = onnx.helper.make_node("Constant", [], ["w"], value=onnx.numpy_helper.from_array(drawn(6, 6)))
    other.node.insert(0, made)
    onnx.save(model, tmp_path / "net.onnx")
    x = drawn(40, 6)
    found = preparing.prepared(model)
    assert len(found.graph.initializer) == 4
    form = None if activations else "qdq"
    small, report = codegen.quantize(tmp_path / "net.onnx", x, onnx=form, activations=activations, out=tmp_path / "s")
    assert len(report.layers) == 4  # what the inner condition is, the outer one says
    for one in (x[x.sum(1) > 0], x[x.sum(1) < 0]):
        np.testing.assert_array_equal(run(found, one), run(model, one))
        theirs = run(str(tmp_path / "s" / "net.onnx"), one)
        np.testing.assert_allclose(np.asarray(small(one)), theirs, rtol=1e-4, atol=1e-4)


def test_functions_of_the_model_are_quantized_where_they_are_called(tmp_path: Path) -> None:
    model = model_of("net (float[n, 6] x) => (float[n, 6] y) { h = own.Dense(x, w) y = own.Dense(h, u) }",
                     w=(6, 6), u=(6, 6))  # fmt: skip
    body = [onnx.helper.make_node("MatMul", ["a", "b"], ["c"]), onnx.helper.make_node("Relu", ["c"], ["d"])]
    opsets = [onnx.helper.make_opsetid("", 17)]
    model.functions.append(onnx.helper.make_function("own", "Dense", ["a", "b"], ["d"], body, opsets))
    onnx.save(model, tmp_path / "net.onnx")
    x = drawn(40, 6)
    np.testing.assert_array_equal(run(preparing.prepared(model), x), run(model, x))
    codegen.quantize(tmp_path / "net.onnx", x, activations="static", out=tmp_path / "small")
    kinds = [n.op_type for n in onnx.load(tmp_path / "small" / "net.onnx").graph.node]
    assert kinds.count("QuantizeLinear") == 3
    assert "float32" not in (tmp_path / "small" / "net.py").read_text("utf-8").partition("def forward")[2]


COMPUTED = {
    "float16": "f = Cast<to = 1>(h) y = MatMul(x, f)",
    "read as they are stored, too": "f = Cast<to = 1>(h) y = MatMul(x, f) z = Identity(h)",
    "read in two forms": "f = Cast<to = 1>(h) g = Mul(f, s) a = MatMul(x, f) b = MatMul(x, g) y = Add(a, b)",
    "integers": "i = Cast<to = 1>(q) f = Mul(i, s) t = Transpose(f) y = Gemm<transB = 1>(x, t, d)",
}


@pytest.mark.parametrize("activations", ["static", "dynamic"])
@pytest.mark.parametrize("name", COMPUTED)
def test_weights_that_are_computed_from_constants_are_quantized(name: str, activations: str, tmp_path: Path) -> None:
    more = ", float16[6, 6] z" if "z =" in COMPUTED[name] else ""
    model = model_of(f"net (float[n, 6] x) => (float[n, 6] y{more}) {{ {COMPUTED[name]} }}", d=(6,), s=(6,))
    levels = RNG.integers(-127, 128, (6, 6)).astype(np.int8)
    for held, w in (("h", drawn(6, 6).astype(np.float16)), ("q", levels)):
        model.graph.initializer.append(onnx.numpy_helper.from_array(w, held))
    onnx.save(model, tmp_path / "net.onnx")
    x = drawn(40, 6)
    near = run(model, x)
    np.testing.assert_allclose(run(preparing.prepared(model), x), near, rtol=1e-5, atol=1e-5)
    small, _ = codegen.quantize(tmp_path / "net.onnx", x, activations=activations, out=tmp_path / "small")
    kinds = {t.name: t.data_type for t in onnx.load(tmp_path / "small" / "net.onnx").graph.initializer}
    assert onnx.TensorProto.INT8 in kinds.values()
    found = small(x)
    found = np.asarray(found[0] if more else found)
    np.testing.assert_allclose(found, run(str(tmp_path / "small" / "net.onnx"), x), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found, near, atol=0.02 * np.ptp(near))


def test_the_size_before_is_that_of_the_file(tmp_path: Path) -> None:
    """Not that of the floats that it computes from integers."""
    model = model_of("net (float[n, 64] x) => (float[n, 64] y) { i = Cast<to = 1>(q) f = Mul(i, s) y = MatMul(x, f) }",
                     s=(64,))  # fmt: skip
    levels = RNG.integers(-127, 128, (64, 64)).astype(np.int8)
    model.graph.initializer.append(onnx.numpy_helper.from_array(levels, "q"))
    onnx.save(model, tmp_path / "net.onnx")
    for more in ({"activations": "static"}, {"activations": "dynamic"}, {"onnx": "qdq"}, {"equalize": True}):
        report = codegen.quantize(tmp_path / "net.onnx", drawn(40, 64), **more)[1]
        assert 4096 + 256 <= report.before < 4096 + 256 + 100, more
