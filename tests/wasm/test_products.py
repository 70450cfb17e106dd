"""Matrix products and convolutions of shapes drawn at random, against float64; which kernels they get."""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from support.drawn_products import KINDS
from support.rows import every

Array = np.ndarray[Any, Any]


def close(found: Any, want: Array, terms: int) -> None:
    found = np.asarray(found)
    assert found.shape == want.shape
    size = float(np.abs(want).max(initial=1.0))
    assert np.abs(found - want).max(initial=0.0) <= 6e-8 * size * (4 + terms**0.5)


def compared(function: Any, arrays: list[Array], terms: int) -> None:
    """`function` gives on wasm, plain and compiled, what it gives on NumPy in float64."""
    want = np.asarray(function(*[emberlet.asarray(a.astype(np.float64), backend="numpy") for a in arrays]))
    tensors = [emberlet.asarray(a, backend="wasm") for a in arrays]
    close(function(*tensors), want, terms)
    from emberlet.wgpu_backend.compiled import compile as compiled

    close(compiled(function, *tensors, backend="wasm")(*tensors), want, terms)


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "attention"])
@every("seed", range(180), share=3)
def test_drawn_ones_equal_float64_and_integers(kind: str, seed: int) -> None:
    KINDS[kind](seed, emberlet.get_backend("wasm"))


def test_products_of_one_row_have_a_kernel_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    from emberlet.wgpu_backend.wasm.kernels import single_row

    made = []
    make = single_row.single_row
    monkeypatch.setattr(single_row, "single_row", lambda *given: made.append(make(*given)) or made[-1])
    for n in (32, 300):
        compared(lambda x, y: x @ y, [np.ones((1, 40), np.float32), np.ones((40, n), np.float32)], 40)
    assert made and all(made)


def test_depthwise_convolutions_have_a_kernel_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    from emberlet.wgpu_backend.wasm.kernels import depthwise

    made = []
    make = depthwise.depthwise
    monkeypatch.setattr(depthwise, "depthwise", lambda *given: made.append(make(*given)) or made[-1])
    x, w = np.ones((1, 4, 9, 9), np.float32), np.ones((4, 1, 3, 3), np.float32)
    for stride in (1, 2):
        compared(lambda x, w, s=stride: F.conv2d(x, w, stride=(s, s), padding=(1, 1), groups=4), [x, w], 9)
    assert made and all(made)


def test_convolutions_with_few_channels_read_the_image_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    from emberlet.wgpu_backend.wasm.kernels import direct

    made = []
    make = direct.direct
    monkeypatch.setattr(direct, "direct", lambda *given: made.append(make(*given)) or made[-1])
    for taps in (3, 5):
        x, w = np.ones((1, 4, 12, 20), np.float32), np.ones((8, 4, taps, taps), np.float32)
        compared(lambda x, w: F.conv2d(x, w), [x, w], w[0].size)
    assert made and all(made)
