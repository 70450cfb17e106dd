"""Sums, means, norms and pools keep float32's accuracy for any data, and narrow floats are added in float32."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from emberlet import asarray, dtypes
from emberlet import functional as F
from emberlet.wgpu_backend import WgpuBackend
from emberlet.wgpu_backend.kernels.table import Options
from support.rows import every

LEVELS = [300.0, 6e4, 1e-6]
REDUCTIONS = {
    "sum": lambda x: F.sum(x, -1),
    "mean": lambda x: F.mean(x, -1),
    "mean of all": lambda x: F.mean(x),
    "var": lambda x: F.var(x, -1),
    "std": lambda x: F.std(x, -1),
    "norm": lambda x: F.norm(x, 2, -1),
    "logsumexp": lambda x: F.logsumexp(x, -1),
    "softmax": lambda x: F.softmax(x, -1),
    "cumulative_sum": lambda x: F.cumulative_sum(x, axis=-1),
    "layer_norm": lambda x: F.layer_norm(x, axis=-1),
    "rms_norm": lambda x: F.rms_norm(x, axis=-1),
    "group_norm": lambda x: F.group_norm(x, 2),
    "instance_norm": lambda x: F.instance_norm(x),
    "lp_normalize": lambda x: F.lp_normalize(x),
    "avg_pool": lambda x: F.avg_pool2d(x, (4, 8)),
    "global_avg_pool": lambda x: F.global_avg_pool(x),
}


@pytest.fixture(params=["gpu", "cpu", "swiftshader"])
def on_class(gpu, request):
    backend = WgpuBackend(device=gpu.device)
    backend._options = Options(request.param)
    return backend


def _near(found, want, dtype, what):
    """Within one unit in the last place of the largest element; infinite if the dtype cannot represent it."""
    most = {"float16": 65504.0, "bfloat16": 3.38e38, "float32": 3.4e38}[dtype]
    unit = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1e-6}[dtype]
    held = np.abs(want) < most
    assert np.all(np.isinf(found[np.abs(want) > most * 1.01])), what
    size = np.abs(want[held]).max(initial=0.0)
    tiny = {"float16": 6e-8, "bfloat16": 0.0, "float32": 0.0}[dtype]
    np.testing.assert_allclose(found[held], want[held], rtol=unit, atol=2 * unit * size + tiny, err_msg=what)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("level", LEVELS)
@every("name", REDUCTIONS)
def test_reductions_and_norms_at_every_level(gpu, dtype, level, name):
    choose = np.random.default_rng(4)
    drawn = level * (1 + choose.standard_normal((2, 4, 8, 96)) / 8)
    own = drawn.clip(-65000, 65000).astype(getattr(ml_dtypes, dtype, dtype))
    wide = asarray(own.astype(np.float64), device="numpy")
    x = F.cast(asarray(own.astype(np.float32), device=gpu), dtypes.dtype(dtype))
    work = REDUCTIONS[name]
    with np.errstate(all="ignore"):
        want = np.asarray(work(wide))
    if name in ("layer_norm", "group_norm", "instance_norm", "var", "std") and level > 1000 and dtype != "float32":
        # Most of what is left of the values is their own rounding error.
        assert np.all(np.isfinite(want))
    _near(np.asarray(F.cast(work(x), dtypes.float32)).astype(np.float64), want, dtype, f"{name} of {dtype} at {level}")


@pytest.mark.parametrize("shape", [(1 << 20,), (3, 50000), (40, 5000), (700, 30, 40), (9000, 2)], ids=str)
def test_long_sums_of_float32_are_within_two_units(on_class, shape):
    x = np.full(shape, 0.1, np.float32)
    axes = tuple(range(1, len(shape))) or None
    want = x.astype(np.float64).sum(axes)
    for axis in (axes, None):
        want = x.astype(np.float64).sum(axis)
        found = np.asarray(F.sum(asarray(x, device=on_class), axis))
        np.testing.assert_allclose(found, want, rtol=2.5e-6)
    mean = np.asarray(F.softmax(asarray(x, device=on_class), 0) * shape[0])
    np.testing.assert_allclose(mean, 1.0, rtol=5e-6)


def test_ten_million_tenths(gpu):
    x = F.full((10_000_000,), 0.1, device=gpu)
    x = F.where(F.arange(10_000_000, device=gpu) >= 0, x, 0.0)  # elements, not a number
    assert abs(F.sum(x).item() / (1e7 * float(np.float32(0.1))) - 1) < 3e-6


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_long_sums_of_narrow_floats_are_added_in_float32(gpu, dtype):
    signs = np.where(np.arange(600_000) % 2000 < 1000, 100.0, -99.0).astype(np.float32)
    x = F.cast(asarray(signs, device=gpu), dtypes.dtype(dtype))
    assert abs(F.mean(x).item() - 0.5) < 0.01
    assert float(F.sum(x).item()) == (np.inf if dtype == "float16" else 299008.0)
