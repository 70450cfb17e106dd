"""Models with activations in 8 bits lose no more than those of onnxruntime's quantizer from the same samples, on
samples that neither was calibrated on."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from emberlet.codegen.quantized.writing import Scheme
from emberlet.host.cli.quantize.rewritten import Static
from emberlet.host.cli.quantize.samples import fitted
from emberlet.host.quantization.calibration import METHODS
from emberlet.host.quantization.comparison import Comparison, classes, compare

from tools.networks.varied_classes import varied

ROOT = Path(__file__).resolve().parents[2]
DEVIATION = 0.01  # of the difference of two shares of 1,000 images, near 95 %; one standard error is about 0.007
quantization = pytest.importorskip("onnxruntime.quantization")


class Case(NamedTuple):
    """A model, samples to calibrate on and others to measure, the labels of these; how many classes the float model
    names at least."""

    model: onnx.ModelProto
    samples: Any
    held: Any
    labels: Any = None
    classes: int = 1


def digits() -> Case:
    with np.load(ROOT / "examples" / "digits" / "heldout.npz") as held:
        x = (held["images"] / 16).astype(np.float32)[:, None]
        model = onnx.load(ROOT / "examples" / "digits" / "digits.onnx")
        return Case(model, x[:100], x[100:], held["labels"][100:], 10)


def wake_word() -> Case:
    folder = ROOT / "examples" / "micro_wake_word"
    with np.load(folder / "calibration.npz") as held:
        x = held["features"].astype(np.float32)
        return Case(onnx.load(folder / "wake_word.onnx"), x[::2], x[1::2], None, 4)


def vision(name: str, classes: int = 1) -> Case:
    model = onnx.load(ROOT / "tests" / "models" / name / "model.onnx")
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim[1:]]
    x = np.random.default_rng(0).normal(size=(1032, *shape)).astype(np.float32)
    return Case(model, x[:32], x[32:], None, classes)


def residual_cnn() -> Case:
    case = vision("residual_cnn", 10)
    return case._replace(model=varied(case.model, case.samples))


CASES = {
    "digits": digits,
    "wake_word": wake_word,
    "vit": lambda: vision("vit", 9),
    "unet": lambda: vision("unet", 2),
    "residual_cnn": residual_cnn,
    "mobile_cnn": lambda: vision("mobile_cnn"),
}


def run(path: Path, x: Any) -> Any:
    """The outputs of onnxruntime, the axis of classes last."""
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    [name] = [i.name for i in session.get_inputs()]
    return np.moveaxis(np.concatenate([session.run(None, {name: x[k : k + 1]})[0] for k in range(len(x))]), 1, -1)


def theirs(case: Case, folder: Path, method: str) -> Any:
    """The outputs of onnxruntime's quantized model."""

    class Rows(quantization.CalibrationDataReader):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self.left = [{case.model.graph.input[0].name: x[None]} for x in case.samples]

        def get_next(self) -> Any:
            return self.left.pop() if self.left else None

    known = {"entropy": quantization.CalibrationMethod.Entropy, "percentile": quantization.CalibrationMethod.Percentile}
    quantization.quantize_static(
        folder / "float.onnx", folder / "theirs.onnx", Rows(), per_channel=True,
        weight_type=quantization.QuantType.QInt8, activation_type=quantization.QuantType.QUInt8,
        calibrate_method=known.get(method, quantization.CalibrationMethod.MinMax),
    )  # fmt: skip
    return run(folder / "theirs.onnx", case.held)


def ours(case: Case, folder: Path, method: str) -> Any:
    def fit(inputs: Any) -> Any:
        return fitted({inputs[0].name: case.samples}, inputs, {})

    source = Static(str(folder / "float.onnx"), "model", fit, method, 99.99, lambda _: None)
    source.choose(Scheme(8), False, fit(source.inputs), lambda _: None)
    model, _, _ = source.final(Scheme(8))
    step = case.model.graph.input[0].type.tensor_type.shape.dim[0].dim_value or 100
    parts = [case.held[k : k + step] for k in range(0, len(case.held), step)]
    return np.moveaxis(np.concatenate([np.asarray(model(x)) for x in parts]), 1, -1)


def both(name: str, folder: Path, method: str) -> tuple[Comparison, Comparison]:
    """(onnxruntime's, ours)"""
    case = CASES[name]()
    onnx.save(case.model, folder / "float.onnx")
    real = run(folder / "float.onnx", case.held)
    assert len(np.unique(classes(real))) >= case.classes
    a, b = (compare({"y": real}, {"y": of(case, folder, method)}, case.labels) for of in (theirs, ours))
    return a, b


@pytest.mark.parametrize("name", CASES)
def test_activations_in_8_bits_lose_no_more_than_onnxruntimes(name: str, tmp_path: Path) -> None:
    a, b = both(name, tmp_path, "minmax")
    assert b.same_best is not None
    assert a.same_best is not None
    assert b.same_best >= a.same_best - DEVIATION
    assert b.rms <= a.rms * 1.05
    if a.accuracy is not None:
        assert b.accuracy is not None
        assert b.accuracy >= a.accuracy


@pytest.mark.parametrize("method", METHODS[1:])
def test_every_method_names_the_classes_of_a_wake_word(method: str, tmp_path: Path) -> None:
    """As onnxruntime's method of the same name, or the extremes, does."""
    a, b = both("wake_word", tmp_path, method)
    assert b.same_best == a.same_best == 1
