"""The tree of modules as an SVG picture: boxes within boxes from top to bottom, arrows with shapes between them.

Consecutive steps are placed below one another. An arrow that skips a box runs along its right side. Unless a depth is
given, a class is open at its first occurrence and closed at later ones.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import field
from html import escape

from ..records import dataclass
from .cost import short
from .tree import PLAIN, TOP, Box

MOST_BOXES = 110  # boxes that a picture shows at most, unless a depth is given
FONT, SMALL = 13, 11
PAD, GAP, LANE = 14, 30, 14
HEAD, OPERATION = 42, 26
BOLD = 1.12  # the ratio of the widths of bold and normal text
FILLS = ("#f7f8fa", "#ffffff")
WEIGHTED, CLOSED = "#e6f0fb", "#eef1f5"
STYLE = f"""text {{ font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif }}
text {{ font-size: {FONT}px; fill: #1c2733 }}
.small {{ font-size: {SMALL}px; fill: #5b6b7b }}
.name {{ font-weight: 600 }}
.edge {{ stroke: #7c8b9a; stroke-width: 1.3; fill: none }}"""


@dataclass
class Placed:
    """A box with its position, relative to the enclosing box."""

    box: Box
    depth: int
    is_open: bool
    width: float = 0
    height: float = 0
    x: float = 0
    y: float = 0
    inner: list[Placed] = field(default_factory=list)
    lanes: dict[int, int] = field(default_factory=dict)


def as_svg(box: Box, depth: int | None = None, note: str = "") -> str:
    """The picture. depth: the number of open levels of modules; by default as many as stay readable. note: a line below
    it."""
    root = _placed(box, 0, readable(box) if depth is None else depth, set() if depth is None else None)
    width, height = root.width + 2 * PAD, root.height + 2 * PAD + (20 if note else 0)
    out: list[str] = []
    _draw(root, PAD, PAD, out)
    if note:
        out.append(f'<text class="small" x="{PAD}" y="{height - PAD + 4:g}">{escape(note)}</text>')
    arrow = (
        '<marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#7c8b9a"/></marker>'
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
    head += f'viewBox="0 0 {width:g} {height:g}">'
    body = [f"<style>{STYLE}</style>", f"<defs>{arrow}</defs>", '<rect width="100%" height="100%" fill="#fff"/>']
    return "\n".join([head, *body, *out, "</svg>"]) + "\n"


def readable(box: Box) -> int:
    """The largest depth with a readable picture."""
    depth = 1
    while depth < 12 and shown(box, depth, set()) < shown(box, depth + 1, set()) <= MOST_BOXES:
        depth += 1
    return depth


def shown(box: Box, depth: int, seen: set[Hashable]) -> int:
    """The number of boxes in a picture with this many open levels."""
    if depth <= 0 or not box.boxes or box.structure() in seen:
        return 1
    seen.add(box.structure())
    return 1 + sum(shown(b, depth - 1, seen) for b in box.boxes)


# -- where everything is ----------------------------------------------------------------------------------------------


def _placed(box: Box, level: int, depth: int, seen: set[Hashable] | None) -> Placed:
    """seen: the classes opened before this box; None to open all."""
    here = Placed(box, level, depth > 0 and bool(box.boxes) and (seen is None or box.structure() not in seen))
    if here.is_open and seen is not None:
        seen.add(box.structure())
    title, said = titles(box)
    name, _, rest = title.partition("  ")
    wide = _wide(name, FONT) * BOLD + _wide(rest, SMALL) + 8 + (46 if box.times > 1 else 0)
    least = max(wide, _wide(said, SMALL)) + 2 * PAD
    if not here.is_open:
        plain = box.kind == PLAIN and not box.weights
        here.width, here.height = least, OPERATION if plain else HEAD
        return here
    here.inner = [_placed(b, level + 1, depth - 1, seen) for b in box.boxes]
    here.lanes = _lanes(box)
    count = 1 + max(here.lanes.values(), default=-1)
    labels = _labels(box)
    column = max(max(p.width for p in here.inner), 2 * labels + 26)
    here.width = max(least, column + 2 * PAD + LANE * count + (6 if count else 0))
    y: float = HEAD + GAP - 8
    joined = {(e.start, e.end) for e in box.edges}
    middle = PAD + column / 2
    for i, p in enumerate(here.inner):
        p.x, p.y = middle - p.width / 2, y
        y += p.height + (GAP if (i, i + 1) in joined else 10)
    here.height = y + (4 if (len(here.inner) - 1, len(here.inner)) in joined else PAD)
    return here


def _labels(box: Box) -> float:
    """The width of the shapes beside the arrows between neighbors."""
    return max((_wide(e.shape, SMALL) for e in box.edges if e.end == e.start + 1), default=0)


def _lanes(box: Box) -> dict[int, int]:
    """{index of an edge that skips boxes: its lane, the first that is free all the way}."""
    lanes: dict[int, int] = {}
    busy: list[list[tuple[int, int]]] = []
    skipping = [(e.end - e.start, i, e) for i, e in enumerate(box.edges) if e.end != e.start + 1]
    for _, i, e in sorted(skipping, key=lambda s: s[:2]):
        free = [n for n, taken in enumerate(busy) if all(e.end <= a or b <= e.start for a, b in taken)]
        n = free[0] if free else len(busy)
        if not free:
            busy.append([])
        busy[n].append((e.start, e.end))
        lanes[i] = n
    return lanes


def titles(box: Box) -> tuple[str, str]:
    """The two lines of text of a box: its name and kind, and its cost."""
    if box.kind == PLAIN:
        title = f"{box.detail}  {box.name}" if box.detail else box.name
    else:
        title = f"{box.name}  {box.kind}"
    said = [f"{short(box.weights)} weights"] if box.weights else []
    if box.flops:
        said.append(f"{short(box.flops)} FLOPs")
    return title, " · ".join(said)


def _wide(text: str, size: int) -> float:
    """The approximate width of a text."""
    narrow = sum(c in "ijltfrI.,:;()|!' " for c in text)
    broad = sum(c in "mwMW" for c in text)
    return size * (0.61 * (len(text) - narrow - broad) + 0.34 * narrow + 0.9 * broad)


# -- drawing ----------------------------------------------------------------------------------------------------------


def _draw(p: Placed, x: float, y: float, out: list[str]) -> None:
    box = p.box
    plain = box.kind == PLAIN and not box.weights
    if plain:
        fill, radius = "#ffffff", 12
    elif p.is_open:
        fill, radius = FILLS[p.depth % 2], 8
    else:
        fill, radius = (WEIGHTED if box.kind == PLAIN else CLOSED), 6
    if box.times > 1:  # a stack of sheets
        for k in (6, 3):
            out.append(_rect(x + k, y + k, p.width, p.height, fill, radius))
    out.append(_rect(x, y, p.width, p.height, fill, radius))
    title, said = titles(box)
    name, _, kind = title.partition("  ")
    left, row = x + PAD, y + (17 if not plain else OPERATION / 2 + 4.5)
    if plain:
        out.append(
            f'<text class="small" x="{x + p.width / 2:g}" y="{row:g}" text-anchor="middle">{escape(title)}</text>'
        )
    else:
        rest = f' <tspan class="small">{escape(kind)}</tspan>' if kind else ""
        out.append(f'<text x="{left:g}" y="{row:g}"><tspan class="name">{escape(name)}</tspan>{rest}</text>')
        out.append(f'<text class="small" x="{left:g}" y="{y + 33:g}">{escape(said)}</text>')
    if box.times > 1:
        out.append(f'<text class="name" x="{x + p.width - PAD:g}" y="{y + 17:g}" text-anchor="end">×{box.times}</text>')
    if p.is_open:
        _edges(p, x, y, out)
        for inner in p.inner:
            _draw(inner, x + inner.x, y + inner.y, out)


def _rect(x: float, y: float, width: float, height: float, fill: str, radius: int) -> str:
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius}" fill="{fill}" '
        'stroke="#b9c3cd"/>'
    )


def _edges(p: Placed, x: float, y: float, out: list[str]) -> None:
    last = len(p.inner)
    center = p.inner[0].x + p.inner[0].width / 2
    right = max(*(i.x + i.width for i in p.inner), center + 7 + _labels(p.box))  # lanes run beside the shapes
    middle = x + center
    for n, e in enumerate(p.box.edges):
        top = y + HEAD - 4 if e.start == TOP else y + p.inner[e.start].y + p.inner[e.start].height
        end = y + p.height if e.end == last else y + p.inner[e.end].y
        if n not in p.lanes:
            if e.start != TOP and p.inner[e.start].box.times > 1:
                top += 6
            out.append(f'<path class="edge" d="M{middle:g} {top:g}V{end - 1:g}" marker-end="url(#a)"/>')
            place = f'x="{middle + 7:g}" y="{(top + end) / 2 + 4:g}"'
            out.append(f'<text class="small" {place}>{escape(e.shape)}</text>')
            continue
        lane = x + right + 10 + LANE * p.lanes[n]
        if e.start == TOP:
            path = f"M{lane:g} {top:g}"
        else:
            source = p.inner[e.start]
            path = f"M{x + source.x + source.width:g} {top - source.height / 2:g}H{lane:g}"
        if e.end == last:
            path += f"V{end - 1:g}"
        else:
            target = p.inner[e.end]
            path += f"V{end + target.height / 2 + 4:g}H{x + target.x + target.width + 1:g}"
        tip = f"<title>{escape(e.shape)}</title>"
        out.append(f'<path class="edge" d="{path}" marker-end="url(#a)">{tip}</path>')
