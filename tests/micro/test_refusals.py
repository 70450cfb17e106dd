"""Models that a build refuses with a clear message; a failed build leaves the folder unchanged."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from emberlet.errors import EmberletError, UnsupportedError
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.kernels.dot import Dot
from emberlet.micro.builder.kernels.window import Window
from emberlet.micro.builder.quantization.reference import LIMIT, Requant
from emberlet.micro.builder.written import write
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from support.microcontrollers.onnx_models import Maker

NOT_FINITE = [np.nan, np.inf, -np.inf]
SHAPES: dict[str, dict[str, tuple[int, ...]]] = {
    "Gemm": {"x": (1, 6), "w": (6, 4), "b": (4,)},
    "MatMul": {"x": (1, 6), "w": (6, 4)},
    "Conv": {"x": (1, 2, 5, 5), "w": (4, 2, 3, 3), "b": (4,)},
    "ConvTranspose": {"x": (1, 2, 5, 5), "w": (2, 4, 3, 3), "b": (4,)},
    "BatchNormalization": {"x": (1, 3, 4, 4), "gamma": (3,), "beta": (3,), "mean": (3,), "variance": (3,)},
    "Add": {"x": (1, 6), "w": (6,)},
    "Mul": {"x": (1, 6), "w": (6,)},
    "PRelu": {"x": (1, 6), "slope": (1,)},
    "LSTM": {"x": (3, 1, 4), "w": (1, 8, 4), "r": (1, 8, 2), "b": (1, 16)},
}


def _model(op: str, broken: str | None = None, value: float = 0.0, at: int = 0) -> bytes:
    shapes = dict(SHAPES[op])
    x = shapes.pop("x")
    random = np.random.default_rng(1)
    constants = {name: np.abs(random.normal(size=shape)).astype(np.float32) + 0.1 for name, shape in shapes.items()}
    if broken is not None:
        constants[broken].reshape(-1)[at % constants[broken].size] = value
    attributes: dict[str, Any] = {"hidden_size": 2} if op == "LSTM" else {}
    node = helper.make_node(op, list(SHAPES[op]), ["y"], name="layer", **attributes)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return bytes(model.SerializeToString())


@pytest.mark.parametrize("op", SHAPES)
@settings(max_examples=8)
@given(data=st.data())
def test_a_weight_that_is_not_finite_is_refused_by_its_name(op: str, data: st.DataObject) -> None:
    build(read_graph(_model(op), "m"), Options("m"))  # sound without it
    name = data.draw(st.sampled_from([name for name in SHAPES[op] if name != "x"]))
    # Minus infinity that is added is a mask (test_operators.py).
    wrong = [v for v in NOT_FINITE if op != "Add" or v != -np.inf]
    value, at = data.draw(st.sampled_from(wrong)), data.draw(st.integers(0, 100))
    with pytest.raises(EmberletError, match=f"tensor '{name}'.*NaN or beyond float32"):
        read_graph(_model(op, name, value, at), "m")


@pytest.mark.parametrize("op", ["Gemm", "Conv", "Add", "Mul"])
@settings(max_examples=10)
@given(data=st.data())
def test_huge_numbers_build_or_are_refused(op: str, data: st.DataObject) -> None:
    huge = st.sampled_from([1e20, 1e30, 1e38, 3e38, -3e38])
    name = data.draw(st.sampled_from(list(SHAPES[op])))
    value, at = data.draw(huge), data.draw(st.integers(0, 100))
    samples = np.random.default_rng(2).normal(size=(6, *SHAPES[op]["x"][1:])).astype(np.float32)
    if name == "x":
        samples.reshape(-1)[at % samples.size] = value
    graph = read_graph(_model(op, None if name == "x" else name, value, at), "m")
    try:
        built = build(graph, Options("m"), {"x": samples})
    except EmberletError as error:
        assert "NaN or infinite" in str(error) or "sum may reach" in str(error) or "finer" in str(error)
    else:
        assert built.agreement is not None
        assert np.isfinite(built.agreement.rms)


def _dense(k: int, zero: int, bias: int, weight: int) -> Dot:
    weights = np.full((1, 1, 1, k), weight, np.uint8)
    return Dot("dense", ("x",), "y", (k,), Window((1, 1)), 1, weights, np.array([bias]), zero, Requant((1,), 20, 0, 0))


def test_the_widest_dense_layer_is_the_widest_whose_sums_fit() -> None:
    # Kernels subtract 128 * 255 * K for any weights, which exceeds 2**30 from 32,897 inputs on.
    _dense(32_896, 0, 0, 128).constants()
    with pytest.raises(UnsupportedError, match="reach 1073758080"):
        _dense(32_897, 0, 0, 128).constants()
    with pytest.raises(UnsupportedError, match="a sum may reach"):
        _dense(32_897, 255, 5_000_000, 1).constants()  # a start above zero does not help


@given(st.integers(32_000, 34_000), st.integers(0, 255), st.integers(-(1 << 26), 1 << 26), st.integers(1, 255))
@settings(max_examples=200)
def test_no_step_of_a_dense_layer_that_builds_reaches_the_limit(k: int, zero: int, bias: int, weight: int) -> None:
    layer = _dense(k, zero, bias, weight)
    try:
        words = layer.constants()[1]
    except UnsupportedError:
        return
    lift, start = words[0], words[2]
    for x in (0, 255):
        total = x * k
        steps = [total << 7, -(total << 7) - lift, start - (total << 7) - lift]
        assert all(abs(step) < LIMIT for step in steps), (x, steps)


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_full_disk_leaves_the_earlier_model(after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = Options("m")
    write(build(read_graph(_model("Gemm"), "m"), options), options, tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    other = Options("other")
    built = build(read_graph(_model("Conv"), "other"), other)
    _fill_disk(monkeypatch, after)
    with pytest.raises(OSError, match="No space left"):
        write(built, other, tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert sorted(p for p in tmp_path.rglob("*") if p.is_dir()) == sorted({p.parent for p in before} - {tmp_path})


def _fill_disk(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Let the disk be full once that many files are written."""
    count, real = 0, os.fsync

    def fsync(descriptor: int) -> None:
        nonlocal count
        count += 1
        if count > after:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)


