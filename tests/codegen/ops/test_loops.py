"""Loops in every form, against onnxruntime: with or without a count and a condition, from none to several rounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.onnx_models import assert_same, expected, generated, parse
from support.rows import every

COUNTS = {"none": "", "given": "count", "three": "three", "zero": "zero", "endless": "endless"}
FIRSTS = {"none": "", "given": "first", "true": "yes", "false": "no"}
CONDITIONS = {
    "kept": "d = Identity(c)",
    "always": "d = Constant<value = bool {1}>()",
    "never": "d = Constant<value = bool {0}>()",
    "computed": "e = ReduceMax<keepdims = 0>(t)  d = Less(e, limit)",
    "counted": "d = Less(i, five)",
}
HELD = """<int64 three = {3}, int64 zero = {0}, int64 endless = {9223372036854775807}, bool yes = {1}, bool no = {0},
    float limit = {20.0}, int64 five = {5}>"""


def ends(count: str, first: str, condition: str) -> bool:
    """Whether the loop has an end."""
    if first == "false" or count in ("given", "three", "zero"):
        return True
    return condition in ("never", "computed", "counted")


@pytest.mark.parametrize("scanned", [False, True])
@every("condition", CONDITIONS)
@pytest.mark.parametrize("first", FIRSTS)
@every("count", COUNTS)
def test_a_loop_runs_as_often_as_it_says(count: str, first: str, condition: str, scanned: bool) -> None:
    inputs = "".join(
        f", {t}" for t, used in (("int64 count", count == "given"), ("bool first", first == "given")) if used
    )
    more, out = (", u", ", float[R, N] u") if scanned else ("", "")
    scan, made = ("k = Cast<to = 1>(i)  v = Add(t, k)", ", float[N] v") if scanned else ("", "")
    model = parse(f"""g (float[N] x{inputs}) => (float[N] y{out}) {HELD} {{
        y{more} = Loop({COUNTS[count]}, {FIRSTS[first]}, x) <body = b (int64 i, bool c, float[N] s)
            => (bool d, float[N] t{made}) {{ t = Add(s, s)  {CONDITIONS[condition]}  {scan} }}>
    }}""")
    x = np.array([1.0, 2.0], np.float32)
    for counted, starts in ((0, True), (2, True), (2, False)) if ends(count, first, condition) else ():
        given: dict[str, Any] = {"x": x}
        given |= {"count": np.array(counted)} if count == "given" else {}
        given |= {"first": np.array(starts)} if first == "given" else {}
        want = expected(model, given)
        assert_same(generated(model, given.values()), want)
    if not ends(count, first, condition) and first == "given":  # it never starts
        given = {"x": x, "first": np.array(False)}
        assert_same(generated(model, given.values()), expected(model, given))


@pytest.mark.parametrize("directions", [(0, 0), (1, 0), (0, 1), (1, 1)])
@every(("into", "back"), [(0, 0), (1, 0), (0, 1), (-1, -1), (1, 2), (-2, -3)])
@pytest.mark.parametrize("states", [0, 1])
def test_a_scan_goes_along_any_axis_in_either_direction(
    into: int, back: int, directions: tuple[int, int], states: int
) -> None:
    names = ("s", "float[A, B] s0", "s0, ", "float[A, B] z, ", "z, ", "float[A, B] s, ", "float[A, B] n, ")
    before = names if states else ("", "", "", "", "", "", "")
    step = "n = Add(s, t)  o = Mul(n, t)" if states else "o = Neg(t)"
    model = parse(f"""g ({before[1] + ", " if states else ""}float[P, Q, R] x) => ({before[3]}float[U, V, W] y) {{
        {before[4]}y = Scan<num_scan_inputs = 1, scan_input_axes = [{into}], scan_output_axes = [{back}],
            scan_input_directions = [{directions[0]}], scan_output_directions = [{directions[1]}],
            body = b ({before[5]}float[A, B] t) => ({before[6]}float[A, B] o) {{ {step} }}>({before[2]}x)
    }}""")
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    shape = [n for k, n in enumerate(x.shape) if k != into % 3]
    given = {"s0": np.ones(shape, np.float32), "x": x} if states else {"x": x}
    assert_same(generated(model, given.values()), expected(model, given))


@pytest.mark.parametrize("chosen", [True, False])
@pytest.mark.parametrize("other", ["float[N] b) { b = Exp(x)", "float[M] b) { h = Shape(x)  b = Expand(x, twice)"])
def test_an_if_takes_one_branch(other: str, chosen: bool) -> None:
    model = parse(f"""g (float[N] x, bool c) => (float[K] y) <int64[2] twice = {{2, 1}}> {{
        y = If(c) <then_branch = p () => (float[N] a) {{ a = Neg(x) }}, else_branch = q () => ({other} }}>
    }}""")
    given = {"x": np.array([1.0, -2.0], np.float32), "c": np.array(chosen)}
    model.graph.output[0].type.tensor_type.ClearField("shape")
    assert_same(generated(model, given.values()), expected(model, given))
