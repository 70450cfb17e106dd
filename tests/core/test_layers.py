"""A layer computes what its function computes with the layer's settings, and refuses inputs of another rank."""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn
from emberlet.errors import EmberletError, ShapeError
from support.backends import same, tensor
from support.rows import every

DRAW = np.random.default_rng(6)
X2 = DRAW.normal(size=(3, 6)).astype(np.float32)
X3 = DRAW.normal(size=(2, 4, 9)).astype(np.float32)
X4 = DRAW.normal(size=(2, 4, 7, 6)).astype(np.float32)
X5 = DRAW.normal(size=(1, 4, 5, 4, 5)).astype(np.float32)

# A layer -> its function of x, and x.
LAYERS: dict[str, tuple[str, Any]] = {
    "Softmax(0)": ("F.softmax(x, 0)", X2),
    "LogSoftmax(0)": ("F.log_softmax(x, 0)", X2),
    "Glu(1)": ("F.glu(x, 1)", X2),
    "Glu(0)": ("F.glu(x, 0)", X4),
    "Softplus(2.0)": ("F.softplus(x, 2.0)", X2),
    "HardSigmoid(0.3, 0.6)": ("F.hard_sigmoid(x, 0.3, 0.6)", X2),
    "LeakyRelu(0.3)": ("F.leaky_relu(x, 0.3)", X2),
    "Elu(0.3)": ("F.elu(x, 0.3)", X2),
    "Gelu('tanh')": ("F.gelu(x, 'tanh')", X2),
    "MaxPool1d(3, 2, 1, 2, True)": ("F.max_pool(x, 3, 2, 1, 2, True)", X3),
    "MaxPool2d((3, 2), (2, 1), 1, (1, 2), True)": ("F.max_pool(x, (3, 2), (2, 1), 1, (1, 2), True)", X4),
    "MaxPool3d(2, None, 1)": ("F.max_pool(x, 2, 2, 1)", X5),
    "AvgPool1d(3, 2, 1, False, True)": ("F.avg_pool(x, 3, 2, 1, 1, True, False)", X3),
    "AvgPool2d((3, 2), (2, 1), 1, False)": ("F.avg_pool(x, (3, 2), (2, 1), 1, 1, False, False)", X4),
    "AvgPool2d(2, 3, 0, True, True, (2, 1))": ("F.avg_pool(x, 2, 3, 0, (2, 1), True, True)", X4),
    "AvgPool3d(2, 1)": ("F.avg_pool(x, 2, 1)", X5),
    "AdaptiveAvgPool1d(4)": ("F.adaptive_avg_pool(x, 4)", X3),
    "AdaptiveAvgPool2d((4, 5))": ("F.adaptive_avg_pool(x, (4, 5))", X4),
    "Interpolate1d(5)": ("F.interpolate(x, 5)", X3),
    "Interpolate1d(scale_factor=1.7, mode='linear')": ("F.interpolate(x, None, 1.7, 'linear')", X3),
    "Interpolate2d((5, 9), mode='cubic')": ("F.interpolate(x, (5, 9), None, 'cubic')", X4),
    "Interpolate2d(scale_factor=(0.6, 2), mode='linear', align_corners=True)": (
        "F.interpolate(x, None, (0.6, 2), 'linear', True)", X4),
    "Interpolate2d(scale_factor=2)": ("F.interpolate(x, None, (2, 2))", X4),
    "Unfold4d((3, 2), 2, (1, 0), (1, 2))": ("F.im2col(x, (3, 2), 2, (1, 0), (1, 2))", X4),
    "Unfold4d(2, (1, 2), 1, (2, 1))": ("F.im2col(x, 2, (1, 2), 1, (2, 1))", X4),
    "Conv1d(4, 6, 3, 2, 1, 2, 2)": ("F.conv(x, weight, bias, 2, 1, 2, 2)", X3),
    "Conv2d(4, 6, (3, 2), (2, 1), (1, 0), (1, 2), 2)": ("F.conv(x, weight, bias, (2, 1), (1, 0), (1, 2), 2)", X4),
    "Conv2d(4, 6, 3, padding='same')": ("F.conv(x, weight, bias, 1, 1)", X4),
    "Conv3d(4, 2, 2, 1, 1, bias=False)": ("F.conv(x, weight, None, 1, 1)", X5),
    "ConvTranspose1d(4, 6, 3, 2, 1, 1)": ("F.conv_transpose(x, weight, bias, 2, 1, 1)", X3),
    "ConvTranspose2d(4, 6, (3, 2), (2, 3), (1, 0), (1, 2), 1, 2)": (
        "F.conv_transpose(x, weight, bias, (2, 3), (1, 0), (1, 2), 1, 2)", X4),
    "ConvTranspose3d(4, 2, 2, dilation=2)": ("F.conv_transpose(x, weight, bias, 1, 0, 0, 2)", X5),
    "Linear(6, 4)": ("F.linear(x, weight, bias)", X2),
    "Linear(6, 4, bias=False)": ("F.linear(x, weight)", X2),
}  # fmt: skip


