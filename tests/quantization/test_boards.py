"""The bytes that boards compute of a calibrated model, layer by layer, beside those of the ONNX file that they read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from emberlet.codegen.quantized.writing import Scheme
from emberlet.host.cli.quantize.models import Static
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.fuse import fuse
from emberlet.micro.builder.graph import Reshape
from emberlet.micro.builder.kernels.move import Copy, Move
from emberlet.micro.builder.kernels.pool import MaxPool
from emberlet.micro.builder.quantization.quantize import quantize_graph
from emberlet.micro.builder.quantization.reference import quantize

pytest.importorskip("onnx")
MODELS = Path(__file__).resolve().parents[1] / "models"
SELECTING = (MaxPool, Reshape, Move, Copy)  # what chooses or moves bytes computes nothing


@pytest.mark.parametrize("name", ["residual_cnn", "mobile_cnn"])
def test_each_layer_gives_the_files_byte_unless_the_number_is_almost_halfway(name: str) -> None:
    """Multipliers of boards are fixed-point numbers where the file's are float32, so that a number near the middle
    between two levels may become the other one. docs/quantization.md says how near."""
    x = np.random.default_rng(7).normal(size=(4, 3, 32, 32)).astype(np.float32)
    source = Static(
        str(MODELS / name / "model.onnx"), "net", lambda inputs: {inputs[0].name: x}, "minmax", 99.99, lambda _: None
    )
    file = source.final(Scheme())[2]["net.onnx"]
    exact = fuse(read_graph(file, "net"))  # with the values that QuantizeLinear and DequantizeLinear give
    board = quantize_graph(exact)
    layers = {layer.name: layer for layer in exact.layers}
    assert len(board.layers) == len(layers) >= 18
    for image in x:
        values = exact.run({board.inputs[0]: np.moveaxis(image, 0, -1)})
        for layer in board.layers:
            grid, floats = board.grids[layer.output], layers[layer.name]
            given = [quantize(values[n], board.grids[n].scale, board.grids[n].zero) for n in layer.inputs]
            found = layer.reference(*[q.reshape(board.shapes[n]) for q, n in zip(given, layer.inputs, strict=True)])
            if isinstance(layer, SELECTING):
                wanted = quantize(values[layer.output], grid.scale, grid.zero)
                assert found.reshape(-1).tolist() == wanted.reshape(-1).tolist(), layer.name
            number = floats.reference(*[values[n].reshape(exact.shapes[n]) for n in floats.inputs])
            number = np.clip(number.reshape(-1).astype(np.float64) / grid.scale + grid.zero, 0, 255)
            assert np.abs(found.reshape(-1) - number).max() <= 0.5 + 1 / 128, layer.name
