"""A keyword that a generated model leaves out has, in the functional layer, the value that ONNX gives it."""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Iterator

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn
from emberlet.functional.elementwise.activations_by_name import ACTIVATIONS
from emberlet.micro.builder.functions import _BELOW_ONE, FUNCTIONS

from tools.paths import ROOT


def left_out() -> Iterator[tuple[str, str, str, object]]:
    """(where, function, keyword, its usual value) of every `e.call("function", …, keyword=default(…, literal))`."""
    for file in sorted((ROOT / "codegen" / "ops").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "call"):
                continue
            if not (node.args and isinstance(node.args[0], ast.Constant)):
                continue
            for k in node.keywords:
                if k.arg and isinstance(k.value, ast.Call) and ast.unparse(k.value.func) == "default":
                    try:
                        usual = ast.literal_eval(k.value.args[1])
                    except ValueError:
                        continue
                    yield f"{file.name}:{k.value.lineno}", node.args[0].value, k.arg, usual


LEFT_OUT = list(left_out())


def test_there_are_defaults_to_check():
    assert len(LEFT_OUT) > 30


@pytest.mark.parametrize(("where", "function", "keyword", "usual"), LEFT_OUT, ids=lambda v: str(v))
def test_what_is_left_out_is_the_functions_default(where, function, keyword, usual):
    default = inspect.signature(getattr(F, function)).parameters[keyword].default
    if isinstance(usual, float) and isinstance(default, float):
        assert np.float32(usual) == np.float32(default), where  # ONNX's attributes are float32
    else:
        assert default == usual, where


LAYERS = {
    "Elu": F.elu, "Gelu": F.gelu, "HardSigmoid": F.hard_sigmoid, "LeakyRelu": F.leaky_relu, "Softplus": F.softplus,
    "Softmax": F.softmax, "LogSoftmax": F.log_softmax, "Glu": F.glu,
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_has_its_functions_defaults(name):
    wanted = {p.name: p.default for p in inspect.signature(LAYERS[name]).parameters.values() if p.name != "x"}
    found = {p.name: p.default for p in inspect.signature(getattr(nn, name)).parameters.values()}
    assert {k: v for k, v in found.items() if v is not inspect.Parameter.empty} == {
        k: wanted[k] for k in found if k in wanted
    }


# What micro computes by itself is what F computes: name -> the function of x and the parameters, and what they may be.
OF_MICRO = {
    "affine": (lambda x, a, b: x * a + b, 2),
    "clip": (lambda x, a, b: F.clip(x, a, b), 2),
    "gelu_tanh": (lambda x: F.gelu(x, "tanh"), 0),
    "pow": (lambda x, a: abs(x) ** a, 1),
    "log": (lambda x: F.log(abs(x) + 0.1), 0),
    "sqrt": (lambda x: F.sqrt(abs(x)), 0),
    "asin": (lambda x: F.asin(F.clip(x, -1, 1)), 0),
    "acos": (lambda x: F.acos(F.clip(x, -1, 1)), 0),
    "acosh": (lambda x: F.acosh(F.clip(x, 1)), 0),
    "atanh": (lambda x: F.atanh(F.clip(x, -_BELOW_ONE, _BELOW_ONE)), 0),
    "shrink": (lambda x, bias, threshold: F.shrink(x, threshold, bias), 2),
    "over": (lambda x, a: (x > a).astype("float64"), 1),
    "inverse": (lambda x: 1 / x, 0),
}
SHIFTED = {"pow": lambda v: np.abs(v), "log": lambda v: np.abs(v) + 0.1, "sqrt": lambda v: np.abs(v)}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_micro_means_what_the_functional_layer_means(name):
    """The NumPy form and the MicroPython lines of each function of micro, at random points, against F."""
    draw = np.random.default_rng(len(name))
    function, count = OF_MICRO.get(name, (getattr(F, name, None), None))
    if count is None:
        count = max((line.count("{1}") and 2) or (line.count("{0}") and 1) for line in FUNCTIONS[name].source)
    for _ in range(20):
        parameters = sorted(float(p) for p in draw.uniform(0.1, 1.5, count))
        v = np.float64(np.float32(draw.normal(scale=4)))
        expected = function(emberlet.asarray(float(v), dtype="float64", backend="numpy"), *parameters).item()
        point = SHIFTED.get(name, lambda v: v)(v)
        assert FUNCTIONS[name].numpy(np.asarray(point), *parameters) == pytest.approx(expected, rel=1e-9, abs=1e-12)
        names = {**vars(math), "v": float(point), "abs": abs, "float": float}
        for line in FUNCTIONS[name].source:
            exec(line.format(*parameters), names)
        assert names["v"] == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_takes_its_parameters_in_onnxs_order(name):
    function, parameters = ACTIVATIONS[name]
    signature = list(inspect.signature(function).parameters)
    assert signature == ["x", *parameters] or name in ("Softplus",)
    x = emberlet.asarray([-2.0, 0.5, 3.0])
    values = [0.75, 0.25][: len(parameters)]
    given = F.activation(name.upper(), values[:1], values[1:])(x)
    assert given.tolist() == function(x, *values).tolist()
    assert F.activation(name)(x).tolist() == function(x).tolist()
