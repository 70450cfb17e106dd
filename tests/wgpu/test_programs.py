"""Programs that take each decision of the kernels compute what NumPy does."""

from __future__ import annotations

from typing import Any

import pytest
from support.kernel_programs.values import PROGRAMS, difference

PARTS, EVERY = 3, 4  # each kernel is compiled first, so a quarter of the programs has to do


@pytest.mark.parametrize("part", range(PARTS))
def test_programs_compute_what_numpy_does(gpu: Any, part: int) -> None:
    chosen = [*PROGRAMS][::EVERY][part::PARTS]
    assert [said for name in chosen if (said := difference(name, "wgpu"))] == []
