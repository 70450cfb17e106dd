"""Functions of a model are read in place of their calls: onnxruntime's results, whatever they refer to."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from emberlet.codegen import load
from emberlet.codegen.reader.graphs import MAX_DEPTH
from emberlet.errors import ModelError
from support.onnx_models import check

HEAD = '<ir_version: 10, opset_import: ["": 21, "my": 1]>'
OWN = '<domain: "my", opset_import: ["": 21, "my": 1]>'
X = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]], np.float32)
SCALE = "f <alpha> (x) => (y) { c = Constant<value_float: float = @alpha>()  y = Mul(x, c) }"
DEFAULT = "f <alpha: float = 3.0> (x) => (y) { c = Constant<value_float: float = @alpha>()  y = Mul(x, c) }"
REDUCE = "f <keep> (x) => (y) { y = ReduceSum<keepdims: int = @keep>(x) }"


def model(body: str, *functions: str, inputs: str = "float[N, 3] x", output: str = "float[N, 3] y") -> onnx.ModelProto:
    text = f"{HEAD} g ({inputs}) => ({output}) {{ {body} }} " + " ".join(f"{OWN} {f}" for f in functions)
    made = onnx.parser.parse_model(text)
    if output.endswith(" y") and "[" not in output:
        made.graph.output[0].type.tensor_type.ClearField("shape")
    return made


@pytest.mark.parametrize(
    ("body", "functions"),
    [
        ("y = my.f(x)", ["f (x) => (y) { y = Neg(x) }"]),
        ("y = my.f<alpha = 2.0>(x)", [SCALE]),
        ("y = my.f<alpha = 2.0>(x)", [DEFAULT]),
        ("y = my.f(x)", [DEFAULT]),
        ("a = my.f<alpha = 2.0>(x)  y = my.f<alpha = 5.0>(a)", [DEFAULT]),
        # an attribute that the call does not give is the operator's own default
        ("y = my.f(x)", ["f <slope> (x) => (y) { y = LeakyRelu<alpha: float = @slope>(x) }"]),
        ("y = my.f<slope = 0.5>(x)", ["f <slope> (x) => (y) { y = LeakyRelu<alpha: float = @slope>(x) }"]),
        # a function that calls a function, with names of its own
        ("y = my.g(x)",
         ["f (x) => (y) { t = Exp(x)  y = Neg(t) }", "g (x) => (y) { t = my.f(x)  u = my.f(t)  y = Add(t, u) }"]),
        ("y = my.g<b = 2.0>(x)", [SCALE, "g <b> (x) => (y) { y = my.f<alpha: float = @b>(x) }"]),
        ("y = my.g(x)", [DEFAULT, "g <b> (x) => (y) { y = my.f<alpha: float = @b>(x) }"]),
        # several outputs, some of which nothing reads
        ("a, y = my.f(x)", ["f (x) => (p, q) { p = Exp(x)  q = Neg(x) }"]),
        ("y, a = my.f(x)", ["f (x) => (p, q) { p = Exp(x)  q = Neg(x) }"]),
        ("a, b = my.f(x)  y = Sub(a, b)", ["f (x) => (p, q) { p = Exp(x)  q = Identity(x) }"]),
        ("y = my.f(x)", ["f (x) => (x2) { x2 = Identity(x) }"]),
        # names inside that are names outside too
        ("t = Exp(x)  a = my.f(t)  y = Add(a, t)", ["f (x) => (y) { t = Neg(x)  y = Add(t, x) }"]),
    ],
)  # fmt: skip
def test_a_call_computes_the_functions_body(body: str, functions: list[str]) -> None:
    check(model(body, *functions), X)


@pytest.mark.parametrize(
    ("function", "want"),
    [
        ("f (x) => (p, q) { p = Exp(x)  q = Neg(x) }", np.exp(X)),  # a call may take the first outputs alone
        ("f (x) => (y) { y = Neg(t)  t = Exp(x) }", -np.exp(X)),  # nodes may be in any order
    ],
)
def test_what_onnxruntime_does_not_take(function: str, want: Any) -> None:
    np.testing.assert_allclose(np.asarray(load(model("y = my.f(x)", function), "numpy")(X)), want, rtol=1e-6)


@pytest.mark.parametrize("keep", [0, 1])
def test_an_attribute_decides_the_shape(keep: int) -> None:
    check(model(f"y = my.f<keep = {keep}>(x)", REDUCE, output="float y"), X)


BRANCHES = """f <alpha> (x, c) => (y) {
    y = If(c) <then_branch = t () => (p) { k = Constant<value_float: float = @alpha>()  p = Mul(x, k) },
               else_branch = e () => (q) { q = If(c) <then_branch = a () => (r) { r = Neg(x) },
                   else_branch = b () => (s) { m = Constant<value_float: float = @alpha>()  s = Add(x, m) }> }>
}"""


@pytest.mark.parametrize("taken", [True, False])
def test_attributes_reach_into_the_bodies_of_branches(taken: bool) -> None:
    made = model("y = my.f<alpha = 4.0>(x, c)", BRANCHES, inputs="float[N, 3] x, bool c")
    check(made, X, np.array(taken))


def test_a_function_has_its_own_opset() -> None:
    made = model(
        "y = my.f(x)", "f (x) => (y) { a = Constant<value_ints = [1]>()  y = Unsqueeze(x, a) }", output="float y"
    )
    older = onnx.parser.parse_model(
        f'{HEAD} g (float[N, 3] x) => (float y) {{ y = my.f(x) }} <domain: "my", opset_import: ["": 12]> '
        "f (x) => (y) { y = Unsqueeze<axes = [1]>(x) }"
    )
    older.graph.output[0].type.tensor_type.ClearField("shape")
    for one in (made, older):
        found = load(one, "numpy")(X)
        assert found.shape == (2, 1, 3)


def test_an_input_that_a_call_leaves_out_is_absent() -> None:
    clip = "f (x, low, high) => (y) { y = Clip(x, low, high) }"
    made = model('y = my.f(x, "", two)', clip)
    made.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(2), "two"))
    found = load(made, "numpy")(X)
    assert found.tolist() == np.minimum(X, 2).tolist()
    short = model("y = my.f(x, two)", clip)
    short.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(2), "two"))
    assert load(short, "numpy")(X).tolist() == np.maximum(X, 2).tolist()


@pytest.mark.parametrize(
    ("body", "functions", "says"),
    [
        ("y = my.g(x)", ["f (x) => (y) { y = Neg(x) }"], "the operator is not supported|no such"),
        ("y = my.f(x)", ["f (x) => (y) { z = Neg(x) }"], "the function's body does not produce 'y'"),
        ("[call] y = my.f(x)", ["f (x) => (y) { [inside] y = Neg(nowhere) }"], r"in 'call' \(f\), node 'call/inside'"),
        ("y = my.f(x)", ["f (x) => (y) { y = my.f(x) }"], "deeper than|expand to more than"),
        ("y = my.f(x)", ["f <axis> (x) => (y) { y = Concat<axis: int = @axis>(x, x) }"], "'axis' .* is missing"),
    ],
)  # fmt: skip
def test_a_function_that_cannot_be_read_is_refused(body: str, functions: list[str], says: str) -> None:
    with pytest.raises(ModelError, match=says):
        load(model(body, *functions))


@pytest.mark.parametrize(("depth", "fits"), [(MAX_DEPTH - 1, True), (MAX_DEPTH, False)])
def test_functions_call_each_other_64_levels_deep(depth: int, fits: bool) -> None:
    functions = ["f0 (x) => (y) { y = Neg(x) }"]
    functions += [f"f{i} (x) => (y) {{ y = my.f{i - 1}(x) }}" for i in range(1, depth)]
    made = model(f"y = my.f{depth - 1}(x)", *functions)
    if fits:
        assert load(made, "numpy")(X).tolist() == (-X).tolist()
    else:
        with pytest.raises(ModelError, match=f"deeper than {MAX_DEPTH}"):
            load(made, "numpy")


# -- attributes of every kind


@pytest.mark.parametrize(
    ("name", "value", "want"),
    [
        ("value_int", 7, 7), ("value_ints", [1, -2], [1, -2]), ("value_float", 0.1, np.float32(0.1)),
        ("value_floats", [0.5, 1.5], [0.5, 1.5]), ("value_string", "é", "é"), ("value_strings", ["a", "b"], ["a", "b"]),
        ("value", onnx.numpy_helper.from_array(X), X.tolist()),
        ("sparse_value", onnx.helper.make_sparse_tensor(
            onnx.numpy_helper.from_array(np.float32([5])), onnx.numpy_helper.from_array(np.array([1])), [3]),
         [0, 5, 0]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("referred", [False, True])
def test_a_constant_of_every_kind(name: str, value: Any, want: Any, referred: bool) -> None:
    constant = onnx.helper.make_node("Constant", [], ["y"], **{name: value})
    out = onnx.helper.make_empty_tensor_value_info("y")
    imports = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid("my", 1)]
    if referred:
        given = onnx.helper.make_node("f", [], ["y"], domain="my", **{"k": value})
        attribute = constant.attribute.pop()
        reference = constant.attribute.add()
        reference.name, reference.type, reference.ref_attr_name = attribute.name, attribute.type, "k"
        function = onnx.helper.make_function("my", "f", [], ["y"], [constant], imports[:1], ["k"])
        graph = onnx.helper.make_graph([given], "g", [], [out])
        made = onnx.helper.make_model(graph, opset_imports=imports, functions=[function], ir_version=10)
    else:
        graph = onnx.helper.make_graph([constant], "g", [], [out])
        made = onnx.helper.make_model(graph, opset_imports=imports, ir_version=10)
    found = load(made, "numpy")()
    assert found.tolist() == want
