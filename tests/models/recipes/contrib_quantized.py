"""Single com.microsoft operators on quantized numbers, as onnxruntime's own quantizer emits them."""

from collections.abc import Mapping

import numpy as np
from onnx import TensorProto

from .contrib import contrib, sequences
from .recipe import Inputs, normal, rng

UINT8, INT8 = TensorProto.UINT8, TensorProto.INT8


def _scale(value: float) -> np.ndarray:
    return np.array(value, dtype=np.float32)


def _uint8(seed: int, *shape: int) -> np.ndarray:
    return rng(seed).integers(0, 256, shape, dtype=np.uint8)


def _int8(seed: int, *shape: int) -> np.ndarray:
    return rng(seed).integers(-128, 128, shape, dtype=np.int8)


def _zero(value: int, dtype: type = np.uint8) -> np.ndarray:
    return np.array(value, dtype=dtype)


Q_PAIR = ["a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "y_scale", "y_zero"]
Q_CONSTANTS = {
    "a_scale": _scale(0.02), "a_zero": _zero(120), "b_scale": _scale(0.013), "b_zero": _zero(131),
    "y_scale": _scale(0.031), "y_zero": _zero(125),
}  # fmt: skip
Q_SIGNED = {
    name: value if value.dtype == np.float32 else _zero(int(value) - 128, np.int8)
    for name, value in Q_CONSTANTS.items()
}
Q_ONE = ["x", "x_scale", "x_zero", "y_scale", "y_zero"]


def _q_one(y_scale: float, y_zero: int) -> dict[str, np.ndarray]:
    return {
        "x_scale": _scale(0.04),
        "x_zero": _zero(128),
        "y_scale": _scale(y_scale),
        "y_zero": _zero(y_zero),
    }


def _q_image() -> Mapping[str, Inputs]:
    return {f"batch{n}": {"x": _uint8(n, n, 3, 7, 6)} for n in (1, 2)}


RECIPES = [
    contrib(
        "qlinear_add", "quantized addition, uint8, broadcast", "QLinearAdd", Q_PAIR,
        {"": {"a": _uint8(1, 2, 3, 8), "b": _uint8(2, 3, 1)}}, Q_CONSTANTS, [("y", UINT8)], literal=True,
    ),
    contrib(
        "qlinear_add_int8", "quantized addition, int8", "QLinearAdd", Q_PAIR,
        {"": {"a": _int8(1, 4, 9), "b": _int8(2, 4, 9)}}, Q_SIGNED, [("y", INT8)], literal=True,
    ),
    contrib(
        "qlinear_mul", "quantized product, uint8, broadcast", "QLinearMul", Q_PAIR,
        {"": {"a": _uint8(3, 2, 3, 8), "b": _uint8(4, 1, 8)}}, Q_CONSTANTS, [("y", UINT8)], literal=True,
    ),
    contrib(
        "qlinear_average_pool", "quantized average pooling with padding that does not count", "QLinearAveragePool",
        Q_ONE, _q_image(), _q_one(0.03, 120), [("y", UINT8)], literal=True, kernel_shape=[3, 2], strides=[2, 2],
        pads=[1, 0, 1, 0], count_include_pad=0,
    ),
    contrib(
        "qlinear_average_pool_channels_last", "quantized average pooling over (batch, height, width, channel)",
        "QLinearAveragePool", Q_ONE, {"": {"x": _uint8(1, 1, 6, 7, 4)}}, _q_one(0.04, 128), [("y", UINT8)],
        literal=True, kernel_shape=[2, 2], strides=[1, 2], channels_last=1,
    ),
    contrib(
        "qlinear_global_average_pool", "quantized mean of each channel", "QLinearGlobalAveragePool", Q_ONE, _q_image(),
        _q_one(0.02, 126), [("y", UINT8)], literal=True, channels_last=0,
    ),
    contrib(
        "qlinear_leaky_relu", "quantized leaky ReLU", "QLinearLeakyRelu", Q_ONE, _q_image(), _q_one(0.03, 60),
        [("y", UINT8)], literal=True, alpha=0.1,
    ),
    contrib(
        "qlinear_sigmoid", "quantized sigmoid", "QLinearSigmoid", Q_ONE, _q_image(), _q_one(1 / 256, 0), [("y", UINT8)],
        literal=True,
    ),
    contrib(
        "qlinear_softmax", "quantized softmax", "QLinearSoftmax", Q_ONE, {"": {"x": _uint8(5, 3, 10)}},
        _q_one(1 / 256, 0), [("y", UINT8)], literal=True, axis=-1, opset=13,
    ),
    contrib(
        "qlinear_concat", "quantized concatenation of tensors with different scales", "QLinearConcat",
        ["y_scale", "y_zero", "a", "a_scale", "a_zero", "b", "b_scale", "b_zero"],
        {"": {"a": _uint8(6, 2, 3), "b": _uint8(7, 2, 5)}}, Q_CONSTANTS, [("y", UINT8)], literal=True, axis=1,
    ),
    contrib(
        "qgemm",
        "quantized Gemm with an int32 bias, a scale per column, quantized output",
        "QGemm",
        ["a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "c", "y_scale", "y_zero"],
        {"": {"a": _uint8(8, 3, 6)}},
        {
            "a_scale": _scale(0.02), "a_zero": _zero(120), "b": _int8(9, 6, 5),
            "b_scale": np.array([0.01, 0.02, 0.015, 0.03, 0.008], np.float32), "b_zero": np.zeros(5, np.int8),
            "c": rng(10).integers(-900, 900, 5, dtype=np.int32), "y_scale": _scale(0.1), "y_zero": _zero(128),
        },
        [("y", UINT8)],
        literal=True,
    ),
    contrib(
        "dynamic_quantize_matmul",
        "float input quantized on the way in, int8 weight, a scale per column, bias",
        "DynamicQuantizeMatMul",
        ["x", "b", "b_scale", "b_zero", "bias"],
        sequences(),
        {
            "b": _int8(11, 16, 6), "b_scale": (np.abs(normal(12, 6)) * 0.01 + 0.002).astype(np.float32),
            "b_zero": np.zeros(6, np.int8), "bias": normal(13, 6),
        },
    ),
    contrib(
        "dynamic_quantize_matmul_uint8", "the same with a uint8 weight and its zero point, one scale, no bias",
        "DynamicQuantizeMatMul", ["x", "b", "b_scale", "b_zero"], sequences(),
        {"b": _uint8(14, 16, 6), "b_scale": _scale(0.01), "b_zero": _zero(117)},
    ),
    contrib(
        "matmul_integer_to_float",
        "integer product, scaled back to float in one step",
        "MatMulIntegerToFloat",
        ["a", "b", "a_scale", "b_scale", "a_zero", "b_zero", "bias"],
        {"": {"a": _uint8(15, 2, 3, 8)}},
        {
            "b": _int8(16, 8, 5), "a_scale": _scale(0.02), "b_scale": _scale(0.01), "a_zero": _zero(121),
            "b_zero": _zero(3, np.int8), "bias": normal(17, 5),
        },
    ),
]  # fmt: skip
