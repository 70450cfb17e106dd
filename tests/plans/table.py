"""The tables, NAME.txt for each backend: a line for each model that has a plan."""

from __future__ import annotations

from pathlib import Path

from models.index import Case, cases

from .counting import row

FOLDER = Path(__file__).parent


def models() -> list[Case]:
    """The first case of each model."""
    found: dict[str, Case] = {}
    for case in cases(contrib=False):
        found.setdefault(case.name, case)
    return [*found.values()]


def lines(backend: str) -> list[str]:
    """The table for the plans of this tree: its head, and a line for each model."""
    rows = {case.name: row(backend, case) for case in models()}
    columns = list(next(found for found in rows.values() if found))
    table = [["model", *columns]]
    table += [[name, *(str(found[c]) for c in columns)] for name, found in rows.items() if found]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join([cells[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(cells[1:], widths[1:], strict=True))])
        for cells in table
    ]


def written(backend: str) -> list[str]:
    return (FOLDER / f"{backend}.txt").read_text(encoding="utf-8").splitlines()
