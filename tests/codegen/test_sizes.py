"""Sizes as sums of names, and what passes conclude from them."""

from __future__ import annotations

import math

import numpy as np
import onnx
from emberlet.codegen.ir import sizes
from emberlet.codegen.ir.graph import Graph
from emberlet.codegen.passes import run_passes
from emberlet.codegen.reader import read_model
from hypothesis import given
from hypothesis import strategies as st
from support.onnx_models import assert_same, generated, parse, with_constants


def graph_of(model: onnx.ModelProto) -> Graph:
    return run_passes(read_model(model).graph)[0]


def same(model: onnx.ModelProto, *inputs: np.ndarray) -> None:
    assert_same(generated(model, inputs), generated(model, inputs, passes=[]), atol=2e-5)


NAMES = st.sampled_from(["a", "b", "batch", "?0123456789abcdef", "min(7, a)"])
SIZES = st.one_of(st.integers(0, 9), NAMES)


def test_the_smaller_of_a_number_and_a_size() -> None:
    assert (sizes.smaller(5, 3), sizes.smaller(3, 5), sizes.smaller(5, "n")) == (3, 3, "min(5, n)")
    assert sizes.smaller(5, None) is None and sizes.smaller(5, "a + 1") is None


@given(st.lists(SIZES, max_size=5), st.lists(SIZES, max_size=5))
def test_sums_of_sizes_are_those_of_numbers(left: list[int | str], right: list[int | str]) -> None:
    """Whatever the names stand for."""
    values = {"a": 3, "b": 5, "batch": 2, "?0123456789abcdef": 11, "min(7, a)": 3}

    def number(d: int | str | None) -> int | None:
        found = sizes.terms(d)
        return (
            None if found is None else sum(n * math.prod(values[name] for name in names) for names, n in found.items())
        )

    def total(items: list[int | str]) -> int | str | None:
        out: int | str | None = 0
        for item in items:
            out = sizes.plus(out, item)
        return out

    x, y = total(left), total(right)
    assert number(x) == sum(values[d] if isinstance(d, str) else d for d in left)
    assert x == total(left[::-1])
    assert sizes.minus(sizes.plus(x, y), y) == x
    found = sizes.minus(x, y)
    assert found is None or number(found) == number(x) - number(y)  # type: ignore[operator]


def test_an_unknown_size_equals_itself() -> None:
    model = parse(
        """g (float[A, B] x, int64[2] s) => (float[C, D] y) {
            r = Reshape(x, s)  h = Shape(r)  t = Relu(r)  z = Reshape(t, h)  y = Exp(z)
        }"""
    )
    x = np.ones((2, 6), np.float32)
    same(model, x, np.array([3, 4]))
    assert [n.op() for n in graph_of(model).nodes] == ["Reshape", "Relu", "Exp"]


def test_sizes_in_a_round_are_not_the_next_rounds() -> None:
    """The size differs between iterations, so a reshape to it stays after the loop."""
    model = parse(
        """g (float[N] x, int64 n) => (float[M] y, float[K] z) {
            y = Loop(n, , x) <body = b (int64 i, bool c, float[S] s) => (bool d, float[T] t) {
                d = Identity(c)  t = Concat<axis = 0>(s, s)
            }>
            h = Shape(x)
            r = Relu(y)
            m = Constant<value = int64[1] {-1}>()
            z = Reshape(r, m)
        }"""
    )
    x = np.array([1.0, -2.0], np.float32)
    same(model, x, np.array(2, np.int64))
    assert generated(model, (x, np.array(3, np.int64)))[0].shape == (16,)


def test_a_slice_up_to_a_size_is_as_long_as_what_it_is_added_to() -> None:
    model = with_constants(
        """g (float[batch, length, 4] x) => (float[A, B, C] y) <int64[1] one = {1}, int64[1] zero = {0}> {
            h = Shape(x)  n = Gather<axis = 0>(h, one)  p = Slice(table, zero, n, zero)  y = Add(x, p)
        }""",
        table=np.random.default_rng(0).standard_normal((7, 4)).astype(np.float32),
    )
    assert graph_of(model).outputs[0].type.shape == ("batch", "length", 4)  # type: ignore[union-attr]
    same(model, np.ones((2, 5, 4), np.float32))
