"""Tensors carried from call to call: a referenced one is computed once, and freed with its last reference."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from emberlet import dtypes
from emberlet import functional as F
from emberlet.wgpu_backend.run import runtime


@pytest.fixture
def dispatches(monkeypatch):
    """The number of dispatches in each submission from here on."""
    counts = []
    run = runtime.run_once

    def counted(device, plan, externals, sizes):
        counts.append(len(plan.steps))
        return run(device, plan, externals, sizes)

    monkeypatch.setattr(runtime, "run_once", counted)
    return counts


def _array(k, x):
    return np.array(k.to_list(x)).reshape(x.shape)


@pytest.fixture
def lstm(gpu, make):
    """(step, arrays): one step of a small LSTM with a linear head, and its weights."""
    weights = [make((4, 32)), make((8, 32)), make((8, 3))]
    arrays = [_array(make.cpu, w) * 0.3 for w in weights]
    w, u, v = [gpu.from_list(a.reshape(-1).tolist(), dtypes.float32, a.shape) for a in arrays]

    def step(x, h, c):
        gates = F.matmul(x, w) + F.matmul(h, u)
        i, f, g, o = [gates[:, 8 * n : 8 * n + 8] for n in range(4)]
        c = F.sigmoid(f) * c + F.sigmoid(i) * F.tanh(g)
        h = F.sigmoid(o) * F.tanh(c)
        return F.matmul(h, v), h, c

    return step, arrays


def _by_numpy(arrays, x, h, c):
    def sigmoid(a):
        return 1 / (1 + np.exp(-a))

    gates = x @ arrays[0] + h @ arrays[1]
    c = sigmoid(gates[:, 8:16]) * c + sigmoid(gates[:, :8]) * np.tanh(gates[:, 16:24])
    h = sigmoid(gates[:, 24:]) * np.tanh(c)
    return h @ arrays[2], h, c


def test_a_carried_state_costs_the_same_in_every_step(gpu, make, lstm, dispatches):
    step, arrays = lstm
    h = c = gpu.full((1, 8), 0.0, dtypes.float32)
    want = np.zeros((1, 8)), np.zeros((1, 8))
    for _ in range(50):
        x = make((1, 4))
        y, h, c = step(gpu.from_bytes(make.cpu.to_bytes(x), x.dtype, x.shape), h, c)
        expected, *want = _by_numpy(arrays, _array(make.cpu, x), *want)
        np.testing.assert_allclose(_array(gpu, y), expected, rtol=1e-3, atol=1e-4)
    assert len(dispatches) == 50
    assert len(set(dispatches[1:])) == 1  # the first step begins with constants


def test_reading_the_state_afterwards_computes_nothing(gpu, make, lstm, dispatches):
    step, _ = lstm
    zero = gpu.full((1, 8), 0.0, dtypes.float32)
    y, h, c = step(gpu.full((1, 4), 0.5, dtypes.float32), zero, zero)
    gpu.to_list(y)
    del dispatches[:]
    gpu.to_list(h), gpu.to_list(c)
    assert not dispatches


def test_a_cache_that_grows_is_stored_and_its_views_are_not(gpu, make, dispatches):
    cache = gpu.full((0, 4), 0.0, dtypes.float32)
    for i in range(20):
        cache = F.concat([cache, gpu.full((1, 4), float(i), dtypes.float32)], axis=0)
        turned = F.matrix_transpose(cache)
        gpu.to_list(F.sum(turned))
    assert turned.data.op == "permute"
    assert cache.data.op == "buffer"
    assert max(dispatches) <= 2


def test_tensors_without_references_are_not_stored(gpu, make, lstm):
    step, _ = lstm
    zero = gpu.full((1, 8), 0.0, dtypes.float32)
    x = gpu.full((1, 4), 0.5, dtypes.float32)
    h = c = zero
    for _ in range(3):
        y, h, c = step(x, h, c)
        gpu.to_list(y)
    gc.collect()
    live = gpu.device.live_bytes
    for _ in range(50):
        y, h, c = step(x, h, c)
        gpu.to_list(y)
    gc.collect()
    assert gpu.device.live_bytes == live
