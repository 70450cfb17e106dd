"""The modules that codegen recovers: lines, classes, depth and names of parameters, for every model in tests/models.

A model's lines are those of its whole generated module. Depth counts the modules around a parameter, lists aside. The
last column compares the names of the parameters with PyTorch's state_dict, where tests/models/modules has one. Writes
benches/results/hierarchy.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from emberlet.codegen.generation import translate

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benches" / "results" / "hierarchy.md"
MODELS = ROOT / "tests" / "models"


def row(path: Path) -> str:
    """One model's line of the table."""
    name = path.parent.name
    flat = translate(path, name, weights_name="w.bpk", flat=True)[1].source
    written = translate(path, name, weights_name="w.bpk")[1]
    depth = max((sum(not part.isdigit() for part in key.split(".")[:-1]) for key in written.record), default=0)
    lines = [len(source.splitlines()) for source in (flat, written.source)]
    checkpoint = path.with_name("checkpoint.npz")
    equal = ""
    if checkpoint.exists():
        with np.load(checkpoint) as held:
            keys = {k for k in held.files if not k.startswith(("in_", "out_"))}
        equal = f"{len(keys & set(written.record))} of {len(written.record)}"
    classes = written.source.count("\nclass ")
    return f"| {path.parent.relative_to(MODELS)} | {lines[0]} | {lines[1]} | {classes} | {depth} | {equal} |"


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    rows = [row(path) for path in sorted(MODELS.glob("**/model.onnx")) if "contrib" not in path.parts]
    text = [
        "# Recovered modules",
        "",
        "Written by `python3 dev.py bench hierarchy`.",
        "",
        "| model | lines with `--flat` | lines | classes | depth | parameters named as in the state_dict |",
        "|---|---|---|---|---|---|",
        *rows,
        "",
    ]
    RESULTS.write_text("\n".join(text), encoding="utf-8")
    print("\n".join(text))


if __name__ == "__main__":
    main()
