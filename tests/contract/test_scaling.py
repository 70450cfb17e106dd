"""No function takes time or memory that grows faster than n log n where NumPy's does not.

What is counted is the memory of results and temporaries; times would depend on the machine.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F

SMALL, LARGE = 1 << 9, 1 << 12
CALLS: dict[str, Callable[[Any], Any]] = {
    "searchsorted": lambda x: F.searchsorted(F.sort(x), x),
    "isin": lambda x: F.isin(x, x),
    "unique_values": lambda x: F.unique_values(x),
    "unique_counts": lambda x: F.unique_counts(x)[1],
    "sort": lambda x: F.sort(x),
    "argsort": lambda x: F.argsort(x),
    "topk": lambda x: F.topk(x, 16),
    "cumulative_sum": lambda x: F.cumulative_sum(x, axis=0),
    "cumulative_prod": lambda x: F.cumulative_prod(x, axis=0),
    "cummax": lambda x: F.cummax(x, 0),
    "nonzero": lambda x: F.nonzero(x)[0],
    "take": lambda x: F.take(x, F.argsort(x), 0),
    "roll": lambda x: F.roll(x, 7, 0),
    "repeat": lambda x: F.repeat(x, 2, axis=0),
    "diff": lambda x: F.diff(x),
    "scatter": lambda x: F.scatter(x, 0, F.argsort(x), x, "add"),
    "pad": lambda x: F.pad(x, [(3, 4)]),
    "softmax": lambda x: F.softmax(x, 0),
    "max_pool1d": lambda x: F.max_pool1d(F.reshape(x, (1, 1, x.size)), 3),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("backend", ["numpy", "python"])
def test_memory_grows_with_the_number_of_elements(name: str, backend: str) -> None:
    def peak(n: int) -> int:
        values = np.random.default_rng(n).standard_normal(n).astype(np.float32)
        x = emberlet.asarray(values, backend=backend, copy=True)
        CALLS[name](x)  # imports
        tracemalloc.start()
        try:
            CALLS[name](x)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    small, large = peak(SMALL), peak(LARGE)
    grows = LARGE // SMALL
    assert large <= 2 * grows * small + (1 << 16), (small, large)
