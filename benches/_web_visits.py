"""Visits to pages with an empty cache: emberlet's page to its first prediction, and sessions of onnxruntime's API."""

from __future__ import annotations

import json
import os
import urllib.parse
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from _browser_peers import PEERS, ROOT

VISITS = 7
VISITED = [
    ("micropython", "wgpu"),
    ("micropython", "wasm"),
    ("micropython", "python"),
    ("pyodide", "wgpu"),
    ("pyodide", "wasm"),
]
RUNTIMES = {"micropython": "MicroPython", "pyodide": "Pyodide"}
DEVICES = {"wgpu": "WebGPU", "wasm": "WebAssembly", "python": "plain Python"}
ASKED_MS, ASKED_MB = 1000, 0.5
SESSION_VISITS = 3
SESSIONS = [
    "emberlet.onnxruntime CPU",
    "emberlet.onnxruntime WebGPU",
    "onnxruntime-web Wasm",
    "onnxruntime-web WebGPU",
]
# The service worker begins to keep the site when the page is ready; that is no part of the first prediction.
HIDE_ITS_CACHE = "Object.defineProperty(Navigator.prototype, 'serviceWorker', { value: undefined })"


@dataclass(frozen=True)
class Start:
    """Visits of the page: milliseconds from navigation to the first prediction of each; transferred bytes of one."""

    runtime: str
    device: str
    times: list[float]
    sent: int

    def row(self) -> str:
        met = "–"
        if self.runtime == "micropython":
            met = "yes" if min(self.times) < ASKED_MS and self.sent < ASKED_MB * 1e6 else "no"
        return (
            f"| {RUNTIMES[self.runtime]} | {DEVICES[self.device]} | {min(self.times):.0f} ({median(self.times):.0f}) |"
            f" {self.sent / 1e6:.2f} | {met} |"
        )


def accessibility(browser: Any, folder: Path) -> list[str]:
    """A table: what axe finds on each page of the site in `folder`, with its demos."""
    import build_page
    from serve import PAGE_POLICY, start_server

    server = start_server(build_page.build(folder, demos=True), policy=PAGE_POLICY)
    axe = (ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
    lines = [
        "## Accessibility",
        "",
        "Violations that axe-core finds on each page of `dev.py web`, once it is ready, on a screen of 360 by 740.",
        "",
        "| page | light | dark |",
        "|---|---:|---:|",
    ]
    for path in sorted(folder.glob("*.html")):
        counts = []
        for dark in (False, True):
            page = browser.open(f"{server.url}{path.name}", dark=dark, width=360, height=740, touch=True)
            ready = "() => document.querySelector('main').dataset.state !== 'loading'"
            page.wait(ready, timeout=120000)
            page.evaluate(f"() => {{ {axe} }}")
            counts.append(page.evaluate("async () => (await axe.run()).violations.length", timeout=120000))
            page.close()
        lines.append(f"| {path.name} | {counts[0]} | {counts[1]} |")
    server.shutdown()
    return lines


def starts(browser: Any, folder: Path) -> list[Start]:
    """Visit the page in a fresh browser profile, with an example of the test set as its first input."""
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


def start_table(found: list[Start], load: float) -> list[str]:
    return [
        "## From navigation to the first prediction",
        "",
        f"The page of `dev.py web` reads an example digit: milliseconds, best (median) of {VISITS} visits with an",
        "empty cache, and what the wire carried until then, compressed, headers included. The server is on the same",
        f"machine: add the time of the download. Asked of MicroPython are less than {ASKED_MS} ms and {ASKED_MB} MB.",
        f"The machine's load average was {load:.0f}, on {os.cpu_count()} processors.",
        "",
        "| runtime | device | first prediction | MB transferred | met |",
        "|---|---|---:|---:|---|",
        *(one.row() for one in found),
    ]


@dataclass(frozen=True)
class Session:
    """One engine's milliseconds to a session's first result and to each later one; the first result's error."""

    engine: str
    first: list[float]
    times: list[float]
    sent: int
    error: float | None
    failure: str = ""

    def row(self) -> str:
        if self.failure:
            return f"| {self.engine} | {self.failure} | | | |"
        return (
            f"| {self.engine} | {min(self.first):.0f} ({median(self.first):.0f}) | {self.sent / 1e6:.2f} |"
            f" {min(self.times):.2f} ({median(self.times):.2f}) | {self.error:.1e} |"
        )


def sessions(browser: Any, site: Path, folder: Path, model: Path, shape: tuple[int, ...]) -> list[Session]:
    """`InferenceSession(model)` and its first result, each in its own page, the engines in turns."""
    import onnxruntime
    from serve import start_server

    (folder / model.name).write_bytes(model.read_bytes())
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    x = np.sin(np.arange(np.prod(shape))).astype(np.float32).reshape(shape)
    (expected,) = session.run(None, {session.get_inputs()[0].name: x})
    mounts = {"/bench/": ROOT / "benches" / "web", "/ort/": PEERS / "onnxruntime-web" / "dist", "/work/": folder}
    server = start_server(site, mounts=mounts)
    told: dict[str, list[dict[str, Any]]] = {engine: [] for engine in SESSIONS}
    sent = dict.fromkeys(SESSIONS, 0)
    for _ in range(SESSION_VISITS):
        for engine in SESSIONS:
            asked = json.dumps({"engine": engine, "model": f"/work/{model.name}", "shape": list(shape)})
            before = server.sent
            page = browser.open(f"{server.url}bench/session.html#{urllib.parse.quote(asked)}")
            page.wait("() => globalThis.loaded", timeout=240000)
            told[engine].append(page.evaluate("() => globalThis.told"))
            sent[engine] = server.sent - before
            page.close()
    server.shutdown()
    found = []
    for engine, answers in told.items():
        failures = [answer["error"] for answer in answers if "error" in answer]
        if failures:
            found.append(Session(engine, [], [], 0, None, failures[0].splitlines()[-1]))
            continue
        result = np.array(answers[0]["result"])
        error = float(np.abs(result - expected.ravel()).max() / np.abs(expected).max())
        times = [ms for answer in answers for ms in answer["times"]]
        found.append(Session(engine, [answer["first"] for answer in answers], times, sent[engine], error))
        print(f"  {engine}: {min(found[-1].first):.0f} ms, then {min(times):.2f} ms", flush=True)
    return found


def session_table(found: list[Session], model: str) -> list[str]:
    return [
        "## An InferenceSession to its first result",
        "",
        f"{model}, from navigation: `onnxruntime.InferenceSession(...)` in Python on emberlet.onnxruntime,",
        "under Pyodide without NumPy, and onnxruntime-web's from JavaScript. Milliseconds, best (median) of",
        f"{SESSION_VISITS} visits with an empty cache; *later* are calls after the first, with lists in Python and",
        "typed arrays in JavaScript.",
        "",
        "| engine | first result | MB transferred | later | error |",
        "|---|---:|---:|---:|---:|",
        *(one.row() for one in found),
    ]
