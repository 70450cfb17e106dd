"""A cell of a notebook that shows the curves and is drawn again while the training goes on."""

from __future__ import annotations

import html
import time
from typing import TYPE_CHECKING, Any

from ..events import Events, Step
from ..report import chart
from ..report.page import duration, style
from ..summary import number
from .progress import Progress

if TYPE_CHECKING:
    from ..learner import Learner

EVERY = 1.0  # seconds between drawings
# A ground of its own: a notebook may be light where the system is dark.
BOX = "background: var(--ground); padding: .75rem; border-radius: 10px"


class NotebookRenderer(Events):
    """Its `_repr_html_` is the state of the training; where IPython is there, its cell is updated."""

    def __init__(self) -> None:
        self._progress = Progress()
        self._learner: Learner | None = None
        self._handle: Any = None
        self._drawn = 0.0
        self._note = ""

    def begin(self, learner: Learner, epoch: int) -> None:
        self._learner = learner
        self._progress.begin(learner.history, epoch, learner.num_epochs)
        try:
            from IPython.display import display
        except ImportError:
            return
        self._handle = display(self, display_id=True)

    def epoch(self, split: str, epoch: int) -> None:
        self._progress.epoch()

    def step(self, step: Step) -> None:
        self._progress.step(step)
        self._draw(time.monotonic() - self._drawn > EVERY)

    def epoch_end(self, split: str, epoch: int, values: dict[str, float], seconds: float, items: int) -> None:
        self._draw(True)

    def end(self, reason: str | None, summary: Any) -> None:
        self._note = f"ended: {reason}" if reason else "ended"
        self._draw(True)

    def _draw(self, now: bool) -> None:
        if now and self._handle is not None:
            self._drawn = time.monotonic()
            self._handle.update(self)

    def _repr_html_(self) -> str:
        progress = self._progress
        step = progress.current
        if step is None:
            return "<p>waiting for the first batch …</p>"
        of = f"/{step.iterations:,}" if step.iterations else ""
        left = f" · {duration(progress.left)} left" if progress.left is not None and not self._note else ""
        split = "training" if step.split == "train" else "validation"
        state = (
            f"<b>epoch {step.epoch}/{progress.num_epochs}</b>, {split}, step {step.iteration:,}{of} · "
            f"{progress.rate:,.0f} items/s · {duration(progress.elapsed)} passed{left}"
        )
        figures = []
        directions = self._learner.facts()["directions"] if self._learner is not None else {}
        for name in progress.metrics():
            train, valid = (progress.history.of(split, name) for split in ("train", "valid"))
            steps = progress.steps.get(name, [])
            split = "valid" if valid else "train"
            best = progress.history.best(split, name, directions[name]) if name in directions else None
            last = [f"{what} {number(v[max(v)])}" for what, v in (("training", train), ("validation", valid)) if v]
            caption = f'<h2>{html.escape(name)}</h2><span class="soft">{" · ".join(last)}</span>'
            drawn = chart.svg(name, train, valid, steps[:: max(1, len(steps) // 300)], best)
            figures.append(f"<figure><figcaption>{caption}</figcaption>{drawn}</figure>")
        note = f" · {html.escape(self._note)}" if self._note else ""
        return (
            f'<style>{style(".emberlet")}</style><div class="emberlet" style="{BOX}"><p>{state}{note}</p>'
            f'<div class="grid" style="margin-top: .5rem">{"".join(figures)}</div></div>'
        )
