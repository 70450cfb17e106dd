"""Programs that take each decision of the kernels compute what NumPy does."""

from __future__ import annotations

import pytest
from support.kernel_programs.values import PROGRAMS, difference

PARTS = 6


@pytest.mark.parametrize("part", range(PARTS))
def test_programs_compute_what_numpy_does(part: int) -> None:
    assert [said for name in [*PROGRAMS][part::PARTS] if (said := difference(name, "wasm"))] == []
