"""The report as one HTML page, which opens without a network, in light and dark."""

from __future__ import annotations

import time
from html import escape

from ..summary import number
from . import chart
from .reading import SPLITS, Run

MARK = "written by emberlet train-report"

LIGHT = (
    "--ground: #fcfcfb; --card: #ffffff; --ink: #1c1c1a; --soft: #62615c; --rule: #e4e3de; --train: #2a78d6; "
    "--valid: #d9571f; --steps: #a9c9ef;"
)
DARK = (
    "--ground: #171716; --card: #1f1f1e; --ink: #f1f0ec; --soft: #a5a49d; --rule: #383835; --train: #5b9df0; "
    "--valid: #f0824f; --steps: #2c4f7c;"
)
PAGE = """
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 2rem 1.25rem 3rem; background: var(--ground); }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .25rem; overflow-wrap: anywhere; }
"""
RULES = """
h2 { font-size: 1rem; margin: 0; }
p { margin: 0; } .soft { color: var(--soft); }
.status { margin: .5rem 0 1.5rem; }
.status b { font-weight: 600; }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: 0 0 .75rem; color: var(--soft);
  font-size: .875rem; }
.legend span { display: inline-flex; align-items: center; gap: .4rem; }
.key { width: 1.25rem; height: 0; border-top: 2.5px solid; } .key.thin { border-top-width: 1.5px; }
.ring { width: .8rem; height: .8rem; border: 2px solid var(--ink); border-radius: 50%; }
.grid { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr)); }
figure, .card { margin: 0; background: var(--card); border: 1px solid var(--rule); border-radius: 10px;
  padding: .9rem 1rem .6rem; min-width: 0; }
figcaption { display: flex; flex-wrap: wrap; justify-content: space-between; gap: .1rem 1rem; margin-bottom: .35rem; }
figcaption .soft { font-size: .875rem; font-variant-numeric: tabular-nums; }
svg { display: block; width: 100%; height: auto; overflow: visible; }
svg .grid { stroke: var(--rule); stroke-width: 1; }
svg .tick { fill: var(--soft); font: 11.5px system-ui, sans-serif; font-variant-numeric: tabular-nums; }
svg polyline { fill: none; stroke-linejoin: round; stroke-linecap: round; }
svg .steps { stroke: var(--steps); stroke-width: 1.25; }
svg .line { stroke-width: 2.25; } svg .line.train { stroke: var(--train); } svg .line.valid { stroke: var(--valid); }
svg .dot { stroke: var(--card); stroke-width: 1.5; } svg .dot.train { fill: var(--train); }
svg .dot.valid { fill: var(--valid); } svg .hit { fill: transparent; }
svg .best { fill: none; stroke: var(--ink); stroke-width: 1.75; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .875rem; }
th, td { text-align: right; padding: .3rem .6rem; border-bottom: 1px solid var(--rule); white-space: nowrap; }
th { font-weight: 600; vertical-align: bottom; } th .soft { font-weight: 400; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
tr:last-child td { border-bottom: 0; }
.card { margin-top: 1rem; } .card h2 { margin-bottom: .4rem; }
"""


def style(root: str) -> str:
    """The rules for what is drawn below the selector `root`, in light and dark."""
    font = 'font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif;'
    return (
        f"{root} {{ color-scheme: light dark; {LIGHT} color: var(--ink); {font} }}\n"
        f"@media (prefers-color-scheme: dark) {{ {root} {{ {DARK} }} }}\n"
        f"{root} {{ {RULES} }}\n"
    )


def as_html(run: Run, title: str) -> str:
    """The page. title: the name of the folder."""
    figures = "".join(_figure(run, name) for name in run.metrics)
    return f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)} · training</title>
