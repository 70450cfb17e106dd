"""Attention and rotary positions as single calls; losses; the p-norm of channels."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from conformance.cases import node_cases
from emberlet.codegen import load
from emberlet.codegen.generation import translate
from emberlet.errors import ModelError
from support.onnx_models import assert_same, generated, parse

RANDOM = np.random.default_rng(12)


def floats(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(("opset", "p"), [(1, 1.5), (2, 3), (22, 1)])
def test_the_norm_of_each_channel(opset: int, p: float) -> None:
    model = parse(f"g (float[2, 3, 4, 5] x) => (float[2, 3, 1, 1] y) {{ y = GlobalLpPool<p = {p}>(x) }}", opset)
    x = floats(2, 3, 4, 5)
    assert_same(generated(model, [x]), [(np.abs(x) ** p).sum((2, 3), keepdims=True, dtype=np.float32) ** (1 / p)])


@pytest.mark.parametrize(
    ("attributes", "shape", "message"),
    [
        ("", "B, 5, 12", "input 0 has rank 3, which needs the number of heads as an attribute"),
        ("<q_num_heads = 0, kv_num_heads = 0>", "B, 5, 12", "needs the number of heads"),
        ("<q_num_heads = -2, kv_num_heads = 2>", "B, 5, 12", "needs the number of heads"),
        ("<q_num_heads = 2>", "B, 5, 12", "input 1 has rank 3, which needs the number of heads as an attribute"),
        ("<q_num_heads = 5, kv_num_heads = 5>", "B, 5, 12", "input 0: 12 does not divide into 5 heads"),
        ("", "5, 12", "input 0 has rank 2, expected 3 or 4"),
        ("", "1, 1, 1, 5, 12", "input 0 has rank 5, expected 3 or 4"),
    ],
)
def test_heads_that_cannot_be_are_refused_in_words(attributes: str, shape: str, message: str) -> None:
    model = parse(f"g (float[{shape}] q) => (float y) {{ y = Attention{attributes}(q, q, q) }}", 23)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    with pytest.raises(ModelError, match=message):
        load(model)


def test_a_modifier_of_scores_has_one_input_and_one_output() -> None:
    cases = [c for c in node_cases().values() if any(a.name == "score_mod" for a in c.model.graph.node[0].attribute)]
    model = onnx.ModelProto()
    model.CopyFrom(min(cases, key=lambda c: c.name).model)
    (graph,) = (a.g for a in model.graph.node[0].attribute if a.name == "score_mod")
    translate(model)
    graph.output.add().CopyFrom(graph.output[0])
    with pytest.raises(ModelError, match="a modifier must have one input and one output"):
        translate(model)
