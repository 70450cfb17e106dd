"""The example for PyScript: a script under MicroPython and one under Pyodide."""

from __future__ import annotations

import shutil
from pathlib import Path

from serve import start_server

from tools.chromium import Browser
from tools.components import require
from tools.paths import ROOT


def test_both_kinds_of_script_run_the_model(browser: Browser, built: Path, tmp_path: Path) -> None:
    pyscript = Path(require("pyscript")).parent / "dist"
    page_folder = tmp_path / "page"
    shutil.copytree(ROOT / "examples" / "pyscript", page_folder)
    server = start_server(built, mounts={"/pyscript/": pyscript, "/example/": page_folder})
    page = browser.open(server.url + "example/index.html")
    texts = "['mpy', 'py'].map((id) => document.getElementById(id).textContent)"
    page.wait(f"() => {texts}.every((text) => text !== '…')", timeout=200000)
    assert page.evaluate(f"() => {texts}") == ["3", "3"]
    hosts = {url.split("/")[2] for url in page.requests() if not url.startswith(("data:", "blob:"))}
    assert hosts == {server.url.split("/")[2]}, "something was fetched from elsewhere"
    page.close()
    server.shutdown()
