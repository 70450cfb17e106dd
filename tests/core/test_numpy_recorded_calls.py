"""Which steps of a plan run from C, in how many calls of a loop over how many elements, is as recorded.

tests/core/test_numpy_native.py compares their results. "-" is a step that Python calls.
"""

from __future__ import annotations

import ctypes
import hashlib
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from emberlet.backend import get_backend
from emberlet.host.numpy_backend.compile import few_rows, layout, mkl_products
from emberlet.host.numpy_backend.compile.memory import Memory
from emberlet.host.numpy_backend.compile.native import records
from emberlet.host.numpy_backend.compile.native.machine import machine
from emberlet.host.numpy_backend.compile.plan import Plan
from emberlet.host.numpy_backend.compile.steps import copy_elements, maximum, minimum
from emberlet.host.numpy_backend.compile.threads import workers
from support import plan_programs as programs
from support.recorded import assert_recorded

RECORDED = Path(__file__).parent / "recorded_numpy_calls.txt"
ROOMS = {
    "elementwise": programs.ELEMENTWISE, "movement": programs.MOVEMENT, "activations": programs.ACTIVATIONS,
    "products": programs.PRODUCTS, "windows": programs.WINDOWS, "channels last": programs.LAST,
}  # fmt: skip
pytestmark = pytest.mark.skipif(machine() is None, reason="Python calls every step here")


def text(function: Callable[..., Any], args: tuple[Any, ...]) -> str:
    """For each array of records: how many, their count and steps, and the sizes and strides of their loop."""
    found = records.of_step(machine(), function, args)
    if found is None:
        return "-"
    arrays, held = found
    inner = held[3].tolist() if len(held) == 4 else ""
    said = []
    for x in arrays:
        moves = [(row[4:6] - x[0][4:6]).tolist() for row in x[1:]]
        places = hashlib.sha256(repr(moves).encode()).hexdigest()[:4] if moves else ""
        sizes = x[0][6] if x[0][6] < 1 << 20 else ""  # of memcpy
        said.append(f"{len(x)}x{x[0][1]}+{x[0][2]},{x[0][3]}" + f" of {sizes}" * bool(sizes) + f" {places}".rstrip())
    if len(held) == 4:
        said.append(hashlib.sha256((held[1] - held[1][0]).tobytes()).hexdigest()[:4])
    return f"{' '.join(said)}{inner}"


@pytest.mark.parametrize("room", ROOMS)
def test_the_steps_of_plans_run_from_c_as_recorded(room: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mkl_products, "library", lambda _: None)
    monkeypatch.setattr(few_rows, "are_faster_in_parts", lambda: False)
    monkeypatch.setattr(workers, "available", lambda mkl=False: 1)
    monkeypatch.setattr(layout, "LARGE", 0 if room == "channels last" else layout.LARGE)
    lines = []
    for name, (function, arguments) in ROOMS[room].items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plan = Plan(function, list(arguments), get_backend("numpy"), frozenset())
        memory = Memory(plan._buffers, plan._arena)
        steps = [text(s.function, tuple(memory.relocated(a) for a in s.args)) for s in plan.steps]
        if len(steps) > 12:
            steps = [*steps[:4], hashlib.sha256(repr(steps).encode()).hexdigest()[:8]]
        lines.append(f"{name}: {'; '.join(steps)}")
    assert_recorded(RECORDED, room, "\n".join(lines))


FUNCTIONS = {
    "exp": (np.exp, 1), "add": (np.add, 2), "maximum": (maximum, 2), "minimum": (minimum, 2),
    "copy": (copy_elements, 1),
    "less": (np.less, 2), "clip": (np._core.umath.clip, 3),
}  # fmt: skip
KINDS = [np.float32, np.float64, np.float16, np.int32, np.bool_]


def drawn(draw: np.random.Generator, shape: tuple[int, ...], kind: Any) -> Any:
    """An array of this shape that lies in a larger one: some axes turned, reversed, with gaps, or broadcast."""
    axes = draw.permutation(len(shape))
    steps = draw.choice([1, 1, 2], len(shape))
    whole = np.zeros([shape[a] * s for a, s in zip(axes, steps, strict=True)], kind)
    x = whole[(*(slice(None, None, s) for s in steps), ...)].transpose(np.argsort(axes))
    return x[::-1] if shape and draw.integers(4) == 0 else x


@pytest.mark.parametrize("name", FUNCTIONS)
def test_drawn_steps_run_from_c_as_recorded(name: str) -> None:
    function, operands = FUNCTIONS[name]
    draw = np.random.default_rng(len(name) * 7)
    lines = []
    for _ in range(40):
        shape = tuple(int(n) for n in draw.choice([1, 2, 3, 8, 40], draw.integers(1, 5)))
        kind = KINDS[int(draw.choice([0, 0, 0, 1, 2, 3, 4]))]
        arrays = []
        for _ in range(operands):
            own = tuple(1 if draw.integers(4) == 0 else n for n in shape)
            arrays.append(drawn(draw, own[int(draw.integers(2)) :], kind) if draw.integers(8) else kind(1))
        out = drawn(draw, shape, np.bool_ if name == "less" else kind)
        lines.append(f"{np.dtype(kind).char}{list(shape)}: {text(function, (*arrays, out))}")
    assert_recorded(RECORDED, f"drawn {name}", "\n".join(lines))


