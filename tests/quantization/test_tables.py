"""Tables of embeddings in ONNX files: rows of 8 bits are looked up, and the numbers are those of the module."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import onnx
import onnxruntime
import pytest
from emberlet import codegen, nn, store
from emberlet.codegen.quantized.writing import Scheme
from emberlet.host.cli.quantize.models import Source
from emberlet.host.cli.quantize.rewritten import Dynamic, Static
from emberlet.micro.builder.build import taken_apart
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.fuse import fuse
from emberlet.micro.builder.quantization.calibrate import check_samples, observe, ranges_of
from emberlet.micro.builder.quantization.quantize import quantize_graph
from onnx import numpy_helper
from support.onnx_models import parse

RNG = np.random.default_rng(23)
IDS = np.array([[0, 39, 7, 7], [-1, 20, 3, -40]])
LOOK_UP = "net (int64[n, 4] ids) => (float[n, 4, 48] y) { y = Gather(t, ids) }"
TIED = """net (int64[n, 4] ids) => (float[n, 4, 40] y)
{ e = Gather(t, ids) k = Transpose<perm = [1, 0]>(t) y = MatMul(e, k) }"""
TIED_ROWS = """net (int64[4] ids) => (float[4, 40] y) { e = Gather(t, ids) y = Gemm<transB = 1>(e, t) }"""
NORMED = """net (int64[n, 4] ids) => (float[n, 4, 32] y)
{ e = Gather(t, ids) p = Gather(p_t, ids) s = Add(e, p) n = LayerNormalization(s, g) y = MatMul(n, w) }"""
INTEGERS = """net (int64[1, 4] ids) => (float[1, 4] y) <int64[2] shape = {1, 192}>
{ e = Gather(t, ids) f = Reshape(e, shape) h = Gemm(f, v, b) r = Relu(h) y = Gemm(r, u) }"""


def saved(folder: Path, text: str, dtype: str = "float32") -> Path:
    model = parse(text.replace("float[", f"{dtype}[") if dtype != "float32" else text)
    shapes = {"t": (40, 48), "p_t": (40, 48), "g": (48,), "w": (48, 32), "v": (192, 16), "b": (16,), "u": (16, 4)}
    read = {name for node in model.graph.node for name in node.input}
    for name, shape in shapes.items():
        if name in read:
            x = RNG.normal(size=shape) * (np.exp2(RNG.integers(-6, 6, shape[:1]))[:, None] if name == "t" else 1)
            model.graph.initializer.append(numpy_helper.from_array(x.astype(dtype), name))
    onnx.save(model, folder / "net.onnx")
    return folder / "net.onnx"


def theirs(data: bytes, ids: Any) -> Any:
    options = onnxruntime.SessionOptions()  # optimized, it rounds the inputs of products
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"]).run(None, {"ids": ids})[0]


def whole_tables(model: onnx.ModelProto, rows: int = 40) -> list[str]:
    """The operators that read a table of integers otherwise than by rows."""
    tables = {t.name for t in model.graph.initializer if t.dims[:1] == [rows] and t.data_type in (2, 3)}
    return [n.op_type for n in model.graph.node if n.op_type != "Gather" and not tables.isdisjoint(n.input)]


def floats(model: onnx.ModelProto) -> list[str]:
    """The tables that are floats."""
    return [t.name for t in model.graph.initializer if list(t.dims) == [40, 48] and t.data_type in (1, 10)]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("mode", ["symmetric", "affine"])
@pytest.mark.parametrize("level", ["tensor", "channel", 16, 40])
@pytest.mark.parametrize("bits", [8, 4, 2])
def test_rows_are_looked_up_in_8_bits_before_they_are_dequantized(
    bits: int, level: Any, mode: str, dtype: str, tmp_path: Path
) -> None:
    """Of fewer bits, too: ONNX has no Gather of these."""
    made = Source(str(saved(tmp_path, LOOK_UP, dtype)), None, False, "qdq")
    module, _, files = made.final(Scheme(bits, mode, level))
    [data] = files.values()
    model = onnx.load_from_string(data)
    onnx.checker.check_model(model, full_check=True)
    assert not whole_tables(model) and not floats(model)
    wanted = theirs(data, IDS)
    again = codegen.load(model, "numpy")
    assert "QuantizedEmbedding" in str(again)
    for each in (module, again):
        np.testing.assert_array_equal(np.asarray(each(emberlet.asarray(IDS))), wanted)
    (tmp_path / "made.onnx").write_bytes(data)
    for packed in (False, True):
        net = emberlet.Module()
        net.t = nn.Embedding(40, 48)
        if packed:
            net.t.quantize_weights(8, mode, level)  # of fewer bits: those of the file
        lost = net.load_from(store.open(tmp_path / "made.onnx"), rename=[("^t_", "t.weight_")]).quantized
        assert max(lost.values(), default=0.0) < 1e-6
        rows = np.asarray(net.t(emberlet.asarray(IDS)))
        np.testing.assert_allclose(rows.astype(dtype), wanted, rtol=1e-6, atol=0)


@pytest.mark.parametrize("text", [TIED, TIED_ROWS])
@pytest.mark.parametrize("level", ["channel", 16])
@pytest.mark.parametrize("bits", [8, 4])
def test_a_product_reads_the_same_table_as_a_whole(bits: int, level: Any, text: str, tmp_path: Path) -> None:
    made = Source(str(saved(tmp_path, text)), None, False, "qdq")
    module, _, files = made.final(Scheme(bits, level=level))
    [data] = files.values()
    model, ids = onnx.load_from_string(data), IDS if text == TIED else IDS[0]
    assert whole_tables(model) == ["DequantizeLinear"] and not floats(model)
    wanted = theirs(data, ids)
    for each in (module, codegen.load(model, "numpy")):
        found = np.asarray(each(emberlet.asarray(ids)))
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("keep", [(), ("embedding1",)])
@pytest.mark.parametrize("form", ["dynamic", "qdq", "qoperator"])
def test_files_with_integer_activations_have_the_tables_of_the_module(
    form: str, keep: tuple[str, ...], tmp_path: Path
) -> None:
    path, ids = str(saved(tmp_path, NORMED)), RNG.integers(0, 40, (20, 4))
    if form == "dynamic":
        made: Any = Dynamic(path, None)
    else:
        made = Static(path, None, lambda _: {"ids": ids}, "minmax", 99.99, lambda _: None, onnx=form)
    module, source, files = made.final(Scheme(8, keep=keep))
    [data] = files.values()
    model = onnx.load_from_string(data)
    assert len(floats(model)) == len(keep) and not whole_tables(model)
    assert "quantize_weights" not in source and source.count("QuantizedEmbedding") == 2 - len(keep)
    wanted = theirs(data, IDS)
    for each in (module, codegen.load(model, "numpy")):
        found = np.asarray(each(emberlet.asarray(IDS)))
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


def test_rows_that_are_quantized_at_once_lie_on_that_grid(tmp_path: Path) -> None:
    """The table loses nothing more, and boards get the bytes that the float model gives."""
    path, ids = saved(tmp_path, INTEGERS), RNG.integers(0, 40, (60, 4))
    made = Static(str(path), None, lambda _: {"ids": ids}, "minmax", 99.99, lambda _: None)
    module, _, files = made.final(Scheme(8))
    [data] = files.values()
    model = onnx.load_from_string(data)
    assert not whole_tables(model) and not floats(model)
    float_table = made.variant(Scheme(8, keep=("embedding1",)))
    for row in ids[:, None]:
        wanted = theirs(data, row)
        np.testing.assert_array_equal(np.asarray(module(emberlet.asarray(row))), wanted)
        np.testing.assert_array_equal(np.asarray(float_table(emberlet.asarray(row))), wanted)
    graph = fuse(taken_apart(read_graph(path.read_bytes(), "net")))
    board = quantize_graph(graph, ranges_of(observe(graph, check_samples({graph.inputs[0]: ids}, graph)), "minmax"))
    file = quantize_graph(fuse(read_graph(data, "net")))
    for a, b in zip(file.layers, board.layers, strict=True):
        assert type(a) is type(b) and file.grids[a.output] == board.grids[b.output]
        for key in {*vars(a)} - {"name", "inputs", "output"}:
            np.testing.assert_array_equal(getattr(a, key), getattr(b, key), err_msg=f"{a.name} {key}")


ROWS = "net (int64[16] ids, int64[16] k) => (float[16, 16] y) { "
NEAR = {
    "scales by other indices": "q = Gather(t, ids) s = Gather(s1, k) c = Cast<to = 1>(q) y = Mul(c, s) }",
    "a scale for each column": "q = Gather(t, ids) c = Cast<to = 1>(q) y = Mul(c, sc) }",
    "scales of columns, looked up": "q = Gather(t, ids) s = Gather(sc, ids) c = Cast<to = 1>(q) y = Mul(c, s) }",
    "a scale for each number": "q = Gather(t, ids) s = Gather(sw, ids) c = Cast<to = 1>(q) y = Mul(s, c) }",
    "the scales first": "q = Gather(t, ids) s = Gather(s1, ids) c = Cast<to = 1>(q) y = Mul(s, c) }",
    "columns": "q = Gather<axis = 1>(tt, ids) c = Cast<to = 1>(q) p = Transpose<perm = [1, 0]>(c) "
               "s = Gather(s1, ids) y = Mul(p, s) }",
    "two zero points": "q = Gather(t, ids) s = Gather(s1, ids) z = Gather(z1, ids) c = Cast<to = 1>(q) "
                       "d = Cast<to = 1>(z) e = Sub(c, d) f = Sub(e, d) y = Mul(f, s) }",
    "integers subtracted from zero points": "q = Gather(t, ids) s = Gather(s1, ids) z = Gather(z1, ids) "
                       "c = Cast<to = 1>(q) d = Cast<to = 1>(z) e = Sub(d, c) y = Mul(e, s) }",
    "a table that is read again": "q = Gather(t, ids) s = Gather(s1, ids) c = Cast<to = 1>(q) p = Mul(c, s) "
                                  "y = Add(p, c) }",
}  # fmt: skip


@pytest.mark.parametrize("case", NEAR)
def test_what_only_looks_like_dequantized_rows_is_computed_as_it_says(case: str, tmp_path: Path) -> None:
    model = parse(ROWS + NEAR[case])
    table = RNG.integers(-128, 128, (16, 16), np.int8)
    held = {"t": table, "tt": table, "s1": RNG.random((16, 1), np.float32), "z1": RNG.integers(-9, 9, (16, 1), np.int8),
            "sc": RNG.random(16, np.float32), "sw": RNG.random((16, 16), np.float32)}  # fmt: skip
    read = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(numpy_helper.from_array(x, name) for name, x in held.items() if name in read)
    given = {"ids": RNG.permutation(16), "k": RNG.permutation(16)}
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = session.run(["y"], {i.name: given[i.name] for i in session.get_inputs()})[0]
    found = codegen.load(model, "numpy")(*map(emberlet.asarray, given.values()))
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-6, atol=1e-6)
    onnx.save(model, tmp_path / "net.onnx")
    opened = store.open(tmp_path / "net.onnx")
    for name in {"t", "tt"} & read:
        real = opened[name].real
        if real is not None:  # only where a row of the table has one scale, and no other number
            assert case in ("the scales first", "a table that is read again")
            np.testing.assert_array_equal(np.asarray(real.tensor()), table * held["s1"])
