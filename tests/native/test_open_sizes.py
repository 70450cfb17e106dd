"""Open sizes in native plans: one plan gives NumPy's results at every size, with vectors of each length."""

from __future__ import annotations

from typing import Any

import emberlet
import pytest
from emberlet.wgpu_backend.compiled import compile
from emberlet.wgpu_backend.llvm.backend import NativeBackend
from wasm.test_open_sizes import FUNCTIONS, drawn, near

LENGTHS = [1, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 70, 2]  # 70 exceeds the capacity of the first plans


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_one_plan_gives_numpys_results_at_every_length(function: Any, backend: NativeBackend) -> None:
    compiled = compile(function, backend=backend, dims={"x": {0: "batch", 1: "length"}})
    for length in LENGTHS:
        x = drawn(1 + length % 3, length)
        near(compiled(x), function(emberlet.asarray(x, backend="numpy")), x.shape)
    assert (len(compiled._open), len(compiled._plans)) == (1, 0), compiled.fixed
