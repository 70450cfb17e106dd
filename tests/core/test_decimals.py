"""Numbers are written in the fewest digits that read back as the same number, everywhere alike."""

from __future__ import annotations

import random

import emberlet
import numpy as np
import pytest
from emberlet import dtypes
from emberlet.dtypes.decimal import shortest
from emberlet.dtypes.narrow import decode, encode

NARROW = ("float32", "float16", "bfloat16")


def drawn(dtype: str, seed: int, count: int = 200) -> list[float]:
    draw = random.Random(f"{dtype} {seed}")
    values = [draw.uniform(-1, 1) * 10.0 ** draw.randint(-6, 4) for _ in range(count)] + [0.0, -0.0, 0.1, 1 / 3]
    if dtype == "float32":
        return [float(np.float32(v)) for v in values]
    d = dtypes.BY_NAME[dtype]
    return [decode(d, encode(d, v)) for v in values]


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("seed", range(3))
def test_the_text_reads_back_and_no_shorter_one_does(dtype: str, seed: int) -> None:
    values = drawn(dtype, seed)
    for value in values:
        short = shortest(value, dtypes.BY_NAME[dtype])
        back = emberlet.asarray([short], dtype=dtype, backend="python").tolist()[0]
        assert back == value
        digits = len(f"{short:e}".partition("e")[0].replace(".", "").replace("-", "").rstrip("0"))
        if digits > 1:
            fewer = float(f"{value:.{digits - 1}g}") if digits <= 9 else value
            assert emberlet.asarray([fewer], dtype=dtype, backend="python").tolist()[0] != value or fewer == short


@pytest.mark.parametrize("seed", range(3))
def test_float32_and_float16_have_the_digits_that_numpy_writes(seed: int) -> None:
    for dtype in ("float32", "float16"):
        for value in drawn(dtype, seed):
            assert shortest(value, dtypes.BY_NAME[dtype]) == float(str(np.dtype(dtype).type(value)))


@pytest.mark.parametrize("dtype", [*NARROW, "float64", "float8_e4m3fn", "float8_e5m2", "int8", "uint64", "bool"])
def test_strings_are_the_same_on_every_backend_and_read_back(dtype: str) -> None:
    values = drawn(dtype, 5) if dtype in NARROW else [0, 1, 2, 5, 96] if dtype != "bool" else [True, False]
    texts = []
    for backend in ("python", "numpy"):
        x = emberlet.asarray(values, dtype=dtype, backend=backend)
        texts.append(x.astype("string").tolist())
        if dtype != "bool":
            assert x.astype("string").astype(dtype).tolist() == x.tolist()
    assert texts[0] == texts[1]


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_what_is_no_number_stays_as_it_is(value: float) -> None:
    assert str(shortest(value, dtypes.float16)) == str(value)


def test_a_value_between_two_numbers_of_the_dtype_is_rounded() -> None:
    assert shortest(1 / 3, dtypes.float32) == 0.33333334
    assert shortest(1 / 3, dtypes.float64) == 1 / 3
