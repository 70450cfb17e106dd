"""MatMulNBits and constants that are dequantized before a product, a convolution or a look-up become layers with packed
weights: the results are onnxruntime's, and the burnpack holds the integers in as many bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import onnx
import onnxruntime
import pytest
from emberlet import codegen, store
from emberlet.errors import EmberletError
from onnx import TensorProto, helper, numpy_helper
from support.rows import every

RNG = np.random.default_rng(11)
ROWS, COLUMNS = 64, 6
Initializers = list[Any]


def model(nodes: list[Any], held: Initializers, rows: int, opset: int = 21) -> Any:
    value = helper.make_tensor_value_info
    x, y = value("x", TensorProto.FLOAT, ["n", rows]), value("y", TensorProto.FLOAT, ["n", COLUMNS])
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(
        helper.make_graph(nodes, "g", [x], [y], held), opset_imports=opsets, ir_version=10 if opset < 25 else 13
    )


def array(name: str, x: Any) -> Any:
    return numpy_helper.from_array(np.ascontiguousarray(x), name)


def narrow(name: str, x: Any, kind: int) -> Any:
    return helper.make_tensor(name, kind, x.shape, x.reshape(-1).tolist())


def nbits(bits: int, block: int, zero: str, bias: bool, rows: int = ROWS) -> Any:
    blocks = -(-rows // block)
    held = [
        array("fc.weight_Q4", RNG.integers(0, 256, (COLUMNS, blocks, block * bits // 8), np.uint8)),
        array("s", RNG.random((COLUMNS * blocks,), np.float32) * 0.1),
    ]
    inputs = ["x", "fc.weight_Q4", "s", "", "", ""]
    if zero == "packed":
        held.append(array("z", RNG.integers(0, 256, (COLUMNS, -(-blocks * bits // 8)), np.uint8)))
    elif zero == "float":
        held.append(array("z", RNG.random((COLUMNS * blocks,), np.float32) * 9))
    if zero:
        inputs[3] = "z"
    if bias:
        held.append(array("b", RNG.normal(size=COLUMNS).astype(np.float32)))
        inputs[5] = "b"
    while not inputs[-1]:
        inputs.pop()
    node = helper.make_node(
        "MatMulNBits", inputs, ["y"], domain="com.microsoft", K=rows, N=COLUMNS, bits=bits, block_size=block
    )
    return model([node], held, rows)


def dequantized(kind: str, level: int | str, zero: bool, product: str, rows: int = ROWS) -> Any:
    """level: "tensor", "channel" or a number of weights along the rows."""
    signed, bits = not kind.startswith("UINT"), int(kind.lstrip("UINT"))
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    turned = product in ("Gemm turned", "Transpose")
    rows_axis = 1 if turned else 0
    shape = (COLUMNS, rows) if turned else (rows, COLUMNS)
    grid: tuple[int, ...] = () if level == "tensor" else (COLUMNS,)
    if isinstance(level, int):
        grid = tuple(-(-rows // level) if i == rows_axis else COLUMNS for i in (0, 1))
    held = [narrow("fc.weight_quantized", RNG.integers(low, high + 1, shape), TensorProto.DataType.Value(kind)),
            array("s", np.asarray(RNG.random(grid) * 0.1 + 0.01, np.float32))]  # fmt: skip
    names = ["fc.weight_quantized", "s"]
    if zero:
        held.append(narrow("z", np.asarray(RNG.integers(low, high + 1, grid)), TensorProto.DataType.Value(kind)))
        names.append("z")
    more = {"block_size": level, "axis": rows_axis} if isinstance(level, int) else {"axis": 1 - rows_axis}
    nodes = [helper.make_node("DequantizeLinear", names, ["w"], **more)]
    if product == "Transpose":
        nodes.append(helper.make_node("Transpose", ["w"], ["wt"], perm=[1, 0]))
        nodes.append(helper.make_node("MatMul", ["x", "wt"], ["y"]))
    elif product == "MatMul":
        nodes.append(helper.make_node("MatMul", ["x", "w"], ["y"]))
    else:
        held.append(array("b", RNG.normal(size=COLUMNS).astype(np.float32)))
        nodes.append(helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=int(turned)))
    return model(nodes, held, rows, 25 if bits == 2 else 21)


def span(kind: str) -> tuple[int, int]:
    """(the lowest, the highest + 1) integer of a dtype."""
    bits = int(kind.lstrip("UINT"))
    return (0, 1 << bits) if kind.startswith("U") else (-(1 << (bits - 1)), 1 << (bits - 1))


def grid(kind: str, channels: int | None, zero: bool) -> Initializers:
    """A scale, and a zero point if there is one, or as many as channels."""
    shape = () if channels is None else (channels,)
    held = [array("s", np.asarray(RNG.random(shape) * 0.1 + 0.01, np.float32))]
    if zero:
        held.append(narrow("z", np.asarray(RNG.integers(*span(kind), shape)), TensorProto.DataType.Value(kind)))
    return held


def quantized(name: str) -> list[Any]:
    """Nodes that round `name` to 8 bits, as `name`_q."""
    return [helper.make_node("QuantizeLinear", [name, "grid", "point"], [name + "_u8"]),
            helper.make_node("DequantizeLinear", [name + "_u8", "grid", "point"], [name + "_q"])]  # fmt: skip


def of_layer(nodes: list[Any], held: Initializers, given: Any, rank: int, opset: int = 21) -> Any:
    kind = TensorProto.FLOAT if given.dtype == np.float32 else TensorProto.INT64
    shape = ["n", *given.shape[1:]]
    x, y = helper.make_tensor_value_info("x", kind, shape), helper.make_tensor_value_info("y", 1, [None] * rank)
    return helper.make_model(
        helper.make_graph(nodes, "g", [x], [y], held), opset_imports=[helper.make_opsetid("", opset)],
        ir_version=10 if opset < 25 else 13,
    )  # fmt: skip


def theirs(path: Path, x: Any) -> Any:
    """onnxruntime's result; optimized, it would round x to 8 bits."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


