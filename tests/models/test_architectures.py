"""Small exports of many public architectures: they compute what onnxruntime does, and keep the names of the source."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from emberlet.codegen import load
from emberlet.codegen.generation import translate

HERE = Path(__file__).parent / "architectures"
NAMES = sorted(p.name.removesuffix(".onnx.gz") for p in HERE.glob("*.onnx.gz"))
SIZES = {"batch": 2, "length": 7, "past": 5, "past + length": 12}
# A batch normalization that is folded into a convolution has no names of its own, and a table that is computed from
# parameters before the model runs has another. ALBERT's layers share weights, which TorchScript names after their uses.
FEW_NAMES = {"resnet50", "resnet50_traced", "swin_traced", "yolos", "timm_convnext_traced", "timm_regnety"}
FEW_NAMES |= {f"timm_{name}{how}" for name in ("efficientnet", "mobilenetv3") for how in ("", "_traced")}


def _model(name: str) -> bytes:
    return gzip.decompress((HERE / f"{name}.onnx.gz").read_bytes())


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


@pytest.mark.parametrize("name", NAMES)
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


@pytest.mark.parametrize("name", ["distilbert_traced", "electra", "gpt2_cached_traced", "opt", "vit_traced"])
def test_plain_python_computes_with_classes_what_it_does_without(name: str) -> None:
    data = _model(name)
    inputs = _inputs(onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]))
    results = []
    for flat in (False, True):
        got = load(data, backend="python", name=name, flat=flat)(*inputs.values())
        results.append([bytes(r.backend.to_bytes(r)) for r in (got if isinstance(got, tuple) else (got,))])
    assert results[0] == results[1]


@pytest.mark.parametrize("name", NAMES)
def test_parameters_have_the_names_of_the_source(name: str) -> None:
    keys = set(json.loads((HERE / f"{name}.json").read_text(encoding="utf-8")))
    record = translate(_model(name), name)[1].record
    if name not in FEW_NAMES:
        assert len(keys & set(record)) >= 0.95 * len(record)


@pytest.mark.parametrize("name", sorted(FEW_NAMES))
def test_the_names_that_are_missing_are_not_in_the_file(name: str) -> None:
    """Every weight that the file holds under its source's name has that name in the record. What else the source has,
    the exporter merged into others: statistics of folded normalizations, tables that positions were looked up in."""
    keys = set(json.loads((HERE / f"{name}.json").read_text(encoding="utf-8")))
    held = {i.name for i in onnx.load_from_string(_model(name)).graph.initializer}
    record = set(translate(_model(name), name)[1].record)
    assert keys & held <= record
    words = ("normalization", "position", "bn", "gamma")  # gamma: timm's scale of a layer, reshaped
    assert all(any(w in key for w in words) for key in keys - record)


def test_repeated_layers_are_a_class() -> None:
    """Transformers of any depth are shorter than this."""
    for name in ("bert", "bert_traced", "llama", "llama_traced", "gpt2", "vit", "qwen2", "mistral_traced", "phi"):
        assert len(translate(_model(name), name, weights_name="w.bpk")[1].source.splitlines()) <= 110, name
