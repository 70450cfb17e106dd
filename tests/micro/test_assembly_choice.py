"""Which layers run in assembly: those whose arithmetic and shape the kernels support, up to the largest values that
fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from emberlet.micro.builder.assembly.registry import ALL, DSP, MOST_GROUPS, MOST_SHIFT, THUMB, calls, scratch
from emberlet.micro.builder.kernels.depthwise import Depthwise
from emberlet.micro.builder.kernels.dot import Dot
from emberlet.micro.builder.kernels.layer import dense_view
from emberlet.micro.builder.kernels.window import Window
from emberlet.micro.builder.quantization.doubled import DividedRequant, DoubledRequant
from emberlet.micro.builder.quantization.reference import Requant

PLACES = {"i0": 0, "o": 4096, "wo": 0, "to": 0, "zs": 8192}


def _dot(requant: Requant, groups: int = 1, packed: bool = False, side: int = 1) -> Dot:
    weights = np.full((len(requant.multipliers), 1, 1, 4), 130, np.uint8)
    bias = np.zeros(len(weights), np.int64)
    image = (side, side, 4 * groups)
    return Dot("layer", ("x",), "y", image, Window((1, 1)), groups, weights, bias, 0, requant, packed=packed)


def _depthwise(requant: Requant, channels: int, kernel: tuple[int, int], multiplier: int = 1) -> Depthwise:
    weights = np.full((channels * multiplier, *kernel), 130, np.uint8)
    bias = np.zeros(len(weights), np.int64)
    return Depthwise("layer", ("x",), "y", (24, 24, channels), Window(kernel), weights, bias, 0, requant)


def _plain(n: int = 1) -> Requant:
    return Requant((1 << 14,) * n, 20, 0, 0)


def _doubled(*shifts: int, twice: bool = True) -> DoubledRequant:
    return DoubledRequant((1 << 30,) * len(shifts), 0, 0, 0, 0, 255, shifts, twice)


def _found(layer: Any, family: str) -> list[str] | None:
    h, w, _ = layer.image
    output = dense_view((*layer.window.output(h, w), len(layer.weights)))
    found = calls(layer, family, [dense_view(layer.image)], output, PLACES)
    return None if found is None else [c.kernel.name for c in found]


@pytest.mark.parametrize("family", ALL)
@pytest.mark.parametrize(
    ("requant", "runs"),
    [
        (_plain(), True),
        (_doubled(-MOST_SHIFT), True),
        (_doubled(0, -MOST_SHIFT), True),
        (_doubled(-MOST_SHIFT - 1), False),
        (_doubled(2, -MOST_SHIFT - 1, 0), False),
        (_doubled(-MOST_SHIFT - 1, twice=False), False),
        (DividedRequant((3,), 0, 0, 0), False),
    ],
)
def test_arithmetic_that_an_instruction_set_has(requant: Requant, runs: bool, family: str) -> None:
    assert (_found(_dot(requant), family) is not None) is runs


@pytest.mark.parametrize("family", ALL)
def test_each_group_of_a_convolution_is_a_call(family: str) -> None:
    for groups in (1, 2, MOST_GROUPS):
        made = _found(_dot(_plain(groups), groups, side=3), family)
        assert made is not None
        assert len(made) == groups
    assert _found(_dot(_plain(MOST_GROUPS + 1), MOST_GROUPS + 1, side=3), family) is None
    assert _found(_dot(_plain(), packed=True), family) is None


TAPS: Sequence[tuple[str, int, tuple[int, int], int, bool]] = [
    # A kernel of DSP instructions takes four channels at once.
    (DSP, 4, (3, 3), 1, True),
    (DSP, 3, (3, 3), 1, False),
    (THUMB, 1, (3, 3), 1, True),
    (THUMB, 4, (3, 3), 2, False),  # two outputs for each channel
    (DSP, 4, (3, 3), 2, False),
]


@pytest.mark.parametrize(("family", "channels", "kernel", "multiplier", "runs"), TAPS)
def test_depthwise_layers_that_have_a_kernel(
    family: str, channels: int, kernel: tuple[int, int], multiplier: int, runs: bool
) -> None:
    n = channels * multiplier
    assert (_found(_depthwise(_plain(n), channels, kernel, multiplier), family) is not None) is runs
    assert _found(_depthwise(_doubled(*(-3,) * n, twice=False), channels, kernel, multiplier), family) is None
    assert _found(_depthwise(_doubled(*(-MOST_SHIFT - 1,) * n), channels, kernel, multiplier), family) is None


@pytest.mark.parametrize("family", ALL)
def test_the_largest_window_of_a_depthwise_layer(family: str) -> None:
    """64 taps: more would make a kernel long, and run in viper."""
    for kernel, runs in (((8, 8), True), ((4, 16), True), ((5, 13), False), ((13, 5), False)):
        assert (_found(_depthwise(_plain(4), 4, kernel), family) is not None) is runs


@pytest.mark.parametrize("family", ALL)
def test_arithmetic_is_part_of_a_kernels_name(family: str) -> None:
    """Layers share a kernel by its name, so two kernels with one name would be confused."""
    made: dict[str, bytes] = {}
    for requant in (_plain(), _doubled(-3), _doubled(2), _doubled(-3, twice=False), Requant((1 << 14,), 20, 3, 0)):
        for side in (1, 3):
            layer = _dot(requant, side=side)
            views = [dense_view(layer.image)], dense_view((side, side, 1))
            found = calls(layer, family, *views, PLACES)
            assert found is not None
            (call,) = found
            assert made.setdefault(call.kernel.name, call.kernel.assembled().code()) == call.kernel.assembled().code()
            assert set(call.kernel.frame.fields) <= set(call.numbers)
    assert len(set(made.values())) == len(made)


@pytest.mark.parametrize("k", [1, 4, 5, 8])
def test_scratch_holds_the_window_and_its_unpacked_copies(k: int) -> None:
    """A window of k bytes, and with DSP instructions its 16-bit halves: 8 bytes for each word and position."""
    weights = np.full((2, 1, 1, k), 130, np.uint8)
    for side, positions in ((1, 1), (2, 2)):
        layer = Dot("l", ("x",), "y", (side, side, k), Window((1, 1)), 1, weights, np.zeros(2, np.int64), 0, _plain(2))
        words = (k + 3) // 4
        assert scratch(layer, []) == 0
        assert scratch(layer, [THUMB]) == 4 * words >= k
        assert scratch(layer, [THUMB, DSP]) == 8 * words * positions + 4 * words + 8 + 3
