"""A choice between many elements, which NumPy's backend makes with their bits, is NumPy's."""

from __future__ import annotations

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.host.numpy_backend.compile import compile


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16", "float32", "int64", "float64"])
@pytest.mark.parametrize("shapes", [((64, 50), (64, 50), (64, 50)), ((64, 1), (50,), ()), ((), (64, 50), (50,))])
def test_a_choice_between_many_elements_is_numpys(dtype: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    draw = np.random.default_rng(3)
    condition = draw.random(shapes[0]) > 0.5
    a, b = (np.asarray(draw.random(shape) * 200 - 100).astype(dtype) for shape in shapes[1:])
    if dtype.startswith("float"):
        a.flat[:1], b.flat[-1:] = np.nan, np.copysign(0, -1)
    given = [emberlet.asarray(x, backend="numpy") for x in (condition, a, b)]
    want = np.where(condition, a, b)
    for run in (F.where, compile(F.where)):
        for _ in range(2):
            found = np.asarray(run(*given))
            np.testing.assert_array_equal(found.view(np.uint8), want.view(np.uint8))
