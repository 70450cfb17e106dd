"""What boards get of a calibrated model: the same by the float model as by the ONNX file, and layer by layer the bytes
of that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emberlet.codegen.quantized.writing import Scheme
from emberlet.host.cli.quantize.rewritten import Static
from emberlet.host.quantization.calibration import METHODS
from emberlet.micro.builder.build import taken_apart
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.fuse import fuse
from emberlet.micro.builder.graph import Reshape
from emberlet.micro.builder.kernels.layer import Layer
from emberlet.micro.builder.kernels.move import Copy, Move
from emberlet.micro.builder.kernels.pool import MaxPool
from emberlet.micro.builder.quantization.calibrate import check_samples, observe, ranges_of
from emberlet.micro.builder.quantization.quantize import quantize_graph
from emberlet.micro.builder.quantization.reference import quantize

pytest.importorskip("onnx")
from support.joined_branches import joined_branches

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "tests" / "models"
SELECTING = (MaxPool, Reshape, Move, Copy)  # what chooses or moves bytes computes nothing


def images(count: int) -> Any:
    return np.random.default_rng(7).normal(size=(count, 3, 32, 32)).astype(np.float32)


def quantized(path: Path, x: Any, method: str) -> bytes:
    source = Static(str(path), "net", lambda inputs: {inputs[0].name: x}, method, 99.99, lambda _: None)
    found: bytes = source.final(Scheme())[2]["net.onnx"]
    return found


def digits() -> tuple[Path, Any]:
    with np.load(ROOT / "examples" / "digits" / "heldout.npz") as held:
        return ROOT / "examples" / "digits" / "digits.onnx", (held["images"][:20] / 16).astype(np.float32)[:, None]


def parts(layer: Layer) -> dict[str, Any]:
    """A layer's numbers, without the names of its tensors."""
    found = {key: value for key, value in vars(layer).items() if key not in ("name", "inputs", "output")}
    return {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in found.items()}


def branches(folder: Path) -> tuple[Path, Any]:
    (folder / "net.onnx").write_bytes(joined_branches().SerializeToString())
    return folder / "net.onnx", images(6)[:, :, :8, :8]


@pytest.mark.parametrize("name", ["digits", "residual_cnn", "mobile_cnn", "joined branches"])
def test_the_float_model_gives_the_files_layers_by_every_method(name: str, tmp_path: Path) -> None:
    """From the same samples: grids, weights, biases and multipliers."""
    path, x = digits() if name == "digits" else (MODELS / name / "model.onnx", images(6))
    path, x = branches(tmp_path) if name == "joined branches" else (path, x)
    graph = fuse(taken_apart(read_graph(path.read_bytes(), "net")))
    seen = observe(graph, check_samples({graph.inputs[0]: x}, graph))
    for method in METHODS:
        file = quantize_graph(fuse(read_graph(quantized(path, x, method), "net")))
        board = quantize_graph(graph, ranges_of(seen, method))
        assert len(file.layers) == len(board.layers)
        for a, b in zip(file.layers, board.layers, strict=True):
            assert file.grids[a.output] == board.grids[b.output], (method, a.name)
            assert parts(a) == parts(b), (method, a.name)


@pytest.mark.parametrize("name", ["residual_cnn", "mobile_cnn"])
def test_each_layer_gives_the_files_byte_unless_the_number_is_almost_halfway(name: str) -> None:
    """Multipliers of boards are fixed-point numbers where the file's are float32, so that a number near the middle
    between two levels may become the other one. docs/quantization.md says how near."""
    x = images(4)
    file = quantized(MODELS / name / "model.onnx", x, "minmax")
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
