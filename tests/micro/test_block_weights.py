"""Block-quantized weights of 2, 4 or 8 bits (MatMulNBits, GatherBlockQuantized), compared with onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from emberlet.errors import ModelError
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.kernels.dot import Dot
from onnx import TensorProto, helper
from support.microcontrollers.onnx_models import Maker
from support.microcontrollers.words import inferred
from support.onnx_models import expected
from support.rows import every


def model_of(m: Maker, shape: list[int], dtype: int = TensorProto.FLOAT) -> onnx.ModelProto:
    x = helper.make_tensor_value_info("x", dtype, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(m.nodes, "g", [x], [y], m.constants)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def product(seed: int, one_block: bool = False) -> tuple[onnx.ModelProto, int]:
    """A product of drawn sizes, zero points and bias, and its rows."""
    m, rng = Maker(seed), np.random.default_rng(seed)
    bits, block = int(rng.choice([4, 8])), 16 << int(rng.integers(0, 2))
    rows, columns = int(rng.integers(1, block + 1 if one_block else 80)), int(rng.integers(1, 20))
    blocks = -(-rows // block)
    m.constant("w", rng.integers(0, 256, (columns, blocks, block * bits // 8)).astype(np.uint8))
    m.constant("s", rng.uniform(0.01, 0.1, columns * blocks).astype(np.float32))
    given = ["x", "w", "s", "_", "_", "_"]
    if not one_block and rng.random() < 0.5:
        m.constant("z", rng.integers(0, 256, columns * -(-blocks * bits // 8)).astype(np.uint8))
        given[3] = "z"
    if rng.random() < 0.5:
        m.weight("b", columns)
        given[5] = "b"
    sizes = {"K": rows, "N": columns, "bits": bits, "block_size": block}
    m("MatMulNBits", " ".join(given), "y", domain="com.microsoft", **sizes)
    return model_of(m, [1, 3, rows]), rows


@every("seed", range(24), share=3)
def test_products_follow_onnxruntime(seed: int) -> None:
    model, rows = product(seed, seed % 2 == 0)
    samples = np.random.default_rng(seed).standard_normal((40, 3, rows)).astype(np.float32)
    graph = read_graph(model.SerializeToString(), "m")
    built = build(graph, Options("m", method="minmax"), {"x": samples})
    layer = next(layer for layer in built.graph.layers if isinstance(layer, Dot))
    if seed % 2 == 0:
        # One block a column: its scale, and its weights as they are.
        assert set(graph.weight_scales) == {layer.name}
        most = 1 << int(next(a.i for a in model.graph.node[0].attribute if a.name == "bits")) - 1
        assert np.abs(layer.weights.astype(int) - layer.weight_zero).max() <= most
    for x in samples[:8]:
        wanted = expected(model, {"x": x[None]})[0].reshape(-1)
        exact = graph.run({"x": x})[graph.outputs[0]].reshape(-1)
        np.testing.assert_allclose(exact, wanted, atol=1e-5 * max(1, np.abs(wanted).max()))
        assert np.abs(inferred(built, x) - wanted).max() < 0.05 * max(1, np.abs(wanted).max())


@pytest.mark.parametrize("bits", [4, 8])
def test_embeddings_follow_onnxruntime(bits: int) -> None:
    m, rng = Maker(), np.random.default_rng(bits)
    m.constant("t", rng.integers(0, 256, (20, 32 * bits // 8)).astype(np.uint8))
    m.constant("s", rng.uniform(0.01, 0.1, (20, 2)).astype(np.float32))
    how = {"gather_axis": 0, "quantize_axis": 1, "block_size": 16, "bits": bits}
    m("GatherBlockQuantized", "t x s", "y", domain="com.microsoft", **how)
    model = model_of(m, [1, 5], TensorProto.INT64)
    x = rng.integers(0, 20, (1, 5))
    graph = read_graph(model.SerializeToString(), "m")
    found = graph.run({"x": x[0].astype(np.float32)})[graph.outputs[0]]
    np.testing.assert_allclose(found.reshape(-1), expected(model, {"x": x})[0].reshape(-1), atol=1e-6)


def test_weights_that_are_an_input_are_refused_by_name() -> None:
    model, _ = product(0)
    for k, initializer in enumerate(model.graph.initializer):
        if initializer.name == "w":
            del model.graph.initializer[k]
            model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.UINT8, list(initializer.dims)))
            break
    with pytest.raises(ModelError, match=r"MatMulNBits\)"):
        read_graph(model.SerializeToString(), "m")
