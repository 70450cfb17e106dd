"""What onnxruntime's examples of its API in JavaScript call (github.com/microsoft/onnxruntime-inference-examples, the
folders js/api-usage_*): tensors are those of onnxruntime-common in the same tab, sessions give the same product."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from serve import start_server

from tools.chromium import Browser, Page

PAGE = '<!doctype html><link rel="icon" href="data:," />'
PRODUCT = (
    '<ir_version: 8, opset_import: ["": 17]> g (float[3, 4] a, float[4, 3] b) => (float[3, 3] c) { c = MatMul(a, b) }'
)
MILLISECONDS = 240_000
TENSORS = [
    "new Tensor('float32', new Float32Array(24).fill(0.5), [2, 3, 4])",
    "new Tensor(new Float32Array(24), [2, 3, 4])",
    "new Tensor('bool', Uint8Array.of(1, 0), [1, 2])",
    "new Tensor(new Float64Array(1), [])",
    "new Tensor(new Float32Array(100), [100])",
    "new Tensor(new Float32Array(100))",
    "new Tensor('string', ['a', 'b'], [1, 2])",
    "new Tensor(['a', 'b'], [1, 2])",
    "new Tensor('bool', [true], [])",
    "new Tensor('int32', [1, 2, 3, 4, 5, 6], [2, 3])",
    "new Tensor('float64', new Float32Array(100))",
    "new Tensor(new Float32Array(100), [1, 2, -1])",
    "new Tensor(new Float32Array(0), [])",
    "new Tensor(new Float32Array(40), [5, 6])",
]
MADE = ["'product.onnx'", "'product.onnx', options", "bytes", "bytes, options", "bytes.buffer, 0, bytes.length"]
RUNS = [
    "",
    ", {}",
    ", ['c']",
    ", ['c'], {}",
    ", { c: null }",
    ", { c: null }, {}",
    ", { c: place }",
    ", { c: place }, {}",
]


@pytest.fixture(scope="module")
def page(
    browser: Browser, packed: Path, onnxruntime_common: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(packed.with_name("built"), folder / "emberlet-web")
    (folder / "index.html").write_text(PAGE, encoding="utf-8")
    onnx.save(onnx.parser.parse_model(PRODUCT), folder / "product.onnx")
    server = start_server(folder, mounts={"/ort/": onnxruntime_common})
    page = browser.open(server.url)
    yield page
    page.close()
    server.shutdown()


def test_tensors_are_made_and_refused_as_by_onnxruntime(page: Page) -> None:
    calls = ", ".join(f"(Tensor) => {text}" for text in TENSORS)
    ours, theirs = page.evaluate(
        f"""async () => {{
          const found = [];
          for (const path of ["/emberlet-web/onnxruntime.mjs", "/ort/index.js"]) {{
            const {{ Tensor }} = await import(path);
            found.push([{calls}].map((make) => {{
              try {{
                const {{ type, dims, size, data }} = make(Tensor);
                return [type, [...dims], size, [...data], data.constructor.name];
              }} catch {{
                return "refused";
              }}
            }}));
          }}
          return found;
        }}"""
    )
    for text, found, wanted in zip(TENSORS, ours, theirs, strict=True):
        assert found == wanted, text
    assert theirs.count("refused") == 4


def test_sessions_are_made_and_run_in_every_form(page: Page) -> None:
    runs = ", ".join(f"(session, feeds, place) => session.run(feeds{more})" for more in RUNS)
    made = ", ".join(f"(bytes, options) => InferenceSession.create({given})" for given in MADE)
    found = page.evaluate(
        f"""async ([a, b]) => {{
          const {{ InferenceSession, Tensor }} = await import("/emberlet-web/onnxruntime.mjs");
          const bytes = new Uint8Array(await (await fetch("product.onnx")).arrayBuffer());
          const feeds = {{ a: new Tensor("float32", a, [3, 4]), b: new Tensor("float32", b, [4, 3]) }};
          const found = [];
          for (const make of [{made}]) {{
            const session = await make(bytes, {{ executionProviders: ["wasm"], intraOpNumThreads: 1 }});
            const names = [...session.inputNames, ...session.outputNames].join(" ");
            for (const run of found.length ? [(session, feeds) => session.run(feeds)] : [{runs}]) {{
              const place = new Tensor(new Float32Array(9), [3, 3]);
              const {{ c }} = await run(session, feeds, place);
              found.push([names, c.dims, [...c.data]]);
            }}
            await session.release();
          }}
          return found;
        }}""",
        argument=[list(range(1, 13)), list(range(10, 130, 10))],
        timeout=MILLISECONDS,
    )
    product = np.arange(1.0, 13).reshape(3, 4) @ np.arange(10.0, 130, 10).reshape(4, 3)
    assert found == [["a b c", [3, 3], product.ravel().tolist()]] * (len(RUNS) + len(MADE) - 1), json.dumps(found[:1])
