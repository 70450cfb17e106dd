"""`emberlet quantize --onnx`: the file computes what the module computes, also in graphs that are hard to change, or is
refused with a reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import onnx
import onnxruntime
import pytest
from emberlet import codegen
from emberlet.codegen.quantized.writing import Scheme
from emberlet.errors import UnsupportedError
from emberlet.host.cli.quantize.models import Source
from onnx import TensorProto, helper, numpy_helper
from support.onnx_models import parse

RNG = np.random.default_rng(7)
X = RNG.normal(size=(3, 24)).astype(np.float32)
FORMS = ["qdq", "nbits"]


def drawn(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


def value(name: str, shape: Sequence[int], kind: int = TensorProto.FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def source(nodes: Any, inputs: Any, outputs: Any, held: Mapping[str, Any], form: str, folder: Path) -> Source:
    initializers = [numpy_helper.from_array(x, name) for name, x in held.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializers)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made)
    onnx.save(made, folder / "m.onnx")
    return Source(str(folder / "m.onnx"), None, False, form)


def check(given: Source, feeds: Mapping[str, Any], scheme: Scheme | None = None, rtol: float = 1e-5) -> Any:
    """The file's results are the module's; returns the file's model."""
    made, _, files = given.final(scheme or Scheme(8))
    [data] = files.values()
    proto = onnx.load_from_string(data)
    onnx.checker.check_model(proto, full_check=True)
    options = onnxruntime.SessionOptions()  # optimized, it rounds x to 8 bits
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    theirs = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"]).run(None, dict(feeds))
    ours = made(*[emberlet.asarray(feeds[i.name]) for i in given.inputs])
    for a, b in zip(theirs, ours if isinstance(ours, tuple) else (ours,), strict=True):
        np.testing.assert_allclose(np.asarray(b), a, rtol=rtol, atol=rtol * np.abs(a).max())
    return proto


def branches(weight: str, other: str) -> Any:
    """An If that multiplies y by one of two weights, and adds another constant."""

    def branch(name: str) -> Any:
        nodes = [helper.make_node("MatMul", ["y", name], [name + "_t"]),
                 helper.make_node("Add", [name + "_t", "shift"], [name + "_out"])]  # fmt: skip
        return helper.make_graph(nodes, name + "_branch", [], [value(name + "_out", [3, 24])])

    return helper.make_node("If", ["c"], ["z"], then_branch=branch(weight), else_branch=branch(other))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("turn", [True, False])
@pytest.mark.parametrize("inner", ["fc.weight", "inner"])
def test_branches_read_their_weights(inner: str, turn: bool, form: str, tmp_path: Path) -> None:
    held = {"fc.weight": drawn(24, 24), "inner": drawn(24, 24), "other": drawn(24, 24), "shift": drawn(24)}
    nodes = [helper.make_node("MatMul", ["x", "fc.weight"], ["y"]), branches(inner, "other")]
    inputs = [value("x", [3, 24]), value("c", [], TensorProto.BOOL)]
    check(source(nodes, inputs, [value("z", [3, 24])], held, form, tmp_path), {"x": X, "c": np.array(turn)})


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("returned", ["fc.weight", "k"])
def test_initializers_that_are_outputs_stay(returned: str, form: str, tmp_path: Path) -> None:
    held = {"fc.weight": drawn(24, 20), "k": drawn(24, 20)}
    outputs = [value("y", [3, 20]), value(returned, [24, 20])]
    nodes = [helper.make_node("MatMul", ["x", "fc.weight"], ["y"])]
    check(source(nodes, [value("x", [3, 24])], outputs, held, form, tmp_path), {"x": X})


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("end", ["scale", "zero_point", "quantized", "dequantized", "Q4", "DequantizeLinear"])
def test_names_that_the_graph_has_are_not_taken(end: str, form: str, tmp_path: Path) -> None:
    taken = f"fc.weight_{end}"
    nodes = [helper.make_node("MatMul", ["x", "fc.weight"], ["h"]), helper.make_node("Mul", ["h", taken], ["y"], taken)]
    held = {"fc.weight": drawn(24, 20), taken: drawn(20)}
    made = source(nodes, [value("x", [3, 24])], [value("y", [3, 20])], held, form, tmp_path)
    found = check(made, {"x": X}, Scheme(4, "affine", 16)).graph
    names = [t.name for t in found.initializer] + [o for n in found.node for o in n.output]
    assert len(set(names)) == len(names)
    assert len({n.name for n in found.node if n.name}) == sum(bool(n.name) for n in found.node)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bits", [8, 4, 2])
