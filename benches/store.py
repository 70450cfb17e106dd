"""Weight files of 1 GB, read and written by emberlet, safetensors and NumPy.

Each measurement has its own process, which imports first, then reads a file from a warm cache; figures are medians.
Opening and reading one tensor: the time, and how much the resident memory grows. Mapping: every tensor as an array over
the file, the first byte of each read; safetensors maps the file too and copies each tensor. Writing: the time until the
file is synced, beside copying a file of the same size and syncing it, in turns; memory is the growth of the peak.
Writes benches/results/store.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import safetensors

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benches" / "results" / "store.md"
TENSORS = 128

HEAD = """
import os, sys, time, resource
import numpy as np
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
path, count, each = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
"""
OURS = (
    "from emberlet import store\nstore.open(store.dumps(store.store_of({'x': np.ones(3, np.float32)}))).tensor('x')\n"
)
END = "print(1000 * (time.perf_counter() - start), resident() - before)\n"
ONE = {
    "emberlet, burnpack": OURS + "{b}found = np.asarray(store.open(path)['t1'])\n{e}",
    "emberlet, safetensors": OURS + "{b}found = np.asarray(store.open(path)['t1'])\n{e}",
    "the safetensors library": "from safetensors import safe_open\n"
    "{b}with safe_open(path, 'np') as f: found = f.get_tensor('t1')\n{e}",
    "numpy.load of .npz": "{b}found = np.load(path)['t1']\n{e}",
}
ALL = {
    "emberlet, burnpack": OURS + "{b}found = [np.asarray(s) for s in store.open(path, zero_copy=True).values()]\n"
    "total = sum(int(x[0]) for x in found)\n{e}",
    "the safetensors library": "from safetensors.numpy import load_file\n"
    "{b}found = load_file(path)\ntotal = sum(int(x[0]) for x in found.values())\n{e}",
    "numpy.load of .npz": "{b}archive = np.load(path)\nfound = [archive[n] for n in archive.files]\n"
    "total = sum(int(x[0]) for x in found)\n{e}",
}
ALL["emberlet, safetensors"] = ALL["emberlet, burnpack"]
WRITE = (
    OURS
    + """
from emberlet import dtypes
if path.endswith(".copy"):  # the disk's own speed
    start = time.perf_counter()
    with open(path[:-5], "rb") as source, open(path, "wb") as target:
        while piece := source.read(1 << 24):
            target.write(piece)
        target.flush()
        os.fsync(target.fileno())
    print(1000 * (time.perf_counter() - start), 0)
    raise SystemExit
rows = np.frombuffer(np.random.default_rng(0).bytes(each), np.float32)
def make(backend):
    return backend.from_bytes(rows.copy().data.cast("B"), dtypes.float32, rows.shape)  # a tensor made when it is due
many = {f"t{i}": store.Snapshot(f"t{i}", dtypes.float32, rows.shape, make=make) for i in range(count)}
store.save(store.Store({"t0": many["t0"]}, format="x"), path)
before, start = peak(), time.perf_counter()
store.save(store.Store(many, format="x"), path)
print(1000 * (time.perf_counter() - start), peak() - before)
"""
)


def measure(script: str, path: Path, count: int, each: int) -> tuple[float, float]:
    """(milliseconds, bytes) as the script prints them."""
    text = HEAD + script.replace("{b}", "before, start = resident(), time.perf_counter()\n").replace("{e}", END)
    command = [sys.executable, "-c", text, str(path), str(count), str(each)]
    said = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True).stdout.split()
    return float(said[0]), float(said[1])


def medians(found: list[tuple[float, float]]) -> tuple[float, float]:
    return statistics.median(f[0] for f in found), statistics.median(f[1] for f in found)


def table(title: str, rows: dict[str, tuple[float, float]], memory: str) -> list[str]:
    lines = [f"## {title}", "", f"| | ms | {memory} |", "|---|---|---|"]
    lines += [f"| {name} | {time:.2f} | {grown / 1e6:.1f} MB |" for name, (time, grown) in rows.items()]
    return [*lines, ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=1024, help="size of the files; 1024")
    parser.add_argument("--runs", type=int, default=5, help="runs of each measurement; 5")
    given = parser.parse_args()
    from emberlet import store
    from safetensors.numpy import save_file

    each = (given.megabytes << 20) // TENSORS // 4 * 4
    lines = ["# Weight files", "", "Written by `python3 dev.py bench store`.", ""]
    lines += [
        f"{given.megabytes} MB in {TENSORS} float32 tensors; {given.runs} runs, medians. {platform.machine()}, "
        f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; Python {platform.python_version()}, NumPy "
        f"{np.__version__}, safetensors {safetensors.__version__}. {' '.join((__doc__ or '').split()[14:-3])}",
        "",
    ]
    with tempfile.TemporaryDirectory(dir=os.environ.get("EMBERLET_BENCH_DIR")) as name:
        folder = Path(name)
        arrays = {f"t{i}": np.full(each // 4, i, np.float32) for i in range(TENSORS)}
        save_file(arrays, folder / "w.safetensors")
        store.store_of(arrays).save(folder / "w.bpk")
        np.savez(folder / "w.npz", **arrays)
        del arrays
        files = {"burnpack": "w.bpk", ".npz": "w.npz"}
        for title, scripts in (("Open and read one tensor", ONE), ("Every tensor", ALL)):
            found: dict[str, list[tuple[float, float]]] = {what: [] for what in scripts}
            for _ in range(given.runs):
                for what, script in scripts.items():
                    file = next((f for end, f in files.items() if what.endswith(end)), "w.safetensors")
                    found[what].append(measure(script, folder / file, TENSORS, each))
            rows = {what: medians(f) for what, f in found.items()}
            lines += table(title, rows, "resident memory, growth")
            print(*lines[-len(rows) - 3 :], sep="\n", flush=True)
        found = {"emberlet, burnpack": [], "emberlet, safetensors": [], "copying the file": []}
        os.unlink(folder / "w.npz")
        os.unlink(folder / "w.safetensors")
        for _ in range(given.runs):
            for what, file in zip(found, ("x.bpk", "x.safetensors", "w.bpk.copy"), strict=True):
                found[what].append(measure(WRITE, folder / file, TENSORS, each))
                os.unlink(folder / file)
        rows = {what: medians(f) for what, f in found.items()}
        lines += table("Write and sync", rows, "peak memory, growth")
        copying = rows["copying the file"][0]
        lines += [f"{what}: {copying / rows[what][0]:.2f} times the speed of copying." for what in list(rows)[:2]]
        print(*lines[-9:], sep="\n")
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
