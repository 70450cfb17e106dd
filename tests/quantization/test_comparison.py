"""How the outputs of a quantized and a float model are compared: infinities, NaN, labels, shapes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from emberlet.errors import EmberletError, UnsupportedError
from emberlet.host.quantization.comparison import Comparison, compare

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


def test_labels_of_another_number_are_refused() -> None:
    y = np.eye(3, dtype=np.float32)
    assert compare({"y": y}, {"y": y}, np.arange(3)).accuracy == 1
    with pytest.raises(EmberletError, match="4 labels for 3 classes"):
        compare({"y": y}, {"y": y}, np.arange(4))


def test_an_output_whose_length_depends_on_the_values_is_named() -> None:
    with pytest.raises(UnsupportedError, match="output kept"):
        compare({"kept": np.zeros(3, np.int64)}, {"kept": np.zeros(4, np.int64)})