@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_weights_of_other_floats_keep_their_dtype(dtype: str, bits: int, form: str, tmp_path: Path) -> None:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = [helper.make_node("MatMul", ["x", "fc.weight"], ["y"])]
    held = {"fc.weight": drawn(24, 20).astype(dtype)}
    made = source(nodes, [value("x", [3, 24], kind)], [value("y", [3, 20], kind)], held, form, tmp_path)
    check(made, {"x": X.astype(dtype)}, Scheme(bits, level=16), 4e-3 if dtype == "float16" else 1e-6)


def shared(turned: int, form: str, folder: Path) -> Source:
    nodes = [helper.make_node("Gemm", ["x", "w", "a"], ["h"], transB=1),
             helper.make_node("Gemm", ["h", "w", "b"], ["y"], transB=turned)]  # fmt: skip
    held = {"w": drawn(24, 24), "a": drawn(24), "b": drawn(24)}
    return source(nodes, [value("x", [3, 24])], [value("y", [3, 24])], held, form, folder)


@pytest.mark.parametrize("form", FORMS)
def test_layers_that_share_an_initializer_agree_or_are_refused(form: str, tmp_path: Path) -> None:
    check(shared(1, form, tmp_path), {"x": X})
    check(shared(1, form, tmp_path), {"x": X}, Scheme(8, keep=["linear1", "linear2"]))
    with pytest.raises(UnsupportedError, match=r"other ways.*--keep linear1 --keep linear2"):
        shared(0, form, tmp_path).final(Scheme(8))
    for turned in (0, 1):
        with pytest.raises(UnsupportedError, match=r"the weight of linear2, is read as floats, too.*--keep linear2$"):
            shared(turned, form, tmp_path).final(Scheme(8, keep=["linear1"]))


def test_a_weight_that_is_computed_with_elsewhere_is_refused(tmp_path: Path) -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Mul", ["w", "k"], ["v"]),
             helper.make_node("MatMul", ["h", "v"], ["y"])]  # fmt: skip
    made = source(
        nodes, [value("x", [3, 24]), value("k", [24])], [value("y", [3, 24])], {"w": drawn(24, 24)}, "qdq", tmp_path
    )
    with pytest.raises(UnsupportedError, match="w, the weight of linear1, is read as floats, too"):
        made.final(Scheme(8))


def stays_in_float(made: Source, feeds: Mapping[str, Any], folder: Path) -> None:
    """The file computes what the module does whose layers of the note are float, and the report names these."""
    _, _, files = made.final(Scheme(8))
    [note] = made.notes
    assert "in float" in note and "linear2" not in note
    lacking = [name for name in made.layers if name != "linear2"]
    assert all(name in note for name in lacking[:3])
    module = Source(str(folder / "m.onnx"), None).final(Scheme(8, keep=lacking))[0]
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    [data] = files.values()
    [theirs] = onnxruntime.InferenceSession(data, options).run(None, dict(feeds))
    ours = np.asarray(module(*[emberlet.asarray(feeds[i.name]) for i in made.inputs]))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5 * np.abs(theirs).max())


