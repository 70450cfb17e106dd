"""Memory is flat on every way: what calls leave behind does not grow with their number.

tracemalloc counts what Python and NumPy allocate; `dev.py soak calls` watches the process and the GPU as well, over
100,000 calls.
"""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest
from support.rows import every

from contract.case import Case
from contract.ways import REFERENCE, Unavailable, available

SOURCE = """
class Net(nn.Module):
    def __init__(self, B):
        self.dense = nn.Linear(16, 16, backend=B)

    def forward(self, x):
        y = self.dense(x)
        return F.softmax(y, axis=-1), y / (F.max(F.abs(y)) + 1.0), F.sum(y * 0.5)

def make(B):
    return Net(B)
"""
WARM, CALLS = 20, 120
ROOM = 60  # bytes that a call may leave on average, for caches that still fill


@pytest.mark.timeout(900)
@every("name", [way.name for way in (REFERENCE, *available())], share=6)
def test_calls_leave_nothing_behind(name: str) -> None:
    way = next(way for way in (REFERENCE, *available()) if way.name == name)
    rng = np.random.default_rng(3)
    arrays = [(rng.standard_normal((5, 16)).astype(np.float32),) for _ in range(4)]
    try:
        run = way.open(Case(SOURCE, tuple(arrays), seed=1), arrays[0])
    except Unavailable as reason:
        pytest.skip(str(reason))
    for i in range(WARM):
        run(arrays[i % 4])
    gc.collect()
    tracemalloc.start()
    try:
        for i in range(WARM):
            run(arrays[i % 4])
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for i in range(CALLS):
            run(arrays[i % 4])
        gc.collect()
        left = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert left < ROOM * CALLS, f"{CALLS} calls left {left} bytes"
