"""Code generated from real exports, compared with committed files: its names, its order, its classes and its layout.

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

SNAPSHOTS = Path(__file__).parent / "snapshots"
# Exports that name their modules, and those that differ most without names.
NAMED = (
    "bart_traced conformer_traced deberta_traced gpt2_cached_traced llama_cached_traced segformer_traced silero_vad "
    "swin_traced t5_traced timm_mobilenetv3_traced timm_regnety wav2vec2 ocr_direction_paddle"
).split()
NAMELESS = (
    "albert bart_traced gpt2_cached_traced llama_cached_traced segformer_traced swin_traced timm_efficientnet_traced "
    "basic_pitch_tf2onnx"
).split()


def _export(name: str) -> bytes:
    (file,) = HERE.rglob(f"{name}.onnx.gz")
    return gzip.decompress(file.read_bytes())


def _compare(source: str, file: Path) -> None:
    if os.environ.get("UPDATE_SNAPSHOTS"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(source, encoding="utf-8")
    assert source == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMED)
def test_an_export_reads_as_the_committed_one(name: str) -> None:
    source = translate(_export(name), name, weights_name=f"{name}.bpk")[1].source
    _compare(source, SNAPSHOTS / "named" / f"{name}.py")


@pytest.mark.parametrize("name", NAMELESS)
def test_an_export_without_names_reads_as_the_committed_one(name: str) -> None:
    model = stripped(onnx.load_from_string(_export(name)), seed=sum(map(ord, name)))
    source = translate(model, name, weights_name=f"{name}.bpk")[1].source
    _compare(source, SNAPSHOTS / "nameless" / f"{name}.py")
