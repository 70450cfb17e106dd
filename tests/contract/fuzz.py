"""The command `dev.py fuzz contract`: cases of every kind over all ways, counted; the table in reliability.md."""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import pkgutil
import secrets
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any, NamedTuple

from fuzz.differential import engine

from tools.paths import ROOT

from . import kinds
from .case import COUNTED

TABLE = ROOT / "docs" / "reliability.md"
RUNS = ROOT / ".cache" / "contract"
STATE = ("core", "codegen", "wgpu_backend", "micro", "tests/contract", "tests/core/calls", "tests/fuzz/differential")
BEGIN, END = "<!-- contract: written by dev.py fuzz contract -->\n", "<!-- end of contract -->\n"
LEFT_OUT = ("left out:", "calls left out:", "calls:")  # how counted reasons begin
# The share of a run that each kind gets.
SHARE = {
    "programs": 20,
    "chains": 5,
    "operations": 5,
    "generated": 1,
    "indices": 1,
    "promises": 1,
    "layers": 6,
    "modules": 5,
    "networks": 3,
    "sessions": 6,
    "invalid": 3,
    "random_numbers": 1,
    "large": 1,
}


class Row(NamedTuple):
    """How many cases of a kind were compared, in so many seconds, and those that differ."""

    kind: str
    cases: int
    seconds: float
    found: list[engine.Found]


def names() -> list[str]:
    return sorted(m.name for m in pkgutil.iter_modules(kinds.__path__))


def run(name: str, seed: int, seconds: float = 1e9, count: int = 1 << 40, first: int = 0) -> Row:
    """Cases of one kind."""
    kind: engine.Kind = importlib.import_module(f"{kinds.__name__}.{name}")  # type: ignore[assignment]
    begin = time.monotonic()
    ran = engine.run(kind, seed, seconds=seconds, count=count, first=first)
    return Row(name, ran.cases, time.monotonic() - begin, ran.found)


def state() -> str:
    """A digest of the product's files and of the contract's: runs on the same state count together."""
    whole = hashlib.sha256()
    for folder in STATE:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".txt", ".wgsl") and path.is_file():
                whole.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return whole.hexdigest()[:12]


def record(now: str, row: Row, counted: Counter[str], seed: int, first: int) -> None:
    """Keep what a run of one kind counted on a state. A run of the same cases takes its place."""
    folder = RUNS / now
    folder.mkdir(parents=True, exist_ok=True)
    kept = {"kind": row.kind, "cases": row.cases, "seconds": row.seconds, "differ": len(row.found),
            "counted": counted, "seed": seed}  # fmt: skip
    (folder / f"{row.kind}-{seed}-{first}.json").write_text(json.dumps(kept), encoding="utf-8")


def recorded(now: str) -> list[dict[str, Any]]:
    """The runs on a state."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted((RUNS / now).glob("*.json"))]


def table(runs: Sequence[dict[str, Any]]) -> str:
    """What runs compared, all of them together, as Markdown."""
    lines = ["| kind | cases | differ | seconds |", "|---|---:|---:|---:|"]
    counted: Counter[str] = Counter()
    for kind in sorted({run["kind"] for run in runs}):
        own = [run for run in runs if run["kind"] == kind]
        cases, differ, seconds = (sum(r[k] for r in own) for k in ("cases", "differ", "seconds"))
        lines.append(f"| {kind} | {cases:,} | {differ or 'none'} | {seconds:.0f} |")
    for run in runs:
        counted.update(run["counted"])
    ways = _listed(counted, lambda name: name.startswith("on "), 3)
    left = _listed(counted, lambda name: name.startswith(LEFT_OUT))
    what = _listed(counted, lambda name: not name.startswith(("on ", *LEFT_OUT)))
    seeds = ", ".join(map(str, sorted({run["seed"] for run in runs})))
    lines += ["", f"Counted: {what}.", "", f"Cases by way: {ways}.", ""]
    lines += [f"Left out, for which reasons: {left}.", ""] if left else []
    lines += [f"Seeds {seeds}, {date.today()}."]
    return "\n".join(lines)


def _listed(counted: Counter[str], chosen: Callable[[str], bool], begin: int = 0) -> str:
    return ", ".join(f"{name[begin:]} {count:,}" for name, count in sorted(counted.items()) if chosen(name))


def write(text: str) -> None:
    before, _, rest = TABLE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    TABLE.write_text(f"{before}{BEGIN}\n{text}\n\n{END}{after}", encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="dev.py fuzz contract", description="Every way of running, held to the contract."
    )
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(names())}; all")
    parser.add_argument("--minutes", type=float, help="how long, over all kinds; 10, or as long as --count takes")
    parser.add_argument("--count", type=int, help="the cases of all kinds together, in their proportions")
    parser.add_argument("--seed", type=int, help="the seed of an earlier run; a fresh one is printed otherwise")
    parser.add_argument("--first", type=int, default=0, help="number of the first case; 0")
    parser.add_argument(
        "--write", action="store_true", help="write the table of all runs on this state in docs/reliability.md"
    )
    given = parser.parse_args(list(arguments))
    if unknown := [name for name in given.kinds if name not in names()]:
        parser.error(f"there is no kind {', '.join(unknown)}; there are {', '.join(names())}")
    chosen = given.kinds or names()
    seed = secrets.randbelow(1 << 32) if given.seed is None else given.seed
    minutes = given.minutes if given.minutes is not None else 10.0 if given.count is None else 1e9
    whole = sum(SHARE.get(name, 1) for name in chosen)
    now = state()
    rows = []
    for name in chosen:
        part = SHARE.get(name, 1) / whole
        print(f"fuzz contract {name} --seed {seed}", flush=True)
        count = 1 << 40 if given.count is None else max(1, round(given.count * part))
        COUNTED.clear()
        rows.append(run(name, seed, minutes * 60 * part, count, given.first))
        record(now, rows[-1], Counter(COUNTED), seed, given.first)
        print(f"  {rows[-1].cases} cases in {rows[-1].seconds:.0f} s, {len(rows[-1].found)} differ", flush=True)
    print(table(recorded(now)))
    if given.write:
        write(table(recorded(now)))
    return int(any(row.found for row in rows))
