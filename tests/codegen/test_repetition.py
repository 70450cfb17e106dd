"""Blocks found in files that name no modules: the code with classes is the flat code, value by value, and shorter."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from emberlet import dtypes, get_backend
from emberlet.codegen import load, weights
from emberlet.codegen.emit.instance import instantiate
from emberlet.codegen.emit.module import Written
from emberlet.codegen.generation import translate
from models.index import HERE, cases
from onnx import TensorProto, helper, numpy_helper
from support.nameless import stripped
from support.rows import every

ARCHITECTURES = HERE / "architectures"
NAMES = sorted(p.name.removesuffix(".onnx.gz") for p in ARCHITECTURES.glob("*.onnx.gz"))
SIZES = {"batch": 2, "length": 7, "past": 5, "past + length": 12}
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
HEAVY = ("bvlc_alexnet", "vgg19", "zfnet512")  # hundreds of megabytes of weights
# Files whose layers share weights, or are all different.
UNLIKE = {"albert"}
MOST_LINES = {"bert": 75, "llama": 100, "gpt2": 65, "resnet50": 90, "vit": 70, "t5_traced": 75, "whisper": 60}
MOST_LIGHT = {
    "densenet121": 80, "inception_v1": 110, "inception_v2": 170, "resnet50": 90, "shufflenet": 120, "squeezenet": 70
}  # fmt: skip


def _architecture(name: str) -> onnx.ModelProto:
    model = onnx.load_from_string(gzip.decompress((ARCHITECTURES / f"{name}.onnx.gz").read_bytes()))
    return stripped(model, seed=sum(map(ord, name)))


def _drawn_inputs(model: onnx.ModelProto, seed: int = 0) -> list[np.ndarray]:
    draw = np.random.default_rng(seed)
    held = {i.name for i in model.graph.initializer}
    found = []
    for i in model.graph.input:
        if i.name in held:
            continue
        t = i.type.tensor_type
        shape = [d.dim_value if d.HasField("dim_value") else SIZES.get(d.dim_param, 2) for d in t.shape.dim]
        if t.elem_type == TensorProto.INT64:
            mask = i.name in ("mask", "in1")
            found.append(np.ones(shape, np.int64) if mask else draw.integers(0, 40, shape))
        else:
            found.append(draw.standard_normal(shape).astype(np.float32))
    return found


def _written(model: onnx.ModelProto, flat: bool = False) -> Written:
    return translate(model, "net", weights_name="net.bpk", flat=flat)[1]


def _lines(model: onnx.ModelProto, flat: bool = False) -> list[str]:
    return _written(model, flat).source.splitlines()


def _results(written: Written, inputs: list[Any], backend: str = "numpy") -> list[bytes]:
    model = instantiate(written, "net", backend)
    model.load_record(weights.tensors(written.record, backend), layout="burn")
    got = model(*inputs)
    return [
        bytes(r.backend.to_bytes(r)) + repr((r.dtype, r.shape)).encode()
        for r in (got if isinstance(got, tuple) else (got,))
    ]


def _same_and_no_longer(model: onnx.ModelProto, inputs: list[Any]) -> tuple[list[str], list[str]]:
    """The lines of the code with classes and of the flat code, after checking that their results are equal."""
    written, flat = _written(model), _written(model, flat=True)
    lines, plain = written.source.splitlines(), flat.source.splitlines()
    assert len(lines) <= len(plain)
    if lines != plain:
        assert _results(written, inputs) == _results(flat, inputs)
    return lines, plain


@every("name", NAMES, share=8)
def test_an_architecture_without_names_has_its_layers_again(name: str) -> None:
    model = _architecture(name)
    lines, plain = _same_and_no_longer(model, _drawn_inputs(model))
    assert (len(lines) < 0.75 * len(plain)) is (name not in UNLIKE)
    assert len(lines) <= MOST_LINES.get(name, len(plain))


@pytest.mark.parametrize("backend", ["python", pytest.param("wgpu", marks=pytest.mark.needs("gpu-driver"))])
@pytest.mark.parametrize("name", ["distilbert_traced", "gpt2", "whisper"])
def test_an_architecture_without_names_computes_the_same_on_other_backends(name: str, backend: str) -> None:
    if backend == "wgpu":
        pytest.importorskip("wgpu")
    model = _architecture(name)
    inputs = _drawn_inputs(model)
    assert _results(_written(model), inputs, backend) == _results(_written(model, flat=True), inputs, backend)


@every("path", sorted({case.model for case in cases(contrib=False)}), share=8)
def test_a_model_of_the_tests_without_names_computes_the_same(path: Path) -> None:
    model = stripped(onnx.load(path))
    case = next(c for c in cases(contrib=False) if c.model == path)
    given = case.inputs()
    home = get_backend("numpy")
    order = [i.name for i in model.graph.input if i.name in given]
    tensors: Any = [
        home.from_bytes(given[n].tobytes(), dtypes.dtype(given[n].dtype.name), given[n].shape) for n in order
    ]
    _same_and_no_longer(model, tensors)


# -- the light models of the onnx package -----------------------------------------------------------------------------


def _light(name: str, drawn: bool = False) -> onnx.ModelProto:
    """A light model, whose weights are all one number in the file, or random ones if it is to be run."""
    model = onnx.load(LIGHT / f"light_{name}.onnx")
    if drawn:
        draw = np.random.default_rng(0)
        shapes = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
        for node in list(model.graph.node):
            if node.op_type == "ConstantOfShape":
                shape = tuple(shapes[node.input[0]])
                wide = max(1.0, np.prod(shape[1:]) ** 0.5)
                array = (draw.uniform(0.2, 1.0, shape) / wide * draw.choice((-1, 1), shape)).astype(np.float32)
                if len(shape) == 1:
                    array = np.abs(array)
                model.graph.initializer.append(numpy_helper.from_array(array, node.output[0]))
                model.graph.node.remove(node)
    return model


LIGHT_NAMES = sorted(p.stem.removeprefix("light_") for p in LIGHT.glob("light_*.onnx"))


@every("name", sorted(set(LIGHT_NAMES) - set(HEAVY)), share=3)
def test_a_light_model_is_its_blocks_and_computes_the_same(name: str) -> None:
    inputs = [np.random.default_rng(1).standard_normal((1, 3, 224, 224)).astype(np.float32)]
    lines, _ = _same_and_no_longer(_light(name, drawn=True), inputs)
    assert len(lines) <= MOST_LIGHT[name]
    if name == "densenet121":  # each layer's input is wider than the previous one's by that layer's outputs
        assert "[DenseLayer(n, backend=backend) for n in range(64, 256, 32)]" in "\n".join(lines)


@pytest.mark.parametrize("name", HEAVY)
def test_a_light_model_with_little_to_repeat_is_no_longer(name: str) -> None:
    assert len(_lines(_light(name))) <= len(_lines(_light(name), flat=True))


# -- published files of other exporters -------------------------------------------------------------------------------

EXPORTERS = {
    "basic_pitch_tf2onnx": 300, "magika_tf2onnx": 130, "ocr_detection_paddle": 310, "ocr_direction_paddle": 190,
    "ocr_recognition_paddle": 300, "silero_vad": 330, "silero_vad_16k": 145,
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(EXPORTERS))
def test_a_file_of_another_exporter_is_no_longer_than_flat(name: str) -> None:
    model = onnx.load_from_string(gzip.decompress((HERE / "exporters" / f"{name}.onnx.gz").read_bytes()))
    lines = _lines(model)
    assert len(lines) <= min(len(_lines(model, flat=True)), EXPORTERS[name])


def test_the_code_does_not_depend_on_the_order_of_sets(tmp_path: Path) -> None:
    """The output does not depend on string hashes: with and without names, with options, with caches."""
    files = [ARCHITECTURES / f"{n}.onnx.gz" for n in ("gpt2_cached_traced", "resnet50", "swin_traced")]
    program = (
        "import gzip, hashlib, sys\n"
        "from emberlet.codegen.generation import translate\n"
        "for path in sys.argv[1:]:\n"
        "    data = open(path, 'rb').read()\n"
        "    data = gzip.decompress(data) if path.endswith('.gz') else data\n"
        "    print(hashlib.sha256(translate(data, 'net')[1].source.encode()).hexdigest())\n"
    )
    (tmp_path / "bare.onnx").write_bytes(_architecture("qwen2").SerializeToString())
    said = set()
    for seed in ("0", "random"):
        command = [sys.executable, "-c", program, *map(str, files), str(tmp_path / "bare.onnx")]
        env = {**os.environ, "PYTHONHASHSEED": seed}
        said.add(subprocess.run(command, env=env, capture_output=True, text=True, check=True, encoding="utf-8").stdout)
    assert len(said) == 1


def test_weights_that_layers_share_are_stored_once() -> None:
    model = _architecture("albert")
    kept = translate(model, "net")[1].record
    flat = translate(model, "net", flat=True)[1].record
    assert sum(v.nbytes for v in kept.values()) == sum(v.nbytes for v in flat.values())


# -- files that have lost some of their names: equal weights are stored once, under the first layer's name -------------


def test_layers_whose_equal_norms_are_stored_once_are_a_loop_over_their_caches() -> None:
    written = translate(HERE / "llama" / "model.onnx", weights_name="w.bpk")[1]
    assert len(written.source.splitlines()) <= 80 and "class Layer(nn.Module)" in written.source
    assert "        for layer, cache in zip(self.layers, caches):\n" in written.source
    layers = "input_norm query key value project norm2 gate up down".split()
    named = ["embed_tokens.weight", "head.weight", "inv_freq", "norm.weight"]
    assert sorted(written.record) == sorted([*named, *(f"layers.{i}.{n}.weight" for i in range(2) for n in layers)])
    norms = [value for key, value in written.record.items() if "norm" in key]
    assert len(norms) == 5 and len({id(s) for s in weights.sources(dict(enumerate(norms)), False).values()}) == 1


def test_a_layer_stored_under_the_name_of_another_has_the_next_number() -> None:
    record = translate(HERE / "gpt" / "model.onnx")[1].record
    layers = "ln_1 c_attn c_proj ln_2 c_fc mlp_proj".split()
    assert {k.removesuffix(".weight") for k in record if k.startswith("h.") and k.endswith(".weight")} == {
        f"h.{i}.{n}" for i in range(2) for n in layers
    }


def test_a_layer_named_as_the_module_around_it_is_in_that_module() -> None:
    record = translate(HERE / "transformer_encoder" / "model.onnx")[1].record
    assert {k.rpartition(".")[0] for k in record if k.startswith("layers.layers.1.")} == {
        f"layers.layers.1.{n}" for n in ("self_attn.qkv", "self_attn.out_proj", "norm1", "linear1", "linear2", "norm2")
    }


def test_numbered_layers_of_one_class_load_by_their_names() -> None:
    said = json.loads(load(HERE / "unet" / "model.onnx", backend="numpy").SOURCES)
    assert said["down1.conv1.weight"] == {"name": "down1.0.weight"}
    assert said["mix1.conv2.bias"] == {"name": "mix1.3.bias"}


def test_a_model_in_which_nothing_repeats_is_as_it_was() -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "0"], ["1"]),
        helper.make_node("Tanh", ["1"], ["2"]),
        helper.make_node("MatMul", ["2", "3"], ["4"]),
        helper.make_node("Sigmoid", ["4"], ["y"]),
    ]
    draw = np.random.default_rng(0)
    held = [numpy_helper.from_array(draw.standard_normal((4, 4)).astype(np.float32), n) for n in ("0", "3")]
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", 4]) for n in "xy"]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    assert _lines(model) == _lines(model, flat=True)
