"""ONNX files of published packages and the test models, each from its file to the answer in a fresh tab of Chromium.

A tab begins with an empty cache and compiles the file itself. *WebAssembly* and *WebGPU* (under MicroPython) are
`emberlet-web/onnxruntime`; *page, MicroPython* and *page, Pyodide* are the page "Your model", which generates Python
from the file and runs it in that interpreter, in WebAssembly. The answers to two sets of inputs are compared with
onnxruntime's.

    python -m tests.conformance.in_a_tab [PATTERN] [--way WAY]     what differs, and the figures
    python -m tests.conformance.in_a_tab --write                   puts the rows into benches/results/tab.md
    python -m tests.conformance.in_a_tab --write --skip same       without rows that are right there, of the same site
    python -m tests.conformance.in_a_tab --write --skip right      without any row that is right there
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from tools import model_packages
from tools.chromium import Browser, BrowserError
from tools.paths import ROOT, WEB

PAGE = ROOT / "benches" / "results" / "tab.md"
WAYS = ("WebAssembly", "WebGPU", "page, MicroPython", "page, Pyodide")
TIMEOUT = 100000  # ms, of which the driver gives four times as many
SHOWN = 200  # values of a result that the page shows
ALLOWED, ALLOWED_DYNAMIC = 1e-3, 0.05  # of a result's largest element
HEAD = ("file", "bytes", "way", "first answer, s", "a later run, ms", "difference", "memory, MB", "site")
Arrays = dict[str, np.ndarray[Any, Any]]

IN_PACKAGE = """async ({ file, provider, feeds, wanted }) => {
  const { InferenceSession, Tensor } = await import("/emberlet-web/onnxruntime.mjs");
  const { arrayOf } = await import("/emberlet-web/arrays.mjs");
  const ofOnnx = { int64: BigInt64Array, uint64: BigUint64Array };
  const bytes = async (url) => (await fetch(url)).arrayBuffer();
  const read = async ({ url, dtype, shape }) =>
    new Tensor(dtype, new (ofOnnx[dtype] ?? arrayOf(dtype))(await bytes(url)), shape);
  const given = [];
  for (const one of feeds) {
    const ports = Object.entries(one).map(async ([name, port]) => [name, await read(port)]);
    given.push(Object.fromEntries(await Promise.all(ports)));
  }
  const begin = performance.now();
  const session = await InferenceSession.create(file, { executionProviders: [provider] });
  let difference = 0;
  const times = [];
  for (const [i, one] of given.entries()) {
    const start = performance.now();
    const found = await session.run(one);
    times.push(performance.now() - (i ? start : begin));
    for (const [name, port] of Object.entries(wanted[i])) {
      const { dims } = found[name];
      if (String(dims) !== String(port.shape)) throw new Error(`${name} is ${dims}, not ${port.shape}`);
      const want = Float64Array.from(new Float32Array(await bytes(port.url)));
      let [most, largest] = [0, 1e-30];
      for (let k = 0; k < want.length; k++) {
        const apart = Math.abs(Number(found[name].data[k]) - want[k]);
        if (!(apart <= most)) most = apart;
        largest = Math.max(largest, Math.abs(want[k]));
      }
      if (!(most / largest <= difference)) difference = most / largest;
    }
  }
  const { bytes: memory } = await performance.measureUserAgentSpecificMemory();
  await session.release();
  return { times, difference, memory };
}"""

IN_PAGE = """async ({ file, name, runtime, feeds }) => {
  const { Client } = await import("/client.mjs");
  const { arrayOf } = await import("/emberlet/arrays.mjs");
  const values = async (one) => Promise.all(Object.values(one).map(async ({ url, dtype }) =>
    new (arrayOf(dtype))(await (await fetch(url)).arrayBuffer())));
  const given = [];
  for (const one of feeds) given.push([await values(one), Object.values(one).map(({ shape }) => shape)]);
  const bytes = new Uint8Array(await (await fetch(file)).arrayBuffer());
  const begin = performance.now();
  let client = new Client("model_worker.mjs");
  const made = await client.call("generate", { name, bytes, data: [] });
  if (runtime !== "pyodide") {
    client.end();
    client = new Client("model_worker.mjs");
  }
  const { inputs } = await client.call("loadModule", { ...made, runtime, device: "wasm" });
  const order = inputs.map((port) => Object.keys(feeds[0]).indexOf(port.name));
  const times = [];
  const outputs = [];
  for (const [i, [arrays, shapes]] of given.entries()) {
    const start = performance.now();
    const job = { values: order.map((k) => arrays[k]), shapes: order.map((k) => shapes[k]), again: 0 };
    outputs.push((await client.call("run", job)).outputs);
    times.push(performance.now() - (i ? start : begin));
  }
  const { bytes: memory } = await performance.measureUserAgentSpecificMemory();
  client.end();
  return { times, outputs, memory };
}"""


class Work(NamedTuple):
    """A file, two sets of inputs by name and onnxruntime's outputs by name; the difference that is allowed."""

    name: str
    file: Path
    given: list[Arrays]
    wanted: list[Arrays]
    allowed: float


