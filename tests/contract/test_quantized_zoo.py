"""Models quantized by onnxruntime's own quantizer, in all of its formats, give onnxruntime's results on every way.

They are made when the test runs: dynamic quantization, QDQ and QOperator, of 8 and 16 bits, signed and unsigned, for
each tensor and for each channel, over the models of the tests; and MatMulNBits of 4 and 8 bits. An output may be off
by 3 % of the largest magnitude, and 1 % in the mean: a value halfway between two levels may be rounded to either, and
later layers amplify that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.draws import draw, some

from contract.model_ways import MODEL_WAYS
from tools.components import require

quantization = pytest.importorskip("onnxruntime.quantization")
ROOT = Path(__file__).resolve().parents[2]
MODELS = {
    "digits": ROOT / "examples" / "digits" / "digits.onnx",
    "mobile_cnn": ROOT / "tests" / "models" / "mobile_cnn" / "model.onnx",
    "residual_cnn": ROOT / "tests" / "models" / "residual_cnn" / "model.onnx",
    "vit": ROOT / "tests" / "models" / "vit" / "model.onnx",
    "lstm_stack": ROOT / "tests" / "models" / "lstm_stack" / "model.onnx",
}
MOST, MEAN = 0.03, 0.01
# The larger models: without backends that take too long, and without the fronts.
FEW = [way for way, (backend, _) in MODEL_WAYS.items()
       if way.startswith(("eager", "compiled")) and backend not in ("python", "wgpu")]  # fmt: skip


def _static(form: str, activation: str, weight: str, per_channel: bool) -> Callable[[Path, Path, Any], None]:
    def make(source: Path, target: Path, arrays: Any) -> None:
        class Reader(quantization.CalibrationDataReader):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                self.left = [arrays]

            def get_next(self) -> Any:
                return self.left.pop() if self.left else None

        quantization.quantize_static(
            str(source), str(target), Reader(), quant_format=getattr(quantization.QuantFormat, form),
            activation_type=getattr(quantization.QuantType, activation),
            weight_type=getattr(quantization.QuantType, weight), per_channel=per_channel,
        )  # fmt: skip

    return make


def _dynamic(weight: str, per_channel: bool) -> Callable[[Path, Path, Any], None]:
    def make(source: Path, target: Path, arrays: Any) -> None:
        kind = getattr(quantization.QuantType, weight)
        quantization.quantize_dynamic(str(source), str(target), weight_type=kind, per_channel=per_channel)

    return make


FORMATS: dict[str, Callable[[Path, Path, Any], None]] = {
    "QDQ uint8": _static("QDQ", "QUInt8", "QUInt8", False),
    "QDQ int8 for each channel": _static("QDQ", "QInt8", "QInt8", True),
    "QDQ int16": _static("QDQ", "QInt16", "QInt8", False),
    "QDQ uint16": _static("QDQ", "QUInt16", "QUInt8", False),
    "QOperator uint8": _static("QOperator", "QUInt8", "QUInt8", False),
    "QOperator int8 for each channel": _static("QOperator", "QUInt8", "QInt8", True),
    "dynamic uint8": _dynamic("QUInt8", False),
    "dynamic int8": _dynamic("QInt8", False),
    "dynamic int8 for each channel": _dynamic("QInt8", True),
}


# Digits in three formats take every way, others in each run.
ON_EVERY_WAY = some(sorted(FORMATS), 3, __name__)


@cache
def _inputs(name: str) -> dict[str, Any]:
    """Arrays for a model's inputs: those of its first case, or drawn ones."""
    cases = sorted(MODELS[name].parent.glob("case*.npz"))
    if cases and name != "digits":
        with np.load(cases[0]) as found:
            return {k.removeprefix("in_"): found[k] for k in found.files if k.startswith("in_")}
    return {"image": np.random.default_rng(0).random((1, 1, 8, 8)).astype(np.float32)}


def _theirs(path: Path, arrays: dict[str, Any]) -> list[Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, arrays))


def _held(path: Path, arrays: dict[str, Any], ways: Iterable[str] = MODEL_WAYS) -> None:
    wanted = _theirs(path, arrays)
    for name in ways:
        backend, way = MODEL_WAYS[name]
        if backend == "wgpu" and not _has_gpu():
            continue
        found = way(path, dict(arrays))
        assert len(found) == len(wanted), name
        for got, want in zip(found, wanted, strict=True):
            assert got.shape == want.shape and got.dtype == want.dtype, (path.name, name)
            off = np.abs(np.asarray(got, np.float64) - want)
            size = float(np.abs(want).max(initial=1e-6))
            assert off.max(initial=0.0) <= MOST * size and off.mean() <= MEAN * size, (
                path.name,
                name,
                off.max() / size,
                off.mean() / size,
            )


@cache
def _has_gpu() -> bool:
    require("gpu-driver")
    return True


@pytest.mark.parametrize("form", FORMATS)
def test_quantized_models_give_onnxruntimes_results_on_every_way(form: str, tmp_path: Path) -> None:
    """Of one of the models on few ways, of digits on all of them in some formats; drawn anew in each run."""
    # Attention in QDQ takes long to generate: in one format.
    fit = [name for name in MODELS if name != "vit" or form[:3] != "QDQ" or "uint8" in form]
    ways = {draw(form).choice(fit): FEW}
    if form in ON_EVERY_WAY:
        ways["digits"] = [*MODEL_WAYS]
    for name in ways:
        path = tmp_path / f"{name}.onnx"
        FORMATS[form](MODELS[name], path, _inputs(name))
        _held(path, _inputs(name), ways[name])


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("zero_points", [False, True])
def test_products_with_weights_of_few_bits_give_onnxruntimes_results_on_every_way(
    bits: int, zero_points: bool, tmp_path: Path
) -> None:
    rows, columns, block = 6, 64, 32
    draw = np.random.default_rng(bits)
    weights = draw.integers(0, 256, (rows, columns // block, block * bits // 8), np.uint8)
    scales = draw.random((rows * columns // block,), np.float32) * 0.1
    held = [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(scales, "s")]
    if zero_points:
        held.append(numpy_helper.from_array(draw.integers(0, 256, (rows, columns // block * bits // 8), np.uint8), "z"))
    node = helper.make_node(
        "MatMulNBits", ["x", "w", "s", *(["z"] if zero_points else [])], ["y"], domain="com.microsoft",
        K=columns, N=rows, bits=bits, block_size=block,
    )  # fmt: skip
    value = helper.make_tensor_value_info
    x, y = value("x", TensorProto.FLOAT, ["n", columns]), value("y", TensorProto.FLOAT, ["n", rows])
    graph = helper.make_graph([node], "g", [x], [y], held)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    _held(path, {"x": draw.standard_normal((3, columns)).astype(np.float32)})
