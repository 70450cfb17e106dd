"""Paths of modules: what is shared by two, what a weight's name says, and which names blocks may take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emberlet.codegen.hierarchy.moving import _list_level
from emberlet.codegen.hierarchy.repetition.naming import _distinct, _list_of, _prefixes
from emberlet.codegen.hierarchy.repetition.sequence import _is_matrix
from emberlet.codegen.hierarchy.scopes import between, common, counted, parameters, unwrapped, weights, written
from emberlet.codegen.ir.value import Value
from emberlet.codegen.reader import read_model
from onnx import numpy_helper
from support.onnx_models import parse


def path(text: str | None) -> Any:
    return None if text is None else tuple(text.split(".")) if text else ()


def paths(text: str) -> list[Any]:
    return [path("" if p == "-" else p) for p in text.split()]


def table(text: str) -> dict[Any, Any]:
    """ "a.b=c d=e" as paths."""
    return {path(k): path(v) for k, _, v in (pair.partition("=") for pair in text.split())}


@pytest.mark.parametrize(
    ("a", "b", "shared"),
    [("a.b.c", "a.b.d", "a.b"), ("a.b", "a.b.c", "a.b"), ("a.b.c", "a.b", "a.b"), ("", "a", ""), ("a", "a", "a"),
     ("x.b", "y.b", "")],
)  # fmt: skip
def test_the_path_that_two_paths_share(a: str, b: str, shared: str) -> None:
    assert common(path(a), path(b)) == common(path(b), path(a)) == path(shared)


@pytest.mark.parametrize(
    ("before", "after", "place"),
    [
        ("a.b", "a.c", "a"),
        (None, "a", ""),
        ("a", None, ""),
        ("layers.0.fc", "layers.1.fc", "layers.0"),
        ("layers.0.fc", "layers.1", "layers.0"),
        ("layers.0", "layers.1", "layers"),  # the item itself makes the value
        ("layers.0.a.b", "layers.1.a.b", "layers.0"),
        ("a.layers.0.b", "a.layers.1.b", "a.layers.0"),
        ("a.x", "b.y", ""),
        ("a.x", "a.1", "a"),
        ("layers.0.fc", "layers", "layers"),
        ("layers.0.fc", "layers.norm", "layers"),
        ("layers.norm.fc", "layers.0", "layers"),
        ("a.b", "a.b", "a.b"),
    ],
)
def test_a_node_between_two_modules_is_in_what_holds_both(before: str | None, after: str | None, place: str) -> None:
    assert between(path(before), path(after)) == path(place)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("fc.weight", "fc.weight"),
        ("layers.0.fc.weight", "layers.0.fc.weight"),
        ("layers.00.weight", "layers.n00.weight"),
        ("layers.12.weight", "layers.12.weight"),
        ("layers.².weight", "layers.n².weight"),
        ("fc.0", ""),
        ("weight", ""),
        ("a/fc.weight", ""),
        ("fc.weight:0", ""),
        ("fc..weight", ""),
        ("fc.we-ight", ""),
    ],
)
def test_the_path_in_a_weights_name(name: str, said: str) -> None:
    assert written(name) == path(said)


@pytest.mark.parametrize(
    ("here", "others", "level"),
    [
        ("layers.0.fc", "layers.1.fc", 1),
        ("layers.0", "layers.1", 1),
        ("layers.0.a.1", "layers.0.a.2 layers.3", 1),
        ("a.layers.0.b", "a.layers.1.b a.layers.0.c", 2),
        ("stages.0.layers.0", "stages.0.layers.1", 3),
        ("a.x", "a.y", None),
        ("layers.0.fc", "layers.0.gate", None),
        ("layers.0.fc", "head", None),
        ("layers.0.fc", "layers", None),
        ("layers", "layers.0", None),
        ("layers.0", "layers.norm", None),
        ("layers.norm", "layers.0", None),
        ("layers.0", "", None),
    ],
)
def test_where_paths_separate_into_items_of_a_list(here: str, others: str, level: int | None) -> None:
    assert _list_level(path(here), paths(others)) == level


@pytest.mark.parametrize(
    ("prefix", "number", "name"),
    [
        ("model.layers.0.mlp", "0", "model.layers"),
        ("model.layers.0", "0", "model.layers"),
        ("model.layers.1.mlp", "0", ""),
        ("model.layers", "0", ""),
        ("stages.1.layers.0", "0", "stages.1.layers"),
        ("stages.1.layers.0", "1", ""),
        ("stages.0.blocks.1.fc", "1", "stages.0.blocks"),
        ("", "0", ""),
    ],
)
def test_the_list_that_an_item_is_in(prefix: str, number: str, name: str) -> None:
    assert _list_of(path(prefix), number) == path(name)


@pytest.mark.parametrize(
    ("places", "names"),
    [
        ({"block": "net.fc1 net.fc2"}, "block=net"),
        ({"block": "net.fc1"}, "block=net"),  # the name of the only layer is the layer's
        ({"block": "fc1"}, ""),
        ({"block": "net.a net.a.b"}, "block=net"),
        ({"block": "net.a.c net.a.b"}, "block=net.a"),
        ({"block": "enc enc.b"}, ""),
        ({"block": "- net.fc1 net.fc2"}, "block=net"),
        ({"block": "- -"}, ""),
        ({"block": "a.x b.x"}, ""),
        ({"block": "layers.0.a layers.0.b"}, ""),  # one block is no list
        ({"b.0": "layers.0.a layers.0.b", "b.1": "layers.1.a layers.1.b"}, "b.0=layers.0 b.1=layers.1"),
        ({"blocks.0": "layers.0.a layers.0.b", "blocks.1": "-"}, "blocks.0=layers.0 blocks.1=layers.1"),
        ({"blocks.0": "layers.1.a layers.1.b", "blocks.1": "layers.2.a layers.2.b"}, ""),
        ({"blocks.0": "layers.0.a layers.0.b", "blocks.1": "others.1.a others.1.b"}, ""),
        ({"blocks.0": "net.a net.b"}, ""),
    ],
)  # fmt: skip
def test_a_block_is_called_after_what_its_layers_share(places: dict[str, str], names: str) -> None:
    assert _prefixes({path(p): paths(q) for p, q in places.items()}) == table(names)


@pytest.mark.parametrize(
    ("found", "outside", "left"),
    [
        ("a=net b=other", "", "a=net b=other"),
        ("a=net b=net", "", ""),
        ("a=net b=net c=other", "", "c=other"),
        ("a=net", "net.fc", ""),  # a layer outside has a name below it
        ("a=net", "net", ""),
        ("a=net", "network.fc", "a=net"),
        ("a=net b=net.inner", "", "b=net.inner"),  # another block is below it
        ("b.0=l.0 b.1=l.1", "l", "b.0=l.0 b.1=l.1"),
        ("b.0=l.0 b.1=l.1", "", "b.0=l.0 b.1=l.1"),
        ("b.0=l.0 b.1=l.1 c=net", "l.1.fc", "c=net"),  # a list takes its name as a whole
        ("b.0=l.0 b.1=l.1 b.norm=net", "l.1.fc", ""),
        ("b.fc=l b.1=l.1", "l.fc", "b.1=l.1"),
    ],
)
def test_names_that_belong_to_one_block_alone(found: str, outside: str, left: str) -> None:
    assert _distinct(table(found), paths(outside)) == table(left)


# -- paths of nodes ---------------------------------------------------------------------------------------------------


def products(*names: str) -> list[Any]:
    """Products with matrices of these names, and an addition of a number at the end."""
    given = ["x", *(f"v{i}" for i in range(len(names)))]
    text = " ".join(f"v{i} = MatMul({given[i]}, w{i})" for i in range(len(names)))
    model = parse(f"g (float[N, 2] x) => (float[N, 2] y) {{ {text} y = Exp({given[-1]}) }}")
    for i, name in enumerate(names):
        model.graph.initializer.append(numpy_helper.from_array(np.eye(2, dtype=np.float32) + i, name))
        model.graph.node[i].input[1] = name
    return list(read_model(model).graph.nodes)


@pytest.mark.parametrize(
    ("names", "before", "after"),
    [
        ("fc.weight gate.weight", "model.fc model.gate model", "fc gate -"),
        ("fc.weight gate.weight", "a.b.fc a.b.gate a.b", "fc gate -"),
        ("fc.weight gate.weight", "model.fc model.gate -", "fc gate -"),
        ("fc.weight gate.weight", "model.fc other.gate model", "model.fc other.gate model"),
        ("model.weight gate.weight", "model.fc model.gate model", "model.fc model.gate model"),
        ("w1 w2", "model model.gate model", "model model.gate model"),  # it holds a weight itself
        ("w1 w2", "model.fc model.gate model", "fc gate -"),
        ("w1 w2", "- - -", "- - -"),
    ],
)
def test_a_module_around_the_whole_model_is_left_out(names: str, before: str, after: str) -> None:
    assert unwrapped(paths(before), products(*names.split())) == paths(after)


@pytest.mark.parametrize(
    ("names", "before", "is_counted"),
    [
        ("conv2d_7.w_0 linear_1.w_0", "conv2d_7 linear_1 -", True),
        ("conv2d_7.w_0 linear_1.weight", "conv2d_7 linear_1 -", True),
        ("conv2d_7.weight linear_1.weight", "conv2d_7 linear_1 -", False),
        ("conv2d_7.w_0 linear_1.w_0", "conv2d_7 linear -", False),
        ("conv2d_7.w_0 linear_1.w_0", "conv2d_7 a.linear_1 -", False),
        ("conv2d_7.w_0.x linear_1.w", "conv2d_7 linear_1 -", False),
    ],
)
def test_numbered_variables_are_no_modules(names: str, before: str, is_counted: bool) -> None:
    assert counted(paths(before), products(*names.split())) is is_counted


@pytest.mark.parametrize(
    ("op", "array", "weighs", "counts"),
    [
        ("MatMul", np.eye(2, dtype=np.float32), True, True),
        ("Add", np.arange(2, dtype=np.float32), True, True),
        ("Add", np.ones(1, np.float32), False, False),
        ("Mul", np.float32(2), False, False),
        ("Gather", np.zeros((1, 16), np.int64), False, False),
        ("Gather", np.arange(17) % 2, False, True),
        ("Gather", np.arange(16) % 2, False, False),
    ],
)
def test_the_constants_that_become_parameters(op: str, array: Any, weighs: bool, counts: bool) -> None:
    attributes = "<axis = 1>" if op == "Gather" else ""
    model = parse(f"g (float[2, 2] x) => (float[] y) {{ y = {op}{attributes}(x, w) }}")
    model.graph.output[0].type.Clear()
    model.graph.initializer.append(numpy_helper.from_array(np.asarray(array), "w"))
    (node,) = read_model(model).graph.nodes
    assert (len(weights(node)), len(parameters(node))) == (weighs, counts)


@pytest.mark.parametrize(
    ("shape", "named", "is_matrix"),
    [((2, 3), True, True), ((2, 3), False, False), ((1, 6), True, False), ((6,), True, False), ((2, 1, 3), True, True),
     ((1, 1, 6), True, False)],
)  # fmt: skip
def test_a_matrix_is_longer_than_its_longest_axis(shape: tuple[int, ...], named: bool, is_matrix: bool) -> None:
    names = "layer.weight"
    model = parse("g (float[6] x) => (float[6] y) { y = Add(x, w) }")
    model.graph.output[0].type.Clear()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = shape[-1]
    model.graph.initializer.append(
        numpy_helper.from_array(np.arange(np.prod(shape), dtype=np.float32).reshape(shape), names)
    )
    model.graph.node[0].input[1] = names
    (node,) = read_model(model).graph.nodes
    value = node.inputs[1].value
    assert isinstance(value, Value)
    from emberlet.codegen.records import replace

    assert _is_matrix(value if named else replace(value, origin=None)) is is_matrix
