"""Operators at opsets whose cases ONNX no longer ships, against onnxruntime where it still runs them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from support.onnx_models import assert_same, check, generated, parse

RANDOM = np.random.default_rng(5)


def normal(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("opset", [9, 13, 19])
def test_cast(opset: int) -> None:
    text = "g (float[2, 3] x) => (int32[2, 3] y, bool[2, 3] z) { y = Cast<to = 6>(x)  z = Cast<to = 9>(x) }"
    check(parse(text, opset), normal(2, 3) * 4)


def test_cast_to_a_type_by_name() -> None:
    model = parse('g (float[2] x) => (int32[2] y) { y = Cast<to = "INT32">(x) }', 5)
    assert_same(generated(model, [np.array([1.5, -2.5], np.float32)]), [np.array([1, -2], np.int32)])


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
def test_pad_with_its_pads_as_attributes(mode: str) -> None:
    text = 'g (float[2, 3] x) => (float[a, b] y) { y = Pad<mode = "%s", pads = [1, 2, 0, 1], value = 0.5>(x) }'
    check(parse(text % mode, 2), normal(2, 3))
    first = parse((text % mode).replace("pads =", "paddings ="), 1)
    x = normal(2, 3)
    assert_same(generated(first, [x]), generated(parse(text % mode, 2), [x]))


def test_one_hot() -> None:
    for opset in (9, 11):
        text = """g (int64[3] x, float[2] v) => (float[a, b] y) <int64 depth = {4}> {
            y = OneHot<axis = 0>(x, depth, v)
        }"""
        check(parse(text, opset), np.array([3, 0, 2]), np.array([-1, 2], np.float32))


def test_resize_before_it_had_modes_for_coordinates() -> None:
    text = """g (float[1, 1, 3, 4] x) => (float[a, b, c, d] y) <float[4] scales = {1.0, 1.0, 2.0, 3.0}> {
        y = Resize<mode = "%s">(x, scales)
    }"""
    for mode in ("nearest", "linear"):
        check(parse(text % mode, 10), normal(1, 1, 3, 4))
        check(parse((text % mode).replace("Resize", "Upsample"), 9), normal(1, 1, 3, 4))
    text = """g (float[1, 1, 3, 4] x) => (float[a, b, c, d] y)
    <float[0] roi = {}, float[4] scales = {1.0, 1.0, 2.0, 3.0}> {
        y = Resize<mode = "%s", coordinate_transformation_mode = "%s">(x, roi, scales)
    }"""
    for mode in ("nearest", "linear", "cubic"):
        for way in ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"):
            check(parse(text % (mode, way), 11), normal(1, 1, 3, 4))


def test_upsample_with_scales_as_attributes() -> None:
    text = "g (float[1, 1, 2, 3] x) => (float[a, b, c, d] y) { y = Upsample<%s>(x) }"
    x = normal(1, 1, 2, 3)
    check(parse(text % "scales = [1.0, 1.0, 2.0, 3.0]", 7), x)
    first = parse(text % "height_scale = 2.0, width_scale = 3.0", 1)
    assert_same(generated(first, [x]), [x.repeat(2, 2).repeat(3, 3)])


def test_roi_align_before_half_pixels() -> None:
    text = """g (float[1, 2, 6, 6] x, float[2, 4] rois, int64[2] batch) => (float[a, b, c, d] y) {
        y = RoiAlign<output_height = 2, output_width = 3, sampling_ratio = 2, spatial_scale = 0.5>(x, rois, batch)
    }"""
    rois = np.array([[0, 0, 8, 9], [2, 1, 11, 10]], np.float32)
    check(parse(text, 10), normal(1, 2, 6, 6), rois, np.zeros(2, np.int64))


def test_a_pool_of_norms_with_its_first_attributes() -> None:
    old = parse(
        "g (float[1, 1, 4] x) => (float[1, 1, 2] y) { y = LpPool<p = 2.0, kernel_shape = [2], strides = [2]>(x) }", 1
    )
    x = normal(1, 1, 4)
    assert_same(generated(old, [x]), [np.sqrt((x.reshape(1, 1, 2, 2) ** 2).sum(3))])


def test_tile_along_one_axis() -> None:
    model = parse(
        "g (float[2, 3] x) => (float[2, 6] y) <int64 times = {2}, int64 axis = {1}> { y = Tile(x, times, axis) }", 1
    )
    for t in model.graph.initializer:
        t.data_type, t.int64_data[:] = 1, []
        t.ClearField("raw_data")
        t.float_data[:] = [2.0 if t.name == "times" else 1.0]
    x = normal(2, 3)
    assert_same(generated(model, [x]), [np.tile(x, (1, 2))])


@pytest.mark.parametrize("opset", [7, 11, 13, 16, 19])
def test_if_and_loop(opset: int) -> None:
    text = """g (float[3] x, bool c, int64 n) => (float[3] y, float[3] z, float[a, b] s) {
        y = If (c) <then_branch = t () => (float[3] p) { p = Neg(x) },
                    else_branch = f () => (float[3] q) { q = Exp(x) }>
        z, s = Loop (n, c, x) <body = l (int64 i, bool k, float[3] v) => (bool k2, float[3] w, float[3] u) {
            w = Add(v, x)  u = Mul(v, v)  k2 = Identity(k)
        }>
    }"""
    for c in (True, False):
        check(parse(text, opset), normal(3), np.array(c), np.array(3))


@pytest.mark.parametrize("opset", [9, 11, 16, 19])
def test_scan(opset: int) -> None:
    text = """g (float[2] s, float[4, 2] x) => (float[2] y, float[4, 2] z) {
        y, z = Scan<num_scan_inputs = 1, scan_input_directions = [1], body = b (float[2] a, float[2] e) =>
            (float[2] c, float[2] d) { c = Add(a, e)  d = Mul(c, e) }>(s, x)
    }"""
    check(parse(text, opset), normal(2), normal(4, 2))


@pytest.mark.parametrize("lengths", [None, "constant", "given"])
@pytest.mark.parametrize("direction", [0, 1])
def test_scan_of_opset_8_over_a_batch(lengths: str | None, direction: int) -> None:
    """onnxruntime has the batch and the sequence lengths too; elements past the end of a sequence are 0."""
    text = """g (int64[3] n, float[3, 2] s, float[3, 4, 2] x) => (float[3, 2] y, float[3, 4, 2] z) {
        y, z = Scan<num_scan_inputs = 1, directions = [%d], body = b (float[2] a, float[2] e) =>
            (float[2] c, float[2] d) { c = Add(a, e)  d = Mul(c, e) }>(n, s, x)
    }"""
    model = parse(text % direction, 8)
    inputs = [np.array([4, 1, 3]), normal(3, 2), normal(3, 4, 2)]
    if lengths != "given":
        del model.graph.input[0]
        if lengths == "constant":
            model.graph.initializer.append(helper.make_tensor("n", 7, [3], [4, 1, 3]))
        else:
            model.graph.node[0].input[0] = ""
        inputs = inputs[1:]
    check(model, *inputs)
