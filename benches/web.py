"""In a browser tab: emberlet's saved plans under MicroPython beside onnxruntime-web's and jax-js's WebGPU.

One Chromium, one page, SwiftShader for a GPU; the engines take turns, every call begins with the input on the host and
ends with the result there, and the best of many calls counts. Writes benches/results/web.md, then runs benches/wasm.py.
The peers are installed from benches/web/package-lock.json.
"""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import _browser_peers
import numpy as np

ROUNDS, CALLS = 4, 3
VISITS = 7
VISITED = [
    ("micropython", "wgpu"),
    ("micropython", "wasm"),
    ("micropython", "python"),
    ("pyodide", "wgpu"),
    ("pyodide", "wasm"),
]
# The service worker begins to keep the site when the page is ready; that is no part of the first prediction.
HIDE_ITS_CACHE = "Object.defineProperty(Navigator.prototype, 'serviceWorker', { value: undefined })"
SIZE = 512


@dataclass(frozen=True)
class Work:
    """One line of the table: a plan, its inputs, and what a peer needs to do the same."""

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
    """What is measured, with its number of dispatches; plans are written to `folder`."""
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


def table(lines: list[Line], adapter: str, chromium: str, load: float) -> str:
    out = [
        "# In a browser tab",
        "",
        f"Chromium {chromium}, adapter {adapter}. Milliseconds a call, result on the host, best (median)",
        f"of {ROUNDS * CALLS}, in turns; written by `python3 dev.py bench web`. emberlet runs a saved plan under",
        "MicroPython's Wasm; *start* is from nothing to the first result. Errors are against onnxruntime on the CPU",
        f"(NumPy for the product), relative to the largest element. Load average: {load:.0f}.",
        "",
        "| work | dispatches | emberlet | peer | peer's | ratio | asked | start | its start | error | its error |",
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
    return "\n".join(out) + "\n"


@dataclass(frozen=True)
class Start:
    """Visits of the page: milliseconds from navigation to the first prediction of each, bytes on the wire of one."""

    runtime: str
    device: str
    times: list[float]
    sent: int


def starts(browser: Any, folder: Path) -> list[Start]:
    """The page in a fresh browser profile, an example of the test set as its first input."""
    import build_page
    from serve import PAGE_POLICY, start_server

    server = start_server(build_page.build(folder), policy=PAGE_POLICY)
    found = []
    for runtime, device in VISITED:
        times = []
        for _ in range(VISITS):
            before = server.sent
            page = browser.open(f"{server.url}#runtime={runtime}&device={device}&example=7", before=HIDE_ITS_CACHE)
            page.wait("() => performance.getEntriesByName('first prediction').length", timeout=120000)
            times.append(page.evaluate("() => performance.getEntriesByName('first prediction')[0].startTime"))
            sent = server.sent - before
            page.close()
        found.append(Start(runtime, device, times, sent))
        print(f"  {runtime}, {device}: {min(times):.0f} ms, {sent:,} bytes", flush=True)
    server.shutdown()
    return found


def start_table(found: list[Start], load: float) -> str:
    names = {"micropython": "MicroPython", "pyodide": "Pyodide", "wgpu": "WebGPU"}
    names |= {"wasm": "WebAssembly", "python": "plain Python"}
    out = [
        "",
        "## From navigation to the first prediction",
        "",
        f"The page of `dev.py web` reads an example digit: milliseconds, best (median) of {VISITS} visits with an",
        "empty cache, and what the wire carried until then, compressed, headers included. The server is on the same",
        f"machine: add the time of the download. The machine's load average was {load:.0f},",
        f"on {os.cpu_count()} processors.",
        "",
        "| runtime | device | first prediction | MB transferred |",
        "|---|---|---:|---:|",
    ]
    for x in found:
        out.append(
            f"| {names[x.runtime]} | {names[x.device]} | {min(x.times):.0f} ({median(x.times):.0f}) |"
            f" {x.sent / 1e6:.2f} |"
        )
    return "\n".join(out) + "\n"


def main() -> int:
    if not _browser_peers.are_installed():
        return 1
    import build_page

    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    with tempfile.TemporaryDirectory() as temporary:
        site, folder = Path(temporary, "site"), Path(temporary, "work")
        site.mkdir()
        folder.mkdir()
        print("writing plans", flush=True)
        wanted = works(folder)
        build_page.build_runtimes(site)
        build_page.build_packages(site / "packages")
        with _browser_peers.opened("bench.html", site, folder) as (browser, page):
            adapter = page.evaluate("() => adapterName()")
            lines = [measure(page, work, dispatches, folder) for work, dispatches in wanted]
            print("visiting the page", flush=True)
            visits = starts(browser, Path(temporary, "page"))
            text = table(lines, adapter, browser.version, load) + start_table(visits, load)
    _browser_peers.write("web.md", text)
    import wasm

    return wasm.main()


if __name__ == "__main__":
    sys.exit(main())
