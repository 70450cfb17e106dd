"""Products of levels in NumPy plans are exact sums of integers, however many terms they have: against NumPy's int64."""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn
from emberlet.host.numpy_backend.compile import compile, layout, winograd

SCALE = np.float32(2.0**-13)  # sums that differ by one give other floats
TERMS = {"of one product": 300, "of two halves": 900, "of no halves": 2600}


def levels(draw: Any, dtype: str, *shape: int) -> Any:
    info = np.iinfo(dtype)
    return draw.integers(info.min, info.max + 1, shape).astype(dtype)


def rounded(totals: Any) -> Any:
    """int64 sums as float32 times the scale."""
    return totals.astype(np.float32) * SCALE


class Sums(nn.Module):
    """function(x, weight, shift) as floats, times the scale."""

    def __init__(self, function: Any, weight: Any, shift: Any) -> None:
        self.function = function
        self.weight, self.shift = (nn.Param(emberlet.asarray(v, device="numpy")) for v in (weight, shift))

    def forward(self, x: Any) -> Any:
        return self.function(x, self.weight.val(), self.shift.val()).astype("float32") * SCALE


def planned(function: Any, weight: Any, shift: Any, levels: Any) -> tuple[Any, int]:
    """(the result of a plan, how many calls it leaves to products of int32)"""
    x = emberlet.asarray(levels, device="numpy")
    made = compile(Sums(function, weight, shift), x)
    return np.asarray(made(x)), repr(made.plan(x)).count("_8bit")


