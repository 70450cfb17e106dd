"""Normalizations that read more tensors than a kernel may bind."""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
import pytest


@pytest.mark.parametrize("backend", ["wasm", pytest.param("wgpu", marks=pytest.mark.needs("gpu-driver"))])
def test_rows_that_read_many_tensors_are_computed_by_several_kernels(backend: str) -> None:
    draw = np.random.RandomState(0)
    arrays = [draw.rand(3, 8).astype(np.float32) + 0.5 for _ in range(20)]

    def f(x: Any, *factors: Any) -> Any:
        y = x - x.sum(-1, keepdims=True)
        for factor in factors:
            y = y * factor
        return y / (y * y).sum(-1, keepdims=True)

    found = f(*[emberlet.asarray(a, backend=backend) for a in arrays])
    want = f(*[emberlet.asarray(a.astype(np.float64), backend="numpy") for a in arrays])
    np.testing.assert_allclose(np.asarray(found), np.asarray(want), rtol=1e-5)
