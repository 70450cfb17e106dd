"""The learner: an epoch on 60,000 images of MNIST's size, loaders and metrics included, beside a PyTorch loop.

Both train the same small convolutional network with Adam, with the loss and the accuracy of every step, their own
DataLoader and the same threads, each in a process of its own; the second of two epochs counts. The engines take turns,
and the best of several rounds counts. --torch names a Python that has torch. --write writes
benches/results/learner.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "learner.md"
ENGINES = ("PyTorch", "emberlet, NumPy")


def trained(python: str, engine: str, options: argparse.Namespace) -> Any:
    """{"seconds", "accuracy"}, or the reason why there is none."""
    threads = str(options.threads)
    environment = {
        **os.environ,
        **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads),
    }
    command = [python, HERE / "_learner_engines.py", engine, options.images, options.batch, options.workers]
    done = subprocess.run(
        [str(c) for c in command], env=environment, check=False, capture_output=True, encoding="utf-8"
    )
    if done.returncode:
        return (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1][:120]
    return json.loads(done.stdout.strip().splitlines()[-1])


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="dev.py bench learner", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--images", type=int, default=60_000)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--workers", type=int, default=0, help="of both loaders: threads, and processes of PyTorch's")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--torch", default=sys.executable, metavar="PYTHON", help="a Python that has torch")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args(words)
    best: dict[str, Any] = {}
    for _ in range(options.rounds):
        for engine in ENGINES:
            found = trained(options.torch if engine == "PyTorch" else sys.executable, engine, options)
            old = best.get(engine)
            if not isinstance(old, dict) or (isinstance(found, dict) and found["seconds"] < old["seconds"]):
                best[engine] = found
            print(engine, found, flush=True)
    lines = [
        "| engine | seconds an epoch | images a second | accuracy | of PyTorch's time |",
        "|---|---:|---:|---:|---:|",
    ]
    base = best["PyTorch"]["seconds"] if isinstance(best["PyTorch"], dict) else None
    for engine, found in best.items():
        if isinstance(found, dict):
            ratio = "" if base is None else f"{found['seconds'] / base:.2f}"
            rate = options.images / found["seconds"]
            lines.append(f"| {engine} | {found['seconds']:.1f} | {rate:,.0f} | {found['accuracy']:.1f} % | {ratio} |")
        else:
            lines.append(f"| {engine} | {found} | | | |")
    table = "\n".join(lines)
    print(table)
    if options.write:
        RESULTS.write_text(
            f"# The learner\n\n`python3 dev.py bench learner --threads {options.threads} --workers {options.workers}` "
            f"on {platform.machine()}, {options.images:,} images in batches of {options.batch}.\n\n{table}\n",
            encoding="utf-8",
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