class Row(NamedTuple):
    work: Work
    way: str
    first: float = 0.0  # seconds
    later: float = 0.0  # ms
    difference: float = 0.0
    memory: float = 0.0  # MB
    failure: str = ""
    site: str = ""

    @property
    def right(self) -> bool:
        return not self.failure and self.difference <= self.work.allowed

    def line(self) -> str:
        size = f"{self.work.file.stat().st_size:,}"
        found = [f"{self.first:.1f}", f"{self.later:.0f}", f"{self.difference:.1e}", f"{self.memory:.0f}"]
        said = self.failure or ("" if self.right else f"not right: {self.difference:.1e}")
        cells = [self.work.name, size, self.way, *([said, "", "", ""] if said else found), self.site]
        return f"| {' | '.join(cells)} |"


def published() -> Iterator[tuple[str, Callable[[], Work]]]:
    import onnxruntime
    from support.published_models import DYNAMIC, MODELS, expected

    def work(name: str) -> Work:
        file = model_packages.FOLDER / f"{name}.onnx"
        outputs = [one.name for one in onnxruntime.InferenceSession(file).get_outputs()]
        found = expected(name)
        wanted = [dict(zip(outputs, results, strict=True)) for _, results in found]
        return Work(name, file, [given for given, _ in found], wanted, ALLOWED_DYNAMIC if name in DYNAMIC else ALLOWED)

    for name in MODELS:
        yield name, partial(work, name)


def of_the_tests() -> Iterator[tuple[str, Callable[[], Work]]]:
    from models.index import Case, cases

    def work(case: Case) -> Work:
        given, wanted = case.inputs(), case.outputs()
        of_8_bits = [x for x in wanted.values() if x.dtype.itemsize == 1 and x.dtype.kind in "ui"]
        level = max((1 / np.abs(x.astype(int)).max() for x in of_8_bits if case.literal), default=0.0)  # ties
        return Work(case.name, case.model, [given, given], [wanted, wanted], max(ALLOWED, case.rtol, level))

    first: dict[str, Case] = {}
    for case in cases():  # one whose inputs have elements, where there is one: a compiled model has no size of 0
        if case.name not in first or not all(x.size for x in first[case.name].inputs().values()):
            first[case.name] = case
    for name, case in first.items():
        yield name, partial(work, case)


def answered(browser: Browser, url: str, folder: Path, work: Work, way: str) -> Row:
    """One file in a tab of its own."""
    shutil.copy(work.file, folder / "model.onnx")
    numbers = iter(range(10000))

    def port(array: Any, kind: Any = None) -> dict[str, Any]:
        path = folder / f"{next(numbers)}.bin"
        path.write_bytes(np.ascontiguousarray(array, kind).tobytes())
        return {"url": f"/work/{path.name}", "dtype": str(array.dtype), "shape": list(array.shape)}

    feeds = [{name: port(array) for name, array in one.items()} for one in work.given]
    asked: dict[str, Any] = {"file": "/work/model.onnx", "feeds": feeds, "name": work.file.name}
    page = browser.open(url + ("model.html" if way.startswith("page") else "empty.html"))
    try:
        if way.startswith("page"):
            asked["runtime"] = way.split()[-1].lower()
            told = page.evaluate(IN_PAGE, asked, timeout=TIMEOUT)
            told["difference"] = max(
                map(shown_difference, told["outputs"], (list(one.values()) for one in work.wanted))
            )
        else:
            wanted = [{name: port(array, np.float32) for name, array in one.items()} for one in work.wanted]
            asked |= {"wanted": wanted, "provider": "webgpu" if way == "WebGPU" else "wasm"}
            told = page.evaluate(IN_PACKAGE, asked, timeout=TIMEOUT)
    except BrowserError as error:
        said = next((line for line in str(error).splitlines() if line.strip()), "")
        return Row(work, way, failure=said.removeprefix("page.evaluate: ").replace("|", "\\|")[:200])
    finally:
        page.close()
    first, later = told["times"]
    difference = told["difference"] if told["difference"] is not None else np.inf
    return Row(work, way, first / 1e3, later, difference, told["memory"] / 1e6)


def shown_difference(outputs: list[dict[str, Any]], wanted: list[np.ndarray[Any, Any]]) -> float:
    """By what the page shows of each result: its first values, the least, the largest and the mean."""
    most = 0.0
    for found, array in zip(outputs, wanted, strict=True):
        assert found["shape"] == list(array.shape)
        want = array.astype(np.float64).ravel()
        scale = max(np.abs(want).max(initial=0.0), 1e-30)
        facts = [*want[:SHOWN], want.min(), want.max(), want.mean()] if want.size else []
        got = [*found["first"], found["low"], found["high"], found["mean"]] if want.size else []
        most = max([most, *(abs(a - b) / scale for a, b in zip(got, facts, strict=True))])
    return float(most)


def recorded() -> dict[tuple[str, str], str]:
    """The rows of the page by file and way."""
    rows = {}
    if PAGE.exists():
        for line in PAGE.read_text(encoding="utf-8").splitlines():
            cells = cells_of(line)
            if len(cells) == len(HEAD) and cells[2] in WAYS:
                rows[cells[0], cells[2]] = line
    return rows


def cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def is_right(line: str) -> bool:
    return bool(cells_of(line)[5])


def state_of(site: Path) -> str:
    """The first digits of a hash of all that the tabs load, besides the model."""
    digest = hashlib.sha256()
    for path in sorted(site.rglob("*")):
        if path.is_file():
            digest.update(f"{path.relative_to(site)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:7]


def written(rows: list[Row], version: str, names: Iterable[str]) -> str:
    """The page with these rows in the place of older ones of the same file and way. names: all files there are."""
    kept = recorded() | {(row.work.name, row.way): row.line() for row in rows}
    order = sorted(kept, key=lambda key: (not of_package(key[0]), "/" in key[0], key[0], WAYS.index(key[1])))
    wanted = dict.fromkeys([*order, *((name, way) for name in names for way in WAYS)])
    totals = []
    for title, ways in [("all", WAYS), *((way, (way,)) for way in WAYS)]:
        counts = []
        for which in (True, False):
            asked = [key for key in wanted if key[1] in ways and of_package(key[0]) == which]
            found = [is_right(kept[key]) for key in asked if key in kept]
            counts.append(f"{sum(found)} of {len(found)}; {len(asked) - len(found)} not tried")
        totals.append(f"| {title} | {' | '.join(counts)} |")
    return "\n".join(
        [
            "# ONNX files in a fresh tab",
            "",
            f"`python -m tests.conformance.in_a_tab --write`, headless Chromium {version} with SwiftShader (WebGPU in",
            "software). Each row is a tab of its own with an empty cache, from the file to the answer: the compiler is",
            "loaded and compiles it there. *WebAssembly* and *WebGPU*, which is under MicroPython, are",
            "`emberlet-web/onnxruntime`; *page, MicroPython* and *page, Pyodide* are the page of models, in",
            "WebAssembly. *difference* is the largest from onnxruntime's answers to two sets of inputs, of each",
            "result's largest element; of the page, in what it shows. *memory*: what the tab holds after the answers,",
            "workers and the compiler included. *site*: a hash of all that the tabs load besides the model: rows of",
            "other states of this repository have another, and `--write --skip same` runs them again. Seconds are of a",
            "busy machine. *Not tried*: rows that are missing here, of all files and ways.",
            "",
            "| right | files of packages | models of the tests |",
            "|---|---:|---:|",
            *totals,
            "",
            f"| {' | '.join(HEAD)} |",
            "|---|---:|---|---:|---:|---:|---:|---|",
            *(kept[key] for key in order),
        ]
    )


def of_package(name: str) -> bool:
    return "/" in name and not name.startswith("contrib/")


def ended(browser: Browser | None) -> None:
    if browser is not None:
        with suppress(OSError):  # it may have ended by itself, and on Ctrl-C it has
            browser.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="", help="a regular expression of names; default: all")
    parser.add_argument("--only", choices=("published", "tests"), help="files of packages, or the test models")
    parser.add_argument("--way", action="append", choices=WAYS)
    parser.add_argument("--write", action="store_true")
    parser.add_argument(
        "--skip", choices=("same", "right"), help="rows that are right on the page (same: of this site)"
    )
    options = parser.parse_args()
    sys.path.append(str(WEB))
    import build_package
    import build_page
    from serve import start_server

    rows: list[Row] = []
    with TemporaryDirectory() as temporary:
        site, folder = Path(temporary, "site"), Path(temporary, "work")
        folder.mkdir()
        build_page.build(site)
        build_package.build_package(site / "emberlet-web")
        (site / "empty.html").write_text('<!doctype html><link rel="icon" href="data:," />', encoding="utf-8")
        state = state_of(site)
        server = start_server(site, mounts={"/work/": folder})
        skipped = {
            key
            for key, line in recorded().items()
            if options.skip and is_right(line) and (options.skip == "right" or cells_of(line)[-1] == state)
        }
        found = {"published": published, "tests": of_the_tests}
        works = [(kind, name, make) for kind, of_kind in found.items() for name, make in of_kind()]
        browser = None
        try:
            for kind, name, make in works:
                ways = [way for way in options.way or WAYS if (name, way) not in skipped]
                if not ways or options.only not in (None, kind) or not re.search(options.pattern, name):
                    continue
                work = make()
                for way in ways:
                    if browser is None or rows[-1].failure:  # the tab before may have taken the GPU's process with it
                        ended(browser)
                        browser = Browser()
                    begin = time.monotonic()
                    rows.append(answered(browser, server.url, folder, work, way)._replace(site=state))
                    took = f"({time.monotonic() - begin:.0f} s)"
                    print(rows[-1].line(), "" if rows[-1].right else "WRONG", took, flush=True)
                    if options.write:
                        page = written(rows, browser.version, (name for _, name, _ in works))
                        PAGE.write_text(page + "\n", encoding="utf-8")
        finally:
            ended(browser)
            server.shutdown()
    wrong = [row for row in rows if not row.right]
    print(f"{len(rows) - len(wrong)} of {len(rows)} right")
    return int(bool(wrong) or not rows)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    sys.exit(main())