def test_a_tensor_that_overflows_on_a_sample_is_named() -> None:
    graph = read_graph(_model("Gemm", "w", 3e38), "m")
    samples = np.full((3, 6), 2.0, np.float32)
    with pytest.raises(UnsupportedError, match=r"'y'.*NaN.*float32.*sample 0"):
        build(graph, Options("m"), {"x": samples})


# -- the remedies that messages name ----------------------------------------------------------------------------------


def test_a_layer_with_too_many_inputs_is_built_with_float() -> None:
    m = Maker()
    m.constant("w", np.full((33_000, 1), 0.01))
    m("MatMul", "x w", "y")
    graph = read_graph(m.model([1, 33_000]).SerializeToString(), "m")
    samples = {"x": np.random.default_rng(0).standard_normal((2, 33_000)).astype(np.float32)}
    with pytest.raises(UnsupportedError, match="--float"):
        build(graph, Options("m"), samples)
    assert build(graph, Options("m", floats=True), samples).program.is_float


def test_a_last_cell_state_can_be_remembered() -> None:
    m = Maker()
    m.weight("W", 1, 24, 3)
    m.weight("R", 1, 24, 6)
    m("LSTM", "x W R", "y h c", hidden_size=6)
    with pytest.raises(EmberletError, match="the layer can keep it if it is an input too"):
        read_graph(m.model([1, 1, 3], "y h c").SerializeToString(), "m")
    m.nodes[0].input.extend(["", "", "h0", "c0"])
    model = m.model([1, 1, 3], "y h c")
    model.graph.input.extend(helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 1, 6]) for n in ("h0", "c0"))
    assert [x.remembers for x in read_graph(model.SerializeToString(), "m").layers if x.state] == [True]


def test_a_model_quantized_in_part_is_built_with_samples_or_float() -> None:
    m = Maker()
    m.constant("s", np.float32(0.05))
    m.constant("z", 3, "int8")
    m("AveragePool", "x", "a", kernel_shape=[2, 2])
    m("QuantizeLinear", "a s z", "q")
    m("DequantizeLinear", "q s z", "y")
    graph = read_graph(m.model([1, 2, 6, 6]).SerializeToString(), "m")
    with pytest.raises(UnsupportedError, match=r"no scale for x; calibrate those with samples .* \(--float\)"):
        build(graph, Options("m"))
    samples = {"x": np.random.default_rng(0).standard_normal((4, 2, 6, 6)).astype(np.float32)}
    assert not build(graph, Options("m"), samples).program.is_float
    assert build(graph, Options("m", floats=True)).program.is_float


# -- what bytes cannot do, and what is not done at all ----------------------------------------------------------------


