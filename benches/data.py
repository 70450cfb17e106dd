"""A DataLoader's epoch of 60,000 pictures of the size of MNIST's, beside PyTorch's DataLoader.

The same pictures (drawn, uint8 28 x 28, in memory) in shuffled batches of 64: as a data set of arrays, as one whose
items are read one by one and converted to float32, and the latter with workers. PyTorch's are run where `--torch
PYTHON` names a Python that has torch; each of its rows is the same data set with `torch.utils.data.DataLoader`. Both
take turns, each in a process of its own; figures are medians. Writes benches/results/data.md only with --write.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benches" / "results" / "data.md"
ITEMS, BATCH = 60_000, 64

HEAD = """
import json, sys, time
import numpy as np
items, batch, workers, kind = (json.loads(a) for a in sys.argv[1:5])
r = np.random.default_rng(0)
images, labels = r.integers(0, 256, (items, 28, 28), np.uint8), r.integers(0, 10, items)
class Items:
    def __len__(self): return len(labels)
    def __getitem__(self, i): return (images[i].astype(np.float32) / 255, int(labels[i]))
"""
END = """
for _ in range(2):
    start, seen = time.perf_counter(), 0
    for x, y in loader:
        seen += len(y)
    seconds = time.perf_counter() - start
assert seen == items
print(json.dumps(seconds))
"""
OURS = """
from emberlet.data import ArrayDataset, DataLoader
data = ArrayDataset(images, labels) if kind == "arrays" else Items()
count, processes = abs(workers), workers < 0
loader = DataLoader(data, batch_size=batch, shuffle=1, workers=count, processes=processes)
"""
TORCH = """
import torch
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.from_numpy(images), torch.from_numpy(labels)) if kind == "arrays" else Items()
loader = DataLoader(data, batch_size=batch, shuffle=True, num_workers=abs(workers))
"""
# name -> the kind of data set, the workers: processes where negative
ROWS = {
    "arrays": ("arrays", 0),
    "items": ("items", 0),
    "items, 2 threads": ("items", 2),
    "items, 2 processes": ("items", -2),
}


def seconds(python: str, code: str, items: int, kind: str, workers: int) -> float:
    """The time of the second epoch."""
    given = [json.dumps(v) for v in (items, BATCH, workers, kind)]
    done = subprocess.run(
        [python, "-c", HEAD + code + END, *given], capture_output=True, text=True, check=True, encoding="utf-8"
    )
    return float(done.stdout)


def measured(items: int, times: int, torch: str | None) -> list[tuple[str, float, float | None]]:
    """(row, seconds of ours, of PyTorch's)"""
    found = []
    for name, (kind, workers) in ROWS.items():
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(times):
            ours.append(seconds(sys.executable, OURS, items, kind, workers))
            if torch and workers <= 0:
                theirs.append(seconds(torch, TORCH, items, kind, workers))
        found.append((name, statistics.median(ours), statistics.median(theirs) if theirs else None))
        print(*found[-1], flush=True)
    return found


def page(rows: list[tuple[str, float, float | None]], items: int) -> str:
    """The page of results."""
    lines = [
        f"| {name} | {ours:.2f} s | {'' if theirs is None else f'{theirs:.2f} s'} |" for name, ours, theirs in rows
    ]
    table = "\n".join(["| data set | emberlet | PyTorch |", "|---|---:|---:|", *lines])
    return (
        f"# Data loading\n\nAn epoch of {items:,} pictures of 28 x 28 bytes in shuffled batches of {BATCH}, by "
        f"`python3 dev.py bench data` on {platform.machine()} with {os.cpu_count()} processors. PyTorch has no threads "
        f"to load with.\n\n{table}\n"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=ITEMS)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--torch", help="a Python that has torch")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.relative_to(ROOT)}")
    args = parser.parse_args()
    text = page(measured(args.items, args.times, args.torch), args.items)
    print(text)
    if args.write:
        RESULTS.write_text(text, encoding="utf-8")
