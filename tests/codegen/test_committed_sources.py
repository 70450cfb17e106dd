"""Code generated from seven models that differ, compared with committed files for people to read: its names, its
order, its classes and its layout.

UPDATE_SNAPSHOTS=1 writes the files anew. Read the difference before committing it.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import onnx
import pytest
from emberlet.codegen.generation import translate
from models.index import HERE
from support.nameless import stripped

from tools.paths import ROOT

SNAPSHOTS = Path(__file__).parent / "snapshots"
MODELS = {
    "flat": "digits",
    "modules": "detector modules/llama modules/resnet50 unet",
    "named": "gpt2_cached_traced",
    "nameless": "albert",
}
"""An example, and exports that name their modules, of which some are of several classes, or have lost their names."""


def _export(name: str) -> bytes:
    if name == "digits":
        return (ROOT / "examples" / name / f"{name}.onnx").read_bytes()
    folder = HERE / name
    if folder.is_dir():
        return (folder / "model.onnx").read_bytes()
    (file,) = HERE.rglob(f"{name}.onnx.gz")
    return gzip.decompress(file.read_bytes())


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in MODELS.items() for name in names.split()])
def test_an_export_reads_as_the_committed_one(kind: str, name: str) -> None:
    model = onnx.load_from_string(_export(name))
    name = name.rpartition("/")[2]
    if kind == "nameless":
        model = stripped(model, seed=sum(map(ord, name)))
    source = translate(model, name, weights_name=f"{name}.bpk")[1].source
    file = SNAPSHOTS / kind / f"{name}.py"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(source, encoding="utf-8")
    assert source == file.read_text(encoding="utf-8")
