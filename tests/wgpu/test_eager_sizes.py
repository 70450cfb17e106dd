"""What is computed at once in many shapes: from the second on they share kernels, and results stay right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from emberlet import functional as F
from emberlet.functional.arrays import asarray
from emberlet.wgpu_backend import WgpuBackend, eager_sizes

pytestmark = pytest.mark.filterwarnings("ignore:float64")
W = np.random.default_rng(0).standard_normal((16, 8)).astype(np.float32)


def _softmax(a: Any) -> Any:
    e = np.exp(a - a.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


# name -> (a function of shape (n, 16), the same on NumPy, its kernels)
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], int]] = {
    "affine": (lambda x: x * 2.5 + 1.0, lambda a: a * 2.5 + 1, 1),
    "softmax": (lambda x: F.softmax(x, axis=1), _softmax, 1),
    "sum": (lambda x: x.sum(0), lambda a: a.sum(0), 1),
    "linear": (lambda x: F.relu(x @ asarray(W, device=x.backend) + 0.5), lambda a: np.maximum(a @ W + 0.5, 0), 1),
    "silu": (lambda x: F.sigmoid(x) * x, lambda a: a / (1 + np.exp(-a)), 1),
    "turned": (lambda x: F.permute_dims(x, (1, 0)) * x.reshape((16, -1)), lambda a: a.T * a.reshape(16, -1), 1),
    "norm": (
        lambda x: (x - x.mean(1, keepdims=True)) / (x * x).mean(1, keepdims=True).sqrt(),
        lambda a: (a - a.mean(1, keepdims=True)) / np.sqrt((a * a).mean(1, keepdims=True)),
        2,
    ),
}


def drawn(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_any_number_of_shapes_has_two_pipelines_a_kernel(name: str, compiled: list[str]) -> None:
    function, on_numpy, kernels = FUNCTIONS[name]
    backend = WgpuBackend()
    for k in range(80):
        a = drawn(17 + k * 37 % 311, 16)  # of 16 rows, "turned" would have no reshape, and be another graph
        np.testing.assert_allclose(np.asarray(function(asarray(a, device=backend))), on_numpy(a), rtol=1e-4, atol=1e-5)
    assert len(compiled) <= 2 * kernels


def test_a_shape_that_recurs_gets_a_plan_of_its_own() -> None:
    backend = WgpuBackend()
    for n in (5, 6, *[7] * (eager_sizes.OFTEN + 3)):
        a = drawn(n, 3)
        np.testing.assert_allclose(np.asarray(asarray(a, device=backend) * 3.25 - 0.5), a * 3.25 - 0.5, rtol=1e-5)
    assert len(backend._plans) == 2  # of the first shape, and of the one that recurs


@pytest.mark.parametrize(
    "dtype", ["float16", "int8", "uint8", "bool", "int32", "uint32", "int64", "bfloat16", "float64"]
)
def test_every_dtype_is_right_in_later_shapes(dtype: str) -> None:
    backend = WgpuBackend()
    for shape in ((3, 5), (4, 7), (130, 127), (1, 9), (2, 4)):
        a = asarray(np.abs(drawn(*shape)) * 20, device="numpy").astype(dtype)
        x = a.to(backend)
        both = lambda v: (F.where(v == v, v, v).max(1), v.astype("float32").sum(0), F.concat([v, v], 1))  # noqa: E731
        for found, wanted in zip(both(x), both(a), strict=True):
            assert found.dtype is wanted.dtype
            np.testing.assert_allclose(
                np.asarray(found.to("numpy").astype("float64")), np.asarray(wanted.astype("float64")), rtol=1e-5
            )


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each computation from here on, whether a plan with open sizes served it."""
    out = []
    find = eager_sizes.EagerSizes.find

    def found(sizes: eager_sizes.EagerSizes, order: Any, roots: Any) -> Any:
        plan = find(sizes, order, roots)
        out.append(plan is not None)
        return plan

    monkeypatch.setattr(eager_sizes.EagerSizes, "find", found)
    return out


@pytest.mark.parametrize("name", ["row", "column", "batch"])
def test_shapes_that_broadcast_the_same_axes_share_a_plan(name: str, served: list[bool]) -> None:
    backend = WgpuBackend()
    for n, m in ((3, 4), (5, 2), (6, 6), (2, 9)):
        a, b = {
            "row": (drawn(n, m), drawn(1, m)),
            "column": (drawn(n, m), drawn(n, 1)),
            "batch": (drawn(n, 3, m), drawn(1, m, 5)),
        }[name]
        x, y = asarray(a, device=backend), asarray(b, device=backend)
        found, wanted = (x @ y, a @ b) if name == "batch" else (x + y, a + b)
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5, atol=1e-5)
    assert served == [False, True, True, True]


def test_large_products_have_other_kernels_than_small_ones(compiled: list[str], served: list[bool]) -> None:
    backend = WgpuBackend()
    pipelines = []
    for n in (3, 5, 40, 128, 140, 7):
        a = drawn(n, n)
        x = asarray(a, device=backend)
        np.testing.assert_allclose(np.asarray(x @ F.permute_dims(x, (1, 0))), a @ a.T, rtol=1e-4, atol=1e-4)
        pipelines.append(len(compiled))
    assert served == [False, True, True, True, True, True]
    assert pipelines == [1, 2, 2, 3, 3, 3]
