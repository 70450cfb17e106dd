"""The plans of small models are as recorded: which calls, over which parts of which buffers, needed how long.

tests/core/test_numpy_plan_dtypes.py and tests/fuzz compare results. This file shows which decisions a plan takes: what
it computes in place, what it copies, joins and leaves to the backend. A plan of many steps is a digest.
"""

from __future__ import annotations

import hashlib
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from emberlet.backend import get_backend
from emberlet.backend.axes import Axes
from emberlet.errors import BackendError
from emberlet.host.numpy_backend.compile import blocks, few_rows, layout, mkl_products, windows
from emberlet.host.numpy_backend.compile.open_sizes.plan import OpenPlan
from emberlet.host.numpy_backend.compile.plan import Plan
from emberlet.host.numpy_backend.compile.threads import schedule, workers
from emberlet.host.numpy_backend.compile.tracing import ValueNeeded
from support import plan_programs as programs
from support.plan_text import open_plan_text, plan_text
from support.recorded import assert_recorded

RECORDED = Path(__file__).parent / "recorded_numpy_plans.txt"
RECORDED_OPEN = Path(__file__).parent / "recorded_open_plans.txt"
LONGEST = 12  # lines of a plan that are recorded; of a longer one the first, and a digest

# room: (programs, settings of modules, number of threads)
ROOMS: dict[str, tuple[dict[str, programs.Program], tuple[tuple[Any, str, Any], ...], int]] = {
    "elementwise": (programs.ELEMENTWISE, (), 1),
    "movement": (programs.MOVEMENT, (), 1),
    "activations": (programs.ACTIVATIONS, (), 1),
    "products": (programs.PRODUCTS, (), 1),
    "windows": (programs.WINDOWS, (), 1),
    "windows in parts": (
        {n: p for n, p in programs.WINDOWS.items() if "bias in" not in n and "terms" not in n},
        ((windows, "BLOCK", 300),), 1,
    ),
    "channels last": (programs.LAST, ((layout, "LARGE", 0),), 1),
    "channels last in parts": (
        programs.LAST, ((layout, "LARGE", 0), (windows, "BLOCK", 300), (few_rows, "LEAST", 0)), 1,
    ),
    "blocks": (
        {**programs.ELEMENTWISE, **programs.ACTIVATIONS}, ((blocks, "LONG", 32), (blocks, "BLOCK", 16)), 1,
    ),
    "channels last in threads of OpenBLAS in parts": (
        {n: p for n, p in programs.LAST.items() if "channels" in n}, ((layout, "LARGE", 0), (few_rows, "LEAST", 0)), 1,
    ),
    "few rows of weights in parts": (
        {n: p for n, p in programs.LAST.items() if "weights" in n}, ((layout, "LARGE", 0),), 1,
    ),
    "MKL": ({**programs.PRODUCTS, **programs.ACTIVATIONS, **programs.MKL}, (), 1),
    "channels last with MKL": (programs.LAST, ((layout, "LARGE", 0),), 1),
    "blocks of rows": (programs.ELEMENTWISE, ((blocks, "LONG", 32), (blocks, "BLOCK", 32)), 1),
    "threads without parts": (
        programs.MOVEMENT,
        ((schedule, "LARGE", 0), (schedule, "LARGE_LOCKED", 0), (schedule, "MEETING", 1e-9),
         (schedule, "LEAST", 1.0)), 2,
    ),
    "threads": (
        {**programs.PRODUCTS, **programs.WINDOWS, **programs.ELEMENTWISE},
        ((schedule, "LARGE", 0), (schedule, "LARGE_LOCKED", 0), (schedule, "MEETING", 1e-7),
         (schedule, "LEAST", 0.0), (blocks, "LONG", 32), (blocks, "BLOCK_OF_THREAD", 16)), 2,
    ),
}  # fmt: skip
CASES = [(room, name) for room, (known, _, _) in ROOMS.items() for name in known]


@pytest.mark.parametrize(("room", "name"), CASES)
def test_a_plan_is_as_recorded(room: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known, settings, threads = ROOMS[room]
    if "MKL" in room and sys.platform == "win32":
        pytest.skip("MKL is used on Linux")
    library = SimpleNamespace(
        cblas_sgemm_pack_get_size=lambda *_: 64, cblas_sgemm_pack=lambda *_: None, cblas_sgemm=len,
        cblas_sgemm_compute=len, cblas_sgemm_batch=len, vmsExp=SimpleNamespace(), vmsCdfNorm=SimpleNamespace(),
    )  # fmt: skip
    monkeypatch.setattr(mkl_products, "library", lambda _: library if "MKL" in room else None)
    monkeypatch.setattr(few_rows, "are_faster_in_parts", lambda: room.endswith("in parts"))
    monkeypatch.setattr(workers, "available", lambda mkl=False: threads)
    monkeypatch.setattr("emberlet.host.blas_kernels.threads", lambda: 3 if "OpenBLAS" in room else 1)
    for module, attribute, value in settings:
        monkeypatch.setattr(module, attribute, value)
    function, arguments = known[name]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text = plan_text(Plan(function, list(arguments), get_backend("numpy"), frozenset()))
    except ValueNeeded as error:
        text = f"no plan: {error}"
    assert_recorded(RECORDED, f"{room}: {name}", shortened(text))


def shortened(text: str) -> str:
    lines = text.splitlines()
    if len(lines) > LONGEST:
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        return "\n".join([*lines[:3], f"... {len(lines)} lines, {digest}"])
    return text


# -- plans with open lengths

OPEN: dict[str, tuple[programs.Program, tuple[int, ...]]] = {
    **{
        n: (p, (0,))
        for known in (programs.ELEMENTWISE, programs.MOVEMENT, programs.ACTIVATIONS)
        for n, p in known.items()
    },
    **{n: (p, (0, 1)) for n, p in programs.PRODUCTS.items()},
    **{n: (p, (2, 3)) for n, p in programs.WINDOWS.items() if "bias in" not in n and "terms" not in n},
}


@pytest.mark.parametrize("name", OPEN)
def test_a_plan_with_open_lengths_is_as_recorded(name: str) -> None:
    """Each of the first argument's axes is open, and those of the others that are as long."""
    (function, arguments), opened = OPEN[name]
    lengths = {arguments[0].shape[i]: f"n{i}" for i in opened if i < arguments[0].ndim}
    shapes = [tuple(lengths.get(d, d) if i in opened else d for i, d in enumerate(x.shape)) for x in arguments]
    names = [n for n in dict.fromkeys(lengths.values()) if any(n in s for s in shapes)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plan = OpenPlan(function, list(arguments), get_backend("numpy"), Axes(shapes, {}), names)
            text = open_plan_text(plan)
    except BackendError as error:
        text = f"no plan: {error}"
    assert_recorded(RECORDED_OPEN, name, shortened(text))