@every("text", LAYERS)
def test_a_layer_is_its_function(backend: Any, text: str) -> None:
    function, x = LAYERS[text]
    layer = eval(f"nn.{text}")
    scope = {"F": F, "x": tensor(x), "weight": None, "bias": None}
    for name, param in layer.named_params():
        param.set(F.uniform(param.shape, -1.0, 1.0, seed=3))
        scope[name] = param.val()
    assert text.startswith(("Conv", "Linear")) == (scope["weight"] is not None)
    found, expected = layer(tensor(x)), eval(function, scope)
    same(found, np.asarray(expected))
    if not text.startswith(("Linear", "Softmax", "LogSoftmax", "Glu", "Softplus", "Hard", "Leaky", "Elu", "Gelu")):
        for shape in (x.shape[2:], (1, *x.shape)):
            with pytest.raises(ShapeError):
                layer(F.zeros(shape))


def test_settings_that_do_not_fit_the_rank_are_refused() -> None:
    for text in ("Conv2d(4, 6, (3, 2, 1))", "Conv1d(4, 6, 3, (1, 2))", "Conv2d(4, 6, 3, padding=(1, 2, 3))",
                 "Conv2d(4, 6, 3, dilation=(1,))", "Conv2d(4, 6, 3, groups=4)", "Conv2d(3, 6, 3, groups=2)",
                 "MaxPool2d((2, 2, 2))", "AvgPool1d(2, (1, 2))", "AdaptiveAvgPool2d((1, 2, 3))", "Unfold4d((2, 2, 2))",
                 "Unfold4d(2, padding=(1, 2, 3))", "ConvTranspose1d(4, 6, 3, output_padding=(1, 2))"):  # fmt: skip
        with pytest.raises(EmberletError):
            eval(f"nn.{text}")


def _spread(initializer: Any, shape: Any, **options: Any) -> tuple[float, float]:
    emberlet.functional.manual_seed(3)
    values = np.asarray(initializer(shape, "float64", "numpy", **options))
    return float(np.abs(values).max()), float(values.std())


@pytest.mark.parametrize("gain", [1.0, 1.5])
def test_the_spread_of_initial_values_follows_the_fans(gain: float) -> None:
    shape, fans = (60, 80), (30, 90)
    for given, (fan_in, fan_out) in ((None, shape), (fans, fans)):
        for initializer, variance in (
            (nn.KaimingUniform(gain), 1 / fan_in), (nn.KaimingUniform(gain, True), 1 / fan_out),
            (nn.XavierUniform(gain), 2 / (fan_in + fan_out)),
        ):  # fmt: skip
            most, deviation = _spread(initializer, shape, fans=given)
            bound = gain * (3 * variance) ** 0.5
            assert 0.98 * bound < most <= bound and abs(deviation / (gain * variance**0.5) - 1) < 0.03
        for initializer, variance in (
            (nn.KaimingNormal(gain), 1 / fan_in), (nn.KaimingNormal(gain, True), 1 / fan_out),
            (nn.XavierNormal(gain), 2 / (fan_in + fan_out)),
        ):  # fmt: skip
            assert abs(_spread(initializer, shape, fans=given)[1] / (gain * variance**0.5) - 1) < 0.03


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 4), (4, 2, 3), (6, 2, 2)])
def test_an_orthogonal_weight_has_orthonormal_rows_or_columns(shape: Any) -> None:
    for dtype, error in (("float64", 1e-12), ("float32", 1e-5), ("float16", 5e-3)):
        values = np.asarray(nn.Orthogonal(2.0)(shape, dtype, "numpy")).astype(np.float64).reshape(shape[0], -1)
        products = values @ values.T if values.shape[0] <= values.shape[1] else values.T @ values
        np.testing.assert_allclose(products, 4 * np.eye(len(products)), atol=4 * error)
    with pytest.raises(ShapeError, match="at least two axes"):
        nn.Orthogonal()((3,))


def test_initial_values_are_printed_and_take_a_shape_as_a_number() -> None:
    assert repr(nn.Uniform(-1.0, 2.0)) == "Uniform(high=2.0, low=-1.0)"
    assert repr(nn.Constant(3)) == "Constant(value=3)" and repr(nn.Zeros()) == "Zeros(value=0)"
    assert nn.Constant(3)(4).tolist() == [3.0] * 4 and nn.Ones()((2,), "int8").dtype.name == "int8"
    assert nn.Zeros()((2, 1)).tolist() == [[0.0], [0.0]] and nn.Ones()(2).tolist() == [1.0, 1.0]
