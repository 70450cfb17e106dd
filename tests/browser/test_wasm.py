"""WebAssembly in a tab: the backend under Pyodide, and a compiled model in JavaScript under a strict policy."""

from __future__ import annotations

import base64
import shutil
from pathlib import Path

import emberlet
import numpy as np
import pytest
from emberlet import codegen
from emberlet.wgpu_backend import plan_file
from serve import PAGE_POLICY, start_server

from tools.chromium import Browser, Page
from tools.paths import ROOT, WEB

MODEL = str(ROOT / "examples" / "digits" / "digits.onnx")

IN_PYODIDE = """
import binascii
from array import array

import emberlet
from emberlet import functional as F
from emberlet.wgpu_backend import plan_file
from emberlet.wgpu_backend.compiled import compile

image = array("f", {image!r})


def near(found, wanted):
    assert len(found) == len(wanted), found
    assert max(abs(a - b) for a, b in zip(found, wanted)) < 1e-4, found


def test():
    plan = plan_file.load(binascii.a2b_base64({content!r}))
    for _ in range(2):
        (logits,) = plan.run(bytes(image))
        near(logits.to_list()[0], {expected!r})
    x = emberlet.asarray([[1.0, 2.0], [3.0, 4.0]], backend="wasm")
    assert (x @ x + 1.0).tolist() == [[8.0, 11.0], [16.0, 23.0]]
    assert F.softmax(x, axis=-1).sum().item() == 2.0

    def layer(a):
        return F.relu(a @ a - 12.0)

    fast = compile(layer, x, backend="wasm")
    for _ in range(2):
        assert fast(x).tolist() == [[0.0, 0.0], [3.0, 10.0]]
"""


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("wasm") / "digits.wasm"
    example = emberlet.zeros((1, 1, 8, 8), dtype="float32", backend="numpy")
    model = codegen.load(MODEL, backend="numpy")
    plan_file.save(str(path), model, example, inputs=["image"], outputs=["logits"])
    return path


def image() -> list[float]:
    return [((7 * i) % 13) / 13 for i in range(64)]


def expected() -> list[float]:
    x = np.array(image(), np.float32).reshape(1, 1, 8, 8)
    return [float(v) for v in np.asarray(codegen.load(MODEL, backend="numpy")(x))[0]]


def test_backend_and_compiled_models_in_pyodide(pyodide_page: Page, digits: Path) -> None:
    content = base64.b64encode(digits.read_bytes()).decode()
    source = IN_PYODIDE.format(image=image(), content=content, expected=expected())
    code = "([source, file, line, name]) => runPython(source, file, line, name)"
    assert not pyodide_page.evaluate(code, [source, "<wasm>", 1, "test"])


@pytest.fixture(scope="module")
def page(browser: Browser, digits: Path, tmp_path_factory: pytest.TempPathFactory) -> Page:
    """A page with the runtime for JavaScript, under the policy of emberlet's own page."""
    site = tmp_path_factory.mktemp("site")
    for name in ("wasm.mjs", "errors.mjs", "kinds.mjs"):
        shutil.copy(WEB / "package" / name, site / name)
    shutil.copy(digits, site / "digits.wasm")
    (site / "part.wasm").write_bytes(digits.read_bytes()[:20000])
    (site / "page.wasm").write_text("<!doctype html><p>not found", encoding="utf-8")
    (site / "start.mjs").write_text(
        'import { load } from "./wasm.mjs"; globalThis.emberlet = { load };\n', encoding="utf-8"
    )
    head = '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">'
    html = head + '<script type="module" src="start.mjs"></script>'
    (site / "index.html").write_text(html, encoding="utf-8")
    server = start_server(site, policy=PAGE_POLICY)
    opened = browser.open(server.url)
    opened.wait("() => globalThis.emberlet")
    return opened


def test_compiled_model_in_javascript_under_a_strict_policy(page: Page) -> None:
    found = page.evaluate(
        """async (image) => {
          const model = await emberlet.load("digits.wasm");
          const runs = [];
          for (let i = 0; i < 1000; i++) runs.push(await model.run({ image: new Float32Array(image) }));
          return [model.device, [...runs[0].logits], [...runs[999].logits]];
        }""",
        image(),
    )
    assert found[0] == "wasm"
    for logits in found[1:]:
        np.testing.assert_allclose(logits, expected(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("part.wasm", "part.wasm is not a compiled model, or it is damaged"),
        ("page.wasm", "page.wasm is a web page, not a model; is the path right?"),
        ("absent.wasm", "absent.wasm could not be downloaded: the server says 404"),
    ],
)
def test_what_is_no_model_is_refused_in_one_sentence(page: Page, source: str, message: str) -> None:
    assert page.evaluate("(x) => emberlet.load(x).then(() => '', (error) => error.message)", source) == message


def test_an_aborted_download_says_so(page: Page) -> None:
    said = page.evaluate(
        """() => {
          const stop = new AbortController();
          const loading = emberlet.load("digits.wasm", { signal: stop.signal });
          stop.abort();
          return loading.then(() => "", (error) => error.message);
        }"""
    )
    assert said == "the download of digits.wasm was aborted"


def test_without_simd_the_browser_is_told(page: Page) -> None:
    said = page.evaluate(
        """async () => {
          const { validate } = WebAssembly;
          WebAssembly.validate = () => false;
          try {
            return await emberlet.load("digits.wasm").then(() => "", (error) => error.message);
          } finally {
            WebAssembly.validate = validate;
          }
        }"""
    )
    assert said == "this browser's WebAssembly has no SIMD, which compiled models need"
