"""Coverage-guided fuzzing of the readers, and its table in docs/security.md.

    python3 dev.py fuzz readers --minutes 10           all harnesses, one after the other; rewrites the table
    python3 dev.py fuzz readers fuzz_plan              some of them; begins their rows anew
    python3 dev.py fuzz readers fuzz_plan --add        go on from where earlier runs ended, and add to their counts

Each harness (fuzz_*.py) runs in processes of its own, at a lower priority, until it has seen a million inputs or its
share of the time is over: first guided by coverage, for a sixth of the time and at most a quarter of the inputs, then
unguided, which is several times as fast. What it writes for its reader lies in memory, where Linux has a folder for
that. A part of both goes to recipes for files that repeat and share parts (multiplied.py). The table says how many
inputs each has seen, how many of them were guided and how many recipes, inputs for each second of the processor in the
last run, start included, the slowest of them in such seconds, the most memory
of the process, interpreter and libraries included, and what failed. A row of several runs says so, since the reader may
have changed between them; one without --add begins the row anew. Inputs that reach new code are kept in
.cache/fuzz/corpus, where every run starts from them. What failed is kept beside them; a run with --add tries it again
first, and lists it no longer once it passes.
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
from dataclasses import dataclass, replace
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
    "fuzz_data": "IDX, CSV, JSON, Arrow and SQLite as data sets",
    "fuzz_streams": "sessions and sound",
}
RUNS = 1_000_000
SLOWEST = "slowest input so far: "
RECIPES = "files that repeat and share: "
MEMORY = "most memory: "
UNGUIDED = "EMBERLET_FUZZ_UNGUIDED"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "security.md"
BEGIN, END = "<!-- readers: written by dev.py fuzz readers -->", "<!-- end of readers -->"
MEMORY_FOLDER = "/dev/shm" if os.path.isdir("/dev/shm") else None
HANGS = 600  # seconds of the clock after which an input counts as a hang; the harness limits the processor's
CACHE = Path(__file__).resolve().parents[2] / ".cache" / "fuzz"


@dataclass(frozen=True)
class Row:
    """What the table says about one reader."""

    inputs: int
    guided: int
    recipes: int
    rate: int  # inputs for each second of the processor, in the last run
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
        counts = f"{self.inputs:,} | {self.guided:,} | {self.recipes:,} | {self.rate:,}"
        return f"{counts} | {self.seconds:.2f} s | {self.megabytes} MB | {failures} | {when}{runs} |"

    def __add__(self, later: Row) -> Row:
        """The row for both runs of a reader."""
        return Row(
            self.inputs + later.inputs, self.guided + later.guided, self.recipes + later.recipes, later.rate,
            max(self.seconds, later.seconds), max(self.megabytes, later.megabytes),
            (*self.failures, *later.failures), self.first, later.last, self.runs + later.runs,
        )  # fmt: skip


def parsed(line: str) -> Row:
    """A row of the table as it was written."""
    _, _, *counts, seconds, megabytes, failures, when, _ = (cell.strip() for cell in line.split("|"))
    inputs, guided, recipes, rate = (int(cell.replace(",", "")) for cell in counts)
    days, _, runs = when.partition(", ")
    first, _, last = days.partition(" to ")
    slowest = re.search(r"[0-9.]+", seconds)
    return Row(
        inputs, guided, recipes, rate, float(slowest[0]) if slowest else 0.0, int(megabytes.split()[0]),
        () if failures == "none" else tuple(failures.split(", ")),
        first, last or first, int(runs.split()[0]) if runs else 1,
    )  # fmt: skip


def run(name: str, seconds: float, inputs: int, corpus: Path) -> Row | str:
    """A row of the table, or the output of a harness that did not run."""
    begin, spent = time.monotonic(), _processor()
    found = _part(name, seconds / 6, max(1, inputs // 4), corpus, guided=True)
    left = seconds - (time.monotonic() - begin)
    if isinstance(found, str) or found.failures or found.inputs >= inputs or left < 1:
        return found
    more = _part(name, left, inputs - found.inputs, corpus, guided=False)
    if isinstance(more, str):
        return more
    both = replace(found + more, runs=1)
    return replace(both, rate=round(both.inputs / max(1.0, _processor() - spent)))


def _processor() -> float:
    """Seconds of the processor that children of this process took."""
    times = os.times()
    return times.children_user + times.children_system


def _part(name: str, seconds: float, inputs: int, corpus: Path, guided: bool) -> Row | str:
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(dir=MEMORY_FOLDER) as scratch:
        command = [
            sys.executable, str(Path(__file__).with_name(name + ".py")),
            f"-max_total_time={max(1, int(seconds))}", f"-runs={inputs}", f"-timeout={HANGS}", "-rss_limit_mb=4096",
            "-print_final_stats=1", "-mutate_depth=2", f"-artifact_prefix={folder}/",
        ]  # fmt: skip
        corpus.mkdir(parents=True, exist_ok=True)
        given = {"EMBERLET_FUZZ_CORPUS": str(corpus), UNGUIDED: "" if guided else "1", "TMPDIR": scratch}
        spent = _processor()
        try:
            ended = subprocess.run(
                command, capture_output=True, text=True, errors="replace", cwd=folder, check=False, encoding="utf-8",
                env={**os.environ, **given}, timeout=seconds + 2 * HANGS,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            return f"it hangs: {error.stderr!r}"
        # libFuzzer also keeps inputs that are slow in elapsed time; the table has the time, and too slow an input fails
        failed = [p.name for p in Path(folder).iterdir() if not p.name.startswith("slow-unit")]
        for p in failed:
            kept = CACHE / p
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(Path(folder, p).read_bytes())
            print(f"fuzz readers: {name} failed on {kept}")
        if failed or ended.returncode:
            print(ended.stderr[-3000:])
    found = row(ended.stderr, failed or (["it ended early"] if ended.returncode else []), guided)
    if isinstance(found, str):
        return found
    return replace(found, rate=round(found.inputs / max(1.0, _processor() - spent)))


def _fails(name: str, kept: Path) -> bool:
    """Whether an input that failed in an earlier run still does, or is not there to be tried."""
    script = Path(__file__).with_name(name + ".py")
    return not kept.exists() or subprocess.run([sys.executable, str(script), str(kept)], check=False).returncode != 0


def row(log: str, failed: Sequence[str], guided: bool = True) -> Row | str:
    """A row of the table, from what a harness prints at its end."""

    def stat(what: str) -> int:
        found = re.search(rf"stat::{what}:\s+(\d+)", log)
        return int(found[1]) if found else 0

    if "stat::number_of_executed_units" not in log and not (failed and RECIPES in log):
        return (log.strip().splitlines() or ["it said nothing"])[-1]
    slowest = max((float(s) for s in re.findall(rf"{SLOWEST}([0-9.]+) s", log)), default=0.0)
    memory = max((int(m) for m in re.findall(rf"{MEMORY}([0-9]+) MB", log)), default=0)
    counted = re.search(rf"{RECIPES}(\d+)", log)
    recipes, executed, today = int(counted[1]) if counted else 0, stat("number_of_executed_units"), str(date.today())
    return Row(
        executed + recipes, executed if guided else 0, recipes, 0, slowest, max(memory, stat("peak_rss_mb")),
        tuple(failed), today, today,
    )  # fmt: skip


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
        "| reader | inputs | of them guided | of them recipes | a second | slowest | memory | failures | run |",
        "|---|---:|---:|---:|---:|---:|---:|---|---|",
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
        if old:  # what failed and was mended since
            old = replace(old, failures=tuple(f for f in old.failures if _fails(name, CACHE / f)))
        left = RUNS - (old.inputs if old else 0)
        if left <= 0:
            print(f"fuzz readers: {name} has its {RUNS:,} inputs")
            continue
        print(f"fuzz readers: {name}", flush=True)
        seconds = (end - time.monotonic()) / (len(chosen) - number)
        found = run(name, seconds, left, CACHE / "corpus" / name)
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
