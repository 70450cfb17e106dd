"""Quantized operators of com.microsoft against onnxruntime: dtypes, layouts and options that the test models do not
cover."""

from typing import Any

import numpy as np
import pytest
from support.contrib_node import check, levels, normal, number

I8, U8 = np.int8, np.uint8


def scale(value: float) -> np.ndarray:
    return number(value)


def zero(value: int, dtype: Any = U8) -> np.ndarray:
    return number(value, dtype)


def quantized(seed: int, *shape: int, dtype: Any = U8, point: int = 3) -> list[np.ndarray]:
    """Values, scale, zero point."""
    return [levels(seed, *shape, dtype=dtype), scale(0.02), zero(point, dtype)]


@pytest.mark.parametrize("dtype", [U8, I8])
@pytest.mark.parametrize("op", ["QLinearSigmoid", "QLinearLeakyRelu"])
def test_functions_of_one_tensor(op: str, dtype: Any) -> None:
    inputs = [*quantized(1, 3, 40, dtype=dtype), scale(0.01), zero(-5 if dtype is I8 else 5, dtype)]
    check(op, inputs, constants=(1, 2, 3, 4), results=(dtype,))


@pytest.mark.parametrize(("axis", "opset"), [(1, 12), (2, 12), (1, 13), (-1, 13)])
def test_softmax_flattens_before_opset_13(axis: int, opset: int) -> None:
    inputs = [*quantized(2, 2, 3, 8), scale(1 / 256), zero(0)]
    check("QLinearSoftmax", inputs, constants=(1, 2, 3, 4), results=(U8,), axis=axis, opset=opset)


@pytest.mark.parametrize(("axes", "keepdims"), [([1], 1), ([2], 0), ([-1, 1], 1)])
def test_mean_over_axes(axes: list[int], keepdims: int) -> None:
    inputs = [*quantized(3, 2, 5, 7), scale(0.01), zero(100)]
    x, s, z = inputs[:3]
    mean = ((x.astype(np.float32) - z) * s).mean(axis=tuple(axes), keepdims=bool(keepdims))
    want = np.clip(np.rint(mean / inputs[3]) + 100, 0, 255).astype(U8)
    check("QLinearReduceMean", inputs, want=[want], results=(U8,), axes=axes, keepdims=keepdims)


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_two_tensors_without_zero_points(op: str) -> None:
    a, b, s = levels(4, 4, 16), levels(5, 16), scale(0.02)
    x, y = a * s, b * s
    want = np.clip(np.rint((x + y if op == "QLinearAdd" else x * y) / scale(0.05)), 0, 255).astype(U8)
    check(op, [a, s, None, b, s, None, scale(0.05)], constants=(1, 4, 6), results=(U8,), want=[want])


def test_where() -> None:
    condition = normal(6, 4, 1) > 0
    inputs = [condition, *quantized(7, 4, 6), *quantized(8, 1, 6, point=9), scale(0.03), zero(20)]
    check("QLinearWhere", inputs, constants=(2, 3, 5, 6, 7, 8), results=(U8,))


def test_concat_of_three_tensors_of_different_scales() -> None:
    parts = [quantized(9, 2, 3), [levels(10, 2, 4), scale(0.01), zero(7)], [levels(11, 2, 1), scale(0.07), zero(0)]]
    inputs = [scale(0.04), zero(50), *(x for part in parts for x in part)]
    check("QLinearConcat", inputs, constants=(0, 1, 3, 4, 6, 7, 9, 10), results=(U8,), axis=-1)


@pytest.mark.parametrize("attributes", [{"ceil_mode": 1}, {"pads": [1, 1, 0, 0], "count_include_pad": 1}])
def test_average_pool_int8(attributes: dict[str, Any]) -> None:
    inputs = [*quantized(12, 1, 3, 8, 7, dtype=I8), scale(0.015), zero(-4, I8)]
    given = {"kernel_shape": [3, 2], "strides": [2, 2], **attributes}
    check("QLinearAveragePool", inputs, constants=(1, 2, 3, 4), results=(I8,), **given)


def test_global_average_pool_with_channels_last() -> None:
    inputs = [*quantized(13, 2, 5, 4, 3), scale(0.01), zero(8)]
    check("QLinearGlobalAveragePool", inputs, constants=(1, 2, 3, 4), results=(U8,), channels_last=1)


