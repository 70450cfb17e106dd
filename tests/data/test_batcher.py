"""StackBatcher: what items become, and what it says of items that do not fit."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet.data import DataError, StackBatcher

Item = namedtuple("Item", "image label")


def batch(rows: list[Any], **options: Any) -> Any:
    return StackBatcher(**options).batch(rows)


def test_numbers_become_a_tensor_in_the_usual_dtypes() -> None:
    for rows, dtype in (([1, 2], "int64"), ([1.0, 2.0], "float32"), ([True, False], "bool")):
        assert batch(rows).dtype.name == dtype
        assert batch(rows).tolist() == rows


def test_arrays_keep_their_dtype() -> None:
    for dtype in ("uint8", "float64", "float16", "int32"):
        rows = [np.full((2, 3), i, dtype) for i in range(4)]
        assert batch(rows).dtype.name == dtype
        assert (np.asarray(batch(rows)) == np.stack(rows)).all()


def test_structures_stay_structures() -> None:
    found = batch([Item(np.ones(2), {"class": 1, "name": "a"}), Item(np.zeros(2), {"class": 2, "name": "b"})])
    assert isinstance(found, Item)
    assert found.image.shape == (2, 2)
    assert (found.label["class"].tolist(), found.label["name"]) == ([1, 2], ["a", "b"])
    assert batch([(1, None), (2, None)])[1] == [None, None]


def test_lists_have_an_axis_of_their_own() -> None:
    assert batch([[1, 2, 3], [4, 5, 6]]).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert batch([[[1], [2]], [[3], [4]]]).shape == (2, 2, 1)
    x, y = batch([[(1.0, 5), (2.0, 6)], [(3.0, 7), (4.0, 8)]])
    assert (x.tolist(), y.tolist()) == ([[1.0, 2.0], [3.0, 4.0]], [[5, 6], [7, 8]])
    assert batch([["a", "b"], ["c", "d"]]) == [["a", "b"], ["c", "d"]]
    assert batch([[], []]).shape == (2, 0)


def test_tensors_are_stacked_on_their_backend_or_the_given_one() -> None:
    rows = [emberlet.asarray([1, 2], backend="python"), emberlet.asarray([3, 4], backend="python")]
    assert batch(rows).backend is emberlet.get_backend("python")
    assert batch(rows, backend="numpy").backend is emberlet.get_backend("numpy")
    assert batch([1, 2], backend="python").backend is emberlet.get_backend("python")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([np.zeros(2), np.zeros(3)], r"items of shapes \(2,\) and \(3,\) do not stack"),
        ([{"a": 1}, {"b": 1}], "different keys"),
        ([{"a": 1}, 3], "different keys"),
        ([(1, 2), (1,)], "tuples of different length"),
        ([None, 3], "None and 3 do not stack"),
        (["a", {"x": 1}], "'a' and .* do not stack"),
        ([[1, 2], 3], "3 among lists"),
        ([[1], [1, 2]], "lists of 1 and 2 elements do not stack; pad them"),
        ([{"x": 1.0}, {"x": None}], r"\['x'\]: None among numbers, in row 1"),
        ([(0, {"x": 1}), (0, {"x": "a"})], r"\[1\]\['x'\]: 'a' among numbers"),
        ([object(), object()], "object is not stacked; pass a batcher of your own"),
        ([], "no items"),
    ],
)
def test_items_that_do_not_fit_are_named(rows: list[Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        batch(rows)
