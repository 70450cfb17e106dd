"""Small exports of many public architectures: they compute what onnxruntime does, and keep the names of the source."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from emberlet.codegen import load
from emberlet.codegen.generation import translate
from support.rows import every

HERE = Path(__file__).parent / "architectures"
NAMES = sorted(p.name.removesuffix(".onnx.gz") for p in HERE.glob("*.onnx.gz"))
SIZES = {"batch": 2, "length": 7, "past": 5, "past + length": 12}
# The exporter looked up the biases of all positions in tables, and wrote the results. onnxruntime drops what says where
# the matrices are that the exporter transposed.
FEW_NAMES = {"swin_traced", "qwen2_optimized"}


def _model(name: str) -> bytes:
    return gzip.decompress((HERE / f"{name}.onnx.gz").read_bytes())


@cache
def _record(name: str) -> dict[str, Any]:
    """The weights of the generated module by name."""
    return translate(_model(name), name)[1].record


def _inputs(session: onnxruntime.InferenceSession) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    found = {}
    for i in session.get_inputs():
        shape = [d if isinstance(d, int) else SIZES[d] for d in i.shape]
        if i.name in ("mask", "in1"):
            found[i.name] = np.ones(shape, np.int64)
            found[i.name][1, :3] = 0
        elif i.type == "tensor(int64)":
            found[i.name] = random.integers(0, 40, shape)
        else:
            found[i.name] = random.standard_normal(shape).astype(np.float32)
    return found


@every("name", NAMES, share=4)
def test_an_architecture_computes_what_onnxruntime_does(name: str) -> None:
    data = _model(name)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    inputs = _inputs(session)
    want = session.run(None, inputs)
    results = []
    for flat in (False, True):
        got = load(data, backend="numpy", name=name, flat=flat)(*inputs.values())
        pairs = zip(got if len(want) > 1 else (got,), want, strict=True)
        results.append([np.array(r.tolist(), w.dtype) for r, w in pairs])
    for classes, plain, w in zip(*results, want, strict=True):
        assert classes.tobytes() == plain.tobytes()
        assert np.abs(classes - w).max() <= 1e-4 * max(1.0, np.abs(w).max())


@every("name", ["distilbert_traced", "electra", "gpt2_cached_traced", "opt", "vit_traced"], share=3)
def test_plain_python_computes_with_classes_what_it_does_without(name: str) -> None:
    data = _model(name)
    inputs = _inputs(onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]))
    results = []
    for flat in (False, True):
        got = load(data, backend="python", name=name, flat=flat)(*inputs.values())
        results.append([bytes(r.backend.to_bytes(r)) for r in (got if isinstance(got, tuple) else (got,))])
    assert results[0] == results[1]


def _keys(name: str) -> set[str]:
    return set(json.loads((HERE / f"{name}.json").read_text(encoding="utf-8")))


def _folded_biases(keys: set[str], record: set[str]) -> set[str]:
    """Biases of layers without one in the source: the exporter folded a batch normalization into the layer."""
    new = {key for key in record - keys if key.endswith(".bias") and f"{key[:-5]}.weight" in keys}
    norms = sum(key.endswith(".running_mean") for key in keys)
    assert len(new) <= norms
    return new


@every("name", NAMES, share=2)
def test_parameters_have_the_names_of_the_source(name: str) -> None:
    """All but the biases that come from a folded batch normalization, which the source does not have."""
    keys, record = _keys(name), set(_record(name))
    counted = record - _folded_biases(keys, record)
    assert (len(keys & counted) >= 0.95 * len(counted)) is (name not in FEW_NAMES)


@pytest.mark.parametrize("name", [n for n in NAMES if n in FEW_NAMES or any("running" in key for key in _keys(n))])
def test_the_names_that_are_missing_are_not_in_the_file(name: str) -> None:
    """Every weight that the file holds under its source's name has that name in the record. What else the source has,
    the exporter merged into others: statistics of folded normalizations, tables that positions were looked up in."""
    keys = _keys(name)
    held = {i.name for i in onnx.load_from_string(_model(name)).graph.initializer}
    record = set(_record(name))
    assert keys & held <= record
    # The last two are not used when these models run.
    words = ["norm", "position", "bn", "masked_spec_embed", "pos_conv_embed"]
    words += ["proj.weight", "lm_head"] if name == "qwen2_optimized" else []
    assert all(any(w in key for w in words) for key in keys - record)


def test_constants_without_a_name_are_named_after_their_use() -> None:
    """A layer scale, which the exporter broadcast and renamed, is timm's vector `gamma`; a table added to a sequence is
    `position_embeddings`."""
    record = _record("timm_convnext_traced")
    assert {k: v.shape for k, v in record.items() if k.endswith("gamma")}["stages.2.blocks.1.gamma"] == (12,)
    for name, key in (("dinov2_traced", "embeddings.position_embeddings"), ("whisper", "position_embeddings")):
        assert key in _record(name)
    swin = _record("swin_traced")
    assert {k.rpartition(".")[2] for k in swin if ".blocks.1.attention." in k} >= {"mask", "bias"}


def test_repeated_layers_are_a_class() -> None:
    """Transformers of any depth are shorter than this."""
    for name in ("bert", "bert_traced", "llama", "llama_traced", "gpt2", "vit", "qwen2", "mistral_traced", "phi"):
        assert len(translate(_model(name), name, weights_name="w.bpk")[1].source.splitlines()) <= 110, name


@pytest.mark.parametrize(
    ("name", "most"),
    [("bert", 90), ("llama_traced", 90), ("qwen2", 70), ("resnet50", 90), ("resnet50_traced", 90),
     ("timm_regnety", 120), ("timm_vit", 75)],
)  # fmt: skip
def test_blocks_are_a_class_in_files_that_onnxruntime_optimized(name: str, most: int) -> None:
    """The optimizer removes all metadata and renames the nodes that it fuses. Only names of weights are left, and a
    block's sum and its activation have no weights."""
    assert len(translate(_model(f"{name}_optimized"), name, weights_name="w.bpk")[1].source.splitlines()) <= most
