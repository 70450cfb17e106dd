"""The error of each elementwise function against float64, in units of the last place of float32, in WebAssembly and in
the machine code that LLVM makes of the same functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from support.every_backend import NATIVE
from support.rows import every

BACKENDS = ["wasm", NATIVE]

Array = np.ndarray[Any, Any]


def numbers(seed: int) -> Array:
    """float32 numbers of all magnitudes, of common ones, and at the limits."""
    choose = np.random.default_rng(seed)
    edges = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3.4e38, 88.7, -87.4, -104.0, 2.0]
    parts = [
        choose.integers(0, 1 << 32, 1 << 15, dtype=np.uint32).view(np.float32),
        choose.uniform(-1, 1, 1 << 13),
        choose.uniform(-100, 100, 1 << 13),
        choose.uniform(-1e6, 1e6, 1 << 13),
        np.array(edges * 7),
    ]
    with np.errstate(invalid="ignore"):
        return np.concatenate(parts).astype(np.float32)


def units(found: Array, want: Array) -> float:
    """The largest distance; infinite if one is NaN or infinite and the other is not."""
    with np.errstate(all="ignore"):
        return _units(found, want, want.astype(np.float32))


def _units(found: Array, want: Array, rounded: Array) -> float:
    same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
    spacing = np.spacing(np.abs(np.where(np.isfinite(rounded), rounded, np.float32(3.4e38))))
    off = np.abs(found.astype(np.float64) - want) / spacing
    return float(np.where(same, 0.0, np.where(np.isnan(off), np.inf, off)).max())


def erf(x: Array) -> Array:
    from math import erf as one

    return np.array([one(v) for v in x])


ONE: dict[str, tuple[Callable[[Array], Array], float]] = {
    "exp": (np.exp, 1.0), "log": (np.log, 1.0), "tanh": (np.tanh, 1.5), "erf": (erf, 1.6), "sin": (np.sin, 0.51),
    "cos": (np.cos, 0.51), "tan": (np.tan, 0.51), "expm1": (np.expm1, 0.51), "log1p": (np.log1p, 0.51),
    "sinh": (np.sinh, 0.51), "cosh": (np.cosh, 0.51), "asinh": (np.arcsinh, 0.51), "acosh": (np.arccosh, 0.51),
    "atanh": (np.arctanh, 0.51), "asin": (np.arcsin, 0.51), "acos": (np.arccos, 0.51), "atan": (np.arctan, 0.51),
}  # fmt: skip
TWO: dict[str, tuple[Callable[..., Array], bool]] = {
    "pow": (np.power, True), "atan2": (np.arctan2, True), "fmod": (np.fmod, False), "remainder": (np.remainder, False),
    "floor_divide": (np.floor_divide, False),
}  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", list(ONE))
def test_function_of_one_number(name: str, backend: str) -> None:
    function, bound = ONE[name]
    x = numbers(1)
    given = emberlet.asarray(x, backend=backend)
    found = np.asarray(given.backend.unary(name, given))
    with np.errstate(all="ignore"):
        assert units(found, function(x.astype(np.float64))) <= bound


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_sum_of_one_and_an_exponential(backend: str) -> None:
    x = np.concatenate([numbers(1), np.linspace(-105, -86, 999, dtype=np.float32)])
    given = emberlet.asarray(x, backend=backend)
    grown, one = F.exp(given), emberlet.full((), 1.0, backend=backend)
    with np.errstate(all="ignore"):
        want = np.exp(x.astype(np.float64))
    for found in (one + grown, grown + one):
        assert units(np.asarray(found), want + 1) <= 1.5  # that of exp and half a unit of the sum
    assert units(np.asarray(grown), want) <= 1.0


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", list(TWO))
def test_function_of_two_numbers(name: str, backend: str) -> None:
    function, wide = TWO[name]
    x, y = numbers(1), np.random.default_rng(2).permutation(numbers(3))
    a, b = (emberlet.asarray(v, backend=backend) for v in (x, y))
    found = np.asarray(a.backend.binary(name, a, b))
    with np.errstate(all="ignore"):
        want = function(x.astype(np.float64), y.astype(np.float64)) if wide else function(x, y).astype(np.float64)
    assert units(found, want) <= (0.51 if wide else 0.0)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int8", "uint8", "int16", "uint16"])
@every(
    "name",
    ["add", "mul", "div", "floor_divide", "remainder", "fmod", "pow", "shift_left", "shift_right", "maximum", "lt"],
)
def test_operation_on_integers_is_numpys(name: str, dtype: str, backend: str) -> None:
    choose = np.random.default_rng(0)
    info = np.iinfo(dtype)
    small = choose.integers(max(info.min, -9), 9, (2, 500))
    x, y = np.concatenate([choose.integers(info.min, info.max, (2, 500), endpoint=True), small], 1).astype(dtype)
    if name.startswith("shift"):
        y = choose.integers(0, info.bits, y.shape).astype(dtype)
    results = []
    for home in ("numpy", backend):
        a, b = (emberlet.asarray(v, backend=home) for v in (x, y))
        results.append(np.asarray(a.backend.binary(name, a, b)))
    np.testing.assert_array_equal(results[1], results[0])


@pytest.mark.parametrize("backend", BACKENDS)
def test_casts_to_float16_round_as_numpy_does(backend: str) -> None:
    x = np.concatenate([numbers(5), np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)])
    with np.errstate(over="ignore"):
        want = x.astype(np.float16)
    found = np.asarray(F.astype(emberlet.asarray(x, backend=backend), "float16"))
    np.testing.assert_array_equal(found, want)
