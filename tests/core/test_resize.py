"""resize and interpolate against onnxruntime."""

from __future__ import annotations

from typing import Any

import emberlet as el
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.errors import ShapeError
from support.backends import tensor
from support.every_backend import EVERY
from support.onnxruntime_node import run_node
from support.rows import every

COORDINATES = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"]
ENLARGE, SHRINK = [1, 1, 2.5, 1.4], [1, 1, 0.6, 0.7]


def by_onnxruntime(x: Any, scales: Any = None, sizes: Any = None, **attributes: Any) -> Any:
    attributes["coordinate_transformation_mode"] = attributes.pop("coordinates", "half_pixel")
    given = [None if v is None else np.array(v, d) for v, d in ((scales, np.float32), (sizes, np.int64))]
    return run_node("Resize", [x, None, *given], result=x.dtype, **attributes)[0]


def image(*shape: int) -> Any:
    return np.random.default_rng(5).normal(size=shape).astype(np.float32)


def check(x: Any, backend: str = "numpy", **options: Any) -> None:
    found = np.asarray(F.resize(tensor(x, backend), **options))
    expected = by_onnxruntime(x, **{k: int(v) if isinstance(v, bool) else v for k, v in options.items()})
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("nearest_mode", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
@pytest.mark.parametrize("coordinates", COORDINATES)
def test_nearest(coordinates: str, nearest_mode: str) -> None:
    for sizes in ([2, 3, 10, 12], [2, 3, 3, 4], [2, 3, 7, 13]):
        if coordinates == "half_pixel_symmetric" and nearest_mode == "floor" and sizes[2] == 3:
            continue  # onnxruntime sees 1.9999999 where 2 is
        check(image(2, 3, 5, 6), sizes=sizes, mode="nearest", coordinates=coordinates, nearest_mode=nearest_mode)


@pytest.mark.parametrize("scale", [2, 3, 1.5, 1 / 3, 0.7, 0.9, 1.1, 2.7])
def test_nearest_by_a_scale_that_float32_rounds(scale: float) -> None:
    scales = [1, 1, float(np.float32(scale)), 1]
    for nearest_mode in ("floor", "round_prefer_floor"):
        for coordinates in ("asymmetric", "half_pixel"):
            check(image(1, 1, 30, 2), scales=scales, coordinates=coordinates, nearest_mode=nearest_mode)


@pytest.mark.parametrize("backend", EVERY)
@pytest.mark.parametrize("mode", ["linear", "cubic"])
@every("coordinates", COORDINATES)
def test_linear_and_cubic(coordinates: str, mode: str, backend: str) -> None:
    for sizes in ([1, 2, 12, 8], [1, 2, 3, 4], [1, 2, 5, 9]):
        check(image(1, 2, 5, 6), backend, sizes=sizes, mode=mode, coordinates=coordinates)


@pytest.mark.parametrize("scales", [ENLARGE, SHRINK])
@pytest.mark.parametrize("coordinates", ["half_pixel", "pytorch_half_pixel", "asymmetric"])
def test_by_scales_that_do_not_divide(coordinates: str, scales: list[float]) -> None:
    for mode in ("nearest", "linear", "cubic"):
        check(image(1, 2, 7, 9), scales=scales, mode=mode, coordinates=coordinates)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("sizes", [[1, 2, 4, 5], [1, 2, 3, 40], [1, 2, 2, 2]])
def test_antialias(mode: str, sizes: list[int]) -> None:
    x = image(1, 2, 31, 23)
    found = np.asarray(F.resize(tensor(x, "numpy"), sizes=sizes, mode=mode, antialias=True))
    expected = by_onnxruntime(x, sizes=sizes, mode=mode, antialias=1, exclude_outside=1)
    # onnxruntime leaves out what lies outside; emberlet does so where asked, as ONNX says.
    inside = F.resize(tensor(x, "numpy"), sizes=sizes, mode=mode, antialias=True, exclude_outside=True)
    np.testing.assert_allclose(np.asarray(inside), expected, rtol=1e-4, atol=1e-5)
    assert found.shape == expected.shape


def test_integers_stay_integers() -> None:
    x = np.arange(12, dtype=np.uint8).reshape(1, 1, 3, 4) * 20
    check(x, scales=[1, 1, 2, 2], mode="nearest")
    found = np.asarray(F.resize(tensor(x, "numpy"), sizes=[1, 1, 6, 8], mode="linear"))
    exact = np.asarray(F.resize(tensor(x.astype(np.float32), "numpy"), sizes=[1, 1, 6, 8], mode="linear"))
    np.testing.assert_array_equal(found, np.rint(exact).astype(np.uint8))


@pytest.mark.parametrize("scale", [0.29, 0.7, 1.1, 1.7, 2.5])
@pytest.mark.parametrize("n", [2, 5, 10, 100])
def test_interpolate_cuts_the_length_before_it_aligns_corners(n: int, scale: float) -> None:
    x = np.random.default_rng(n).normal(size=(1, 1, n)).astype(np.float32)
    out = int(n * scale)
    if out < 1:
        return
    found = np.asarray(F.interpolate(el.asarray(x), scale_factor=scale, mode="linear", align_corners=True))
    expected = np.interp(np.linspace(0, n - 1, out) if out > 1 else [0.0], np.arange(n), x[0, 0])
    np.testing.assert_allclose(found, expected[None, None], rtol=1e-4, atol=1e-5)


@every("policy", ["stretch", "not_larger", "not_smaller"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("backend", EVERY)
def test_an_empty_axis_stays_empty_and_gets_no_elements(mode: str, policy: str, backend: str) -> None:
    x = el.zeros((2, 0, 3), backend=backend)
    with pytest.raises(ShapeError, match="make 4"):
        F.resize(x, sizes=[2, 4, 3], mode=mode, keep_aspect_ratio_policy=policy)
    if policy == "stretch":
        assert F.resize(x, sizes=[2, 0, 6], mode=mode).shape == (2, 0, 6)
        assert F.resize(x, [1, 2.0, 2], mode=mode).shape == (2, 0, 6)
