"""Gradient: derivatives in the generated code, compared with finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from emberlet.errors import ModelError
from support.onnx_models import generated, parse

PREVIEW = {"ai.onnx.preview.training": 1}
HEAD = "g (double[3, 4] x, double[4] w) => (double[3, 4] dx, double[4] dw)"
TAIL = 'dx, dw = ai.onnx.preview.training.Gradient<xs = ["x", "w"], y = "y">(x, w)'


@pytest.mark.parametrize(
    "function",
    [
        "a = Mul(x, w)  b = Sigmoid(a)  y = ReduceSum<keepdims = 0>(b)",
        "a = Div(x, w)  b = Tanh(a)  c = Sub(b, w)  y = ReduceMean(c)",
        "a = Add(x, w)  b = Exp(a)  c = Sqrt(b)  d = Log(c)  e = Mul(d, c)  y = ReduceSum<keepdims = 0>(e)",
        "t = Transpose(x)  p = MatMul(x, t)  q = Neg(p)  n = Relu(q)  m = Add(p, n)  s = ReduceSum<keepdims = 0>(m)"
        "  v = ReduceSum<keepdims = 0>(w)  y = Mul(s, v)",
        "a = Mul(x, x)  b = Mul(a, w)  c = Sin(b)  d = Cos(c)  e = Abs(d)  f = Identity(e)"
        "  y = ReduceSum<keepdims = 0>(f)",
    ],
)
def test_derivatives_are_those_of_the_function(function: str) -> None:
    random = np.random.default_rng(1)
    x, w = random.random((3, 4)) + 0.5, random.random(4) + 0.5
    dx, dw = generated(parse(f"{HEAD} {{ {function}  {TAIL} }}", 13, **PREVIEW), [x, w])
    value = parse(f"g (double[3, 4] x, double[4] w) => (double y) {{ {function} }}", 13)

    def moved(a: np.ndarray, i: int, by: float) -> np.ndarray:
        out = a.copy()
        out.flat[i] += by
        return out

    h = 1e-5
    for i in range(x.size):
        up, down = (generated(value, [moved(x, i, d), w])[0].sum() for d in (h, -h))
        assert dx.flat[i] == pytest.approx((up - down) / (2 * h), rel=1e-5, abs=1e-7)
    for i in range(w.size):
        up, down = (generated(value, [x, moved(w, i, d)])[0].sum() for d in (h, -h))
        assert dw.flat[i] == pytest.approx((up - down) / (2 * h), rel=1e-5, abs=1e-7)


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
