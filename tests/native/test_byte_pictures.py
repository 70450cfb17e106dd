"""Pictures of 8-bit integers, a byte each in plans: largest values of windows, and convolutions with a border of the
zero point, in machine code and in WebAssembly, beside NumPy's windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.wgpu_backend.compiled import compile as compiled
from support.rows import every

Array = np.ndarray[Any, Any]
Pads = Sequence[tuple[int, int]]


@pytest.fixture(params=["native", "wasm"])
def where(request: pytest.FixtureRequest) -> str:
    if request.param == "wasm":
        pytest.importorskip("wasmtime")
    return str(request.param)


def windows(x: Array, kernel: Sequence[int], stride: Sequence[int], padding: Pads, fill: int) -> Array:
    """What each window sees of a picture in int64: (n, c, rows, columns, *kernel)."""
    x = np.pad(x.astype(np.int64), [(0, 0), (0, 0), *padding], constant_values=fill)
    return np.lib.stride_tricks.sliding_window_view(x, tuple(kernel), (2, 3))[:, :, :: stride[0], :: stride[1]]


def planned(where: str, function: Any, *arrays: Array) -> Array:
    tensors = [emberlet.asarray(a, backend=where) for a in arrays]
    return np.asarray(compiled(function, *tensors, backend=where)(*tensors))


@every("seed", range(60), share=3)
def test_largest_bytes_and_convolutions_of_them_are_those_of_numpy(where: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    dtype = [np.uint8, np.int8][seed % 2]
    info = np.iinfo(dtype)
    kernel = [int(n) for n in rng.integers(1, 5, 2)]
    stride = [int(n) for n in rng.choice([1, 1, 2, 2, 3], 2)]
    padding = [(int(rng.integers(0, k)), int(rng.integers(0, k))) for k in kernel]
    sizes = [int(rng.integers(k, 70)) for k in kernel]
    x = rng.integers(info.min, info.max, (int(rng.integers(1, 3)), int(rng.integers(1, 6)), *sizes), dtype, True)
    pooled = windows(x, kernel, stride, padding, int(info.min)).max((-2, -1)).astype(dtype)
    found = planned(where, lambda x: F.max_pool2d(x, kernel, stride, padding), x)
    np.testing.assert_array_equal(found, pooled, strict=True)

    taps = [min(int(n), size) for n, size in zip(rng.integers(1, 4, 2), pooled.shape[2:], strict=True)]
    pads = [(int(rng.integers(0, 3)), int(rng.integers(0, 3))) for _ in range(2)]
    steps = [int(n) for n in rng.choice([1, 1, 2], 2)]
    w = rng.integers(-128, 127, (int(rng.integers(1, 20)), x.shape[1], *taps), np.int8, True)
    zero = int(rng.choice([0, info.min, info.max, int(rng.integers(info.min, info.max))]))

    def model(x: Any) -> Any:
        y = F.max_pool2d(x, kernel, stride, padding)
        return F.conv_integer(y, emberlet.asarray(w, backend=x.backend), zero, padding=pads, stride=steps)

    seen = windows(pooled.astype(np.int64) - zero, taps, steps, pads, 0)
    wanted = np.einsum("ncyxij,ocij->noyx", seen, w.astype(np.int64))
    np.testing.assert_array_equal(planned(where, model, x), wanted)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("how", ["max", "min", "add"])
def test_bytes_that_are_scattered_into_bytes_keep_their_sign(where: str, dtype: str, how: str) -> None:
    info = np.iinfo(dtype)
    x = np.array([info.min, info.max, -1 % 256 if info.min == 0 else -1, 3], dtype)
    given = np.array([1, 2, 0, 100], dtype)

    def model(x: Any, given: Any) -> Any:
        return F.scatter(x, 0, emberlet.asarray([3, 2, 1, 0], backend=x.backend), given, how) + 0

    wanted = x.copy()
    getattr(np, {"max": "maximum", "min": "minimum", "add": "add"}[how]).at(wanted, [3, 2, 1, 0], given)
    np.testing.assert_array_equal(planned(where, model, x, given), wanted)
