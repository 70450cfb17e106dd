"""Activations on a microcontroller equal those of `emberlet.functional`, in NumPy and in MicroPython."""

from __future__ import annotations

import math
from collections.abc import Callable

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.micro.builder.functions import FROM_MATH, FUNCTIONS, apply, lines
from support.rows import every

# Functions whose name or parameters differ from F's; the others are called like F's.
NAMED_OTHERWISE: dict[str, Callable[..., emberlet.Tensor]] = {
    "affine": lambda x, a, b: x * a + b,
    "shrink": lambda x, bias, threshold: F.shrink(x, lambd=threshold, bias=bias),
    "greater": lambda x, a: F.cast(x > a, emberlet.float64),
    "greater_equal": lambda x, a: F.cast(x >= a, emberlet.float64),
    "less": lambda x, a: F.cast(x < a, emberlet.float64),
    "less_equal": lambda x, a: F.cast(x <= a, emberlet.float64),
    "equal": lambda x, a: F.cast(x == a, emberlet.float64),
    "nonzero": lambda x: F.cast(x != 0, emberlet.float64),
    "inverse": lambda x: 1 / F.where(x == 0, 1.0, x),
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
}
PARAMETERS = dict.fromkeys(FUNCTIONS, 0) | {
    "affine": 2, "clip": 2, "leaky_relu": 1, "celu": 1, "thresholded_relu": 1, "elu": 1, "selu": 2, "hard_sigmoid": 2,
    "pow": 1, "shrink": 2, "greater": 1, "greater_equal": 1, "less": 1, "less_equal": 1,
    "equal": 1,
}  # fmt: skip
POSITIVE = ("log", "sqrt", "pow")
DOMAINS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "reciprocal": lambda x: x,
    "asin": lambda x: np.append(np.clip(x, -1, 1), 0.0),
    "acos": lambda x: np.append(np.clip(x, -1, 1), 0.0),
    "atanh": lambda x: np.append(np.tanh(x / 4), 0.0),
    "acosh": lambda x: np.append(np.abs(x), 0.0) + 1,
} | dict.fromkeys(POSITIVE, lambda x: np.abs(x) + 1e-3)

NAN, INF = math.nan, math.inf
SPECIAL = (NAN, INF, -INF, -0.0, 0.0)
OTHER_ON_BOARDS: dict[str, tuple[float, ...]] = {
    # Arguments beyond the domain or the range are taken to their end, as MicroPython reports them as errors.
    "log": (NAN, -INF, -0.0, 0.0), "exp": (NAN, INF), "sqrt": (NAN, -INF),
    "reciprocal": (-0.0, 0.0), "acosh": (NAN, -INF, -0.0, 0.0),
    **dict.fromkeys(("asin", "acos", "atanh", "sinh", "cosh"), (INF, -INF)),
    # NaN fails each comparison, and so takes the last branch.
    **dict.fromkeys(("sigmoid", "softplus", "sign"), (NAN,)),
    # At -inf `functional` multiplies by zero; boards divide, or choose zero.
    "hard_swish": (-INF,), "silu": (-INF,),
}  # fmt: skip
"""Special numbers of which a board's function gives another number than `emberlet.functional`'s."""


def _of_functional(name: str, x: np.ndarray, parameters: tuple[float, ...]) -> np.ndarray:
    function = NAMED_OTHERWISE.get(name) or getattr(F, name)
    return np.asarray(function(emberlet.asarray(x, backend="numpy"), *parameters))


def _as_micropython(chain: tuple[tuple[str, tuple[float, ...]], ...], x: np.ndarray) -> list[float]:
    program = compile("\n".join(lines(chain)), "kernel", "exec")
    out = []
    for value in x.tolist():
        names = {name: getattr(math, name) for name in FROM_MATH} | {"v": value}
        exec(program, names)
        out.append(names["v"])
    return out


@pytest.mark.parametrize("seed", range(3))
@every("name", FUNCTIONS)
def test_a_function_is_that_of_the_functional_layer(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.normal(0, 1, 40), rng.normal(0, 8, 40), [3.0, -3.0, 1.0, -1.0, 0.5, -0.5, 2.5]])
    x = DOMAINS[name](x) if name in DOMAINS else np.append(x, 0.0)
    parameters = tuple(np.sort(rng.uniform(0.1, 2, PARAMETERS[name])).tolist())
    wanted = _of_functional(name, x, parameters)
    chain = ((name, parameters),)
    np.testing.assert_allclose(apply(chain, x), wanted, 1e-6, 1e-7)
    np.testing.assert_allclose(_as_micropython(chain, x), wanted, 1e-6, 1e-7)


@every("name", [name for name in FUNCTIONS if name not in ("reciprocal", "pow")])
def test_a_function_of_a_far_number_is_a_number(name: str) -> None:
    x = np.array([-1e4, -89.0, 89.0, 1e4])
    chain = ((name, (0.5,) * PARAMETERS[name]),)
    found = apply(chain, x)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(_as_micropython(chain, x), found, 1e-6, 1e-7)


@every("name", FUNCTIONS)
def test_a_function_of_a_special_number_is_that_of_the_functional_layer(name: str) -> None:
    x = np.array([v for v in SPECIAL if repr(v) not in map(repr, OTHER_ON_BOARDS.get(name, ()))])
    for parameters in {"clip": ((-2.0, 2.0), (-2.0, -2.0), (0.0, INF))}.get(name, ((0.5,) * PARAMETERS[name],)):
        wanted = _of_functional(name, x, parameters)
        if name == "clip":
            wanted = np.clip(wanted, -1e38, 1e38)  # where there is no bound
        np.testing.assert_allclose(apply(((name, parameters),), x), wanted, 1e-6, 1e-7)


def test_a_parameter_that_is_nan_is_a_number_of_micropython() -> None:
    assert math.isnan(_as_micropython((("affine", (1.0, NAN)),), np.ones(1))[0])