def test_conv_with_channels_last() -> None:
    w = levels(15, 6, 4, 3, 3, dtype=I8)
    inputs = [*quantized(14, 1, 8, 7, 4), w, scale(0.01), zero(0, I8), scale(0.2), zero(120)]
    bias = np.arange(6, dtype=np.int32) * 100
    given = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "channels_last": 1}
    check("QLinearConv", [*inputs, bias], constants=range(1, 9), results=(U8,), **given)


def test_max_pool_with_channels_last() -> None:
    given = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    check("NhwcMaxPool", [levels(16, 1, 9, 8, 4)], results=(U8,), **given)


@pytest.mark.parametrize("dtype", [U8, I8, np.int16, np.uint16])
def test_quantize_and_dequantize(dtype: Any) -> None:
    s, z = scale(0.01), zero(3, dtype)
    x = normal(17, 4, 9)
    check("QuantizeLinear", [x, s, z], constants=(1, 2), results=(dtype,))
    values = np.clip(np.rint(x / s), 0, 100).astype(dtype)
    check("DequantizeLinear", [values, s, z], constants=(1, 2))


def test_quantize_along_an_axis() -> None:
    s, z = np.array([0.01, 0.02, 0.04, 0.3], dtype=np.float32), np.array([0, 3, 100, 255], dtype=U8)
    check("QuantizeLinear", [normal(18, 4, 9), s, z], constants=(1, 2), results=(U8,), axis=0)
    check("DequantizeLinear", [levels(19, 4, 9), s, z], constants=(1, 2), axis=0)


@pytest.mark.parametrize("b_type", [U8, I8])
def test_gemm_transposed_and_scaled(b_type: Any) -> None:
    inputs = [*quantized(20, 6, 4), *quantized(21, 5, 6, dtype=b_type), np.arange(5, dtype=np.int32) * 50]
    given = {"transA": 1, "transB": 1, "alpha": 0.5}
    check("QGemm", [*inputs, scale(0.05), zero(99)], results=(U8,), **given)
    check("QGemm", inputs, atol=1e-4, **given)


def test_product_to_float_with_a_scale_for_each_column() -> None:
    a, b = levels(22, 2, 3, 8), levels(23, 8, 5, dtype=I8)
    scales = np.linspace(0.01, 0.05, 5, dtype=np.float32)
    inputs = [a, b, scale(0.02), scales, zero(7), np.arange(5, dtype=I8), normal(24, 5)]
    check("MatMulIntegerToFloat", inputs, atol=1e-4)
    check("MatMulIntegerToFloat", inputs[:4], atol=1e-4)


def test_product_with_dynamic_quantization() -> None:
    inputs = [normal(25, 2, 6, 16), levels(26, 16, 5, dtype=I8), scale(0.01)]
    check("DynamicQuantizeMatMul", inputs, constants=(1, 2), atol=1e-4)


def lstm(directions: int, *, per_channel: bool = False, dtype: Any = I8) -> list[np.ndarray | None]:
    """One sequence only, since onnxruntime quantizes several together or not depending on its number of threads."""
    hidden, width = 6, 8
    w, r = (
        levels(27, directions, width, 4 * hidden, dtype=dtype),
        levels(28, directions, hidden, 4 * hidden, dtype=dtype),
    )
    shape = (directions, 4 * hidden) if per_channel else (directions,)
    scales = [np.abs(normal(29 + i, *shape, scale=0.002)) + 0.002 for i in range(2)]
    points = np.full(shape, 0 if dtype is I8 else 128, dtype=dtype)
    x, b = normal(31, 5, 1, width), normal(32, directions, 8 * hidden)
    states = [normal(33 + i, directions, 1, hidden) for i in range(2)]
    return [x, w, r, b, None, *states, normal(35, directions, 3 * hidden), scales[0], points, scales[1], points]


@pytest.mark.parametrize("dtype", [I8, U8])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_lstm(direction: str, per_channel: bool, dtype: Any) -> None:
    directions = 2 if direction == "bidirectional" else 1
    given: dict[str, Any] = {"hidden_size": 6, "direction": direction}
    inputs = lstm(directions, per_channel=per_channel, dtype=dtype)
    results = (np.float32,) * 3
    check("DynamicQuantizeLSTM", inputs, constants=(1, 2, 3, 7, 8, 9, 10, 11), results=results, **given)


def test_lstm_with_options() -> None:
    inputs = lstm(1)
    inputs[7] = None
    given: dict[str, Any] = {"hidden_size": 6, "clip": 0.8, "activations": ["HardSigmoid", "Tanh", "Relu"]}
    check("DynamicQuantizeLSTM", inputs, constants=(1, 2, 8, 9, 10, 11), **given)
