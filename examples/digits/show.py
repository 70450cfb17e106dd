"""How the demo looks in a terminal: digits in block characters, a table that grows row by row."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import numpy as np

SHADES = " ░▒▓█"
"""Block characters by how much of them is ink; two side by side are about square."""

UNITS = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}


def picture(image: np.ndarray) -> list[str]:
    """The rows of an 8×8 image of 0..16, sixteen characters each."""
    return ["".join(SHADES[(int(value) + 3) // 4] * 2 for value in row) for row in image]


def side_by_side(images: Sequence[np.ndarray], captions: Sequence[str], gap: str = "   ") -> str:
    """Pictures in a row, each over its caption."""
    rows = [gap.join(parts) for parts in zip(*(picture(image) for image in images), strict=True)]
    return "\n".join([*rows, gap.join(f"{caption:^16}" for caption in captions)])


def size(count: int | None) -> str:
    """A number of bytes for people to read, with three digits."""
    if count is None:
        return "?"
    unit = next((unit for unit in ("B", "kB", "MB") if count < 999.5 * UNITS[unit]), "GB")
    value = count / UNITS[unit]
    return f"{value:.0f} {unit}" if value >= 99.5 or unit == "B" else f"{value:.1f} {unit}"


def milliseconds(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 99.5 else f"{value:.1f}" if value >= 0.995 else f"{value:.2f}"


class Table:
    """A table with columns of fixed width. On a terminal, the current work is shown until its row is complete."""

    def __init__(self, headings: Sequence[str], widths: Sequence[int]) -> None:
        self.widths = widths
        self.live = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        self.row(headings)
        print("─" * (sum(widths) + 2 * (len(widths) - 1)), flush=True)

    def working(self, name: str) -> None:
        if self.live:
            print(f"{name:<{self.widths[0]}}  …", end="", flush=True)

    def row(self, cells: Sequence[str]) -> None:
        """Print a row: the first column aligned left, the others right."""
        first = f"{cells[0]:<{self.widths[0]}}"
        others = [f"{cell:>{width}}" for cell, width in zip(cells[1:], self.widths[1:], strict=True)]
        self.line("  ".join([first, *others]))

    def line(self, text: str) -> None:
        """Print a line across the columns, in place of the current work."""
        print(("\r\x1b[K" if self.live else "") + text, flush=True)
