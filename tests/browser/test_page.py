"""The page: draw a digit, watch ten bars move, on every runtime and device."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from serve import PAGE_POLICY, Server, start_server

from tools.chromium import Browser, Page
from tools.paths import ROOT

SHOTS = ROOT / "out" / "page"
DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
COMBINATIONS = [(runtime, device) for runtime in ("micropython", "pyodide") for device in ("python", "wasm", "wgpu")]
RUNS_ON = {
    "python": "the CPU, in plain Python",
    "wasm": "the CPU, in WebAssembly",
    "wgpu": "google swiftshader (CPU) via WebGPU",
}

SEVEN = [[[0.28, 0.17], [0.72, 0.17], [0.45, 0.85]], [[0.36, 0.5], [0.66, 0.5]]]
FOUR = [[[0.6, 0.85], [0.6, 0.15], [0.28, 0.62], [0.76, 0.62]]]
ONE = [[[0.38, 0.3], [0.52, 0.15], [0.52, 0.85]]]

READ = """() => ({
  state: document.querySelector("main").dataset.state,
  answer: document.getElementById("answer").textContent,
  shares: [...document.querySelectorAll("#bars .bar")].map((bar) => Number(bar.getAttribute("aria-valuenow"))),
  adapter: document.getElementById("adapter").textContent,
  steady: document.getElementById("steady").textContent,
  error: document.getElementById("error").hidden ? "" : document.getElementById("error-text").textContent,
  details: document.getElementById("error-details").textContent,
})"""
SETTLED = "() => ['ready', 'error'].includes(document.querySelector('main').dataset.state)"


def open_page(browser: Browser, site: Server, runtime: str, device: str, **details: object) -> Page:
    page = browser.open(f"{site.url}#runtime={runtime}&device={device}", **details)
    page.wait(SETTLED, timeout=60000)
    return page


def wait_for(page: Page, digit: int) -> dict:
    """Waits until the page has processed the whole drawing and reads `digit`; returns what it shows."""
    page.wait("() => document.getElementById('bars').ariaBusy === 'false'")
    page.wait(f"() => document.querySelector('#bars .best b')?.textContent === '{digit}'")
    return page.evaluate(READ)


def expected(page: Page) -> list[float]:
    """The percentages that onnxruntime gives the ten digits, for the pixels that the page shows of the drawing."""
    code = """() => {
      const copy = new OffscreenCanvas(8, 8).getContext("2d", { willReadFrequently: true });
      copy.drawImage(document.getElementById("seen"), 0, 0);
      return [...copy.getImageData(0, 0, 8, 8).data];
    }"""
    counts = np.rint(np.array(page.evaluate(code)[::4]) * 16 / 255)
    session = onnxruntime.InferenceSession(DIGITS, providers=["CPUExecutionProvider"])
    powers = np.exp(session.run(None, {"image": (counts / 16).astype(np.float32).reshape(1, 1, 8, 8)})[0].ravel())
    found: list[float] = (100 * powers / powers.sum()).tolist()
    return found


@pytest.mark.parametrize(("runtime", "device"), COMBINATIONS)
def test_a_drawn_digit_is_read(browser: Browser, site: Server, runtime: str, device: str) -> None:
    page = open_page(browser, site, runtime, device)
    page.draw(selector="#pad", strokes=SEVEN)
    seven = wait_for(page, 7)
    assert seven["answer"].startswith("It reads 7")
    assert seven["shares"] == pytest.approx(expected(page), abs=0.11)
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=str(SHOTS / f"{runtime}-{device}.png"), full=True)
    page.click(selector="#clear")
    assert page.evaluate(READ)["answer"] == "Nothing yet"
    page.draw(selector="#pad", strokes=FOUR)
    four = wait_for(page, 4)
    assert four["shares"] == pytest.approx(expected(page), abs=0.11)
    assert "ms" in four["steady"]
    assert four["adapter"] == RUNS_ON[device]
    assert page.log() == []
    hosts = {url.split("/")[2] for url in page.requests() if not url.startswith(("data:", "blob:"))}
    assert hosts == {site.url.split("/")[2]}, "something was fetched from elsewhere"
    page.close()


@pytest.mark.parametrize("device", ["wasm", "wgpu"])
def test_no_task_of_the_page_takes_50_ms(browser: Browser, site: Server, device: str) -> None:
    """Processor time is measured, since a busy machine lengthens the elapsed time."""
    page = browser.open(f"{site.url}gallery.html")
    page.trace()
    page.goto(url=f"{site.url}#runtime=micropython&device={device}")
    page.wait(SETTLED, timeout=60000)
    page.draw(selector="#pad", strokes=SEVEN)
    wait_for(page, 7)
    tasks = page.tasks()
    page.close()
    assert len(tasks) > 50
    assert tasks[0] < 50, f"tasks of {tasks[:5]} ms"


def test_the_keyboard_draws_shows_examples_and_clears(browser: Browser, site: Server) -> None:
    page = open_page(browser, site, "micropython", "python", before="Math.random = () => 0")
    page.focus(selector="#pad")
    for digit in (8, 3):
        page.press(key=str(digit))
        wait_for(page, digit)
    page.press(key="Escape")
    assert page.evaluate(READ)["answer"] == "Nothing yet"
    page.press(key="Space")
    for _ in range(12):
        page.press(key="ArrowDown")
    page.press(key="Space")
    page.press(key="ArrowRight")  # the pen is up: this draws nothing
    wait_for(page, 1)
    page.close()


def test_a_finger_draws_on_a_phone(browser: Browser, site: Server) -> None:
    page = open_page(browser, site, "micropython", "python", width=360, height=740, touch=True, scale=2)
    scrolled = page.evaluate("() => [scrollX, scrollY]")
    page.swipe(selector="#pad", strokes=ONE)
    wait_for(page, 1)
    assert page.evaluate("() => [scrollX, scrollY]") == scrolled, "drawing scrolled the page"
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), "wider than the screen"
    small = page.evaluate("""() => [...document.querySelectorAll("button, .options label")]
      .filter((part) => part.offsetParent && part.getBoundingClientRect().height < 40)
      .map((part) => part.textContent)""")
    assert small == [], "too small for a finger"
    bars = page.evaluate("() => document.getElementById('bars').getBoundingClientRect().bottom")
    assert bars <= 740, "pad and bars do not fit on one screen"
    page.screenshot(path=str(SHOTS / "phone.png"), full=True)
    page.close()


def test_what_is_missing_is_said_and_can_be_tried_again(browser: Browser, site: Server) -> None:
    page = browser.open(site.url + "#runtime=micropython&device=python")
    page.wait(SETTLED, timeout=60000)
    page.block(pattern="**/digits.bpk")
    page.click(selector="[value=pyodide]")
    page.wait("() => document.querySelector('main').dataset.state === 'error'", timeout=60000)
    told = page.evaluate(READ)
    assert told["error"].startswith("could not download") and "digits.bpk" in told["error"]
    page.screenshot(path=str(SHOTS / "error.png"), full=True)
    page.unblock()
    page.click(selector="#retry")
    page.wait("() => document.querySelector('main').dataset.state === 'ready'", timeout=60000)
    assert page.evaluate(READ)["error"] == ""
    page.close()


def test_python_s_errors_are_told_in_one_sentence_with_the_traceback_behind(browser: Browser, site: Server) -> None:
    broken = "navigator.gpu.constructor.prototype.requestAdapter = async () => null"
    for runtime in ("micropython", "pyodide"):
        page = browser.open(site.url + "#runtime=micropython&device=python")
        page.wait(SETTLED)
        page.prepend(pattern="**/worker.mjs", code=broken)
        page.evaluate("(hash) => { location.hash = hash }", f"runtime={runtime}&device=wgpu")
        page.wait("() => document.querySelector('main').dataset.state === 'error'", timeout=60000)
        told = page.evaluate(READ)
        assert "adapter" in told["error"] and "\n" not in told["error"], told["error"]
        assert "Traceback" in told["details"]
        page.close()


def test_without_webgpu_and_simd_plain_python_is_chosen(browser: Browser, site: Server) -> None:
    hide = "Object.defineProperty(Navigator.prototype, 'gpu', { value: undefined }); WebAssembly.validate = () => false"
    page = open_page(browser, site, "micropython", "wasm", before=hide)
    assert page.evaluate("() => [...document.querySelectorAll(':disabled')].map((e) => e.value)") == ["wgpu", "wasm"]
    assert page.evaluate("() => document.getElementById('no-gpu').innerText") == (
        "This browser has no WebGPU, and its WebAssembly has no SIMD: the CPU runs the model, in plain Python."
    )
    assert page.evaluate(READ)["adapter"] == RUNS_ON["python"]
    page.close()


@pytest.fixture(scope="module")
def no_gpu(browser: Browser) -> Iterator[Browser]:
    """A Chromium that offers no GPU."""
    with Browser(webgpu=False) as started:
        yield started


@pytest.mark.parametrize("runtime", ["micropython", "pyodide"])
def test_a_browser_without_a_gpu_reads_digits_in_wasm(no_gpu: Browser, site: Server, runtime: str) -> None:
    page = no_gpu.open(f"{site.url}#runtime={runtime}&device=wgpu")
    page.wait(SETTLED, timeout=60000)
    assert page.evaluate("() => document.querySelector('[value=wgpu]').disabled")
    assert page.evaluate("() => document.querySelector('[value=wasm]').checked")
    page.draw(selector="#pad", strokes=SEVEN)
    assert wait_for(page, 7)["adapter"] == RUNS_ON["wasm"]
    assert "the CPU runs the model, in WebAssembly." in page.evaluate(
        "() => document.getElementById('no-gpu').innerText"
    )
    page.click(selector="[value=python]")
    page.wait("() => location.hash.includes('device=python')")
    page.wait("() => document.querySelector('main').dataset.state === 'ready'", timeout=60000)
    assert wait_for(page, 7)["adapter"] == RUNS_ON["python"]
    assert page.evaluate("() => document.getElementById('no-gpu').innerText").endswith(
        "the CPU runs the model, in plain Python."
    )
    page.close()


def test_forced_colors_keep_bars_and_strokes(browser: Browser, site: Server) -> None:
    page = open_page(browser, site, "micropython", "python", forced=True)
    page.draw(selector="#pad", strokes=SEVEN)
    wait_for(page, 7)
    assert page.evaluate("() => matchMedia('(forced-colors: active)').matches")
    ink = """() => {
      const pad = document.getElementById("pad");
      const { data } = pad.getContext("2d").getImageData(0, 0, pad.width, pad.height);
      const shades = new Set();
      for (let i = 0; i < data.length; i += 4) shades.add(data.slice(i, i + 4).join());
      const behind = (part) => getComputedStyle(part).backgroundColor;
      const best = document.querySelector("li.best .bar");
      return [shades.size, behind(best), behind(best.querySelector("i"))];
    }"""
    shades, track, bar = page.evaluate(ink)
    assert shades > 1, "strokes differ from the pad"
    assert bar != track, "the bar differs from its track"
    page.screenshot(path=str(SHOTS / "forced.png"), full=True)
    page.close()


def test_what_is_not_available_is_told_in_the_page_and_not_in_a_tooltip(built: Path) -> None:
    for name in ("index.html", "model.html", "train.html", "gallery.html", "bench.html"):
        html = (built / name).read_text(encoding="utf-8")
        assert not re.findall(r"<(?!link|svg)[^>]* title=", html), name
        assert "<noscript>" in html
    scripts = [path for path in built.glob("*.mjs") if re.search(r"\.title\s*=", path.read_text(encoding="utf-8"))]
    assert scripts == []


def test_software_that_acts_as_a_gpu_comes_after_webassembly(browser: Browser, site: Server) -> None:
    page = browser.open(site.url + "#runtime=micropython")
    page.wait(SETTLED, timeout=60000)
    assert page.evaluate(READ)["adapter"] == RUNS_ON["wasm"]
    said = page.evaluate("() => document.getElementById('no-gpu').innerText")
    assert said == (
        "The WebGPU of this browser runs in software, without a GPU: the CPU runs the model, in WebAssembly."
    )
    page.close()


def test_where_nobody_chose_the_next_device_runs(browser: Browser, site: Server, hardware: str) -> None:
    page = browser.open(site.url + "#runtime=micropython&device=python", before=hardware)
    page.wait(SETTLED, timeout=60000)
    page.prepend(pattern="**/worker.mjs", code="navigator.gpu.constructor.prototype.requestAdapter = async () => null")
    page.goto(url=site.url + "index.html#runtime=micropython")
    page.wait("() => document.getElementById('adapter').textContent.startsWith('the CPU')", timeout=60000)
    assert page.evaluate(READ)["adapter"] == RUNS_ON["wasm"]
    said = page.evaluate("() => document.getElementById('no-gpu').innerText")
    assert said.startswith("WebGPU failed (") and said.endswith("): the CPU runs the model, in WebAssembly.")
    page.close()


def test_drawings_become_what_the_data_set_holds(browser: Browser, site: Server) -> None:
    page = browser.open(site.url + "#runtime=micropython&device=python")
    code = """async (drawings) => {
      const { toPixels } = await import("/ink.mjs");
      return drawings.map(toPixels);
    }"""
    small = [[[0.5 + 0.1 * (x - 0.5), 0.2 + 0.1 * y] for x, y in stroke] for stroke in FOUR]
    nothing, four, again, one, dot, dash = page.evaluate(
        code, [[], FOUR, small, [[[0.5, 0.1], [0.5, 0.9]]], [[[0.3, 0.3]]], [[[0.1, 0.5], [0.9, 0.5]]]]
    )
    page.close()
    assert nothing is None
    assert len(four) == 64 and all(0 <= value <= 16 and value == int(value) for value in four)
    assert four == again, "place and size of a drawing must not matter"
    rows = [sum(four[8 * y : 8 * y + 8]) for y in range(8)]
    columns = [sum(four[x::8]) for x in range(8)]
    assert rows[0] and rows[7], "the ink fills the height"
    assert columns[0] == columns[7] == 0 and columns[1] and columns[6], "and six of the eight columns"
    assert [bool(sum(one[x::8])) for x in range(8)] == [False] * 3 + [True] * 2 + [False] * 3, "a one stays narrow"
    assert 0 < sum(dot) < 40 and 0 < sum(dash) < 200


def test_the_site_is_whole(site: Server, built: Path) -> None:
    manifest = json.loads((built / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["parameters"] == 9802 and manifest["accuracy"] == "357 of 360"
    assert len(manifest["examples"]) == 10 and all(
        len(image) == 64 for images in manifest["examples"] for image in images
    )
    for name, size in manifest["files"].items():
        assert (built / name).stat().st_size == size, name
    assert not any(name.endswith((".so", ".pyc")) for name in manifest["files"])


def test_modules_are_asked_for_at_once(built: Path) -> None:
    for name in ("index.html", "model.html", "train.html", "gallery.html", "bench.html"):
        html = (built / name).read_text(encoding="utf-8")
        scripts = re.findall(r'<script type="module"(?: async)? src="([^"]+)"', html)
        asked = [*scripts, *re.findall(r'<link rel="modulepreload" href="([^"]+)"', html)]
        for module in asked:
            text = (built / module).read_text(encoding="utf-8")
            for other in re.findall(r'^import .*"(\./[^"]+)";', text, re.M):
                assert ((built / module).parent / other).resolve().relative_to(built.resolve()).as_posix() in asked
    worker = (built / "worker.mjs").read_text(encoding="utf-8")
    ahead = json.loads(re.findall("^const AHEAD = (.*?);", worker, re.M)[0])
    assert len(ahead) == 3
    for module, others in ahead.items():
        assert module in others and all((built / other).is_file() for other in others)
    assert "./emberlet/python.mjs" in ahead["./run_in_micropython.mjs"]
    assert "./emberlet/python.mjs" not in ahead["./run_plain_in_micropython.mjs"]


def test_the_worker_begins_before_the_rest_of_the_page(built: Path) -> None:
    html = (built / "index.html").read_text(encoding="utf-8")
    first, *_ = re.findall(r"<(?:script|link)[^>]*m?js[^>]*>", html)
    assert first == '<link rel="modulepreload" href="client.mjs" />', "which begin.mjs imports"
    assert '<script type="module" async src="begin.mjs">' in html
    worker = (built / "worker.mjs").read_text(encoding="utf-8")
    names = re.findall(r'"((?:pyodide|emberlet|packages)/[^"]+)"', worker.split("const BEFORE")[1].split("}[")[0])
    assert len(names) == 6 and all((built / name).is_file() for name in names)


@pytest.mark.parametrize("device", ["wgpu", "wasm", "python"])
def test_micropython_reads_a_digit_after_half_a_megabyte(browser: Browser, built: Path, device: str) -> None:
    server = start_server(built, policy=PAGE_POLICY)
    none = "Object.defineProperty(Navigator.prototype, 'serviceWorker', { value: undefined })"
    page = browser.open(f"{server.url}#runtime=micropython&device={device}&example=7", before=none)
    page.wait("() => performance.getEntriesByName('first prediction').length", timeout=120000)
    assert server.sent < 500_000
    page.close()
    server.shutdown()


def test_a_gpu_that_is_promised_and_not_there_is_said_and_the_cpu_runs(browser: Browser, site: Server) -> None:
    none = "navigator.gpu.constructor.prototype.requestAdapter = async () => null"
    page = open_page(browser, site, "micropython", "wgpu", before=none)
    assert page.evaluate("() => document.querySelector('[value=wgpu]').disabled")
    assert page.evaluate("() => document.getElementById('no-gpu').innerText") == (
        "This browser has WebGPU, but offers no GPU to it: the CPU runs the model, in WebAssembly."
    )
    assert page.evaluate(READ)["adapter"] == RUNS_ON["wasm"]
    page.close()


def test_a_gpu_that_fails_later_leads_to_the_cpu(browser: Browser, site: Server) -> None:
    page = browser.open(site.url + "#runtime=micropython&device=python")
    page.wait(SETTLED, timeout=60000)
    page.prepend(pattern="**/worker.mjs", code="navigator.gpu.constructor.prototype.requestAdapter = async () => null")
    page.evaluate("() => { location.hash = 'runtime=micropython&device=wgpu' }")
    page.wait("() => document.querySelector('main').dataset.state === 'error'", timeout=60000)
    assert any("Traceback" in line for line in page.log()), "Python's error is in the console"
    page.unblock()
    assert page.evaluate("() => document.getElementById('use-other').textContent") == "Run it in WebAssembly"
    page.click(selector="#use-other")
    page.wait("() => document.querySelector('main').dataset.state === 'ready'", timeout=60000)
    assert page.evaluate(READ)["adapter"] == RUNS_ON["wasm"]
    page.close()


@pytest.mark.parametrize("runtime", ["micropython", "pyodide"])
def test_a_missing_wasm_file_is_told(browser: Browser, site: Server, runtime: str) -> None:
    other = "pyodide" if runtime == "micropython" else "micropython"
    page = browser.open(f"{site.url}#runtime={other}&device=python")
    page.wait(SETTLED, timeout=60000)
    page.block(pattern="**/*.wasm")
    page.click(selector=f"[value={runtime}]")
    page.wait("() => document.querySelector('main').dataset.state === 'error'", timeout=60000)
    told = page.evaluate(READ)["error"]
    assert "could not download" in told and ".wasm" in told
    page.close()


def test_a_second_finger_does_not_draw(browser: Browser, site: Server) -> None:
    page = open_page(browser, site, "micropython", "python")
    points = page.evaluate("""async () => {
      const { Pad } = await import("/pad.mjs");
      const canvas = document.createElement("canvas");
      canvas.style.cssText = "position: fixed; inset: 0; width: 100px; height: 100px";
      canvas.setPointerCapture = () => {};
      document.body.append(canvas);
      const pad = new Pad(canvas, { drawn: () => {}, example: () => {} });
      const send = (name, pointerId, x, y) =>
        canvas.dispatchEvent(new PointerEvent(name, { pointerId, clientX: x, clientY: y, cancelable: true }));
      send("pointerdown", 1, 10, 10);
      send("pointerdown", 2, 90, 90);
      send("pointermove", 1, 20, 20);
      send("pointermove", 2, 80, 80);
      send("pointerup", 2, 80, 80);
      send("pointermove", 1, 30, 30);
      send("pointerup", 1, 30, 30);
      send("pointerdown", 2, 50, 50);
      canvas.remove();
      return pad.strokes;
    }""")
    assert points == [[[0.1, 0.1], [0.2, 0.2], [0.3, 0.3]], [[0.5, 0.5]]]
    page.close()


def test_the_page_speaks_once_a_digit_and_left_to_right_numbers(browser: Browser, site: Server) -> None:
    page = open_page(browser, site, "micropython", "python")
    live = "document.querySelectorAll('output, [aria-live], [role=status], [role=alert]').length"
    assert page.evaluate(f"() => {live}") == 3  # the answer, the state, an error
    assert page.evaluate("() => [...document.querySelectorAll('.share')].every((s) => s.dir === 'ltr')")
    assert page.evaluate("() => document.querySelector('noscript') !== null")
    page.close()


def test_a_page_without_its_manifest_says_so(browser: Browser, site: Server) -> None:
    page = browser.open(site.url + "#runtime=micropython&device=python")
    page.block(pattern="**/manifest.json")
    page.goto(url=site.url)
    page.wait("() => document.getElementById('status').textContent.startsWith('The page cannot start')")
    page.close()
