"""WebAssembly on several threads in Chromium gives the same bytes as on one; where threads are impossible, it uses
one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import onnx
import pytest
import serve
from emberlet import functional as F
from emberlet.wgpu_backend import plan_file
from emberlet.wgpu_backend.wasm import threads
from support.onnx_models import with_constants

from tools.chromium import Browser, Page
from tools.paths import WEB

# Runs the default export of a module, an async function of these helpers, in a worker of the page.
WORKER = """
import * as wasm from "./wasm.mjs";
const made = [];
const Plain = globalThis.Worker;
globalThis.Worker = class extends Plain {
  constructor(...given) { super(...given); made.push(this); this.ended = false; }
  terminate() { this.ended = true; super.terminate(); }
};
const settled = async (model, threads) => {
  const end = performance.now() + 10000;
  while (model.threads !== threads && performance.now() < end) await new Promise((next) => setTimeout(next, 2));
  return model.threads;
};
const inputs = (model, seed) => Object.fromEntries(model.inputs.map(({ name, length }) => [
  name, Float32Array.from({ length }, (_, i) => Math.sin(seed + 1.7 * i + 0.013 * i * i)),
]));
const words = (results) => Object.values(results).flatMap((values) => [...new Uint32Array(values.buffer)]);
const same = (a, b) => a.length === b.length && a.every((word, i) => word === b[i]);
onmessage = async ({ data: name }) => {
  try {
    postMessage([await (await import(name)).default({ ...wasm, made, settled, inputs, words, same })]);
  } catch (error) {
    postMessage([null, error.stack]);
  }
};
"""
IN_WORKER = """(given) => new Promise((resolve, reject) => {
  const worker = new Worker("worker.mjs", { type: "module" });
  worker.onerror = (event) => reject(new Error(event.message));
  worker.onmessage = ({ data: [value, failed] }) => {
    worker.terminate();
    failed ? reject(new Error(failed)) : resolve(value);
  };
  worker.postMessage(given);
})"""


WEIGHT = np.random.default_rng(0).standard_normal((256, 256), np.float32)
FILTERS = np.random.default_rng(1).standard_normal((16, 16, 3, 3), np.float32)


def layers(x: Any) -> tuple[Any, Any]:
    """A product, softmax, convolutions, a sort and a sum: kernels that use threads, and some that do not."""
    weight, filters = (emberlet.asarray(values, backend=x.backend) for values in (WEIGHT, FILTERS))
    scores = F.softmax(F.relu(x @ weight - 0.5), axis=-1)
    image = F.reshape(x @ weight, (1, 16, 64, 64))
    found = F.conv2d(image, filters, None, (1, 1), (1, 1), (1, 1), 1)
    deep = F.conv2d(found, filters[:, :1], None, (1, 1), (1, 1), (1, 1), 16)
    return F.cumsum(F.sort(scores, -1), 0) + F.sum(scores), F.tanh(deep)


def products(x: Any) -> Any:
    weight = emberlet.asarray(WEIGHT, backend=x.backend)
    return x @ weight @ weight


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = tmp_path_factory.mktemp("site")
    for name in ("wasm.mjs", "errors.mjs", "kinds.mjs", "threads.mjs", "thread.mjs"):
        shutil.copy(WEB / "package" / name, site / name)
    example = emberlet.zeros((256, 256), dtype="float32", backend="numpy")
    plan_file.save(str(site / "layers.wasm"), layers, example, inputs=["x"])
    half = str(site / "half.wasm")
    plan_file.save(half, products, example, inputs=["x"], weights="q8")
    (site / "worker.mjs").write_text(WORKER, encoding="utf-8")
    html = '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><script type="module" src="start.mjs">'
    (site / "index.html").write_text(html + "</script>", encoding="utf-8")
    (site / "start.mjs").write_text('globalThis.wasm = await import("./wasm.mjs");', encoding="utf-8")
    return site


@pytest.fixture(scope="module")
def page(browser: Browser, folder: Path) -> Iterator[Page]:
    server = serve.start_server(folder, policy=serve.PAGE_POLICY)
    opened = browser.open(server.url)
    opened.wait("() => globalThis.wasm")
    yield opened
    server.shutdown()


def in_worker(page: Page, folder: Path, code: str) -> Any:
    """The result of a function body that runs in a worker of the page."""
    names = "load, made, settled, inputs, words, same"
    number = len(list(folder.glob("code*.mjs")))
    text = f"export default async ({{ {names} }}) => {{ {code} }};"
    (folder / f"code{number}.mjs").write_text(text, encoding="utf-8")
    return page.evaluate(IN_WORKER, f"./code{number}.mjs", timeout=120000)


def test_a_thousand_runs_on_three_threads_give_the_bytes_of_one(page: Page, folder: Path) -> None:
    found = in_worker(
        page,
        folder,
        """
        performance.now = () => 0; // then no number of threads is slower
        const one = await load("layers.wasm", { threads: 1 });
        const three = await load("layers.wasm", { threads: 3 });
        const wanted = [0, 1, 2].map((seed) => words(one.runNow(inputs(one, seed))));
        const given = [0, 1, 2].map((seed) => inputs(three, seed));
        const threads = await settled(three, 3);
        let right = 0;
        let messages = 0;
        for (const worker of made) worker.postMessage = () => (messages += 1);
        for (let i = 0; i < 1000; i++) {
          const found = three.runNow(given[i % 3]);
          if (i % 20 < 3) right += same(words(found), wanted[i % 3]);
        }
        return [one.threads, threads, right, made.length, messages];
        """,
    )
    assert found == [1, 3, 150, 2, 0]


@pytest.mark.parametrize(("slower", "threads"), [(False, 2), (True, 1)])
def test_the_faster_number_of_threads_goes_on(page: Page, folder: Path, slower: bool, threads: int) -> None:
    """By this clock, waking the second thread takes 5 ms or no time. From time to time the two are compared again."""
    code = f"""
    const model = await load("half.wasm", {{ threads: 2 }});
    const given = inputs(model, 1);
    const wanted = words(model.runNow(given));
    await settled(model, 2);
    let clock = 0;
    let woken = 0;
    let late = {5 if slower else 0};
    performance.now = () => clock;
    const plain = Atomics.notify;
    Atomics.notify = (...all) => {{ clock += late; woken += 1; return plain(...all); }};
    const runs = (count) => {{ for (let i = 0; i < count; i++) model.runNow(given); }};
    runs(300); // a worker that is late takes no part in a run
    const found = [await settled(model, {threads}), woken > 100, same(words(model.runNow(given)), wanted)];
    late = 5 - late;
    runs(2300);
    return [...found, await settled(model, {3 - threads})];
    """
    assert in_worker(page, folder, code) == [threads, not slower, True, 3 - threads]


def test_what_waking_a_thread_costs_once_does_not_decide(page: Page, folder: Path) -> None:
    """By this clock, waking the second thread after runs without it takes 50 ms, and every run with it saves 1 ms."""
    code = """
    const model = await load("half.wasm", { threads: 2 });
    const given = inputs(model, 1);
    model.runNow(given);
    await settled(model, 2);
    let [clock, run, last] = [0, 0, -9];
    performance.now = () => (clock += 2);
    const plain = Atomics.notify;
    Atomics.notify = (...all) => {
      clock += run - last > 1 ? 50 : -1;
      last = run;
      return plain(...all);
    };
    for (; run < 26; run++) {
      await settled(model, 2);
      model.runNow(given);
    }
    return settled(model, 2);
    """
    assert in_worker(page, folder, code) == 2


def test_a_thread_sleeps_between_runs(page: Page, folder: Path) -> None:
    (folder / "sleeper.mjs").write_text('import "./count.mjs";\nimport "./thread.mjs";\n', encoding="utf-8")
    (folder / "count.mjs").write_text(
        """const plain = Atomics.wait;
        Atomics.wait = (words, at, ...rest) => {
          Atomics.add(words, at + 15, 1); // a word of the control block that nothing else uses
          const found = plain(words, at, ...rest);
          Atomics.add(words, at + 15, -1);
          return found;
        };""",
        encoding="utf-8",
    )
    code = """
    let control;
    const Plain = globalThis.Worker;
    globalThis.Worker = class extends Plain {
      constructor(url, options) { super(new URL("sleeper.mjs", import.meta.url), options); }
      postMessage(message) { control ??= message.control; super.postMessage(message); }
    };
    performance.now = () => 0; // then no number of threads is slower
    const model = await load("layers.wasm", { threads: 2 });
    await settled(model, 2);
    const found = [];
    for (let i = 0; i < 3; i++) {
      model.runNow(inputs(model, i));
      let left = 1000;
      while (left-- && !Atomics.load(control, 15)) await new Promise((next) => setTimeout(next, 5));
      found.push(Atomics.load(control, 15));
    }
    return found;
    """
    assert in_worker(page, folder, code) == [1, 1, 1]


def test_weights_in_fewer_bits_are_expanded_once(page: Page, folder: Path) -> None:
    code = """
    const results = [];
    for (const threads of [1, 2]) {
      const model = await load("half.wasm", { threads });
      await settled(model, threads);
      results.push(words(model.runNow(inputs(model, 5))));
    }
    return same(...results);
    """
    assert in_worker(page, folder, code) is True


def test_models_share_workers_which_end_with_the_last_one(page: Page, folder: Path) -> None:
    code = """
    const models = [];
    for (const name of ["layers.wasm", "half.wasm", "layers.wasm"]) models.push(await load(name, { threads: 2 }));
    const results = [];
    for (const model of models) {
      results.push(await settled(model, 2));
      model.runNow(inputs(model, 1));
    }
    await models[0].release();
    const left = await settled(models[1], 2);
    for (const model of models) await model.release();
    const again = await load("half.wasm", { threads: 2 });
    return [results, left, await settled(again, 2), made.map(({ ended }) => ended), models[0].threads];
    """
    assert in_worker(page, folder, code) == [[2, 2, 2], 2, 2, [True, False], 0]


def test_a_model_that_is_dropped_and_not_released_frees_its_memory(page: Page, folder: Path) -> None:
    """The workers hold each model's memory until its object is collected."""
    code = """
    let threads = [];
    for (let i = 0; i <= 300; i++) {
      const model = await load("half.wasm", { threads: 2 });
      if (i % 100 === 0) threads.push(await settled(model, 2));
      model.runNow(inputs(model, i));
    }
    return threads;
    """
    assert in_worker(page, folder, code) == [2, 2, 2, 2]


