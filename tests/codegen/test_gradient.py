"""Gradient: derivatives in the generated code, compared with finite differences."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnx
import pytest
from emberlet.errors import ModelError
from onnx import helper
from support.onnx_models import generated, parse

PREVIEW = {"ai.onnx.preview.training": 1}
BOTH = "double[3, 4] x, double[4] w"


def test_the_gradient_is_taken_where_its_inputs_are() -> None:
    model = parse(
        """g (double[2] x, double[2] at) => (double[2] y, double[2] d) {
            y = Mul(x, x)  d = ai.onnx.preview.training.Gradient<xs = ["x"], y = "y">(at)
        }""",
        13,
        **PREVIEW,
    )
    y, d = generated(model, [np.array([1.0, 2.0]), np.array([5.0, 7.0])])
    assert y.tolist() == [1.0, 4.0] and d.tolist() == [10.0, 14.0]


@pytest.mark.parametrize(
    ("function", "xs", "y", "message"),
    [
        ("Erf", ["x"], "y", "derivative of Erf is not supported"),
        ("Neg", ["x"], "q", "no earlier node computes 'q' from x"),
        ("Neg", ["x", "y"], "y", "do not fit 1 inputs"),
    ],
)
def test_what_has_no_derivative_is_refused(function: str, xs: list[str], y: str, message: str) -> None:
    names = ", ".join(f'"{x}"' for x in xs)
    node = f'd = ai.onnx.preview.training.Gradient<xs = [{names}], y = "{y}">(x)'
    with pytest.raises(ModelError, match=message):
        generated(parse(f"g (float[2] x) => (float[2] d) {{ y = {function}(x)  {node} }}", 13, **PREVIEW), [])


@pytest.mark.parametrize(
    ("inputs", "function", "xs"),
    [
        ("double[2, 3] x", "p = Constant<value_float = 3.0>()  a = Pow(x, p)  y = ReduceSum<keepdims = 0>(a)", "x"),
        ("double[2, 3] x, double[3, 2] w", "s = Shape(w)  r = Reshape(x, s)  a = Mul(r, w)  b = Sum(a, w, r)"
         "  y = ReduceSum<keepdims = 0>(b)", "x w"),
        ("double[2, 3] x, double[3] w", "a = ReduceMean<axes = [0], keepdims = 0>(x)  b = Mul(a, w)"
         "  y = ReduceSum<keepdims = 0>(b)", "x w"),
        ("double[2, 3] x, double[2, 1] w", "a = ReduceMean<axes = [1], keepdims = 1>(x)  b = Div(w, a)"
         "  y = ReduceSum<keepdims = 0>(b)", "x w"),
        ("double[2, 3] x, double[2] w", "i = Constant<value_ints = [1]>()  a = ReduceSum<keepdims = 0>(x, i)"
         "  b = Mul(a, w)  y = ReduceSum<keepdims = 0>(b)", "x w"),
        ("double[2, 3] x, double[2, 1] w", "i = Constant<value_ints = [1]>()  a = ReduceSum(x, i)"
         "  b = Mul(a, w)  c = Mul(b, a)  y = ReduceSum<keepdims = 0>(c)", "w x"),
        ("double[2, 3, 4] x, double[4, 2, 3] w", "a = Transpose<perm = [2, 0, 1]>(x)  b = Mul(a, w)  c = Mul(b, b)"
         "  y = ReduceSum<keepdims = 0>(c)", "x w"),
        ("double[2, 3] x, double[3, 4] w", "a = MatMul(x, w)  b = Mul(a, a)  y = ReduceMean<keepdims = 0>(b)", "x w"),
        ("double[3] x, double[3] w", "a = Sub(x, w)  b = Mul(a, a)  e = Exp(w)  y = ReduceSum<keepdims = 0>(b)", "w"),
        ("double[2, 1] x, double[3] w", "a = Sub(w, x)  b = Div(a, x)  c = Mul(b, b)  y = ReduceSum<keepdims = 0>(c)",
         "x w"),
        *((BOTH, function, "x w") for function in (
            "a = Mul(x, w)  b = Sigmoid(a)  y = ReduceSum<keepdims = 0>(b)",
            "a = Div(x, w)  b = Tanh(a)  c = Sub(b, w)  y = ReduceMean(c)",
            "a = Add(x, w)  b = Exp(a)  c = Sqrt(b)  d = Log(c)  e = Mul(d, c)  y = ReduceSum<keepdims = 0>(e)",
            "t = Transpose(x)  p = MatMul(x, t)  q = Neg(p)  n = Relu(q)  m = Add(p, n)  s = ReduceSum<keepdims = 0>(m)"
            "  v = ReduceSum<keepdims = 0>(w)  y = Mul(s, v)",
            "a = Mul(x, x)  b = Mul(a, w)  c = Sin(b)  d = Cos(c)  e = Abs(d)  f = Identity(e)"
            "  y = ReduceSum<keepdims = 0>(f)",
        )),
    ],
)  # fmt: skip
def test_the_derivative_of_each_operator_is_that_of_its_function(inputs: str, function: str, xs: str) -> None:
    random = np.random.default_rng(2)
    made = parse(f"g ({inputs}) => (double y) {{ {function} }}", 13)
    names = xs.split()
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in made.graph.input}
    arrays = {name: random.random(shape) + 0.5 for name, shape in shapes.items()}
    types = {part.split()[-1]: part for part in re.findall(r"double\[[^]]*\] \w+", inputs)}
    outputs = ", ".join(types[x].replace(f" {x}", f" d{x}") for x in names)
    node = f"""{", ".join("d" + x for x in names)} = ai.onnx.preview.training.Gradient<xs = [{
        ", ".join(f'"{x}"' for x in names)
    }], y = "y">({", ".join(names)})"""
    got = generated(parse(f"g ({inputs}) => ({outputs}) {{ {function}  {node} }}", 13, **PREVIEW), [*arrays.values()])
    for x, d in zip(names, got, strict=True):
        assert list(d.shape) == shapes[x]
        for i in range(d.size):
            values = []
            for step in (1e-5, -1e-5):
                moved = {**arrays, x: arrays[x].copy()}
                moved[x].flat[i] += step
                values.append(generated(made, [*moved.values()])[0].sum())
            assert d.flat[i] == pytest.approx((values[0] - values[1]) / 2e-5, rel=1e-5, abs=1e-7)


GRADIENT = "ai.onnx.preview.training.Gradient"


@pytest.mark.parametrize(
    ("nodes", "want"),
    [
        (f'y = Mul(x, x)  d, e = {GRADIENT}<xs = ["x", "w"], y = "y">(x, w)', [[2, 4], [0, 0]]),  # one y is without
        (f'y = Mul(x, w)  d, e = {GRADIENT}<xs = ["x"], zs = ["w"], y = "y">(x, w)  e = Neg(w)', [[3, 5], [-3, -5]]),
        (f'y = Mul(x, w)  e = {GRADIENT}<xs = ["x"], zs = ["w"], y = "y">(x, x)  d = Neg(w)', [[-3, -5], [1, 2]]),
        (f'y = Mul(x, w)  d, e = {GRADIENT}<xs = ["x", "w"], y = "y">(x, x)', [[1, 2], [1, 2]]),  # one tensor for both
        (f'a = Mul(x, w)  y = Mul(a, a)  d = {GRADIENT}<xs = ["a"], y = "y">(a)'
         f'  e = {GRADIENT}<xs = ["w"], y = "y">(w)', [[6, 20], [6, 40]]),
        (f'a = Neg(x)  b = Mul(x, w)  y = Add(b, w)  d, e = {GRADIENT}<xs = ["x", "w"], y = "y">(x, w)  f = Neg(a)',
         [[3, 5], [2, 3]]),
        (f'y = Mul(x, w)  , e = {GRADIENT}<xs = ["x", "w"], y = "y">(x, w)  d = Neg(e)', [[-1, -2], [1, 2]]),
    ],
)  # fmt: skip
def test_each_input_of_a_gradient_gets_its_own(nodes: str, want: list[list[float]]) -> None:
    head = "g (double[2] x, double[2] w) => (double[2] d, double[2] e)"
    if "d, e = " in nodes and "e = Neg" in nodes:
        nodes = nodes.replace("d, e = ", "d = ")
    model = parse(f"{head} {{ {nodes.replace('  , e =', '  none, e =')} }}", 13, **PREVIEW)
    for n in model.graph.node:
        n.output[:] = ["" if o == "none" else o for o in n.output]
    got = generated(model, [np.array([1.0, 2.0]), np.array([3.0, 5.0])])
    assert [g.tolist() for g in got] == want


@pytest.mark.parametrize(
    ("attributes", "inputs", "outputs", "message"),
    [
        ({"xs": ["x"], "y": "y"}, ["x"], ["d", "e"], "1 inputs and 2 outputs"),
        ({"xs": ["x", "w"], "y": "y"}, ["x"], ["d"], "do not fit 1 inputs"),
        ({"xs": ["x"], "y": "y", "zs": ["w"]}, ["x"], ["d"], "do not fit 1 inputs"),
        ({"xs": ["x"], "y": "y"}, ["x", "w"], ["d"], "do not fit 2 inputs"),
        ({"xs": [], "y": "y"}, [], [], "has 0 inputs, expected at least 1"),
        ({"xs": [], "zs": ["x"], "y": "y"}, ["x"], ["d"], "do not fit 1 inputs and 1 outputs"),
        ({"xs": ["x"], "y": "w"}, ["x"], ["d"], "no earlier node computes 'w' from x"),
        ({"xs": ["w", "v"], "y": "y"}, ["w", "v"], ["d"], "no earlier node computes 'y' from w, v"),
    ],
)
def test_a_gradient_whose_names_do_not_fit_is_refused(
    attributes: dict[str, Any], inputs: list[str], outputs: list[str], message: str
) -> None:
    model = parse("g (float[2] x, float[2] w, float[2] v) => (float[2] y) { y = Neg(x) }", 13, **PREVIEW)
    node = helper.make_node("Gradient", inputs, outputs, domain="ai.onnx.preview.training")
    for name, value in attributes.items():
        kind = onnx.AttributeProto.STRINGS if isinstance(value, list) else None
        node.attribute.append(helper.make_attribute(name, value, attr_type=kind))
    model.graph.node.append(node)
    with pytest.raises(ModelError, match=message):
        generated(model, [])


def test_a_function_with_an_operators_name_has_no_derivative() -> None:
    model = parse(f'g (float[2] x) => (float[2] d) {{ y = own.Neg(x)  d = {GRADIENT}<xs = ["x"], y = "y">(x) }}', 13,
                  **PREVIEW, own=1)  # fmt: skip
    function = helper.make_function(
        "own", "Neg", ["a"], ["b"], [helper.make_node("Exp", ["a"], ["b"])], [helper.make_opsetid("", 13)]
    )
    model.functions.append(function)
    with pytest.raises(ModelError, match="derivative of Neg is not supported"):
        generated(model, [])
