"""The module of each node where the file names only weights: its own, its neighbors', or the block's that it ends."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from emberlet.codegen.generation import translate
from emberlet.codegen.hierarchy.ordering import circles, sorted_by
from emberlet.codegen.hierarchy.scopes import between, common, counted, scopes_of, unwrapped, written
from emberlet.codegen.hierarchy.writer import lost
from emberlet.codegen.reader import read_model
from onnx import numpy_helper
from support.onnx_models import check, parse

WEIGHT = re.compile(r"\bw__\w+")


def model_of(text: str, inputs: str = "float[n, 4] x, float[n, 4] z", shape: Any = (4, 4)) -> Any:
    """A graph; w__a__b is the weight a.b.weight."""
    made = parse(f"g ({inputs}) => (float y) {{ {text} }}")
    made.graph.output[0].type.Clear()
    random = np.random.default_rng(0)
    for name in dict.fromkeys(WEIGHT.findall(text)):
        path = name[3:].replace("__", ".")
        size = (4,) if path.endswith("bias") else shape
        array = random.standard_normal(size).astype(np.float32)
        full = path if path.rpartition(".")[2] in ("bias", "w_0") else path + ".weight"
        made.graph.initializer.append(numpy_helper.from_array(array, full))
        for node in made.graph.node:
            node.input[:] = [full if i == name else i for i in node.input]
    return made


def paths(text: str, **options: Any) -> list[str]:
    model = read_model(model_of(text, **options), "g")
    return [".".join(path) for path in scopes_of(model, model.graph.nodes)[0]]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a = MatMul(x, w__fc)  y = Relu(a)", ["fc", ""]),
        ("a = MatMul(x, w__m__fc1)  b = Relu(a)  y = MatMul(b, w__m__fc2)", ["m.fc1", "m", "m.fc2"]),
        ("a = MatMul(x, w__m__fc1)  b = Relu(a)  y = MatMul(b, w__k__fc2)", ["m.fc1", "", "k.fc2"]),
        ("b = Relu(x)  a = MatMul(b, w__m__fc1)  y = MatMul(a, w__m__fc2)", ["", "m.fc1", "m.fc2"]),
        # between two items of a list: the end of the first
        ("a = MatMul(x, w__l__0__fc)  b = Relu(a)  y = MatMul(b, w__l__1__fc)", ["l.0.fc", "l.0", "l.1.fc"]),
        ("a = MatMul(x, w__l__0__fc)  b = Relu(a)  c = Tanh(b)  y = MatMul(c, w__l__1__fc)",
         ["l.0.fc", "l.0", "l", "l.1.fc"]),
        # a sum that ends an item, and its activation
        ("a = MatMul(x, w__l__0__fc)  b = Add(a, x)  c = Relu(b)  "
         "d = MatMul(c, w__l__1__fc)  e = Add(d, c)  y = Relu(e)",
         ["l.0.fc", "l.0", "l.0", "l.1.fc", "l.1", "l.1"]),
        ("a = MatMul(x, w__l__0__fc)  b = Add(a, z)  d = MatMul(b, w__l__1__fc)  y = Exp(d)",
         ["l.0.fc", "l.0", "l.1.fc", ""]),
    ],
)  # fmt: skip
def test_a_node_without_a_name_is_where_its_neighbors_are(text: str, found: list[str]) -> None:
    assert paths(text) == found


SE = (
    "i = Conv(x, w__m__c0)  m = GlobalAveragePool(i)  a = Conv(m, w__m__se__a)  r = Relu(a)  b = Conv(r, w__m__se__b)  "
    "s = Sigmoid(b)  p = Mul(i, s)  y = Conv(p, w__m__c1)"
)
IMAGES = {"inputs": "float[n, 4, 5, 5] x", "shape": (4, 4, 1, 1)}


def test_the_whole_of_a_gate_is_in_the_module_of_its_layers() -> None:
    assert paths(SE, **IMAGES) == ["m.c0", "m.se", "m.se.a", "m.se", "m.se.b", "m.se", "m.se", "m.c1"]
    assert paths(SE.replace("Mul(i, s)", "Mul(s, i)"), **IMAGES)[-2] == "m.se"
    # of another value, with another gate, or with more in that module: no gate
    assert paths(SE.replace("Mul(i, s)", "Mul(x, s)"), **IMAGES)[-2] == "m"
    assert paths(SE.replace("Sigmoid", "Tanh"), **IMAGES)[-2] == "m"
    assert paths(SE.replace("w__m__c1", "w__m__se__c"), **IMAGES)[1] == "m"


@pytest.mark.parametrize(
    ("before", "after", "path"),
    [
        ("a.b", "a.c", "a"), ("a.b", "a.b", "a.b"), ("a", "b", ""), ("a.0.x", "a.1.x", "a.0"), ("a.0", "a.1.x", "a"),
        ("a.0.x", "a.1", "a.0"), ("a.0.x", "a", "a"), ("a.x.0.y", "a.x.0.z", "a.x.0"), (None, "a", ""), ("a", None, ""),
    ],
)  # fmt: skip
def test_the_module_between_two(before: str | None, after: str | None, path: str) -> None:
    one, other = (None if p is None else tuple(p.split(".")) for p in (before, after))
    assert ".".join(between(one, other)) == path


def test_paths_in_names_of_weights() -> None:
    assert common(("a", "b"), ("a", "b", "c")) == ("a", "b")
    assert common(("a",), ("b",)) == common((), ("a",)) == ()
    for name, path in (
        ("fc.weight", ("fc", "weight")), ("fc", ()), ("/a/b.weight", ()), ("a::b.weight", ()), ("a.b.0", ()),
        ("a.0.w", ("a", "0", "w")),
        ("a.00.w", ("a", "n00", "w")), ("a.01.w", ("a", "n01", "w")), ("a.10.w", ("a", "10", "w")), ("a..w", ()),
        ("a-b.w", ()),
    ):  # fmt: skip
        assert written(name) == path


def test_numbered_variables_of_a_file_are_no_modules() -> None:
    for name, numbered in (
        ("conv2d_7__w_0", True),
        ("conv2d_7__b", False),
        ("m__conv2d_7__w_0", False),
        ("conv__w_0", False),
    ):
        model = read_model(model_of(f"a = MatMul(x, w__{name})  y = Relu(a)"), "g")
        found = scopes_of(model, model.graph.nodes)[0]
        assert counted(found, model.graph.nodes) is numbered


def test_a_module_around_everything_that_no_weight_names_is_none() -> None:
    model = read_model(model_of("a = MatMul(x, w__fc)  y = Relu(a)"), "g")
    nodes = model.graph.nodes
    assert unwrapped([("net", "fc"), ("net", "act")], nodes) == [("fc",), ("act",)]
    assert unwrapped([("outer", "net", "fc"), ("outer", "net")], nodes) == [("fc",), ()]
    assert unwrapped([("fc", "fc"), ("fc", "act")], nodes) == [("fc", "fc"), ("fc", "act")]
    assert unwrapped([("net", "fc"), ("other",)], nodes) == [("net", "fc"), ("other",)]
    assert unwrapped([("net",), ("net",)], nodes) == [("net",), ("net",)]


@pytest.mark.parametrize(
    ("names", "is_lost"),
    [
        (["a.weight", "b.weight", "c.weight"], False), (["1", "2", "c.weight"], True),
        (["1", "b.weight", "c.weight"], False),
        (["a.weight", "a.weight", "a.weight"], True), (["1", "b.weight"], False), (["1", "2"], True),
    ],
)  # fmt: skip
def test_a_file_has_lost_its_names_where_most_layers_have_none(names: list[str], is_lost: bool) -> None:
    values = "xabcd"
    text = "  ".join(f"{values[i + 1]} = MatMul({values[i]}, w{i})" for i in range(len(names)))
    made = parse(f"g (float[n, 4] x) => (float[n, 4] y) {{ {text}  y = Relu({values[len(names)]}) }}")
    for node, name in zip(made.graph.node, names, strict=False):
        node.input[1] = name
    for name in dict.fromkeys(names):
        made.graph.initializer.append(numpy_helper.from_array(np.ones((4, 4), np.float32), name))
    assert lost(read_model(made, "g").graph) is is_lost


def test_matrices_without_names_count_among_matrices() -> None:
    """Vectors keep their names where an exporter stores matrices transposed."""
    made = parse("g (float[n, 4] x) => (float[n, 4] y) { "
                 "a = MatMul(x, m1)  b = Add(a, v1)  c = MatMul(b, m2)  d = Add(c, v2)  y = Mul(d, v3) }")  # fmt: skip
    renamed = {"m1": "1", "m2": "2", "v1": "one.bias", "v2": "two.bias", "v3": "three.scale"}
    for node in made.graph.node:
        node.input[:] = [renamed.get(i, i) for i in node.input]
    for name in renamed.values():
        shape = (4, 4) if name.isdigit() else (4,)
        made.graph.initializer.append(
            numpy_helper.from_array(np.arange(np.prod(shape), dtype=np.float32).reshape(shape), name)
        )
    assert lost(read_model(made, "g").graph) is True


# -- order


@pytest.mark.parametrize("seed", range(20))
def test_parts_are_ordered_by_what_they_read_and_by_their_place(seed: int) -> None:
    random = np.random.default_rng(seed)
    count = 8
    first = {n: int(at) for n, at in enumerate(random.permutation(count))}
    edges: dict[Any, set[Any]] = {
        n: {m for m in range(count) if first[m] < first[n] and random.random() < 0.3} for n in range(count)
    }
    found = sorted_by(edges, first)
    assert found == sorted(range(count), key=lambda n: first[n])
    assert circles(edges) == []
    loop = sorted(random.permutation(count)[:3].tolist(), key=lambda n: first[n])
    for n, m in zip(loop, [*loop[1:], loop[0]], strict=True):
        edges[n] = edges[n] | {m}
    (group,) = circles(edges)
    assert set(loop) <= set(group)
    assert not set(sorted_by(edges, first)) & set(group)


# -- constants of a module


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (np.arange(40), "F.arange(40"), (np.arange(5, 45), "F.arange(5, 45"),
        (np.arange(40).reshape(5, 8), "F.arange(40"),
        (np.full(40, 7), "F.full((40,), 7"), (np.array([*range(39), 7]), "self.table"),
        (np.arange(0, 80, 2), "self.table"),
        (np.array([3, 3, *range(38)]), "self.table"),
    ],
)  # fmt: skip
def test_a_constant_that_counts_or_repeats_a_number_is_computed(values: Any, said: str) -> None:
    """In a model with modules; what counts is no parameter of its source."""
    layers = "  ".join(
        f"h{i} = MatMul(x{i}, w__l__{i}__fc)  r{i} = Tanh(h{i})  x{i + 1} = MatMul(r{i}, w__l__{i}__out)"
        for i in range(3)
    )
    made = model_of(f"x0 = Neg(x)  {layers}  t = Identity(table)  y = Add(x3, x3)", inputs="float[n, 4] x")
    made.graph.initializer.append(numpy_helper.from_array(values.astype(np.int64), "table"))
    made.graph.node[-2].input[0] = "table"
    made.graph.node[-2].op_type = "Mul"
    made.graph.node[-2].input.append("k")
    made.graph.input.append(numpy_helper_input("k"))
    made.graph.output.append(type(made.graph.output[0])(name="t"))
    source = translate(made, "net")[1].source
    assert said in source
    check(made, np.ones((2, 4), np.float32), np.array(2))


def numpy_helper_input(name: str) -> Any:
    from onnx import TensorProto, helper

    return helper.make_tensor_value_info(name, TensorProto.INT64, [])
