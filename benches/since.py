"""Plans of NumPy calls, compared with those of another commit: how long networks take now, of their time then.

The other commit's files are written to .cache/bench/since and used from there; each version generates the modules that
it runs. Both run the networks of benches/cpu.py in processes of their own, which take turns of a fraction of a second;
the best call of all turns counts. With one thread, processor time is measured. By default the commit is the last one
before plans lost their machine code and their threads. Prints a table, and writes no file.
"""

from __future__ import annotations

import argparse
import io
import math
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from _cpu_networks import CACHE, ISSUED, SHAPES, inputs, missing
from cpu import LEAST, SETTLING, THREADS, opened, prepare, surroundings

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
BEFORE = "503b5eba^"  # "Run NumPy's plans as plain calls of NumPy"


def child(name: str, folder: Path, threads: int) -> None:
    """Print the best seconds of a call during as many seconds as each line of the input says."""
    folder.mkdir(parents=True, exist_ok=True)
    prepare(name, folder)
    call = opened("emberlet", name, folder, inputs(name))
    for _ in range(SETTLING if name == "llama_step" else 2):
        call()
    clock = time.thread_time if threads == 1 else time.perf_counter
    start = time.perf_counter()
    call()
    group = 1 + int(LEAST / (time.perf_counter() - start))
    print("ready", flush=True)
    for line in sys.stdin:
        best, end = math.inf, time.perf_counter() + float(line)
        while time.perf_counter() < end:
            start = clock()
            for _ in range(group):
                call()
            best = min(best, (clock() - start) / group)
        print(best, flush=True)


def exported(commit: str) -> Path:
    """The files of a commit, and a folder for PYTHONPATH in which they are importable."""
    from tools import layout
    from tools.mutation.copies import link_imports

    said = subprocess.run(
        ["git", "rev-parse", "--verify", f"{commit}^{{commit}}"], cwd=ROOT, capture_output=True, check=True
    )
    folder = CACHE / "since" / said.stdout.decode().strip()[:12]
    if not folder.is_dir():
        files = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(files)) as archive:
            archive.extractall(folder, filter="data")
        link_imports(folder, ROOT, layout.package_folders())
    return folder / ".cache" / "imports"


class Version:
    """A process that runs a network with one version."""

    def __init__(self, name: str, threads: int, folder: Path, imports: Path | None) -> None:
        environment = surroundings(threads, folder / "cache")
        if imports is not None:
            environment["PYTHONPATH"] = str(imports)
        command = [sys.executable, __file__, "--child", name, str(folder)]
        pipe = subprocess.PIPE
        self.process: Any = subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, encoding="utf-8")
        self.best = math.inf
        if self.process.stdout.readline().strip() != "ready":
            raise RuntimeError(f"{name} does not run")

    def turn(self, seconds: float) -> None:
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        self.best = min(self.best, float(self.process.stdout.readline()))

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def compared(name: str, threads: int, imports: Path, turns: int, seconds: float) -> tuple[float, float]:
    """(the best seconds of a call now, those of the other version)."""
    with tempfile.TemporaryDirectory() as folder:
        both = [Version(name, threads, Path(folder) / which, at) for which, at in (("now", None), ("then", imports))]
        for _ in range(turns):
            for version in both:
                version.turn(seconds)
        for version in both:
            version.end()
    return both[0].best, both[1].best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--child", nargs=2, metavar=("NETWORK", "FOLDER"))
    parser.add_argument("--commit", default=BEFORE, help="the version to compare with")
    parser.add_argument("--models", nargs="*", default=list(ISSUED), choices=list(SHAPES))
    parser.add_argument("--threads", type=int, nargs="*", default=[1])
    parser.add_argument("--turns", type=int, default=12, help="of each version on each network")
    parser.add_argument("--seconds", type=float, default=0.25, help="of a turn")
    options = parser.parse_args()
    if options.child:
        child(options.child[0], Path(options.child[1]), THREADS)
        return 0
    imports = exported(options.commit)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; then: {options.commit}")
    for threads in options.threads:
        ratios = []
        for name in options.models:
            if why := missing(name):
                print(f"{name} is left out: {why}")
                continue
            now, then = compared(name, threads, imports, options.turns, options.seconds)
            ratios.append(now / then)
            print(f"| {threads} | {name} | {now * 1e3:.4g} ms | {then * 1e3:.4g} ms | {ratios[-1]:.2f} |", flush=True)
        if ratios:
            print(f"{threads} threads: geometric mean {np.exp(np.mean(np.log(ratios))):.2f}, worst {max(ratios):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
