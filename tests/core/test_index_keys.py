"""Keys of every kind, alone and together: x[key] and x[key] = value as in NumPy."""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.errors import IndexingError, ShapeError
from support.rows import every

NUMBERS = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
ROWS, COLUMNS, FIRST = np.array([0, 2, 1]), np.array([1, 3, -1]), np.array([[2], [0]])
MASK = np.array([True, False, True])
SQUARE = NUMBERS[:, :, 0] % 3 == 0

KEYS = """
1 | -3 | 2, 3 | 2, 3, 4 | -1, -2, -3 | ... | ..., 1 | 1, ... | 1, ..., 2 | ..., 1:3 | None | None, 1 | 1, None
..., None
: | 1:3 | :2 | -2: | ::2 | ::-1 | ::-2 | 2:0:-1 | -1:-3:-1 | 5: | :-9 | 9::-1 | :, 3:1:-1 | :, :, ::3
0:0 | 2:1 | 1:9, -9:2
:, 1 | :, :, 2 | 1:, 2:, 3: | :, None, 1 | None, :, None, 2, ..., None
np.int64(1):3 | np.int64(2) | :, np.int64(-1)
ROWS | ROWS, COLUMNS | FIRST | FIRST, COLUMNS | ROWS, :, COLUMNS | :, ROWS | :, ROWS, COLUMNS | :, :, COLUMNS
ROWS, 1 | ROWS, :, 1 | 1, :, ROWS | 1, ROWS | :, 1, ROWS
ROWS, None, COLUMNS | None, ROWS, COLUMNS | ROWS, None, :, COLUMNS
ROWS, ..., COLUMNS | ..., ROWS, COLUMNS | ROWS, 1:3, 2 | 1:, FIRST, 1:3 | FIRST, 1, COLUMNS | ROWS, COLUMNS, ::-2
[0, 2] | [0, 2], [1, 3] | [[0], [1]] | (0, 2), (1, 3) | :, [1, -1] | [] | :, [] | range(2) | [True, False, True]
MASK | MASK, 1 | MASK, :, 2 | MASK, [1, 2] | SQUARE | SQUARE, 1 | SQUARE, None
:, NUMBERS[0] > 4 | NUMBERS > 30 | 1, NUMBERS[0] > 25
:, ROWS, None, COLUMNS | :, 1, None, COLUMNS | np.array(2) | :, np.array(-1) | np.array(1), ROWS
True | False | True, 1 | ..., False | 1, True | NUMBERS > 99 | MASK & False
"""
TABLE = [key.strip() for line in KEYS.strip().splitlines() for key in line.split(" | ")]


class Key:
    def __getitem__(self, key: Any) -> Any:
        return key


def keys_of(text: str, backend: str) -> tuple[Any, Any]:
    """The key for NumPy and for a tensor of a backend."""
    key = eval(f"Key()[{text}]")
    parts = key if isinstance(key, tuple) else (key,)
    own = tuple(F.asarray(k, backend=backend) if isinstance(k, np.ndarray) else k for k in parts)
    return key, own if isinstance(key, tuple) else own[0]


@pytest.mark.parametrize("backend", ["python", "numpy", "loops"])
@every("text", TABLE)
def test_a_key_picks_and_places_what_numpys_does(text, backend):
    key, own = keys_of(text, backend)
    x = emberlet.asarray(NUMBERS, backend=backend)
    expected = NUMBERS[key]
    found = x[own]
    assert found.shape == expected.shape
    assert found.tolist() == expected.tolist()
    for value in (-1.0, -np.arange(expected.size, dtype=np.float32).reshape(expected.shape)):
        changed, place = NUMBERS.copy(), emberlet.asarray(NUMBERS.copy(), backend=backend)
        changed[key] = value
        place[own] = value if isinstance(value, float) else F.asarray(value, backend=backend)
        assert place.tolist() == changed.tolist()
        assert x.tolist() == NUMBERS.tolist()


REFUSED = """
3 | -4 | :, 4 | :, -5 | 0, 0, 0, 0 | ..., ... | ::0 | "a" | 1.5 | [0.5] | [3] | [-4] | :, [4] | ROWS, [0, 1]
MASK[:2] | :, MASK
..., 5 | SQUARE[:, :2] | ROWS, ROWS + 3 | ROWS - 4, ROWS | 1, ..., 1, 1, 1 | {} | NUMBERS
"""


@every("text", [key.strip() for line in REFUSED.strip().splitlines() for key in line.split(" | ")])
@pytest.mark.parametrize("backend", ["python", "numpy"])
def test_a_key_that_does_not_fit_is_refused(text, backend):
    own = keys_of(text, backend)[1]
    x = emberlet.asarray(NUMBERS, backend=backend)
    with pytest.raises(IndexingError):
        x[own]
    with pytest.raises(IndexingError):
        x[own] = 1.0
    assert x.tolist() == NUMBERS.tolist()


@pytest.mark.parametrize(
    ("key", "shape", "fits"),
    [
        ("1:3", (4, 5), True), ("1:3", (2, 4, 5), True), ("1:3", (1, 1, 2, 4, 5), True), ("1:3", (1,), True),
        ("1:3", (3, 4, 5), False), ("1:3", (2, 2, 4, 5), False), ("1", (1, 1, 4, 5), True),
        ("1, 1, 1", (2,), False), ("MASK", (2, 1, 1), True), ("MASK", (3, 4, 5), False),
    ],
)  # fmt: skip
def test_a_value_broadcasts_to_what_it_is_assigned_to(key, shape, fits):
    numbers, own = keys_of(key, "python")
    value = -np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    x = emberlet.asarray(NUMBERS.copy(), backend="python")
    if not fits:
        with pytest.raises(ShapeError, match="cannot assign"):
            x[own] = F.asarray(value, backend="python")
        return
    expected = NUMBERS.copy()
    expected[numbers] = value
    x[own] = F.asarray(value, backend="python")
    assert x.tolist() == expected.tolist()
