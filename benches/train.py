"""Training: steps a second of four networks, compared with PyTorch, tinygrad, and in Chromium with jax-js and borch.

Each engine trains from the same weights with Adam, in a process of its own; the engines take turns, and the best of
several rounds counts. A step is forward, backward and update; the loss is read every few steps. The first losses are
compared with PyTorch's. In Chromium all engines run on WebGPU, emberlet's saved step under MicroPython. --torch names
a Python that has torch. Writes benches/results/train.md.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import os
import platform
import re
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

from _train_engines import CHROMIUM, ENGINES, IN_CHROMIUM
from _train_networks import NETWORKS

HERE = Path(__file__).resolve().parent
MISSING = "not installed"


def environment(engine: str) -> dict[str, str]:
    """The environment variables of an engine's process."""
    threads = "2" if "2 threads" in engine else "1"
    found = {**os.environ, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
    if engine.startswith("tinygrad"):
        from _gpu_peers import tinygrad_environment

        found |= tinygrad_environment()
    return found


@cache
def chromium_is_there() -> bool:
    """Whether Chromium and the engines that run in it are installed; installs the latter."""
    from _browser_peers import are_installed

    from tools import chromium, components

    return are_installed() and all(components.get(name).find() for name in chromium.NEEDED)


def python_of(engine: str, torch: str) -> str | None:
    """The Python that has the engine's package, or None."""
    if engine.startswith("PyTorch"):
        found = subprocess.run([torch, "-c", "import torch"], check=False, capture_output=True).returncode
        return None if found else torch
    if engine.endswith(CHROMIUM):
        return sys.executable if chromium_is_there() else None
    packages = {"tinygrad": "tinygrad", "wgpu": "wgpu", "wasm": "wasmtime", "numpy": "numpy"}
    package = next(packages[word] for word in packages if word in engine)
    return sys.executable if importlib.util.find_spec(package) else None


def trained(python: str, engine: str, network: str, seconds: float, limit: float) -> Any:
    """{"rate", "peak", "losses"}, or the reason why there is none."""
    command = [python, str(HERE / "_train_engines.py"), engine, network, str(seconds)]
    pipe = subprocess.PIPE
    own = {"start_new_session": True} if os.name == "posix" else {}
    process: Any = subprocess.Popen(command, env=environment(engine), stdout=pipe, stderr=pipe, encoding="utf-8", **own)
    try:
        out, errors = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        if own:  # its Chromium too
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.communicate()
        return f"not done after {limit:.0f} s"
    if process.returncode:
        return _reason(errors) or f"status {process.returncode}"
    return json.loads(out.strip().splitlines()[-1])


def _reason(errors: str) -> str:
    """The first line of what ended a process."""
    lines = errors.strip().splitlines()
    raised = [line for line in lines if re.match(r"[\w.]+(Error|Exception)\b", line)]
    return (raised or lines or [""])[-1][:120].replace("|", "/")


def better(old: Any, new: Any) -> Any:
    """The faster of two runs; a run that failed counts only alone."""
    if not isinstance(new, dict):
        return old if isinstance(old, dict) else new
    return old if isinstance(old, dict) and old["rate"] >= new["rate"] else new


def same(losses: list[float], wanted: list[float] | None) -> str:
    if wanted is None:
        return ""
    apart = max(abs(a - b) for a, b in zip(losses, wanted, strict=True))
    return "equal" if apart <= 1e-4 else f"{apart:.1e} apart"


def table(network: str, found: dict[str, Any]) -> list[str]:
    """Rows of a network: steps a second, its ratio to those of others, memory, losses."""
    runs = {engine: run for engine, run in found.items() if isinstance(run, dict)}
    others = [
        next((run for engine, run in runs.items() if engine.startswith(name)), None)
        for name in ("PyTorch", "tinygrad", "jax-js", "borch")
    ]
    torch = others[0]
    lines = [
        f"## {network}: {NETWORKS[network][2]}",
        "",
        "| | steps a second | of PyTorch's, 1 thread | of tinygrad's | of jax-js's | of borch's | most memory "
        "| first losses |",
        "|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    for engine, run in found.items():
        if isinstance(run, str):
            lines.append(f"| {engine} | {run} | | | | | | |")
            continue
        ratios = [f"{run['rate'] / other['rate']:.2f}" if other else "" for other in others]
        losses = same(run["losses"], torch["losses"] if torch else None)
        memory = f"{run['peak']:.0f} MB" if "peak" in run else ""
        lines.append(f"| {engine} | {run['rate']:.1f} | {' | '.join(ratios)} | {memory} | {losses} |")
    return [*lines, ""]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=f"of {', '.join(NETWORKS)} (default: all)")
    parser.add_argument("--engine", action="append", metavar="TEXT", help="only engines whose name contains it")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="turns of each engine (default: 3)")
    parser.add_argument("--seconds", type=float, default=3, metavar="S", help="of steps in a turn (default: 3)")
    parser.add_argument("--minutes", type=float, default=float("inf"), metavar="M", help="no second turn begins later")
    parser.add_argument("--limit", type=float, default=300, metavar="S", help="of a process, compiling included")
    parser.add_argument("--torch", default=sys.executable, metavar="PYTHON", help="a Python that has torch")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write there instead")
    options = parser.parse_args(argv)
    if unknown := [name for name in options.networks if name not in NETWORKS]:
        parser.error(f"there is no network {', '.join(unknown)}; there are {', '.join(NETWORKS)}")
    chosen = [e for e in [*ENGINES, *IN_CHROMIUM] if not options.engine or any(text in e for text in options.engine)]
    pythons = {engine: python_of(engine, options.torch) for engine in chosen}
    load = os.getloadavg()[0]
    lines = [
        "# Training",
        "",
        f"`python3 dev.py bench train`: steps a second with Adam, the best of up to {options.rounds} turns of "
        f"{options.seconds:g} s each; emberlet's NumPy and tinygrad's host run on one thread. The most memory is "
        "that of the process, with the engine itself; it is not measured in Chromium. First losses: those of 10 steps, "
        "within 1e-4 of PyTorch's. "
        f"{os.cpu_count()} CPUs, Python {platform.python_version()}; load of the machine when it began: {load:.1f}. "
        "Above 1, times say little.",
        "",
    ]
    networks = options.networks or list(NETWORKS)
    found: dict[str, dict[str, Any]] = {network: {} for network in networks}
    end = time.monotonic() + 60 * options.minutes
    for turn, network, engine in itertools.product(range(options.rounds), networks, chosen):
        python, runs = pythons[engine], found[network]
        if python is None:
            runs[engine] = MISSING
        elif turn == 0 or (isinstance(runs[engine], dict) and time.monotonic() < end):
            new = trained(python, engine, network, options.seconds, options.limit)
            runs[engine] = better(runs.get(engine), new)
            shown = f"{new['rate']:.1f} steps a second" if isinstance(new, dict) else new
            print(f"{network}, turn {turn + 1}, {engine}: {shown}", flush=True)
    for network in networks:
        lines += table(network, found[network])
    text = "\n".join(lines)
    (options.out or HERE / "results" / "train.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
