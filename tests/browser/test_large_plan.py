"""150 MB of weights in a tab: read one tensor at a time, and larger than one binding of WebGPU's baseline."""

from __future__ import annotations

from pathlib import Path

import build_site
import numpy as np
import pytest
from emberlet import dtypes
from emberlet import functional as F
from emberlet.backend import get_backend
from emberlet.wgpu_backend import plan_file
from serve import Server

from tools.chromium import Browser, Page

ROWS, WIDTHS = 140_000, (250, 10, 5)  # the first table, of 140 MB, is larger than a binding may be
AT = [0, 7, 33_333, 139_999]  # the last one lies in the second binding


def row(table: int, at: int) -> np.ndarray:
    """A row of a table, of small numbers, so that a file is written quickly."""
    return ((np.arange(WIDTHS[table]) + at) % 251 + table).astype(np.float32)


@pytest.fixture(scope="module")
def large(files: Path) -> Path:
    """A plan that looks up rows in three tables of weights."""
    k = get_backend("numpy")
    tables = []
    for number, width in enumerate(WIDTHS):
        values = (np.arange(width, dtype=np.int32)[None] + np.arange(ROWS, dtype=np.int32)[:, None]) % 251 + number
        tables.append(k.from_bytes(values.astype(np.float32).tobytes(), dtypes.float32, values.shape))

    def lookup(at):
        return F.concat([F.take(t if at.backend is k else t.to_device(at.backend), at, axis=0) for t in tables], axis=1)

    path = files / "large.plan"
    plan_file.save(str(path), lookup, k.from_list(AT, dtypes.int32, (len(AT),)))
    assert path.stat().st_size > 1 << 27
    return path


def check(found: list[float]) -> None:
    """The rows AT of the tables, side by side."""
    got = np.array(found, np.float32).reshape(len(AT), sum(WIDTHS))
    for i, at in enumerate(AT):
        np.testing.assert_array_equal(got[i], np.concatenate([row(table, at) for table in range(len(WIDTHS))]))


def test_under_micropython(browser: Browser, runtimes: Server, large: Path, tmp_path: Path) -> None:
    page = browser.open(runtimes.url + "support/micropython.html")
    build_site.build_modules(large.parent)
    code = """async (at) => {
      const { load } = await import("/files/emberlet.mjs");
      const model = await load("/files/large.plan");
      const { output0 } = await model.run({ at: Int32Array.from(at) });
      await model.release();
      return [...output0];
    }"""
    found = page.evaluate(code, AT)
    page.close()
    check(found)


def test_under_pyodide(pyodide_page: Page, large: Path) -> None:
    source = f"""
def test():
    import js
    import pyodide_js
    from array import array
    from pyodide.ffi import run_sync
    from emberlet.wgpu_backend import plan_file

    content = run_sync(run_sync(js.fetch("/files/large.plan")).arrayBuffer())
    pyodide_js.FS.writeFile("/large.plan", js.Uint8Array.new(content), js.JSON.parse('{{"canOwn": true}}'))
    plan = plan_file.load("/large.plan")
    pyodide_js.FS.unlink("/large.plan")
    (out,) = plan.run(bytes(array("i", {AT!r})))
    js.globalThis.found = js.Float32Array.new(js.Uint8Array.new(out.bytes).buffer)
    plan.release()
"""
    code = "([source, file, line, name]) => runPython(source, file, line, name)"
    told = pyodide_page.evaluate(code, [source, "<large>", 1, "test"])
    assert not told, told
    check(pyodide_page.evaluate("() => { const all = [...found]; delete globalThis.found; return all; }"))
