"""The report of a quantized model as one HTML page, which opens without a network, in light and dark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from .report import Report, Time, agreement, samples, share_word, size, slower

MARK = "written by emberlet quantize"
SHOWN = 24
LIGHT = "--ground: #fcfcfb; --ink: #1c1c1a; --soft: #62615c; --rule: #e4e3de; --before: #a9c9ef; --after: #2a78d6;"
DARK = "--ground: #171716; --ink: #f1f0ec; --soft: #a5a49d; --rule: #383835; --before: #2c4f7c; --after: #5b9df0;"
STYLE = f"""
:root {{ color-scheme: light dark; {LIGHT} }}
@media (prefers-color-scheme: dark) {{ :root {{ {DARK} }} }}
* {{ box-sizing: border-box; }}
body {{ margin: 0 auto; max-width: 60rem; padding: 2rem 1.25rem 3rem; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }}
h1 {{ font-size: 1.5rem; margin: 0 0 .25rem; overflow-wrap: anywhere; }}
h2 {{ font-size: 1rem; margin: 1.75rem 0 .4rem; }} p {{ margin: .2rem 0; }} .soft {{ color: var(--soft); }}
svg {{ display: block; width: 100%; height: auto; }} svg text {{ fill: var(--ink); font: 12px system-ui, sans-serif; }}
svg .soft {{ fill: var(--soft); }} .before {{ fill: var(--before); }} .after {{ fill: var(--after); }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .875rem; }}
th, td {{ text-align: right; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--rule); }}
th:first-child, td:first-child {{ text-align: left; overflow-wrap: anywhere; }}
"""


def as_html(r: Report) -> str:
    """The page."""
    how = f", activations in 8 bits ({escape(r.activations)})" if r.activations else ""
    parts = [
        f"<h1>{escape(r.model)}, quantized</h1>",
        f'<p class="soft">Weights in {escape(r.scheme)}{how}; compared on {samples(r.samples)}.</p>',
        f"<p><b>{size(r.before)} before, {size(r.after)} after</b>: {r.before / max(r.after, 1):.2f} times less.</p>",
        f"<p>{escape(agreement(r.comparison, r.accuracy))}.</p>",
    ]
    if r.held:
        parts.append(f"<p>In float: {escape(', '.join(r.held))}.</p>")
    parts += [f'<p class="soft">{escape(note)}</p>' for note in r.notes]
    both = [("float", float(r.before), "before"), ("quantized", float(r.after), "after")]
    parts += ["<h2>Size of the weights</h2>", bars(both, lambda count: size(int(count)))]
    if timed := [t for t in r.times if t.before is not None and t.after is not None]:
        parts += ["<h2>Time of one call</h2>", bars(_times(timed), lambda ms: f"{ms:.3f} ms")]
        parts += [f"<p>{escape(said)}.</p>" for said in slower(timed)]
    if r.layers:
        rows = [(x.name, x.alone, "after") for x in r.layers[:SHOWN]]
        rest = f", of {len(r.layers)}" if len(r.layers) > SHOWN else ""
        head = f"Difference if only this layer is quantized, the worst first{rest}, on {samples(r.alone)}"
        parts += [f"<h2>{head}</h2>", bars(rows, _percent)]
    if r.kept:
        rows = [(f"the worst {k.count}" if k.count else "none", k.comparison.rms, "after") for k in r.kept]
        head = f"Difference if the worst layers stay in float, on {samples(r.few)}"
        parts += [f"<h2>{head}</h2>", bars(rows, _percent), _kept_table(r)]
    return f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(r.model)} · quantized</title>
<style>{STYLE}</style></head>
<body><!-- {MARK} -->
{chr(10).join(parts)}
</body></html>
"""


def _percent(value: float) -> str:
    return f"{value:.3%}"


def _times(timed: Sequence[Time]) -> list[tuple[str, float, str]]:
    found = []
    for t in timed:
        found += [
            (f"{t.backend}, float", t.before or 0.0, "before"),
            (f"{t.backend}, quantized", t.after or 0.0, "after"),
        ]
    return found


def bars(rows: Sequence[tuple[str, float, str]], said: Callable[[float], str]) -> str:
    """Horizontal bars as SVG: (label, value, class) of each; said(value) is written behind it."""
    most = max((value for _, value, _ in rows), default=0.0) or 1.0
    left, wide, high = 240, 440, 22
    out = [f'<svg viewBox="0 0 780 {high * len(rows) + 4}" role="img">']
    for i, (label, value, kind) in enumerate(rows):
        y = i * high + 2
        name = label if len(label) <= 32 else "…" + label[-31:]
        length = max(1.0, wide * value / most)
        out.append(
            f'<text x="{left - 8}" y="{y + 14}" text-anchor="end">{escape(name)}</text>'
            f'<rect class="{kind}" x="{left}" y="{y + 2}" width="{length:.1f}" height="{high - 6}" rx="2"/>'
            f'<text class="soft" x="{left + length + 8:.1f}" y="{y + 14}">{escape(said(value))}</text>'
        )
    return "\n".join([*out, "</svg>"])


def _kept_table(r: Report) -> str:
    rows = ""
    for k in r.kept:
        cells = [f"{k.count}, to {escape(k.last)}" if k.count else "none", size(k.nbytes)]
        cells += [_percent(k.comparison.rms), f"{k.comparison.share:.2%}"]
        rows += "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
    return f"<table><tr><th>in float</th><th>size</th><th>difference</th><th>{share_word(r)}</th></tr>{rows}</table>"
