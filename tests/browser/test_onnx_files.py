"""ONNX files in a tab with one call: emberlet-web's `load`, and onnxruntime-web's API in front of it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import build_package
import numpy as np
import onnx
import onnxruntime
import pytest
from emberlet.host.cli import main as command
from models.index import cases
from serve import Server, start_server
from support.onnx_models import parse, with_constants

from tools.chromium import Browser, Page
from tools.paths import ROOT

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
PAGE = """<!doctype html><meta charset="utf-8" /><link rel="icon" href="data:," />
<script type="importmap">{ "imports": {
  "emberlet-web": "/emberlet-web/emberlet.mjs",
  "emberlet-web/onnxruntime": "/emberlet-web/onnxruntime.mjs" } }</script>
"""
SECONDS = 120000  # ms, for a compilation on a busy machine


@pytest.fixture(scope="module")
def folder(packed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of the package's files and of ONNX files."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(packed.with_name("built"), folder / "emberlet-web")
    (folder / "digits.onnx").write_bytes(DIGITS.read_bytes())
    write_classifier(folder / "text.onnx")
    write_product(folder / "product.onnx")
    (folder / "broken.onnx").write_bytes(DIGITS.read_bytes()[:5000])
    (folder / "empty.html").write_text(PAGE, encoding="utf-8")
    return folder


def write_classifier(path: Path) -> None:
    """Logits of two classes for ids and a mask of shape (batch, length): mean of embeddings, two products."""
    rng = np.random.default_rng(5)
    weights = {
        "table": rng.standard_normal((50, 24)),
        "w0": rng.standard_normal((24, 32)) / 5,
        "w1": rng.standard_normal((32, 2)) / 5,
    }
    shape = "batch_size, sequence_length"
    text = f"""classifier (int64[{shape}] input_ids, int64[{shape}] attention_mask) => (float[batch_size, 2] logits)
        <int64[1] last = {{-1}}, int64[1] one = {{1}}> {{
        x = Gather(table, input_ids)  seen = Cast<to = 1>(attention_mask)  wide = Unsqueeze(seen, last)
        kept = Mul(x, wide)  sum = ReduceSum<keepdims = 0>(kept, one)  count = ReduceSum<keepdims = 0>(wide, one)
        mean = Div(sum, count)  h = MatMul(mean, w0)  t = Tanh(h)  logits = MatMul(t, w1) }}"""
    onnx.save(with_constants(text, 17, **{name: w.astype(np.float32) for name, w in weights.items()}), path)


def write_product(path: Path) -> None:
    """The model of onnxruntime's quick start."""
    onnx.save(parse("product (float[3, 4] a, float[4, 3] b) => (float[3, 3] c) { c = MatMul(a, b) }", 17), path)


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Server]:
    server = start_server(folder)
    yield server
    server.shutdown()


@pytest.fixture
def page(browser: Browser, served: Server) -> Iterator[Page]:
    page = browser.open(served.url + "empty.html")
    yield page
    page.close()