def test_drawn_products_run_from_c_as_recorded() -> None:
    draw = np.random.default_rng(3)
    lines = []
    for _ in range(60):
        m, k, n = (int(x) for x in draw.choice([1, 2, 5, 9], 3))
        lead = tuple(int(x) for x in draw.choice([1, 2, 3], draw.integers(0, 3)))
        kind = KINDS[int(draw.choice([0, 0, 1, 2]))]
        a, b, out = (drawn(draw, (*lead, *s), kind) for s in ((m, k), (k, n), (m, n)))
        lines.append(f"{[*lead, m, k, n]}: {text(np.matmul, (a, b, out))}")
    assert_recorded(RECORDED, "drawn products", "\n".join(lines))


def strided(*shape: int, gap: int = 1) -> Any:
    """Floats with a gap behind each axis but the first."""
    return np.zeros((shape[0], *(n + gap for n in shape[1:])), np.float32)[(slice(None), *map(slice, shape[1:]))]


def limits(most: int) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    whole = np.zeros((2, 8), np.float32)
    longs, few = whole.astype(np.int64), whole[:1]
    found: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}
    for n in (most, most + 1):
        found |= {
            f"{n} rows of elements": (np.exp, (strided(n, 2), strided(n, 2))),
            f"{n} copied rows": (copy_elements, (strided(n, 8), strided(n, 8, gap=2))),
            f"{n} groups of rows": (copy_elements, (strided(n, n + 1, 8), strided(n, n + 1, 8, gap=2))),
            f"{n} rows of a few elements": (copy_elements, (strided(n, n + 1, 2), strided(n, n + 1, 2, gap=2))),
            f"{n} turned rows": (copy_elements, (strided(2, n, n + 3).transpose(0, 2, 1), strided(2, n + 3, n))),
            f"{n} stacks of products": (np.matmul, tuple(strided(n, 3, 2, 2, gap=g) for g in (1, 2, 3))),
        }
    for size in (7, 8):
        found[f"rows of {4 * size} bytes"] = copy_elements, (strided(3, size), strided(3, size, gap=2))
    return found | {
        "over itself": (np.exp, (whole, whole)), "over its neighbors": (np.exp, (whole[:, 1:], whole[:, :-1])),
        "beside its neighbors": (np.exp, (whole[:, :4], whole[:, 4:])),
        "over it in reverse": (np.exp, (whole, whole[::-1])), "no elements": (np.exp, (whole[:0], whole[:0])),
        "another dtype": (copy_elements, (whole, whole.astype(np.float64))),
        "what cannot be written": (np.exp, (whole, np.broadcast_to(few, (2, 8)))),
        "one element": (np.exp, (whole[:1, 0], whole[1:, 1])), "a number": (np.add, (whole, 1, whole)),
        "a number of NumPy's": (np.add, (whole, np.float32(1), whole)),
        "a wider number": (np.add, (whole, np.float64(1), whole)), "a number for integers": (np.add, (longs, 1, longs)),
        "a vector times a matrix": (np.matmul, (whole[0], whole.T, whole[0, :2])),
        "other bytes": (np.exp, (whole.astype(">f4"), whole)), "two results": (np.modf, (whole, whole, whole)),
        "no ufunc": (np.sort, (whole, whole)), "a text": (np.add, (whole, "x", whole)),
    }  # fmt: skip


@pytest.mark.parametrize("most", [4, 4096])
def test_steps_at_the_limits_run_from_c_as_recorded(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = limits(most if most < 100 else 4)
    if most > 100:  # the limit itself
        assert records.MOST == most
        cases = {str(n): (np.exp, (strided(n, 2), strided(n, 2))) for n in (most, most + 1)}
    monkeypatch.setattr(records, "MOST", most)
    assert_recorded(RECORDED, f"limits of {most}", "\n".join(f"{name}: {text(*case)}" for name, case in cases.items()))


@pytest.mark.parametrize("seed", range(3))
def test_operands_are_given_to_mkl_as_recorded(seed: int) -> None:
    """How a matrix lies, whether MKL computes a product, and the sizes that it is told."""
    draw = np.random.default_rng(seed)
    library = SimpleNamespace(cblas_sgemm=len, cblas_sgemm_batch=len)
    lines = []
    for _ in range(60):
        m, k, n = (int(x) for x in draw.choice([1, 2, 5, 9], 3))
        lead = tuple(int(x) for x in draw.choice([1, 2, 3], draw.integers(0, 3)))
        kind = np.float32 if draw.integers(6) else np.float64
        a, b, out = (drawn(draw, (*lead, *s), kind) for s in ((m, k), (k, n), (m, n)))
        fits = mkl_products._fits(a, b, out)
        said = f"{np.dtype(kind).char}{[*lead, m, k, n]}: {[mkl_products._layout(x) for x in (a, b, out)]} {fits}"
        if fits:
            product: Any = mkl_products.Products if lead else mkl_products.Product
            _, args = product(library).bound(a, b, out)
            said += f" {[_number(x, (a, b, out)) for x in args]}"
        lines.append(f"{said} {mkl_products._lie_alike(a, out)} {mkl_products._lie_alike(out, out)}")
    assert_recorded(RECORDED, f"MKL {seed}", "\n".join(lines))


def _number(x: Any, arrays: tuple[Any, ...]) -> Any:
    """An argument of ctypes; of an address, which array it leads to and how far."""
    if hasattr(x, "held"):
        base = next(i for i, y in enumerate(arrays) if y is x.held)
        places = x if isinstance(x, ctypes.Array) else [x.value]
        start = arrays[base].__array_interface__["data"][0]
        return "abo"[base] + "".join(f"+{p - start}" for p in places)
    return x[0] if isinstance(x, ctypes.Array) else x.value
