"""Fused operators in files from onnxruntime's optimizer become plain operators again, with onnxruntime's results."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from emberlet.codegen.generation import translate
from emberlet.codegen.passes import PASSES, run_passes
from emberlet.codegen.reader import read_model
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from support.onnx_models import assert_same, generated, parse

SLOW = settings(max_examples=25)
ACTIVATIONS: tuple[tuple[str, list[float]], ...] = (
    ("", []), ("Relu", []), ("Tanh", []), ("Sigmoid", []), ("LeakyRelu", [0.2]), ("Clip", [-0.5, 0.7]),
    ("HardSigmoid", [0.3, 0.4]), ("Relu", [0.5]),
)  # fmt: skip


def model_of(op: str, inputs: list[np.ndarray], constants: dict[int, np.ndarray], **attributes: Any) -> onnx.ModelProto:
    """One node of com.microsoft; sizes of its inputs are open."""
    names = [f"x{i}" for i in range(len(inputs) + len(constants))]
    drawn = [n for i, n in enumerate(names) if i not in constants]
    open_sizes = [[f"{n}_{i}" for i in range(x.ndim)] for n, x in zip(drawn, inputs, strict=True)]
    pairs = zip(drawn, open_sizes, strict=True)
    node = helper.make_node(op, names, ["y"], "part", domain="com.microsoft", **attributes)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in pairs],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(v, names[i]) for i, v in constants.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def check(model: onnx.ModelProto, inputs: list[np.ndarray]) -> list[str]:
    """The remaining operators, with and without the pass, after checking the results against onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    want = session.run(None, {i.name: x for i, x in zip(session.get_inputs(), inputs, strict=True)})
    assert_same(generated(model, inputs), want, atol=2e-5)
    assert_same(generated(model, inputs, passes=[p for p in PASSES if p != "unfused"]), want, atol=2e-5)
    nodes = run_passes(read_model(model).graph)[0].nodes
    assert not any(node.domain for node in nodes)
    return [node.op() for node in nodes]


@SLOW
@given(
    lead=st.lists(st.integers(1, 3), max_size=2),
    sizes=st.tuples(st.integers(1, 4), st.integers(2, 4), st.integers(1, 4)),
    turned=st.tuples(st.booleans(), st.booleans()),
    batch=st.tuples(st.booleans(), st.booleans()),
    alpha=st.sampled_from([1.0, 0.5, -0.3535534]),
    constant=st.booleans(),
)
def test_a_product_with_a_scale_and_permutations(
    lead: list[int],
    sizes: tuple[int, int, int],
    turned: tuple[bool, bool],
    batch: tuple[bool, bool],
    alpha: float,
    constant: bool,
) -> None:
    rows, inner, columns = sizes
    batch = batch if lead and not constant else (False, False)  # onnxruntime wants two operands of one rank
    random = np.random.default_rng(rows + inner)
    operands = []
    for i, (m, n) in enumerate(((rows, inner), (inner, columns))):
        core = (n, m) if turned[i] else (m, n)
        shape = (core[0], *lead, core[1]) if batch[i] else (*lead, *core)
        operands.append(random.standard_normal(shape).astype(np.float32))
    if constant:
        operands[1] = random.standard_normal((columns, inner) if turned[1] else (inner, columns)).astype(np.float32)
    attributes = {
        "alpha": alpha, "transA": int(turned[0]), "transB": int(turned[1]), "transBatchA": int(batch[0]),
        "transBatchB": int(batch[1]),
    }  # fmt: skip
    given = operands[:1] if constant else operands
    check(model_of("FusedMatMul", given, {1: operands[1]} if constant else {}, **attributes), given)


@pytest.mark.parametrize(("activation", "parameters"), ACTIVATIONS)
@pytest.mark.parametrize("added", [False, True])
def test_a_convolution_with_a_sum_and_an_activation(activation: str, parameters: list[float], added: bool) -> None:
    random = np.random.default_rng(0)
    x, w, b, z = (
        random.standard_normal(s).astype(np.float32) for s in ((2, 3, 5, 6), (4, 3, 3, 3), (4,), (2, 4, 5, 6))
    )
    given: dict[str, Any] = {"activation": activation} if activation else {}
    given.update({"activation_params": parameters} if parameters else {})
    inputs = [x, z] if added else [x]
    left = check(model_of("FusedConv", inputs, {1: w, 2: b}, pads=[1, 1, 1, 1], **given), inputs)
    assert left == ["Conv", *["Add"] * added, *[activation] * bool(activation)]


@pytest.mark.parametrize(("activation", "parameters"), ACTIVATIONS[1:])
@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_a_dense_layer_with_an_activation(activation: str, parameters: list[float], alpha: float) -> None:
    random = np.random.default_rng(1)
    x, w, b = (random.standard_normal(s).astype(np.float32) for s in ((3, 4), (5, 4), (5,)))
    given: dict[str, Any] = {"activation": activation, "transB": 1, "alpha": alpha}
    given.update(zip(("activation_alpha", "activation_beta"), parameters, strict=False))
    model = model_of("FusedGemm", [x], {1: w, 2: b}, **given)
    if activation == "Clip":  # onnxruntime fuses it with convolutions alone
        assert [n.op() for n in run_passes(read_model(model).graph)[0].nodes] == ["Gemm", "Clip"]
    else:
        assert check(model, [x]) == ["Gemm", activation]


@pytest.mark.parametrize(
    ("op", "bias", "left"),
    [
        ("BiasGelu", True, ["Add", "Gelu"]),
        ("FastGelu", True, ["Add", "Gelu"]),
        ("FastGelu", False, ["Gelu"]),
        ("Gelu", False, ["Gelu"]),
        ("QuickGelu", False, ["Swish"]),
    ],
)
def test_a_gelu_with_a_bias(op: str, bias: bool, left: list[str]) -> None:
    random = np.random.default_rng(2)
    x = random.standard_normal((2, 3, 4)).astype(np.float32)
    constants = {1: random.standard_normal(4).astype(np.float32)} if bias else {}
    given = {"alpha": 1.3} if op == "QuickGelu" else {}
    assert check(model_of(op, [x], constants, **given), [x]) == left


def test_an_activation_without_an_operator_stays_fused() -> None:
    x, w = np.ones((1, 1, 3, 3), np.float32), np.ones((1, 1, 2, 2), np.float32)
    model = model_of("FusedConv", [x], {1: w}, activation="Softsign")
    assert [n.op() for n in run_passes(read_model(model).graph)[0].nodes] == ["FusedConv"]


def test_the_operand_of_unknown_rank_stays_fused() -> None:
    x, w = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    model = model_of("FusedMatMul", [x, w], {}, transA=1)
    for i in model.graph.input:
        i.type.tensor_type.ClearField("shape")
    assert [n.op() for n in run_passes(read_model(model).graph)[0].nodes] == ["FusedMatMul"]


def test_the_parts_of_a_shape_are_sizes() -> None:
    """onnxruntime merges nodes that read the sizes of a shape one by one."""
    model = parse(
        """g (float[batch, length, 6] x) => (float[A, B, C] y) {
            h = Shape(x)  b, n, w = Split<axis = 0>(h)  s = Concat<axis = 0>(b, w, n)  y = Reshape(x, s)
        }""",
        opset=17,
    )
    x = np.arange(36, dtype=np.float32).reshape(2, 3, 6)
    assert_same(generated(model, (x,)), generated(model, (x,), passes=[]), atol=0)
    assert "return x.reshape((x.shape[0], 6, x.shape[1]))" in translate(model, "net")[1].source
