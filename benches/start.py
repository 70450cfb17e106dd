"""Whole processes from start to end: the command line compared with a program that does the same with onnxruntime.

The processes take turns; the best processor time and wall time of many count. Python files are compiled beforehand, as
in an installed package. Writes benches/results/start.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benches" / "results" / "start.md"
DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
PEER = """
import sys
import numpy
import onnxruntime

session = onnxruntime.InferenceSession(sys.argv[1])
print(session.run(None, {session.get_inputs()[0].name: numpy.load(sys.argv[2])})[0].ravel()[:8])
"""


def commands(image: str) -> dict[str, list[str]]:
    """Name in the table -> the command."""
    emberlet = [sys.executable, "-m", "emberlet"]
    run = [*emberlet, "run", str(DIGITS), "--input", f"image={image}"]
    return {
        "python -c pass": [sys.executable, "-c", "pass"],
        "emberlet --version": [*emberlet, "--version"],
        "onnxruntime, digits": [sys.executable, "-c", PEER, str(DIGITS), image],
        "emberlet run digits.onnx --backend numpy": [*run, "--backend", "numpy"],
        "emberlet run digits.onnx --backend wgpu": [*run, "--backend", "wgpu"],
    }


def measured(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """(processor milliseconds, wall milliseconds) of one process."""
    before, start = os.times(), time.perf_counter()
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall, after = time.perf_counter() - start, os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return used * 1e3, wall * 1e3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    environment = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "PYTHONDONTWRITEBYTECODE")}
    best: dict[str, tuple[float, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        environment["PYTHONPYCACHEPREFIX"] = folder
        image = str(Path(folder) / "image.npy")
        np.save(image, np.zeros((1, 1, 8, 8), np.float32))
        found = commands(image)
        for command in found.values():  # fills the cache
            measured(command, environment)
        for _ in range(options.rounds):
            for name, command in found.items():
                used, wall = measured(command, environment)
                before = best.get(name, (used, wall))
                best[name] = (min(used, before[0]), min(wall, before[1]))
    write(best)
    return 0


def write(best: dict[str, tuple[float, float]]) -> None:
    """The table, and a line that explains its ratios."""
    import onnxruntime

    peer = best["onnxruntime, digits"]
    lines = [
        "| process | processor ms | wall ms | processor time of onnxruntime's |",
        "|---|---:|---:|---:|",
        *(f"| {name} | {used:.0f} | {wall:.0f} | {used / peer[0]:.2f} |" for name, (used, wall) in best.items()),
    ]
    print("\n".join(lines))
    about = (
        f"Python {platform.python_version()}, NumPy {np.__version__}, onnxruntime {onnxruntime.__version__}. Whole "
        f"processes, the best of many, in an editable install (its finder is part of `python -c pass`). Wall time is "
        f"that of a shared machine, where processor time says more. wgpu runs on a driver in software, its header as "
        f"an earlier process kept it. "
        f"`python3 dev.py bench start`"
    )
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text("# Whole processes\n\n" + about + "\n\n" + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
