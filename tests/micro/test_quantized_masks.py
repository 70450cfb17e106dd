"""Causal attention that onnxruntime quantized, and embeddings of bytes that are moved before they are dequantized."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from emberlet.errors import ModelError
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.quantization.reference import dequantize
from onnx import TensorProto, helper
from onnxruntime.quantization import QuantFormat, QuantType
from support.microcontrollers.onnx_models import Maker
from support.microcontrollers.quantized import quantized
from support.microcontrollers.words import inferred, step_of
from support.onnx_models import expected

Array = np.ndarray[Any, Any]

STEPS, WIDTH = 6, 8


def attention(kind: str, least: float) -> onnx.ModelProto:
    """kind: whether the mask is added, chosen by Where, or made by Where and added. least: the number that hides an
    element."""
    m = Maker()
    for name in ("wq", "wk", "wv"):
        m.weight(name, WIDTH, WIDTH)
    seen = np.tril(np.ones((STEPS, STEPS), bool))
    m("MatMul", "x wq", "q")
    m("MatMul", "x wk", "k")
    m("MatMul", "x wv", "v")
    m("Transpose", "k", "kt", perm=[0, 2, 1])
    m("MatMul", "q kt", "scores")
    m.constant("least", np.array(least, np.float32))
    if kind == "where":
        m.constant("mask", seen)
        m("Where", "mask scores least", "masked")
    else:
        if kind == "made":
            m.constant("seen", seen)
            m.constant("none", np.array(0, np.float32))
            m("Where", "seen none least", "mask")
        else:
            m.constant("mask", np.where(seen, 0, least).astype(np.float32))
        m("Add", "scores mask", "masked")
    m("Softmax", "masked", "weights", axis=-1)
    m("MatMul", "weights v", "y")
    for made in m.nodes:
        made.name = f"node {made.output[0]}"
    return m.model([1, STEPS, WIDTH], opset=17, ir=9)


SAMPLES = np.random.default_rng(1).standard_normal((40, 1, STEPS, WIDTH)).astype(np.float32)


def steps_off(model: onnx.ModelProto, samples: dict[str, Array] | None = None) -> Array:
    """The difference between int8 and onnxruntime, in steps of the output."""
    built = build(read_graph(model.SerializeToString(), "m"), Options("m", method="minmax"), samples)
    off = [inferred(built, x) - expected(model, {"x": x})[0].reshape(-1) for x in SAMPLES[:20]]
    return np.abs(np.stack(off)) / step_of(built)


def outside(model: onnx.ModelProto) -> list[str]:
    """The nodes that the advice excludes from quantization."""
    return [n.name for n in model.graph.node if n.op_type in ("Add", "Where", "Softmax")]


@pytest.mark.parametrize("kind", ["added", "where", "made"])
@pytest.mark.parametrize("least", [-np.inf, float(np.finfo(np.float32).min), -1e4])
@pytest.mark.parametrize("calibrated", [False, True])
def test_a_mask_outside_the_quantization_hides_as_in_onnxruntime(kind: str, least: float, calibrated: bool) -> None:
    network = attention(kind, least)
    model = quantized(network, SAMPLES, nodes_to_exclude=outside(network))
    off = steps_off(model, {"x": SAMPLES[:, 0]} if calibrated else None)
    assert off.max() < 4.01
    assert off.mean() < 0.5


@pytest.mark.parametrize("least", [-np.inf, float(np.finfo(np.float32).min), -1e4])
@pytest.mark.parametrize("scale", [0, 2, 5])
@pytest.mark.parametrize("chosen", ["c numbers least", "c least numbers", "c x mixed", "c mixed x"])
def test_what_a_computed_mask_does_not_hide_keeps_its_steps(chosen: str, scale: float, least: float) -> None:
    """The constants that the mask chooses among count like a tensor: the range follows from their numbers, not from the
    one that hides elements."""
    m = Maker()
    numbers = scale * np.linspace(-1, 1, WIDTH, dtype=np.float32)[None]
    m.constant("zero", np.array(0, np.float32))
    m.constant("least", np.array(least, np.float32))
    m.constant("numbers", numbers)
    m.constant("mixed", np.where(np.arange(WIDTH) % 2, numbers, np.float32(least)))
    m("Greater", "x zero", "c")
    m("Where", chosen, "masked")
    m("Softmax", "masked", "y", axis=-1)
    used = {name for node in m.nodes for name in node.input}
    m.constants = [c for c in m.constants if c.name in used]
    model = m.model([1, WIDTH], opset=17, ir=9)
    samples = np.random.default_rng(1).choice([-2.0, -1.0, 1.0, 2.0], (40, 1, WIDTH)).astype(np.float32)
    built = build(read_graph(model.SerializeToString(), "m"), Options("m", method="minmax"), {"x": samples[:, 0]})
    for x in samples[:20]:
        assert np.abs(inferred(built, x) - expected(model, {"x": x})[0].reshape(-1)).max() < 4.01 * step_of(built)


@pytest.mark.parametrize("form", [QuantFormat.QDQ, QuantFormat.QOperator])
@pytest.mark.parametrize("kind", [QuantType.QInt8, QuantType.QUInt8])
def test_a_finite_mask_inside_it_does_too(form: QuantFormat, kind: QuantType) -> None:
    model = quantized(
        attention("added", float(np.finfo(np.float32).min)), SAMPLES, quant_format=form, activation_type=kind
    )
    assert steps_off(model).max() < 4.01


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("form", [QuantFormat.QDQ, QuantFormat.QOperator])
def test_a_mask_that_the_quantizer_lost_is_refused_with_what_to_do(form: QuantFormat) -> None:
    network = attention("added", -np.inf)
    lost = quantized(network, SAMPLES, quant_format=form)
    with pytest.raises(ModelError, match=r"is infinite, .*\(nodes_to_exclude of onnxruntime's quantize_static\)"):
        read_graph(lost.SerializeToString(), "m")
    mended = quantized(network, SAMPLES, quant_format=form, nodes_to_exclude=outside(network))
    assert steps_off(mended).max() < 4.01


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("moved", [False, True])
def test_bytes_that_an_embedding_takes_are_dequantized_wherever_that_is(dtype: str, moved: bool) -> None:
    m, rng = Maker(), np.random.default_rng(0)
    limits = np.iinfo(dtype)
    m.constant("table", rng.integers(limits.min, limits.max + 1, (40, 6)).astype(dtype))
    m.constant("scale", np.array(0.02, np.float32))
    m.constant("zero", np.array(3, dtype))
    m("Gather", "table x", "taken", axis=0)
    if moved:
        m("Transpose", "taken", "turned", perm=[0, 2, 1])
    m("DequantizeLinear", f"{'turned' if moved else 'taken'} scale zero", "y")
    source = helper.make_tensor_value_info("x", TensorProto.INT64, [1, 9])
    target = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(m.nodes, "g", [source], [target], m.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    x = rng.integers(0, 40, (20, 1, 9))
    read = read_graph(model.SerializeToString(), "m")
    built = build(read, Options("m", method="minmax"), {"x": x[:, 0].astype(np.float32)})
    port = built.program.outputs[0]
    for one in x:
        wanted = expected(model, {"x": one})[0].reshape(-1)
        np.testing.assert_allclose(read.run({"x": one[0].astype(np.float32)})[port.name].reshape(-1), wanted, rtol=1e-6)
        y = built.graph.run({"x": one[0].astype(np.uint8)})[port.name]
        np.testing.assert_allclose(dequantize(y, port.scale, port.zero).reshape(-1), wanted, atol=1e-6)
