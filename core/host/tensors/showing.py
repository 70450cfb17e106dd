"""Pictures of tensors: `emberlet.show(x)` in a terminal, and what a notebook shows of a tensor.

One axis is a line, two are a heat map, (height, width, 3), (3, height, width) and (1, height, width) an image; of
more axes the first element of each is shown. Values are spread from the smallest to the largest, of images from 0 to
1 (or to 255 where one is larger than 1).
"""

from __future__ import annotations

import os
import sys
from html import escape
from typing import Any, NamedTuple

from ...lookup import function as _found
from ...tensor import Tensor

WIDTH, HEIGHT = 64, 32  # pixels of the largest picture
_SHADES = " .:-=+*#%@"
# Viridis at nine places (van der Walt and Smith 2015).
_COLORS = ((68, 1, 84), (71, 44, 122), (59, 81, 139), (44, 113, 142), (33, 144, 141), (39, 173, 129), (92, 200, 99),
           (170, 220, 50), (253, 231, 37))  # fmt: skip
Pixel = tuple[int, int, int]


def function(name: str) -> Any:
    """The public function called `name`."""
    return _found(name)


class Picture(NamedTuple):
    """rows of pixels; line: the values of a line, from 0 to 1, None where there is none."""

    pixels: list[list[Pixel]]
    line: list[float | None] | None


def _color(share: float) -> Pixel:
    if share != share:
        return (128, 128, 128)
    at = min(max(share, 0.0), 1.0) * (len(_COLORS) - 1)
    i = min(int(at), len(_COLORS) - 2)
    part = at - i
    low, high = _COLORS[i], _COLORS[i + 1]
    return (_mixed(low[0], high[0], part), _mixed(low[1], high[1], part), _mixed(low[2], high[2], part))


def _mixed(low: int, high: int, part: float) -> int:
    return round(low + part * (high - low))


