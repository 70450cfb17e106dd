"""Which masks of positions an attention loses, and which it keeps: one that is nearly a known mask stays."""

from __future__ import annotations

import numpy as np
import pytest
from emberlet.codegen.ops.attention import Attention
from emberlet.codegen.passes import run_passes
from emberlet.codegen.reader import read_model
from onnx import numpy_helper
from support.onnx_models import assert_same, generated, parse

TEXT = """g (float[N, 2, S, 4] q, float[N, 2, {keys}, 4] k, float[N, 2, {keys}, 4] v) => (float[N, 2, S, 4] y) {{
    qs = Shape(q)  l = Gather<axis = 0>(qs, n2)  p = Range(n0, l, n1)  r = Unsqueeze(p, i1)
    ks = Shape(k)  lk = Gather<axis = 0>(ks, n2)  c = Range(n0, lk, n1)
    {see}  m = Where(see, zero, low)  y = Attention{attributes}(q, k, v, {mask}) }}"""
CONSTANTS = {
    "n0": np.array(0), "n1": np.array(1), "n2": np.array(2), "n3": np.array(3), "i1": np.array([1]),
    "zero": np.float32(0), "low": np.float32(-np.inf), "one": np.float32(1), "high": np.float32(-9999),
    "edge": np.float32(-10000),
}  # fmt: skip
CAUSAL = "see = LessOrEqual(p, r)"
FLAT = "<q_num_heads = 2, kv_num_heads = 2>"


def attended(
    see: str, attributes: str = "", mask: str = "m", keys: str = "S", hides: str = "low", adds: str = "zero"
) -> tuple[bool, bool, int | None]:
    """(whether a mask is left, whether the attention is causal, its window) after the passes."""
    text = TEXT.format(see=see, attributes=attributes, mask=mask, keys=keys)
    text = text.replace("zero, low", f"{adds}, {hides}")
    if attributes == FLAT:
        text = text.replace("2, S, 4]", "S, 8]").replace("n2)  p ", "n1)  p ").replace("n2)  c ", "n1)  c ")
    model = parse(text, 23)
    used = {i for n in model.graph.node for i in n.input}
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(a), n) for n, a in CONSTANTS.items() if n in used)
    draw = np.random.default_rng(1)
    shape = (2, 3, 8) if attributes == FLAT else (2, 2, 3, 4)
    inputs = [draw.standard_normal(shape).astype(np.float32) for _ in range(3)]
    if keys != "S":
        inputs[1:] = [draw.standard_normal((2, 2, 5, 4)).astype(np.float32) for _ in range(2)]
    assert_same(generated(model, inputs), generated(model, inputs, passes=[]))
    (node,) = (n for n in run_passes(read_model(model).graph)[0].nodes if isinstance(n, Attention))
    return node.has(3), node.config.causal, node.config.window[0]


@pytest.mark.parametrize(
    ("see", "window"),
    [
        (CAUSAL, None),
        ("see = GreaterOrEqual(r, p)", None),
        ("a = Add(r, n1) see = Less(p, a)", None),
        ("b = LessOrEqual(p, r) d = Sub(r, p) e = Less(d, n2) see = And(b, e)", 1),
        ("b = LessOrEqual(p, r) d = Sub(r, p) e = LessOrEqual(d, n2) see = And(e, b)", 2),
        ("b = LessOrEqual(p, r) d = Sub(r, p) e = LessOrEqual(d, n0) see = And(e, b)", 0),
    ],
)
@pytest.mark.parametrize("mask", ["m", "see"])
def test_a_mask_of_later_keys_is_an_option(see: str, window: int | None, mask: str) -> None:
    assert attended(see, mask=mask) == (False, True, window)


def test_a_mask_that_hides_nothing_goes() -> None:
    assert attended("t = Add(p, r) see = GreaterOrEqual(t, n0)") == (False, False, None)


@pytest.mark.parametrize(
    "see",
    [
        "t = Add(p, r) see = Greater(t, n0)",  # the first query does not see the first key
        "see = Less(p, r)",  # the first query sees none
        "see = GreaterOrEqual(p, r)",  # later keys only
        "see = Equal(p, r)",
        "a = Add(r, n1) see = LessOrEqual(p, a)",  # one later key too
        "d = Mul(r, n2) see = LessOrEqual(p, d)",  # more later keys for later queries
        "d = Sub(r, p) see = Less(d, n2)",  # a window alone
        "d = Sub(r, p) a = LessOrEqual(p, r) b = Less(d, n0) see = And(a, b)",  # of less than no key
        "d = Sub(p, r) a = LessOrEqual(p, r) b = Less(d, n2) e = Sub(n3, r) f = LessOrEqual(p, e) see = And(a, f)",
    ],
)
def test_a_mask_of_other_keys_stays(see: str) -> None:
    assert attended(see) == (True, False, None)


@pytest.mark.parametrize(("attributes", "causal"), [("<is_causal = 1>", True), (FLAT, False)])
def test_a_mask_beside_other_options_stays(attributes: str, causal: bool) -> None:
    assert attended(CAUSAL, attributes) == (True, causal, None)


def test_a_mask_over_more_keys_than_queries_stays() -> None:
    """It is causal from the first key on; whether each query sees itself is not known."""
    assert attended("see = LessOrEqual(c, r)", keys="T") == (True, False, None)


@pytest.mark.parametrize(
    ("adds", "hides", "stays"),
    [
        ("zero", "low", False),
        ("zero", "edge", False),
        ("zero", "high", True),
        ("one", "low", True),
        ("low", "zero", True),
    ],
)
def test_a_hidden_keys_score_is_lowered_by_10000_or_more_and_others_are_kept(
    adds: str, hides: str, stays: bool
) -> None:
    assert attended(CAUSAL, adds=adds, hides=hides) == (stays, not stays, None)
