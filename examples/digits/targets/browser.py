"""A tab of Chromium: Pyodide on the processor and on WebGPU, MicroPython's Wasm on WebGPU."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

from tools.chromium import NEEDED, Browser, BrowserError
from tools.paths import WEB

from .target import CLASSIFY, Answer, Kit, Target, TargetError

PAGES = Path(__file__).parent
TIME_LIMIT = 180_000
"""Milliseconds."""


def run(page: str, backend: str, kit: Kit) -> Answer:
    """Serve the model and a page with the runtime, and let the page classify."""
    sys.path.append(str(WEB))
    import build_page
    from serve import start_server

    site = kit.scratch / "site"
    build_page.build_runtimes(site)
    build_page.build_packages(site / "packages")
    files = [CLASSIFY, kit.folder / "digits.py", kit.folder / "digits.bpk", kit.images]
    for file in files:
        (site / "model").mkdir(exist_ok=True)
        (site / "model" / file.name).write_bytes(file.read_bytes())
    job = kit.job(
        backend,
        path=["/model"],
        weights="/model/digits.bpk",
        images=f"/model/{kit.images.name}",
        ships=["emberlet", "digits", "wgpu"],
    )
    server = start_server(site, mounts={"/targets/": PAGES})
    try:
        with Browser() as browser:
            tab = browser.open(f"{server.url}targets/{page}")
            tab.wait("() => globalThis.ready || globalThis.failed", timeout=TIME_LIMIT)
            told = tab.evaluate(
                "([names, job]) => globalThis.failed ?? classify(names, job)",
                [[file.name for file in files], json.dumps(job)],
            )
    except BrowserError as error:
        # The runtime's own frames do not help the author of the Python code above them.
        told = [line for line in str(error).splitlines() if not line.startswith("    at ")]
        raise TargetError("\n".join(told)) from None
    finally:
        server.shutdown()
    return Answer.from_json(told, {**job, "weights": str(kit.folder / "digits.bpk")})


def _target(key: str, name: str, page: str, backend: str, *needs: str) -> Target:
    runner: Any = partial(run, page, backend)
    return Target(key, name, runner, (*NEEDED, *needs), ("wgpu",))


TARGETS = [
    _target("pyodide", "Chromium, Pyodide", "pyodide.html", "python", "pyodide"),
    _target("pyodide-webgpu", "Chromium, Pyodide, WebGPU", "pyodide.html", "wgpu", "pyodide"),
    _target("micropython-webgpu", "Chromium, MicroPython, WebGPU", "micropython.html", "wgpu", "micropython-wasm"),
]
