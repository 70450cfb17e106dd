"""codegen.quantize: the command `emberlet quantize` as a call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from emberlet import codegen
from emberlet.errors import EmberletError
from emberlet.host.quantization.report import Time, slower
from support.onnx_models import parse

HELDOUT = Path(__file__).resolve().parents[2] / "examples" / "digits" / "heldout.npz"


@pytest.fixture(scope="module")
def held() -> tuple[Any, Any]:
    with np.load(HELDOUT) as file:
        return (file["images"][:64] / 16).astype(np.float32)[:, None], file["labels"][:64]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ([], {}),
        (["--activations", "--method", "mse"], {"activations": "static", "method": "mse"}),
        (["--activations", "dynamic", "--keep", "fc2"], {"activations": "dynamic", "keep": ["fc2"]}),
        (
            ["--bits", "4", "--scheme", "affine,32,float16", "--weights", "gptq,bias", "--keep-worst", "1"],
            {"bits": 4, "mode": "affine", "level": 32, "scale_dtype": "float16", "weights": "gptq",
             "correct_bias": True, "keep_worst": 1},
        ),
        (["--onnx", "nbits", "--weights", "equalize"], {"onnx": "nbits", "equalize": True}),
        (["--activations", "--weights", "gptq", "--onnx", "qoperator"],
         {"activations": "static", "weights": "gptq", "onnx": "qoperator"}),
    ],
    ids=["weights", "static", "dynamic", "gptq", "onnx", "operators"],
)  # fmt: skip
def test_the_call_writes_and_reports_what_the_command_does(
    words: list[str], named: dict[str, Any], held: tuple[Any, Any], digits: Path, tmp_path: Path, emberlet: Any
) -> None:
    images, labels = held
    np.savez(tmp_path / "data.npz", image=images, label=labels)
    said = emberlet("quantize", digits, "--calibration", tmp_path / "data.npz", "--labels", "label", "--out",
                    tmp_path / "a", "--time", "none", "--json", *words)  # fmt: skip
    assert said.status == 0, said.err
    model, report = codegen.quantize(digits, {"image": images}, labels=labels, out=tmp_path / "b", **named)
    assert json.loads(json.dumps(report.as_json())) == json.loads(said.out)
    files = {p.name: p.read_bytes() for p in (tmp_path / "a").iterdir()}
    assert files == {p.name: p.read_bytes() for p in (tmp_path / "b").iterdir()}
    right = np.mean(np.asarray(model(images)).argmax(1) == labels)
    np.testing.assert_allclose(right, report.comparison.accuracy)


@pytest.mark.parametrize("activations", [None, "dynamic"])
def test_quantized_activations_are_timed_beside_weights_alone(
    activations: str | None, held: tuple[Any, Any], digits: Path
) -> None:
    _, report = codegen.quantize(digits, {"image": held[0]}, activations=activations, backends=["numpy"])
    [time] = report.times
    assert (time.weights is not None) == (activations is not None) == ("weights alone ms" in str(report))


@pytest.mark.parametrize(
    ("time", "said"),
    [
        (Time("numpy", 1.0, 1.2, weights=1.0), "numpy: 1.20 of the float time; weights alone take 1.00 of it"),
        (Time("numpy", 1.0, 1.2, weights=1.1), "use the float model"),
        (Time("wasm", 1.0, 0.9, weights=1.0), None),
        (Time("native", 1.0, 1.2), None),  # of weights alone, which are the model itself
        (Time("wgpu", None, None, "no driver"), None),
    ],
)
def test_the_report_says_where_activations_in_float_are_faster(time: Time, said: str | None) -> None:
    found = slower([time])
    assert len(found) == (said is not None)
    assert said is None or said in found[0]


def test_outputs_of_bfloat16_are_compared_and_nan_in_the_float_model_is_said(tmp_path: Path) -> None:
    x = np.linspace(-2, 2, 64, dtype=np.float32).reshape(16, 4)
    for name, first in (("numbers", "0.3"), ("nan", "nan")):
        model = parse(f"""net (float[n, 4] x) => (bfloat16[n, 3] y)
            <float[4, 3] w = {{{first}, 1, 2, -0.7, 3, 0.1, 5, 0.9, 2.2, 1, 4, -3}}>
            {{ h = MatMul(x, w) y = Cast<to = 16>(h) }}""")
        onnx.save(model, tmp_path / "m.onnx")
        _, report = codegen.quantize(tmp_path / "m.onnx", x, bits=2)
        assert report.comparison.rms > 0.01
        assert any("y holds NaN" in note for note in report.notes) == (name == "nan")


@pytest.mark.parametrize("activations", [None, "static"])
def test_rows_of_a_batch_of_one_beside_rows_that_are_whole_inputs(activations: str | None, tmp_path: Path) -> None:
    text = """net (float[1, 4] x, float[2, 1, 4] h) => (float[1, 3] y)
        <float[4, 3] w = {1, 2, 3, 4, 5, -6, 7, 8, -9, 1, 2, 4}>
        { m = ReduceSum<keepdims = 0>(h) s = Add(x, m) y = MatMul(s, w) }"""
    onnx.save(parse(text), tmp_path / "m.onnx")
    rng = np.random.default_rng(5)
    x, h = (rng.normal(size=shape).astype(np.float32) for shape in ((20, 4), (20, 2, 1, 4)))
    model, report = codegen.quantize(tmp_path / "m.onnx", {"x": x, "h": h}, activations=activations)
    w = np.array([1, 2, 3, 4, 5, -6, 7, 8, -9, 1, 2, 4]).reshape(4, 3)
    wanted = (x[3:4] + h[3].sum()) @ w
    assert report.samples == 20
    np.testing.assert_allclose(np.asarray(model(x[3:4], h[3])), wanted, atol=0.02 * np.abs(wanted).max() + 0.5)


def test_a_generated_module_and_the_array_of_its_only_input(
    held: tuple[Any, Any], digits: Path, tmp_path: Path
) -> None:
    codegen.generate(digits, tmp_path)
    told: list[str] = []
    model, report = codegen.quantize(tmp_path / "digits.py", held[0], bits=4, backends=["numpy"], tell=told.append)
    assert report.comparison.same_best is not None and report.comparison.same_best > 0.9
    assert [t.backend for t in report.times] == ["numpy"] and told
    assert model.fc1.bits == 4 and not (tmp_path / "digits.quantized.html").exists()


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"activations": "statically"}, "static, dynamic, found 'statically'"),
        ({"weights": "best"}, "rtn, gptq, awq, found 'best'"),
        ({"method": "mse"}, 'activations="static"'),
        ({"activations": "static", "onnx": "nbits"}, "qdq or qoperator"),
        ({"onnx": "qoperator"}, "add static activations"),
        ({"activations": "dynamic", "bits": 4}, "leave out bits"),
        ({"activations": "static", "percentile": 5}, "more than 50"),
        ({"keep": ["fc9"]}, "conv1, conv2, fc1, fc2"),
        ({"keep_worst": -1}, "0 or more"),
        ({"labels": [1, 2]}, "'labels': 2"),
        ({"samples": {}}, "found none"),
        ({"samples": {"image": np.zeros((4, 1, 8, 8)), "other": np.zeros(3)}}, "'other': 3"),
        ({"samples": {"image": np.zeros((4, 3), np.float32)}}, "image"),
        ({"backends": ["nunpy"]}, "no backend 'nunpy'"),
        ({"backends": "nunpy"}, "no backend 'nunpy'"),
        ({"keep": "fc9"}, "conv1, conv2, fc1, fc2"),
        ({"onnx": "nbits", "bits": 4, "level": 32}, "leave out onnx"),
        ({"level": "row"}, "'tensor', 'channel'"),
    ],
    ids=str,
)
def test_what_cannot_be_done_is_refused_with_a_way_out(
    named: dict[str, Any], said: str, held: tuple[Any, Any], digits: Path
) -> None:
    samples = named.get("samples", held[0])
    more = {key: value for key, value in named.items() if key != "samples"}
    with pytest.raises(EmberletError) as caught:
        codegen.quantize(digits, samples, **more)
    assert said in str(caught.value)


def test_a_folder_with_a_users_work_stays(held: tuple[Any, Any], digits: Path, tmp_path: Path) -> None:
    (tmp_path / "digits.py").write_text("mine = 1\n", "utf-8")
    with pytest.raises(EmberletError):
        codegen.quantize(digits, held[0], out=tmp_path)
    assert (tmp_path / "digits.py").read_text("utf-8") == "mine = 1\n"
    codegen.quantize(digits, held[0], out=tmp_path, force=True)
    assert "quantize_weights(bits=8)" in (tmp_path / "digits.py").read_text("utf-8")


@pytest.mark.parametrize("activations", ["static", "dynamic"])
@pytest.mark.parametrize("shape", [(8, 8), (12, 6)], ids=str)
def test_a_weight_that_is_read_both_ways_has_integers_for_each(
    activations: str, shape: tuple[int, int], tmp_path: Path
) -> None:
    draw = np.random.default_rng(1)
    w = onnx.numpy_helper.from_array(draw.normal(size=shape).astype(np.float32) * np.float32(0.3), "w")
    model = parse(f"net (float[n, {shape[0]}] x) => (float[n, {shape[0]}] y)"
                  " { h = MatMul(x, w) r = Relu(h) y = Gemm<transB = 1>(r, w) }")  # fmt: skip
    model.graph.initializer.append(w)
    onnx.save(model, tmp_path / "tied.onnx")
    x = draw.normal(size=(64, shape[0])).astype(np.float32)
    for weights in ("rtn", "gptq"):
        _, report = codegen.quantize(tmp_path / "tied.onnx", x, weights=weights, activations=activations)
        assert report.comparison.rms < 0.01
