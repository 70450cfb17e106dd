"""transformers.js's tasks on `emberlet-web/onnxruntime`, which an import map gives it, over models that are made here:
their answers are those of onnxruntime in Python, and nothing is asked of other servers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper
from PIL import Image
from serve import Server, start_server

from tools.chromium import Browser

MILLISECONDS = 240_000
RUNTIME = "/emberlet-web/onnxruntime.mjs"
IMPORTS = json.dumps({"imports": {"onnxruntime-web/webgpu": RUNTIME, "onnxruntime-common": RUNTIME}})
PAGE = f'<!doctype html><link rel="icon" href="data:," /><script type="importmap">{IMPORTS}</script>'
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [*SPECIAL, "a", "cat", "sleeps", "rain", "falls", "on", "the", "city"]
TEXTS = ["A cat sleeps.", "The rain falls on the city", "rain"]
RNG = np.random.default_rng(4)
HEAD = '<ir_version: 8, opset_import: ["": 17]>'
TEXT = "(int64[batch, length] input_ids, int64[batch, length] attention_mask)"
STATES = f"""{HEAD} states {TEXT} => (float[batch, length, 16] last_hidden_state)
    {{ x = Gather(table, input_ids)  y = MatMul(x, w)  last_hidden_state = Tanh(y) }}"""
CLASSES = f"""{HEAD} classes {TEXT} => (float[batch, 3] logits)
    {{ x = Gather(table, input_ids)  m = Cast <to = 1> (attention_mask)  k = Unsqueeze(m, last)  y = Mul(x, k)
       s = ReduceSum <keepdims = 0> (y, one)  logits = MatMul(s, w) }}"""
PICTURES = f"""{HEAD} pictures (float[batch, 3, 8, 6] pixel_values) => (float[batch, 2] logits)
    {{ x = Conv <pads = [1, 1, 1, 1]> (pixel_values, kernel)  y = Relu(x)  p = GlobalAveragePool(y)
       f = Flatten(p)  logits = MatMul(f, w) }}"""


def ids(text: str) -> list[int]:
    """As BERT's tokenizer: in lower case, a dot by itself, words that it does not know as [UNK]."""
    words = text.lower().replace(".", " .").split()
    return [2, *(WORDS.index(word) if word in WORDS else 1 for word in words), 3]


def tokenizer() -> dict[str, Any]:
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    ends = {name: {"id": name, "ids": [WORDS.index(name)], "tokens": [name]} for name in ("[CLS]", "[SEP]")}
    first, own, last = (
        {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
    )
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": i, "content": name, **special} for i, name in enumerate(SPECIAL)],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [first, own, last],
            "pair": [first, own, last],
            "special_tokens": ends,
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {word: i for i, word in enumerate(WORDS)},
        },
    }


def write(folder: Path, text: str, constants: dict[str, Any], files: dict[str, Any]) -> None:
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    (folder / "onnx").mkdir(parents=True)
    onnx.save(model, folder / "onnx" / "model.onnx")
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")


