"""What a training left in its folder: curves by epoch and by step, and what its events say.

The folder may come from anybody: lines, names and values that no training writes are left out.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from ....errors import FormatError
from ....host.files import read_regular
from ..history import History

SPLITS = ("train", "valid")
STEPS = 400  # points of a curve of steps
METRICS = 256
EPOCHS = 10**9
MOST = 1e284  # of a value: the sum of 2**53 such values is a float, and so is the span of two
FACTS = {"model": str, "parameters": int, "optimizer": str, "backend": str, "num_epochs": int, "directions": dict}
_EPOCH = re.compile(r"epoch-([0-9]{1,9})")


class Run:
    """history: the values of each epoch; steps: {metric: [(position in epochs, mean of some steps)]} of the training;
    facts: what the log says about it; seconds: {(split, epoch): (seconds, items)}; checkpoints: epochs that have one;
    reason: why it ended early, or None; ended: whether it ended at all; began, last: times of the first and the last
    event, in seconds since 1970, or None."""

    def __init__(self) -> None:
        self.history = History()
        self.steps: dict[str, list[tuple[float, float]]] = {}
        self.facts: dict[str, Any] = {}
        self._order: dict[str, None] = {}  # of the metrics, as the events have them
        self.seconds: dict[tuple[str, int], tuple[float, int]] = {}
        self.checkpoints: set[int] = set()
        self.reason: str | None = None
        self.ended = False
        self.began: float | None = None
        self.last: float | None = None

    @property
    def metrics(self) -> list[str]:
        """The metrics that are numbers, in the order in which the training has them, if its events say so."""
        return list(dict.fromkeys([*self._order, *(name for split in SPLITS for name in self.history.values[split])]))

    def note(self, split: str, epoch: int, values: dict[str, float]) -> None:
        """Add what an event says about an epoch."""
        self._order.update(dict.fromkeys(values))
        self.history.add(split, epoch, values)


def read(directory: str | os.PathLike[str]) -> Run:
    """The training in a folder. Raises FormatError if there is none, or if it has too many metrics for a page."""
    folder, run = Path(directory), Run()
    _read_logs(folder, run)
    _read_events(folder / "events.jsonl", run)
    if len(run.metrics) > METRICS:
        raise FormatError(f"{folder}: {len(run.metrics)} metrics; at most {METRICS} are drawn")
    if not run.metrics and not run.facts:
        raise FormatError(f"{folder}: not the folder of a training, which has events.jsonl or train/epoch-1/*.log")
    return run


def _read_logs(folder: Path, run: Run) -> None:
    for split in SPLITS:
        for epoch, place in _epochs(folder / split):
            for path in sorted(place.glob("*.log")):
                pairs = _pairs(path)
                total = sum(count for _, count in pairs)
                if not total:
                    continue
                mean = sum(value * count for value, count in pairs) / total
                run.history.add(split, epoch, {path.stem: mean})
                if split == "train":
                    run.steps.setdefault(path.stem, []).extend(_thinned(epoch, pairs))
    for name, points in run.steps.items():
        every = -(-len(points) // STEPS)
        groups = [points[i : i + every] for i in range(0, len(points), every)]
        run.steps[name] = [(sum(x for x, _ in g) / len(g), sum(y for _, y in g) / len(g)) for g in groups]


def _epochs(folder: Path) -> list[tuple[int, Path]]:
    names = os.listdir(folder) if folder.is_dir() else []
    return sorted((int(match[1]), folder / name) for name in names if (match := _EPOCH.fullmatch(name)))


def _pairs(path: Path) -> list[tuple[float, int]]:
    """The (value, items) of a file; of other lines, and of one that was being written, none."""
    found = []
    for line in _lines(path):
        value, _, count = line.partition(",")
        try:
            number, items = float(value), int(count)
        except ValueError:
            continue
        if abs(number) < MOST and 0 < items < 1 << 53:
            found.append((number, items))
    return found


def _thinned(epoch: int, pairs: list[tuple[float, int]]) -> list[tuple[float, float]]:
    return [(epoch - 1 + (i + 1) / len(pairs), value) for i, (value, _) in enumerate(pairs)]


def _lines(path: Path) -> list[str]:
    """Those of a file; none of a pipe or a device. Raises OSError."""
    return read_regular(path).decode("utf-8", "replace").splitlines() if path.is_file() else []


def _read_events(path: Path, run: Run) -> None:
    for line in _lines(path):
        try:
            event = json.loads(line)
            _take(event["event"], _seconds(event["time"]), event, run)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            continue  # a line that a kill cut off


def _take(kind: str, time: float, event: dict[str, Any], run: Run) -> None:
    """Add an event to what is known. Raises one of Python's errors for what is none."""
    run.began, run.last = run.began or time, time
    if kind == "begin":
        first = _whole(event.get("epoch", 1), EPOCHS)
        facts = {name: event[name] for name, kind in FACTS.items() if type(event.get(name)) is kind}
        facts["directions"] = {k: v for k, v in facts.get("directions", {}).items() if v in ("highest", "lowest")}
        run.facts, run.ended, run.reason = facts, False, None
        run.checkpoints = {epoch for epoch in run.checkpoints if epoch < first}
        for where in [where for where in run.seconds if where[1] >= first]:
            del run.seconds[where]
    elif kind == "epoch_end":
        split, epoch = event["split"], _whole(event["epoch"], EPOCHS)
        # Of a metric that is no mean the logs do not give the value of an epoch.
        known = {_logged(name): _number(value) for name, value in event["values"].items()}
        if split not in SPLITS:
            raise ValueError("no split")
        run.seconds[split, epoch] = (_seconds(event["seconds"]), _whole(event["items"], 1 << 53))
        run.note(split, epoch, known)
    elif kind == "checkpoint":
        run.checkpoints = (run.checkpoints | {_whole(event["epoch"], EPOCHS)}) - set(event["deleted"])
    elif kind == "end":
        run.ended, run.reason = True, None if event["reason"] is None else str(event["reason"])


def _number(value: Any) -> float:
    """A float; one beyond what can be drawn counts as infinite."""
    if type(value) not in (int, float):
        raise ValueError("no number")
    return float(value) if abs(value) < MOST else float(value) * float("inf")


def _seconds(value: Any) -> float:
    if not 0 <= _number(value) < 1e11:
        raise ValueError("no time")
    return float(value)


def _whole(value: Any, most: int) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError("no whole number")
    return value


def _logged(metric: str) -> str:
    from ..loggers import file_name

    return file_name(metric)
