"""Plans compute what the operations compute one by one, whatever sizes they choose their calls by: in blocks, in parts,
with the channels last, on threads, with open lengths. A plan is called twice with different numbers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from emberlet import functional as F
from emberlet.host.numpy_backend.compile import blocks, compile, few_rows, layout, windows
from emberlet.host.numpy_backend.compile.threads import schedule, workers
from support import plan_programs as programs

Settings = tuple[tuple[Any, str, Any], ...]

SMALL = {**programs.ELEMENTWISE, **programs.ACTIVATIONS}
ALL = {**SMALL, **programs.MOVEMENT, **programs.PRODUCTS, **programs.WINDOWS, **programs.LAST}
THREADS: Settings = ((schedule, "LARGE", 0), (schedule, "LARGE_LOCKED", 0))

# how plans are made: (programs, settings of modules, number of threads)
WAYS: dict[str, tuple[dict[str, programs.Program], Settings, int]] = {
    "as they are": (ALL, (), 1),
    "windows in parts": (programs.WINDOWS, ((windows, "BLOCK", 300),), 1),
    "channels last": (programs.LAST, ((layout, "LARGE", 0),), 1),
    "channels last in parts": (
        programs.LAST, ((layout, "LARGE", 0), (windows, "BLOCK", 300), (few_rows, "LEAST", 0)), 1,
    ),
    "blocks": (SMALL, ((blocks, "LONG", 32), (blocks, "BLOCK", 16)), 1),
    "blocks of rows": (SMALL, ((blocks, "LONG", 32), (blocks, "BLOCK", 32)), 1),
    "threads without parts": (
        programs.MOVEMENT, (*THREADS, (schedule, "MEETING", 1e-9), (schedule, "LEAST", 1.0)), 2,
    ),
    "threads": (
        {**programs.PRODUCTS, **programs.WINDOWS, **programs.ELEMENTWISE},
        (*THREADS, (schedule, "MEETING", 1e-7), (schedule, "LEAST", 0.0), (blocks, "LONG", 32),
         (blocks, "BLOCK_OF_THREAD", 16)), 2,
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def other_numbers(x: Any) -> Any:
    """The same numbers in another order; integers and bools, which may be indices, as they are."""
    if x.dtype.name not in ("float32", "float64", "float16"):
        return x
    return F.reshape(F.flip(F.reshape(x, (-1,)), 0), x.shape)


def arrays(result: Any) -> list[Any]:
    if isinstance(result, dict):
        return arrays(list(result.values()))
    if isinstance(result, (tuple, list)):
        return [array for x in result for array in arrays(x)]
    return [] if result is None else [np.array(np.asarray(result))]


@pytest.mark.parametrize("way", WAYS)
def test_plans_compute_what_the_operations_do(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known, settings, threads = WAYS[way]
    monkeypatch.setattr(few_rows, "are_faster_in_parts", lambda: way.endswith("in parts"))
    monkeypatch.setattr(workers, "available", lambda: threads)
    for module, attribute, value in settings:
        monkeypatch.setattr(module, attribute, value)
    for name, (function, arguments) in known.items():
        planned = compile(function, *arguments)
        other = [other_numbers(x) for x in arguments]
        for given in (arguments, other, arguments):
            for found, wanted in zip(arrays(planned(*given)), arrays(function(*given)), strict=True):
                assert found.dtype == wanted.dtype, name
                finite = wanted[np.isfinite(wanted)].astype(np.float64) if wanted.dtype.kind == "f" else np.zeros(0)
                largest = float(np.abs(finite).max(initial=1)) if wanted.dtype.kind == "f" else 0
                least = (4e-3 if wanted.dtype == np.float16 else 1e-6) * largest
                np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=least, err_msg=name)
