"""x[key], x[key] = value and the functions that index, against NumPy."""

from __future__ import annotations

import emberlet
import numpy as np
import pytest
from emberlet.errors import ArgumentError, DTypeError
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from support.backends import same, tensor

SETTINGS = {"max_examples": 100}


def test_iteration_and_length(backend):
    x = emberlet.arange(6).reshape((3, 2))
    assert [row.tolist() for row in x] == [[0, 1], [2, 3], [4, 5]]
    assert len(x) == 3
    with pytest.raises(TypeError):
        len(emberlet.asarray(1))


@settings(**SETTINGS)
@given(shape=hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4), data=st.data())
def test_take_gather_and_scatter(backend, shape, data):
    a = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    x = tensor(a)
    axis = data.draw(st.integers(-a.ndim, a.ndim - 1))
    n = a.shape[axis]
    index = data.draw(
        hnp.arrays(np.int64, hnp.array_shapes(min_dims=0, max_dims=2, max_side=3), elements=st.integers(-n, n - 1))
    )
    same(emberlet.take(x, tensor(index), axis=axis), np.take(a, index, axis))
    along = list(a.shape)
    along[axis] = data.draw(st.integers(1, 5))
    index = data.draw(hnp.arrays(np.int64, tuple(along), elements=st.integers(-n, n - 1)))
    same(emberlet.take_along_axis(x, tensor(index), axis=axis), np.take_along_axis(a, index, axis))
    same(x.gather(axis, tensor(index)), np.take_along_axis(a, index, axis))
    updates = np.arange(index.size, dtype=np.float32).reshape(index.shape) + 1
    key = list(np.ogrid[tuple(slice(m) for m in index.shape)])
    key[axis] = index
    for op, ufunc in (("add", np.add), ("mul", np.multiply), ("max", np.maximum), ("min", np.minimum)):
        expected = a.copy()
        ufunc.at(expected, tuple(key), updates)
        same(x.scatter(axis, tensor(index), tensor(updates), op), expected, rtol=1e-6)


def test_scatter_of_duplicates_keeps_the_last(backend):
    x = emberlet.zeros((3,)).scatter(0, emberlet.asarray([1, 1, 1]), emberlet.asarray([5.0, 6.0, 7.0]), "none")
    assert x.tolist() == [0, 7, 0]


def test_scatter_refuses_an_unknown_reduction(backend):
    with pytest.raises(ArgumentError, match="found None"):
        emberlet.functional.scatter(tensor(np.ones(2)), 0, tensor(np.zeros(1, np.int64)), tensor(np.ones(1)), None)
    with pytest.raises(ArgumentError, match="found 'sum'"):
        emberlet.functional.scatter_nd(
            tensor(np.ones(2)), tensor(np.zeros((1, 1), np.int64)), tensor(np.ones(1)), "sum"
        )


def test_indices_are_integers(backend):
    with pytest.raises(DTypeError, match="float32"):
        emberlet.functional.max_unpool(tensor(np.ones((1, 1, 2))), tensor(np.ones((1, 1, 2), np.float32)), 2, 2)
