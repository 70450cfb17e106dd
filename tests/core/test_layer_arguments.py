"""Constructors of layers, and sizes of functions: NumPy's numbers count as Python's, other libraries' keywords are
understood, and what does not fit is an EmberletError."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn
from emberlet.errors import ArgumentError, AxisError, DTypeError, EmberletError
from support.rows import every

BACKENDS = ["numpy", "python"]
TWO = np.int64(2)


def image(backend: str = "python") -> Any:
    return F.reshape(F.arange(3 * 8 * 8, dtype="float32", backend=backend), (1, 3, 8, 8))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("given", "plain"),
    [
        (lambda x: F.max_pool(x, TWO), lambda x: F.max_pool(x, 2)),
        (lambda x: F.max_pool(x, (TWO, np.int32(3))), lambda x: F.max_pool(x, (2, 3))),
        (lambda x: F.avg_pool(x, np.uint8(2), stride=TWO), lambda x: F.avg_pool(x, 2)),
        (lambda x: F.pad(x, [(0, 0), (0, 0), (TWO, 1), (0, TWO)]), lambda x: F.pad(x, (0, 2, 2, 1))),
        (lambda x: F.interpolate(x, scale_factor=TWO), lambda x: F.interpolate(x, scale_factor=2)),
        (lambda x: F.interpolate(x, scale_factor=np.float32(2)), lambda x: F.interpolate(x, scale_factor=2)),
        (lambda x: F.zeros(TWO, backend=x.backend), lambda x: F.zeros(2, backend=x.backend)),
        (lambda x: F.tile(x, TWO), lambda x: F.tile(x, 2)),
        (lambda x: nn.MaxPool2d(TWO, padding=np.int64(1))(x), lambda x: nn.MaxPool2d(2, padding=1)(x)),
        (lambda x: nn.AdaptiveAvgPool2d(TWO)(x), lambda x: nn.AdaptiveAvgPool2d(2)(x)),
        (lambda x: nn.ZeroPad1d(TWO)(x[0]), lambda x: nn.ZeroPad1d(2)(x[0])),
        (lambda x: nn.Interpolate2d(scale_factor=TWO)(x), lambda x: nn.Interpolate2d(scale_factor=2)(x)),
    ],
)  # fmt: skip
def test_a_number_of_numpy_is_a_number(backend: str, given: Callable[[Any], Any], plain: Callable[[Any], Any]) -> None:
    found, expected = given(image(backend)), plain(image(backend))
    assert found.shape == expected.shape and {type(n) for n in found.shape} == {int}
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("backend", BACKENDS)
def test_sizes_of_layers_are_ints(backend: str) -> None:
    layers = [nn.Linear(np.int64(8), np.int64(4), backend=backend), nn.Embedding(TWO, TWO, backend=backend),
              nn.Conv2d(3, 4, np.int64(3), backend=backend)]  # fmt: skip
    inputs = [F.zeros((1, 8), backend=backend), F.zeros((1,), dtype="int64", backend=backend), image(backend)]
    for layer, x in zip(layers, inputs, strict=True):
        assert {type(n) for n in layer(x).shape} == {int}
        assert {type(n) for p in layer.params() for n in p.shape} == {int}


@pytest.mark.parametrize("wrong", [None, 1.5, "22", (1.5, 2), np.float32(1.5)])
@every(
    "build",
    [
        lambda k: nn.Conv2d(3, 4, k),
        nn.MaxPool2d,
        nn.AvgPool2d,
        nn.AdaptiveAvgPool2d,
        lambda k: F.max_pool(image(), k),
        lambda k: F.adaptive_avg_pool(image(), k),
    ],
)
def test_a_kernel_is_ints(build: Callable[[Any], Any], wrong: Any) -> None:
    with pytest.raises(EmberletError, match=r"int|called as"):
        build(wrong)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: nn.Linear(3), r"missing a required argument: 'd_output'; it is called as nn\.Linear\(d_input"),
        (lambda: nn.Linear(3, 4, baias=True), "did you mean bias"),
        (lambda: nn.Conv2d(3, 4, None), r"nn\.Conv2d: .*kernel_size is None.* called as nn\.Conv2d"),
        (lambda: nn.ZeroPad1d(None), r"nn\.ZeroPad1d: padding is None"),
        (lambda: nn.ConstantPad1d(1), "'value'"),
        (lambda: nn.Relu(3), "too many positional"),
    ],
)
def test_a_wrong_argument_of_a_layer_is_named(build: Callable[[], Any], words: str) -> None:
    with pytest.raises(DTypeError, match=words):
        build()


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (lambda: nn.Linear(in_features=3, out_features=4), lambda: nn.Linear(3, 4)),
        (lambda: nn.Embedding(num_embeddings=3, embedding_dim=4, padding_idx=None), lambda: nn.Embedding(3, 4)),
        (lambda: nn.BatchNorm2d(4, eps=1e-3, track_running_stats=True), lambda: nn.BatchNorm2d(4, epsilon=1e-3)),
        (lambda: nn.LayerNorm(4, eps=1e-3, elementwise_affine=False), lambda: nn.LayerNorm(4, 1e-3, affine=False)),
        (lambda: nn.Dropout(p=0.3), lambda: nn.Dropout(0.3)),
        (lambda: nn.Softmax(dim=1), lambda: nn.Softmax(1)),
        (lambda: nn.ReLU(inplace=False), lambda: nn.Relu()),
        (lambda: nn.Conv2d(3, 4, 3, padding_mode="zeros"), lambda: nn.Conv2d(3, 4, 3)),
        (lambda: nn.Lstm(input_size=3, hidden_size=4, num_layers=1), lambda: nn.Lstm(3, 4)),
        (lambda: nn.MultiHeadAttention(embed_dim=4, num_heads=2), lambda: nn.MultiHeadAttention(4, 2)),
        (
            lambda: nn.TransformerEncoder(d_model=4, dim_feedforward=8, nhead=2, num_layers=1, layer_norm_eps=1e-3),
            lambda: nn.TransformerEncoder(4, 8, 2, 1, epsilon=1e-3),
        ),
        (lambda: nn.CrossEntropyLoss(label_smoothing=0.1), lambda: nn.CrossEntropyLoss(smoothing=0.1)),
    ],
)
def test_a_keyword_of_another_library_means_the_same(theirs: Callable[[], Any], ours: Callable[[], Any]) -> None:
    assert repr(theirs()) == repr(ours())


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: nn.ReLU(inplace=True), "not changed in place"),
        (lambda: nn.Lstm(3, 4, bidirectional=True), r"nn\.BiLstm"),
        (lambda: nn.Conv2d(3, 4, 3, padding_mode="reflect"), "ReflectionPad2d"),
        (lambda: nn.Embedding(3, 4, padding_idx=0), "set that row"),
        (lambda: nn.MaxPool2d(2, return_indices=True), "max_pool_with_indices"),
    ],
)
def test_an_option_that_is_not_here_is_answered(build: Callable[[], Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        build()


def test_an_error_of_a_callers_own_code_in_a_constructor_is_kept() -> None:
    class Own(nn.Linear):
        def __init__(self) -> None:
            super().__init__(3, 4)
            raise TypeError("mine")

    with pytest.raises(TypeError, match=r"^mine$"):
        Own()


def test_unflatten_names_an_axis_that_is_not_there() -> None:
    for dim in (2, -3):
        with pytest.raises(AxisError, match=rf"axis {dim} is outside \[-2, 2\)"):
            nn.Unflatten(dim, (2, 2))(F.zeros((2, 4)))
    assert nn.Unflatten(-1, (2, 2))(F.zeros((3, 4))).shape == (3, 2, 2)


@pytest.mark.parametrize("build", [nn.Sequential, nn.ModuleDict])
@pytest.mark.parametrize("name", ["forward", "params", "__init__"])
def test_a_container_keeps_its_methods(build: Any, name: str) -> None:
    with pytest.raises(ArgumentError, match=f"{build.__name__}: '{name}' is a method"):
        build({name: nn.Relu()})


GRID = (0.5, 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"input": "static"}, r"input is \(scale, zero point\) or \"dynamic\""),
        ({"input": 5}, "input is"),
        ({"input": (0.5, 256)}, "the zero point of input is an integer from -128 to 255, found 256"),
        ({"output": GRID}, "give input as well"),
        ({"input": (0.0, 3)}, "the scale of input is a number above 0, found 0.0"),
        ({"input": ("a", 3)}, "the scale of input is a number above 0, found 'a'"),
        ({"input": "dynamic", "output": GRID}, 'give these instead of input="dynamic", or leave output out'),
        ({"input": GRID, "output": 3}, r"output is \(scale, zero point\), .* found 3"),
        ({"input": GRID, "output": (0.5,)}, "output is"),
        ({"input": GRID, "output": (0.5, 1, "int4")}, "output is .*int4"),
        ({"input": GRID, "output": (0.5, 1, "float16")}, "output is .*float16"),
        ({"input": GRID, "output": (0.5, -1)}, "the zero point of output is an integer from 0 to 255, found -1"),
        ({"input": GRID, "output": (0.5, 200, "int8")}, "the zero point of output is an integer from -128 to 127"),
    ],
)
def test_the_grids_of_a_quantized_layer_are_checked(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(EmberletError, match=words):
        nn.QuantizedLinear(4, 3, **arguments)
    with pytest.raises(EmberletError, match=words):
        nn.QuantizedConv1d(4, 3, 1, **arguments)


def test_a_negative_zero_point_quantizes_floats_to_int8() -> None:
    layer = nn.QuantizedLinear(4, 3, input=(0.25, -5))
    x = np.linspace(-40, 40, 24, dtype=np.float32).reshape(6, 4)
    levels = np.clip(np.rint(x / np.float32(0.25)) - 5, -128, 127).astype(np.int8)
    np.testing.assert_array_equal(np.asarray(layer(F.asarray(x))), np.asarray(layer(F.asarray(levels))))
