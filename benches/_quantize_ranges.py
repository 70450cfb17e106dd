"""Which ranges of activations keep the most: each method of calibration, by the float model's class and outputs.

All methods see the same calibration samples, and are compared on the same others. The standard error of a difference is
that of its mean over the samples, each paired with itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

START, END = "<!-- ranges: python3 dev.py bench quantize --ranges -->", "<!-- end of ranges -->"
Array = NDArray[Any]


class Outputs(NamedTuple):
    """The outputs of the float model for each sample, and those of a method."""

    wanted: Array
    found: Array

    @property
    def kept(self) -> Array | None:
        """The share of classes each sample keeps; None where the float model names one class for all."""
        best = self.wanted.argmax(-1)
        if len(np.unique(best)) < 2:
            return None
        same: Array = (best == self.found.argmax(-1)).reshape(len(best), -1).mean(1)
        return same

    @property
    def squares(self) -> Array:
        """Each sample's mean square of the difference, by the range of the outputs."""
        off = (self.wanted.astype(np.float64) - self.found) / (float(np.ptp(self.wanted)) or 1.0)
        out: Array = (off**2).reshape(len(off), -1).mean(1)
        return out


def outputs(run: Callable[[Any], Any], calls: Sequence[Any], flat: Callable[[Array], Array]) -> Array:
    """What a model gives for the samples."""
    return flat(np.stack([run(given) for given in calls]))


def verdict(first: Array | None, other: Array | None, larger_is_better: bool) -> str:
    """Whether another method is better or worse than the first by more than the standard error."""
    if first is None or other is None:
        return ""
    off = other - first if larger_is_better else first - other
    error = off.std(ddof=1) / len(off) ** 0.5
    return "better" if off.mean() > error else "worse" if off.mean() < -error else "same"


def cell(each: Outputs) -> str:
    """Classes kept and their standard error, and the root mean square of the difference."""
    kept, rms = each.kept, f"{each.squares.mean() ** 0.5:.3%}"
    return rms if kept is None else f"{kept.mean():.2%} ± {kept.std(ddof=1) / len(kept) ** 0.5:.2%}, {rms}"


def row(name: str, found: Mapping[str, Outputs]) -> str:
    """A model's line: for each method a cell, with what it is beside the first one."""
    first = next(iter(found.values()))
    cells = []
    for each in found.values():
        said = []
        if each is not first:
            said = [verdict(first.kept, each.kept, True), verdict(first.squares, each.squares, False)]
        marks = "".join({"better": " +", "worse": " −", "same": " =", "": ""}[one] for one in said)
        cells.append(cell(each) + marks)
    return f"| {name} | {' | '.join(cells)} |"


def write(path: Path, methods: Sequence[str], rows: list[str]) -> None:
    """Put the table between its marks in a page."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    before, _, rest = text.partition(START)
    held, _, after = rest.partition(END)
    had = [line for line in held.splitlines() if line.startswith("| ") and not line.startswith("| model ")]
    kept = {line.split(" | ")[0]: line for line in (*had, *rows)}  # of models that were not measured, too
    head = [f"| model | {' | '.join(methods)} |", f"|---|{'---:|' * len(methods)}"]
    path.write_text("\n".join([f"{before}{START}", *head, *kept.values(), f"{END}{after}"]), encoding="utf-8")
