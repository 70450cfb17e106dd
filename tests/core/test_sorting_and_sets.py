"""Sorting, searching and sets against NumPy."""

from __future__ import annotations

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from support.backends import same, tensor

SETTINGS = {"max_examples": 60}
numbers = st.sampled_from([0.0, 1.0, 2.0, -1.0, 3.5, np.inf, -np.inf, np.nan])
float_arrays = hnp.arrays(
    np.float32, hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5), elements=numbers
)


@settings(**SETTINGS)
@given(a=float_arrays, data=st.data())
def test_sorting_is_stable_with_nan_last(backend, a, data):
    axis = data.draw(st.integers(-a.ndim, a.ndim - 1))
    order = np.argsort(a, axis=axis, kind="stable")
    same(emberlet.sort(tensor(a), axis=axis), np.sort(a, axis))
    same(emberlet.argsort(tensor(a), axis=axis), order)
    back = np.flip(a, axis)
    falling = a.shape[axis] - 1 - np.flip(np.argsort(back, axis=axis, kind="stable"), axis)
    same(emberlet.argsort(tensor(a), axis=axis, descending=True), falling)
    same(emberlet.sort(tensor(a), axis=axis, descending=True), np.take_along_axis(a, falling, axis))


@pytest.mark.parametrize("dtype", ["int8", "uint64", "bool", "float16"])
def test_other_dtypes_sort(backend, dtype):
    a = np.array([[3, 1, 2, 1], [0, 1, 1, 0]]).astype(dtype)
    same(emberlet.sort(tensor(a)), np.sort(a))
    same(emberlet.argsort(tensor(a)), np.argsort(a, kind="stable"))


def test_unique_slices_in_order_of_appearance(backend):
    a = np.array([[2, 1], [1, 3], [2, 1], [0, 5]])
    values, indices, inverse, counts = F.unique(tensor(a), axis=0)
    expected = np.unique(a, axis=0, return_index=True, return_inverse=True, return_counts=True)
    for x, y in zip((values, indices, inverse, counts), expected, strict=True):
        same(x, np.asarray(y).reshape(x.shape))
    values, indices, inverse, counts = F.unique(tensor(a), axis=0, sorted=False)
    assert values.tolist() == [[2, 1], [1, 3], [0, 5]]
    assert (indices.tolist(), inverse.tolist(), counts.tolist()) == ([0, 1, 3], [0, 1, 0, 2], [2, 1, 1])
