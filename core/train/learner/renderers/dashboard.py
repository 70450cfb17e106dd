"""A live dashboard in a terminal, drawn with rich: curves, the state of the epoch, rates, the time left, keys."""

from __future__ import annotations

import math
import time
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ....host.extras import require
from ..events import Events, Step
from ..report.chart import limits, ticks
from ..report.page import duration
from ..summary import number
from .braille import drawn
from .keys import Keys
from .progress import Progress

if TYPE_CHECKING:
    from ..learner import Learner

EVERY = 0.1  # seconds between drawings, at least
SHARE = 15  # times as long as a drawing takes, so that most of the time goes into training
COLORS = {"steps": "bright_black", "train": "bright_blue", "valid": "yellow"}
WORDS = {"train": "training", "valid": "validation"}


class Dashboard(Events):
    """console: rich's, on stderr by default. Raises MissingLibraryError without rich.

    Keys: q ends the training after the step, a second q at once; l halves the learning rate; m shows the next metric.
    """

    def __init__(self, console: Any = None) -> None:
        require("the dashboard", "rich")
        from rich.console import Console

        self._console = console or Console(stderr=True)
        self._progress = Progress()
        self._learner: Learner | None = None
        self._live: Any = None
        self._keys: Keys | None = None
        self._next = 0.0
        self._metric = 0
        self._note = ""

    def begin(self, learner: Learner, epoch: int) -> None:
        from rich.live import Live

        self._learner = learner
        self._progress.begin(learner.history, epoch, learner.num_epochs)
        self._keys = Keys()
        self._live = Live(self.view(), console=self._console, auto_refresh=False, transient=False)
        self._live.start()

    def epoch(self, split: str, epoch: int) -> None:
        self._progress.epoch()

    def step(self, step: Step) -> None:
        self._progress.step(step)
        now = time.monotonic()
        if now < self._next:
            return
        self._read_keys()
        self._draw()
        after = time.monotonic()
        self._next = after + max(EVERY, SHARE * (after - now))

    def checkpoint(self, epoch: int, deleted: list[int]) -> None:
        self._note = f"checkpoint of epoch {epoch} written"

    def end(self, reason: str | None, summary: Any) -> None:
        self._note = f"ended: {reason}" if reason else "ended"
        self._draw()
        self._stop()
        if self._learner is not None and self._learner.show_summary:
            self._console.print(str(summary), highlight=False, markup=False)

    def close(self) -> None:
        self._stop()
        if self._keys is not None:
            self._keys.close()

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _draw(self) -> None:
        if self._live is not None:
            self._live.update(self.view(), refresh=True)

    def _read_keys(self) -> None:
        for key in self._keys.pressed() if self._keys is not None else ():
            self.key(key)

    def key(self, key: str) -> None:
        """Do what a key asks for. Raises KeyboardInterrupt for the second q."""
        learner = self._learner
        if learner is None:
            return
        if key == "q":
            if learner.interrupter.stopped is not None:
                raise KeyboardInterrupt
            learner.interrupter.stop("by the key q")
            self._note = "ends after this step"
        elif key == "l":
            learner.lower_rate()
            self._note = f"learning rate × {learner.rate_factor:g}"
        elif key == "m":
            self._metric += 1

    # -- what is drawn -----------------------------------------------------------------------------------------------

    def view(self) -> Any:
        """The dashboard as something that rich prints."""
        from rich.console import Group
        from rich.panel import Panel

        width = max(40, min(self._console.width, 110))
        names = self._progress.metrics()
        rows = max(4, min(self._console.height - 12 - len(names), 16))
        parts: list[Any] = [self._state(width)]
        if names:
            parts += ["", self._chart(names[self._metric % len(names)], len(names), width - 4, rows)]
        parts += ["", self._table(names), self._foot()]
        learner = self._learner
        facts = learner.facts() if learner is not None else {}
        title = f"{facts.get('model', 'training')} · {facts.get('optimizer', '')} on {facts.get('backend', '')}"
        return Panel(Group(*parts), title=title, title_align="left", width=width, border_style="dim")

    def _state(self, width: int) -> Any:
        from rich.text import Text

        progress = self._progress
        step = progress.current
        if step is None:
            return Text("waiting for the first batch …")
        head = Text()
        head.append(f"epoch {step.epoch}/{progress.num_epochs}", style="bold")
        head.append(f"  {WORDS[step.split]}  step {step.iteration:,}")
        if step.iterations:
            part = step.iteration / step.iterations
            size = max(10, width - 66)
            full = round(part * size)
            head.append(f"/{step.iterations:,}  ")
            head.append("━" * full, style=COLORS[step.split])
            head.append("━" * (size - full), style="dim")
            head.append(f" {100 * part:3.0f} %")
        line = Text(f"{progress.rate:,.0f} items/s   {duration(progress.elapsed)} passed", style="")
        if progress.left is not None:
            line.append(f"   {duration(progress.left)} left")
        if step.lr is not None:
            line.append(f"   learning rate {step.lr:.3g}")
        head.append("\n")
        return head.append_text(line)

    def _chart(self, name: str, count: int, width: int, rows: int) -> Any:
        from rich.text import Text

        progress = self._progress
        curves: list[list[tuple[float, float]]] = [progress.steps.get(name, [])]
        for split in ("train", "valid"):
            curves.append([(float(e), v) for e, v in progress.history.of(split, name).items()])
        steps, *epochs = ([(x, y) for x, y in curve if math.isfinite(y)] for curve in curves)
        if not any((steps, *epochs)):
            return Text(name, style="bold")
        marks = ticks(*limits(steps, [y for curve in epochs for _, y in curve]), 4)
        low, high = marks[0], marks[-1]
        first = min(x for curve in curves for x, _ in curve)
        left = 0.0 if curves[0] and first <= 1 else first
        # Not yet to the last epoch, so that the beginning is large enough to be seen.
        reached = max(x for curve in curves for x, _ in curve)
        right = max(min(float(progress.num_epochs), float(math.ceil(1.25 * reached))), left + 1)
        labels = {round((1 - (y - low) / ((high - low) or 1.0)) * (rows - 1)): number(y) for y in marks}
        margin = max(len(label) for label in labels.values()) + 1
        text = Text(name, style="bold")
        for kind, what in (("steps", "steps"), ("train", "training"), ("valid", "validation")):
            if kind != "valid" or curves[2]:
                text.append("   ━ ", style=COLORS[kind])
                text.append(what, style="not bold")
        grid = drawn(curves, width - margin - 1, rows, left, right, low, high)
        kinds = list(COLORS.values())
        for i, row in enumerate(grid):
            text.append(f"\n{labels.get(i, '').rjust(margin)}", style="dim not bold")
            text.append("┤" if i in labels else "│", style="dim not bold")
            for owner, cells in groupby(row, key=lambda cell: cell[1]):
                style = "not bold" if owner is None else f"{kinds[owner]} not bold"
                text.append("".join(character for character, _ in cells), style=style)
        begin, end = f"epoch {left:g}", f"{right:g}"
        axis = begin.ljust(width - margin - 1 - len(end)) + end
        return text.append(f"\n{' ' * margin} {axis}", style="dim not bold")

    def _table(self, names: list[str]) -> Any:
        from rich.table import Table

        progress = self._progress
        table = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False, header_style="dim")
        for column, side in (("metric", "left"), ("training", "right"), ("validation", "right"), ("best", "right")):
            table.add_column(column, justify=side)
        step = progress.current
        now = {step.split: step.values} if step is not None else {}
        directions = self._learner.facts()["directions"] if self._learner is not None else {}
        for name in names:
            cells = []
            for split in ("train", "valid"):
                known = progress.history.of(split, name)
                value = now.get(split, {}).get(name, known[max(known)] if known else None)
                cells.append("" if value is None else number(value))
            split = "valid" if progress.history.of("valid", name) else "train"
            epoch = progress.history.best(split, name, directions[name]) if name in directions else None
            best = "" if epoch is None else f"{number(progress.history.of(split, name)[epoch])} (epoch {epoch})"
            table.add_row(name, *cells, best)
        return table

    def _foot(self) -> Any:
        from rich.text import Text

        foot = Text(style="dim")
        if self._keys is not None:
            foot.append("q stop   l halve the learning rate   m next metric")
        if self._note:
            foot.append(f"   {self._note}")
        return foot