<style>{PAGE}{style("body")}</style></head>
<body><!-- {MARK} -->
<h1>{escape(title)}</h1>
{_status(run)}
{_legend(run)}
<div class="grid">{figures}</div>
{_table(run)}
</body></html>
"""


def _status(run: Run) -> str:
    facts = run.facts
    about = []
    if "model" in facts:
        about = [
            f"{facts.get('model')} with {facts.get('parameters', 0):,} parameters",
            f"{facts.get('optimizer')} on {facts.get('backend')}",
        ]
    if run.began is not None:
        about.append("begun " + time.strftime("%Y-%m-%d %H:%M", time.localtime(run.began)))
    trained = sum(seconds for seconds, _ in run.seconds.values())
    if trained:
        about.append(f"{duration(trained)} of training and validation")
    epochs = max((max(v) for m in run.history.values.values() for v in m.values()), default=0)
    of = f" of {facts['num_epochs']}" if "num_epochs" in facts else ""
    if run.reason:
        state = f"ended early: {run.reason}"
    elif run.ended:
        state = "ended"
    else:
        state = "not ended"
    text = f"<b>{epochs}{of} epochs</b>, {escape(state)}"
    return f'<p class="soft">{escape(" · ".join(about))}</p><p class="status">{text}</p>'


def _legend(run: Run) -> str:
    keys = [("var(--train)", "", "training, epoch"), ("var(--steps)", " thin", "training, steps")]
    if run.history.values["valid"]:
        keys.append(("var(--valid)", "", "validation"))
    spans = [f'<span><i class="key{thin}" style="border-color:{color}"></i>{what}</span>' for color, thin, what in keys]
    if any(_best(run, name) for name in run.metrics):
        spans.append('<span><i class="ring"></i>best epoch</span>')
    return f'<p class="legend">{"".join(spans)}</p>'


def _best(run: Run, name: str) -> int | None:
    """The best epoch of a metric where it is known which direction is better: that of the loss."""
    split = "valid" if run.history.of("valid", name) else "train"
    directions = run.facts.get("directions", {})
    direction = directions.get(name) or ("lowest" if name.lower().endswith("loss") else None)
    return run.history.best(split, name, direction) if direction else None


def _figure(run: Run, name: str) -> str:
    train, valid = (run.history.of(split, name) for split in SPLITS)
    drawn = chart.svg(name, train, valid, run.steps.get(name, []), _best(run, name))
    last = [f"{what} {number(v[max(v)])}" for what, v in (("training", train), ("validation", valid)) if v]
    caption = f'<h2>{escape(name)}</h2><span class="soft">{" · ".join(last)}</span>'
    return f"<figure><figcaption>{caption}</figcaption>{drawn}</figure>"


def _table(run: Run) -> str:
    found = [(split, name, run.history.of(split, name)) for name in run.metrics for split in SPLITS]
    columns = [(split, name, values) for split, name, values in found if values]
    epochs = sorted({epoch for _, _, values in columns for epoch in values})
    if not epochs:
        return ""
    words = {"train": "training", "valid": "validation"}
    head = "".join(f'<th>{escape(name)}<br><span class="soft">{words[split]}</span></th>' for split, name, _ in columns)
    rows = []
    for epoch in epochs:
        cells = []
        for _, _, values in columns:
            value = values.get(epoch)
            cells.append(f"<td>{'' if value is None else number(value)}</td>")
        seconds = [run.seconds[where][0] for where in ((split, epoch) for split in SPLITS) if where in run.seconds]
        took, items = run.seconds.get(("train", epoch), (0.0, 0))
        rate = f"{items / took:,.0f}" if took else ""
        kept = "yes" if epoch in run.checkpoints else ""
        rows.append(
            f"<tr><td>{epoch}</td>{''.join(cells)}<td>{duration(sum(seconds)) if seconds else ''}</td><td>{rate}</td>"
            f"<td>{kept}</td></tr>"
        )
    return (
        f'<div class="card"><h2>Epochs</h2><div class="scroll"><table><thead><tr><th>epoch</th>{head}<th>time</th>'
        f"<th>items/s</th><th>checkpoint</th></tr></thead><tbody>{''.join(rows)}</tbody></table></div></div>"
    )


def duration(seconds: float) -> str:
    """Seconds for people: 12.3 s, 4:05 min, 3:20 h."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02} h"
