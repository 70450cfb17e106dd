"""emberlet-web in a module worker of a page, built by each bundler with its defaults and used in Chromium."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from emberlet.host.cli import main as command
from serve import start_server

from tools.chromium import Browser
from tools.components import require
from tools.paths import ROOT

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
PAGE = '<!doctype html><link rel="icon" href="data:," />\n<script type="module" src="%s"></script>\n'
MAIN = """
const worker = new Worker(new URL("./WORKER", import.meta.url), { type: "module" });
worker.onmessage = ({ data }) => (globalThis.found = data);
worker.onerror = ({ message }) => (globalThis.found = message);
"""
# A worker knows its own address and not the page's: files are named by whole addresses.
WORKER = """
import { load } from "emberlet-web";

const options = { wasm: WASM && new URL(WASM, location.origin).href, compiler: COMPILER };
Promise.all(
  ["/model.plan", "/model.onnx"].map(async (name) => {
    const model = await load(new URL(name, location.origin).href, options);
    return [...(await model.run({ image: new Float32Array(64) })).logits];
  }),
).then(postMessage, (error) => postMessage(String(error)));
"""
WEBPACK = """
const { default: webpack } = await import(%s);
webpack({ context: %s, mode: "production", performance: false, entry: "./main.js" }, (error, stats) => {
  console.error(error ?? stats.toString({ all: false, errors: true, warnings: true }));
  process.exitCode = error || stats.hasErrors() || stats.hasWarnings() ? 1 : 0;
});
"""
ESBUILD = """
const { build } = await import(%s);
await build({
  absWorkingDir: %s, entryPoints: ["main.js", "worker.js"], bundle: true, format: "esm", outdir: "dist",
});
"""


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan of the digits model."""
    path = tmp_path_factory.mktemp("plan") / "model.plan"
    assert command(["compile", str(DIGITS), "--out", str(path)]) == 0
    return path


@pytest.mark.parametrize("bundler", ["vite", "webpack", "esbuild"])
def test_the_package_runs_in_a_worker_that_a_bundler_builds(
    bundler: str, browser: Browser, packed: Path, plan: Path, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    shutil.copytree(packed.with_name("built"), project / "node_modules" / "emberlet-web")
    (project / "package.json").write_text('{"private": true, "type": "module"}', encoding="utf-8")
    # esbuild leaves the address of the Wasm file, and of the worker, as they are.
    wasm = "/micropython.wasm" if bundler == "esbuild" else None
    compiler = '"/compiler/"' if bundler == "esbuild" else "undefined"
    worker = WORKER.replace("WASM", json.dumps(wasm)).replace("COMPILER", compiler)
    (project / "worker.js").write_text(worker, encoding="utf-8")
    (project / "main.js").write_text(MAIN.replace("WORKER", "worker.js"), encoding="utf-8")
    (project / "index.html").write_text(PAGE % "/main.js", encoding="utf-8")
    BUILDS[bundler](project)
    if bundler == "esbuild":
        shutil.copy(packed.with_name("built") / "micropython.wasm", project / "dist")
        shutil.copytree(packed.with_name("built") / "compiler", project / "dist" / "compiler")
    shutil.copy(plan, project / "dist")
    shutil.copy(DIGITS, project / "dist" / "model.onnx")
    server = start_server(project / "dist")
    page = browser.open(server.url)
    page.wait("() => globalThis.found", timeout=120000)
    found = page.evaluate("() => found")
    page.close()
    server.shutdown()
    session = onnxruntime.InferenceSession(DIGITS)
    (expected,) = session.run(None, {"image": np.zeros((1, 1, 8, 8), np.float32)})
    assert isinstance(found, list), found
    np.testing.assert_allclose(found, np.repeat(expected, 2, axis=0), atol=1e-4)


def vite(project: Path) -> None:
    run(project, str(Path(require("vite")).parent / "bin" / "vite.js"), "build")


def webpack(project: Path) -> None:
    library = Path(require("webpack")).parent / "lib" / "index.js"
    run(project, "--input-type=module", "--eval", WEBPACK % (json.dumps(library.as_uri()), json.dumps(str(project))))
    (project / "dist" / "index.html").write_text(PAGE % "/main.js", encoding="utf-8")


def esbuild(project: Path) -> None:
    library = Path(require("esbuild")).parent / "lib" / "main.js"
    run(project, "--input-type=module", "--eval", ESBUILD % (json.dumps(library.as_uri()), json.dumps(str(project))))
    (project / "dist" / "index.html").write_text(PAGE % "/main.js", encoding="utf-8")


BUILDS = {"vite": vite, "webpack": webpack, "esbuild": esbuild}


def run(project: Path, *command: str) -> None:
    """Run a script with Node.js, in a project."""
    done = subprocess.run(
        [require("node"), *command], cwd=project, capture_output=True, text=True, check=False, encoding="utf-8"
    )
    assert done.returncode == 0, done.stdout + done.stderr