@pytest.mark.parametrize("zero", [0, 128, 255, None])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("count", TERMS.values(), ids=TERMS)
def test_matrix_products(count: int, bias: bool, zero: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBERLET_PLANS", "always")
    draw = np.random.default_rng(count)
    weight, shift = levels(draw, "int8", count, 5), draw.integers(-9999, 9999, 5).astype(np.int32)
    x = levels(draw, "uint8", 3, count)
    x[0], weight[:, 0] = 255, 127  # the largest sum, and what is farthest from its zero point
    x[1] = 0

    def product(x: Any, weight: Any, shift: Any) -> Any:
        total = F.matmul_integer(x, weight, zero)
        return total + shift if bias else total

    found, whole = planned(product, weight, shift, x)
    totals = (x.astype(np.int64) - (zero or 0)) @ weight.astype(np.int64) + (shift if bias else 0)
    np.testing.assert_array_equal(found, rounded(totals))
    assert bool(whole) == (count == TERMS["of no halves"])


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("channels", "kernel", "stride"), [(90, 3, 1), (220, 2, 2), (900, 1, 1), (40, 3, 2)])
def test_convolutions(channels: int, kernel: int, stride: int, bias: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBERLET_PLANS", "always")
    draw = np.random.default_rng(channels)
    weight, shift = levels(draw, "int8", 4, channels, kernel, kernel), draw.integers(-99, 99, 4).astype(np.int32)
    x = levels(draw, "uint8", 1, channels, 5, 6)
    x[:, :, :3, :3], weight[0] = 255, 127
    around = kernel // 2

    def convolved(x: Any, weight: Any, shift: Any) -> Any:
        total = F.conv_integer(x, weight, 9, stride=stride, padding=around)
        return total + shift if bias else total

    found, whole = planned(convolved, weight, shift.reshape(4, 1, 1), x)
    image = np.pad(x.astype(np.int64) - 9, ((0, 0), (0, 0), (around, around), (around, around)))
    seen = np.lib.stride_tricks.sliding_window_view(image, (kernel, kernel), (2, 3))[:, :, ::stride, ::stride]
    totals = np.einsum("nchwij,ocij->nohw", seen, weight.astype(np.int64))
    np.testing.assert_array_equal(found, rounded(totals + (shift.reshape(4, 1, 1) if bias else 0)))
    assert not whole


LINE = (127, 127, 127)  # of weights that are the same in all columns, and channels: the largest sums of three lines
# (weights, channels, height, whether four products of two lines are exact)
TWO_LINES = [
    (LINE, 28, 8, True), (LINE, 29, 8, False), ((127, -127, 127), 57, 6, True), ((127, -127, 127), 58, 6, False),
    ((-128, 0, 0), 85, 7, True), ((-128, 0, 0), 86, 7, False), (None, 20, 9, True), (None, 400, 6, False),
]  # fmt: skip


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("lines", "channels", "height", "fits"), TWO_LINES)
def test_two_lines_at_a_time(
    lines: Any, channels: int, height: int, fits: bool, bias: bool, padding: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(winograd, "LARGE", 0)
    monkeypatch.setattr(winograd, "CHANNELS", 1)
    monkeypatch.setattr(winograd, "BLOCK", 0)
    monkeypatch.setattr(winograd, "POSITIONS", 14)  # four lines of a result at a time
    monkeypatch.setattr(layout, "LARGE", 0)
    draw = np.random.default_rng(channels)
    weight, shift = levels(draw, "int8", 5, channels, 3, 3), draw.integers(-99, 99, (5, 1, 1)).astype(np.int32)
    if lines is not None:
        weight[:] = np.array(lines)[:, None]
    x = levels(draw, "uint8", 2, channels, height + 2 - 2 * padding, 7)
    x[0, :, :, :4] = 255
    x[1, :, ::2, :4], x[1, :, 1::2, :4] = 255, 0

    def convolved(x: Any, weight: Any, shift: Any) -> Any:
        total = F.conv_integer(x, weight, None, padding=padding)
        return total + shift if bias else total

    module, given = Sums(convolved, weight, shift), emberlet.asarray(x, device="numpy")
    made = compile(module, given)
    image = np.pad(x.astype(np.int64), ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    seen = np.lib.stride_tricks.sliding_window_view(image, (3, 3), (2, 3))
    totals = np.einsum("nchwij,ocij->nohw", seen, weight.astype(np.int64)) + (shift if bias else 0)
    np.testing.assert_array_equal(np.asarray(made(given)), rounded(totals))
    assert (repr(made.plan()).count("matmul") >= 8) == fits


# (image, kernel, dilation, padding)
SMALL_IMAGES = [
    ((9, 8), (3, 3), (1, 1), ((1, 1), (1, 1))), ((9, 10), (2, 3), (1, 2), ((0, 1), (2, 0))),
    ((5, 4, 7), (3, 1, 2), (1, 1, 1), ((1, 1), (0, 0), (1, 0))), ((12, 11), (1, 3), (1, 1), ((0, 0), (0, 0))),
    ((70, 3), (3, 3), (2, 1), ((0, 0), (0, 0))),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "kernel", "dilation", "padding"), SMALL_IMAGES)
@pytest.mark.parametrize("bias", [False, True])
def test_small_images(
    shape: Any, kernel: Any, dilation: Any, padding: Any, bias: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBERLET_PLANS", "always")
    draw, rank = np.random.default_rng(shape[0]), len(shape)
    weight = levels(draw, "int8", 6, 5, *kernel)
    shift = draw.integers(-99, 99, (6, *(1,) * rank)).astype(np.int32)
    x = levels(draw, "uint8", 1, 5, *shape)
    image = np.pad(x.astype(np.int64) - 9, ((0, 0), (0, 0), *padding))
    span = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    seen = np.lib.stride_tricks.sliding_window_view(image, span, tuple(range(2, 2 + rank)))
    seen = seen[(..., *(slice(None, None, d) for d in dilation))]
    windows = seen.reshape(*seen.shape[: 2 + rank], -1)
    totals = np.einsum("nc...k,ock->no...", windows, weight.reshape(6, 5, -1).astype(np.int64)) + (shift if bias else 0)
    row = draw.integers(-9, 9, totals.shape[-1]).astype(np.float32)
    column = np.arange(1, 7, dtype=np.float32).reshape(6, *(1,) * rank)

    class Chain(nn.Module):
        """Of elementwise steps whose operands lie in different ways."""

        def __init__(self) -> None:
            given = [emberlet.asarray(v, device="numpy") for v in (weight, shift, row, column)]
            self.held = [nn.Param(v) for v in given]

        def forward(self, x: Any) -> Any:
            weight, shift, row, column = (p.val() for p in self.held)
            total = F.conv_integer(x, weight, 9, dilation=dilation, padding=padding)
            first = ((total + shift if bias else total).astype("float32") * column).clip(-4000.0, 9000.0)
            return first, (first + row) * column + first

    given = emberlet.asarray(x, device="numpy")
    first, second = compile(Chain(), given)(given)
    wanted = (totals.astype(np.float32) * column).clip(-4000, 9000)
    np.testing.assert_array_equal(np.asarray(first), wanted)
    np.testing.assert_array_equal(np.asarray(second), (wanted + row) * column + wanted)
