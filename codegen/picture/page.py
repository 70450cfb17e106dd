"""The tree of modules as a page: boxes that fold and unfold without a script."""

from __future__ import annotations

from collections.abc import Hashable
from html import escape

from .cost import short
from .svg import readable
from .tree import PLAIN, Box

STYLE = """body { font: 14px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; color: #1c2733 }
body { margin: 24px; max-width: 1000px }
details, .op { border: 1px solid #b9c3cd; border-radius: 8px; margin: 6px 0; padding: 6px 12px }
details, .op { background: #fff }
details[open] { background: #f7f8fa }
details[open] details[open] { background: #fff }
summary { cursor: pointer }
.op { display: inline-block; margin-right: 6px; color: #5b6b7b; padding: 2px 10px }
.op { border-radius: 12px; font-size: 12px }
.weighted { display: block; color: inherit; background: #e6f0fb; border-radius: 6px; font-size: 14px }
b + span, .shape { color: #5b6b7b; margin-left: 8px; font-size: 12px }
.cost { float: right; color: #5b6b7b; font-size: 12px }
.times { background: #1c2733; color: #fff; border-radius: 9px; padding: 1px 8px; margin-left: 8px; font-size: 12px }
"""


def as_html(box: Box, depth: int | None = None, note: str = "") -> str:
    """The page. depth: the number of levels that are open at first."""
    body = _box(box, readable(box) if depth is None else depth, set() if depth is None else None)
    title = escape(box.name)
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n'
        f"{body}\n<p>{escape(note)}</p>\n</html>\n"
    )


def _box(box: Box, depth: int, seen: set[Hashable] | None) -> str:
    costs = [f"{short(n)} {what}" for n, what in ((box.weights, "weights"), (box.flops, "FLOPs")) if n]
    shapes = box.outputs if box.inputs == box.outputs else f"{box.inputs} → {box.outputs}"
    line = f'<span class="cost">{escape(" · ".join(costs))}</span>'
    if box.kind == PLAIN:
        if not box.weights:
            return f'<span class="op" title="{escape(shapes)}">{escape(box.name)}</span>'
        name, kind = box.detail or box.name, box.name if box.detail else ""
    else:
        name, kind = box.name, box.kind
    times = f'<span class="times">×{box.times}</span>' if box.times > 1 else ""
    said = f"<b>{escape(name)}</b><span>{escape(kind)}</span>{times}"
    said += f'<span class="shape">{escape(shapes)}</span>{line}'
    if not box.boxes:
        return f'<div class="op weighted">{said}</div>'
    is_open = depth > 0 and (seen is None or box.structure() not in seen)
    if seen is not None and is_open:
        seen.add(box.structure())
    inner = "\n".join(_box(b, depth - 1, seen) for b in box.boxes)
    return f"<details{' open' if is_open else ''}><summary>{said}</summary>\n{inner}\n</details>"
