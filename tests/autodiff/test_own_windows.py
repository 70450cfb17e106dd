"""Backward passes of convolution and pooling that a backend has of its own give what those of primitives give: NumPy's,
in a plan too, and the sums in parts of WebAssembly, which the GPU has as well."""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.host.numpy_backend.compile import compile as planned

# (shape of x, shape of the weight, stride, padding, dilation, groups)
CONVOLUTIONS = [
    ((2, 3, 6, 7), (4, 3, 3, 3), 1, 1, 1, 1),
    ((2, 4, 7, 9), (6, 2, 3, 2), (2, 1), ((1, 0), (0, 2)), (1, 2), 2),
    ((3, 2, 9, 8), (3, 2, 2, 3), 3, 0, 1, 1),
    ((2, 4, 5, 5), (4, 1, 3, 3), 1, 1, 1, 4),
    ((2, 3, 5, 5), (4, 3, 1, 1), 2, 0, 1, 1),
    ((2, 3, 11), (2, 3, 4), 2, 3, 1, 1),
    ((1, 2, 4, 5, 6), (3, 2, 2, 3, 2), 1, 1, (1, 1, 2), 1),
    ((3, 2, 5, 70), (4, 2, 3, 3), 1, 1, 1, 1),  # lines beyond those that are joined
    ((40, 16, 16, 16), (16, 16, 3, 3), 1, 1, 1, 1),  # columns that are made image by image
]
# (shape of x, kernel, stride, padding, dilation)
POOLS = [
    ((2, 3, 6, 6), 2, 2, 0, 1),
    ((2, 2, 7, 8), 3, 2, 1, 1),
    ((2, 2, 9), 3, 1, 1, 2),
    ((1, 2, 5, 7), (1, 3), (2, 3), (0, 1), 1),
]


def gradients(f: Any, arrays: list[Any], way: str) -> list[Any]:
    def both(*xs: Any) -> Any:
        return tuple(emberlet.grad(f, argnums=tuple(range(len(xs))))(*xs))

    backend = way if way in ("python", "wasm") else "numpy"
    xs = [emberlet.asarray(a, backend=backend) for a in arrays]
    found = (planned(both, *xs) if way == "plan" else both)(*xs)
    return [np.asarray(x.tolist(), np.float32) for x in found]


def check(f: Any, arrays: list[Any], reference: str = "python") -> None:
    wanted = gradients(f, arrays, reference)
    for way in ("eager", "plan", "wasm"):
        for found, want in zip(gradients(f, arrays, way), wanted, strict=True):
            np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4 * abs(want).max(), err_msg=way)


@pytest.mark.parametrize(("shape", "weight", "stride", "padding", "dilation", "groups"), CONVOLUTIONS)
def test_convolution(shape: Any, weight: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> None:
    r = np.random.RandomState(1)
    arrays = [r.randn(*s).astype(np.float32) for s in (shape, weight)]

    def f(x: Any, w: Any) -> Any:
        y = F.conv(x, w, None, stride, padding, dilation, groups)
        return (y * y.detach().cos()).sum()

    check(f, arrays, "python" if np.prod(shape) < 1e4 else "eager")


@pytest.mark.parametrize("padding", [0, 1])
def test_transposed_convolution(padding: int) -> None:
    r = np.random.RandomState(5)
    arrays = [r.randn(*s).astype(np.float32) for s in ((2, 4, 5, 4), (4, 2, 3, 2))]

    def f(x: Any, w: Any) -> Any:
        y = F.conv_transpose(x, w, None, (1, 3), padding, (0, 2), 2, 2)
        return (y * y.detach().cos()).sum()

    check(f, arrays)


@pytest.mark.parametrize(("shape", "kernel", "stride", "padding", "dilation"), POOLS)
@pytest.mark.parametrize("ties", [False, True])
def test_max_pooling(shape: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ties: bool) -> None:
    r = np.random.RandomState(2)
    x = r.randint(0, 3, shape) if ties else r.randn(*shape)

    def f(x: Any) -> Any:
        y = F.max_pool(x, kernel, stride, padding, dilation)
        return (y * y.detach().cos()).sum()

    check(f, [x.astype(np.float32)])


def test_a_large_convolution_against_shifted_products() -> None:
    r = np.random.RandomState(3)
    x, w = r.randn(40, 16, 16, 16).astype(np.float32), r.randn(16, 16, 3, 3).astype(np.float32)
    of_x, of_w = gradients(lambda x, w: (F.conv(x, w, padding=1) ** 2).sum() / 2, [x, w], "plan")
    around = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))).astype(np.float64)
    views = {(i, j): around[:, :, i : i + 16, j : j + 16] for i in range(3) for j in range(3)}
    y = sum(np.einsum("oc,nchw->nohw", w[:, :, i, j].astype(np.float64), v) for (i, j), v in views.items())
    wanted = np.zeros(w.shape)
    back = np.zeros(around.shape)
    for (i, j), v in views.items():
        wanted[:, :, i, j] = np.einsum("nohw,nchw->oc", y, v)
        back[:, :, i : i + 16, j : j + 16] += np.einsum("oc,nohw->nchw", w[:, :, i, j], y)
    np.testing.assert_allclose(of_w, wanted, rtol=1e-3, atol=1e-3 * abs(wanted).max())
    np.testing.assert_allclose(of_x, back[:, :, 1:-1, 1:-1], rtol=1e-3, atol=1e-3 * abs(back).max())


@pytest.mark.parametrize("op", ["none", "add", "mul", "max", "min"])
@pytest.mark.parametrize("rows", [1, 4])
def test_scatter_and_gather_in_a_plan(op: str, rows: int) -> None:
    r = np.random.RandomState(4)
    x, updates = (emberlet.asarray(r.randn(n, 5).astype(np.float32), backend="numpy") for n in (6, rows))
    index = emberlet.asarray(r.randint(-6, 6, (rows, 5)) if op != "none" else np.arange(rows * 5).reshape(rows, 5) % 6)

    def f(x: Any, index: Any, updates: Any) -> Any:
        y = x.backend.scatter(x, index, updates, 0, op)
        return y, x.backend.gather(y, index, 0)

    for found, want in zip(planned(f, x, index, updates)(x, index, updates), f(x, index, updates), strict=True):
        np.testing.assert_array_equal(found, want)
