"""Inconsistent files, and names that contain code, give one clear error or code that only computes."""

from __future__ import annotations

import ast
import os
import random
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from conformance.cases import node_cases
from emberlet.codegen import generate, inspect, load
from emberlet.codegen.generation import translate
from emberlet.codegen.onnx_backend import to_array, to_tensor
from emberlet.errors import EmberletError, ModelError
from hypothesis import given, settings
from hypothesis import strategies as st
from models.index import cases
from onnx import TensorProto, helper, numpy_helper
from support import machine_learning
from support.hostile_models import functions, with_external
from support.onnx_models import parse
from support.onnx_mutations import NAMES, mutated

CODE = (
    "x'); __import__('pathlib').Path('pwned').touch(); ('",
    'x"""\n__import__("pathlib").Path("pwned").touch()\n"""',
    "x\n    __import__('pathlib').Path('pwned').touch()",
    "{__import__('pathlib').Path('pwned').touch()}",
    "\\", "#", "%(x)s", "__class__", "lambda", "forward", "val", "emberlet", "nn", "backend", "x\r\ny", "\ufeffx",
)  # fmt: skip


def renamed(name: str) -> onnx.ModelProto:
    """A small model in which every name is this one or begins with it."""
    model = parse(
        """g (float[2, 3] x) => (float[2, 4] y) { p = MatMul(x, w)  q = Add(p, b)  r = Relu(q)  y = Add(r, c) }"""
    )
    model.graph.name = model.producer_name = model.producer_version = model.doc_string = name
    weights = {"w": np.ones((3, 4)), "b": np.ones(4), "c": np.arange(4)}
    names = {v: f"{name}{i}" if i else name for i, v in enumerate(("x", "w", "b", "c", "p", "q", "r", "y"))}
    for n in model.graph.node:
        n.name = f"{name}{n.output[0]}"
        n.input[:] = [names[i] for i in n.input]
        n.output[:] = [names[o] for o in n.output]
    for info in (*model.graph.input, *model.graph.output):
        info.name = names[info.name]
        info.type.tensor_type.shape.dim[0].dim_param = name
    model.graph.initializer.extend(numpy_helper.from_array(v.astype(np.float32), names[k]) for k, v in weights.items())
    return model


@pytest.mark.parametrize("name", [*NAMES, *CODE])
def test_names_never_become_code(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not name or "\udcff" in name:
        pytest.skip("a value needs a name")
    monkeypatch.chdir(tmp_path)
    model = renamed(name)
    written = translate(model, name, top_comment=name)[1]
    tree = ast.parse(written.source)
    imports = [n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom)]
    assert {a.name for i in imports for a in i.names} <= {"emberlet", "functional", "nn", "Model"}
    assert "__import__" not in [n.id for n in ast.walk(tree) if isinstance(n, ast.Name)]
    x = np.array([[1, 2, 3], [-9, 0, 0]], np.float32)
    y = load(model, "numpy")(to_tensor(x, "numpy"))
    np.testing.assert_allclose(to_array(y), np.maximum(x.sum(1, keepdims=True) + 1, 0) + np.arange(4))
    inspect(model)
    generate(model, "out", name=name, top_comment=name, embed=True)
    assert not Path("pwned").exists()
    assert [p.parent for p in tmp_path.rglob("*.py")] == [tmp_path / "out"]


