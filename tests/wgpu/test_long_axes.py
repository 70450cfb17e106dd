"""Axes longer than an invocation may loop on some devices (llvmpipe silently stops after 65535 iterations)."""

from __future__ import annotations

import numpy as np
import pytest
from emberlet import dtypes
from emberlet import functional as F
from emberlet.backend import get_backend


def _tensor(array):
    dtype = dtypes.dtype(array.dtype.name)
    return get_backend("numpy").from_bytes(array.tobytes(), dtype, array.shape)


@pytest.fixture
def long():
    return lambda *shape: _tensor(np.random.default_rng(1).integers(-2, 3, shape).astype(np.int32))


REDUCED = [
    ((70001,), (0,)), ((40, 70001), (1,)), ((300001, 3), (0,)), ((700, 1000), (0, 1)), ((2, 600, 1000), (1, 2)),
    ((2, 600, 3, 1000), (1, 3)),
]  # fmt: skip


@pytest.mark.parametrize("shape, axes", REDUCED, ids=str)
def test_reductions(twin, long, shape, axes):
    x = long(*shape)
    twin.check(lambda k, x: k.reduce("sum", x, axes, False), x)
    twin.check(lambda k, x: k.reduce("max", x, axes, True), x)


def test_argmax_and_cumulative_sums(twin, long):
    x = long(2, 80001)
    twin.check(lambda k, x: k.argreduce("max", x, 1, False), x)
    twin.check(lambda k, x: k.cumulative("sum", x, 1), x)
    wide = long(20, 61000)
    twin.check(lambda k, x: k.cumulative("sum", x, 1), wide)


def test_scatter_of_many_updates(twin, long):
    picks = _tensor(np.random.default_rng(2).integers(0, 50, (70001,)))
    twin.check(lambda k, x, i, u: k.scatter(x, i, u, 0, "add"), long(50), picks, long(70001))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("steps", [60001, 120001])
def test_scatter_of_many_updates_along_an_axis_of_several(twin, long, steps, axis):
    def turned(*shape):
        return shape if axis else shape[::-1]

    picks = _tensor(np.random.default_rng(2).integers(0, 50, turned(3, steps)))
    x, updates = long(*turned(4, 50)), long(*turned(3, steps))
    twin.check(lambda k, x, i, u: k.scatter(x, i, u, axis, "add"), x, picks, updates)
    twin.check(lambda k, x, i, u: k.scatter(x, i, u, axis, "none"), x, picks, updates)


def test_products_with_a_long_inner_axis(twin, long):
    twin.check(lambda k, a, b: k.matmul(a, b), long(2, 70001), long(70001, 40))


def test_softmax_and_normalization_of_long_rows(twin):
    values = np.random.default_rng(3).standard_normal((40, 65000)).astype(np.float32)
    twin.check(lambda k, x: F.softmax(x), _tensor(values), rtol=1e-4, atol=1e-9)
    twin.check(lambda k, x: F.layer_norm(x), _tensor(values), rtol=1e-5, atol=1e-5)
