"""What a program computes on a backend, beside eager NumPy."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import emberlet
import numpy as np
from emberlet.backend import get_backend
from emberlet.errors import EmberletError

from . import more_programs  # noqa: F401 (it adds to PROGRAMS)
from .programs import PROGRAMS, Program


def drawn(program: Program, name: str, least: int = -3) -> list[Any]:
    """Its inputs. least: of signed integers."""
    draw = np.random.default_rng(zlib.crc32(name.encode()))
    found = []
    for dtype, shape in program.inputs:
        integers = "int" in dtype or dtype == "bool"
        low, end = (least if dtype.startswith("int") else 0, 2 if dtype == "bool" else 3)
        numbers = draw.integers(low, end, shape) if integers else draw.integers(-16, 17, shape) / 8
        found.append((numbers if integers else numbers.astype(np.float32), dtype))
    return found


Way = Callable[[Callable[..., Any]], Callable[..., Any]]


def results(program: Program, given: list[Any], backend: str, way: Way) -> list[tuple[str, Any]]:
    """Their dtypes, and their elements, floats as float64."""
    device = get_backend(backend)
    with np.errstate(all="ignore"):
        made = way(program.function)(*[emberlet.asarray(x, device=device).astype(dtype) for x, dtype in given])
    found = made if isinstance(made, list | tuple) else [made]
    return [(y.dtype.name, np.asarray(y.astype("float64") if y.dtype.is_float else y)) for y in found]


def _eagerly(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def difference(name: str, backend: str, way: Way = _eagerly) -> str:
    """Where a program's results differ from NumPy's by more than float32 rounds, or float16 where it is used. way: from
    the program's function to one that computes the same."""
    program = PROGRAMS[name]
    given = drawn(program, name)
    try:
        wanted = results(program, given, "numpy", _eagerly)
    except EmberletError:  # of an index, or a power
        given = drawn(program, name, 0)
        wanted = results(program, given, "numpy", _eagerly)
    half = "float16" in name or any(dtype in ("float16", "bfloat16") for _, dtype in given)
    for (own, x), (dtype, y) in zip(results(program, given, backend, way), wanted, strict=True):
        if (own, x.shape) != (dtype, y.shape):
            return f"{name}: {own} {x.shape}, NumPy's {dtype} {y.shape}"
        largest = float(np.abs(y[np.isfinite(y)].astype(float)).max(initial=1))
        near = (4e-3, 2e-3) if half else (1e-4, 1e-5)
        rtol, atol = near if "float" in dtype else (0.0, 0.0)
        if not np.allclose(x, y, rtol, atol * largest, equal_nan=True):
            return f"{name}: {np.abs(x.astype(float) - y.astype(float)).max()} off, of {largest}"
    return ""
