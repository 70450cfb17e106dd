"""When an inference is due, windows over streams hold the newest rows, oldest first."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from emberlet.micro.builder.quantization.reference import quantize
from emberlet.micro.stream import Rows

from tools.micropython import Port


def test_the_window_slides_by_a_hop() -> None:
    to = bytearray(5 * 2)
    rows = Rows(memoryview(to), 0.1, 128, columns=2, hop=3)
    data = np.random.default_rng(0).uniform(-12, 12, (20, 2))
    due = []
    for k, row in enumerate(data):
        if rows.append(row.tolist()):
            due.append(k)
            expected = quantize(data[k - 4 : k + 1], 0.1, 128).reshape(-1).astype(int)
            assert np.abs(np.frombuffer(to, np.uint8).astype(int) - expected).max() <= 1
    assert due == [4, 7, 10, 13, 16, 19]
    rows.clear()
    assert not rows.append((0, 0))


def test_numbers_beyond_the_grid_saturate_and_clearing_forgets_all_rows() -> None:
    to = bytearray(4)
    rows = Rows(memoryview(to), 2, 100, columns=2)
    assert [rows.append(row) for row in ([-1000, 1000], [-200, 310])] == [False, True]
    assert list(to) == [0, 255, 0, 255]
    assert rows.append([3.1, -3.1]) and list(to) == [0, 255, 102, 98]
    rows.clear()
    rows.write()
    assert list(to) == [100] * 4
    assert [rows.append([0, 2]) for _ in range(3)] == [False, True, True]
    assert list(to) == [100, 101, 100, 101]
    with pytest.raises(ValueError, match="an input of 0 bytes is not a whole number"):
        Rows(memoryview(bytearray()), 1, 0, columns=2)
    with pytest.raises(ValueError, match=r"2.*found 3"):
        Rows(memoryview(bytearray(8)), 1, 0, columns=2).append([1, 2, 3])


@pytest.mark.parametrize(
    ("unit", "scale"), [(2.0**-20, 0.5847029), (1 / 256, 0.30173), (1 / 4096, 0.0113), (1 / 64, 7.7139)]
)
def test_integers_in_fine_units_are_rounded_as_exact_numbers_are(unit: float, scale: float) -> None:
    """Below 2**28, as those of `Mfcc` and `LogMel`."""
    to, rng = bytearray(500), np.random.default_rng(1)
    most = min(round(100 * scale / unit), (1 << 28) - 1)
    numbers = rng.integers(-most, most, 500, endpoint=True)
    assert Rows(memoryview(to), scale, 128, columns=500, unit=unit).append(numbers.tolist())
    assert list(to) == [math.floor(int(v) * Fraction(unit) / Fraction(scale) + Fraction(257, 2)) for v in numbers]


def test_rows_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="not a whole number of rows"):
        Rows(memoryview(bytearray(7)), 1, 0, columns=2)
    with pytest.raises(ValueError, match=r"2.*found 1"):
        Rows(memoryview(bytearray(8)), 1, 0, columns=2).append([1])


def test_numbers_too_many_for_a_row_stay_out_of_the_others() -> None:
    to = bytearray(4)
    rows = Rows(memoryview(to), 1, 0, columns=2)
    rows.append([1, 2])
    for found in (3, 5):  # also beyond the end of the window
        with pytest.raises(ValueError, match=f"a row has 2 numbers, found {found}"):
            rows.append([9] * found)
    assert rows.append([3, 4]) and list(to) == [1, 2, 3, 4]
    with pytest.raises(ValueError, match="found 3"):
        rows.append([7, 8, 9])
    assert rows.append([5, 6]) and list(to) == [3, 4, 5, 6]


def test_on_a_board(unix_port: Port) -> None:
    script = """
from emberlet.micro.stream import Rows

to = bytearray(4)
rows = Rows(memoryview(to), 1, 100, columns=2)
print([rows.append((k, -k)) for k in range(4)], list(to))
"""
    assert unix_port.run(script).check().stdout == "[False, True, True, True] [102, 98, 103, 97]\n"


@pytest.mark.parametrize(
    ("step", "found"), [(0.5, 1), (32767 / 65536, 0), (254.4999, 254), (254.5001, 255), (-0.5, 0), (-0.5001, -1)]
)
def test_numbers_are_rounded_to_the_nearest_step(step: float, found: int) -> None:
    to = bytearray(2)
    rows = Rows(memoryview(to), 1 / abs(step), 100 if abs(step) < 1 else 0, columns=1)
    assert [rows.append([1 if step > 0 else -1]) for _ in range(2)] == [False, True]
    assert list(to) == [found + (100 if abs(step) < 1 else 0)] * 2


@pytest.mark.parametrize("kind", [int, float, np.int32, np.float32])
@pytest.mark.parametrize(("scale", "unit"), [(1000.0, 1.0), (39215.0, 1.0), (200000.0, 1.0), (0.5847029, 2.0**-20)])
def test_numbers_of_any_kind_are_rounded_by_the_exact_factor(kind: type, scale: float, unit: float) -> None:
    row = bytearray(1)
    rows = Rows(memoryview(row), scale, 3, columns=1, unit=unit)
    for level in (1, 98, 200):
        rows.append([kind(round(level * scale / unit))])
        assert row[0] == level + 3