# -- external data ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "location",
    [
        "../secret.data", "sub/../../secret.data", "..\\secret.data", "C:\\secret.data", "C:secret.data",
        "\\\\server\\share", "", "a\0b", "missing.data", ".", "sub",
        "sub/../inside.data", "CC:w.data", "..w.data", "a" * 300,
        pytest.param("link.data", marks=pytest.mark.needs("symlinks")),
    ],
)  # fmt: skip
def test_external_data_cannot_leave_the_models_folder(location: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    (folder / "sub").mkdir(parents=True)
    for file in (tmp_path / "secret.data", folder / "inside.data", folder / "C:secret.data"):
        file.write_bytes(bytes(64))
    if location == "link.data":
        (folder / location).symlink_to(tmp_path / "secret.data")
    with pytest.raises(ModelError, match="initializer 'w': its data"):
        generate(with_external(folder, location=location), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_absolute_path_to_external_data_is_refused(tmp_path: Path) -> None:
    (tmp_path / "w.data").write_bytes(bytes(16))
    with pytest.raises(ModelError, match="not a path inside the model's folder"):
        load(with_external(tmp_path, location=str(tmp_path / "w.data")))


@pytest.mark.parametrize(
    "lie",
    [
        {"offset": "1"},
        {"offset": "-4"},
        {"offset": "99999999999999999999"},
        {"offset": "one"},
        {"length": "12"},
        {"length": "-16"},
        {"length": "0x10"},
    ],
)
def test_lies_about_external_data_are_found(lie: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "w.data").write_bytes(bytes(16))
    with pytest.raises(ModelError, match=r"initializer 'w': (bytes|its external offset)"):
        load(with_external(tmp_path, location="w.data", **lie))


# -- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"not a model", b"\xff" * 100, b"\x08\x07" + b"\x3a" + b"\xff" * 9, bytes(50)])
def test_what_is_no_model_is_refused(data: bytes) -> None:
    with pytest.raises(ModelError):
        load(data)


def test_invalid_text_is_refused() -> None:
    model = parse("g (float[2] x) => (float[2] y) { [label] y = Neg(x) }")
    for word in (b"label", b"Neg", b"x"):
        broken = model.SerializeToString().replace(word, b"\xff" + word[1:])
        with pytest.raises(ModelError, match=r"the text b'\\xff.*' is not UTF-8"):
            load(broken)


def test_an_empty_file_holds_no_graph() -> None:
    with pytest.raises(ModelError, match="holds no graph"):
        load(b"")


def test_every_truncation_is_refused_or_a_model_of_its_own() -> None:
    data = (Path(__file__).parents[2] / "examples" / "sine" / "sine.onnx").read_bytes()
    for end in range(0, len(data), 7):
        try:
            translate(data[:end])
        except EmberletError:
            pass


# -- lies inside ------------------------------------------------------------------------------------------------------


def test_a_filled_weight_that_would_be_huge_is_refused(tmp_path: Path) -> None:
    model = parse(
        """g (float[1, 4] x) => (float[1, N] y) <int64[2] shape = {4, 1099511627776}> {
            w = ConstantOfShape(shape)  y = MatMul(x, w)
        }"""
    )
    with pytest.raises(ModelError, match="take 17592186044416"):
        generate(model, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("sizes", "message"), [([12000], "would take"), ([11001 + i for i in range(5)], "together")])
def test_filled_weights_take_no_more_than_models_have(sizes: list[int], message: str, tmp_path: Path) -> None:
    made = "".join(
        f"s{n} = Constant<value_ints = [{n}, {n}]>()  w{n} = ConstantOfShape(s{n})  y{n} = MatMul(x{n}, w{n})  "
        for n in sizes
    )
    inputs = ", ".join(f"float[1, {n}] x{n}" for n in sizes)
    outputs = ", ".join(f"float[1, {n}] y{n}" for n in sizes)
    with pytest.raises(ModelError, match=message):
        generate(parse(f"g ({inputs}) => ({outputs}) {{ {made} }}"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = Add(x, b)  b = Add(a, x)  y = Neg(b)", "is part of a cycle"),
        ("y = Neg(y)", "cycle"),
        ("y = Neg(x)  y = Exp(x)", "writes 'y', which an earlier node already writes"),
        ("x = Neg(x)  y = Neg(x)", "writes 'x', which an earlier node already writes"),
        ("z = Neg(x)", "nothing produces the output 'y'"),
        ("y = Neg(nowhere)", "reads 'nowhere', which nothing before it produces"),
        ("y = Neg(x, x)", "has 2 inputs, expected 1"),
        ("y, z = Neg(x)", "has 2 outputs, expected 1"),
        ("y = Neg<speed = 3>(x)", "has the attribute 'speed', which opset 21 does not know"),
        ("y = Concat(x)", "attribute 'axis' .* is missing"),
        ("y = Concat<axis = 9>(x, x)", r"axis 9 is outside \[-1, 1\)"),
        ("y = Concat<axis = 0.5>(x, x)", "attribute 'axis' should be an int"),
        ("y = NoSuch(x)", r"\(NoSuch\): the operator is not supported"),
        ("y = my.domain.Thing(x)", "imports no opset of the domain 'my.domain'"),
        ("y = Upsample(x, x)", "does not exist any more in opset 21"),
    ],
)
def test_a_graph_that_cannot_be_is_refused_with_its_node(text: str, message: str) -> None:
    model = parse(f"g (float[4] x) => (float[4] y) {{ {text} }}")
    with pytest.raises(ModelError, match=message):
        load(model)


def test_every_problem_is_listed_with_its_node_in_one_error() -> None:
    model = parse(
        """g (float[4] x) => (float[4] y) {
            [first] a = NoSuch(x)  [second] b = Concat<axis = 7>(x, x)  [third] c = Gemm(x, x)
            [after] d = Add(a, b)  [last] y = Other(d)
        }"""
    )
    with pytest.raises(ModelError) as caught:
        load(model)
    lines = str(caught.value).splitlines()
    assert lines[0].endswith("has 4 problems:")
    assert [line.split("'")[1] for line in lines[1:]] == ["first", "second", "third", "last"]


@pytest.mark.parametrize("opset", [0, 29, 1 << 40])
def test_opsets_that_do_not_exist_are_refused(opset: int) -> None:
    model = parse("g (float[4] x) => (float[4] y) { y = Neg(x) }")
    model.opset_import[0].version = opset
    with pytest.raises(ModelError, match="opset"):
        load(model)


# -- depth ------------------------------------------------------------------------------------------------------------


def nested(depth: int) -> bytes:
    """A model of deeply nested Ifs, assembled byte by byte because protobuf's own writers refuse."""

    def field(number: int, data: bytes) -> bytes:
        length, size = b"", len(data)
        while size > 127:
            length, size = length + bytes([size & 127 | 128]), size >> 7
        return bytes([number << 3 | 2]) + length + bytes([size]) + data

    def branch(name: bytes, graph: bytes) -> bytes:
        return field(5, field(1, name) + field(6, graph) + b"\xa0\x01\x05")

    def graph(node: bytes, output: str) -> bytes:
        info = helper.make_tensor_value_info(output, TensorProto.FLOAT, [2]).SerializeToString()
        return field(1, node) + field(2, b"g") + field(12, info)

    inner = graph(field(1, b"x") + field(2, b"y0") + field(4, b"Neg"), "y0")
    for i in range(1, depth):
        other = graph(field(1, b"x") + field(2, b"z%d" % i) + field(4, b"Exp"), f"z{i}")
        node = field(1, b"c") + field(2, b"y%d" % i) + field(4, b"If")
        inner = graph(node + branch(b"then_branch", inner) + branch(b"else_branch", other), f"y{i}")
    for name, kind in (("x", TensorProto.FLOAT), ("c", TensorProto.BOOL)):
        inner += field(11, helper.make_tensor_value_info(name, kind, [2] if name == "x" else []).SerializeToString())
    return field(8, helper.make_opsetid("", 21).SerializeToString()) + field(7, inner)


def test_subgraphs_nest_as_deep_as_protobuf_reads() -> None:
    model = load(nested(30), "numpy")
    y = model(to_tensor(np.float32([1, 2]), "numpy"), to_tensor(np.array(True), "numpy"))
    assert to_array(y).tolist() == [-1, -2]


@pytest.mark.parametrize("depth", [100, 5000])
def test_deeper_subgraphs_are_refused(depth: int) -> None:
    with pytest.raises(ModelError, match="is not an ONNX model"):
        load(nested(depth))


def test_functions_that_multiply_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from emberlet.codegen.reader import graphs

    monkeypatch.setattr(graphs, "MAX_NODES", 5000)
    with pytest.raises(ModelError, match="expand to more than 5000 nodes"):
        load(functions(2, 40))


# -- anything ---------------------------------------------------------------------------------------------------------


@cache
def pool() -> list[onnx.ModelProto]:
    """Small models of every kind: each operator's cases, exports with subgraphs, functions."""
    chosen = random.Random(0).sample(sorted(node_cases()), 500)
    models = [node_cases()[name].model for name in chosen]
    exports = {case.name: case.model for case in cases() if case.model.stat().st_size < 60_000}
    others = [onnx.load(file) for _, file in sorted(exports.items())]
    return [*models, *others, *machine_learning.models(), functions(2, 3)]


@settings(max_examples=250, derandomize=True)
@given(st.integers(0, 1 << 30))
def test_a_model_made_wrong_is_refused_or_becomes_code(seed: int) -> None:
    source = pool()[seed % len(pool())]
    try:
        written = translate(mutated(source, seed).SerializeToString())[1]
    except EmberletError as error:
        assert str(error)
        return
    compile(written.source, "generated", "exec")


def test_a_refused_model_leaves_nothing(tmp_path: Path) -> None:
    refused = 0
    for seed in range(60):
        try:
            generate(mutated(pool()[seed], seed), tmp_path / "a" / "b", embed=bool(seed % 2))
        except EmberletError:
            refused += 1
            assert not os.listdir(tmp_path)
        else:
            for file in sorted(tmp_path.rglob("*"), reverse=True):
                file.rmdir() if file.is_dir() else file.unlink()
    assert refused > 20


def test_a_past_without_axes_for_steps_never_ends_in_an_internal_error() -> None:
    """Attention compares masks with the length of its past, which is empty here."""
    made = parse(
        """g (float[2,3,4,8] q, float[2,3,6,8] k, float[2,3,6,10] v, float[4,18] m, float[2,3,12,10] p)
        => (float[2,3,4,10] y, float[2,3,9,8] a, float[2,3,9,10] b) { y, a, b = Attention (q, k, v, m, m, p) }""",
        opset=23,
    )
    try:
        translate(made, "m")
    except EmberletError as error:
        assert error.__cause__ is None or isinstance(error.__cause__, EmberletError)
