"""Quantized models (QDQ) keep their scales, and int8 follows onnxruntime to the step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.cli import main
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.kernels.dot import Dot, DotFloat
from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
from support.microcontrollers.onnx_models import MODELS
from support.microcontrollers.quantized import Network, Samples, image_network, samples_of
from support.microcontrollers.quantized import quantized as quantized_by
from support.microcontrollers.words import inferred, step_of
from support.onnx_models import expected

Array = np.ndarray[Any, Any]


def quantized(name: str, folder: Path, kind: QuantType, per_channel: bool) -> tuple[Path, Array]:
    model = MODELS[name]()
    dims = [d.dim_value or 1 for d in model.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(0).standard_normal((40, *dims)).astype(np.float32)
    plain, out = folder / "plain.onnx", folder / "quantized.onnx"
    onnx.save(model, plain)
    quantize_static(
        str(plain),
        str(out),
        Samples(x),
        quant_format=QuantFormat.QDQ,
        activation_type=kind,
        weight_type=QuantType.QInt8,
        per_channel=per_channel,
    )
    return out, x


@pytest.mark.parametrize("name", ["flattened_image_to_dense", "convolutions"])
@pytest.mark.parametrize(("kind", "per_channel"), [(QuantType.QInt8, True), (QuantType.QUInt8, False)])
def test_outputs_are_those_of_onnxruntime_within_a_step_or_two(
    name: str, kind: QuantType, per_channel: bool, tmp_path: Path
) -> None:
    path, x = quantized(name, tmp_path, kind, per_channel)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    graph = read_graph(path, "m")
    assert graph.grids and graph.weight_scales
    built = build(graph, Options("m"))
    assert not built.program.is_float
    steps = [np.abs(inferred(built, v) - session.run(None, {"x": v})[0].reshape(-1)) for v in x[:20]]
    off = np.stack(steps) / step_of(built)
    assert off.max() <= 3.01
    assert off.mean() < 0.6


def test_the_command_line_builds_int8_without_samples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, _ = quantized("convolutions", tmp_path, QuantType.QInt8, True)
    assert main(["build", str(path), "--board", "rp2", "--out", str(tmp_path / "dist")]) == 0
    assert capsys.readouterr().out.startswith("quantized: int8, ")
    assert (tmp_path / "dist" / "armv6m" / "quantized_kernels.mpy").exists()


@pytest.mark.parametrize("kind", [QuantType.QInt4, QuantType.QUInt4])
def test_weights_of_4_bits_are_kept_as_they_are(kind: QuantType, tmp_path: Path) -> None:
    """On the device they are stored two in a byte, unless speed is preferred."""
    network = image_network(4)
    samples = samples_of(network)
    model = quantized_by(network, samples, weight_type=kind)
    graph = read_graph(model.SerializeToString(), "m")
    assert graph.weight_scales and not graph.weight_zeros
    built = build(graph, Options("m", method="minmax"), {"x": samples})
    (layer,) = (layer for layer in built.graph.layers if isinstance(layer, Dot))
    steps = layer.weights.astype(int) - layer.weight_zero
    # Relative to its own zero point, a 4-bit weight needs 5 bits with a sign.
    assert -16 < steps.min() and steps.max() < 16
    scale = graph.weight_scales[layer.name].reshape(-1, *[1] * 3)
    (plain,) = (layer for layer in graph.layers if isinstance(layer, DotFloat))
    np.testing.assert_allclose(steps * scale, plain.weights, atol=1e-6)
    assert layer.packed
    large = build(graph, Options("m", method="minmax", int4="bytes"), {"x": samples})
    (other,) = (layer for layer in large.graph.layers if isinstance(layer, Dot))
    assert not other.packed and layer.constants()[0].size <= -(-other.constants()[0].size // 2) + len(other.weights) * 9
    for x in samples[:5]:
        np.testing.assert_array_equal(*(inferred(made, x) for made in (built, large)))


@pytest.mark.parametrize("kind", [QuantType.QInt4, QuantType.QUInt4])
def test_a_dense_network_of_4_bits_takes_half_the_flash_and_follows_onnxruntime(kind: QuantType) -> None:
    n = Network(5)
    n.dense(96, 64)
    n.activation("Relu")
    n.dense(64, 64)
    n.activation("Relu")
    n.dense(64, 10)
    network = n.done([1, 96])
    samples = samples_of(network)
    model = quantized_by(network, samples, weight_type=kind)
    graph = read_graph(model.SerializeToString(), "m")
    small, large = (build(graph, Options("m", int4=how)) for how in ("packed", "bytes"))
    sizes = [made.program.weights.size for made in (small, large)]
    assert sizes[0] * 2 == sizes[1] == 96 * 64 + 64 * 64 + 64 * 10
    for x in samples:
        found = [inferred(made, x) for made in (small, large)]
        np.testing.assert_array_equal(*found)
        assert np.abs(found[0] - expected(model, {"x": x})[0].reshape(-1)).max() < 2.01 * step_of(small)


@pytest.mark.parametrize("kind", [QuantType.QInt16, QuantType.QUInt16])
def test_activations_of_16_bits_are_calibrated_to_8_or_stay_float32(kind: QuantType, tmp_path: Path) -> None:
    """For builds that should not use 16-bit kernels."""
    network = image_network(4)
    samples = samples_of(network)
    model = quantized_by(network, samples, activation_type=kind)
    graph = read_graph(model.SerializeToString(), "m")
    for floats in (False, True):
        built = build(graph, Options("m", method="minmax", floats=floats), {"x": samples})
        assert built.program.is_float == floats
        for x in samples[:5]:
            wanted = expected(model, {"x": x})[0].reshape(-1)
            near = (0.002 if floats else 0.05) * max(1, np.abs(wanted).max())
            assert np.abs(inferred(built, x) - wanted).max() < near
