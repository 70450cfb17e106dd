"""Python numbers, indices and offsets are data of eager kernels, so other values need no new pipelines."""

from __future__ import annotations

import numpy as np
import pytest
from emberlet import asarray, dtypes
from emberlet import functional as F
from emberlet.wgpu_backend.eager_sizes import OFTEN
from support.rows import every

EAGER = {
    "x * k": lambda x, k: x * (k + 0.5),
    "k - x": lambda x, k: (k - 3) - x,
    "x / k": lambda x, k: x / (k + 0.25),
    "x ** k": lambda x, k: F.abs(x) ** (k / 64),
    "x > k": lambda x, k: x > k,
    "int * k": lambda x, k: F.cast(x, "int32") * k,
    "int % k": lambda x, k: F.cast(x, "int32") % k,
    "int == k": lambda x, k: F.cast(x, "int32") == k % 9,
    "clip": lambda x, k: F.clip(x, -k, k),
    "where": lambda x, k: F.where(x > 0, x, float(k)),
    "leaky_relu": lambda x, k: F.leaky_relu(x, k / 128),
    "elu": lambda x, k: F.elu(x, k / 16),
    "layer_norm": lambda x, k: F.layer_norm(x, (24,), epsilon=k * 1e-3),
    "is_close": lambda x, k: F.is_close(x, x + 1, 0.0, k / 16),
    "x[i]": lambda x, k: x[k % 16],
    "x[-i]": lambda x, k: x[-1 - k % 16],
    "x[:, i]": lambda x, k: x[:, k % 24],
    "x[i, j]": lambda x, k: x[k % 16, k % 24],
    "x[i:i+5]": lambda x, k: x[k % 11 : k % 11 + 5],
    "x[i:i+5:-1]": lambda x, k: x[k % 11 + 5 : k % 11 : -1],
    "x[:, i:i+12:3]": lambda x, k: x[:, k % 12 : k % 12 + 12 : 3],
    "narrow": lambda x, k: F.narrow(x, 1, k % 17, 7),
    "take": lambda x, k: F.take(x, asarray([k % 16, (k + 1) % 16], device=x.backend), axis=0),
    "roll": lambda x, k: F.roll(x, 1 + k % 23, axis=1),
    "roll back": lambda x, k: F.roll(x, -1 - k % 15, axis=0),
    "roll, two axes": lambda x, k: F.roll(x, (1 + k % 15, 1 + k % 23), axis=(0, 1)),
    "roll, flattened": lambda x, k: F.roll(x, k),
    "assigned x[i]": lambda x, k: x.assigned(k % 16, k),
    "assigned x[i, j]": lambda x, k: x.assigned((k % 16, k % 24), k),
    "assigned x[:, i]": lambda x, k: x.assigned((slice(None), k % 24), x[:, 0] + k),
    "assigned x[i:i+5]": lambda x, k: x.assigned(slice(k % 11, k % 11 + 5), k),
    "assigned x[i:i+5, j:j+3]": lambda x, k: x.assigned(
        (slice(k % 12, k % 12 + 5), slice(k % 22, k % 22 + 3)), x[1:6, 2:5]
    ),
    "assigned x[i:i+5:-1]": lambda x, k: x.assigned(slice(k % 11 + 5, k % 11, -1), x[:5]),
    "assigned x[i:i+9:2]": lambda x, k: x.assigned(slice(k % 7, k % 7 + 9, 2), k),
    "slice_assign": lambda x, k: F.slice_assign(x, [(k % 11, k % 11 + 5)], x[2:7]),
    "tril": lambda x, k: F.tril(x, k=1 + k % 15),
    "pad": lambda x, k: F.pad(x, [(1, 2), (0, 3)], k),
    "full": lambda x, k: F.full((7,), k, device=x.backend),
    "arange": lambda x, k: F.arange(k + 1, k + 9, device=x.backend) * 2,
    "uniform": lambda x, k: F.uniform((5,), backend=x.backend) * 0 + k,
}


@every("name", EAGER)
def test_any_number_takes_the_pipelines_of_one(gpu, compiled, name):
    work = EAGER[name]
    values = np.random.default_rng(1).integers(-9, 9, (16, 24)).astype("float32")
    x, same = asarray(values, device=gpu), asarray(values, device="numpy")
    for _ in range(
        OFTEN + 2
    ):  # if another test has met this graph at other sizes, the shape gets kernels of its own late
        np.asarray(work(x, 1))
    compiled.clear()
    for k in range(2, 27):
        got, want = np.asarray(work(x, k)), np.asarray(work(same, k))
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5, err_msg=f"k = {k}")
    assert not compiled


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int8", "bool", "int64"])
def test_numbers_of_every_kind_arrive(gpu, twin, make, dtype):
    dtype = dtypes.dtype(dtype)
    x = make((5, 6), dtype)

    def graph(k, x):
        fill = True if dtype.is_bool else 3
        y = k.pad(x, ((1, 1), (0, 2)), fill)
        z = k.slice(y, (2, 1), (4, 5), (1, 1))
        return y, z, k.where(k.full((1,), True, dtypes.bool), z, k.full((), fill, dtype))

    twin.check(graph, x)


def test_special_numbers_arrive_unchanged(gpu):
    x = asarray(np.array([1.0, 0.0, np.inf, np.nan], "float32"), device=gpu)
    for k in (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 1.1754943508222875e-38, 3.4028234663852886e38):
        with np.errstate(all="ignore"):
            want = np.array([1.0, 0.0, np.inf, np.nan], "float32") * np.float32(k)
        if k != 1e-45:  # a GPU may treat subnormal numbers as 0
            np.testing.assert_array_equal(np.asarray(x * k), want)
        full = np.asarray(F.full((2,), k, device=gpu, dtype=dtypes.float32))
        assert full.view("uint32").tolist() == np.full((2,), k, "float32").view("uint32").tolist()


def test_compiled_plans_keep_their_numbers_inside(gpu, make):
    from emberlet.wgpu_backend.compiled import compile

    x = asarray(np.ones((4, 6), "float32"), device=gpu)
    plan = compile(lambda x: x[1:3] * 2.5 + 1, x, backend=gpu).plan()
    assert len(plan.externals) == 1
    assert "2.5" in plan.kernels[0][1]
