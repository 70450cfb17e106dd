"""Coverage-guided fuzzing of the readers, and its table in docs/security.md.

    python3 dev.py fuzz readers --minutes 10           all harnesses, one after the other; rewrites the table
    python3 dev.py fuzz readers fuzz_plan              some of them; replaces their rows
    python3 dev.py fuzz readers fuzz_plan --add        go on from where earlier runs ended, and add to their counts

Each harness (fuzz_*.py) runs in a process of its own, at a lower priority, until it has seen a million inputs or its
share of the time is over. A quarter of that goes to recipes for files that repeat and share parts (multiplied.py). The
table says how many inputs each has seen and how many of them were recipes, the slowest of them in seconds of the
processor, the most memory of the process, interpreter and libraries included, and what failed. A row of several runs
says so, since the reader may have changed between them. Inputs that reach new code are kept in .cache/fuzz/corpus, and
a run with --add starts from them.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

HARNESSES = {
    "fuzz_reader": "ONNX models, to Python source",
    "fuzz_burnpack": "burnpacks",
    "fuzz_metadata": "metadata of burnpacks (CBOR)",
    "fuzz_arrays": "`.npy` and `.npz`",
    "fuzz_stores": "safetensors, PyTorch, GGUF, `.npz`, ONNX and burnpacks as weight files",
    "fuzz_plan": "saved plans (JSON)",
    "fuzz_wasm": "`.wasm` files, loaded and run",
    "fuzz_tflite": "`.tflite` models",
    "fuzz_rows": "Parquet, CSV, `.npy` and Arrow as rows",
    "fuzz_pictures": "pictures",
    "fuzz_streams": "sessions and sound",
}
RUNS = 1_000_000
SLOWEST = "slowest input so far: "
RECIPES = "files that repeat and share: "
PAGE = Path(__file__).resolve().parents[2] / "docs" / "security.md"
BEGIN, END = "<!-- readers: written by dev.py fuzz readers -->", "<!-- end of readers -->"
HANGS = 600  # seconds of the clock after which an input counts as a hang; the harness limits the processor's
CACHE = Path(__file__).resolve().parents[2] / ".cache" / "fuzz"


@dataclass(frozen=True)
class Row:
    """What the table says about one reader."""

    inputs: int
    recipes: int
    seconds: float
    megabytes: int
    failures: tuple[str, ...]
    first: str
    last: str
    runs: int = 1

    def __str__(self) -> str:
        when = self.last if self.first == self.last else f"{self.first} to {self.last}"
        runs = "" if self.runs == 1 else f", {self.runs} runs"
        failures = ", ".join(self.failures) or "none"
        counts = f"{self.inputs:,} | {self.recipes:,}"
        return f"{counts} | {self.seconds:.2f} s | {self.megabytes} MB | {failures} | {when}{runs} |"

    def __add__(self, later: Row) -> Row:
        """The row for both runs of a reader."""
        return Row(
            self.inputs + later.inputs, self.recipes + later.recipes,
            max(self.seconds, later.seconds), max(self.megabytes, later.megabytes),
            (*self.failures, *later.failures), self.first, later.last, self.runs + later.runs,
        )  # fmt: skip


def parsed(line: str) -> Row:
    """A row of the table as it was written."""
    _, _, inputs, recipes, seconds, megabytes, failures, when, _ = (cell.strip() for cell in line.split("|"))
    days, _, runs = when.partition(", ")
    first, _, last = days.partition(" to ")
    slowest = re.search(r"[0-9.]+", seconds)
    return Row(
        int(inputs.replace(",", "")),
        int(recipes.replace(",", "")),
        float(slowest[0]) if slowest else 0.0,
        int(megabytes.split()[0]),
        () if failures == "none" else tuple(failures.split(", ")),
        first,
        last or first,
        int(runs.split()[0]) if runs else 1,
    )


def run(name: str, seconds: float, inputs: int = RUNS, corpus: Path | None = None) -> Row | str:
    """A row of the table, or the output of a harness that did not run."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, str(Path(__file__).with_name(name + ".py")),
            f"-max_total_time={max(1, int(seconds))}", f"-runs={inputs}", f"-timeout={HANGS}", "-rss_limit_mb=4096",
            "-print_final_stats=1", "-mutate_depth=2", f"-artifact_prefix={folder}/",
        ]  # fmt: skip
        given = {}
        if corpus is not None:
            corpus.mkdir(parents=True, exist_ok=True)
            given["EMBERLET_FUZZ_CORPUS"] = str(corpus)
        ended = subprocess.run(
            command, capture_output=True, text=True, errors="replace", cwd=folder, check=False, encoding="utf-8",
            env={**os.environ, **given},
        )  # fmt: skip
        # libFuzzer also keeps inputs that are slow in elapsed time; the table has the time, and too slow an input fails
        failed = [p.name for p in Path(folder).iterdir() if not p.name.startswith("slow-unit")]
        for p in failed:
            kept = CACHE / p
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(Path(folder, p).read_bytes())
            print(f"fuzz readers: {name} failed on {kept}")
        if failed or ended.returncode:
            print(ended.stderr[-3000:])
    return row(ended.stderr, failed or (["it ended early"] if ended.returncode else []))


