"""Runs scenarios, each in its own process, and writes the table."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import random
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any, NamedTuple

from tools import components
from tools.paths import ROOT
from tools.steps import say

from . import scenarios
from .telling import Clock

TABLE = ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- soak: written by `dev.py soak` -->\n", "<!-- soak: end -->\n"
ANSWER = "soak answers: "
GRACE = 600.0  # seconds that a scenario may take beyond its time before it counts as hanging; Ray starts slowly


class Row(NamedTuple):
    """The outcome of a scenario. told: its report (telling.Told), empty if it did not finish."""

    name: str
    what: str
    seed: int
    seconds: float
    told: dict[str, Any]
    failures: list[str]


def names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(scenarios.__path__))


def scenario(name: str) -> Any:
    return importlib.import_module(f"{scenarios.__name__}.{name}")


def run(name: str, seed: int, seconds: float, times: int | None = None) -> Row | str:
    """Run a scenario in a child process; why it did not run, if it neither answered nor was ended by a signal."""
    module = scenario(name)
    command = [sys.executable, "-m", "soak.engine", "--child", name, "--seed", str(seed), "--seconds", str(seconds)]
    command += [] if times is None else ["--times", str(times)]
    path = os.pathsep.join([str(ROOT / "tests"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    begin = time.monotonic()
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            env={**os.environ, "PYTHONPATH": path},
            timeout=seconds + GRACE,
            check=False,
            encoding="utf-8",
        )
    except subprocess.TimeoutExpired:
        return f"it did not end within {seconds + GRACE:.0f} s: it hangs, or the machine is too busy"
    took = time.monotonic() - begin
    answers = [line for line in done.stdout.splitlines() if line.startswith(ANSWER)]
    if done.returncode < 0:
        return Row(name, module.WHAT, seed, took, {}, [_ended(done.returncode, done.stderr)])
    if done.returncode or not answers:
        return _ended(done.returncode, done.stderr)
    told = json.loads(answers[-1].removeprefix(ANSWER))
    return Row(name, module.WHAT, seed, took, told, told["failures"])


def _ended(status: int, said: str) -> str:
    how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
    panic = [line for line in said.splitlines() if line.startswith(("Error in", "  Buffer", "Fatal Python"))]
    return f"the process ended {how}: {' '.join(panic) or said[-600:]}"


def _child(name: str, seed: int, seconds: float, times: int | None) -> int:
    import faulthandler

    faulthandler.enable()
    told = scenario(name).run(Clock(seconds, times), random.Random(seed))
    print("\n" + ANSWER + json.dumps(told.as_dict()), flush=True)
    return 0


def line(row: Row) -> str:
    """The row as a line of Markdown."""
    told = row.told
    tried = f"{told['tried']:,} {told['unit']}" if told else "–"
    facts = "; ".join(f"{key}: {_fact(value)}" for key, value in told.get("facts", {}).items())
    failed = str(len(row.failures)) if row.failures else "none"
    checked = f"{told['checked']:,}" if told else "–"
    run = f"{row.seconds:.0f} s, seed {row.seed}, {date.today()}"
    return f"| {row.name} | {row.what} | {tried} | {checked} | {failed} | {facts} | {run} |"


def _fact(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_fact(number)}" for key, number in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value)


HEAD = (
    "| scenario | what is done | how often | results compared | failures | measured | run |",
    "|---|---|---:|---:|---:|---|---|",
)


def write_table(rows: Iterable[Row]) -> None:
    """Replace the rows of these scenarios in the table of docs/reliability.md."""
    before, _, rest = TABLE.read_text(encoding="utf-8").partition(BEGIN)
    table, _, after = rest.partition(END)
    lines = {found.split(" | ")[0].strip("| "): found for found in table.splitlines() if found.startswith("| ")}
    lines |= {row.name: line(row) for row in rows}
    text = "\n".join([*HEAD, *(lines[name] for name in names() if name in lines)])
    TABLE.write_text(f"{before}{BEGIN}\n{text}\n\n{END}{after}", encoding="utf-8")


def main(args: Sequence[str] | None = None) -> int:
    """`dev.py soak`."""
    parser = argparse.ArgumentParser(prog="dev.py soak", description="Harm at random moments, for as long as told.")
    parser.add_argument(
        "scenario", nargs="*", help=f"which, of {', '.join(names())}; all, and then the table is written"
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="for all of them together (default 10)")
    parser.add_argument(
        "--times",
        type=int,
        help="stop scenarios that count their harms (commands, deployments, scores, trainings) at that many of each",
    )
    parser.add_argument("--seed", type=int, default=None, help="the same moments again, as far as a machine keeps time")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args(args)
    seed = secrets.randbelow(1 << 32) if options.seed is None else options.seed
    if options.child:
        return _child(options.child, seed, options.seconds, options.times)
    if unknown := set(options.scenario) - set(names()):
        parser.error(f"there is no scenario {', '.join(sorted(unknown))}; there are {', '.join(names())}")
    chosen = options.scenario or names()
    try:
        for part in {part for name in chosen for part in scenario(name).NEEDS}:
            components.get(part).found()
    except components.Missing as error:
        parser.error(str(error))
    shares = {name: scenario(name).SHARE for name in chosen}
    rows = []
    for name in chosen:
        seconds = 60.0 * options.minutes * shares[name] / sum(shares.values())
        say(f"{name}, seed {seed}, {seconds:.0f} s: {scenario(name).WHAT}")
        row = run(name, seed, seconds, options.times)
        if isinstance(row, str):
            say(f"  DID NOT RUN, so its row stays as it was: {row}")
            continue
        rows.append(row)
        told = row.told
        say(f"  {told.get('tried', 0):,} {told.get('unit', '')}, {told.get('checked', 0):,} results compared")
        for failure in row.failures:
            say(f"  FAILED: {failure}")
    write_table(rows)
    say(f"wrote {TABLE.relative_to(ROOT)}")
    return int(len(rows) < len(chosen) or any(row.failures for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
