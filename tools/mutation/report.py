"""The table of mutation runs, benches/results/mutation.md, and the bugs judged to be equivalent."""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .runner import Verdict

PAGE = Path("benches", "results", "mutation.md")
JUDGED = Path(__file__).with_name("equivalent.json")  # [[file, line before, line after, why], ...]
HEAD = """# Mutation testing

Written by `python3 dev.py mutate --count 100 --seed SEED --write`;
[how it works](../../docs/development.md#mutation-testing).
"Equivalent": survivors that compute the same, or differ in speed or memory only; the reasons are in
`tools/mutation/equivalent.json`. "Undecided": no test failed before the time for the bug ran out. All times are
processor time.

| seed | bugs | caught | equivalent | survivors | undecided | minutes | on |
|---|---|---|---|---|---|---|---|
"""


@dataclass
class Result:
    """One run."""

    seed: int
    verdicts: list[Verdict]
    seconds: float
    paths: list[str]

    @cached_property
    def survivors(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if not verdict.caught_by]

    @property
    def caught(self) -> int:
        return len(self.verdicts) - len(self.survivors)


def equivalent(verdict: Verdict, root: Path) -> str:
    """Why the bug is judged to be equivalent; empty if it was not judged."""
    before, after = (line[2:] for line in verdict.diff.split("\n"))
    for file, old, new, why in json.loads(JUDGED.read_text(encoding="utf-8")):
        if (file, old, new) == (verdict.bug.file.relative_to(root).as_posix(), before, after):
            return str(why)
    return ""


def write(result: Result, root: Path) -> None:
    """Add the run to the page, replacing an earlier one with the same seed."""
    same = [verdict for verdict in result.survivors if equivalent(verdict, root)]
    others = [verdict for verdict in result.survivors if verdict not in same]
    row = [
        str(result.seed) + (f" in {' '.join(result.paths)}" if result.paths else ""),
        len(result.verdicts),
        result.caught,
        _names(same, root),
        _names([verdict for verdict in others if verdict.decided], root),
        _names([verdict for verdict in others if not verdict.decided], root),
        f"{result.seconds / 60:.0f}",
        f"CPython {platform.python_version()}, {platform.system()} {platform.machine()}",
    ]
    page = root / PAGE
    text = page.read_text(encoding="utf-8") if page.exists() else HEAD
    rows = [line for line in text[len(HEAD) :].splitlines() if line.startswith("|")] if text.startswith(HEAD) else []
    rows = [line for line in rows if not line.startswith(f"| {row[0]} |")]
    rows.append("| " + " | ".join(str(cell) for cell in row) + " |")
    page.write_text(HEAD + "\n".join(rows) + "\n", encoding="utf-8")


def _names(verdicts: list[Verdict], root: Path) -> str:
    named = []
    for verdict in verdicts:
        before, after = (line[2:].replace("|", "\\|") for line in verdict.diff.split("\n"))
        named.append(f"{verdict.bug.file.relative_to(root).as_posix()} `{before}` → `{after}`")
    return f"{len(verdicts)}" + (": " + "; ".join(named) if named else "")
