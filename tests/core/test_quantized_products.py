"""Products and convolutions of small integers with scales and zero points of every shape, against NumPy's exact
integers and onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emberlet import functional as F
from emberlet.errors import DTypeError, ShapeError
from support.backends import same, tensor
from support.onnxruntime_node import run_node
from support.rows import every

KINDS = [("uint8", "uint8"), ("uint8", "int8"), ("int8", "int8")]


def levels(draw: Any, dtype: str, *shape: int) -> Any:
    info = np.iinfo(dtype)
    return draw.integers(info.min, info.max + 1, shape).astype(dtype)


def given(x: Any) -> Any:
    return tensor(x) if isinstance(x, np.ndarray) else x


@pytest.mark.parametrize("kinds", KINDS)
@every(("a_zero", "b_zero"), [(None, None), ((), None), (None, (4,)), ((3,), ()), ((3,), (4,)), ((2, 3, 1), (2, 1, 4))])
def test_products_of_integers_less_their_zero_points(backend: Any, kinds: Any, a_zero: Any, b_zero: Any) -> None:
    draw = np.random.default_rng(len(kinds[0]))
    a, b = levels(draw, kinds[0], 2, 3, 5), levels(draw, kinds[1], 2, 5, 4)
    az = None if a_zero is None else levels(draw, kinds[0], *a_zero)
    bz = None if b_zero is None else levels(draw, kinds[1], *b_zero)
    left = a.astype(np.int64) - (0 if az is None else az.astype(np.int64).reshape(-1, 1) if az.ndim == 1 else az)
    right = b.astype(np.int64) - (0 if bz is None else bz.astype(np.int64))
    same(F.matmul_integer(tensor(a), tensor(b), given(az), given(bz)), (left @ right).astype(np.int32))
    sa, sb = draw.uniform(0.1, 2, 3 if a_zero == (3,) else ()), draw.uniform(0.1, 2, 4 if b_zero == (4,) else ())
    sa, sb, bias = (np.asarray(v, np.float32) for v in (sa, sb, draw.normal(size=4)))
    expected = (left @ right) * (sa.reshape(-1, 1) if sa.ndim else sa) * sb
    found = F.matmul_integer_to_float(*map(given, (a, b, sa, sb, az, bz)))
    same(found, expected.astype(np.float32), rtol=1e-5, atol=1e-2)
    found = F.matmul_integer_to_float(*map(given, (a, b, sa, sb, az, bz, bias)))
    same(found, (expected + bias).astype(np.float32), rtol=1e-5, atol=1e-2)


def saturated(real: Any, zero: int, dtype: str) -> Any:
    info = np.iinfo(dtype)
    return np.clip(np.rint(real.astype(np.float32)) + zero, info.min, info.max).astype(dtype)


@every("kinds", KINDS)
@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("columns", [False, True])
def test_quantized_products(backend: Any, kinds: Any, rows: bool, columns: bool) -> None:
    draw = np.random.default_rng(3)
    a, b = levels(draw, kinds[0], 3, 5), levels(draw, kinds[1], 5, 4)
    sa = draw.uniform(0.01, 0.02, 3 if rows else ()).astype(np.float32)
    sb = draw.uniform(0.01, 0.02, 4 if columns else ()).astype(np.float32)
    az, bz = np.array(3, kinds[0]), np.array(-2 if kinds[1] == "int8" else 7, kinds[1])
    exact = (a.astype(np.int64) - int(az)) @ (b.astype(np.int64) - int(bz))
    for y_zero, dtype in ((np.array(5, "uint8"), "uint8"), (np.array(-9, "int8"), "int8"), (11, "uint8")):
        scale = (sa.reshape(-1, 1) if rows else sa) * sb / np.float32(0.03)
        found = F.qlinear_matmul(*map(given, (a, sa, az, b, sb, bz)), 0.03, given(y_zero))
        gap = np.asarray(found).astype(int) - saturated(exact * scale, int(y_zero), dtype)
        assert found.dtype.name == dtype and np.abs(gap).max() <= 1 and (gap == 0).mean() > 0.9
    found = F.qlinear_matmul(*map(given, (a, sa, az, b, sb, bz)), 0.03, 4, dtype="int8")
    assert found.dtype.name == "int8"


@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
def test_quantized_gemm(backend: Any, turned: Any) -> None:
    draw = np.random.default_rng(4)
    a, b = (
        levels(draw, "uint8", *((5, 3) if turned[0] else (3, 5))),
        levels(draw, "int8", *((4, 5) if turned[1] else (5, 4))),
    )
    c = draw.integers(-500, 500, 4).astype(np.int32)
    exact = ((a.T if turned[0] else a).astype(np.int64) - 4) @ ((b.T if turned[1] else b).astype(np.int64) - 2)
    options = {"trans_a": turned[0], "trans_b": turned[1]}
    for alpha in (1.0, 0.5):
        scale = np.float32(0.1) * np.float32(0.2) * np.float32(alpha)
        for bias in (None, c):
            total = exact + (0 if bias is None else bias)
            found = F.qgemm(tensor(a), 0.1, 4, tensor(b), 0.2, 2, given(bias), alpha=alpha, **options)
            same(found, (total * scale).astype(np.float32), rtol=1e-5, atol=1e-3)
            found = F.qgemm(tensor(a), 0.1, 4, tensor(b), 0.2, 2, given(bias), 3.0, 100, alpha=alpha, **options)
            gap = np.asarray(found).astype(int) - saturated(total * (scale / np.float32(3)), 100, "uint8")
            assert np.abs(gap).max() <= 1 and (gap == 0).mean() > 0.8


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("channels", [False, True])
def test_quantized_convolutions_are_onnxruntimes(backend: Any, groups: int, channels: bool) -> None:
    draw = np.random.default_rng(5)
    x, w = levels(draw, "uint8", 2, 4, 6, 5), levels(draw, "int8", 6, 4 // groups, 3, 2)
    ws = draw.uniform(0.01, 0.02, 6 if channels else ()).astype(np.float32)
    wz = np.zeros(6 if channels else (), np.int8)
    bias = draw.integers(-99, 99, 6).astype(np.int32)
    scalars = [np.float32(0.02), np.uint8(120)], [np.float32(0.2), np.uint8(128)]
    attributes = {"strides": [2, 1], "pads": [1, 0, 2, 1], "dilations": [1, 2], "group": groups}
    inputs = [x, *map(np.asarray, scalars[0]), w, ws, wz, *map(np.asarray, scalars[1]), bias]
    expected = run_node("QLinearConv", inputs, result=np.uint8, **attributes)[0]
    xs, xz, ys, yz = (tensor(np.asarray(v)) for pair in scalars for v in pair)
    options = {"stride": (2, 1), "padding": ((1, 2), (0, 1)), "dilation": (1, 2), "groups": groups}
    found = F.qlinear_conv(tensor(x), xs, xz, tensor(w), tensor(ws), tensor(wz), ys, yz, tensor(bias), **options)
    gap = np.asarray(found).astype(int) - expected
    assert found.dtype.name == "uint8" and np.abs(gap).max() <= 1 and (gap == 0).mean() > 0.98
    whole = F.conv_integer(tensor(x), tensor(w), xz, tensor(wz), **options)
    exact = run_node("Conv", [x.astype(np.float32) - 120, w.astype(np.float32)], **attributes)[0]
    same(whole, exact.astype(np.int32))


def test_a_zero_point_for_each_output_channel(backend: Any) -> None:
    draw = np.random.default_rng(6)
    x, w, z = levels(draw, "uint8", 1, 2, 5), levels(draw, "uint8", 3, 2, 2), levels(draw, "uint8", 3)
    found = F.conv_integer(tensor(x), tensor(w), 7, tensor(z))
    expected = run_node("Conv", [x.astype(np.float32) - 7, w.astype(np.float32) - z.reshape(3, 1, 1)])[0]
    same(found, expected.astype(np.int32))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("zero", [0, 5])
def test_nan_and_what_is_far_are_quantized_as_by_onnxruntime(backend: Any, dtype: str, zero: int) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.5, 1.5, -0.5, 300, -300, 3e9, -3e9, 1e10, np.nan], np.float32)
    point = np.array(zero, dtype)
    want = run_node("QuantizeLinear", [x, np.array(1, np.float32), point], result=point.dtype.type, opset=21)[0]
    same(F.quantize_linear(tensor(x), tensor(np.array(1, np.float32)), tensor(point)), want)
    same(F.quantize_linear(tensor(np.tile(x, 9)), 1.0, zero, dtype=dtype), np.tile(want, 9))


def test_dynamic_quantization_is_onnxruntimes(backend: Any) -> None:
    draw = np.random.default_rng(7)
    for low, high in ((-3, 5), (0.5, 2), (-4, -1), (0, 0)):
        x = draw.uniform(low, high, (3, 5)).astype(np.float32)
        expected = run_node("DynamicQuantizeLinear", [x], 3, result=[np.uint8, np.float32, np.uint8])
        for found, wanted in zip(F.dynamic_quantize_linear(tensor(x)), expected, strict=True):
            if low != high or wanted.dtype == np.uint8:  # a scale of 0 is 1 here
                same(found, wanted, rtol=1e-6)
        b, scale = levels(draw, "int8", 5, 4), np.float32(0.1)
        product = F.dynamic_quantize_matmul(tensor(x), tensor(b), tensor(np.asarray(scale)))
        values = (expected[0].astype(np.int64) - int(expected[2])) @ b.astype(np.int64)
        same(product, (values * expected[1] * scale).astype(np.float32), rtol=1e-4, atol=1e-4)
    points = F.dynamic_quantize_linear(F.zeros((0, 3)))
    assert [(x.shape, x.dtype.name) for x in points] == [((0, 3), "uint8"), ((), "float32"), ((), "uint8")]
    assert (points[1].item(), points[2].item()) == (1.0, 0)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
@every(("shape", "axis", "block"), [((), 1, 0), ((4,), 1, 0), ((3,), 0, 0), ((3, 2), 1, 2), ((2, 4), 0, 2)])
def test_quantizing_and_back_by_axis_and_by_block(backend: Any, dtype: str, shape: Any, axis: int, block: int) -> None:
    draw = np.random.default_rng(8)
    x = (draw.normal(size=(3, 4)) * 50).astype(np.float32)
    scale = draw.uniform(0.5, 2, shape).astype(np.float32)
    zero = draw.integers(0, 9, shape).astype(dtype)

    def spread(v: Any) -> Any:
        if block:
            return np.repeat(v, block, axis)[:3, :4]
        return v.reshape(-1, 1) if v.shape == (3,) else v

    found = F.quantize_linear(tensor(x), tensor(scale), tensor(zero), axis=axis, block_size=block)
    expected = saturated(np.rint(x / spread(scale)), spread(zero).astype(int), dtype)
    same(found, expected)
    real = F.dequantize_linear(found, tensor(scale), tensor(zero), axis=axis, block_size=block)
    same(real, ((expected.astype(np.int64) - spread(zero)) * spread(scale)).astype(np.float32), rtol=1e-6)
    same(F.dequantize_linear(found, tensor(scale), axis=axis, block_size=block),
         (expected * spread(scale)).astype(np.float32), rtol=1e-6)  # fmt: skip
    half = F.dequantize_linear(found, tensor(scale), axis=axis, block_size=block, dtype="float16")
    assert half.dtype.name == "float16"


def test_accumulators_of_32_bits_are_exact_and_wider_integers_are_refused(backend: Any) -> None:
    x, zero = np.int32([2**31 - 1, -(2**31), 16777217]), np.int32([2**31 - 2, -(2**31), 16777216])
    same(F.dequantize_linear(tensor(x), tensor(np.float32([1, 1, 1])), tensor(zero), axis=0), np.float32([1, 0, 1]))
    for wrong in ("float32", "int16"):
        with pytest.raises(DTypeError, match="at most 8 bits"):
            F.matmul_integer(F.zeros((2, 2), dtype=wrong), F.zeros((2, 2), dtype="int8"))


def test_a_scale_of_bools_is_0_or_1(backend: Any) -> None:
    total, zero = tensor(np.array([-5, 0, 2, 300], np.int32)), tensor(np.array(3, np.uint8))
    same(F.requantize(total, tensor(np.array(True)), zero), np.array([0, 3, 5, 255], np.uint8))


def test_scales_are_floats_and_zero_points_and_added_sums_integers(backend: Any) -> None:
    a, b = tensor(np.array([[1, 2]], np.uint8)), tensor(np.array([[3], [4]], np.uint8))
    half, one, yes = (tensor(np.asarray(v)) for v in (np.float32(0.5), np.uint8(1), np.True_))
    with pytest.raises(DTypeError, match="a scale is a float, found bool"):
        F.dynamic_quantize_matmul(F.cast(a, "float32"), b, yes, one)
    with pytest.raises(DTypeError, match="a scale is a float, found uint8"):
        F.matmul_integer_to_float(a, b, half, one)
    wide = tensor(np.array([40000, -40000, 0, 70000, 5], np.int32))
    for point, found in ((wide, "int32"), (tensor(np.int8(1)), "int8"), (-1, "-1"), (256, "256")):
        with pytest.raises(DTypeError, match=f"a zero point of uint8 is uint8, found {found}"):
            F.matmul_integer(F.zeros((5, 6), dtype="uint8"), F.zeros((6, 40), dtype="int8"), point)
        with pytest.raises(DTypeError, match=f"a zero point of uint8 is uint8, found {found}"):
            F.conv_integer(F.zeros((1, 5, 6), dtype="uint8"), F.zeros((2, 5, 3), dtype="int8"), point)
    with pytest.raises(DTypeError, match="a zero point is an integer, found bool"):
        F.matmul_integer(a, b, yes)
    with pytest.raises(DTypeError, match="float32"):
        F.conv_integer(tensor(np.ones((1, 1, 3), np.uint8)), tensor(np.ones((1, 1, 2), np.uint8)), None, half)
    with pytest.raises(DTypeError, match="float32"):
        F.qgemm(a, half, one, b, half, one, half)


def test_scales_and_added_values_of_other_dtypes_are_converted(backend: Any) -> None:
    a, b = tensor(np.array([[1, 2]], np.uint8)), tensor(np.array([[3], [4]], np.uint8))
    half, narrow, three = (tensor(np.asarray(v)) for v in (np.float32(0.5), np.float16(0.5), np.int64(3)))
    for scales in ((half, narrow), (narrow, half)):
        same(F.matmul_integer_to_float(a, b, *scales, bias=three), np.array([[5.75]], np.float32))
        same(F.qgemm(a, scales[0], None, b, scales[1], None, three), np.array([[3.5]], np.float32))


def test_scales_of_an_lstm_are_converted_to_the_inputs_dtype(backend: Any) -> None:
    draw = np.random.default_rng(9)
    w, r, zero = levels(draw, "int8", 1, 2, 4), levels(draw, "int8", 1, 1, 4), np.zeros(1, np.int8)
    x = draw.normal(size=(2, 1, 2)).astype(np.float32)
    found = []
    for dtype in ("float32", "float16"):
        scale = tensor(np.array([0.0625], dtype))
        found.append(F.dynamic_quantize_lstm(*map(tensor, (x, w)), scale, *map(tensor, (zero, r)), scale, tensor(zero)))
    for one, other in zip(*found, strict=True):
        same(other, np.asarray(one))
    with pytest.raises(DTypeError, match="a scale is a float, found int8"):
        F.dynamic_quantize_lstm(*map(tensor, (x, w, zero, zero, r)), scale, tensor(zero))


@pytest.mark.parametrize(
    ("a", "b", "a_zero", "b_zero"),
    [((1, 3), (3, 2), (2,), ()), ((3,), (3, 2), (2,), ()), ((2, 3), (3, 1), (), (2,)), ((3, 2), (2, 2), (), (4, 1, 2))],
)
def test_a_zero_point_has_no_more_values_than_its_operand(
    backend: Any, a: Any, b: Any, a_zero: Any, b_zero: Any
) -> None:
    given = [tensor(np.ones(shape, np.uint8)) for shape in (a, b, a_zero, b_zero)]
    with pytest.raises(ShapeError, match="zero point"):
        F.matmul_integer(*given)
    scale = tensor(np.float32(0.5))
    with pytest.raises(ShapeError, match="zero point"):
        F.matmul_integer_to_float(given[0], given[1], scale, scale, *given[2:])


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
@pytest.mark.parametrize("a", [(4,), (3, 4), (2, 3, 4)])
@pytest.mark.parametrize("b", [(4,), (4, 5)])
def test_a_scale_of_one_value_adds_no_axis_to_a_quantized_product(backend, a, b, shape):
    x, y = (tensor(np.ones(s, np.uint8)) for s in (a, b))
    scale, zero = tensor(np.full(shape, 0.5, np.float32)), tensor(np.zeros(shape, np.uint8))
    found = F.qlinear_matmul(x, scale, zero, y, scale, zero, scale, zero)
    assert found.shape == (np.ones(a) @ np.ones(b)).shape
    assert found.reshape((-1,)).tolist() == [2] * found.size
