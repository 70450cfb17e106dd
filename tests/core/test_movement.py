"""Shapes, views, joins and padding against NumPy: what test_array_api_properties.py does not draw."""

from __future__ import annotations

import emberlet
import numpy as np
import pytest
from emberlet.errors import DTypeError, ShapeError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from support.backends import same, tensor
from support.rows import every

SETTINGS = {"max_examples": 80, "deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}
arrays = hnp.arrays(np.int32, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
                    elements=st.integers(-99, 99))  # fmt: skip


@settings(**SETTINGS)
@given(a=arrays, data=st.data())
def test_chains_of_views_keep_every_element_in_its_place(backend, a, data):
    x = tensor(a)
    for _ in range(data.draw(st.integers(1, 5))):
        step = data.draw(st.sampled_from(["permute", "reverse", "cut", "grow", "merge", "expand"]))
        if step == "permute":
            axes = data.draw(st.permutations(range(a.ndim)))
            a, x = a.transpose(axes), emberlet.permute_dims(x, axes)
        elif step == "reverse" and a.ndim:
            axis = data.draw(st.integers(-a.ndim, a.ndim - 1))
            a, x = np.flip(a, axis), emberlet.flip(x, axis=axis)
        elif step == "cut" and a.ndim:
            key = data.draw(hnp.basic_indices(a.shape))
            a, x = a[key], x[key]
        elif step == "grow":
            axis = data.draw(st.integers(-a.ndim - 1, a.ndim))
            a, x = np.expand_dims(a, axis), emberlet.expand_dims(x, axis=axis)
        elif step == "merge":
            a, x = a.reshape(-1) if a.size else a, emberlet.reshape(x, (-1,)) if a.size else x
        elif step == "expand":
            shape = tuple(3 if n == 1 else n for n in a.shape)
            a, x = np.broadcast_to(a, shape), emberlet.broadcast_to(x, shape)
        if a.size > 500 or a.ndim > 6:
            break
    same(x, a)
    same(x + x, a + a)
    if a.ndim:
        same(emberlet.sum(x, 0), a.sum(0))
    same(emberlet.astype(x, "float32"), a.astype(np.float32))


@settings(**SETTINGS)
@given(a=arrays, data=st.data())
def test_padding_rolling_and_repeating(backend, a, data):
    x = tensor(a)
    pads = [(data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))) for _ in a.shape]
    same(emberlet.functional.pad(x, pads, 7), np.pad(a, pads, constant_values=7) if a.ndim else a)
    if not a.ndim:
        return
    axis = data.draw(st.integers(-a.ndim, a.ndim - 1))
    shift = data.draw(st.integers(-7, 7))
    same(emberlet.roll(x, (shift, 2), axis=axis), np.roll(a, (shift, 2), axis))
    same(emberlet.roll(x, np.int64(shift), axis=tuple(range(a.ndim))), np.roll(a, shift, tuple(range(a.ndim))))
    counts = data.draw(st.lists(st.integers(0, 3), min_size=a.shape[axis], max_size=a.shape[axis]))
    same(emberlet.repeat(x, counts, axis=axis), np.repeat(a, counts, axis))


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
def test_padding_with_the_tensors_own_elements(backend, mode):
    a = np.arange(12).reshape(3, 4)
    pads = [(2, 5), (3, 4)]
    same(tensor(a).pad(pads, mode=mode), np.pad(a, pads, mode=mode))


def test_negative_padding_cuts(backend):
    a = np.arange(12).reshape(3, 4)
    same(tensor(a).pad([(-1, 1), (1, -2)]), np.pad(a[1:, :2], [(0, 1), (1, 0)]))


def test_burn_orders_its_padding_from_the_last_axis(backend):
    a = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    same(tensor(a).pad((1, 2, 3, 4), 9), np.pad(a, [(3, 4), (1, 2)], constant_values=9))


def test_reshape_infers_one_size(backend):
    x = emberlet.arange(12)
    assert x.reshape((3, -1)).shape == (3, 4)
    assert x.reshape(12).shape == (12,)
    with pytest.raises(ShapeError, match=r"\(12,\).*\(5, -1\)"):
        x.reshape((5, -1))
    with pytest.raises(ShapeError, match="12 elements"):
        x.reshape((5,))
    assert emberlet.zeros((0, 3)).reshape((0, 9)).shape == (0, 9)


def test_axes_move_about(backend):
    a = np.arange(120).reshape(2, 3, 4, 5)
    x = tensor(a)
    same(emberlet.moveaxis(x, (0, -1), (2, 0)), np.moveaxis(a, (0, -1), (2, 0)))
    same(x.mT, a.swapaxes(-1, -2))
    same(x.swap_dims(0, 2), a.swapaxes(0, 2))
    same(x.flatten(1, 2), a.reshape(2, 12, 5))
    same(emberlet.squeeze(x[:, :1], 1), a[:, 0])
    same(emberlet.expand_dims(x, axis=(0, 3)), np.expand_dims(a, (0, 3)))
    assert tensor(a[0, 0]).T.shape == (5, 4)
    with pytest.raises(ShapeError):
        _ = x.T
    with pytest.raises(ShapeError, match="length 3"):
        emberlet.squeeze(x, 1)


