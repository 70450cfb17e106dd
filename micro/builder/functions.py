"""Functions of one number: in NumPy, for tables of 256 bytes, and as MicroPython source, for float32 models.

`emberlet.functional` defines each of them; tests/micro/test_functions.py compares both forms with it.

A function is a chain of steps `(name, parameters)`, so that adjacent functions merge into one table or one loop. The
steps between "start" and "times_start" compute a factor for the chain's own argument, as in x * sigmoid(x).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import erf, inf

import numpy as np
import numpy.typing as npt
from emberlet.errors import UnsupportedError

Array = npt.NDArray[np.float64]
Step = tuple[str, tuple[float, ...]]
Chain = tuple[Step, ...]


@dataclass(frozen=True)
class Function:
    """numpy: a function of an array and the parameters; source: MicroPython lines that change `v`, with the parameters
    as {0}, {1}, …"""

    numpy: Callable[..., Array]
    source: tuple[str, ...]


_erf = np.vectorize(erf, otypes=[np.float64])


def _sigmoid(v: Array) -> Array:
    return 1 / (1 + np.exp(-np.clip(v, -700, 700)))


def _power(v: Array, a: float) -> Array:
    with np.errstate(all="ignore"):
        return np.power(v, a)


def _softplus(v: Array) -> Array:
    return np.logaddexp(0, v)


# An exponential overflows in 32-bit floats past 88, which MicroPython reports as an error.
_EXP = "exp(v if v < 88 else 88)"
_EXP_MINUS = "exp(-v if v > -88 else 88)"

# MicroPython also reports arguments outside a function's domain, and infinite results, as errors.
POWER = (
    "t = v",
    "try:",
    "    v = pow(t, {0})",
    "except (ValueError, OverflowError):",
    "    v = float('nan' if t < 0 and {0} % 1 else 'inf')",
)
_UNIT = "-1 if v < -1 else 1 if v > 1 else v"
_SMALL = "-88 if v < -88 else 88 if v > 88 else v"
_BELOW_ONE = 0.9999999

FUNCTIONS: dict[str, Function] = {
    "affine": Function(lambda v, a, b: v * a + b, ("v = v * {0} + {1}",)),
    "clip": Function(lambda v, a, b: np.clip(v, a, b), ("v = {0} if v < {0} else {1} if v > {1} else v",)),
    "leaky_relu": Function(lambda v, a: np.where(v < 0, v * a, v), ("v = v if v >= 0 else v * {0}",)),
    "celu": Function(
        lambda v, a: np.where(v < 0, a * np.expm1(np.minimum(v, 0) / a), v),
        ("v = v if v >= 0 else {0} * (exp(v / {0}) - 1)",),
    ),
    "thresholded_relu": Function(lambda v, a: np.where(v > a, v, 0), ("v = v if v > {0} else 0.0",)),
    "elu": Function(
        lambda v, a: np.where(v < 0, a * np.expm1(np.minimum(v, 0)), v), ("v = v if v >= 0 else {0} * (exp(v) - 1)",)
    ),
    "selu": Function(
        lambda v, a, g: g * np.where(v < 0, a * np.expm1(np.minimum(v, 0)), v),
        ("v = {1} * (v if v >= 0 else {0} * (exp(v) - 1))",),
    ),
    "sigmoid": Function(_sigmoid, ("v = 1 / (1 + exp(-v)) if v > -88 else 0.0",)),
    "silu": Function(lambda v: v * _sigmoid(v), (f"v = v / (1 + {_EXP_MINUS})",)),
    "tanh": Function(np.tanh, ("v = tanh(v)",)),
    "gelu": Function(lambda v: v / 2 * (1 + _erf(v / 2**0.5)), ("v = v * 0.5 * (1 + erf(v * 0.7071067811865476))",)),
    "gelu_tanh": Function(
        lambda v: v / 2 * (1 + np.tanh(0.7978845608028654 * (v + 0.044715 * v**3))),
        ("v = v * 0.5 * (1 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)))",),
    ),
    "hard_sigmoid": Function(
        lambda v, a, b: np.clip(v * a + b, 0, 1), ("v = v * {0} + {1}", "v = 0.0 if v < 0 else 1.0 if v > 1 else v")
    ),
    "hard_swish": Function(
        lambda v: v * np.clip(v / 6 + 0.5, 0, 1),
        ("t = v / 6 + 0.5", "v = 0.0 if t < 0 else v if t > 1 else v * t"),
    ),
    "softplus": Function(_softplus, (f"v = v if v > 20 else log(1 + {_EXP})",)),
    "softsign": Function(lambda v: v / (1 + np.abs(v)), ("v = v / (1 + abs(v))",)),
    "mish": Function(lambda v: v * np.tanh(_softplus(v)), (f"v = v * tanh(v if v > 20 else log(1 + {_EXP}))",)),
    "exp": Function(lambda v: np.exp(np.minimum(v, 88)), (f"v = {_EXP}",)),
    "log": Function(lambda v: np.log(np.maximum(v, 1e-38)), ("v = log(v if v > 1e-38 else 1e-38)",)),
    "sqrt": Function(lambda v: np.sqrt(np.maximum(v, 0)), ("v = sqrt(v) if v > 0 else 0.0",)),
    "reciprocal": Function(lambda v: 1 / np.where(v == 0, 1e-38, v), ("v = 1 / v if v else 1e38",)),
    "abs": Function(np.abs, ("v = abs(v)",)),
    "erf": Function(_erf, ("v = erf(v)",)),
    "sin": Function(np.sin, ("v = sin(v)",)),
    "cos": Function(np.cos, ("v = cos(v)",)),
    "floor": Function(np.floor, ("v = float(floor(v))",)),
    "ceil": Function(np.ceil, ("v = float(ceil(v))",)),
    "pow": Function(_power, POWER),
    "round": Function(np.rint, ("v = float(round(v))",)),
    "tan": Function(np.tan, ("v = tan(v)",)),
    "asin": Function(lambda v: np.arcsin(np.clip(v, -1, 1)), (f"v = asin({_UNIT})",)),
    "acos": Function(lambda v: np.arccos(np.clip(v, -1, 1)), (f"v = acos({_UNIT})",)),
    "atan": Function(np.arctan, ("v = atan(v)",)),
    "sinh": Function(lambda v: np.sinh(np.clip(v, -88, 88)), (f"v = sinh({_SMALL})",)),
    "cosh": Function(lambda v: np.cosh(np.clip(v, -88, 88)), (f"v = cosh({_SMALL})",)),
    "asinh": Function(np.arcsinh, ("v = asinh(v)",)),
    "acosh": Function(lambda v: np.arccosh(np.maximum(v, 1)), ("v = acosh(v if v > 1 else 1)",)),
    "atanh": Function(
        lambda v: np.arctanh(np.clip(v, -_BELOW_ONE, _BELOW_ONE)),
        (f"v = atanh(-{_BELOW_ONE} if v < -{_BELOW_ONE} else {_BELOW_ONE} if v > {_BELOW_ONE} else v)",),
    ),
    "shrink": Function(
        lambda v, bias, threshold: np.where(v < -threshold, v + bias, np.where(v > threshold, v - bias, 0)),
        ("v = v + {0} if v < -{1} else v - {0} if v > {1} else 0.0",),
    ),
    "greater": Function(lambda v, a: (v > a).astype(np.float64), ("v = 1.0 if v > {0} else 0.0",)),
    "greater_equal": Function(lambda v, a: (v >= a).astype(np.float64), ("v = 1.0 if v >= {0} else 0.0",)),
    "less": Function(lambda v, a: (v < a).astype(np.float64), ("v = 1.0 if v < {0} else 0.0",)),
    "less_equal": Function(lambda v, a: (v <= a).astype(np.float64), ("v = 1.0 if v <= {0} else 0.0",)),
    "equal": Function(lambda v, a: (v == a).astype(np.float64), ("v = 1.0 if v == {0} else 0.0",)),
    "nonzero": Function(lambda v: (v != 0).astype(np.float64), ("v = 1.0 if v else 0.0",)),
    "isnan": Function(lambda v: np.isnan(v).astype(np.float64), ("v = 1.0 if v != v else 0.0",)),
    "trunc": Function(np.trunc, ("v = float(int(v))",)),
    "inverse": Function(lambda v: 1 / np.where(v == 0, 1.0, v), ("v = 1 / v if v else 1.0",)),
    "sign": Function(np.sign, ("v = 1.0 if v > 0 else -1.0 if v < 0 else 0.0",)),
}

FROM_MATH = (
    "exp", "log", "sqrt", "erf", "floor", "ceil", "pow", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
    "tanh", "asinh", "acosh", "atanh",
)  # fmt: skip
"""What generated modules import from `math` if they use it."""


COMPARED = ("greater", "greater_equal", "less", "less_equal", "equal")
"""Comparisons of the argument with a number; the result is 1 or 0."""


def apply(chain: Chain, x: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """The chain's value at each element, in float32. Raises UnsupportedError for an unknown function."""
    v = np.asarray(x, np.float64)
    start = v
    for name, parameters in chain:
        if name == "start":
            start = v
        elif name == "times_start":
            v = v * start
        else:
            v = _function(name).numpy(v, *parameters)
    return np.asarray(v, np.float32)


def lines(chain: Chain) -> tuple[str, ...]:
    """MicroPython that turns `v` into the chain's value. Raises UnsupportedError for an unknown function."""
    out: list[str] = []
    for name, parameters in chain:
        if name in ("start", "times_start"):
            out.append("u = v" if name == "start" else "v = u * v")
            continue
        if (name, parameters) == ("pow", (2.0,)):
            out.append("v = v * v")
            continue
        numbers = [_number(p) for p in parameters]
        out += [line.format(*numbers) for line in _function(name).source]
    return tuple(out)


def _function(name: str) -> Function:
    if name not in FUNCTIONS:
        raise UnsupportedError(
            f"function {name!r} is not supported on microcontrollers; supported: {', '.join(sorted(FUNCTIONS))}"
        )
    return FUNCTIONS[name]


def _number(p: float) -> str:
    if p in (inf, -inf):
        return "1e38" if p > 0 else "-1e38"
    text = repr(float(p))
    return f"({text})" if p < 0 else text