@pytest.mark.parametrize("form", FORMS)
def test_a_weight_that_absorbs_the_norm_before_it_stays_in_float(form: str, tmp_path: Path) -> None:
    held = {"w": drawn(24, 24), "v": drawn(24, 16), **{n: np.abs(drawn(24)) for n in ("scale", "shift", "mean", "var")}}
    nodes = [helper.make_node("BatchNormalization", ["x", "scale", "shift", "mean", "var"], ["h"]),
             helper.make_node("Gemm", ["h", "w"], ["k"]),
             helper.make_node("Relu", ["k"], ["r"]),
             helper.make_node("Gemm", ["r", "v"], ["z"])]  # fmt: skip
    made = source(nodes, [value("x", [3, 24])], [value("z", [3, 16])], held, form, tmp_path)
    assert list(made.layers) == ["linear1", "linear2"]
    stays_in_float(made, {"x": X}, tmp_path)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind, gates", [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_weights_of_gates_stay_in_float(kind: str, gates: int, form: str, tmp_path: Path) -> None:
    held = {"W": drawn(1, gates * 24, 24) / 5, "R": drawn(1, gates * 24, 24) / 5, "axis": np.array([1]),
            "w": drawn(24, 8), "v": drawn(24, 24) / 5}  # fmt: skip
    nodes = [helper.make_node("MatMul", ["x", "v"], ["h"]),
             helper.make_node(kind, ["h", "W", "R"], ["s"], hidden_size=24),
             helper.make_node("Squeeze", ["s", "axis"], ["r"]),
             helper.make_node("MatMul", ["r", "w"], ["z"])]  # fmt: skip
    made = source(nodes, [value("x", [5, 2, 24])], [value("z", [5, 2, 8])], held, form, tmp_path)
    proto = onnx.load_from_string(made.final(Scheme(8))[2]["m.onnx"])
    assert {"W", "R"} < {t.name for t in proto.graph.initializer}
    [note] = made.notes
    lacking = [name for name in made.layers if "_" in name]
    assert lacking and all(name in note for name in lacking[:3])
    check(Source(str(tmp_path / "m.onnx"), None, False, form), {"x": drawn(5, 2, 24)}, Scheme(8, keep=lacking))


def test_a_file_without_the_weight_of_any_layer_is_refused(tmp_path: Path) -> None:
    held = {"W": drawn(1, 96, 24), "R": drawn(1, 96, 24)}
    nodes = [helper.make_node("LSTM", ["x", "W", "R"], ["s"], hidden_size=24)]
    made = source(nodes, [value("x", [5, 2, 24])], [value("s", [5, 1, 2, 24])], held, "qdq", tmp_path)
    with pytest.raises(UnsupportedError, match=r"gates of recurrent layers.*leave out onnx"):
        made.final(Scheme(8))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bits, level", [(8, "channel"), (4, 16), (2, "channel")])
def test_the_last_product_of_a_language_model_reads_the_table_of_its_embedding(
    bits: int, level: Any, form: str, tmp_path: Path
) -> None:
    """PyTorch's exporter folds the transposition of a tied table into a second initializer."""
    held = {"wte.weight": drawn(40, 32), "fc.weight": drawn(32, 32)}
    held["onnx::MatMul_9"] = held["wte.weight"].T
    nodes = [
        helper.make_node("Gather", ["wte.weight", "tokens"], ["x"]),
        helper.make_node("MatMul", ["x", "fc.weight"], ["h"]),
        helper.make_node("MatMul", ["h", "onnx::MatMul_9"], ["y"]),
    ]
    made = source(nodes, [value("tokens", [5], TensorProto.INT64)], [value("y", [5, 40])], held, form, tmp_path)
    found = check(made, {"tokens": np.array([0, 39, 7, 7, 20])}, Scheme(bits, level=level))
    floats = [t for t in found.graph.initializer if t.data_type == TensorProto.FLOAT]
    assert max(np.prod(t.dims) for t in floats) < 32 * 32


GATED = """net (float[n, 32] x) => (float[n, 32] y)
{ h = LayerNormalization(x, g, b) a = MatMul(h, w) c = MatMul(h, v) s = Sigmoid(a) p = Mul(s, c) q = MatMul(p, u)
  t = Gemm<transB = 1>(q, k, b) y = Add(x, t) }"""


def gated(text: str, form: str, folder: Path, dtype: str = "float32") -> tuple[Source, Any]:
    """A model with a norm that makes two channels far larger, its weights chosen by AWQ; and an input."""
    model = parse(text)
    held = {"w": drawn(32, 64), "v": drawn(32, 64), "u": drawn(64, 32), "k": drawn(32, 32), "b": drawn(32)}
    held["g"] = np.where(np.arange(32) % 14 == 3, 60, 1).astype(np.float32)
    model.graph.initializer.extend(numpy_helper.from_array(x.astype(dtype), name) for name, x in held.items())
    onnx.save(model, folder / "net.onnx")
    made, x = Source(str(folder / "net.onnx"), None, False, form), drawn(200, 32).astype(dtype)
    made.choose(Scheme(4, level=16, method="awq"), False, {"x": x}, lambda _: None)
    return made, x


