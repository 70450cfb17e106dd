"""Tests that state the same of every row of a table."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from support.draws import draw
from support.draws import share as share_of

SHOWN = 20


def _named(row: Iterable[Any]) -> str:
    return ", ".join(str(getattr(value, "id", value)) for value in row)


def _rows(values: Iterable[Any], held: list[str], share: int) -> list[tuple[Any, ...]]:
    rows = [row if len(held) > 1 else (row,) for row in values]
    if not rows:
        raise ValueError("a test of every row has no rows")
    if len(rows) < share:
        raise ValueError(f"one row of {share} is none in some runs: there are {len(rows)}")
    return rows


def every(
    names: str | tuple[str, ...], values: Iterable[Any] | Callable[[], Iterable[Any]], share: int = 1
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As pytest.mark.parametrize, in one test: it runs for all rows, and fails with the list of those that failed or,
    unless all of them do, are skipped. Fixtures are made once for all rows. share: a run has one row of so many,
    others each time (support/draws.py). values: a function where the rows take long to make; it is called when the test
    runs."""
    held = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    known = None if callable(values) else _rows(values, held, share)

    def decorated(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)
        kept = [p for p in signature.parameters.values() if p.name not in held]

        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            rows = known or _rows(values() if callable(values) else values, held, share)
            failures: list[tuple[str, BaseException]] = []
            skipped: list[tuple[str, BaseException]] = []
            step = share_of(share)
            tried = rows[draw(test.__module__, test.__qualname__).randrange(step) :: step] if step > 1 else rows
            for row in tried:
                try:
                    test(**fixtures, **dict(zip(held, row, strict=True)))
                except pytest.skip.Exception as reason:
                    skipped.append((_named(row), reason))
                except (Exception, pytest.fail.Exception) as error:
                    failures.append((_named(row), error))
            if len(skipped) == len(tried):
                pytest.skip(str(skipped[0][1]))
            failures += skipped  # nobody sees that only some rows run
            if failures:
                said = [f"{row}: {type(error).__name__}: {error}" for row, error in failures[:SHOWN]]
                pytest.fail(f"{len(failures)} of {len(tried)} rows:\n" + "\n".join(said), pytrace=False)

        run.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return run

    return decorated
