"""Names on axes: operations by name give what the same operations by number give."""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet.errors import ArgumentError, EmberletError, ShapeError

A = np.random.RandomState(0).randn(2, 3, 4)
X = emberlet.asarray(A).named("batch", "time", "feature")


def same(found: Any, wanted: Any, *names: str) -> None:
    assert found.names == names
    np.testing.assert_allclose(np.asarray(found.tensor), wanted)


def test_reductions_take_names() -> None:
    same(X.mean("time"), A.mean(1), "batch", "feature")
    same(X.sum(axis=("time", "feature")), A.sum((1, 2)), "batch")
    same(X.max("batch", keepdims=True), A.max(0, keepdims=True), "batch", "time", "feature")
    assert X.sum().names == () and X.shape == {"batch": 2, "time": 3, "feature": 4}
    same(X.exp(), np.exp(A), "batch", "time", "feature")
    values, places = X.max_with_indices("time", keepdims=False)
    same(values, A.max(1), "batch", "feature")
    same(places, A.argmax(1), "batch", "feature")


def test_operators_match_axes_by_name() -> None:
    bias = emberlet.asarray(A[0, 0]).named("feature")
    turned = X.align("feature", "batch", "time")
    same(turned, A.transpose(2, 0, 1), "feature", "batch", "time")
    same(X + turned, A * 2, "batch", "time", "feature")
    np.testing.assert_allclose(np.asarray((bias - X).align(*X.names).tensor), A[0, 0] - A)
    same(2 * X / 4, A / 2, "batch", "time", "feature")
    same(X > 0, A > 0, "batch", "time", "feature")
    same(abs(-X), np.abs(A), "batch", "time", "feature")
    assert not (X == -X).all() and (X == X).all()


def test_products_indices_and_renames() -> None:
    weight = emberlet.asarray(A[0].T.copy()).named("feature", "unit")
    same(X.dot(weight, "feature"), A @ A[0].T, "batch", "time", "unit")
    same(X.at(time=1), A[:, 1], "batch", "feature")
    same(X.at(time=np.int64(1)), A[:, 1], "batch", "feature")
    same(X.at(time=slice(0, 2), batch=-1), A[-1, :2], "time", "feature")
    same(X.rename(time="step"), A, "batch", "step", "feature")
    assert "NamedTensor(batch: 2, time: 3, feature: 4" in repr(X) and X.dtype.name == "float64"


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: X.mean("tine"),
            ArgumentError,
            r"no axis 'tine'; the axes are batch, time, feature; did you mean time",
        ),
        (lambda: X + X.at(time=slice(0, 2)), ShapeError, r"'time' has 3 elements in \(batch.*and 2 in \(batch"),
        (lambda: X + emberlet.zeros((2,)).named("channel"), ShapeError, r"\(batch, time, feature\) and \(channel\)"),
        (lambda: X + emberlet.zeros((4,)), ShapeError, "has no names"),
        (lambda: emberlet.zeros((2, 2)).named("a"), ArgumentError, "2 axes need a name each"),
        (lambda: emberlet.zeros((2, 2)).named("a", "a"), ArgumentError, "a name of its own"),
        (lambda: X.align("batch", "time"), ShapeError, "align"),
        (lambda: X.dot(X, "unit"), ShapeError, "no axis of both"),
        (lambda: X.reshape((6, 4)), EmberletError, r"write x\.tensor\.reshape"),
        (lambda: X.swap_dims("time", "feature"), EmberletError, r"write x\.tensor\.swap_dims"),
        (lambda: X.transpose(), EmberletError, "names of the result"),
        (lambda: X.permute_dims(("time", "batch", "feature")), EmberletError, "names of the result"),
        (lambda: X.rename(tim="x"), ArgumentError, "did you mean time"),
        (lambda: X @ X, ArgumentError, r'write x\.dot\(y, over="name"\)'),
        (lambda: X.tensor @ X, ArgumentError, r"write x\.dot"),
        (lambda: X[0], ArgumentError, r"write x\.at\(batch=0\)"),
    ],
)
def test_a_mismatch_is_caught_with_both_names(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
