"""Activations and normalizations against their formulas in float64; overrides against the composites."""

from __future__ import annotations

import math

import emberlet
import numpy as np
import pytest
from emberlet import dtypes
from emberlet import functional as F
from emberlet.backend import get_backend
from emberlet.errors import ShapeError
from emberlet.host.interface.declarations import read
from support.backends import EPSILON, numpy_dtype, same, tensor
from support.rows import every

X = np.array([[-1000.0, -20, -3.5, -1, -0.5, -0.0], [0, 0.25, 1, 2.5, 20, 1000]])
ERF = np.vectorize(math.erf)


def sigmoid(x):
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


FORMULAS = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "leaky_relu": lambda x: np.where(x < 0, 0.01 * x, x),
    "sigmoid": sigmoid,
    "hard_sigmoid": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "silu": lambda x: x * sigmoid(x),
    "swish": lambda x: x * sigmoid(x),
    "hard_swish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "gelu": lambda x: 0.5 * x * (1 + ERF(x / math.sqrt(2))),
    "softplus": softplus,
    "softsign": lambda x: x / (1 + np.abs(x)),
    "log_sigmoid": lambda x: -softplus(-x),
    "mish": lambda x: x * np.tanh(softplus(x)),
    "elu": lambda x: np.where(x < 0, np.expm1(np.minimum(x, 0)), x),
    "selu": lambda x: 1.0507009873554805 * np.where(x < 0, 1.6732632423543772 * np.expm1(np.minimum(x, 0)), x),
    "celu": lambda x: np.maximum(x, 0) + np.minimum(0, np.expm1(np.minimum(x, 0))),
    "thresholded_relu": lambda x: np.where(x > 1, x, 0),
    "shrink": lambda x: np.where(x > 0.5, x, np.where(x < -0.5, x, 0)),
    "hardtanh": lambda x: np.clip(x, -1, 1),
    "softmax": softmax,
    "softmin": lambda x: softmax(-x),
    "quiet_softmax": lambda x: np.exp(x - np.maximum(x.max(-1, keepdims=True), 0))
    / (np.exp(-np.maximum(x.max(-1, keepdims=True), 0))
       + np.exp(x - np.maximum(x.max(-1, keepdims=True), 0)).sum(-1, keepdims=True)),
    "log_softmax": lambda x: x - x.max(-1, keepdims=True)
    - np.log(np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True)),
    "hardmax": lambda x: (np.arange(x.shape[-1]) == x.argmax(-1)[:, None]).astype(x.dtype),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@every("name", FORMULAS)
def test_activation_equals_its_formula(backend, name, dtype):
    x = X.astype(numpy_dtype(dtype))
    with np.errstate(all="ignore"):
        expected = FORMULAS[name](x.astype(np.float64)).astype(x.dtype)
    precision = EPSILON[dtype]
    # Differences of nearly equal numbers (1 + erf near -1, exp of large arguments) keep fewer digits.
    same(getattr(F, name)(tensor(x)), expected, rtol=40 * precision, atol=8 * precision)


def test_softmax_of_special_values(backend):
    x = np.array([[-np.inf, 0, 1], [np.nan, 0, 1], [np.inf, 0, 1], [-np.inf, -np.inf, -np.inf]], np.float32)
    with np.errstate(all="ignore"):
        expected = softmax(x)
    expected[2] = np.nan
    same(F.softmax(tensor(x)), expected, rtol=1e-6)


def test_integers_have_no_softmax_of_their_own(backend):
    assert F.softmax(emberlet.arange(3)).dtype.name == "float32"


# These need an axis, or more than one argument.
SPECIAL = (
    "contains_nan", "softmax", "softmin", "quiet_softmax", "log_softmax", "hardmax", "glu", "activation", "threshold",
    "view_as_complex", "view_as_real",
)  # fmt: skip


@every(
    "function",
    [d.name for d in read() if d.family.startswith("elementwise.") and d.tensors() == ["x"] and d.name not in SPECIAL],
)
def test_an_elementwise_function_takes_a_tensor_without_axes(backend, function):
    """As for a sequence of one element."""
    value = 3 if function.startswith(("bitwise", "logical")) else 0.625
    one, none = (getattr(F, function)(emberlet.asarray(v, backend=backend)) for v in ([value], value))
    assert none.shape == () and one.shape == (1,)
    same(none, np.asarray(one)[0], rtol=0)


@pytest.mark.parametrize("backend", ["python", "numpy"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_sigmoid_is_exact_far_out_and_keeps_nan(backend, dtype):
    x = np.array(
        [-np.inf, -1e5, -745.2, -88.9, -17.0, -0.5, -0.0, 0.0, 0.5, 1.5, 17.0, 88.9, 1e5, np.inf, np.nan], dtype
    )
    home = get_backend(backend)
    found = F.sigmoid(home.from_list(x.tolist(), dtypes.dtype(dtype), x.shape)).tolist()
    with np.errstate(over="ignore"):
        want = 1 / (1 + np.exp(-x.astype(np.longdouble)))
    np.testing.assert_allclose(found, want.astype(dtype), rtol=2e-7 if dtype == "float32" else 1e-15, atol=1e-38)


def test_a_prelu_slope_that_does_not_broadcast_to_x_is_refused(backend):
    with pytest.raises(
        ShapeError, match=r"prelu: alpha of shape \(4, 2, 3\) does not broadcast to x's shape, \(2, 3\)"
    ):
        F.prelu(tensor(np.ones((2, 3))), tensor(np.ones((4, 2, 3))))
