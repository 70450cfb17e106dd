"""Modules whose layers quantize their inputs to grids of their own: NumPy computes them as emberlet does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emberlet import asarray, codegen, nn
from emberlet import functional as F
from emberlet.errors import ArgumentError, UnsupportedError
from emberlet.host.cli.model import load
from emberlet.module.narrowing import PrecisionWarning
from emberlet.store.quantizing import multiplying

HELDOUT = Path(__file__).resolve().parents[2] / "examples" / "digits" / "heldout.npz"
RNG = np.random.default_rng(5)


def initialized(model: Any) -> Any:
    for param in model.params():
        param.val()
    return model


def mlp() -> tuple[Any, list[Any]]:
    """A network, and samples whose numbers depend on each other."""
    F.manual_seed(4)
    model = initialized(nn.Sequential(nn.Linear(24, 16), nn.Relu(), nn.Linear(16, 6)))
    mixed = RNG.normal(size=(24, 24)) * RNG.exponential(size=24)
    x = (RNG.normal(size=(40, 8, 24)) @ mixed).astype(np.float32)
    return model, [asarray(each) for each in x]


def rounded(x: Any, grid: tuple[float, int]) -> Any:
    """x as the uint8 of a grid, less the zero point."""
    scale, zero = grid
    return np.clip(np.rint(x / np.float32(scale)) + zero, 0, 255) - zero


def in_integers(layer: Any, x: Any, grid: tuple[float, int], factor: Any = 1.0) -> Any:
    """What a dense layer gives, in integers. layer: the packed one."""
    levels = np.asarray(layer.weight.values.val()).reshape(layer.d_output, -1)[:, : layer.d_input].astype(int) - 128
    sums = rounded(x * factor, grid) @ levels.T
    return sums * (np.float32(grid[0]) * np.asarray(layer.weight.scale.val())) + np.asarray(layer.bias.val())


@pytest.mark.parametrize("way", ["numpy", "python", "numpy compiled", "native compiled", "wasm compiled"])
def test_layers_multiply_the_integers_of_their_grids(way: str) -> None:
    model, samples = mlp()
    grids = {"0": (0.125, 131), "2": (0.03, 0)}
    assert model.quantize_weights(activations=grids) == ["0", "2"]
    x = np.asarray(samples[0])
    wanted = in_integers(model[2], np.maximum(in_integers(model[0], x, grids["0"]), 0), grids["2"])
    backend, _, compiled = way.partition(" ")
    made = model.fork(backend)
    run = made.compile(backend=backend) if compiled else made
    found = np.asarray(run(asarray(x, backend=backend)))
    # A number that lies between two levels may go to either.
    assert np.mean(np.isclose(found, wanted, rtol=1e-4, atol=1e-4)) > 0.9
    np.testing.assert_allclose(found, wanted, atol=4 * 0.03 * float(np.abs(np.asarray(model[2].weight.val())).max()))


def test_grids_from_samples_reach_from_the_smallest_to_the_largest_input() -> None:
    model, samples = mlp()
    seen = [np.concatenate([np.asarray(x) for x in samples])]
    seen.append(np.maximum(np.concatenate([np.asarray(model[0](x)) for x in samples]), 0))
    model.quantize_weights(activations="static", samples=samples)
    for layer, x in zip((model[0], model[2]), seen, strict=True):
        scale, zero = layer.input
        low, high = min(float(x.min()), 0.0), max(float(x.max()), 0.0)
        assert abs((0 - zero) * scale - low) <= scale and abs((255 - zero) * scale - high) <= scale


def errors(model: Any, wanted: list[Any], samples: list[Any]) -> float:
    return float(np.mean([np.square(np.asarray(model(x)) - y).mean() for x, y in zip(samples, wanted, strict=True)]))


@pytest.mark.parametrize("activations", ["static", "dynamic"])
@pytest.mark.parametrize("bits", [8, 4])
def test_gptq_loses_less_than_rounding_where_inputs_are_integers_too(bits: int, activations: str) -> None:
    model, samples = mlp()
    wanted = [np.asarray(model(x)) for x in samples]
    plain, better = model.clone(), model.clone()
    plain.quantize_weights(bits, activations=activations, samples=samples)
    better.quantize_weights(bits, method="gptq", activations=activations, samples=samples)
    assert better[0].input == plain[0].input
    assert errors(better, wanted, samples) < errors(plain, wanted, samples)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("activations", ["static", "dynamic"])
def test_the_onnx_file_has_the_integers_that_gptq_chose(activations: str, turned: bool, tmp_path: Path) -> None:
    """Their products with the samples are nearer to the float ones than those of weights rounded to the nearest, and
    onnxruntime computes what the module does."""
    onnx, onnxruntime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> net (float[n, 24] x) => (float[n, 6] y) { h = '
        + ("Gemm<transB = 1>(x, w)" if turned else "MatMul(x, w)") + " r = Relu(h) y = MatMul(r, v) }"
    )  # fmt: skip
    w, v = RNG.normal(size=(24, 16)), RNG.normal(size=(16, 6))
    for name, x in (("w", w.T if turned else w), ("v", v)):
        model.graph.initializer.append(onnx.numpy_helper.from_array(x.astype(np.float32), name))
    onnx.save(model, tmp_path / "net.onnx")
    x = np.concatenate([np.asarray(each) for each in mlp()[1]])
    off = []
    for weights in ("rtn", "gptq"):
        out = tmp_path / weights
        made, _ = codegen.quantize(tmp_path / "net.onnx", x, activations=activations, weights=weights, out=out)
        found = onnxruntime.InferenceSession(out / "net.onnx").run(None, {"x": x[:64]})[0]
        assert np.mean(np.isclose(np.asarray(made(x[:64])), found, rtol=1e-3, atol=1e-3 * np.abs(found).max())) > 0.9
        held = {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(out / "net.onnx").graph.initializer}
        levels = held["w_quantized"].astype(np.float64)
        real = (levels if levels.shape == w.shape else levels.T) * held["w_scale"]
        off.append(np.mean(np.square(x @ (real - w))))
    assert off[1] < 0.9 * off[0]


@pytest.mark.parametrize("activations", ["static", "dynamic"])
def test_awq_scales_inputs_before_they_become_integers(activations: str) -> None:
    model, samples = mlp()
    samples = [x * asarray(np.where(np.arange(24) % 7 == 0, 30, 1).astype(np.float32)) for x in samples]
    model.quantize_weights(method="awq", activations=activations, samples=samples)
    layer, x = model[0], np.asarray(samples[0])
    factor = np.asarray(layer.weight.input_scale.val())
    assert factor.min() < factor.max()
    if activations == "static":
        grid = layer.input
    else:
        low, high = min(float((x * factor).min()), 0.0), max(float((x * factor).max()), 0.0)
        scale = np.float32(high - low) / np.float32(255)
        grid = scale, int(np.clip(np.rint(-low / scale), 0, 255))
    found = np.asarray(layer(samples[0]))
    wanted = in_integers(layer, x, grid, factor)
    assert np.abs(found - wanted).max() <= 0.01 * np.abs(wanted).max()
    assert np.mean(np.isclose(found, wanted, rtol=1e-3, atol=1e-3)) > 0.9


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ("sometimes", UnsupportedError, "None, 'dynamic', 'static'"),
        ({"1": (0.1, 3)}, UnsupportedError, "these are 0, 2"),
        ({"0": (0.1, 300)}, ArgumentError, "zero point of input"),
        ({"0": (0.1, 3), "2": (-1.0, 3)}, ArgumentError, "scale of input"),
        ("static", UnsupportedError, "needs samples"),
    ],
    ids=str,
)  # fmt: skip
def test_other_activations_are_refused(given: Any, error: type[Exception], said: str) -> None:
    model = mlp()[0]
    with pytest.raises(error, match=said):
        model.quantize_weights(activations=given)
    assert [type(layer) for _, layer in multiplying(model)] == [nn.Linear, nn.Linear]


def test_inputs_of_bfloat16_have_ranges_and_those_with_nan_none() -> None:
    x = np.random.default_rng(3).normal(size=(4, 8)).astype(np.float32)
    found = []
    for dtype in ("float32", "bfloat16"):
        model = initialized(nn.Sequential(nn.Linear(8, 8))).cast(dtype)
        model.quantize_weights(activations="static", samples=[asarray(x).astype(dtype)])
        found.append(model[0].input)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-2, atol=1)
    model = initialized(nn.Sequential(nn.Linear(8, 8)))
    model.quantize_weights(method="gptq", activations="static", samples=(each for each in [asarray(x)]))
    assert model[0].input == found[0]
    model = initialized(nn.Sequential(nn.Linear(8, 8)))
    with pytest.warns(PrecisionWarning, match="inputs of 0 become NaN"):
        model.quantize_weights(activations="static", samples=[asarray(x), asarray(x * np.float32("nan"))])
    assert model[0].input is None


def digits() -> tuple[Any, Any]:
    with np.load(HELDOUT) as file:
        return (file["images"] / 16).astype(np.float32)[:, None], file["labels"]


@pytest.mark.parametrize(
    "named",
    [{}, {"method": "mse"}, {"weights": "gptq", "correct_bias": True}, {"weights": "awq"}, {"keep": ["fc1"]}],
    ids=str,
)
def test_a_generated_module_says_the_grids_of_its_layers(named: dict[str, Any], tmp_path: Path) -> None:
    images, labels = digits()
    codegen.generate(HELDOUT.parent / "digits.onnx", tmp_path / "wide")
    model, report = codegen.quantize(
        tmp_path / "wide" / "digits.py", images[:100], labels=labels[:100], activations="static", out=tmp_path / "out",
        **named,
    )  # fmt: skip
    assert report.activations == named.get("method", "minmax")
    assert report.before > (1.1 if "keep" in named else 3) * report.after
    text = (tmp_path / "out" / "digits.py").read_text("utf-8")
    names = [n for n in ("conv1", "conv2", "fc1", "fc2") if n not in named.get("keep", ())]
    assert [line.split('"')[1] for line in text.splitlines() if line.startswith(" " * 16 + '"')] == names
    loaded = load(str(tmp_path / "out" / "digits.py"), "numpy").model
    held = images[100:]
    found = np.asarray(loaded(held))
    np.testing.assert_array_equal(found, np.asarray(model(held)))
    assert np.mean(found.argmax(1) == labels[100:]) >= 0.985
    compiled = np.asarray(loaded.compile(backend="numpy")(held))
    np.testing.assert_allclose(compiled, found, rtol=1e-4, atol=1e-3)


def test_layers_of_lists_and_attention_have_grids_of_their_own(tmp_path: Path) -> None:
    """Each block of a transformer, whose layers are made in one line."""
    folder = Path(__file__).resolve().parents[1] / "models" / "vit"
    codegen.generate(folder / "model.onnx", tmp_path, name="vit")
    with np.load(next(folder.glob("case*.npz"))) as held:
        shape = next(held[key].shape for key in held.files if key.startswith("in_"))
    x = np.random.default_rng(0).normal(size=(24, *shape[1:])).astype(np.float32)
    model, report = codegen.quantize(tmp_path / "vit.py", x, activations="static")
    assert report.comparison.rms < 0.02
    grids = {name: layer.input for name, layer in multiplying(model)}
    assert all(grids.values()) and len(set(grids.values())) > 4
    assert any("." in name for name in grids)