def row(log: str, failed: Sequence[str]) -> Row | str:
    """A row of the table, from what libFuzzer prints at its end."""

    def stat(what: str) -> int:
        found = re.search(rf"stat::{what}:\s+(\d+)", log)
        return int(found[1]) if found else 0

    if "stat::number_of_executed_units" not in log and not (failed and RECIPES in log):
        return (log.strip().splitlines() or ["it said nothing"])[-1]
    slowest = max((float(s) for s in re.findall(rf"{SLOWEST}([0-9.]+) s", log)), default=0.0)
    counted = re.search(rf"{RECIPES}(\d+)", log)
    recipes, today = int(counted[1]) if counted else 0, str(date.today())
    return Row(
        stat("number_of_executed_units") + recipes, recipes, slowest, stat("peak_rss_mb"), tuple(failed), today, today
    )


def lines(page: Path = PAGE) -> dict[str, str]:
    """harness -> its row of the page's table"""
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    table = text.partition(BEGIN)[2].partition(END)[0].splitlines()
    return {n: line for n, what in HARNESSES.items() for line in table if line.startswith(f"| {what} |")}


def write(rows: Mapping[str, Row], page: Path = PAGE) -> None:
    """Replace the rows of these harnesses in the page's table."""
    text = page.read_text(encoding="utf-8") if page.exists() else "# Security\n"
    written = {**lines(page), **{name: f"| {HARNESSES[name]} | {found}" for name, found in rows.items()}}
    columns = [
        "| reader | inputs | of them recipes | slowest | memory | failures | run |",
        "|---|---:|---:|---:|---:|---|---|",
    ]
    table = "\n".join([BEGIN, "", *columns, *(written[name] for name in HARNESSES if name in written), "", END])
    if BEGIN in text:
        head, _, rest = text.partition(BEGIN)
        text = head + table + rest.partition(END)[2]
    else:
        text = text.rstrip("\n") + "\n\n## Files\n\n" + table + "\n"
    page.write_text(text, encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """The command `dev.py fuzz readers`; returns 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="dev.py fuzz readers", description="Coverage-guided fuzzing of the readers.")
    parser.add_argument("readers", nargs="*", metavar="READER", help=f"which, of {', '.join(HARNESSES)}; all")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long at most, over all readers; 10")
    parser.add_argument("--add", action="store_true", help="go on from earlier runs and add to their counts")
    given = parser.parse_args(list(arguments))
    if unknown := set(given.readers) - set(HARNESSES):
        parser.error(f"there is no reader {', '.join(sorted(unknown))}; there are {', '.join(HARNESSES)}")
    if hasattr(os, "nice"):
        os.nice(5)
    chosen = [name for name in HARNESSES if name in given.readers or not given.readers]
    before = {name: parsed(line) for name, line in lines().items()} if given.add else {}
    good, end = True, time.monotonic() + given.minutes * 60
    for number, name in enumerate(chosen):
        old = before.get(name)
        left = RUNS - (old.inputs if old else 0)
        if left <= 0:
            print(f"fuzz readers: {name} has its {RUNS:,} inputs")
            continue
        print(f"fuzz readers: {name}", flush=True)
        seconds = (end - time.monotonic()) / (len(chosen) - number)
        found = run(name, seconds, left, CACHE / "corpus" / name if given.add else None)
        if isinstance(found, str):
            print(f"fuzz readers: {name} did not run, so its row stays as it was: {found}")
            good = False
            continue
        good &= not found.failures
        found = old + found if old else found
        print(f"| {HARNESSES[name]} | {found}", flush=True)
        write({name: found})
    print(f"wrote {PAGE}")
    return int(not good)
