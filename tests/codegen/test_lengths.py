"""Masks that hide the padding behind a length are an option of attention, and nothing else is taken for one."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from emberlet.codegen.generation import translate
from emberlet.codegen.passes import PASSES
from models.index import HERE
from onnx import numpy_helper
from support.onnx_models import assert_same, expected, generated, parse
from support.rows import every

HEAD = """g (float[N, 2, L, 4] q, float[N, 2, K, 4] k, float[N, 2, K, 4] v, {dtype}[{rows}] n) => (float[N, 2, L, 4] y)
    <int64 zero = {{0}}, int64 one = {{1}}, int64 two = {{2}}, float none = {{0.0}}, float all = {{1.0}}> {{
    ks = Shape(k)  t = Gather<axis = 0>(ks, two)  r = Range(zero, t, one)  {compared}
    see = Unsqueeze(c, heads)  kt = Transpose<perm = [0, 1, 3, 2]>(k)
    a = MatMul(q, kt)  b = Mul(a, half)  {hidden}  y = MatMul(w, v)
}}"""
COMPARED = {
    "below": "n1 = Unsqueeze(n, last)  c = Less(r, n1)",
    "above": "n1 = Unsqueeze(n, last)  c = Greater(n1, r)",
    "up to": "n1 = Unsqueeze(n, last)  r1 = Add(r, one)  c = LessOrEqual(r1, n1)",
    "from": "n1 = Unsqueeze(n, last)  r1 = Add(r, one)  c = GreaterOrEqual(n1, r1)",
    "not behind": "n1 = Unsqueeze(n, last)  r1 = Unsqueeze(r, first)  o = GreaterOrEqual(r1, n1)  c = Not(o)",
    "not at": "n1 = Reshape(n, column)  o = LessOrEqual(n1, r)  c = Not(o)",
}
SOFTMAX = "w = Softmax<axis = -1>(s)"
HIDDEN = {
    "added": f"m = Where(see, none, low)  s = Add(b, m)  {SOFTMAX}",
    "hidden": f"h = Not(see)  m = Where(h, low, none)  s = Add(b, m)  {SOFTMAX}",
    "filled": f"s = Where(see, b, low)  {SOFTMAX}",
    "moved": "m2 = Where(c, none, low)  m = Unsqueeze(m2, heads)  s = Add(b, m)  " + SOFTMAX,
    "zeroed": "h = Not(see)  s = Where(h, low, b)  p = Softmax<axis = -1>(s)  w = Where(h, none, p)",
}
BIAS = "f = Cast<to = 1>(see)  g1 = Sub(all, f)  m = Mul(g1, low)  s = Add(b, m)  " + SOFTMAX
INF = -np.inf


def model_of(
    compared: str, hidden: str, low: float = INF, *, dtype: str = "int64", rows: str = "N", keys: str = "K"
) -> onnx.ModelProto:
    text = HEAD.format(compared=compared, hidden=hidden, dtype=dtype, rows=rows).replace("K", keys)
    model = parse(text, 21)
    constants = {
        "last": np.array([1]),
        "first": np.array([0]),
        "heads": np.array([1, 2]),
        "column": np.array([-1, 1]),
        "low": np.float32(low),
        "half": np.float32(0.5),
    }
    model.graph.initializer.extend(numpy_helper.from_array(v, k) for k, v in constants.items())
    return model


def inputs_of(keys: int, lengths: list[int], dtype: str = "int64", seed: int = 0) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    heads = [random.standard_normal((len(lengths), 2, n, 4)).astype(np.float32) for n in (3, keys, keys)]
    return [*heads, np.array(lengths, dtype)]


def source_of(model: onnx.ModelProto, passes: list[str] | None = None) -> str:
    return translate(model, "net", passes=passes)[1].source


def check(model: onnx.ModelProto, inputs: list[np.ndarray]) -> None:
    """The model computes what onnxruntime does, with the passes and without."""
    want = expected(model, dict(zip("qkvn", inputs, strict=True)))
    assert_same(generated(model, inputs), want, atol=2e-6)
    assert_same(generated(model, inputs, passes=[]), want, atol=2e-6)


@pytest.mark.parametrize("hidden", HIDDEN)
@every("compared", COMPARED)
def test_a_mask_of_lengths_is_an_option(compared: str, hidden: str) -> None:
    model = model_of(COMPARED[compared], HIDDEN[hidden])
    source = source_of(model)
    assert "kv_lengths=n" in source and "F.where" not in source and "F.arange" not in source
    for seed, lengths in enumerate(([1, 3, 5], [9, 2], [4])):
        check(model, inputs_of(5, lengths, seed=seed))
    assert "F.arange" in source_of(model, [name for name in PASSES if name != "lengths"])


@pytest.mark.parametrize("low", [-1e4, -3.4e38, INF])
def test_weights_that_are_set_to_zero_make_any_hiding_number_exact(low: float) -> None:
    """A sequence of length 0 gives 0 both ways."""
    model = model_of(COMPARED["below"], HIDDEN["zeroed"], low)
    assert "kv_lengths=n" in source_of(model)
    inputs = inputs_of(5, [0, 3, 7])
    check(model, inputs)
    assert not np.any(generated(model, inputs)[0][0])


@pytest.mark.parametrize("least", ["m1 = Max(n, one)", "m1 = Clip(n, one)", "m2 = Clip(n, two)  m1 = Cast<to = 7>(m2)"])
@pytest.mark.parametrize("hidden", ["added", "bias"])
def test_a_finite_number_hides_the_padding_of_lengths_that_are_surely_positive(least: str, hidden: str) -> None:
    compared = f"{least}  n1 = Unsqueeze(m1, last)  c = Less(r, n1)"
    model = model_of(compared, {**HIDDEN, "bias": BIAS}[hidden], -3.4e38)
    assert "kv_lengths=" in source_of(model)
    check(model, inputs_of(5, [0, 1, 3, 9]))


@pytest.mark.parametrize(
    "compared", ["c = Less(r, n)", "f = Reshape(n, flat)  n1 = Unsqueeze(f, last)  c = Less(r, n1)"]
)
def test_lengths_may_be_a_column(compared: str) -> None:
    model = model_of(compared, HIDDEN["added"], rows="N, 1")
    model.graph.initializer.append(numpy_helper.from_array(np.array([-1]), "flat"))
    assert "kv_lengths=" in source_of(model) and "F.where" not in source_of(model)
    inputs = inputs_of(5, [1, 3, 5])
    check(model, [*inputs[:3], inputs[3][:, None]])


def test_lengths_in_a_narrower_dtype_stay_in_it() -> None:
    model = model_of(
        "w64 = Cast<to = 7>(n)  n1 = Unsqueeze(w64, last)  c = Less(r, n1)", HIDDEN["added"], dtype="int32"
    )
    assert "kv_lengths=n)" in source_of(model)
    check(model, inputs_of(5, [1, 3, 5], "int32"))


@pytest.mark.parametrize(
    ("compared", "hidden", "low", "options"),
    [
        ("n1 = Unsqueeze(n, last)  c = LessOrEqual(r, n1)", "added", INF, {}),  # one key more
        ("n1 = Unsqueeze(n, last)  r1 = Add(r, one)  c = Less(r1, n1)", "added", INF, {}),  # one less
        ("n1 = Unsqueeze(n, last)  c = Greater(r, n1)", "added", INF, {}),  # what comes after
        (COMPARED["below"], "added", -3.4e38, {}),  # a length of 0 gives the mean
        (COMPARED["below"], "filled", -1e4, {}),
        (COMPARED["below"], "added", -5.0, {}),
        ("w64 = Cast<to = 7>(n)  n1 = Unsqueeze(w64, last)  c = Less(r, n1)", "added", INF, {"dtype": "float"}),
        ("p = Cast<to = 1>(r)  n1 = Unsqueeze(n, last)  c = Less(p, n1)", "added", INF, {"dtype": "float"}),
        ("r1 = Mul(r, two)  n1 = Unsqueeze(n, last)  c = Less(r1, n1)", "added", INF, {}),
    ],
)
def test_other_masks_stay(compared: str, hidden: str, low: float, options: dict[str, str]) -> None:
    model = model_of(compared, HIDDEN[hidden], low, **options)
    source = source_of(model)
    assert "kv_lengths=n" not in source
    inputs = inputs_of(5, [2, 3, 4], "float32" if options else "int64")
    if "Greater" not in compared:
        check(model, inputs)


@pytest.mark.parametrize("other", ["w = Where(see, none, p)", "o = Equal(r, one)  w = Where(o, none, p)"])
def test_weights_that_other_conditions_set_to_zero_stay(other: str) -> None:
    """Only what was hidden before the softmax is left out of it."""
    hidden = f"h = Not(see)  s = Where(h, low, b)  p = Softmax<axis = -1>(s)  {other}"
    model = model_of(COMPARED["below"], hidden)
    assert "F.attention(" not in source_of(model)
    check(model, inputs_of(5, [1, 3, 5]))


def test_a_length_for_each_query_stays() -> None:
    compared = "n1 = Unsqueeze(n, last)  c = Less(r, n1)"
    model = model_of(compared, HIDDEN["added"].replace("Where(see", "Where(rows"), rows="L")
    model.graph.node.insert(6, onnx.helper.make_node("Unsqueeze", ["c", "both"], ["rows"]))
    model.graph.initializer.append(numpy_helper.from_array(np.array([0, 1]), "both"))
    assert "kv_lengths" not in source_of(model)
    check(model, inputs_of(5, [1, 3, 5]))


@pytest.mark.parametrize("name", ["speech_encoder", "speech_encoder_traced"])
def test_an_exported_encoder_takes_its_lengths(name: str) -> None:
    source = source_of(onnx.load(HERE / name / "model.onnx"))
    assert "kv_lengths=lengths, num_heads=4)" in source and "        for layer in self.layers:\n" in source
    assert "F.where" not in source and "mask" not in source