def test_expand_keeps_axes_marked_minus_one(backend):
    a = np.arange(3).reshape(3, 1)
    same(tensor(a).expand((2, -1, 4)), np.broadcast_to(a, (2, 3, 4)))
    same(tensor(a).expand((1, 4)), np.broadcast_to(a, (3, 4)))
    with pytest.raises(ShapeError, match="broadcast"):
        tensor(a).expand((4, 4))


def test_splits_and_chunks(backend):
    x = emberlet.arange(7)
    assert [p.tolist() for p in x.split([1, 4, 2])] == [[0], [1, 2, 3, 4], [5, 6]]
    assert [p.tolist() for p in x.split(3)] == [[0, 1, 2], [3, 4, 5], [6]]
    assert [p.tolist() for p in x.chunk(3)] == [[0, 1, 2], [3, 4, 5], [6]]
    assert len(emberlet.arange(4).chunk(3)) == 2
    with pytest.raises(ShapeError, match="add up"):
        x.split([1, 2])
    assert x.narrow(0, 2, 3).tolist() == [2, 3, 4]
    with pytest.raises(ShapeError):
        x.narrow(0, 5, 3)


def test_joining_promotes_and_checks(backend):
    x = emberlet.concat([emberlet.ones((1,), dtype="int8"), emberlet.ones((1,), dtype="float16")])
    assert x.dtype.name == "float16"
    with pytest.raises(ShapeError, match=r"\(2, 2\) and \(2, 3\)"):
        emberlet.concat([emberlet.ones((2, 2)), emberlet.ones((2, 3))])
    same(emberlet.concat([tensor(np.ones((2, 2))), tensor(np.zeros(3))], axis=None), np.array([1.0] * 4 + [0.0] * 3))


def test_depth_and_space_are_inverse(backend):
    a = np.arange(2 * 8 * 2 * 3, dtype=np.float32).reshape(2, 8, 2, 3)
    x = tensor(a)
    same(x.depth_to_space(2).space_to_depth(2), a)
    assert x.depth_to_space(2, "CRD").shape == (2, 2, 4, 6)


def test_strings_move_like_numbers(backend):
    x = emberlet.asarray([["a", "b"], ["c", "d"]])
    assert x.dtype.name == "string"
    assert x.mT[::-1].tolist() == [["b", "d"], ["a", "c"]]
    assert emberlet.concat([x, x], axis=1).tolist() == [["a", "b", "a", "b"], ["c", "d", "c", "d"]]
    assert (x == x).tolist() == [[True, True], [True, True]]
    with pytest.raises(DTypeError):
        x + x


@every(
    ("call", "says"),
    [
        (lambda x: emberlet.broadcast_to(x[:1], (-2, 3)), r"no negative sizes, found \(-2, 3\)"),
        (lambda x: x[:1].expand(-2, 3), r"no negative sizes, found \(-2, 3\)"),
        (lambda x: emberlet.tile(x, (-1, 2)), r"tile has no negative sizes, found \(-1, 2\)"),
        (lambda x: emberlet.repeat(x, -1), r"repeat has no negative sizes, found \(-1,\)"),
        (
            lambda x: emberlet.repeat(x, emberlet.asarray([1, -1]), axis=0),
            r"repeat has no negative sizes, found \(1, -1\)",
        ),
        (lambda x: emberlet.linspace(0, 1, -1), r"no negative sizes, found \(-1,\)"),
        (lambda x: emberlet.arange(0, 5, 0), "arange from 0 to 5 in steps of 0 has no length"),
        (lambda x: emberlet.arange(0.0, 5.0, 0.0), "in steps of 0.0 has no length"),
        (lambda x: emberlet.arange(0, float("inf")), "to inf in steps of 1 has no length"),
        (lambda x: emberlet.arange(float("nan")), "to nan in steps of 1 has no length"),
        (lambda x: emberlet.roll(x, (1, 2, 3), axis=(0, 1)), r"found shifts \[1, 2, 3\] and axes \[0, 1\]"),
        (lambda x: emberlet.eye(-1), r"no negative sizes, found \(-1, -1\)"),
        (lambda x: emberlet.zeros((1.5, 2)), r"a shape must hold integers, found \(1.5, 2\)"),
        (lambda x: emberlet.functional.uniform((-1,)), r"no negative sizes, found \(-1,\)"),
        (lambda x: emberlet.asarray([1]).one_hot(-1), "num_classes must not be negative, found -1"),
        (lambda x: x.chunk(0, 1), "the number of parts is at least 1, found 0"),
        (lambda x: emberlet.concat([]), "concat needs at least one tensor, found none"),
        (lambda x: emberlet.stack([]), "stack needs at least one tensor, found none"),
    ],
)
def test_sizes_that_cannot_be_are_refused(backend, call, says):
    with pytest.raises(ShapeError, match=says):
        call(emberlet.ones((2, 3)))


@pytest.mark.parametrize("shift", [1.5, "1", (1, 2.0), None])
def test_a_shift_that_is_no_integer_is_refused(backend, shift):
    with pytest.raises(DTypeError, match=r"roll shifts by integers, found"):
        emberlet.roll(emberlet.ones((2, 3)), shift, axis=(0, 1))
