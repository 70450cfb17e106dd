"""What plans on NumPy choose for images: channels last, products in parts, relu behind the operation before it. The
contract draws networks of images for what they compute."""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.host import blas_kernels
from emberlet.host.numpy_backend.compile import compile, few_rows, layout
from emberlet.module import Module
from emberlet.param import Param
from emberlet.tensor import Tensor


class Held(Module):
    """A function of an image and of tensors that the module holds."""

    def __init__(self, function: Any, tensors: list[Tensor]) -> None:
        self.function = function
        self.held = [Param(tensor) for tensor in tensors]

    def forward(self, x: Tensor) -> Any:
        return self.function(x, *(param.val() for param in self.held))


@pytest.mark.parametrize("small", [few_rows.SMALL, 4])
@pytest.mark.parametrize("rows, n, columns", [(2, 70, 32), (49, 640, 64), (49, 1300, 32), (100, 313, 96), (31, 64, 40)])
def test_a_product_in_parts_is_the_product(
    rows: int, n: int, columns: int, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(few_rows, "SMALL", small)
    monkeypatch.setattr(layout, "LARGE", 0)
    monkeypatch.setattr(few_rows, "LEAST", 0)
    monkeypatch.setattr(few_rows, "are_faster_in_parts", lambda: True)
    monkeypatch.setattr(blas_kernels, "threads", lambda: 1)
    random = np.random.default_rng(rows + n)
    weight = emberlet.asarray(random.standard_normal((columns, n, 1, 1)).astype(np.float32), backend="numpy")
    x = emberlet.asarray(random.standard_normal((1, n, 1, rows)).astype(np.float32), backend="numpy")
    compiled = compile(Held(F.conv2d, [weight]), x)
    assert ("32]" in repr(compiled.plan())) == (columns % 32 == 0)
    want = np.asarray(weight)[:, :, 0, 0].astype(float) @ np.asarray(x)[0, :, 0].astype(float)
    np.testing.assert_allclose(np.asarray(compiled(x))[0, :, 0], want, rtol=1e-5, atol=1e-4)


def test_grouped_convolutions_and_models_between_small_and_large_keep_their_layout() -> None:
    def traced(groups: int, size: int) -> str:
        weight = emberlet.asarray(np.ones((32, 32 // groups, 3, 3), np.float32), backend="numpy")
        x = emberlet.asarray(np.ones((1, 32, size, size), np.float32), backend="numpy")
        layer = Held(lambda x, weight: F.conv2d(x, weight, padding=1, groups=groups), [weight])
        return repr(compile(layer, x).plan())

    assert "9216, 288" in traced(1, 96) or "864, 288" in traced(1, 96)
    assert "64, 288" in traced(1, 8)
    assert "288, " in traced(1, 12) and "144, 288" not in traced(1, 12)
    assert "288]" not in traced(2, 96)


def test_relu_runs_once_behind_a_concatenation_and_behind_max_pooling() -> None:
    def function(x: Tensor) -> Tensor:
        both = F.concat([F.relu(x * 2.0), F.relu(x - 1.0)], axis=1)
        return F.max_pool2d(both, kernel_size=2, stride=2, padding=1)

    x = emberlet.asarray(np.random.default_rng(0).standard_normal((1, 3, 9, 9)).astype(np.float32), backend="numpy")
    compiled = compile(function, x)
    kinds = [line.split("(")[0].strip() for line in repr(compiled.plan()).splitlines()]
    assert kinds.count("clip") == 1 and kinds.index("clip") > max(i for i, k in enumerate(kinds) if k == "maximum")
    np.testing.assert_array_equal(np.asarray(compiled(x)), np.asarray(function(x)))


def test_relu_stays_where_others_read_it_or_a_window_sees_the_border_alone() -> None:
    def read_twice(x: Tensor) -> list[Tensor]:
        y = F.relu(x)
        return [F.max_pool2d(y, kernel_size=2), F.concat([y, F.relu(-x)], axis=1), F.concat([y, -x], axis=1)]

    x = emberlet.asarray(-np.ones((1, 2, 4, 4), np.float32), backend="numpy")
    for found, want in zip(compile(read_twice, x)(x), read_twice(x), strict=True):
        np.testing.assert_array_equal(np.asarray(found), np.asarray(want))