def _one_node(
    op: str, shape: list[int], constants: dict[str, Any], dtype: int = TensorProto.FLOAT, **how: Any
) -> bytes:
    """A model of one node that reads x and constants; "" stands for an absent input."""
    given = [numpy_helper.from_array(np.asarray(c), n) for n, c in constants.items() if c is not None]
    names = [n if c is not None else "" for n, c in constants.items()]
    if how.pop("x_last", False):
        names = [*names, "x"]
    else:
        names = ["x", *names]
    outputs = how.pop("outputs", ["y"])
    node = helper.make_node(op, names, outputs, name="layer", **how)
    x = helper.make_tensor_value_info("x", dtype, shape)
    graph = helper.make_graph([node], "g", [x], [onnx.ValueInfoProto(name=n) for n in outputs], given)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return bytes(onnx.shape_inference.infer_shapes(model).SerializeToString())


def _floats(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(5).uniform(-1, 1, shape).astype(np.float32)


def _changed_index(op: str) -> bytes:
    """An index into 300 elements that is used in a computation."""
    m = Maker()
    if op == "ArgMax":
        m(op, "x", "i", axis=1)
        m("Cast", "i", "f", to=TensorProto.FLOAT)
        m("Mul", "f f", "y")
        return bytes(m.model([1, 300]).SerializeToString())
    m.constant("table", _floats(300, 3))
    m.constant("last", np.array([299]))
    m("Sub", "last x", "turned")
    m(op, "table turned", "y")
    model = m.model([1, 4])
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    return bytes(model.SerializeToString())


FOR_FLOAT = {
    "y: the index of one of 300": _changed_index("Gather"),
    "an index of one of 400": _one_node(
        "OneHot", [1, 4], {"depth": np.int64(400), "values": np.array([0, 1], np.float32)}, TensorProto.INT64
    ),
    "i: the index of one of 300": _changed_index("ArgMax"),
    "the index of one of 66000": _one_node("TopK", [1, 66000], {"k": np.array([2])}, outputs=["v", "y"]),
    "a product of all elements": _one_node("ReduceProd", [1, 6], {"axes": np.array([1])}),
    "a power of a tensor that may be negative": _one_node("Pow", [1, 3], {"e": np.array([1, 2, 3], np.float32)}),
    "a sum of 40000 elements": _one_node("ReduceL2", [1, 40000], {"axes": np.array([1])}),
}


@pytest.mark.parametrize("reason", FOR_FLOAT)
def test_what_bytes_cannot_do_is_built_with_float(reason: str) -> None:
    data = FOR_FLOAT[reason]
    graph = read_graph(data, "m")
    rng = np.random.default_rng(0)
    shape = graph.shapes["x"]
    whole = "x" in graph.whole
    x = rng.integers(0, 250, (6, *shape)) if whole else rng.uniform(-1, 1, (6, *shape)).astype(np.float32)
    with pytest.raises(UnsupportedError, match=f"{reason}.*--float"):
        build(graph, Options("m"), {"x": x})
    result = build(graph, Options("m", floats=True), {"x": x})
    assert result.program.is_float
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    for row in x:
        found = result.graph.run({"x": row})[result.graph.outputs[-1]]
        wanted = session.run(None, {"x": row[None]})[-1]
        np.testing.assert_allclose(found.reshape(-1), np.asarray(wanted).reshape(-1), rtol=1e-4, atol=1e-5)


def test_a_power_of_a_tensor_behind_relu_has_bytes() -> None:
    m = Maker()
    m("Relu", "x", "positive")
    m.constant("e", np.array([1, 2, 3], np.float32))
    m("Pow", "positive e", "y")
    graph = read_graph(m.model([1, 3]).SerializeToString(), "m")
    samples = {"x": np.random.default_rng(0).uniform(-1, 1, (20, 3)).astype(np.float32)}
    assert not build(graph, Options("m"), samples).program.is_float


SIZES = {"roi": None, "scales": None, "sizes": np.array([1, 2, 6, 6])}
OTHERWISE = {
    r"mode cubic is not supported; export the model with mode 'linear' or 'nearest'": (
        ("Resize", [1, 2, 4, 4], SIZES, {"mode": "cubic"}),
        ("Resize", [1, 2, 4, 4], SIZES, {"mode": "linear"}),
    ),
    r"antialias is not supported; export the model with antialias=0": (
        ("Resize", [1, 2, 9, 9], SIZES, {"mode": "linear", "antialias": 1}),
        ("Resize", [1, 2, 9, 9], SIZES, {"mode": "linear", "antialias": 0}),
    ),
    r"resizing 3 axes is not supported; resize one or two": (
        ("Resize", [1, 2, 4, 4], SIZES | {"sizes": np.array([1, 3, 6, 6])}, {"mode": "linear"}),
        ("Resize", [1, 2, 4, 4], SIZES, {"mode": "linear"}),
    ),
    r"p is 3; 1 and 2 are supported": (
        ("LpNormalization", [1, 4], {}, {"p": 3}),
        ("LpNormalization", [1, 4], {}, {"p": 2}),
    ),
}


@pytest.mark.parametrize("reason", OTHERWISE)
def test_refusals_name_another_way(reason: str) -> None:
    (op, shape, constants, how), (other, shape_2, constants_2, how_2) = OTHERWISE[reason]
    with pytest.raises(EmberletError, match=reason):
        read_graph(_one_node(op, shape, constants, **how), "m")
    assert read_graph(_one_node(other, shape_2, constants_2, **how_2), "m").layers


def test_an_axis_that_an_input_decides_can_be_fixed() -> None:
    node = helper.make_node("CumSum", ["x", "axis"], ["y"], name="layer")
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 6]) for n in "xy")
    axis = helper.make_tensor_value_info("axis", TensorProto.INT64, [])
    graph = helper.make_graph([node], "g", [x, axis], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    with pytest.raises(EmberletError, match="export the model with a fixed axis"):
        read_graph(model.SerializeToString(), "m")
    assert read_graph(_one_node("CumSum", [1, 6], {"axis": np.array(1)}), "m").layers


def test_a_quotient_of_whole_numbers_is_whole_in_float32_and_otherwise_taken_as_floats() -> None:
    def model(by_way_of_floats: bool) -> bytes:
        m = Maker()
        m.constant("two", np.float32(2) if by_way_of_floats else np.int64(2))
        m("ArgMax", "x", "i", axis=1, keepdims=0)
        m("Cast", "i", "f", to=TensorProto.FLOAT if by_way_of_floats else TensorProto.INT64)
        m("Div", "f two", "q")
        m("Cast", "q", "h", to=TensorProto.INT64)
        m("Cast", "h", "y", to=TensorProto.FLOAT)
        return bytes(m.model([1, 9]).SerializeToString())

    x = np.random.default_rng(1).uniform(-1, 1, (12, 9)).astype(np.float32)
    graph = read_graph(model(False), "m")
    for row in x:
        assert graph.run({"x": row})[graph.outputs[0]].item() == row.argmax() // 2
    with pytest.raises(EmberletError, match=r"int8.*--float"):
        build(graph, Options("m"), {"x": x})
    assert build(graph, Options("m", floats=True), {"x": x}).program.is_float
    graph = read_graph(model(True), "m")
    quantized = build(graph, Options("m"), {"x": x}).graph
    for row in x:
        assert graph.run({"x": row})[graph.outputs[0]].item() == row.argmax() // 2
    assert quantized.grids[quantized.outputs[0]].scale == 1


@pytest.mark.parametrize("computed", ["s", "e", "step"])
def test_a_slice_whose_bounds_the_model_computes_is_refused(computed: str) -> None:
    m = Maker()
    for name, number in (("s", 0), ("e", 3), ("a", 1), ("step", 1)):
        m.constant(name, np.array([number]))
    m("ReduceSum", "x", "sum", keepdims=0)
    m.constant("one", np.array([1]))
    m("Reshape", "sum one", "flat")
    m("Cast", "flat", "number", to=TensorProto.INT64)
    m("Slice", "x " + " ".join("number" if n == computed else n for n in ("s", "e", "a", "step")), "y")
    with pytest.raises(EmberletError, match="Slice") as raised:
        read_graph(m.model([1, 6]).SerializeToString(), "m")
    assert raised.value.__cause__ is None
    assert "constant" in str(raised.value)


@pytest.mark.parametrize("at", range(6))
def test_negative_padding_is_refused(at: int) -> None:
    pads = np.zeros(6, np.int64)
    pads[at] = -1
    with pytest.raises(EmberletError, match="negative padding is not supported"):
        read_graph(_one_node("Pad", [2, 3, 4], {"pads": pads}), "m")


def test_a_full_disk_leaves_no_folder_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = Options("m")
    built = build(read_graph(_model("Gemm"), "m"), options)
    _fill_disk(monkeypatch, 0)
    with pytest.raises(OSError, match="No space left"):
        write(built, options, tmp_path / "new")
    assert not list(tmp_path.iterdir())