def test_a_thread_that_ends_with_work_in_hand_is_waited_for_a_minute_and_named(
    page: Page, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The minute is 3 s here. The second worker takes a range in its second run of a module and stops for ever, like
    one that the browser ended."""
    monkeypatch.setattr(threads, "WAIT_NS", 500_000_000)
    example = emberlet.zeros((256, 256), dtype="float32", backend="numpy")
    plan_file.save(str(folder / "soon.wasm"), layers, example, inputs=["x"])
    (folder / "stuck.mjs").write_text('import "./stop.mjs";\nimport "./thread.mjs";\n', encoding="utf-8")
    (folder / "stop.mjs").write_text(
        """const Plain = WebAssembly.Instance;
        WebAssembly.Instance = function (...given) {
          const { part } = new Plain(...given).exports;
          const ticket = new BigInt64Array(given[1].emberlet.memory.buffer, 0, 1);
          const count = new Int32Array(given[1].emberlet.memory.buffer, 8, 1);
          let runs = 0;
          return { exports: { part: (...at) => {
            if (++runs === 1) return part(...at);
            for (;;) {
              const now = Atomics.load(ticket, 0);
              const number = now & 0xffffn; // of the first steps, not behind the last
              if (Atomics.load(count, 0) < 2 || !number || number > 39n) continue;
              if (Atomics.compareExchange(ticket, 0, now, now + 1n) === now) break;
            }
            Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
          } } };
        };""",
        encoding="utf-8",
    )
    code = """
    const Plain = globalThis.Worker;
    globalThis.Worker = class extends Plain {
      constructor(url, options) { super(made.length === 1 ? new URL("stuck.mjs", import.meta.url) : url, options); }
    };
    performance.now = () => 0; // then no number of threads is slower
    const other = await load("layers.wasm", { threads: 3 });
    const wanted = words(other.runNow(inputs(other, 1)));
    const model = await load("soon.wasm", { threads: 3 });
    const before = [await settled(model, 3), same(words(model.runNow(inputs(model, 1))), wanted)];
    await settled(model, 3);
    let said = "";
    for (let i = 0; i < 400 && !said; i++) {
      try { model.runNow(inputs(model, 1)); } catch (error) { said = error.message; }
    }
    const after = [model.threads, same(words(model.runNow(inputs(model, 1))), wanted)];
    const others = [other.threads, same(words(other.runNow(inputs(other, 1))), wanted)];
    const next = await load("layers.wasm", { threads: 2 });
    const again = [await settled(next, 2), same(words(next.runNow(inputs(next, 1))), wanted)];
    return [said, before, after, others, again, made.map(({ ended }) => ended)];
    """
    said, before, after, others, again, ended = in_worker(page, folder, code)
    assert said.startswith("a thread did not answer for a minute")
    assert (before, after, others, again) == ([3, True], [1, True], [1, True], [2, True])
    assert ended == [True, True, False]


def test_a_thread_that_is_late_delays_no_run(page: Page, folder: Path) -> None:
    (folder / "late.mjs").write_text('import "./sleep.mjs";\nimport "./thread.mjs";\n', encoding="utf-8")
    (folder / "sleep.mjs").write_text(
        """const Plain = WebAssembly.Instance;
        WebAssembly.Instance = function (...given) {
          const { part } = new Plain(...given).exports;
          let seed = 1;
          return { exports: { part: (...at) => {
            seed = (seed * 48271) % 2147483647;
            if (seed % 3 === 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, seed % 7);
            else for (let i = seed % 5000; i; i--) Atomics.load(new Int32Array(4), 0);
            part(...at);
          } } };
        };""",
        encoding="utf-8",
    )
    code = """
    const Plain = globalThis.Worker;
    globalThis.Worker = class extends Plain {
      constructor(url, options) { super(new URL("late.mjs", import.meta.url), options); }
    };
    performance.now = () => 0; // then no number of threads is slower
    const one = await load("layers.wasm", { threads: 1 });
    const three = await load("layers.wasm", { threads: 3 });
    await settled(three, 3);
    const given = [0, 1, 2].map((seed) => inputs(three, seed));
    const wanted = given.map((values) => words(one.runNow(values)));
    let right = 0;
    for (let i = 0; i < 300; i++) right += same(words(three.runNow(given[i % 3])), wanted[i % 3]);
    return right;
    """
    assert in_worker(page, folder, code) == 300


@pytest.mark.parametrize("broken", ["throw new Error('refused')", "given[0] = new URL('absent.mjs', given[0])"])
def test_workers_that_do_not_start_leave_one_thread(page: Page, folder: Path, broken: str) -> None:
    code = f"""
    const Plain = globalThis.Worker;
    globalThis.Worker = class extends Plain {{
      constructor(...given) {{ {broken}; super(...given); }}
    }};
    const model = await load("layers.wasm", {{ threads: 2 }});
    for (let i = 0; i < 3; i++) {{
      model.runNow(inputs(model, 1));
      await new Promise((next) => setTimeout(next, 100));
    }}
    const one = await load("layers.wasm", {{ threads: 1 }});
    return [model.threads, same(words(model.runNow(inputs(model, 1))), words(one.runNow(inputs(one, 1))))];
    """
    assert in_worker(page, folder, code) == [1, True]


def test_the_page_itself_runs_on_one_thread(page: Page) -> None:
    code = """async () => {
      const model = await wasm.load("half.wasm", { threads: 2 });
      await model.run({ x: new Float32Array(65536) });
      return [crossOriginIsolated, model.threads];
    }"""
    assert page.evaluate(code) == [True, 1]


def test_without_isolation_there_is_one_thread(browser: Browser, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = serve.Handler.send_header

    def send_header(self: serve.Handler, name: str, value: str) -> None:
        if not name.startswith("Cross-Origin-"):
            plain(self, name, value)

    monkeypatch.setattr(serve.Handler, "send_header", send_header)
    server = serve.start_server(folder)
    alone = browser.open(server.url)
    alone.wait("() => globalThis.wasm")
    code = """
    const model = await load("half.wasm", { threads: 2 });
    model.runNow(inputs(model, 1));
    return [crossOriginIsolated, model.threads, made.length];
    """
    assert in_worker(alone, folder, code) == [False, 1, 0]
    server.shutdown()


# Runs Python in a worker, with threads.mjs registered and a compiled model at /half.wasm.
PYTHON_WORKER = """
import * as threads from "./threads.mjs";
globalThis.wait = (ms) => new Promise((next) => setTimeout(next, ms));
const runtimes = {
  async pyodide() {
    const { loadPyodide } = await import("/pyodide/pyodide.mjs");
    const python = await loadPyodide({ indexURL: "/pyodide/" });
    for (const name of ["emberlet", "compiler"]) {
      const archive = await (await fetch(`/packages/${name}.zip`)).arrayBuffer();
      python.unpackArchive(archive, "zip", { extractDir: "/lib/python3.14/site-packages" });
    }
    return python;
  },
  async micropython() {
    const { loadMicroPython } = await import("/micropython/micropython.mjs");
    const files = await (await fetch("/packages/emberlet.json")).json();
    const python = await loadMicroPython({ heapsize: 4 << 20 });
    for (const [name, text] of Object.entries(files)) {
      python.FS.mkdirTree(`/lib/${name.slice(0, name.lastIndexOf("/"))}`);
      python.FS.writeFile(`/lib/${name}`, text);
    }
    python.runPython('import sys; sys.path.append("/lib")');
    return python;
  },
};
onmessage = async ({ data: { runtime, registered, source } }) => {
  try {
    const python = await runtimes[runtime]();
    performance.now = () => 0; // then no number of threads is slower
    if (registered) python.registerJsModule("emberlet_threads", threads);
    for (const name of ["half.wasm", "dense.onnx"]) {
      python.FS.writeFile(`/${name}`, new Uint8Array(await (await fetch(`/files/${name}`)).arrayBuffer()));
    }
    globalThis.heap = () => python._module.HEAPU8.length;
    await python.runPythonAsync(source);
    postMessage([JSON.parse(globalThis.found)]);
  } catch (error) {
    postMessage([null, error.stack + error.message]);
  }
};
"""
IN_PYTHON = """
import json

import js
import emberlet
from emberlet import functional as F
from emberlet.wgpu_backend import plan_file, wasm
from emberlet.wgpu_backend.compiled import compile


def work(x, y):
    return F.sum(F.softmax(F.relu(x @ y - 0.5), axis=-1) * x, axis=0), F.max(x @ y @ y, axis=1)


async def settled(program, threads):
    for _ in range(400):
        if program.threads() == threads:
            break
        await js.wait(10)
    return program.threads()


x = F.reshape(F.sin(emberlet.arange(65536, dtype=emberlet.float32, device="wasm") * 1.7), (256, 256))
results, threads = [], []
for count in (1, 3):
    wasm.set_threads(count)
    fast = compile(work, x, x, backend="wasm")
    program = fast.planned().program
    threads.append(await settled(program, count))
    fast(x, x)
    first = [part.tolist() for part in fast(x, x)]
    for _ in range(20):
        fast(x, x)
    assert [part.tolist() for part in fast(x, x)] == first
    saved = plan_file.load("/half.wasm")
    threads.append(await settled(saved.program, count))
    (found,) = saved.run(bytes(4 * 65536 - 8) + b"\\0\\0\\x80\\x3f\\0\\0\\0\\x40")
    results.append((first, bytes(found.bytes)[-1024:]))
    for one in (program, saved.program):
        one.release()
        threads.append(one.threads())
wasm.set_threads(None)
js.found = json.dumps([threads, results[0] == results[1], any(results[0][1])])
"""


SESSIONS = """
import json

import js
from emberlet import onnxruntime

X = [[(i * j % 7) / 7 for j in range(512)] for i in range(128)]


def session_of(count):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = count
    return onnxruntime.InferenceSession("/dense.onnx", options)


async def settled(program, count):
    for _ in range(400):
        if program.threads() == count:
            break
        await js.wait(10)
    return program.threads()


async def threads(session, count):
    (first,) = session.run(None, {"x": X})
    program = session._model.planned().program
    await settled(program, count)
    (again,) = session.run(None, {"x": X})
    assert first.tolist() == again.tolist()
    return await settled(program, count)


wanted = [(1, 1), (3, 3), (100, 8), (0, min(4, js.navigator.hardwareConcurrency))]
found = []
for count, expected in wanted:
    found.append([await threads(session_of(count), expected), expected])
session = session_of(2)
await threads(session, 2)
program = session._model.planned().program
data = [bytes(4 * 128 * 512)]
heaps = []
for _ in range(2):
    for _ in range(1000):
        program.run(data)
    heaps.append(js.heap())
js.found = json.dumps([found, await settled(program, 2), heaps])
"""


@pytest.fixture(scope="module")
def python_page(browser: Browser, runtimes: serve.Server, folder: Path, files: Path) -> Page:
    for name in ("threads.mjs", "thread.mjs", "errors.mjs", "half.wasm"):
        shutil.copy(folder / name, files / name)
    text = "dense (float[128, 512] x) => (float[128, 512] y) { y = MatMul(x, w) }"
    model = with_constants(text, 17, w=np.ones((512, 512), np.float32))
    onnx.save(model, files / "dense.onnx")
    (files / "python.mjs").write_text(PYTHON_WORKER, encoding="utf-8")
    (files / "python.html").write_text('<!doctype html><meta charset="utf-8"><title>Threads</title>', encoding="utf-8")
    return browser.open(runtimes.url + "files/python.html")


@pytest.mark.parametrize("runtime", ["pyodide", "micropython"])
@pytest.mark.parametrize("registered", [True, False])
def test_python_in_a_worker_runs_on_threads_where_the_page_registers_them(
    python_page: Page, runtime: str, registered: bool
) -> None:
    code = IN_WORKER.replace("worker.mjs", "python.mjs")
    given = {"runtime": runtime, "registered": registered, "source": IN_PYTHON}
    if not registered:
        given["source"] = IN_PYTHON.replace("range(400)", "range(1)")
    found = python_page.evaluate(code, given, timeout=240000)
    several = 3 if registered else 1
    assert found == [[1, 1, 0, 0, several, several, 0, 0], True, True]


def test_sessions_have_the_threads_of_their_options_and_a_thousand_runs_keep_the_heap(python_page: Page) -> None:
    code = IN_WORKER.replace("worker.mjs", "python.mjs")
    given = {"runtime": "pyodide", "registered": True, "source": SESSIONS}
    threads, left, (before, after) = python_page.evaluate(code, given, timeout=240000)
    assert [found for found, _ in threads] == [expected for _, expected in threads]
    assert left == 2
    assert after == before
