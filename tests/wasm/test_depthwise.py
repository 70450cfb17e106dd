"""Depthwise convolutions in WebAssembly and in machine code: of images and filters that do not lie in memory in the
order they are read, with borders, and of small pictures of integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.wgpu_backend.compiled import compile
from support.rows import every

VIEWS: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda x: x,
    "rows reversed": lambda x: F.flip(x, axis=2),
    "columns reversed": lambda x: F.flip(x, axis=3),
    "both reversed": lambda x: F.flip(x, axis=(2, 3)),
    "turned": lambda x: F.permute_dims(x, (0, 1, 3, 2)),
    "every row twice": lambda x: F.repeat(x, 2, axis=2),
    "every second row": lambda x: x[:, :, ::2],
    "one row for all": lambda x: F.broadcast_to(x[:, :, :1], x.shape),
    "rows in two parts": lambda x: F.concat([x[:, :, 5:], x[:, :, :5]], axis=2),
}


@every("image", VIEWS)
@pytest.mark.parametrize("of_filter", [v for v in VIEWS if "every" not in v and "parts" not in v])
def test_a_depthwise_convolution_of_a_view_gives_numpys_result(image: str, of_filter: str) -> None:
    random = np.random.default_rng(0)
    given = [random.standard_normal(s).astype(np.float32) for s in ((1, 4, 12, 12), (4, 1, 3, 3))]

    def model(x: Any, w: Any) -> Any:
        return F.conv2d(VIEWS[image](x), VIEWS[of_filter](w), padding=1, groups=4)

    want = model(*[emberlet.asarray(v, backend="numpy") for v in given])
    found = compile(model, *given, backend="wasm")(*given)
    np.testing.assert_allclose(np.asarray(found), np.asarray(want), rtol=1e-4, atol=1e-5)


@pytest.fixture(params=["native", "wasm"])
def where(request: pytest.FixtureRequest) -> str:
    if request.param == "wasm":
        pytest.importorskip("wasmtime")
    return str(request.param)


PADS = {
    "a frame": ((0, 0), (0, 0), (1, 1), (1, 1)),
    "two sides": ((0, 0), (0, 0), (0, 3), (2, 0)),
    "channels": ((0, 0), (1, 2), (1, 1), (1, 1)),
    "images": ((1, 0), (0, 0), (1, 1), (1, 1)),
}


@every("pads", PADS)
@pytest.mark.parametrize("value", [0, -0.0, 1.5])
@pytest.mark.parametrize("planned", [True, False])
def test_a_depthwise_convolution_has_the_border_of_its_padded_image(
    where: str, pads: str, value: float, planned: bool
) -> None:
    random = np.random.default_rng(0)
    more = sum(PADS[pads][1])
    x = random.standard_normal((1, 32 - more, 11, 13)).astype(np.float32)
    w = random.standard_normal((32, 1, 3, 3)).astype(np.float32)

    def model(x: Any, w: Any) -> Any:
        return F.conv2d(F.pad(F.exp(x), PADS[pads], value=value), w, groups=32)

    want = np.asarray(model(*[emberlet.asarray(v, backend="numpy") for v in (x, w)]))
    tensors = [emberlet.asarray(v, backend=where) for v in (x, w)]
    if not planned:
        # Eager plans serve other numbers as well: they may not have the border of another call.
        np.asarray(F.conv2d(F.pad(F.exp(tensors[0]), PADS[pads]), tensors[1], groups=32))
    found = compile(model, *tensors, backend=where)(*tensors) if planned else model(*tensors)
    np.testing.assert_allclose(np.asarray(found), want, rtol=1e-4, atol=1e-4)


@every("seed", range(16), share=3)
def test_a_depthwise_convolution_of_a_small_picture_of_integers_is_exact(where: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    axes = seed % 2 + 1
    batch, channels = (int(n) for n in rng.integers(1, [4, 40]))
    inside = [int(n) for n in rng.integers(1, 5, axes)]
    kernel, stride, dilation = ([int(n) for n in rng.integers(1, end, axes)] for end in (6, 4, 3))
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    padding = []
    for n, r in zip(inside, reach, strict=True):
        first = int(rng.integers(0, r + 1))
        padding.append((first, max(r - n - first, int(rng.integers(0, r + 1)))))
    x = rng.integers(0, 256, (batch, channels, *inside), np.uint8)
    w = rng.integers(-128, 128, (channels, 1, *kernel), np.int8)
    around = np.pad(x.astype(int) - 77, [(0, 0), (0, 0), *padding])
    seen = np.lib.stride_tricks.sliding_window_view(around, reach, tuple(range(2, 2 + axes)))
    steps = tuple(slice(None, None, s) for s in stride), tuple(slice(None, None, d) for d in dilation)
    seen = seen[(slice(None), slice(None), *steps[0], *steps[1])]
    want = np.einsum("nc...k,ck->nc...", seen.reshape(*seen.shape[: 2 + axes], -1), w.reshape(channels, -1).astype(int))

    def model(x: Any) -> Any:
        weight = emberlet.asarray(w, backend=x.backend)
        return F.conv_integer(x, weight, 77, stride=stride, padding=padding, dilation=dilation, groups=channels)

    given = emberlet.asarray(x, backend=where)
    np.testing.assert_array_equal(np.asarray(compile(model, given, backend=where)(given)), want)
