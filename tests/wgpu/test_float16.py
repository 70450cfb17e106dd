"""float16 stored as f16 where the device has it, in float32 words where it does not: the same values."""

from __future__ import annotations

import numpy as np
import pytest
from emberlet import dtypes
from emberlet import functional as F
from emberlet.wgpu_backend import WgpuBackend
from emberlet.wgpu_backend.compiled import compile
from emberlet.wgpu_backend.kernels.table import Options
from emberlet.wgpu_backend.plan.make import make_plan

HALF = dtypes.float16


@pytest.fixture(params=[True, False], ids=["f16", "f32"])
def halves(request, gpu, twin):
    if request.param and "shader-f16" not in gpu.device.raw.features:
        pytest.skip("this device has no shader-f16")
    twin.gpu = WgpuBackend(device=gpu.device)
    twin.gpu._half = request.param
    return twin


@pytest.mark.parametrize("shape", [(3, 5), (128, 132)], ids=str)
def test_elementwise_results_are_those_of_numpy_to_the_bit(halves, make, shape):
    a, b = make(shape, HALF), make(shape, HALF)
    halves.check(
        lambda k, a, b: k.binary("sub", k.binary("mul", a, b), k.permute(k.permute(b, (1, 0)), (1, 0))),
        a,
        b,
        rtol=0,
        atol=0,
    )
    halves.check(lambda k, a: k.cast(a, dtypes.float32), a, rtol=0, atol=0)


@pytest.mark.parametrize("device_class", ["cpu", "gpu"])
def test_products_sums_and_softmax(halves, make, device_class):
    halves.gpu._options = Options(device_class)
    a, b = make((40, 64), HALF), make((64, 36), HALF)
    halves.check(lambda k, a, b: k.matmul(a, b), a, b, rtol=2e-3, atol=2e-3)
    halves.check(lambda k, a: F.softmax(a), a, rtol=2e-3, atol=1e-5)
    x, w = make((1, 4, 9, 9), HALF), make((8, 4, 3, 3), HALF)
    halves.check(lambda k, x, w: k.conv(x, w, None, (1, 1), ((1, 1), (1, 1)), (1, 1), 1), x, w, rtol=2e-3, atol=4e-3)


def test_movement_scatter_and_sort(halves, make):
    x = make((7, 6), HALF)
    picks = make((5, 6), dtypes.int64, 0, 7)
    halves.check(lambda k, x: k.pad(k.slice(x, (1, 0), (3, 3), (2, 2)), ((1, 0), (0, 2)), 1.5), x, rtol=0, atol=0)
    halves.check(lambda k, x, i, u: k.scatter(x, i, u, 0, "add"), x, picks, make((5, 6), HALF), rtol=2e-3, atol=1e-3)
    halves.check(lambda k, x: k.sort(x, 1, False), x, rtol=0, atol=0)
    wide = make((3, 400), HALF), make((2, 400), dtypes.int64, 0, 3), make((2, 400), HALF)
    halves.check(lambda k, x, i, u: k.scatter(x, i, u, 0, "none"), *wide, rtol=0, atol=0)


def test_compiled_models_take_and_give_halves(halves, make):
    x = make((3, 5), HALF)
    compiled = compile(lambda x: F.exp(F.add(x, 1)), x, backend=halves.gpu)
    values = np.array(make.cpu.to_list(x), np.float16).reshape(3, 5)
    got = np.array(halves.gpu.to_list(compiled(x))).reshape(3, 5)
    np.testing.assert_allclose(got, np.exp(values + np.float16(1)), rtol=1e-3)


def test_elements_take_two_bytes_where_the_device_has_f16(gpu, make):
    if "shader-f16" not in gpu.device.raw.features:
        pytest.skip("this device has no shader-f16")
    x = gpu.from_bytes(make.cpu.to_bytes(make((4, 5), HALF)), HALF, (4, 5))
    y = gpu.unary("exp", x)
    plan, _ = make_plan([y.data], gpu.options)
    assert plan.kernels[0][1].startswith("enable f16;")
    assert [b.nbytes for b in plan.buffers] == [40, 40]