@pytest.mark.parametrize("form", FORMS)
def test_the_inputs_that_awq_scaled_are_in_the_file(form: str, tmp_path: Path) -> None:
    made, x = gated(GATED, form, tmp_path)
    graph = check(made, {"x": x}, Scheme(4, level=16, method="awq"), 1e-4).graph
    scaled = [n.input[0] for n in graph.node if n.op_type == "Mul"]
    assert len(scaled) == len(set(scaled))  # w and v, which read h, have the same scales


def test_awq_of_float16_is_refused_in_files(tmp_path: Path) -> None:
    made, _ = gated(GATED.replace("float", "float16"), "qdq", tmp_path, "float16")
    with pytest.raises(UnsupportedError, match=r"\bw\b.*float32.*leave out"):
        made.final(Scheme(4, level=16, method="awq"))


@pytest.mark.parametrize("mode", ["symmetric", "affine"])
@pytest.mark.parametrize("bits, level", [(8, "channel"), (8, 16), (4, "channel"), (4, 16)])
def test_look_ups_read_rows_of_few_bits(bits: int, level: Any, mode: str, tmp_path: Path) -> None:
    """onnxruntime would dequantize a whole table in each call; emberlet reads the file as an embedding again."""
    nodes = [helper.make_node("Gather", ["wte.weight", "tokens"], ["y"])]
    tokens = value("tokens", ["n", 2], TensorProto.INT64)
    made = source(nodes, [tokens], [value("y", ["n", 2, 48])], {"wte.weight": drawn(40, 48)}, "nbits", tmp_path)
    given = np.array([[0, 39], [7, 7], [-1, 20]])
    found = check(made, {"tokens": given}, Scheme(bits, mode, level))
    assert [n.op_type for n in found.graph.node] == ["GatherBlockQuantized"]
    again = codegen.load(found, "numpy")
    assert "QuantizedEmbedding" in str(again)
    wanted = onnxruntime.InferenceSession(found.SerializeToString()).run(None, {"tokens": given})[0]
    np.testing.assert_array_equal(np.asarray(again(emberlet.asarray(given))), wanted)


@pytest.mark.parametrize(("bits", "value_dtype"), [(8, None), (4, None), (2, None), (8, "float8_e4m3fn")])
def test_integers_take_their_bits_in_a_file(bits: int, value_dtype: str | None, tmp_path: Path) -> None:
    node = helper.make_node("Conv", ["x", "w"], ["y"])
    held = {"w": drawn(8, 6, 3, 3)}
    made = source([node], [value("x", [1, 6, 5, 5])], [value("y", [1, 8, 3, 3])], held, "qdq", tmp_path)
    proto = onnx.load_from_string(made.final(Scheme(bits, value_dtype=value_dtype))[2]["m.onnx"])
    assert next(t for t in proto.graph.initializer if t.name == "w_quantized").ByteSize() < 8 * 54 * bits // 8 + 40


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_a_norm_behind_a_product_is_folded_in_every_float(dtype: str, tmp_path: Path) -> None:
    """Into integers, whatever the dtype of the weight: no weight stays in float."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    held = {"w": drawn(8, 24), **{n: np.abs(drawn(8)) + 0.1 for n in ("scale", "shift", "mean", "var")}}
    nodes = [helper.make_node("Gemm", ["x", "w"], ["h"], transB=1),
             helper.make_node("BatchNormalization", ["h", "scale", "shift", "mean", "var"], ["y"])]  # fmt: skip
    made = source(nodes, [value("x", [3, 24], kind)], [value("y", [3, 8], kind)],
                  {n: x.astype(dtype) for n, x in held.items()}, "qdq", tmp_path)  # fmt: skip
    proto = check(made, {"x": X.astype(dtype)}, rtol=4e-3 if dtype == "float16" else 1e-5)
    assert not made.notes and any(t.name == "w_quantized" for t in proto.graph.initializer)
