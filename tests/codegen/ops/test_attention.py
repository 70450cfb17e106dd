"""Attention and rotary positions as single calls; losses; the p-norm of channels."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from conformance.cases import node_cases
from emberlet.codegen import load
from emberlet.codegen.generation import translate
from emberlet.errors import ModelError
from support.onnx_models import assert_same, generated, parse, source

RANDOM = np.random.default_rng(12)


def floats(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_attention_is_one_call() -> None:
    model = parse(
        """g (float[B, 2, S, 8] q, float[B, 2, T, 8] k, float[B, 2, T, 6] v) => (float[B, 2, S, 6] y) {
            y = Attention<scale = 0.5>(q, k, v)
        }""",
        23,
    )
    assert "return F.attention(q, k, v, scale=0.5)" in source(model)
    q, k, v = floats(3, 2, 5, 8), floats(3, 2, 7, 8), floats(3, 2, 7, 6)
    assert_same(generated(model, [q, k, v]), [softmax(q @ k.swapaxes(-1, -2) * 0.5) @ v])


def test_attention_gives_the_cache_it_leaves() -> None:
    model = parse(
        """g (float[B, S, 8] q, float[B, S, 8] k, float[B, S, 8] v, float[B, 2, P, 4] pk, float[B, 2, P, 4] pv)
        => (float[B, S, 8] y, float[B, 2, T, 4] key, float[B, 2, T, 4] value) {
            y, key, value = Attention<q_num_heads = 2, kv_num_heads = 2, is_causal = 1>(q, k, v, , pk, pv)
        }""",
        23,
    )
    q, k, v, pk, pv = floats(1, 1, 8), floats(1, 1, 8), floats(1, 1, 8), floats(1, 2, 3, 4), floats(1, 2, 3, 4)
    y, key, value = generated(model, [q, k, v, pk, pv])
    heads = [x.reshape(1, 1, 2, 4).swapaxes(1, 2) for x in (q, k, v)]
    keys, values = np.concatenate([pk, heads[1]], 2), np.concatenate([pv, heads[2]], 2)
    want = softmax(heads[0] @ keys.swapaxes(-1, -2) * 0.5) @ values
    assert_same([y, key, value], [want.swapaxes(1, 2).reshape(1, 1, 8), keys, values])


def test_rotary_positions_are_one_call() -> None:
    model = parse(
        """g (float[1, 2, 4, 6] x, float[9, 3] cos, float[9, 3] sin, int64[1, 4] at) => (float[1, 2, 4, 6] y) {
            y = RotaryEmbedding(x, cos, sin, at)
        }""",
        23,
    )
    assert "return F.rotary_embedding(x, cos, sin, at)" in source(model)
    x, cos, sin, at = floats(1, 2, 4, 6), floats(9, 3), floats(9, 3), np.array([[3, 0, 8, 8]])
    left, right = x[..., :3], x[..., 3:]
    want = np.concatenate([left * cos[at] - right * sin[at], right * cos[at] + left * sin[at]], -1)
    assert_same(generated(model, [x, cos, sin, at]), [want])


@pytest.mark.parametrize("opset", [12, 13])
def test_a_loss_is_one_call(opset: int) -> None:
    model = parse(
        """g (float[4, 5] x, int64[4] t) => (float y, float[4, 5] logs) {
            y, logs = SoftmaxCrossEntropyLoss<ignore_index = 2>(x, t)
        }""",
        opset,
    )
    assert "F.cross_entropy(x, t, ignore_index=2)" in source(model)
    x, t = floats(4, 5), np.array([1, 2, 0, 4])
    logs = np.log(softmax(x))
    assert_same(generated(model, [x, t]), [-logs[[0, 2, 3], [1, 0, 4]].mean(), logs])


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