def same(made: Any, x: Any, bits: int, layer: str, tmp_path: Path, atol: float = 1e-3) -> None:
    path = tmp_path / "m.onnx"
    onnx.checker.check_model(made)
    onnx.save(made, path)
    want = theirs(path, x)
    codegen.generate(path, tmp_path, name="m", force=True)
    text = "".join((tmp_path / "m.py").read_text("utf-8").split())
    assert f"self.layer=nn.Quantized{layer}" in text and "dequantize_linear(self" not in text
    values = store.open(tmp_path / "m.bpk")["layer.weight.values"]
    assert values.nbytes == values.shape[0] * -(-int(np.prod(made_shape(made)[1:])) * bits // 8)
    loaded = codegen.load(path, "numpy")
    runs = [(loaded, "numpy"), (loaded.compile(backend="numpy"), "numpy"), (loaded.fork("python"), "python")]
    for run, backend in runs:
        got = np.asarray(run(emberlet.asarray(x, backend=backend)))
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=atol * max(1.0, np.abs(want).max()))
    # The file is also a store: its integers are those of the layer.
    again = codegen.load(path, "numpy")
    lost = again.load_from(store.open(path), partial=True).quantized
    assert max(lost.values(), default=0.0) == 0.0


def made_shape(made: Any) -> tuple[int, ...]:
    return tuple(next(t.dims for t in made.graph.initializer if t.name == "layer.weight_quantized"))


