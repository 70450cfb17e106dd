"""The modules that codegen recovers: their lines, classes, depth and parameter names, and the time of recovering them.

The models are those in tests/models and the light models of the onnx package. Times are processor time. A model's
lines are those of its whole generated module. Depth counts the modules around a parameter, excluding lists. The last
column compares the names of the parameters with PyTorch's state_dict if tests/models/modules or
tests/models/architectures has one. The bias of a layer into which an exporter folded a batch normalization has no name
there, and is counted separately. `--before` takes the checkout of an older commit, whose generation is measured too.
Writes benches/results/hierarchy.md.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from emberlet.codegen.generation import translate

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benches" / "results" / "hierarchy.md"
MODELS = ROOT / "tests" / "models"
HEAD = "| model | lines with `--flat` | lines | classes | depth | parameters named as in the state_dict |"


def row(name: str, model: Path | bytes, keys: set[str] | None) -> str:
    """One model's row of the table."""
    stem = name.rpartition("/")[2]
    flat = translate(model, stem, weights_name="w.bpk", flat=True)[1].source
    written = translate(model, stem, weights_name="w.bpk")[1]
    depth = max((sum(not part.isdigit() for part in key.split(".")[:-1]) for key in written.record), default=0)
    lines = [len(source.splitlines()) for source in (flat, written.source)]
    equal = "" if keys is None else named(keys, set(written.record))
    classes = written.source.count("\nclass ")
    return f"| {name} | {lines[0]} | {lines[1]} | {classes} | {depth} | {equal} |"


def named(keys: set[str], record: set[str]) -> str:
    """How many parameters have the names of the state_dict, out of those that it contains. A bias that only holds a
    folded batch normalization is counted separately."""
    folded = {key for key in record - keys if key.endswith(".bias") and f"{key[:-5]}.weight" in keys}
    if len(folded) > sum(key.endswith(".running_mean") for key in keys):
        folded = set()
    equal = f"{len(keys & record)} of {len(record - folded)}"
    return f"{equal}, and {len(folded)} of folded normalizations" if folded else equal


def committed() -> Iterator[str]:
    """The rows of the models in folders of tests/models."""
    for path in sorted(MODELS.glob("**/model.onnx")):
        if "contrib" in path.parts:
            continue
        checkpoint = path.with_name("checkpoint.npz")
        keys = None
        if checkpoint.exists():
            with np.load(checkpoint) as held:
                keys = {k for k in held.files if not k.startswith(("in_", "out_"))}
        yield row(str(path.parent.relative_to(MODELS)), path, keys)


def architectures() -> Iterator[str]:
    """The rows of the exports of public architectures."""
    for path in sorted((MODELS / "architectures").glob("*.onnx.gz")):
        name = path.name.removesuffix(".onnx.gz")
        keys = json.loads(path.with_name(f"{name}.json").read_text(encoding="utf-8"))
        yield row(name, gzip.decompress(path.read_bytes()), set(keys))


def light() -> Iterator[str]:
    """The rows of the models that the onnx package holds: large networks without their weights."""
    import onnx

    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    for path in sorted(folder.glob("light_*.onnx")):
        yield row(path.stem.removeprefix("light_"), path, None)


def exporters() -> Iterator[str]:
    """The rows of published files of other exporters, whose weights were left out."""
    for path in sorted((MODELS / "exporters").glob("*.onnx.gz")):
        yield row(path.name.removesuffix(".onnx.gz"), gzip.decompress(path.read_bytes()), None)


# -- cost -------------------------------------------------------------------------------------------------------------

_WORKER = """
import gzip, importlib.util, json, sys, time
from pathlib import Path

root, path, flat = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
sys.meta_path[:] = [f for f in sys.meta_path if "editable" not in repr(f)]
for name, folder in json.loads(sys.argv[4]).items():
    found = importlib.util.spec_from_file_location(
        name, root / folder / "__init__.py", submodule_search_locations=[str(root / folder)]
    )
    sys.modules[name] = importlib.util.module_from_spec(found)
    found.loader.exec_module(sys.modules[name])
from emberlet.codegen.generation import translate

source = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path
kwargs = {} if flat is None else {"flat": flat}
best = 1e9
for _ in range(4):
    start = time.process_time()
    translate(source, "net", weights_name="w.bpk", **kwargs)
    best = min(best, time.process_time() - start)
print(best)
"""
_PACKAGES = {"emberlet": "core", "emberlet.codegen": "codegen"}


def seconds(root: Path, model: Path, flat: bool | None) -> float:
    """Processor time of the best of four generations, in a process of its own. flat: None for trees without modules."""
    command = [sys.executable, "-c", _WORKER, str(root), str(model), json.dumps(flat), json.dumps(_PACKAGES)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, encoding="utf-8")
    return float(done.stdout)


def costs(before: Path | None) -> Iterator[str]:
    """A row for each of some models: this tree's generation as modules, with `--flat`, and the older tree's."""
    import onnx

    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    models = [MODELS / "architectures" / f"{n}.onnx.gz" for n in ("bert", "bert_traced", "llama_traced", "t5_traced")]
    models += [
        MODELS / "modules" / "resnet50" / "model.onnx",
        MODELS / "unet" / "model.onnx",
        *(folder / f"light_{n}.onnx" for n in _LIGHT),
    ]
    for model in models:
        name = model.parent.name if model.stem == "model" else model.name.partition(".")[0]
        modules, flat = seconds(ROOT, model, False), seconds(ROOT, model, True)
        old = seconds(before, model, None) if before is not None else None
        last = f"{old:.3f} s | {modules / old:.2f}" if old else "|"
        yield f"| {name} | {modules:.3f} s | {flat:.3f} s | {modules / flat:.2f} | {last} |"


_LIGHT = ("resnet50", "densenet121", "squeezenet")
COSTS = "| model | as modules | with `--flat` | ratio | before there were modules | ratio |\n|---|---|---|---|---|---|"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="the checkout of a commit to measure beside this one")
    before = parser.parse_args().before
    text = ["# Recovered modules", "", "Written by `python3 dev.py bench hierarchy`."]
    for title, rows in (
        ("Public architectures, exported from transformers by PyTorch's two exporters (`_traced`: TorchScript; "
         "`_optimized`: then by onnxruntime)", architectures()),
        ("Models of the tests", committed()),
        ("Published files of other exporters (Keras and JAX through tf2onnx, Paddle, silero)", exporters()),
        ("Light models of onnx", light()),
    ):  # fmt: skip
        text += ["", f"## {title}", "", HEAD, "|---|---|---|---|---|---|", *rows]
    text += ["", "## Cost of generation, in processor time", "", COSTS, *costs(before)]
    RESULTS.write_text("\n".join([*text, ""]), encoding="utf-8")
    print("\n".join(text))


if __name__ == "__main__":
    main()
