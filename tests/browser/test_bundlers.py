"""emberlet-web in a module worker of a page, and under onnxruntime-web's name in the page itself, built by each bundler
and used in Chromium."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from emberlet.host.cli import main as command
from serve import start_server
from support.processes import ran

from tools.chromium import Browser
from tools.components import require
from tools.paths import ROOT

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
PAGE = '<!doctype html><link rel="icon" href="data:," />\n<script type="module" src="%s"></script>\n'
MAIN = """
const worker = new Worker(new URL("./WORKER", import.meta.url), { type: "module" });
const ofWorker = new Promise((found) => {
  worker.onmessage = ({ data }) => found(data);
  worker.onerror = ({ message }) => found(message);
});
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
# A page of onnxruntime-web's, which the bundler gives another package under that name.
SESSION = """
import * as ort from "onnxruntime-web";

async function main() {
  const session = await ort.InferenceSession.create("/model.onnx", { executionProviders: ["wasm"] });
  const { logits } = await session.run({ image: new ort.Tensor("float32", new Float32Array(64), [1, 1, 8, 8]) });
  return [...logits.data];
}
Promise.all([ofWorker, main().catch(String)]).then((found) => (globalThis.found = found));
"""
ALIAS = {"onnxruntime-web": "emberlet-web/onnxruntime"}
WEBPACK = """
const { default: webpack } = await import(%s);
const resolve = { alias: %s };
webpack({ context: %s, resolve, mode: "production", performance: false, entry: "./main.js" }, (error, stats) => {
  console.error(error ?? stats.toString({ all: false, errors: true, warnings: true }));
  process.exitCode = error || stats.hasErrors() || stats.hasWarnings() ? 1 : 0;
});
"""
ESBUILD = """
const { build } = await import(%s);
await build({
  absWorkingDir: %s, alias: %s, entryPoints: ["*.js"], bundle: true, format: "esm", outdir: "dist",
});
"""


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan of the digits model."""
    path = tmp_path_factory.mktemp("plan") / "model.plan"
    assert command(["compile", str(DIGITS), "--out", str(path)]) == 0
    return path


@pytest.mark.parametrize("bundler", ["vite", "webpack", "esbuild"])
def test_a_bundler_builds_a_page_with_the_package_in_a_worker_and_in_place_of_onnxruntime_web(
    bundler: str, browser: Browser, packed: Path, plan: Path, tmp_path: Path
) -> None:
    # esbuild leaves the address of the Wasm file, and of the worker, as they are.
    wasm = "/micropython.wasm" if bundler == "esbuild" else None
    compiler = '"/compiler/"' if bundler == "esbuild" else "undefined"
    worker = WORKER.replace("WASM", json.dumps(wasm)).replace("COMPILER", compiler)
    main = MAIN.replace("WORKER", "worker.js") + SESSION
    dist = build(bundler, packed, tmp_path / "project", {"worker.js": worker, "main.js": main})
    shutil.copy(plan, dist)
    of_worker, of_session = found_by(browser, dist)
    assert isinstance(of_worker, list), of_worker
    assert isinstance(of_session, list), of_session
    np.testing.assert_allclose([*of_worker, of_session], np.repeat(expected(), 3, axis=0), atol=1e-4)


def build(bundler: str, packed: Path, project: Path, scripts: dict[str, str]) -> Path:
    """The folder of the page that a bundler makes of these scripts and the package; model.onnx is in it."""
    shutil.copytree(packed.with_name("built"), project / "node_modules" / "emberlet-web")
    (project / "package.json").write_text('{"private": true, "type": "module"}', encoding="utf-8")
    for name, script in scripts.items():
        (project / name).write_text(script, encoding="utf-8")
    (project / "index.html").write_text(PAGE % "/main.js", encoding="utf-8")
    BUILDS[bundler](project)
    if bundler == "esbuild":
        shutil.copy(packed.with_name("built") / "micropython.wasm", project / "dist")
        shutil.copytree(packed.with_name("built") / "compiler", project / "dist" / "compiler")
    shutil.copy(DIGITS, project / "dist" / "model.onnx")
    return project / "dist"


def found_by(browser: Browser, dist: Path) -> Any:
    """What a page leaves as `found`."""
    server = start_server(dist)
    page = browser.open(server.url)
    page.wait("() => globalThis.found", timeout=120000)
    found = page.evaluate("() => found")
    page.close()
    server.shutdown()
    return found


def expected() -> Any:
    session = onnxruntime.InferenceSession(DIGITS)
    return session.run(None, {"image": np.zeros((1, 1, 8, 8), np.float32)})[0]


def vite(project: Path) -> None:
    config = f"export default {{ resolve: {{ alias: {json.dumps(ALIAS)} }} }};\n"
    (project / "vite.config.mjs").write_text(config, encoding="utf-8")
    run(project, str(Path(require("vite")).parent / "bin" / "vite.js"), "build")


def webpack(project: Path) -> None:
    library = Path(require("webpack")).parent / "lib" / "index.js"
    script = WEBPACK % (json.dumps(library.as_uri()), json.dumps(ALIAS), json.dumps(str(project)))
    run(project, "--input-type=module", "--eval", script)
    (project / "dist" / "index.html").write_text(PAGE % "/main.js", encoding="utf-8")


def esbuild(project: Path) -> None:
    library = Path(require("esbuild")).parent / "lib" / "main.js"
    script = ESBUILD % (json.dumps(library.as_uri()), json.dumps(str(project)), json.dumps(ALIAS))
    run(project, "--input-type=module", "--eval", script)
    (project / "dist" / "index.html").write_text(PAGE % "/main.js", encoding="utf-8")


BUILDS = {"vite": vite, "webpack": webpack, "esbuild": esbuild}


def run(project: Path, *command: str) -> None:
    """Run a script with Node.js, in a project."""
    done = ran(require("node"), *command, cwd=project)
    assert done.returncode == 0, done.stdout + done.stderr
