"""Depthwise convolutions in WebAssembly of images and filters that do not lie in memory in the order they are read."""

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
