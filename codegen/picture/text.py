"""The tree of modules as text, for a terminal."""

from __future__ import annotations

from .cost import short
from .tree import PLAIN, Box

LINES = {True: ("├─ ", "└─ ", "│  ", "×", "→"), False: ("|- ", "`- ", "|  ", "x", "->")}


def as_text(box: Box, depth: int = 8, unicode: bool = True) -> str:
    """The tree with its columns: module, shapes, weights, operations. depth: the number of levels shown. Operations
    without weights are summed up in a separate line."""
    rows: list[tuple[str, str, str, str]] = [("module", "shapes", "weights", "FLOPs")]
    _rows(box, "", "", depth, LINES[unicode], rows)
    if not unicode:
        rows = [tuple(c.replace("…", "..").replace("·", "+") for c in r) for r in rows]  # type: ignore[misc]
    widths = [max(len(r[i]) for r in rows) for i in range(4)]
    lines = []
    for name, shapes, weights, flops in rows:
        line = f"{name:<{widths[0]}}  {shapes:<{widths[1]}}  {weights:>{widths[2]}}  {flops:>{widths[3]}}"
        lines.append(line.rstrip())
    return "\n".join(lines) + "\n"


def _rows(
    box: Box, head: str, below: str, depth: int, marks: tuple[str, ...], rows: list[tuple[str, str, str, str]]
) -> None:
    fork, last, bar, cross, arrow = marks
    times = f" {cross}{box.times}" if box.times > 1 else ""
    title = box.detail or box.name
    kind = f" {box.name}" if box.kind == PLAIN and box.detail else f" {box.kind}" if box.kind != PLAIN else ""
    shapes = f"{box.inputs} {arrow} {box.outputs}" if box.inputs != box.outputs else box.outputs
    rows.append((head + title + kind + times, shapes, short(box.weights), short(box.flops)))
    shown = [b for b in box.boxes if b.kind != PLAIN or b.weights] if depth > 0 else []
    for i, inner in enumerate(shown):
        end = i == len(shown) - 1
        _rows(inner, below + (last if end else fork), below + ("   " if end else bar), depth - 1, marks, rows)
