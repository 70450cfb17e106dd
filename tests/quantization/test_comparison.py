"""How the outputs of a quantized and a float model are compared: infinities, NaN, labels, shapes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from emberlet.errors import EmberletError, UnsupportedError
from emberlet.host.quantization.comparison import Comparison, check_labels, compare

INF, NAN = np.inf, np.nan


@pytest.mark.parametrize(
    ("wanted", "found", "rms", "worst"),
    [
        ([0, 2, -INF, INF], [0, 1, -INF, INF], 0.25, 0.5),  # masked scores are equal
        ([0, 2, NAN, 1], [0, 2, NAN, 1], 0, 0),
        ([0, 2, 1, 1], [0, 2, NAN, 1], 0.5, 1),  # NaN where there was a number is as wrong as can be
        ([0, 2, INF, 1], [0, 2, -INF, 1], 0.5, 1),
        ([INF, INF, INF, INF], [INF, INF, INF, INF], 0, 0),
    ],
)
def test_values_that_are_not_finite_count(wanted: Any, found: Any, rms: float, worst: float) -> None:
    got = compare({"y": np.array(wanted, np.float32)}, {"y": np.array(found, np.float32)})
    assert got == Comparison(rms, worst, None)
    json.dumps([got.rms, got.worst, got.share], allow_nan=False)


@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((3, 4), 1),
        ((3, 7, 4), 2),  # tokens
        ((3, 4, 7, 8), 1),  # a map of classes in ONNX's order
        ((3, 8, 7, 4), 3),  # in TensorFlow's
        ((3, 1, 7, 8), None),  # a map of one number for each place names no class
        ((3, 7, 8, 1), None),
    ],
)
def test_classes_lie_along_the_axis_of_the_channels(shape: tuple[int, ...], axis: int | None) -> None:
    rng = np.random.default_rng(3)
    wanted, found = (rng.normal(size=shape).astype(np.float32) for _ in range(2))
    got = compare({"y": wanted}, {"y": found})
    assert got.same_best == (None if axis is None else np.mean(wanted.argmax(axis) == found.argmax(axis)))
    if axis is not None:
        assert compare({"y": wanted}, {"y": wanted}, wanted.argmax(axis)).accuracy == 1


def test_labels_of_another_number_are_refused() -> None:
    y = np.eye(3, dtype=np.float32)
    assert compare({"y": y}, {"y": y}, np.arange(3)).accuracy == 1
    with pytest.raises(EmberletError, match="4 labels for 3 classes"):
        compare({"y": y}, {"y": y}, np.arange(4))


def test_an_output_whose_length_depends_on_the_values_is_named() -> None:
    with pytest.raises(UnsupportedError, match="output kept"):
        compare({"kept": np.zeros(3, np.int64)}, {"kept": np.zeros(4, np.int64)})


@pytest.mark.parametrize(
    ("output", "labels", "said"),
    [
        (np.zeros((3, 4), np.float32), [0, 4, 3], "label 1 is 4, none of the first output's classes of 4, 0 to 3"),
        (np.zeros((3, 4), np.float32), [0, 1, -1], "label 2 is -1"),
        (np.zeros((3, 4), np.float32), [0.5, 1, 1], r"label 0 is 0\.5"),
        (np.zeros((3, 4), np.float32), [1, np.nan, 1], "label 1 is nan"),
        (np.zeros((3, 1), np.float32), [0, 1, 2], r"label 2 is 2, .* of 2, 0 to 1"),
        (np.zeros((2, 3, 8, 8), np.float32), np.full((2, 8, 8), 255), r"label 0 is 255, .* of 3"),
        (np.zeros(3, np.int64), [0, 70, -2], r"label 2 is -2, .* from 0"),
    ],
)
def test_labels_that_are_no_classes_are_refused(output: Any, labels: Any, said: str) -> None:
    with pytest.raises(EmberletError, match=said):
        check_labels(output, np.asarray(labels))


@pytest.mark.parametrize(
    ("output", "labels"),
    [
        (np.zeros((3, 4), np.float32), [0, 3, 2]),
        (np.zeros((3, 4), np.float32), [0.0, 3.0, 2.0]),
        (np.zeros((3, 1), np.float32), [True, False, True]),
        (np.zeros(3, np.int64), [0, 70, 2]),
        (np.zeros((0, 4), np.float32), []),
    ],
)
def test_labels_that_are_classes_are_taken(output: Any, labels: Any) -> None:
    check_labels(output, np.asarray(labels))
