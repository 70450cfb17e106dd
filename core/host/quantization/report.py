"""What quantizing a model costs, as a report: data, text and JSON. page.py draws it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from .comparison import Comparison

SLOWER = 1.03
"""Of the float time: what is above it is said to take longer. Two measurements of one model differ by as much."""


@dataclass(frozen=True)
class Layer:
    """A layer. weights: their number; alone: the difference (rms) if only this layer is quantized."""

    name: str
    weights: int
    alone: float


@dataclass(frozen=True)
class Kept:
    """What keeping the worst layers in float gives: their number, the last of them (none: ""), size and comparison."""

    count: int
    last: str
    nbytes: int
    comparison: Comparison


@dataclass(frozen=True)
class Time:
    """Milliseconds of one call, the least of several, by backend; None where that model did not run. weights: of the
    model with its weights alone quantized, where activations are, too."""

    backend: str
    before: float | None
    after: float | None
    why: str = ""
    weights: float | None = None


@dataclass(frozen=True)
class Report:
    """model: its name; scheme: in words; activations: the method of their calibration, or None. before, after: bytes of
    the weights; accuracy: of the float model, None without labels; layers: the worst first; few, alone: the numbers of
    samples that `kept` and `layers` were measured on; held: layers in float."""

    model: str
    scheme: str
    activations: str | None
    samples: int
    before: int
    after: int
    comparison: Comparison
    accuracy: float | None = None
    layers: list[Layer] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    times: list[Time] = field(default_factory=list)
    few: int = 0
    alone: int = 0
    held: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The same as dicts, lists and numbers."""
        return asdict(self)

    def __str__(self) -> str:
        return "\n".join(lines(self))


def size(count: int) -> str:
    """A number of bytes as text: "12.3 MB"."""
    number = float(count)
    for unit in ("bytes", "kB", "MB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "bytes" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} GB"


def samples(count: int) -> str:
    """A number of samples as text."""
    return f"{count} sample{'' if count == 1 else 's'}"


def agreement(c: Comparison, before: float | None) -> str:
    """In words: accuracy before and after, or the agreement with the float model."""
    said = []
    if c.accuracy is not None and before is not None:
        said.append(f"accuracy {before:.2%} before, {c.accuracy:.2%} after")
    if c.same_best is not None:
        said.append(f"same class in {c.same_best:.2%}")
    said.append(f"difference {c.rms:.3%} of the outputs' range (root mean square), {c.worst:.2%} at most")
    return "; ".join(said)


def lines(r: Report) -> list[str]:
    """The report as lines of text."""
    how = f", activations in 8 bits ({r.activations})" if r.activations else ""
    out = [
        f"{r.model}: weights in {r.scheme}{how}",
        f"size: {size(r.before)} -> {size(r.after)}, {r.before / max(r.after, 1):.2f} times smaller",
        f"on {samples(r.samples)}: {agreement(r.comparison, r.accuracy)}",
    ]
    if r.held:
        out.append(f"in float: {', '.join(r.held)}")
    out += [f"note: {note}" for note in r.notes]
    if r.times:
        out += ["", *_times(r.times), *slower(r.times)]
    if r.layers:
        rows = [[x.name, f"{x.weights:,}", f"{x.alone:.3%}"] for x in r.layers[:10]]
        out += ["", *table([f"worst layers, on {samples(r.alone)}", "weights", "difference alone"], rows)]
    if r.kept:
        rows = [_kept(k) for k in r.kept]
        out += ["", *table([f"kept in float, on {samples(r.few)}", "size", "difference", share_word(r)], rows)]
    return out


def share_word(r: Report) -> str:
    """What `Comparison.share` is."""
    c = r.comparison
    return "accuracy" if c.accuracy is not None else "same class" if c.same_best is not None else "agreement"


def _kept(k: Kept) -> list[str]:
    name = f"the worst {k.count}, to {k.last}" if k.count > 1 else k.last or "none"
    return [name, size(k.nbytes), f"{k.comparison.rms:.3%}", f"{k.comparison.share:.2%}"]


def slower(times: list[Time]) -> list[str]:
    """What to do for each backend on which the model takes longer with its activations quantized than in float."""
    out = []
    for t in times:
        if t.before is None or t.after is None or t.weights is None or t.after <= SLOWER * t.before:
            continue
        least = f"weights alone take {t.weights / t.before:.2f} of it: leave out activations there"
        if t.weights > SLOWER * t.before:
            least = "use the float model there"
        out.append(f"{t.backend}: {t.after / t.before:.2f} of the float time; {least}")
    return out


def _times(times: list[Time]) -> list[str]:
    head, rows = ["backend", "float ms", "quantized ms", "ratio"], [_time(t) for t in times]
    if any(t.weights is not None for t in times):
        head.append("weights alone ms")
        rows = [[*row, "-" if t.weights is None else f"{t.weights:.3f}"] for row, t in zip(rows, times, strict=True)]
    return table(head, rows)


def _time(t: Time) -> list[str]:
    if t.before is None or t.after is None:
        return [t.backend, t.why or "-", "-", "-"]
    return [t.backend, f"{t.before:.3f}", f"{t.after:.3f}", f"{t.after / t.before:.2f}"]


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    """Rows below a head, columns aligned: the first to the left, numbers to the right."""
    whole = [head, *rows]
    wide = [max(len(row[i]) for row in whole) for i in range(len(head))]
    out = []
    for row in whole:
        cells = [cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, wide, strict=True))]
        out.append("  ".join(cells).rstrip())
    return out
