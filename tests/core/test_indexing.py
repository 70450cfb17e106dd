"""x[key], x[key] = value and the functions that index, against NumPy."""

from __future__ import annotations

import emberlet
import numpy as np
import pytest
from emberlet.errors import ArgumentError, DTypeError, IndexingError, ShapeError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from support.backends import same, tensor

SETTINGS = {"max_examples": 100, "deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}
shapes = hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4)


@st.composite
def keys(draw, shape):
    """A key of ints, slices, None, ..., integer arrays and bool arrays, and NumPy's form of it."""
    broadcast = draw(st.sampled_from([(), (2,), (2, 3), (1,)]))
    ours, theirs, axis = [], [], 0
    dots = False
    while axis < len(shape):
        kind = draw(st.sampled_from(["int", "slice", "none", "dots", "array", "bool", "truth", "stop"]))
        n = shape[axis]
        if kind == "stop":
            break
        if kind == "none":
            if len(ours) < 6:
                ours.append(None)
                theirs.append(None)
            continue
        if kind == "truth":  # one bool, as a tensor of rank 0 or as it is: a new axis of length 1 or 0
            if len(ours) < 6:
                masks = any(isinstance(t, np.ndarray) and t.dtype == bool for t in theirs)
                truth = np.array(draw(st.booleans()) or masks or broadcast not in ((), (1,)))
                ours.append(draw(st.sampled_from([emberlet.asarray(truth), bool(truth)])))
                theirs.append(truth)
            continue
        if kind == "dots":
            if not dots:
                dots = True
                left = draw(st.integers(0, len(shape) - axis))
                ours.append(...)
                theirs.append(...)
                axis += left
                if axis < len(shape):
                    # From here on the key names every axis, so the dots stand for `left` axes.
                    for m in shape[axis:]:
                        ours.append(slice(0, m))
                        theirs.append(slice(0, m))
                break
            continue
        if kind == "int":
            i = draw(st.integers(-n, n - 1))
            ours.append(i)
            theirs.append(i)
        elif kind == "slice":
            s = draw(st.slices(n))
            ours.append(s)
            theirs.append(s)
        elif kind == "array":
            i = draw(hnp.arrays(np.int64, broadcast, elements=st.integers(-n, n - 1)))
            ours.append(emberlet.asarray(i))
            theirs.append(i)
        else:
            if broadcast != ():
                continue
            m = draw(hnp.arrays(bool, (n,)))
            if any(isinstance(t, np.ndarray) and t.dtype == bool for t in theirs):
                continue
            ours.append(emberlet.asarray(m))
            theirs.append(m)
        axis += 1
    return tuple(ours), tuple(theirs)


@settings(**SETTINGS)
@given(shape=shapes, data=st.data())
def test_any_key_picks_what_numpy_picks(backend, shape, data):
    a = np.arange(int(np.prod(shape))).reshape(shape)
    ours, theirs = data.draw(keys(shape))
    same(tensor(a)[ours], a[theirs])


@settings(**SETTINGS)
@given(shape=shapes, data=st.data())
def test_assignment_changes_exactly_what_the_key_picks(backend, shape, data):
    a = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    ours, theirs = data.draw(keys(shape))
    x = tensor(a.copy())
    before = x[...]
    x[ours] = -1
    expected = a.copy()
    expected[theirs] = -1
    same(x, expected)
    same(before, a)


def test_a_tensor_is_assigned_by_broadcasting(backend):
    x = emberlet.zeros((3, 4))
    x[1:, ::2] = emberlet.asarray([1.0, 2.0])
    assert x.tolist() == [[0, 0, 0, 0], [1, 0, 2, 0], [1, 0, 2, 0]]
    with pytest.raises(ShapeError, match=r"\(3,\).*\(2, 2\)"):
        x[1:, ::2] = emberlet.ones((3,))


def test_lists_and_masks_index(backend):
    a = np.arange(12).reshape(3, 4)
    x = tensor(a)
    same(x[[2, 0]], a[[2, 0]])
    same(x[a % 2 == 0], a[a % 2 == 0])
    same(x[x % 2 == 0], a[a % 2 == 0])
    same(x[:, [True, False, True, False]], a[:, [True, False, True, False]])
    same(x[[]], a[np.array([], np.int64)])


def test_wrong_keys_say_what_is_wrong(backend):
    x = emberlet.ones((2, 3))
    with pytest.raises(IndexingError, match=r"index 2 .*axis 0 of length 2"):
        x[2]
    with pytest.raises(IndexingError, match=r"index -4 .*axis 1 of length 3"):
        x[0, -4]
    with pytest.raises(IndexingError, match="3 for the 2 axes"):
        x[0, 0, 0]
    with pytest.raises(IndexingError, match="index 5"):
        x[:, [0, 5]]
    with pytest.raises(IndexingError, match="integer or bool"):
        x[emberlet.ones((1,))]
    with pytest.raises(IndexingError, match="float32"):
        x[emberlet.asarray(1.0, dtype="float32")]
    with pytest.raises(IndexingError):
        x["a"]
    with pytest.raises(IndexingError, match="bool index"):
        x[emberlet.ones((3,), dtype="bool")]


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


def test_burn_selects(backend):
    x = emberlet.zeros((3, 2))
    assert x.select_assign(0, emberlet.asarray([0, 2, 0]), emberlet.ones((3, 2))).tolist() == [[2, 2], [0, 0], [1, 1]]
    y = emberlet.arange(6).reshape((3, 2))
    assert y.select(1, emberlet.asarray([1, 1])).tolist() == [[1, 1], [3, 3], [5, 5]]
    assert y.slice([(1, 3), (0, 1)]).tolist() == [[2], [4]]
    assert y.slice_assign([(0, 1)], emberlet.asarray([[9, 9]])).tolist() == [[9, 9], [2, 3], [4, 5]]


def test_nonzero(backend):
    a = np.array([[0, 1, 0], [2, 0, 3]])
    for found, expected in zip(emberlet.nonzero(tensor(a)), np.nonzero(a), strict=True):
        same(found, expected)
    same(emberlet.functional.argwhere(tensor(a)), np.argwhere(a))
    assert emberlet.nonzero(emberlet.zeros((0, 2)))[0].shape == (0,)
    assert emberlet.functional.argwhere(emberlet.asarray(3)).shape == (1, 0)


def test_indices_out_of_range_are_refused(backend):
    x = emberlet.ones((3,))
    for bad in (3, -4):
        with pytest.raises(IndexingError, match=f"index {bad}"):
            emberlet.take(x, emberlet.asarray([0, bad]), axis=0)
        with pytest.raises(IndexingError, match=f"index {bad}"):
            x.scatter(0, emberlet.asarray([bad]), emberlet.asarray([1.0]))


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
