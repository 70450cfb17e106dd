"""A chart of one metric as SVG: the training by step and by epoch, the validation by epoch."""

from __future__ import annotations

import math
from html import escape

from ..summary import number

WIDTH, HEIGHT = 560, 240
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 12, 30

Points = list[tuple[float, float]]


def svg(name: str, train: dict[int, float], valid: dict[int, float], steps: Points, best: int | None) -> str:
    """The chart. steps: (position in epochs, value) of the training; best: the epoch to mark, or None."""
    curves: dict[str, Points] = {
        "train": [(float(epoch), value) for epoch, value in train.items() if math.isfinite(value)],
        "valid": [(float(epoch), value) for epoch, value in valid.items() if math.isfinite(value)],
    }
    shown = [*steps, *curves["train"], *curves["valid"]]
    if not shown:
        return ""
    begin = 0.0 if steps else 1.0
    end = max(max(x for x, _ in shown), begin + 1)
    marks = ticks(*limits(steps, [y for c in curves.values() for _, y in c]))
    low, high = marks[0], marks[-1]
    span = high - low or 1.0

    def at(x: float, y: float) -> tuple[float, float]:
        down = TOP + (HEIGHT - TOP - BOTTOM) * (1 - (min(max(y, low), high) - low) / span)
        return LEFT + (WIDTH - LEFT - RIGHT) * (x - begin) / (end - begin), down

    said = ", ".join(f"{split} {number(points[-1][1])}" for split, points in curves.items() if points)
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(name)} by epoch; last: {escape(said)}">'
    ]
    for y in marks:
        _, down = at(begin, y)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{down:.1f}" y2="{down:.1f}"/>')
        parts.append(f'<text class="tick" x="{LEFT - 8}" y="{down + 4:.1f}" text-anchor="end">{number(y)}</text>')
    for x in _epochs(begin, end):
        across, _ = at(x, low)
        parts.append(f'<text class="tick" x="{across:.1f}" y="{HEIGHT - 10}" text-anchor="middle">{x:g}</text>')
    parts.append(f'<text class="tick" x="{LEFT - 8}" y="{HEIGHT - 10}" text-anchor="end">epoch</text>')
    if steps:
        parts.append(f'<polyline class="steps" points="{_path(steps, at)}"/>')
    for split, points in curves.items():
        if points:
            parts.append(f'<polyline class="line {split}" points="{_path(points, at)}"/>')
    for split, points in curves.items():
        for x, y in points if len(points) <= 60 else ():
            across, down = at(x, y)
            title = f"epoch {x:g}, {split}: {number(y)}"
            parts.append(
                f'<circle class="dot {split}" cx="{across:.1f}" cy="{down:.1f}" r="3"/>'
                f'<circle class="hit" cx="{across:.1f}" cy="{down:.1f}" r="9"><title>{title}</title></circle>'
            )
    where = valid if valid else train
    if best in where and math.isfinite(where[best]):
        across, down = at(float(best), where[best])
        parts.append(f'<circle class="best" cx="{across:.1f}" cy="{down:.1f}" r="6.5"/>')
    return "".join([*parts, "</svg>"])


def _path(points: Points, at: object) -> str:
    return " ".join("{:.1f},{:.1f}".format(*at(x, y)) for x, y in points)  # type: ignore[operator]


def limits(steps: Points, epochs: list[float]) -> tuple[float, float]:
    """The lowest and the highest value to show, of steps and epochs: a few steps that are far off do not flatten the
    rest."""
    ys = sorted(y for _, y in steps)
    far = len(ys) // 100 if len(ys) > 20 else 0
    inner = [*epochs, *ys[far : len(ys) - far]]
    return min(inner), max(inner)


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` round numbers that enclose low … high."""
    span = high - low
    if not span > max(abs(high) * 1e-12, 1e-300):
        return [low]
    raw = span / (count - 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def _epochs(begin: float, end: float) -> list[float]:
    """Round numbers of epochs for the axis."""
    span = end - begin
    step = next(s for p in range(9) for s in (10**p, 2 * 10**p, 5 * 10**p) if span / s <= 10)
    first = int(begin) if begin % step == 0 else int(begin // step + 1) * step
    found = [float(x) for x in range(first, int(end) + 1, step)]
    return ([begin] if begin == 1 and 1.0 not in found else []) + found