def drawn(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


def answers(folder: Path, **inputs: Any) -> Any:
    made = onnxruntime.InferenceSession(folder / "onnx" / "model.onnx", providers=["CPUExecutionProvider"])
    return made.run(None, inputs)[0]


@pytest.fixture(scope="module")
def folder(packed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(packed.with_name("built"), folder / "emberlet-web")
    (folder / "index.html").write_text(PAGE, encoding="utf-8")
    texts = {"tokenizer.json": tokenizer(), "tokenizer_config.json": {"tokenizer_class": "BertTokenizer"}}
    bert = {"model_type": "bert", "hidden_size": 16}
    table = drawn(len(WORDS), 16)
    write(folder / "states", STATES, {"table": table, "w": drawn(16, 16)}, {"config.json": bert, **texts})
    ends = {"last": np.array([-1]), "one": np.array([1])}
    labels = {"id2label": {"0": "dry", "1": "wet", "2": "asleep"}}
    heads = {"table": table, "w": drawn(16, 3) / 8, **ends}
    write(folder / "classes", CLASSES, heads, {"config.json": {**bert, **labels}, **texts})
    half = [0.5, 0.5, 0.5]
    processor = {"image_processor_type": "ViTImageProcessor", "do_resize": False, "do_rescale": True}
    processor |= {"rescale_factor": 1 / 255, "do_normalize": True, "image_mean": half, "image_std": half}
    config = {"model_type": "vit", "id2label": {"0": "day", "1": "night"}}
    files = {"config.json": config, "preprocessor_config.json": processor}
    write(folder / "pictures", PICTURES, {"kernel": drawn(4, 3, 3, 3), "w": drawn(4, 2)}, files)
    Image.fromarray(RNG.integers(0, 256, (8, 6, 3), np.uint8)).save(folder / "picture.png")
    return folder


@pytest.fixture(scope="module")
def site(folder: Path, transformers_js: Path) -> Iterator[Server]:
    server = start_server(folder, mounts={"/transformers/": transformers_js})
    yield server
    server.shutdown()


def told(browser: Browser, site: Server, task: str, model: str, inputs: list[str], options: dict[str, Any]) -> Any:
    """What a pipeline answers in a page of its own: plain objects, and the elements of tensors."""
    page = browser.open(site.url)
    found = page.evaluate(
        """async ([library, task, model, inputs, options]) => {
          const { env, pipeline } = await import(library);
          Object.assign(env, { allowRemoteModels: false, allowLocalModels: true, localModelPath: "/" });
          env.useBrowserCache = false;
          const run = await pipeline(task, model, { dtype: "fp32", device: "wasm" });
          const found = [];
          for (const input of inputs) {
            const answer = await run(input, options);
            found.push(answer.dims ? [answer.dims, Array.from(answer.data)] : answer);
          }
          return found;
        }""",
        argument=["/transformers/transformers.web.min.js", task, model, inputs, options],
        timeout=MILLISECONDS,
    )
    hosts = {url.split("/")[2] for url in page.requests() if not url.startswith(("data:", "blob:"))}
    assert hosts == {site.url.split("/")[2]}, "something was fetched from elsewhere"
    page.close()
    return found


def softmax(x: Any) -> Any:
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def test_features_are_extracted(browser: Browser, site: Server, folder: Path) -> None:
    options = {"pooling": "mean", "normalize": True}
    found = told(browser, site, "feature-extraction", "states", TEXTS, options)
    for text, (dims, values) in zip(TEXTS, found, strict=True):
        given = np.array([ids(text)])
        states = answers(folder / "states", input_ids=given, attention_mask=np.ones_like(given))
        mean = states.mean(1)
        np.testing.assert_allclose(np.reshape(values, dims), mean / np.linalg.norm(mean), atol=1e-5)


def test_texts_are_classified(browser: Browser, site: Server, folder: Path) -> None:
    found = told(browser, site, "text-classification", "classes", TEXTS, {"top_k": None})
    for text, answer in zip(TEXTS, found, strict=True):
        given = np.array([ids(text)])
        scores = softmax(answers(folder / "classes", input_ids=given, attention_mask=np.ones_like(given))[0])
        by_label = {one["label"]: one["score"] for one in answer}
        assert by_label == pytest.approx(dict(zip(("dry", "wet", "asleep"), scores.tolist(), strict=True)), abs=1e-5)


def test_images_are_classified(browser: Browser, site: Server, folder: Path) -> None:
    (answer,) = told(browser, site, "image-classification", "pictures", ["/picture.png"], {"top_k": 2})
    pixels = np.asarray(Image.open(folder / "picture.png")).astype(np.float32) / 255
    scores = softmax(answers(folder / "pictures", pixel_values=((pixels - 0.5) / 0.5).transpose(2, 0, 1)[None])[0])
    by_label = {one["label"]: one["score"] for one in answer}
    assert by_label == pytest.approx(dict(zip(("day", "night"), scores.tolist(), strict=True)), abs=1e-5)
