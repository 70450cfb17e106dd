"""The number of kernels after fusion."""

from __future__ import annotations

import pytest
from emberlet import dtypes
from emberlet.wgpu_backend.plan.make import make_plan


def _dispatches(gpu, *tensors):
    plan, _ = make_plan([t.data for t in tensors], gpu.options)
    return len(plan.steps)


@pytest.fixture
def on_gpu(gpu, make):
    return lambda *shape: gpu.from_bytes(make.cpu.to_bytes(make(shape)), dtypes.float32, shape)


def test_a_reshape_of_a_result_shares_its_buffer(gpu, on_gpu):
    y = gpu.matmul(on_gpu(4, 5), on_gpu(5, 6))
    gpu.realize(y)
    assert _dispatches(gpu, gpu.reshape(y, (2, 12))) == 0


@pytest.mark.parametrize("shape", [(4, 2, 1, 1), (2, 4), (8, 2), (4, 3)], ids=str)
@pytest.mark.parametrize("shift", [1, 2, 5])
def test_rolled_axes_of_maps_of_four_elements(gpu, twin, make, monkeypatch, shape, shift):
    from emberlet import functional as F
    from emberlet.wgpu_backend.compiled import compile
    from emberlet.wgpu_backend.record import node

    monkeypatch.setattr(node, "WIDE", 4)
    x = make(shape)
    for axis in range(len(shape)):
        found = compile(lambda x, axis=axis: F.roll(x, shift, axis), x, backend=gpu)(x)
        assert found.tolist() == F.roll(x, shift, axis).tolist()
