"""What a program computes on a backend, beside eager NumPy."""

from __future__ import annotations

import zlib
from typing import Any

import emberlet
import numpy as np
from emberlet.backend import get_backend

from . import more_programs  # noqa: F401 (it adds to PROGRAMS)
from .programs import PROGRAMS, Program


def drawn(program: Program, name: str) -> list[Any]:
    draw = np.random.default_rng(zlib.crc32(name.encode()))
    found = []
    for dtype, shape in program.inputs:
        integers = "int" in dtype or dtype == "bool"
        numbers = (
            draw.integers(0, 2 if dtype == "bool" else 3, shape) if integers else draw.integers(-16, 17, shape) / 8
        )
        found.append((numbers if integers else numbers.astype(np.float32), dtype))
    return found


def results(program: Program, given: list[Any], backend: str) -> list[Any]:
    device = get_backend(backend)
    with np.errstate(all="ignore"):
        made = program.function(*[emberlet.asarray(x, device=device).astype(dtype) for x, dtype in given])
    found = made if isinstance(made, list | tuple) else [made]
    return [np.asarray(y if y.dtype.is_bool else y.astype("float64")) for y in found]


def difference(name: str, backend: str) -> str:
    """Where a program's results differ from NumPy's by more than float32 rounds, or float16 where it is used."""
    program = PROGRAMS[name]
    given = drawn(program, name)
    half = "float16" in name or any(dtype in ("float16", "bfloat16") for _, dtype in given)
    for x, y in zip(results(program, given, backend), results(program, given, "numpy"), strict=True):
        if x.shape != y.shape:
            return f"{name}: shape {x.shape}, NumPy's {y.shape}"
        largest = float(np.abs(y[np.isfinite(y)]).max(initial=1)) if y.dtype.kind == "f" else 1.0
        if not np.allclose(x, y, rtol=4e-3 if half else 1e-4, atol=(2e-3 if half else 1e-5) * largest, equal_nan=True):
            return f"{name}: {np.abs(x.astype(float) - y.astype(float)).max()} off, of {largest}"
    return ""
