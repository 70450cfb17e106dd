"""Shapes, views, joins and padding against NumPy: what test_array_api_properties.py does not draw."""

from __future__ import annotations

import emberlet
import numpy as np
import pytest
from emberlet.errors import DTypeError
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from support.backends import same, tensor

SETTINGS = {"max_examples": 80}
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


def test_strings_move_like_numbers(backend):
    x = emberlet.asarray([["a", "b"], ["c", "d"]])
    assert x.dtype.name == "string"
    assert x.mT[::-1].tolist() == [["b", "d"], ["a", "c"]]
    assert emberlet.concat([x, x], axis=1).tolist() == [["a", "b", "a", "b"], ["c", "d", "c", "d"]]
    assert (x == x).tolist() == [[True, True], [True, True]]
    with pytest.raises(DTypeError):
        x + x


def test_parts_count_from_the_end_and_numbers_have_an_axis_when_flat(backend):
    a = np.arange(24).reshape(2, 3, 4)
    same(emberlet.narrow(tensor(a), 2, -3, 2), a[:, :, 1:3])
    same(emberlet.narrow(tensor(a), -1, -4, 4), a)
    same(emberlet.flatten(tensor(a), 0, -2), a.reshape(6, 4))
    same(emberlet.flatten(tensor(np.float32(3))), np.float32([3]))
