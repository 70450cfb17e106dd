"""Curves in a terminal: each character is a grid of 2 by 4 dots."""

from __future__ import annotations

import math
from collections.abc import Sequence

Points = Sequence[tuple[float, float]]
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # Unicode's numbers of the dots, by row and column


def drawn(
    curves: Sequence[Points], columns: int, rows: int, left: float, right: float, low: float, high: float
) -> list[list[tuple[str, int | None]]]:
    """Rows of (character, index of the curve that it shows, or None). The curves' points are (x, y), from `left` to
    `right` and from `low` to `high`; what is above or below is drawn at the edge. A character has one color: the first
    curve lies behind the others, which take turns where they meet."""
    cells: list[list[dict[int, int]]] = [[{} for _ in range(columns)] for _ in range(rows)]

    def put(x: int, y: int, curve: int) -> None:
        if 0 <= x < 2 * columns and 0 <= y < 4 * rows:
            cell = cells[y // 4][x // 2]
            cell[curve] = cell.get(curve, 0) | _DOTS[y % 4][x % 2]

    def shown(cell: dict[int, int], column: int) -> tuple[str, int | None]:
        front = [curve for curve in cell if curve] or list(cell)
        owner = front[column % len(front)] if front else None
        return chr(0x2800 + (0 if owner is None else cell[owner])), owner

    for index, points in enumerate(curves):
        before: tuple[int, int] | None = None
        for x, y in points:
            if not math.isfinite(y):
                before = None
                continue
            part = (min(max(y, low), high) - low) / ((high - low) or 1.0)
            here = (
                round((x - left) / ((right - left) or 1.0) * (2 * columns - 1)),
                round((1 - part) * (4 * rows - 1)),
            )
            for at in _between(before or here, here):
                put(*at, index)
            before = here
    return [[shown(cell, column) for column, cell in enumerate(row)] for row in cells]


def _between(a: tuple[int, int], b: tuple[int, int]) -> list[tuple[int, int]]:
    """The dots of a line."""
    count = max(abs(b[0] - a[0]), abs(b[1] - a[1]), 1)
    return [
        (a[0] + round((b[0] - a[0]) * i / count), a[1] + round((b[1] - a[1]) * i / count)) for i in range(count + 1)
    ]