def wanted(path: Path, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    found: list[np.ndarray] = session.run(None, feeds)
    return found


RAMP = (np.arange(64) / 64).astype(np.float32)


def test_an_onnx_file_is_compiled_once_and_then_kept(page: Page, folder: Path) -> None:
    first = page.evaluate("""async () => {
      const { load } = await import("emberlet-web");
      const stages = new Set();
      const beyond = [];
      const { fetch } = globalThis;
      globalThis.fetch = async (...given) => { // as of a server that says the length
        const response = await fetch(...given);
        const { headers } = response;
        const bytes = await response.arrayBuffer();
        const length = { "content-length": bytes.byteLength, "content-encoding": "" };
        return new Response(bytes, { headers: { ...Object.fromEntries(headers), ...length } });
      };
      const onProgress = ({ stage, loaded, total }) => {
        stages.add(stage);
        if (loaded > total) beyond.push([loaded, total]);
      };
      const model = await load("digits.onnx", { onProgress });
      globalThis.fetch = fetch;
      const { logits } = await model.run({ image: Float32Array.from({ length: 64 }, (_, i) => i / 64) });
      const { chosen, device, reason } = model;
      return { logits: [...logits], stages: [...stages], chosen, device, reason, beyond };
    }""")
    (expected,) = wanted(DIGITS, {"image": RAMP.reshape(1, 1, 8, 8)})
    np.testing.assert_allclose([first["logits"]], expected, atol=1e-4)
    assert first["beyond"] == [], "more has arrived than there is"
    assert first["stages"] == ["download", "compile"] and first["chosen"] == {"batch": 1}
    assert (first["device"], first["reason"]) == ("wasm", "this browser's WebGPU runs in software, without a GPU")
    again = page.evaluate("""async () => {
      const { load } = await import("emberlet-web");
      globalThis.Worker = null; // the compiler cannot start
      const { fetch } = globalThis;
      const asked = [];
      globalThis.fetch = (what, options) => (asked.push(options.method ?? "GET"), fetch(what, options));
      const image = Float32Array.from({ length: 64 }, (_, i) => i / 64);
      const one = await load("digits.onnx", { device: "wasm" });
      globalThis.fetch = async () => { throw new TypeError("offline"); };
      const two = await load("digits.onnx", { device: "wasm" });
      const logits = [(await one.run({ image })).logits, (await two.run({ image })).logits];
      return { asked, logits: logits.map((one) => [...one]), chosen: two.chosen };
    }""")
    assert again["asked"] == ["HEAD"] and again["chosen"] == {"batch": 1}
    np.testing.assert_array_equal(again["logits"], [first["logits"]] * 2)


def test_the_lines_that_the_readme_shows_run(page: Page, folder: Path) -> None:
    (folder / "model.onnx").write_bytes(DIGITS.read_bytes())
    text = (build_package.PACKAGE / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```js\n(.*?)^```", text, re.S | re.M)
    of_load, of_session = blocks[0], next(block for block in blocks if "onnxruntime" in block)
    (folder / "load.mjs").write_text(f"{of_load}\nexport const found = [...logits];", encoding="utf-8")
    (folder / "session.mjs").write_text(f"{of_session}\nexport const found = [...logits.data];", encoding="utf-8")
    found = page.evaluate(
        """async () => [(await import("/load.mjs")).found, (await import("/session.mjs")).found]""", timeout=SECONDS
    )
    (expected,) = wanted(DIGITS, {"image": np.zeros((1, 1, 8, 8), np.float32)})
    np.testing.assert_allclose(found, np.repeat(expected, 2, axis=0), atol=1e-4)


def test_the_image_of_the_compilers_memory_is_not_held_twice(page: Page) -> None:
    """A worker that compiles holds 12 MB beside the memory of its Wasm, which is not counted; the image has 38 MB."""
    held = page.evaluate("""async () => {
      const { load } = await import("emberlet-web");
      await load("digits.onnx", { cache: false, device: "wasm" });
      return (await performance.measureUserAgentSpecificMemory()).bytes;
    }""")
    assert held < 30e6


def test_it_is_the_module_that_the_command_writes(page: Page, folder: Path) -> None:
    assert command(["compile", str(DIGITS), "--out", str(folder / "digits.wasm")]) == 0
    found = page.evaluate("""async () => {
      const { compile } = await import("/emberlet-web/compiling.mjs");
      const bytes = new Uint8Array(await (await fetch("digits.onnx")).arrayBuffer());
      const one = await compile([{ name: "digits.onnx", bytes }], { kind: "wasm", dim: [], freeze: [] });
      return [...one.bytes];
    }""")
    assert bytes(found) == (folder / "digits.wasm").read_bytes()


def test_the_gpu_runs_it_as_a_plan_and_either_device_leaves_a_size_open(
    page: Page, folder: Path, mnist: Path | None
) -> None:
    found = page.evaluate(
        """async (mnist) => {
          const { load } = await import("emberlet-web");
          const digits = await load("digits.onnx", { device: "webgpu", dims: { batch: 2 } });
          const { logits } = await digits.run({ image: new Float32Array(128).fill(0.5) });
          const bytes = new File([await (await fetch("text.onnx")).arrayBuffer()], "some/text.onnx");
          const texts = [];
          for (const device of ["webgpu", "wasm"]) {
            const text = await load(bytes, { device, dims: { batch_size: 1, sequence_length: [1, 64] } });
            const results = [];
            for (const n of [3, 17]) {
              const input_ids = BigInt64Array.from({ length: n }, (_, i) => BigInt(7 * i % 50));
              results.push([...(await text.run({ input_ids, attention_mask: input_ids.map(() => 1n) })).logits]);
            }
            texts.push([text.device, text.sizes, results]);
          }
          const image = Float32Array.from({ length: 784 }, (_, i) => (i % 29) / 29);
          const other = mnist && (await load("mnist.onnx"));
          const scores = other && Object.values(await other.run({ [other.inputs[0].name]: image }))[0];
          const told = { digits: [digits.device, [...logits]], texts };
          return { ...told, mnist: scores && [...scores] };
        }""",
        bool(mnist),
        timeout=SECONDS,
    )
    sizes = {"sequence_length": [1, 64]}
    assert found["digits"][0] == "webgpu"
    assert [told[:2] for told in found["texts"]] == [["webgpu", sizes], ["wasm", sizes]]
    (logits,) = wanted(DIGITS, {"image": np.full((2, 1, 8, 8), 0.5, np.float32)})
    np.testing.assert_allclose(found["digits"][1], logits.ravel(), atol=1e-4)
    for _, _, results in found["texts"]:
        for n, result in zip((3, 17), results, strict=True):
            np.testing.assert_allclose([result], wanted(folder / "text.onnx", feeds(1, n))[0], atol=1e-4)
    if mnist:
        name = onnxruntime.InferenceSession(mnist).get_inputs()[0].name
        image = ((np.arange(784) % 29) / 29).astype(np.float32).reshape(1, 1, 28, 28)
        np.testing.assert_allclose([found["mnist"]], wanted(mnist, {name: image})[0], atol=1e-3)


def test_the_next_visit_takes_the_device_that_was_faster(browser: Browser, served: Server, hardware: str) -> None:
    page = browser.open(served.url + "empty.html", before=hardware)
    found = page.evaluate(
        """async () => {
          const { load } = await import("emberlet-web");
          const image = Float32Array.from({ length: 64 }, (_, i) => i / 64);
          const visit = async () => {
            const model = await load("digits.onnx");
            return [model.device, model.reason, [...(await model.run({ image })).logits]];
          };
          const first = await visit();
          const kept = await caches.open("emberlet-plans");
          const ofModel = ({ url }) => url.includes("/compiled/") && !/[.](plan|wasm)$/.test(url);
          const measured = async () => (await kept.keys()).find(ofModel);
          while (!(await measured())) await new Promise((done) => setTimeout(done, 100));
          const faster = await (await kept.match(await measured())).text();
          const again = await visit();
          await kept.put(await measured(), new Response("wasm"));
          const plans = (await kept.keys()).filter(({ url }) => /[.]plan$/.test(url));
          const [plan] = await Promise.all(plans.map(async (key) => (await kept.match(key)).text()));
          return { first, faster, again, other: await visit(), gpuOnly: /"steps": {"gpu": [^}]*}/.test(plan) };
        }""",
        timeout=2 * SECONDS,
    )
    page.close()
    assert found["first"][:2] == ["webgpu", ""] and found["again"][0] == found["faster"]
    assert found["other"][:2] == ["wasm", "a run in WebAssembly was faster here"]
    assert found["gpuOnly"], "the plan has steps for other classes of devices"
    (expected,) = wanted(DIGITS, {"image": RAMP.reshape(1, 1, 8, 8)})
    for _, _, logits in (found["first"], found["again"], found["other"]):
        np.testing.assert_allclose([logits], expected, atol=1e-4)


@pytest.fixture(scope="module")
def mnist(folder: Path) -> Path | None:
    """mnist.onnx on the site, where the shared folder is."""
    shared = ROOT.parent / "shared" / "models" / "mnist.onnx"
    if not shared.is_file():
        return None
    (folder / "mnist.onnx").write_bytes(shared.read_bytes())
    return shared


def test_a_generated_module_runs_with_its_weights(page: Page, folder: Path) -> None:
    assert command(["codegen", str(DIGITS), "--out", str(folder)]) == 0
    (folder / "other.py").write_text("import emberlet\n", encoding="utf-8")
    found = page.evaluate(
        """async () => {
          const { load } = await import("emberlet-web");
          const image = Float32Array.from({ length: 64 }, (_, i) => i / 64);
          const told = [];
          const run = async (...given) => {
            const model = await load(...given);
            told.push([model.device, [...(await model.run({ image })).logits]]);
            await model.release();
          };
          await run("digits.py", { device: "webgpu" });
          await run("digits.py", { device: "wasm" });
          const bytes = async (name) => (await fetch(name)).arrayBuffer();
          const module = new Uint8Array(await bytes("digits.py"));
          const weights = await bytes("digits.bpk");
          const error = async (...given) => load(...given).then(() => "nothing", (one) => one.message);
          const wrong = [await error(module), await error("other.py"), await error(module, { weights: module })];
          globalThis.Worker = null; // what was compiled is kept by content
          globalThis.fetch = async () => { throw new TypeError("offline"); };
          await run("digits.py", { device: "wasm" });
          await run(new File([module], "digits.py"), { weights, device: "webgpu" });
          return { told, wrong };
        }""",
        timeout=SECONDS,
    )
    (expected,) = wanted(DIGITS, {"image": RAMP.reshape(1, 1, 8, 8)})
    assert [device for device, _ in found["told"]] == ["webgpu", "wasm", "wasm", "webgpu"]
    for _, logits in found["told"]:
        np.testing.assert_allclose([logits], expected, atol=1e-4)
    assert found["wrong"] == [
        "model.py needs its weights, digits.bpk: pass their address or bytes, load(module, { weights })",
        "other.py is not a module that emberlet codegen wrote: it has no class that names its WEIGHTS",
        "digits.bpk: begins with 0x67402023, not with the magic 0x4255524e of a burnpack",
    ]


def test_pythons_library_is_loaded_where_a_module_imports_from_it(page: Page, folder: Path) -> None:
    assert command(["codegen", str(DIGITS), "--out", str(folder)]) == 0
    source = (folder / "digits.py").read_text(encoding="utf-8")
    (folder / "imports.py").write_text(source.replace("\n\n\n", "\n\nimport colorsys\n\n\n", 1), encoding="utf-8")
    library = folder / "emberlet-web" / "compiler" / "python_stdlib.zip"
    library.rename(library.with_suffix(".away"))
    code = """async (name) => {
      const { load } = await import("emberlet-web");
      const image = Float32Array.from({ length: 64 }, (_, i) => i / 64);
      const run = async () => [...(await (await load(name, { cache: false })).run({ image })).logits];
      return run().catch(({ message }) => message);
    }"""
    try:
        found = [page.evaluate(code, name, timeout=SECONDS) for name in ("digits.onnx", "imports.py")]
    finally:
        library.with_suffix(".away").rename(library)
    assert "could not download" in found[1] and "python_stdlib.zip" in found[1]
    found[1] = page.evaluate(code, "imports.py", timeout=SECONDS)
    (expected,) = wanted(DIGITS, {"image": RAMP.reshape(1, 1, 8, 8)})
    np.testing.assert_allclose(found, np.repeat(expected, 2, axis=0), atol=1e-4)


def feeds(batch: int, length: int) -> dict[str, np.ndarray]:
    ids = (7 * np.arange(batch * length) % 50).reshape(batch, length).astype(np.int64)
    return {"input_ids": ids, "attention_mask": np.ones_like(ids)}


WRONG = {
    'load("digits.onnx", { dims: { batch: 3 }, compiler: "/nowhere/" })': "the compiler could not start",
    'load("broken.onnx")': "broken.onnx",
    'load("digits.onnx", { dims: { lenght: 3 } })': "dims: { lenght: 3 }: no input has a dimension 'lenght'",
    'load("digits.onnx", { dims: { "0:1": [1, 8] } })': 'dims: { "0:1": [1, 8] }: no input has a dimension',
    'load("digits.onnx", { dim: { batch: 3 } })': 'load has no option "dim"; it has cache, ',
    'load("digits.onnx", null)': "load takes an object of options after the source; found: null",
    'load("")': "load takes the address of a model or its bytes; found an empty address",
    'load("weights/digits.bpk")': "digits.bpk has weights and no model: load the module or the ONNX file",
    'load("digits.wasm", { device: "webgpu" })': 'digits.wasm is a WebAssembly module: device: "webgpu" needs an ONNX',
    'load("digits.onnx", { dims: { batch: -1 } })': "dims takes a number, or [lowest, highest]",
    'load("digits.onnx", { freeze: { picture: 1 } })': "picture",
    'ort.InferenceSession.create("broken.onnx")': "broken.onnx is not an ONNX model, or it is damaged",
    'ort.InferenceSession.create("digits.wasm")': "digits.wasm is a WebAssembly module",
    'ort.InferenceSession.create("digits.onnx", { executionProviders: ["webnn"] })': "has webgpu and wasm",
    'ort.InferenceSession.create("digits.onnx", { preferredOutputLocation: "gpu-buffer" })': "preferredOutputLocation",
    "ort.Tensor.fromImage()": "an ImageBitmap or an address; found: undefined",
    "ort.Tensor.fromTexture()": "Tensor.fromTexture is not in emberlet-web/onnxruntime",
    "new ort.Tensor([true], [1]).toImageData()": "has 3 or 4 channels in four dims; found: [1]",
    "new ort.Tensor([true], [1]).toImageData({ tensorLayout: 'NCWH' })": "tensorLayout is NCHW or NHWC; found: NCWH",
    "new ort.Tensor('float32', [1, 2, 3], [1, 3, 1]).toImageData(null)": "in four dims; found: [1,3,1]",
    "ort.registerBackend()": "registerBackend is not in emberlet-web/onnxruntime",
    "new ort.Tensor('float32', [1, 2], [3])": "a tensor of the shape [3] has 3 values; found: 2",
    "new ort.Tensor('float31', [1])": "unsupported tensor type: float31",
}


def test_what_is_wrong_is_said_in_one_sentence(page: Page, folder: Path) -> None:
    assert command(["compile", str(DIGITS), "--out", str(folder / "digits.wasm"), "--overwrite"]) == 0
    assert command(["codegen", str(DIGITS), "--out", str(folder / "weights")]) == 0
    calls = ", ".join(f"() => {call}" for call in WRONG)
    found = page.evaluate(
        f"""async () => {{
          const {{ EmberletError, load }} = await import("emberlet-web");
          const ort = await import("emberlet-web/onnxruntime");
          const told = [];
          for (const call of [{calls}]) {{
            try {{
              await call();
              told.push([false, "nothing"]);
            }} catch (error) {{
              told.push([error instanceof Error && error instanceof EmberletError, error.message]);
            }}
          }}
          return told;
        }}""",
        timeout=SECONDS,
    )
    for message, (is_error, said) in zip(WRONG.values(), found, strict=True):
        assert is_error and message in said and "\n" not in said and len(said) < 400, said


def test_a_compiler_that_never_starts_is_given_up(page: Page, folder: Path) -> None:
    (folder / "silent").mkdir()
    (folder / "silent" / "worker.mjs").write_text("", encoding="utf-8")
    said = page.evaluate(
        """async () => {
      const later = globalThis.setTimeout;
      globalThis.setTimeout = (run, ms, ...more) => later(run, ms / 100, ...more); // two minutes in a second
      const { load } = await import("emberlet-web");
      const asked = load("digits.onnx", { device: "wasm", dims: { batch: 4 }, compiler: "/silent/" });
      const said = await asked.catch((error) => error.message);
      globalThis.setTimeout = later;
      const model = await load("digits.onnx", { device: "wasm", dims: { batch: 4 } });
      const { logits } = await model.run({ image: new Float32Array(256) });
      return [said, logits.length];
    }""",
        timeout=SECONDS,
    )
    assert "could not start: it gave no sign for 2 minutes" in said[0] and said[1] == 40


# https://github.com/microsoft/onnxruntime-inference-examples, js/quick-start_onnxruntime-web-bundler (MIT): another
# import and file, and fewer comments.
QUICK_START = """
import * as ort from "emberlet-web/onnxruntime";

// use an async context to call onnxruntime functions.
async function main() {
    try {
        // create a new session and load the specific model.
        const session = await ort.InferenceSession.create('./product.onnx');

        // prepare inputs. a tensor need its corresponding TypedArray as data
        const dataA = Float32Array.from([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        const dataB = Float32Array.from([10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120]);
        const tensorA = new ort.Tensor('float32', dataA, [3, 4]);
        const tensorB = new ort.Tensor('float32', dataB, [4, 3]);

        // prepare feeds. use model input names as keys.
        const feeds = { a: tensorA, b: tensorB };

        // feed inputs and run
        const results = await session.run(feeds);

        // read from results
        const dataC = results.c.data;
        document.write(`data of result tensor 'c': ${dataC}`);

    } catch (e) {
        document.write(`failed to inference ONNX model: ${e}.`);
    }
}

main();
"""


def test_onnxruntime_s_quick_start_runs_with_another_import(browser: Browser, served: Server, folder: Path) -> None:
    (folder / "quick.html").write_text(f'{PAGE}<script type="module">{QUICK_START}</script>', encoding="utf-8")
    page = browser.open(served.url + "quick.html")
    page.wait("() => /tensor|failed/.test(document.body?.innerText ?? '')", timeout=SECONDS)
    said = page.evaluate("() => document.body.innerText")
    page.close()
    a = np.arange(1, 13).reshape(3, 4)
    b = 10 * np.arange(1, 13).reshape(4, 3)
    assert said.strip() == f"data of result tensor 'c': {','.join(map(str, (a @ b).ravel()))}"


def test_an_input_without_a_shape_takes_that_of_its_tensor(page: Page, folder: Path) -> None:
    # as helpers of transformers.js have it
    text = "top (float[] x, int64[1] k) => (float[] values, int64[] places) { values, places = TopK(x, k) }"
    onnx.save(parse(text, 17), folder / "top.onnx")
    found = page.evaluate(
        """async () => {
          const { InferenceSession, Tensor } = await import("emberlet-web/onnxruntime");
          const session = await InferenceSession.create("top.onnx");
          const told = [];
          for (const [dims, k] of [[[2, 4], 2], [[8], 3]]) {
            const x = new Tensor("float32", Float32Array.of(3, 1, 4, 1.5, 5, 9, 2, 6), dims);
            const { values, places } = await session.run({ x, k: new Tensor("int64", [k], [1]) });
            told.push([values.dims, [...values.data], places.type, [...places.data].map(Number)]);
          }
          return told;
        }""",
        timeout=SECONDS,
    )
    assert found == [
        [[2, 2], [4, 3, 9, 6], "int64", [2, 0, 1, 3]],
        [[3], [9, 6, 5], "int64", [5, 7, 4]],
    ]


def test_a_session_takes_sizes_without_a_name_and_integers_that_the_model_branches_on(page: Page, folder: Path) -> None:
    text = """branch (float[1, size] x, int64 rate) => (float[] y) <int64 one = {1}> { same = Equal(rate, one)
        y = If<then_branch = a () => (z) { z = Add(x, x) }, else_branch = b () => (z) { z = Mul(x, x) }>(same) }"""
    model = parse(text, 17)
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "?"
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    onnx.save(model, folder / "branch.onnx")
    found = page.evaluate(
        """async () => {
          const { InferenceSession, Tensor } = await import("emberlet-web/onnxruntime");
          const { load } = await import("emberlet-web");
          const session = await InferenceSession.create("branch.onnx", { executionProviders: ["wasm"] });
          const x = new Tensor("float32", Float32Array.of(1, 2, 3, 4, 5, 6), [2, 3]);
          const told = [];
          for (const rate of [1, 2]) {
            const { y } = await session.run({ x, rate: new Tensor("int64", [rate], []) });
            told.push([y.dims, [...y.data]]);
          }
          const said = await load("branch.onnx").catch((error) => error.message);
          return { told, said };
        }""",
        timeout=SECONDS,
    )
    assert found["told"] == [[[2, 3], [2, 4, 6, 8, 10, 12]], [[2, 3], [1, 4, 9, 16, 25, 36]]]
    assert found["said"].endswith("depends on input 1, rate: make it a constant, freeze: { rate: VALUE }")


def test_a_model_that_branches_on_values_runs_step_by_step(page: Page, folder: Path) -> None:
    model = ROOT / "tests" / "models" / "loop_and_branch" / "model.onnx"
    (folder / "loop_and_branch.onnx").write_bytes(model.read_bytes())
    x = [np.sin(np.arange(12.0) + 5 * k).astype(np.float32).reshape(2, 6) * (1 - 2 * (k % 2)) for k in range(4)]
    found = page.evaluate(
        """async (given) => {
          const { InferenceSession, Tensor } = await import("emberlet-web/onnxruntime");
          const session = await InferenceSession.create("loop_and_branch.onnx", { executionProviders: ["wasm"] });
          const run = ([numbers, steps]) => session.run({
            x: new Tensor("float32", Float32Array.from(numbers), [2, 6]),
            steps: new Tensor("int64", [steps], []),
          });
          const told = (await Promise.all(given.map(run))).map(({ y }) => [y.dims, [...y.data]]);
          const x = new Tensor("float32", new Float32Array(12), [2, 6]);
          const wrong = await session.run({ x }).catch((error) => error.message);
          await session.release();
          return { told, wrong, released: await run(given[0]).catch((error) => error.message) };
        }""",
        [[one.ravel().tolist(), k] for k, one in enumerate(x)],
        timeout=SECONDS,
    )
    for k, (one, (dims, values)) in enumerate(zip(x, found["told"], strict=True)):
        (y,) = wanted(model, {"x": one, "steps": np.array(k)})
        assert tuple(dims) == y.shape
        np.testing.assert_allclose(np.reshape(values, dims), y, atol=1e-5)
    assert "'steps' is missing" in found["wrong"] and "released" in found["released"]


TOKENS = [[7, 3, 9], [30], [4], [11], [2], [8, 5]]


@pytest.mark.parametrize("device", ["webgpu", "wasm"])
def test_a_decoder_begins_with_an_empty_cache_and_then_leaves_the_length_of_its_past_open(
    page: Page, folder: Path, device: str
) -> None:
    llama = next(case.model for case in cases(contrib=False) if case.name == "llama")
    (folder / "llama.onnx").write_bytes(llama.read_bytes())
    found = page.evaluate(
        """async ([device, tokens]) => {
          const { InferenceSession, Tensor } = await import("emberlet-web/onnxruntime");
          const { load } = await import("emberlet-web");
          const session = await InferenceSession.create("llama.onnx", { executionProviders: [device] });
          const model = await load("llama.onnx", { device, dims: { batch: 1, past: [0, 16], new: [1, 4] } });
          const cache = session.inputNames.slice(1);
          let past = Object.fromEntries(cache.map((name) => [name, new Tensor("float32", [], [1, 4, 0, 4])]));
          const told = [];
          for (const step of tokens) {
            const given = { tokens: new Tensor("int64", step, [1, step.length]), ...past };
            const found = await session.run(given);
            const shaped = ({ data, dims }) => Object.assign(data.slice(), { shape: dims });
            const arrays = Object.entries(given).map(([name, one]) => [name, shaped(one)]);
            const other = await model.run(Object.fromEntries(arrays));
            const both = (name) => [found[name].dims, [...found[name].data], other[name].shape, [...other[name]]];
            told.push(session.outputNames.map(both));
            past = Object.fromEntries(cache.map((name) => [name, found[`${name}_out`]]));
          }
          const kept = await (await caches.open("emberlet-plans")).keys();
          return [told, kept.filter(({ url }) => url.includes("/compiled/")).length];
        }""",
        [device, TOKENS],
        timeout=3 * SECONDS,
    )
    results, kept = found
    assert kept == 5  # the model; of the session: two for their sizes, one for each past and one token, one for any
    past = {name: np.zeros((1, 4, 0, 4), np.float32) for name in ("key0", "value0", "key1", "value1")}
    for tokens, outputs in zip(TOKENS, results, strict=True):
        due = wanted(llama, {"tokens": np.array([tokens]), **past})
        for (dims, values, shape, others), expected in zip(outputs, due, strict=True):
            assert tuple(dims) == tuple(shape) == expected.shape
            for got in (values, others):
                np.testing.assert_allclose(np.reshape(got, dims), expected, atol=1e-4, rtol=1e-4)
        past = dict(zip(past, due[1:], strict=True))


def test_a_gpu_that_is_lost_leaves_a_session_to_webassembly_and_refuses_no_range(
    browser: Browser, served: Server, folder: Path, hardware: str
) -> None:
    page = browser.open(served.url + "empty.html", before=hardware)
    found = page.evaluate(
        """async () => {
          const { InferenceSession, Tensor } = await import("emberlet-web/onnxruntime");
          const told = [];
          console.warn = (text) => told.push(text);
          const run = async (session, length) => {
            const ids = BigInt64Array.from({ length }, (_, i) => BigInt(7 * i % 50));
            const input_ids = new Tensor("int64", ids, [1, length]);
            const attention_mask = new Tensor("int64", ids.map(() => 1n), [1, length]);
            return [...(await session.run({ input_ids, attention_mask })).logits.data];
          };
          const lose = async () => {
            for (const device of devices) device.destroy();
            await Promise.all(devices.map((device) => device.lost));
          };
          const compiled = async () => (await (await caches.open("emberlet-plans")).keys())
            .filter(({ url }) => /[.](plan|wasm)$/.test(url)).map(({ url }) => url.split("/").slice(-1)[0]);
          const session = await InferenceSession.create("text.onnx", { executionProviders: ["webgpu", "wasm"] });
          const results = [];
          for (const length of [3, 4, 5]) results.push([length, await run(session, length)]); // the last by a range
          await lose();
          const before = told.length;
          results.push([6, await run(session, 6)]);
          const files = await compiled();
          results.push([7, await run(session, 7)]);
          return { results, before, told, files, after: await compiled() };
        }""",
        timeout=3 * SECONDS,
    )
    page.close()
    for length, logits in found["results"]:
        np.testing.assert_allclose([logits], wanted(folder / "text.onnx", feeds(1, length))[0], atol=1e-4)
    assert found["before"] == 0 and found["told"]  # each length's model tells it, if it is being measured just then
    assert all("WebAssembly runs the model" in text and "lost" in text for text in found["told"])
    assert found["after"] == found["files"], "the other lengths were compiled for themselves"


def test_the_compiler_starts_when_onnxruntime_s_api_is_imported(page: Page) -> None:
    found = page.evaluate("""async () => {
      let workers = 0;
      globalThis.Worker = class { // starts nothing
        constructor() { workers += 1; }
        postMessage() {}
        terminate() {}
      };
      for (const name of await caches.keys()) await caches.delete(name); // else nothing is to be compiled
      const { InferenceSession } = await import("emberlet-web/onnxruntime");
      for (let i = 0; i < 100 && !workers; i++) await new Promise((done) => setTimeout(done, 20));
      return [workers, typeof InferenceSession.create];
    }""")
    assert found == [1, "function"]


def test_a_scalar_input_takes_one_value_of_any_shape(page: Page, folder: Path) -> None:
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[2] x, float k) => (float[2] y) { y = Mul(x, k) }'
    (folder / "scalar.onnx").write_bytes(onnx.parser.parse_model(text).SerializeToString())
    found = page.evaluate(
        """async () => {
          const { InferenceSession, Tensor } = await import("emberlet-web/onnxruntime");
          // An override that no input has is ignored, with a warning, as in onnxruntime.
          const options = { executionProviders: [], freeDimensionOverrides: { nowhere: 3 } };
          const session = await InferenceSession.create("scalar.onnx", options);
          const found = [];
          for (const dims of [[], [1], [1, 1]]) {
            const k = new Tensor("float32", [3], dims);
            const { y } = await session.run({ x: new Tensor("float32", [1, 2], [2]), k });
            found.push([...y.data]);
          }
          await session.release();
          return found;
        }""",
        timeout=SECONDS,
    )
    assert found == [[3.0, 6.0]] * 3


def test_a_session_answers_as_onnxruntime_s_does(page: Page, folder: Path) -> None:
    found = page.evaluate(
        """async () => {
          const { default: ort, InferenceSession, Tensor, env } = await import("emberlet-web/onnxruntime");
          // Where it is no string, transformers.js asks a server of others.
          const own = new URL(env.wasm.wasmPaths).origin === location.origin;
          env.wasm.numThreads = 1;
          env.wasm.wasmPaths = "/elsewhere/";
          const bytes = await (await fetch("text.onnx")).arrayBuffer();
          const options = { executionProviders: ["wasm"], graphOptimizationLevel: "all" };
          const session = await InferenceSession.create(bytes, options);
          const feeds = (batch, length) => {
            const ids = BigInt64Array.from({ length: batch * length }, (_, i) => BigInt(7 * i % 50));
            return {
              input_ids: new Tensor("int64", ids, [batch, length]),
              attention_mask: new Tensor(ids.map(() => 1n), [batch, length]),
            };
          };
          const results = [];
          for (const [batch, length] of [[1, 3], [2, 5], [1, 3]]) {
            const { logits } = await session.run(feeds(batch, length), ["logits"]);
            results.push([logits.type, logits.dims, [...await logits.getData()], logits.size]);
          }
          const place = new Tensor("float32", new Float32Array(2), [1, 2]);
          const filled = (await session.run(feeds(1, 3), { logits: place })).logits === place;
          const told = async (job) => job().then(() => "nothing", (error) => error.message);
          const wrong = [
            await told(() => session.run({ ids: place })),
            await told(() => session.run({ input_ids: place })),
            await told(() => session.run(feeds(1, 3), ["scores"])),
            await told(() => session.run({ ...feeds(1, 3), attention_mask: feeds(1, 4).attention_mask })),
            await told(async () => session.startProfiling()),
          ];
          const turned = place.reshape([2, 1]).dims;
          const versions = [ort.Tensor === Tensor, own, env.versions.web];
          place.dispose();
          wrong.push(await told(async () => place.data));
          await session.release();
          wrong.push(await told(() => session.run(feeds(1, 3))));
          const { inputNames, outputNames, inputMetadata } = session;
          const names = { inputNames, outputNames, first: inputMetadata[0] };
          return { results, filled, wrong, turned, versions, place: place.location, ...names };
        }""",
        timeout=SECONDS,
    )
    for (batch, length), (dtype, dims, values, size) in zip([(1, 3), (2, 5), (1, 3)], found["results"], strict=True):
        assert (dtype, dims, size) == ("float32", [batch, 2], 2 * batch)
        (logits,) = wanted(folder / "text.onnx", feeds(batch, length))
        np.testing.assert_allclose(np.reshape(values, dims), logits, atol=1e-4)
    assert found["filled"] and found["turned"] == [2, 1] and found["place"] == "none"
    assert found["versions"] == [True, True, "1.30.0"]
    assert (found["inputNames"], found["outputNames"]) == (["input_ids", "attention_mask"], ["logits"])
    shape = ["batch_size", "sequence_length"]
    assert found["first"] == {"name": "input_ids", "isTensor": True, "type": "int64", "shape": shape}
    for said, part in zip(
        found["wrong"],
        [
            "invalid feed name: ids",
            "takes int64",
            "scores",
            "sequence_length is 3",
            "startProfiling",
            "disposed",
            "released",
        ],
        strict=True,
    ):
        assert part in said, said
