"""Operators of the standard that none of ONNX's cases shows: against onnxruntime, or what a draw must be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.onnx_models import check, generated, parse

RANDOM = np.random.default_rng(11)


def normal(*shape: int) -> np.ndarray[Any, Any]:
    return RANDOM.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("new", [0, 1])
def test_concat_from_sequence(axis: int, new: int) -> None:
    text = """g (float[2, 3] a, float[2, 3] b, float[2, 3] c) => (float[...] y) {
        s = SequenceConstruct(a, b, c)  y = ConcatFromSequence<axis = %d, new_axis = %d>(s)
    }"""
    model = parse((text % (axis, new)).replace("float[...]", "float[p, q, r]" if new else "float[p, q]"))
    check(model, normal(2, 3), normal(2, 3), normal(2, 3))


@pytest.mark.parametrize("at", ["", "0", "1", "-2"])
def test_sequence_erase(at: str) -> None:
    text = """g (float[2] a, float[2] b, float[2] c) => (float[p] y) <int64 at = {%s}> {
        s = SequenceConstruct(a, b, c)  t = SequenceErase(s%s)  y = ConcatFromSequence<axis = 0>(t)
    }"""
    check(parse(text % (at or "0", ", at" if at else "")), normal(2), normal(2), normal(2))


def test_max_roi_pool() -> None:
    text = """g (float[2, 3, 8, 9] x, float[3, 5] rois) => (float[a, b, c, d] y) {
        y = MaxRoiPool<pooled_shape = [2, 3], spatial_scale = 0.5>(x, rois)
    }"""
    rois = np.array([[0, 0, 0, 15, 13], [1, 3, 2, 9, 12], [1, 4, 4, 6, 7]], np.float32)
    check(parse(text), normal(2, 3, 8, 9), rois)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_global_lp_pool(p: int) -> None:
    text = "g (float[2, 3, 4, 5] x) => (float[2, 3, 1, 1] y) { y = GlobalLpPool<p = %d>(x) }"
    check(parse(text % p), normal(2, 3, 4, 5))


def drawn(text: str, *inputs: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A draw; with a seed the next one of a new model is the same."""
    first, second = (generated(parse(text), inputs)[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    return first


@pytest.mark.parametrize("kind", ["like", "alone"])
def test_normal_draws(kind: str) -> None:
    how = "RandomNormalLike<%s>(x)" if kind == "like" else "RandomNormal<shape = [200, 50], %s>()"
    text = "g (float[200, 50] x) => (float[200, 50] y) { y = " + how % "mean = 3.0, scale = 2.0, seed = 5.0" + " }"
    y = drawn(text, np.zeros((200, 50), np.float32))
    assert (y.dtype, y.shape) == (np.float32, (200, 50))
    assert abs(y.mean() - 3) < 5 * 2 / 100 and abs(y.std() - 2) < 5 * 2 / 141
    assert abs((y < 3).mean() - 0.5) < 5 * 0.5 / 100


@pytest.mark.parametrize("kind", ["like", "alone"])
def test_uniform_draws(kind: str) -> None:
    how = "RandomUniformLike<%s>(x)" if kind == "like" else "RandomUniform<shape = [200, 50], %s>()"
    text = (
        "g (float[200, 50] x) => (double[200, 50] y) { y = "
        + how % "low = -1.0, high = 3.0, seed = 5.0, dtype = 11"
        + " }"
    )
    y = drawn(text, np.zeros((200, 50), np.float32))
    assert (y.dtype, y.shape) == (np.float64, (200, 50))
    assert y.min() >= -1 and y.max() < 3 and abs(y.mean() - 1) < 5 * 1.155 / 100
    assert abs((y < 0).mean() - 0.25) < 5 * 0.433 / 100


def test_multinomial_draws_classes_by_their_probabilities() -> None:
    text = "g (float[2, 3] x) => (int32[2, n] y) { y = Multinomial<sample_size = 4000, seed = 2.0, dtype = 6>(x) }"
    chances = np.array([[0.7, 0.2, 0.1], [0.0, 0.5, 0.5]])
    with np.errstate(divide="ignore"):
        y = drawn(text, np.log(chances).astype(np.float32))
    assert (y.dtype, y.shape) == (np.int32, (2, 4000))
    for row, p in zip(y, chances, strict=True):
        found = np.bincount(row, minlength=3) / 4000
        assert (np.abs(found - p) <= 5 * np.sqrt(p * (1 - p) / 4000)).all()