def _thinned(x: Tensor, axis: int, most: int) -> Tensor:
    """At most `most` evenly spaced elements along an axis."""
    n = x.shape[axis]
    if n <= most:
        return x
    kept = [i * n // most for i in range(most)]
    return function("take")(x, function("asarray")(kept, backend=x.backend), axis)


def _spread(values: list[Any]) -> list[float]:
    """Numbers as shares of the way from the smallest to the largest finite one."""
    numbers = [float(v) for v in values]
    finite = [v for v in numbers if v - v == 0]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    span = high - low
    return [
        v if v != v else 1.0 if v > high else 0.0 if v < low else (v - low) / span if span else 0.5 for v in numbers
    ]


def picture(x: Tensor, width: int = WIDTH, height: int = HEIGHT) -> Picture | None:
    """The picture of a tensor; None for text and for what has no elements."""
    if x.dtype.kind == "string" or not x.size:
        return None
    if x.dtype.kind == "complex":
        x = function("abs")(x)
    if x.dtype.kind != "bool" and x.dtype.is_float and x.dtype.bits < 32:
        x = function("astype")(x, "float32")
    while len(x.shape) > 3 or (len(x.shape) == 3 and not _is_image(x)):
        x = x[0]
    if len(x.shape) < 2:
        values = _thinned(function("reshape")(x, (x.size,)), 0, width).tolist()
        return Picture([], [None if v != v else v for v in _spread(values)])
    if len(x.shape) == 3:
        return Picture(_image(x, width, height), None)
    x = _thinned(_thinned(x, 0, height), 1, width)
    shares = _spread([v for row in x.tolist() for v in row])
    columns = x.shape[1]
    return Picture([[_color(v) for v in shares[i : i + columns]] for i in range(0, len(shares), columns)], None)


def _is_image(x: Tensor) -> bool:
    return x.shape[0] in (1, 3) or x.shape[2] in (1, 3)


def _image(x: Tensor, width: int, height: int) -> list[list[Pixel]]:
    first = x.shape[0] in (1, 3) and x.shape[2] not in (1, 3)
    x = function("permute_dims")(x, (1, 2, 0)) if first else x
    rows = _thinned(_thinned(x, 0, height), 1, width).tolist()
    whole = any(float(v) > 1 for row in rows for pixel in row for v in pixel)

    def level(v: Any) -> int:
        value = float(v) if whole else float(v) * 255
        return 0 if value != value else round(min(max(value, 0.0), 255.0))

    return [[(level(p[0]), level(p[-2] if len(p) > 1 else p[0]), level(p[-1])) for p in row] for row in rows]


def _has_colors(file: Any) -> bool:
    return "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb" and bool(getattr(file, "isatty", bool)())


def text(x: Tensor, color: bool = False, width: int = WIDTH, height: int = HEIGHT) -> str:
    """The picture in characters: half blocks in color, two pixels each, or shades; a line in eighths of blocks."""
    made = picture(x, width, height)
    if made is None:
        return str(x)
    if made.line is not None:
        return "".join(" " if v is None else "▁▂▃▄▅▆▇█"[min(int(v * 8), 7)] for v in made.line)
    if not color:
        return "\n".join("".join(_shade(p) * 2 for p in row).rstrip() for row in made.pixels)
    lines = []
    for i in range(0, len(made.pixels), 2):
        upper = made.pixels[i]
        lower = made.pixels[i + 1] if i + 1 < len(made.pixels) else [None] * len(upper)
        cells = [
            f"\033[38;2;{a[0]};{a[1]};{a[2]}m" + (f"\033[48;2;{b[0]};{b[1]};{b[2]}m" if b else "\033[49m") + "▀"
            for a, b in zip(upper, lower, strict=True)
        ]
        lines.append("".join(cells) + "\033[0m")
    return "\n".join(lines)


def _shade(pixel: Pixel) -> str:
    light = (0.2126 * pixel[0] + 0.7152 * pixel[1] + 0.0722 * pixel[2]) / 255
    return _SHADES[min(int(light * len(_SHADES)), len(_SHADES) - 1)]


def svg(x: Tensor, size: int = 160) -> str:
    """The picture as an SVG element; "" if there is none."""
    made = picture(x)
    if made is None:
        return ""
    if made.line is not None:
        points = [(i, 1 - v) for i, v in enumerate(made.line) if v is not None]
        path = " ".join(f"{i + 0.5:g},{y:.4g}" for i, y in points)
        return (
            f'<svg width="{size}" height="{size // 3}" viewBox="0 -0.05 {max(len(made.line), 1)} 1.1" '
            f'preserveAspectRatio="none"><polyline points="{path}" fill="none" stroke="currentColor" '
            'vector-effect="non-scaling-stroke"/></svg>'
        )
    rows, columns = len(made.pixels), len(made.pixels[0])
    boxes = [
        f'<rect x="{c}" y="{r}" width="1" height="1" fill="#{p[0]:02x}{p[1]:02x}{p[2]:02x}"/>'
        for r, row in enumerate(made.pixels)
        for c, p in enumerate(row)
    ]
    scale = size / max(rows, columns)
    return (
        f'<svg width="{columns * scale:.0f}" height="{rows * scale:.0f}" viewBox="0 0 {columns} {rows}" '
        f'shape-rendering="crispEdges">{"".join(boxes)}</svg>'
    )


def html(x: Tensor) -> str:
    """`_repr_html_` of a tensor: shape, dtype and device, a small picture, and the values at the corners."""
    shape = " × ".join(str(n) for n in x.shape) or "0-D"
    said = f"{shape} · {x.dtype} · {x.device}"
    shown = str(function("format_with")(_corner(x), "")) if x.size else "no elements"
    return (
        f'<div class="emberlet-tensor"><div><code>{escape(said)}</code></div>{svg(x)}'
        f"<details><summary>values</summary><pre>{escape(shown)}</pre></details></div>"
    )


def _corner(x: Tensor, most: int = 6) -> Tensor:
    for axis, n in enumerate(x.shape):
        if n > most:
            x = x[tuple(slice(None) if i != axis else slice(0, most) for i in range(len(x.shape)))]
    return x


class _Shown:
    """What a notebook shows of `show(x)`."""

    def __init__(self, markup: str) -> None:
        self._markup = markup

    def _repr_html_(self) -> str:
        return self._markup


def in_notebook() -> bool:
    """Whether IPython runs in a notebook: in a terminal it has no kernel."""
    shell = sys.modules.get("IPython")
    current = getattr(shell, "get_ipython", lambda: None)() if shell else None
    return getattr(current, "kernel", None) is not None


def show(x: Any, *, width: int = WIDTH, height: int = HEIGHT, color: bool | None = None, file: Any = None) -> Any:
    """Draw a tensor: a line, a heat map or an image, in the terminal, or as SVG in a notebook.

    width, height: the largest picture in pixels, of which a larger tensor shows evenly spaced ones; color: None uses
    colors where `file` (standard output) is a terminal that has them and NO_COLOR is not set.
    """
    x = getattr(x, "tensor", x)
    x = x if isinstance(x, Tensor) else function("asarray")(x)
    if file is None and in_notebook():
        return _Shown(html(x))
    file = file or sys.stdout
    print(text(x, _has_colors(file) if color is None else color, width, height), file=file)
    return None
