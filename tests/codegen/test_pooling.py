"""Masked means, as exporters write them at the end of sentence models, become one call."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from emberlet.codegen import load
from emberlet.codegen.passes import PASSES, run_passes
from emberlet.codegen.reader import read_model
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import numpy_helper
from support.onnx_models import assert_same, generated, parse

SLOW = settings(max_examples=40)


def pooled(
    dtype: str = "int64",
    cast: str = "last",
    expand: str = "both",
    turned: bool = False,
    least: str = "Clip",
    change: str = "",
    width: int = 4,
) -> onnx.ModelProto:
    """cast: where the mask becomes floats; expand: which uses of it are expanded to x's width."""
    steps = {"first": "CUE", "middle": "UCE", "last": "UEC"}[cast]
    mask, lines = "mask", []
    narrow = ""
    for i, step in enumerate(steps):
        if step == "E" and expand != "neither":
            narrow = mask
        if step == "E" and expand == "neither":
            continue
        text = {"C": f"Cast<to = 1>({mask})", "U": f"Unsqueeze({mask}, two)", "E": f"Expand({mask}, shape)"}[step]
        lines.append(f"m{i} = {text}")
        mask = f"m{i}"
    counted = mask
    if expand == "product" and cast != "last":
        counted = narrow
    axis = "zero" if change == "other axis" else "one"
    weights = "other" if change == "another mask" else counted
    limit = {"Clip": "Clip(n, tiny)", "Max": "Max(tiny, n)"}[least]
    limit = "Clip(n, tiny, high)" if change == "a limit above" else limit
    limit = "Clip(n, minus)" if change == "a negative limit" else limit
    if change == "another mask":
        lines.append("o = Cast<to = 1>(mask2)  other = Unsqueeze(o, two)")
    if change == "squared":
        lines.append(f"squared = Mul({mask}, {mask})")
        mask = "squared"
    kept = int(change == "keeps its axis")
    model = parse(
        f"""g (float[batch, length, {width}] x, {dtype}[batch, length] mask, {dtype}[batch, length] mask2)
             => (float[{"A, B, C" if kept else "A, B"}] y) {{
            shape = Shape(x)  {"  ".join(lines)}
            p = Mul({f"{mask}, x" if turned else f"x, {mask}"})
            s = ReduceSum<keepdims = {kept}>(p, {axis})  n = ReduceSum<keepdims = {kept}>({weights}, {axis})
            c = {limit}  y = Div(s, c)
        }}""",
        opset=17,
    )
    constants = {
        "zero": np.array([0]), "one": np.array([1]), "two": np.array([2]), "tiny": np.float32(1e-9),
        "high": np.float32(2.0), "minus": np.float32(-1.0),
    }  # fmt: skip
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items())
    return model


def drawn(dtype: str, width: int, batch: int = 3, length: int = 5) -> list[np.ndarray]:
    random = np.random.default_rng(batch + length)
    masks = [random.integers(0, 2, (batch, length)) for _ in range(2)]
    masks[0][0] = 0  # a sequence of which nothing is selected
    kind = {"int64": np.int64, "bool": np.bool_, "float": np.float32}[dtype]
    return [random.standard_normal((batch, length, width)).astype(np.float32), *(m.astype(kind) for m in masks)]


def check(model: onnx.ModelProto, inputs: list[np.ndarray]) -> list[str]:
    others = [name for name in PASSES if name != "pooling"]
    assert_same(generated(model, inputs), generated(model, inputs, passes=others), atol=1e-6)
    return [node.op() for node in run_passes(read_model(model).graph)[0].nodes]


@SLOW
@given(
    dtype=st.sampled_from(["int64", "bool", "float"]),
    cast=st.sampled_from(["first", "middle", "last"]),
    expand=st.sampled_from(["both", "product", "neither"]),
    turned=st.booleans(),
    least=st.sampled_from(["Clip", "Max"]),
    sizes=st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(1, 4)),
)
def test_a_mean_of_what_a_mask_selects_is_one_call(
    dtype: str, cast: str, expand: str, turned: bool, least: str, sizes: tuple[int, int, int]
) -> None:
    model = pooled(dtype, cast, expand, turned, least, width=sizes[0])
    assert check(model, drawn(dtype, sizes[0], sizes[2], sizes[1])) == ["MaskedMean"]


@pytest.mark.needs("gpu-driver")
def test_the_gpu_takes_means_of_every_length_with_one_plan() -> None:
    model = load(pooled(), backend="wgpu")
    plan = model.compile(backend="wgpu", dims={"batch": 4, "length": 9})
    for batch, length in ((3, 5), (1, 1), (4, 9)):
        inputs = drawn("int64", 4, batch, length)
        want = generated(pooled(), inputs, passes=[])
        assert_same([np.array(plan(*inputs).tolist(), np.float32)], want, atol=1e-6)
