"""Networks that onnxruntime quantized: their blocks have names, their results are onnxruntime's, and a model whose
modules cannot be found is one class."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import onnx
import onnxruntime
import pytest
from emberlet import codegen
from emberlet.codegen.hierarchy import repetition
from emberlet.codegen.hierarchy.repetition import block_names
from emberlet.codegen.passes.quantized_operators import layer_of
from emberlet.codegen.reader import read_model
from emberlet.errors import ModelError
from onnx import numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

RANDOM = np.random.default_rng(3)


def mobilenet(blocks: int = 3) -> onnx.ModelProto:
    """Inverted residuals (Sandler et al. 2018)."""
    lines, x = ["s = Conv<pads = [1, 1, 1, 1]>(x, stem)"], "s"
    weights = {"stem": (4, 3, 3, 3)}
    for b in range(blocks):
        weights |= {f"up{b}": (8, 4, 1, 1), f"deep{b}": (8, 1, 3, 3), f"down{b}": (4, 8, 1, 1)}
        lines += [
            f"a{b} = Conv({x}, up{b}) ar{b} = Relu(a{b})",
            f"d{b} = Conv<group = 8, pads = [1, 1, 1, 1]>(ar{b}, deep{b}) dr{b} = Relu(d{b})",
            f"p{b} = Conv(dr{b}, down{b}) y{b} = Add({x}, p{b})",
        ]
        x = f"y{b}"
    text = " ".join(lines).replace(f"{x} = Add", "y = Add")
    model: onnx.ModelProto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[1,3,8,8] x) => (float[1,4,8,8] y) { ' + text + " }"
    )
    for name, shape in weights.items():
        values = RANDOM.standard_normal(shape, np.float32) / np.sqrt(np.prod(shape[1:]))
        model.graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), name))
    return model


class Images(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self) -> None:
        self.images = iter(RANDOM.standard_normal((4, 1, 3, 8, 8), np.float32))

    def get_next(self) -> Any:
        image = next(self.images, None)
        return None if image is None else {"x": image}


@pytest.mark.parametrize("activations", ["QUInt8", "QInt8"])
@pytest.mark.parametrize("per_channel", [False, True])
def test_inverted_residuals_of_quantized_operators_are_known_and_compute_what_onnxruntime_does(
    tmp_path: Path, per_channel: bool, activations: str
) -> None:
    path = tmp_path / "mobilenet.onnx"
    quantize_static(
        mobilenet(), path, Images(), quant_format=QuantFormat.QOperator, per_channel=per_channel,
        activation_type=QuantType[activations], weight_type=QuantType.QInt8,
    )  # fmt: skip
    nodes = read_model(path).graph.nodes
    block = nodes[2 : [n.op() for n in nodes].index("QLinearAdd") + 1]
    assert block_names.kind_of(block_names.Part(block, 1)) == "InvertedResidual"
    assert block_names.kind_of(block_names.Part(layers(block), 1)) == "InvertedResidual"
    model = codegen.load(path, "numpy")
    x = RANDOM.standard_normal((1, 3, 8, 8), np.float32)
    (want,) = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    for run in (model, model.compile(backend="numpy")):
        np.testing.assert_allclose(np.asarray(run(emberlet.asarray(x, backend="numpy"))), want, rtol=1e-6, atol=1e-6)


def layers(nodes: Any) -> list[Any]:
    """Nodes with the layers that quantized convolutions become."""
    return [layer_of(n) if n.op() == "QLinearConv" else n for n in nodes]


def test_where_naming_fails_a_model_is_one_class_and_the_library_takes_the_blame(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = mobilenet().SerializeToString()
    x = emberlet.asarray(RANDOM.standard_normal((1, 3, 8, 8), np.float32), backend="numpy")
    want = np.asarray(codegen.load(model, "numpy")(x))

    def fail(part: Any) -> str:
        return part.nodes[len(part.nodes)]

    monkeypatch.setattr(repetition, "kind_of", fail)
    with pytest.warns(UserWarning, match=r"a bug of emberlet \(IndexError: .*one class"):
        flat = codegen.load(model, "numpy")
    np.testing.assert_array_equal(np.asarray(flat(x)), want)
    monkeypatch.setattr("emberlet.codegen.generation.read_model", lambda *_: ().count[0])  # type: ignore[index]
    with pytest.raises(ModelError, match=r"because of a bug of emberlet \(TypeError: .*please report it") as caught:
        codegen.load(model, "numpy")
    assert "malformed" not in str(caught.value)
