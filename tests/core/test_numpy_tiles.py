"""What the kernels of the numpy backend are made of: the taps of windows, and exact sums of small integers."""

from __future__ import annotations

import numpy as np
import pytest
from emberlet.host.numpy_backend import integers, windows


def test_the_taps_of_a_window() -> None:
    x = np.arange(20).reshape(2, 10)
    parts = windows.taps(x, 1, 3, 2, 2)
    assert [p[0].tolist() for p in parts] == [[0, 2, 4], [2, 4, 6], [4, 6, 8]]
    assert windows.padded(x[None, None], ((0, 0), (0, 0)), 7).base is not None
    np.testing.assert_array_equal(windows.padded(x[None, None], ((1, 0), (0, 2)), 7)[0, 0],
                                  np.pad(x, ((1, 0), (0, 2)), constant_values=7))  # fmt: skip


@pytest.mark.parametrize(("terms", "kind"), [(1, "float32"), (258, "float32"), (259, "float64"), (5000, "float64")])
def test_sums_of_small_integers_are_exact_in_the_float_that_is_chosen(terms: int, kind: str) -> None:
    a = np.full((1, terms), 255, np.int32)
    left, right = integers._exact(a, a.T, terms)
    assert (left.dtype.name, right.dtype.name) == (kind, kind)
    assert integers._integers(left @ right).item() == 255 * 255 * terms
    small = integers._exact(np.full((1, terms), -3, np.int32), np.full((terms, 1), 5, np.int32), terms)
    assert small[0].dtype == np.float32  # what they hold decides
    assert integers._integers(small[0] @ small[1]).item() == -15 * terms
