"""The modules that codegen recovers: lines, classes, depth and names of parameters, for every model in tests/models,
and the light models of the onnx package.

A model's lines are those of its whole generated module. Depth counts the modules around a parameter, lists aside. The
last column compares the names of the parameters with PyTorch's state_dict, where tests/models/modules or
tests/models/architectures has one: a batch normalization folded into a convolution has no names any more. Writes
benches/results/hierarchy.md.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from emberlet.codegen.generation import translate

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benches" / "results" / "hierarchy.md"
MODELS = ROOT / "tests" / "models"
HEAD = "| model | lines with `--flat` | lines | classes | depth | parameters named as in the state_dict |"


def row(name: str, model: Path | bytes, keys: set[str] | None) -> str:
    """One model's line of the table."""
    stem = name.rpartition("/")[2]
    flat = translate(model, stem, weights_name="w.bpk", flat=True)[1].source
    written = translate(model, stem, weights_name="w.bpk")[1]
    depth = max((sum(not part.isdigit() for part in key.split(".")[:-1]) for key in written.record), default=0)
    lines = [len(source.splitlines()) for source in (flat, written.source)]
    equal = "" if keys is None else f"{len(keys & set(written.record))} of {len(written.record)}"
    classes = written.source.count("\nclass ")
    return f"| {name} | {lines[0]} | {lines[1]} | {classes} | {depth} | {equal} |"


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


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    text = ["# Recovered modules", "", "Written by `python3 dev.py bench hierarchy`."]
    for title, rows in (
        ("Public architectures, exported from transformers by PyTorch's two exporters (`_traced`: TorchScript)",
         architectures()),
        ("Models of the tests", committed()),
        ("Light models of onnx", light()),
    ):  # fmt: skip
        text += ["", f"## {title}", "", HEAD, "|---|---|---|---|---|---|", *rows]
    RESULTS.write_text("\n".join([*text, ""]), encoding="utf-8")
    print("\n".join(text))


if __name__ == "__main__":
    main()
