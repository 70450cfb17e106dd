"""Coverage-guided fuzzing of the readers, and the table of it in docs/reliability.md.

    python3 dev.py fuzz readers --minutes 10           all harnesses, one after the other; the table is written anew
    python3 dev.py fuzz readers fuzz_plan              some of them; theirs are the rows that are replaced

Each harness (fuzz_*.py) runs in a process of its own, at a lower priority, until it has seen a million inputs or its
share of the time is over. The table says how many inputs each has seen, the slowest of them in seconds of the
processor, the most memory of the process, interpreter and libraries included, and what failed.
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
from datetime import date
from pathlib import Path

HARNESSES = {
    "fuzz_reader": "ONNX models, to Python source",
    "fuzz_burnpack": "burnpacks",
    "fuzz_metadata": "metadata of burnpacks (CBOR)",
    "fuzz_arrays": "`.npy` and `.npz`",
    "fuzz_stores": "safetensors, PyTorch, GGUF, `.npz`, ONNX and burnpacks as weight files",
    "fuzz_plan": "saved plans (JSON)",
}
RUNS = 1_000_000
SLOWEST = "slowest input so far: "
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- readers: written by dev.py fuzz readers -->", "<!-- end of readers -->"
SLOW = 30  # seconds after which an input counts as a hang; instrumented code on a shared machine is slow


def run(name: str, seconds: float) -> tuple[str, bool]:
    """(a row of the table, whether nothing failed)"""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, str(Path(__file__).with_name(name + ".py")),
            f"-max_total_time={max(1, int(seconds))}", f"-runs={RUNS}", f"-timeout={SLOW}", "-rss_limit_mb=4096",
            "-print_final_stats=1", f"-artifact_prefix={folder}/",
    ]  # fmt: skip
        ended = subprocess.run(
            command, capture_output=True, text=True, errors="replace", cwd=folder, check=False, encoding="utf-8"
        )
        # libFuzzer keeps slow inputs too; how slow is in the table, and what takes longer than SLOW is a timeout
        failed = [p.name for p in Path(folder).iterdir() if not p.name.startswith("slow-unit")]
        for p in failed:
            kept = Path.cwd() / ".cache" / "fuzz" / p
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(Path(folder, p).read_bytes())
            print(f"fuzz readers: {name} failed on {kept}")
    return row(name, ended.stderr, failed), not failed and ended.returncode == 0


def row(name: str, log: str, failed: Sequence[str]) -> str:
    """A row of the table, from what libFuzzer prints at its end."""

    def stat(what: str) -> int:
        found = re.search(rf"stat::{what}:\s+(\d+)", log)
        return int(found[1]) if found else 0

    if "stat::number_of_executed_units" not in log:
        said = (log.strip().splitlines() or ["it said nothing"])[-1]
        return f"| {HARNESSES[name]} | did not run | | | {said} | |"
    times = re.findall(rf"{SLOWEST}([0-9.]+) s", log)
    seconds = stat("slowest_unit_time_sec")
    took = f"{times[-1]} s" if times else f"{seconds} s" if seconds else "under 1 s"
    count, failures = stat("number_of_executed_units"), ", ".join(failed) or "none"
    return f"| {HARNESSES[name]} | {count:,} | {took} | {stat('peak_rss_mb')} MB | {failures} | {date.today()} |"


def write(rows: Mapping[str, str], page: Path = PAGE) -> None:
    """Put the rows of these harnesses into the page's table, in the place of those before."""
    text = page.read_text(encoding="utf-8") if page.exists() else "# Reliability\n"
    table = text.partition(BEGIN)[2].partition(END)[0]
    for name, what in HARNESSES.items():
        old = [line for line in table.splitlines() if line.startswith(f"| {what} |")]
        rows = {name: old[0], **rows} if old else rows
    columns = ["| reader | inputs | slowest | memory | failures | run |", "|---|---:|---:|---:|---|---|"]
    table = "\n".join([BEGIN, "", *columns, *(rows[name] for name in HARNESSES if name in rows), "", END])
    if BEGIN in text:
        head, _, rest = text.partition(BEGIN)
        text = head + table + rest.partition(END)[2]
    else:
        text = text.rstrip("\n") + "\n\n## Files\n\n" + table + "\n"
    page.write_text(text, encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """The command `dev.py fuzz readers`; 1 where something failed."""
    parser = argparse.ArgumentParser(prog="dev.py fuzz readers", description="Coverage-guided fuzzing of the readers.")
    parser.add_argument("readers", nargs="*", metavar="READER", help=f"which, of {', '.join(HARNESSES)}; all")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long at most, over all readers; 10")
    given = parser.parse_args(list(arguments))
    if unknown := set(given.readers) - set(HARNESSES):
        parser.error(f"there is no reader {', '.join(sorted(unknown))}; there are {', '.join(HARNESSES)}")
    if hasattr(os, "nice"):
        os.nice(5)
    chosen = [name for name in HARNESSES if name in given.readers or not given.readers]
    rows, good, end = {}, True, time.monotonic() + given.minutes * 60
    for number, name in enumerate(chosen):
        print(f"fuzz readers: {name}", flush=True)
        rows[name], fine = run(name, (end - time.monotonic()) / (len(chosen) - number))
        print(rows[name], flush=True)
        good &= fine
    if any("did not run" in line for line in rows.values()):
        print("fuzz readers: a harness did not run, so the table stays as it was")
        return 1
    write(rows)
    print(f"wrote {PAGE}")
    return int(not good)
