"""Reductions, running reductions and moments against NumPy: what test_array_api_properties.py does not draw."""

from __future__ import annotations

import emberlet
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from support.backends import INTEGERS, same, tensor
from support.rows import every

SETTINGS = {"max_examples": 60}


@settings(**SETTINGS)
@given(a=hnp.arrays(np.int64, hnp.array_shapes(max_dims=4, max_side=4), elements=st.integers(-9, 9)), data=st.data())
def test_running_extremes_along_an_axis(backend, a, data):
    axis = data.draw(st.integers(-a.ndim, a.ndim - 1))
    x = tensor(a)
    same(x.cummax(axis), np.maximum.accumulate(a, axis))
    same(x.cummin(axis), np.minimum.accumulate(a, axis))


@every("dtype", [*INTEGERS, "bool"])
def test_sums_of_integers_are_wide(backend, dtype):
    a = np.ones((300,), dtype)
    wide = "uint64" if dtype.startswith("u") else "int64"
    same(emberlet.sum(tensor(a)), np.asarray(300, wide))
    same(emberlet.prod(tensor(a)), np.asarray(1, wide))
    same(emberlet.sum(tensor(a), dtype="int16"), np.asarray(300, "int16"))
    same(emberlet.cumulative_sum(tensor(a)), np.arange(1, 301).astype(wide))


def test_integer_sums_wrap_at_the_top(backend):
    a = np.array([2**63 - 1, 1], np.int64)
    same(emberlet.sum(tensor(a)), np.asarray(-(2**63)))


def test_nan_and_infinities_reach_the_extremes(backend):
    a = np.array([[1, np.nan, 3], [np.inf, -np.inf, 0], [2, 1, 0]], np.float32)
    for axis in (None, 0, 1):
        same(emberlet.max(tensor(a), axis), a.max(axis))
        same(emberlet.min(tensor(a), axis), a.min(axis))
    same(emberlet.argmax(tensor(a), 1), a.argmax(1))
    same(emberlet.argmin(tensor(a), 1), a.argmin(1))
    same(emberlet.argmax(tensor(a)), np.asarray(a.argmax()))
    same(tensor(a).cummax(1), np.maximum.accumulate(a, 1))


def test_norms_and_logsumexp(backend):
    a = np.array([[1.0, -2.0, 4.0], [0.0, 3.0, -9.0]])
    for p in (0, 1, 2, 3, np.inf, -np.inf):
        same(emberlet.norm(tensor(a), p, 1), np.linalg.norm(a, p, 1), rtol=1e-14)
    same(emberlet.vector_norm(tensor(a)), np.asarray(np.linalg.norm(a)), rtol=1e-14)
    big = np.array([1000.0, 1000.5, -np.inf])
    same(emberlet.logsumexp(tensor(big)), np.asarray(np.logaddexp.reduce(big)), rtol=1e-14)
    same(emberlet.logsumexp(tensor(np.full(3, -np.inf))), np.asarray(-np.inf))


@pytest.mark.parametrize("function", ["mean", "var", "std"])
def test_moments_of_no_elements_are_nan(backend, function):
    same(getattr(emberlet, function)(tensor(np.zeros((2, 0), np.float32)), 1), np.full(2, np.nan, np.float32))


def test_the_sum_of_no_elements_divides_like_any_0(backend):
    total = emberlet.sum(tensor(np.zeros((2, 0), np.float32)), 1)
    same(5 / total, np.full(2, np.inf, np.float32))
    same(total * np.inf, np.full(2, np.nan, np.float32))
