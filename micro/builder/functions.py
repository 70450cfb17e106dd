"""Functions of one number as MicroPython source, for float32 models; NumPy computes the same lines for tables of 256
bytes.

`emberlet.functional` defines each of them; tests/micro/test_functions.py compares both ways with it.

A function is a chain of steps `(name, parameters)`, so that adjacent functions merge into one table or one loop. The
steps between "start" and "times_start" compute a factor for the chain's own argument, as in x * sigmoid(x).
"""

from __future__ import annotations

from math import inf

import numpy as np
import numpy.typing as npt
from emberlet.errors import UnsupportedError

from .vectorized import evaluate

Step = tuple[str, tuple[float, ...]]
Chain = tuple[Step, ...]


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

FUNCTIONS: dict[str, tuple[str, ...]] = {
    **{name: (f"v = {name}(v)",) for name in ("tanh", "abs", "erf", "sin", "cos", "tan", "asinh", "atan")},
    "affine": ("v = v * {0} + {1}",),
    "clip": ("v = {0} if v < {0} else {1} if v > {1} else v",),
    "leaky_relu": ("v = v if v >= 0 else v * {0}",),
    "celu": ("v = v if v >= 0 else {0} * (exp(v / {0}) - 1)",),
    "thresholded_relu": ("v = v if v > {0} else 0.0",),
    "elu": ("v = v if v >= 0 else {0} * (exp(v) - 1)",),
    "selu": ("v = {1} * (v if v >= 0 else {0} * (exp(v) - 1))",),
    "sigmoid": ("v = 1 / (1 + exp(-v)) if v > -88 else 0.0",),
    "silu": (f"v = v / (1 + {_EXP_MINUS})",),
    "gelu": ("v = v * 0.5 * (1 + erf(v * 0.7071067811865476))",),
    "gelu_tanh": ("v = v * 0.5 * (1 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)))",),
    "hard_sigmoid": ("v = v * {0} + {1}", "v = 0.0 if v < 0 else 1.0 if v > 1 else v"),
    "hard_swish": ("t = v / 6 + 0.5", "v = 0.0 if t < 0 else v if t > 1 else v * t"),
    "softplus": (f"v = v if v > 20 else log(1 + {_EXP})",),
    "softsign": ("v = v / (1 + abs(v))",),
    "mish": (f"v = v * tanh(v if v > 20 else log(1 + {_EXP}))",),
    "exp": (f"v = {_EXP}",),
    "log": ("v = log(v if v > 1e-38 else 1e-38)",),
    "sqrt": ("v = sqrt(v) if v > 0 else 0.0",),
    "reciprocal": ("v = 1 / v if v else 1e38",),
    "floor": ("v = float(floor(v))",),
    "ceil": ("v = float(ceil(v))",),
    "pow": POWER,
    "round": ("v = float(round(v))",),
    "asin": (f"v = asin({_UNIT})",),
    "acos": (f"v = acos({_UNIT})",),
    "sinh": (f"v = sinh({_SMALL})",),
    "cosh": (f"v = cosh({_SMALL})",),
    "acosh": ("v = acosh(v if v > 1 else 1)",),
    "atanh": (f"v = atanh(-{_BELOW_ONE} if v < -{_BELOW_ONE} else {_BELOW_ONE} if v > {_BELOW_ONE} else v)",),
    "shrink": ("v = v + {0} if v < -{1} else v - {0} if v > {1} else 0.0",),
    "greater": ("v = 1.0 if v > {0} else 0.0",),
    "greater_equal": ("v = 1.0 if v >= {0} else 0.0",),
    "less": ("v = 1.0 if v < {0} else 0.0",),
    "less_equal": ("v = 1.0 if v <= {0} else 0.0",),
    "equal": ("v = 1.0 if v == {0} else 0.0",),
    "nonzero": ("v = 1.0 if v else 0.0",),
    "isnan": ("v = 1.0 if v != v else 0.0",),
    "trunc": ("v = float(int(v))",),
    "inverse": ("v = 1 / v if v else 1.0",),
    "sign": ("v = 1.0 if v > 0 else -1.0 if v < 0 else 0.0",),
}
"""MicroPython lines that change `v`, with the function's parameters as {0}, {1}, …"""

FROM_MATH = (
    "exp", "log", "sqrt", "erf", "floor", "ceil", "pow", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
    "tanh", "asinh", "acosh", "atanh",
)  # fmt: skip
"""What generated modules import from `math` if they use it."""


COMPARED = ("greater", "greater_equal", "less", "less_equal", "equal")
"""Comparisons of the argument with a number; the result is 1 or 0."""


def apply(chain: Chain, x: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """The chain's value at each element, in float32. Raises UnsupportedError for an unknown function."""
    y = evaluate(lines(chain), "v", v=np.asarray(x, np.float64))
    with np.errstate(over="ignore"):
        return y.astype(np.float32)


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
        out += [line.format(*numbers) for line in _function(name)]
    return tuple(out)


def _function(name: str) -> tuple[str, ...]:
    if name not in FUNCTIONS:
        raise UnsupportedError(
            f"function {name!r} is not supported on microcontrollers; supported: {', '.join(sorted(FUNCTIONS))}"
        )
    return FUNCTIONS[name]


def _number(p: float) -> str:
    if p in (inf, -inf):
        return "1e38" if p > 0 else "-1e38"
    if p != p:
        return "float('nan')"  # MicroPython has no name for it
    text = repr(float(p))
    return f"({text})" if p < 0 else text
