"""`dev.py fuzz products`: drawn products and convolutions on the native backend, against float64 and exact integers.

Each case runs for one of the lengths of vectors that this processor has. Parts of a count, each with its own `--first`,
add up with `--write`: a line for each part, and the sum above them.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path

from emberlet.wgpu_backend.llvm import engine, processor
from emberlet.wgpu_backend.llvm.backend import NativeBackend
from support.drawn_products import KINDS

PROCESSORS = {16: "x86-64-v4", 8: "x86-64-v3", 4: "x86-64-v2"}
PAGE = Path(__file__).resolve().parents[2] / "benches" / "results" / "products.md"
HEAD = "| first case | cases | wrong | lengths of vectors | processor |\n|---:|---:|---:|---|---|\n"
MANY = 25  # cases before the processor changes and code is forgotten


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="dev.py fuzz products", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="of cases (default: 10,000)")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="that of the first case")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="end earlier")
    parser.add_argument("--write", action="store_true", help=f"add a line to {PAGE.name} in benches/results")
    options = parser.parse_args(argv)
    name, _, longest, *_ = processor.current()
    lengths = [n for n in PROCESSORS if n <= longest] if name != "generic" else [longest]
    end = time.monotonic() + 60 * options.minutes
    done: Counter[str] = Counter()
    wrong = 0
    for seed in range(options.first, options.first + options.count):
        if time.monotonic() > end:
            break
        at = seed - options.first
        if at % MANY == 0:
            length = lengths[at // MANY % len(lengths)]
            engine.set_processor(None if length == longest else PROCESSORS[length])
            backend = NativeBackend()
        kind = list(KINDS)[seed % len(KINDS)]
        try:
            KINDS[kind](seed, backend)
        except Exception as error:
            wrong += 1
            said = " ".join(str(error).split())[:300]
            print(f"{kind}, seed {seed}, {length} lanes: {type(error).__name__}: {said}", flush=True)
        done[kind] += 1
        if sum(done.values()) % 500 == 0:
            print(f"{sum(done.values())} cases, {wrong} wrong", flush=True)
    engine.set_processor(None)
    counts = ", ".join(f"{count} of {kind}s" for kind, count in done.items())
    print(f"{sum(done.values())} cases ({counts}) with vectors of {', '.join(map(str, lengths))} lanes: {wrong} wrong")
    if options.write:
        before = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
        lanes = ", ".join(map(str, lengths))
        line = f"| {options.first} | {sum(done.values())} | {wrong} | {lanes} | {name} |"
        PAGE.write_text(page(before, line), encoding="utf-8")
    return int(wrong > 0)


def page(before: str, line: str) -> str:
    """The page with one more line, which replaces that of the same first case."""
    lines = {row.split("|")[1].strip(): row for row in [*before.splitlines(), line] if row[:3].strip("| ").isdigit()}
    rows = sorted(lines.values(), key=lambda row: int(row.split("|")[1]))
    cases, wrong = (sum(int(row.split("|")[at]) for row in rows) for at in (2, 3))
    about = f"`dev.py fuzz products --write`: {cases:,} products, convolutions and attentions, {wrong} wrong."
    return f"# Products on the native backend\n\n{about}\n\n{HEAD}" + "\n".join(rows) + "\n"
