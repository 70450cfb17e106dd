"""A browser tab: saved plans on the GPU, the start of a page, sessions of onnxruntime's API, and WebAssembly.

Plans run under MicroPython and are compared with onnxruntime-web's and jax-js's WebGPU. The engines take turns in one
page of one Chromium, with SwiftShader as the GPU. Every call starts with the input on the host and ends with the result
there, and the best of many calls counts. benches/wasm.py is one of the sections, and also has its own page. Writes
each section of benches/results/web.md when it is done. The peers are installed from benches/web/package-lock.json.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import _browser_peers
import _web_counts
import _web_transformers
import _web_visits
import numpy as np

ROUNDS, CALLS = 4, 3
SIZE = 512


@dataclass(frozen=True)
class Work:
    """One row of the table: a plan, its inputs, and the equivalent work of a peer."""

    name: str
    plan: Path
    inputs: tuple[np.ndarray[Any, np.dtype[np.float32]], ...]
    names: tuple[str, ...]
    peer: str
    target: float
    expected: np.ndarray[Any, np.dtype[np.float32]]
    model: Path | None = None


@dataclass(frozen=True)
class Line:
    work: Work
    dispatches: int
    start: dict[str, float]
    times: dict[str, list[float]]
    difference: dict[str, float]

    @property
    def ratio(self) -> float:
        return min(self.times[self.work.peer]) / min(self.times["emberlet"])


def works(folder: Path) -> list[tuple[Work, int]]:
    """The tasks to measure, with their number of dispatches; plans are written to `folder`."""
    import emberlet
    from emberlet import codegen
    from emberlet.wgpu_backend import plan_file
    from gpu import models

    rng = np.random.default_rng(0)

    def tensor(x: np.ndarray[Any, Any]) -> Any:
        return emberlet.asarray(x, backend="numpy")

    found: list[tuple[Work, int]] = []
    for name, path in models().items():
        import onnxruntime

        session = onnxruntime.InferenceSession(str(path))
        wanted = session.get_inputs()[0]
        shape = tuple(d if isinstance(d, int) else 1 for d in wanted.shape)
        x = rng.standard_normal(shape, dtype=np.float32)
        (expected,) = session.run(None, {wanted.name: x})
        model = codegen.load(str(path), backend="numpy")
        plan = plan_file.save(str(folder / f"{name}.plan"), model, tensor(x))
        found.append(
            (
                Work(name, folder / f"{name}.plan", (x,), (wanted.name,), "onnxruntime", 5.0, expected, path),
                len(plan.steps),
            )
        )
    a, b = (rng.standard_normal((SIZE, SIZE), dtype=np.float32) for _ in range(2))
    product = folder / "matmul.plan"
    plan = plan_file.save(str(product), lambda p, q: p @ q, tensor(a), tensor(b), inputs=["p", "q"])
    found.append((Work(f"matmul {SIZE}", product, (a, b), ("a", "b"), "jax", 3.0, a @ b), len(plan.steps)))
    return found


def measure(page: Any, work: Work, dispatches: int, folder: Path) -> Line:
    urls = []
    for i, x in enumerate(work.inputs):
        path = folder / f"{work.plan.stem}.input{i}"
        path.write_bytes(x.tobytes())
        urls.append(f"/work/{path.name}")
    if work.model is not None:
        (folder / work.model.name).write_bytes(work.model.read_bytes())
    job = {
        "plan": f"/work/{work.plan.name}",
        "inputs": urls,
        "shapes": [list(x.shape) for x in work.inputs],
        "names": list(work.names),
        "model": f"/work/{work.model.name}" if work.model is not None else None,
    }
    start, results = {}, {}
    for engine in ("emberlet", work.peer):
        key = f"{engine} {work.name}"
        print(f"  {key}: starting", flush=True)
        answer = page.evaluate("(x) => prepare(x)", {"engine": engine, "key": key, "job": job}, timeout=240000)
        start[engine], results[engine] = answer["start"], np.array(answer["result"], np.float64)
    times: dict[str, list[float]] = {e: [] for e in start}
    for _ in range(ROUNDS):
        for engine in times:
            key = f"{engine} {work.name}"
            times[engine] += page.evaluate("(x) => measure(x)", {"key": key, "calls": CALLS}, timeout=240000)
    scale = np.abs(work.expected).max()
    difference = {e: float(np.abs(r - work.expected.ravel()).max() / scale) for e, r in results.items()}
    line = Line(work, dispatches, start, times, difference)
    print(f"  {work.name}: {min(times['emberlet']):.2f} ms, {work.peer} {min(times[work.peer]):.2f} ms", flush=True)
    return line


def table(lines: list[Line], adapter: str, chromium: str) -> list[str]:
    out = [
        "# In a browser tab",
        "",
        f"Chromium {chromium}, adapter {adapter}. Milliseconds a call, result on the host, best (median)",
        f"of {ROUNDS * CALLS}, in turns; written by `python3 dev.py bench web`. emberlet runs a saved plan under",
        "MicroPython's Wasm; *start* is from nothing to the first result. Errors are against onnxruntime on the CPU",
        "(NumPy for the product), relative to the largest element.",
        "",
        "## Plans on the GPU",
        "",
        "| work | dispatches | emberlet | peer | peer's | ratio | target | start | its start | error | its error |",
        "|---|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    names = {"onnxruntime": "onnxruntime-web 1.30.0", "jax": "jax-js 0.1.25"}
    for x in lines:
        own, other = x.times["emberlet"], x.times[x.work.peer]
        out.append(
            f"| {x.work.name} | {x.dispatches} | {min(own):.2f} ({median(own):.2f}) | {names[x.work.peer]} |"
            f" {min(other):.2f} ({median(other):.2f}) | {x.ratio:.1f} | {x.work.target:.0f} |"
            f" {x.start['emberlet']:.0f} | {x.start[x.work.peer]:.0f} |"
            f" {x.difference['emberlet']:.1e} | {x.difference[x.work.peer]:.1e} |"
        )
    return out


def main(argv: list[str] | None = None) -> int:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args(argv)
    if not _browser_peers.are_installed():
        return 1
    import build_package
    import build_page
    import wasm

    begin = time.monotonic()

    def done(lines: list[str]) -> None:
        _browser_peers.write_sections("web.md", lines)
        print(f"-- {time.monotonic() - begin:.0f} s --", flush=True)

    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    with tempfile.TemporaryDirectory() as temporary:
        site, folder = Path(temporary, "site"), Path(temporary, "work")
        site.mkdir()
        folder.mkdir()
        print("writing plans", flush=True)
        wanted = works(folder)
        build_page.build_runtimes(site)
        build_page.build_packages(site / "packages")
        build_package.build_modules(site / "emberlet")
        build_page.build_model(folder)
        with _browser_peers.opened("bench.html", site, folder) as (browser, page):
            adapter = page.evaluate("() => adapterName()")
            print("plans on the GPU", flush=True)
            lines = [measure(page, work, dispatches, folder) for work, dispatches in wanted]
            done(table(lines, adapter, browser.version))
            print("visiting the page", flush=True)
            done(_web_visits.start_table(_web_visits.starts(browser, Path(temporary, "page")), load))
            print("sessions", flush=True)
            mnist, _ = wanted[0]
            assert mnist.model
            shape = mnist.inputs[0].shape
            sessions = _web_visits.sessions(browser, site, folder, mnist.model, shape)
            done(_web_visits.session_table(sessions, mnist.name))
        print("WebAssembly", flush=True)
        done(["## Without a GPU", "", *wasm.section(folder)])
        with _browser_peers.opened("growth.html", site, folder) as (browser, page):
            print("transformers.js", flush=True)
            done(_web_transformers.table(_web_transformers.measured(browser, site, folder)))
            print("a thousand inferences", flush=True)
            done(_web_counts.growth(page))
            print("accessibility", flush=True)
            done(_web_visits.accessibility(browser, Path(temporary, "page")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
