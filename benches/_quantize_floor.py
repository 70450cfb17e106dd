"""How fast an int8 network can be on NumPy, which has no products of integers: the bare calls of NumPy of plans.

The floor is the float plan's own calls without relu, and behind them what rounding to 8 bits is at least: for each
array that the int8 plan rounds a clip (which is the relu, too) and np.rint, in place, since weights can take the
scales; where it takes the range of the call, the largest element, a division and np.rint. The bare calls of both plans
and of the floor are timed in turns, and the least time of each counts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

TURNS = 10
START, END = "<!-- floor: python3 dev.py bench quantize --floor -->", "<!-- end of floor -->"
Calls = list[tuple[Callable[..., Any], tuple[Any, ...]]]


class Bare:
    """The calls of a model's plan on NumPy, with arrays for a sample."""

    def __init__(self, folder: Path, sample: dict[str, Any]) -> None:
        import emberlet
        from emberlet.host.cli.model import load

        loaded = load(str(folder / "model.py"), "numpy")
        made = loaded.model.compile(backend="numpy")
        given = [sample[i.name] for i in loaded.inputs]
        made(*given)
        plan: Any = made.plan(*[emberlet.asarray(x, device="numpy") for x in given])
        bound = plan._free[-1]
        self.copies: Calls = [(np.copyto, (array, given[position])) for array, position in bound.copies]
        self.steps: list[Any] = plan.steps
        self.calls: Calls = bound.steps
        self.quiet = bound.quiet


def rounding(steps: list[Any]) -> Calls:
    """The fewest calls that round what an int8 plan rounds."""
    calls: Calls = []
    scale, low, high = (np.array(n, np.float32) for n in (0.01, -128, 127))
    for step in steps:
        name = getattr(step.function, "__name__", "")
        signed = name == "subtract" and not isinstance(step.args[1], np.ndarray) and step.args[1] > 1e7
        if name == "find_levels":
            x = np.ones(step.args[0].shape, np.float32)
            calls += [(np.maximum.reduce, (x, None)), (np.divide, (x, scale, x)), (np.rint, (x, x))]
        elif name == "rint" or signed:
            x = np.ones(step.args[-1].shape, np.float32)
            calls += [(np.clip, (x, low, high, x)), (np.rint, (x, x))]
    clip = getattr(np._core.umath, "clip", np.clip)  # what plans call
    return [(clip if f is np.clip else f, args) for f, args in calls]


def is_relu(step: Any) -> bool:
    """Whether a step is max(x, 0)."""
    name, ends = getattr(step.function, "__name__", ""), step.args[1:3]
    return name == "clip" and not any(isinstance(n, np.ndarray) for n in ends) and ends[0] == 0 and math.isinf(ends[1])


def least(ways: dict[str, tuple[Any, Calls]], seconds: float) -> dict[str, float]:
    """The least milliseconds of each way's calls, in turns."""

    def run(calls: Calls) -> float:
        begin = time.perf_counter()
        for function, args in calls:
            function(*args)
        return time.perf_counter() - begin

    found = dict.fromkeys(ways, math.inf)
    for _ in range(TURNS):
        for name, (quiet, calls) in ways.items():
            end = time.perf_counter() + seconds / TURNS
            while True:
                found[name] = min(found[name], quiet.run(run, calls))
                if time.perf_counter() > end:
                    break
    return {name: s * 1e3 for name, s in found.items()}


def row(name: str, folder: Path, sample: dict[str, Any], seconds: float) -> str:
    """A model's line of the table."""
    real, small = (Bare(folder / f"emberlet_{kind}", sample) for kind in ("float", "int8"))
    kept = [call for step, call in zip(real.steps, real.calls, strict=True) if not is_relu(step)]
    floor = kept + rounding(small.steps)
    calls = {"float": real.calls, "floor": floor, "int8": small.calls}
    calls = {kind: [*(small if kind == "int8" else real).copies, *each] for kind, each in calls.items()}
    ms = least({kind: (real.quiet, each) for kind, each in calls.items()}, seconds)
    counts = " | ".join(str(len(each)) for each in calls.values())
    ratios = [f"{ms[kind] / ms['float']:.2f}" for kind in ("floor", "int8")]
    return f"| {name} | {counts} | {ms['float']:.3f} | {' | '.join(ratios)} |"


def write(path: Path, rows: list[str], said: str) -> None:
    """Put the table between its marks in a page."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    head = [
        said,
        "",
        "| model | calls, float | floor | int8 | ms, float | floor / float | int8 / float |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    before, _, rest = text.partition(START)
    held, _, after = rest.partition(END)
    had = [line for line in held.splitlines() if line.startswith("| ") and not line.startswith("| model ")]
    kept = {line.split(" | ")[0]: line for line in (*had, *rows)}  # of models that were not measured, too
    path.write_text("\n".join([f"{before}{START}", *head, *kept.values(), f"{END}{after}"]), encoding="utf-8")
