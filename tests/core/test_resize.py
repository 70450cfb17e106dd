"""resize and interpolate against onnxruntime."""

from __future__ import annotations

from typing import Any

import emberlet as el
import numpy as np
import onnxruntime
import pytest
from emberlet import functional as F
from emberlet.errors import EmberletError, ShapeError
from onnx import helper, numpy_helper
from support.backends import tensor
from support.every_backend import EVERY
from support.rows import every

COORDINATES = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"]
ENLARGE, SHRINK = [1, 1, 2.5, 1.4], [1, 1, 0.6, 0.7]


def by_onnxruntime(x: Any, scales: Any = None, sizes: Any = None, roi: Any = None, **attributes: Any) -> Any:
    inputs = {"roi": roi, "scales": scales, "sizes": sizes}
    dtypes = {"roi": np.float32, "scales": np.float32, "sizes": np.int64}
    attributes["coordinate_transformation_mode"] = attributes.pop("coordinates", "half_pixel")
    node = helper.make_node(
        "Resize", ["x", *(n if v is not None else "" for n, v in inputs.items())], ["y"], **attributes
    )
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", kind, x.shape)],
        [helper.make_tensor_value_info("y", kind, None)],
        [numpy_helper.from_array(np.array(v, dtypes[n]), n) for n, v in inputs.items() if v is not None],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), quiet, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


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


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_crop_and_resize_extrapolates_outside(mode: str) -> None:
    check(
        image(1, 1, 6, 7),
        sizes=[1, 1, 4, 5],
        roi=[0, 0, 0.3, -0.2, 1, 1, 1.1, 0.8],
        mode=mode,
        coordinates="tf_crop_and_resize",
        extrapolation_value=7.5,
    )


def test_cubic_coefficient_and_excluded_outside() -> None:
    for sizes in ([1, 1, 9, 11], [1, 1, 3, 4]):
        check(image(1, 1, 5, 6), sizes=sizes, mode="cubic", cubic_coeff_a=-0.5, exclude_outside=True)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_aspect_ratio_may_be_kept(policy: str) -> None:
    check(image(1, 1, 6, 9), sizes=[5, 12], axes=[2, 3], keep_aspect_ratio_policy=policy, mode="linear")


def test_some_axes_only_in_their_own_order() -> None:
    x = image(2, 3, 4, 5)
    given = tensor(x, "numpy")
    one = np.asarray(F.resize(given, sizes=[10, 8], axes=[3, 2], mode="linear"))
    two = np.asarray(F.resize(given, sizes=[2, 3, 8, 10], mode="linear"))
    np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)


def test_integers_stay_integers() -> None:
    x = np.arange(12, dtype=np.uint8).reshape(1, 1, 3, 4) * 20
    check(x, scales=[1, 1, 2, 2], mode="nearest")
    found = np.asarray(F.resize(tensor(x, "numpy"), sizes=[1, 1, 6, 8], mode="linear"))
    exact = np.asarray(F.resize(tensor(x.astype(np.float32), "numpy"), sizes=[1, 1, 6, 8], mode="linear"))
    np.testing.assert_array_equal(found, np.rint(exact).astype(np.uint8))


def test_interpolate_is_pytorchs() -> None:
    x = el.asarray([[[1.0, 2.0, 4.0]]])
    assert F.interpolate(x, size=6).tolist() == [[[1, 1, 2, 2, 4, 4]]]
    assert F.interpolate(x, size=5, mode="linear", align_corners=True).tolist() == [[[1, 1.5, 2, 3, 4]]]
    assert F.interpolate(x, scale_factor=2, mode="linear").tolist() == [[[1, 1.25, 1.75, 2.5, 3.5, 4]]]


@pytest.mark.parametrize(
    "options", [{}, {"scales": [1], "sizes": [2]}, {"sizes": [2]}, {"scales": [1, 2], "mode": "x"}]
)
def test_refuses_what_does_not_fit(options: dict[str, Any]) -> None:
    with pytest.raises((EmberletError, ValueError)):
        F.resize(el.zeros((2, 3)), **options)


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


def test_interpolate_wants_one_size_or_scale_for_each_axis() -> None:
    x = el.zeros((1, 1, 4, 4))
    with pytest.raises(ShapeError, match="2 axes"):
        F.interpolate(x, size=(3, 3, 3))
    with pytest.raises(ValueError, match="scale_factor"):
        F.interpolate(x)


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
