"""Models with activations in 8 bits lose no more than those of onnxruntime's quantizer from the same samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from emberlet.host.cli.quantize.models import Static
from emberlet.host.cli.quantize.samples import fitted
from emberlet.host.quantization.comparison import compare

ROOT = Path(__file__).resolve().parents[2]
quantization = pytest.importorskip("onnxruntime.quantization")


def digits() -> tuple[Path, Any, Any]:
    with np.load(ROOT / "examples" / "digits" / "heldout.npz") as held:
        x = (held["images"] / 16).astype(np.float32)[:, None]
        return ROOT / "examples" / "digits" / "digits.onnx", x, held["labels"]


def wake_word() -> tuple[Path, Any, None]:
    folder = ROOT / "examples" / "micro_wake_word"
    with np.load(folder / "calibration.npz") as held:
        return folder / "wake_word.onnx", held["features"].astype(np.float32), None


def vision(name: str) -> tuple[Path, Any, None]:
    path = ROOT / "tests" / "models" / name / "model.onnx"
    shape = [d.dim_value for d in onnx.load(path).graph.input[0].type.tensor_type.shape.dim[1:]]
    return path, np.random.default_rng(0).normal(size=(32, *shape)).astype(np.float32), None


def theirs(path: Path, x: Any, target: Path) -> Any:
    import onnxruntime

    name = onnx.load(path).graph.input[0].name

    class Rows(quantization.CalibrationDataReader):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self.left = [x[k : k + 1] for k in range(len(x))]

        def get_next(self) -> Any:
            return {name: self.left.pop()} if self.left else None

    kinds = {"weight_type": quantization.QuantType.QInt8, "activation_type": quantization.QuantType.QUInt8}
    quantization.quantize_static(str(path), str(target), Rows(), per_channel=True, **kinds)
    found = []
    for file in (path, target):
        session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
        found.append(np.concatenate([session.run(None, {name: x[k : k + 1]})[0] for k in range(len(x))]))
    return found


@pytest.mark.parametrize("made", [digits, wake_word, lambda: vision("residual_cnn"), lambda: vision("mobile_cnn")],
                         ids=["digits", "wake_word", "residual_cnn", "mobile_cnn"])  # fmt: skip
def test_activations_in_8_bits_lose_no_more_than_onnxruntimes(made: Any, tmp_path: Path) -> None:
    from emberlet.codegen.quantized.writing import Scheme

    path, x, labels = made()
    real, wanted = theirs(path, x, tmp_path / "theirs.onnx")

    def fit(inputs: Any) -> Any:
        return fitted({inputs[0].name: x}, inputs, {})

    source = Static(str(path), "model", fit, "minmax", 99.99, lambda _: None)
    source.choose(Scheme(8), False, fit(source.inputs), lambda _: None)
    model, _, _ = source.final(Scheme(8))
    found = np.concatenate([np.asarray(model(x[k : k + 1])) for k in range(len(x))])
    flat = [y.reshape(len(x), -1) for y in (real, wanted, found)]
    a, b = (compare({"y": flat[0]}, {"y": y}, labels) for y in flat[1:])
    assert b.same_best >= a.same_best
    assert b.rms <= a.rms * 1.05
    if labels is not None:
        assert b.accuracy is not None and a.accuracy is not None and b.accuracy >= a.accuracy