def check(made: Any, bits: int, block: int | None, rows: int, tmp_path: Path) -> None:
    """block: None if a column is one."""
    path = tmp_path / "m.onnx"
    onnx.save(made, path)
    x = RNG.standard_normal((3, rows)).astype(np.float32)
    want = theirs(path, x)
    codegen.generate(path, tmp_path, name="m", force=True)
    text = (tmp_path / "m.py").read_text("utf-8")
    assert f"self.fc=nn.QuantizedLinear({rows},6" in "".join(text.split())
    assert text.count("self.fc(x)") == 1
    held = store.open(tmp_path / "m.bpk")
    short = -(-rows * bits // 8)  # the bytes of a column that is one block
    nbytes = short if block is None or block >= rows else -(-rows // block) * block * bits // 8
    assert held["fc.weight.values"].nbytes == COLUMNS * nbytes
    loaded = codegen.load(path, "numpy")
    for run in (loaded, loaded.compile(backend="numpy")):
        got = np.asarray(run(emberlet.asarray(x, backend="numpy")))
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3 * max(1.0, np.abs(want).max()))


NBITS = [(bits, block, zero, bias, rows) for rows in (64, 70, 5) for bits in (2, 4, 8) for block in (16, 32, 128)
         for zero in ("", "packed", "float") for bias in (False, True)
         if not (bits == 8 and zero == "float")]  # fmt: skip
KINDS = [(kind, level, zero, product, rows) for rows in (64, 70, 5)
         for kind in ("INT8", "UINT8", "INT4", "UINT4", "INT2", "UINT2")
         for level in ("tensor", "channel", 16, 32) for zero in (False, True)
         for product in ("MatMul", "Gemm", "Gemm turned", "Transpose")]  # fmt: skip


@every("case", NBITS, share=3)
def test_a_product_with_packed_weights_is_a_layer(case: Any, tmp_path: Path) -> None:
    check(nbits(*case), case[0], case[1], case[4], tmp_path)


@every("case", KINDS, share=4)
def test_a_product_with_a_dequantized_constant_is_a_layer(case: Any, tmp_path: Path) -> None:
    block = case[1] if isinstance(case[1], int) else None
    check(dequantized(*case), int(case[0].lstrip("UINT")), block, case[4], tmp_path)


CONVOLUTIONS = [(kind, level, zero, axes, groups, rounded)
                for kind in ("INT8", "UINT8", "INT4", "UINT4", "INT2") for level in ("tensor", "channel")
                for zero in (False, True) for axes in (1, 2, 3) for groups in (1, 2) for rounded in (False, True)
                if axes == 2 or kind == "INT8"]  # fmt: skip


@every("case", CONVOLUTIONS)
def test_a_convolution_with_a_dequantized_constant_is_a_layer(case: Any, tmp_path: Path) -> None:
    """Also where its input and result are rounded to 8 bits."""
    kind, level, zero, axes, groups, rounded = case
    x = RNG.standard_normal((2, 4, *[6, 5, 4][:axes])).astype(np.float32)
    weight = RNG.integers(*span(kind), (6, 4 // groups, *[3] * axes))
    parts = grid(kind, None if level == "tensor" else 6, zero)
    held = [narrow("layer.weight_quantized", weight, TensorProto.DataType.Value(kind)), *parts,
            array("b", RNG.normal(size=6).astype(np.float32))]  # fmt: skip
    names = ["layer.weight_quantized", *[t.name for t in parts]]
    nodes = [helper.make_node("DequantizeLinear", names, ["w"], axis=0)]
    if rounded:
        held += [array("grid", np.float32(0.03)), array("point", np.uint8(120))]
        nodes += quantized("x")
    nodes.append(helper.make_node("Conv", ["x_q" if rounded else "x", "w", "b"], ["r" if rounded else "y"],
                                  pads=[1] * 2 * axes, strides=[2] * axes, group=groups))  # fmt: skip
    if rounded:
        nodes += quantized("r")
        nodes[-1].output[0] = "y"
    bits = int(kind.lstrip("UINT"))
    made = of_layer(nodes, held, x, axes + 2, 25 if bits == 2 else 21)
    same(made, x, bits, f"Conv{axes}d", tmp_path, 0.03 * 1.01 if rounded else 1e-3)  # a tie may round to either


EMBEDDINGS = [(kind, level, zero, after) for kind in ("INT8", "UINT8", "INT4", "UINT4", "INT2")
              for level in ("tensor", "channel") for zero in (False, True) for after in (False, True)
              if not after or (level == "tensor" and kind.endswith("INT8"))]  # fmt: skip


@every("case", EMBEDDINGS)
def test_rows_of_a_dequantized_constant_are_a_layer(case: Any, tmp_path: Path) -> None:
    """Dequantized before or, where there is one scale, after they are looked up."""
    kind, level, zero, after = case
    bits = int(kind.lstrip("UINT"))
    x = RNG.integers(0, 7, (2, 3))
    parts = grid(kind, None if level == "tensor" else 7, zero)
    held = [narrow("layer.weight_quantized", RNG.integers(*span(kind), (7, 10)), TensorProto.DataType.Value(kind)),
            *parts]  # fmt: skip
    names = [t.name for t in parts]
    nodes = [helper.make_node("DequantizeLinear", ["layer.weight_quantized", *names], ["w"], axis=0),
             helper.make_node("Gather", ["w", "x"], ["y"])]  # fmt: skip
    if after:
        nodes = [helper.make_node("Gather", ["layer.weight_quantized", "x"], ["q"]),
                 helper.make_node("DequantizeLinear", ["q", *names], ["y"])]  # fmt: skip
    same(of_layer(nodes, held, x, 3, 25 if bits == 2 else 21), x, bits, "Embedding", tmp_path)


OPERATORS = [(kind, level, zero, bias, what) for kind in ("INT8", "UINT8") for level in ("tensor", "channel")
             for zero in (False, True) for bias in (False, True)
             for what in ("Conv1", "Conv2", "Conv3", "MatMul", "Gemm", "Gemm turned")
             if not (what == "MatMul" and (bias or level == "channel"))
             and not (what[:4] == "Gemm" and level == "tensor")  # onnxruntime refuses it
             and (not zero or kind == "UINT8")]  # fmt: skip


def operator(case: Any, signed: bool) -> Any:
    """A model of one operator on integers, signed or not, and an array for it."""
    kind, level, zero, bias, what = case
    given = "INT8" if signed else "UINT8"
    axes = int(what[-1]) if what[:4] == "Conv" else 0
    shape, weight = ((2, 4, *[6, 5, 4][:axes]), (6, 2, *[3] * axes)) if axes else ((3, 10), (10, 6))
    if what == "Gemm turned":
        weight = weight[::-1]
    n = None if level == "tensor" else 6
    weights = narrow("layer.weight_quantized", RNG.integers(*span(kind), weight), TensorProto.DataType.Value(kind))
    s, *z = grid(kind, n, zero)
    z = z or [narrow("z", np.zeros([] if n is None else [n], np.int64), TensorProto.DataType.Value(kind))]
    point = TensorProto.DataType.Value(given)
    held = [weights, s, *z, array("xs", np.float32(0.02)), array("ys", np.float32(0.7)),
            narrow("xz", np.asarray(3), point), narrow("yz", np.asarray(-5 if signed else 120), point)]  # fmt: skip
    inputs = ["x", "xs", "xz", "layer.weight_quantized", "s", "z"]
    results, more, domain = ["ys", "yz"], {}, ""
    sums = ["b"] if bias else []
    if bias:
        held.append(array("b", RNG.integers(-9000, 9000, 6, np.int32)))
    if axes:
        more, names = {"pads": [1] * 2 * axes, "group": 2}, [*inputs, *results, *sums]
    elif what == "MatMul":
        names = [*inputs, *results]
    else:
        domain, names, more = "com.microsoft", [*inputs, *(sums or [""]), *results], {"transB": int("turned" in what)}
    kind_of = "Conv" if axes else what.partition(" ")[0]
    node = helper.make_node("QGemm" if domain else "QLinear" + kind_of, names, ["y"], domain=domain, **more)
    x = RNG.integers(*span(given), shape).astype(np.int8 if signed else np.uint8)
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node], "g", [info("x", point, ["n", *shape[1:]])], [info("y", point, [None] * len(shape))], held
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), x


@every("case", OPERATORS)
def test_an_operator_on_integers_is_a_layer_that_multiplies_integers(case: Any, tmp_path: Path) -> None:
    """The results are onnxruntime's, but for ties, and the same on every backend."""
    for signed in (False, True):
        if signed and case[0] == "UINT8":  # onnxruntime has none
            continue
        made, x = operator(case, signed)
        path = tmp_path / "m.onnx"
        onnx.save(made, path)
        want = theirs(path, x)
        codegen.generate(path, tmp_path, name="m", force=True)
        text = "".join((tmp_path / "m.py").read_text("utf-8").split())
        assert "self.layer=nn.Quantized" in text and "input=(0.02,3)" in text
        weight = store.open(tmp_path / "m.bpk")["layer.weight.values"]
        assert weight.dtype.name == "uint8" and weight.size == np.prod(made_shape(made))
        loaded = codegen.load(path, "numpy")
        first = np.asarray(loaded(emberlet.asarray(x, backend="numpy")))
        assert first.dtype == want.dtype
        assert np.abs(first.astype(int) - want).max() <= 1 and (first != want).mean() < 0.05
        for run, backend in ((loaded.compile(backend="numpy"), "numpy"), (loaded.fork("python"), "python")):
            np.testing.assert_array_equal(np.asarray(run(emberlet.asarray(x, backend=backend))), first)
        again = codegen.load(path, "numpy")  # its own weights, from a burnpack, and as floats of the same model
        record = {name: p.val() for name, p in loaded.named_params()}
        again.load_record(record)
        np.testing.assert_array_equal(np.asarray(again(emberlet.asarray(x, backend="numpy"))), first)


def no_layer(made: Any, tmp_path: Path) -> None:
    onnx.save(made, tmp_path / "m.onnx")
    codegen.generate(tmp_path / "m.onnx", tmp_path, name="m")
    assert "QuantizedLinear" not in (tmp_path / "m.py").read_text("utf-8")
    assert all(s.real is None for s in store.open(tmp_path / "m.onnx").values())


def test_sums_that_floats_do_not_hold_stay_an_operator(tmp_path: Path) -> None:
    made, _ = operator(("INT8", "channel", False, True, "Conv2"), False)
    bias = next(t for t in made.graph.initializer if t.name == "b")
    bias.CopyFrom(array("b", np.array([1 << 22, 0, 0, 0, 0, 0], np.int32)))
    onnx.save(made, tmp_path / "m.onnx")
    codegen.generate(tmp_path / "m.onnx", tmp_path, name="m")
    assert "qlinear_conv" in (tmp_path / "m.py").read_text("utf-8")


@pytest.mark.parametrize("axis", [0, 1])
def test_scales_along_the_rows_and_computed_ones_stay_operators(axis: int, tmp_path: Path) -> None:
    made = dequantized("INT8", "tensor", False, "MatMul")
    made.graph.initializer[1].CopyFrom(array("s", RNG.random(ROWS if axis == 0 else COLUMNS).astype(np.float32)))
    made.graph.node[0].attribute[0].i = axis
    onnx.save(made, tmp_path / "m.onnx")
    codegen.generate(tmp_path / "m.onnx", tmp_path, name="m")
    text = (tmp_path / "m.py").read_text("utf-8")
    assert ("dequantize_linear" in text) is (axis == 0)
    assert ("QuantizedLinear" in text) is (axis == 1)


@pytest.mark.parametrize("axis", [-3, 2, 7])
@pytest.mark.parametrize("level", ["tensor", "channel"])
def test_an_axis_that_there_is_not_stays_an_operator(level: str, axis: int, tmp_path: Path) -> None:
    made = dequantized("INT8", level, False, "MatMul")
    made.graph.node[0].attribute[0].i = axis
    no_layer(made, tmp_path)
    if level == "channel":
        with pytest.raises(EmberletError):
            codegen.load(tmp_path / "m.onnx", "numpy")(emberlet.zeros((2, ROWS), backend="numpy"))


def test_zero_points_of_another_shape_than_the_scales_make_no_layer(tmp_path: Path) -> None:
    made = dequantized("INT8", 16, True, "MatMul")
    zero = numpy_helper.to_array(made.graph.initializer[2])
    made.graph.initializer[2].CopyFrom(array("z", zero.T))
    no_layer(made, tmp_path)


@pytest.mark.parametrize("part", [0, 1, 2])
def test_parts_of_another_size_make_no_layer(part: int, tmp_path: Path) -> None:
    """They stay what the file says, which is refused where it runs."""
    made = nbits(4, 32, "packed", False)
    held = numpy_helper.to_array(made.graph.initializer[part])
    made.graph.initializer[part].CopyFrom(array(made.graph.initializer[part].name, held[:-1]))
    no_layer(made, tmp_path)
    with pytest.raises(EmberletError):
        codegen.load(tmp_path / "m.onnx", "numpy")(emberlet.zeros((2, ROWS), backend="numpy"))
