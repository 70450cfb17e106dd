"""What just fits a kernel's words and what no longer does; comparisons with every byte."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import isqrt
from typing import Any

import numpy as np
import pytest
from emberlet.errors import UnsupportedError
from emberlet.micro.builder.kernels.doubled_softmax import DoubledSoftmax
from emberlet.micro.builder.kernels.doubled_sum import DoubledSum
from emberlet.micro.builder.kernels.elementwise import sum_factors
from emberlet.micro.builder.kernels.normalize import root_of
from emberlet.micro.builder.kernels.norms import Norm
from emberlet.micro.builder.kernels.pairs import (
    Compare,
    compare_constant,
    compare_tensors,
    nearest_byte,
    quotient_factor,
)
from emberlet.micro.builder.kernels.sixteen.dot import Dot16
from emberlet.micro.builder.kernels.sixteen.normalize import Normalize16
from emberlet.micro.builder.kernels.sixteen.softmax import LogSoftmax16, Softmax16
from emberlet.micro.builder.kernels.softmax import Softmax
from emberlet.micro.builder.kernels.window import Window
from emberlet.micro.builder.quantization.sixteen import difference_requant, sum_requant

X, Z = ("x",), ("x", "z")
HOW = difference_requant((1.0,), (0,), 0)


def softmax(length: int = 4, scale: float = 0.1, log: bool = False, out: float = 1 / 256, zero: int = 0) -> None:
    Softmax("s", X, "y", 1, length, scale, log, out, zero).check()


def norm(operation: str, length: int = 4, scale: float = 0.1, out: float = 0.1) -> None:
    Norm("n", X, "y", (1, length, 1), operation, scale, 0, out, 0).check()


def words_normalized(length: int = 8, epsilon: float = 1e-5, factor: float = 1.0) -> None:
    factors, shifts = np.full(length, factor), np.zeros(length)
    Normalize16("n", X, "y", 1, length, factors, shifts, 0, True, epsilon, 0.01, 0, 0.01, 0).check()


def words_summed(k: int, weight: int = 128, middle: int = 128, zero: int = 0, bias: int = 0) -> None:
    weights = np.full((1, 1, 1, k), weight, np.uint8)
    how: Any = None
    Dot16("d", X, "y", (1, 1, 2 * k), Window((1, 1)), 1, weights, np.array([bias]), zero, how, middle).check()


def added(ratio: float) -> None:
    """The operands' scale over the output's, in TensorFlow Lite's arithmetic."""
    DoubledSum("s", Z, "y", "add", (4,), (4,), None, (0, 0), (0.1, 0.1, 0.1 / ratio), 0).check()


LIMITS: dict[str, tuple[Callable[[int], Any], int]] = {
    "values of a softmax": (lambda n: softmax(n), 16_384),
    "steps of a softmax's output": (lambda n: softmax(out=1 / n), 16_384),
    "steps per one of a log-softmax": (lambda n: softmax(log=True, out=1 / n, zero=200), 5_833),
    "thousandths of a step into a log-softmax": (lambda n: softmax(log=True, scale=n / 1000, out=1 / 8), 128_425),
    "values of LiteRT's softmax": (lambda n: DoubledSoftmax("s", X, "y", 1, n, 0.1).check(), 2_047),
    "steps per one into LiteRT's softmax": (lambda n: DoubledSoftmax("s", X, "y", 1, 4, 1 / n).exponentials, 1 << 27),
    "values of a sum of magnitudes": (lambda n: norm("l1", n), 2_105_376),
    "values of a sum of squares": (lambda n: norm("square", n), 8_256),
    "values of a root": (lambda n: norm("l2", n), 8_256),
    "values of a logarithm of a sum": (lambda n: norm("logsum", n), 2_105_376),
    "steps per one of a logarithm of a sum": (lambda n: norm("logsum", out=1 / n), 5_147),
    "values of a logarithm of exponentials": (lambda n: norm("logsumexp", n), 16_384),
    "steps per one of a logarithm of exponentials": (lambda n: norm("logsumexp", out=1 / n), 4_990),
    "ratio of a sum": (lambda n: sum_factors((n, -n), (0, 0), 5, 0, 255, "s"), 526_344),
    "ratio of a quotient": (lambda n: quotient_factor(n, 5, 0, 255, "q"), 2_105_376),
    "ratio of LiteRT's sum": (added, 96),
    "words of a softmax": (lambda n: Softmax16("s", X, "y", 1, n, 0.1, HOW).check(), 1_024),
    "words of a log-softmax": (lambda n: LogSoftmax16("s", X, "y", 1, n, 0.1, HOW, 0.1).check(), 1_024),
    "steps per one of a log-softmax of words": (
        lambda n: LogSoftmax16("s", X, "y", 1, 4, 0.1, HOW, 1 / n).check(),
        262_647,
    ),
    "words of a normalization": (words_normalized, 8_192),
    "epsilon of a normalization of words": (lambda n: words_normalized(epsilon=n), 439_804_651),
    "factor of a normalization of words": (lambda n: words_normalized(factor=n), 474_531),
    "words with the greatest weights": (lambda n: words_summed(n, 255), 8_256),
    "greatest words with the least weights": (lambda n: words_summed(n, 1, 128, 65_535), 8_240),
    "words with weights below 255": (lambda n: words_summed(n, 0, 255), 8_256),
    "words with weights from 0": (lambda n: words_summed(n, 255, 0), 8_256),
    "greatest words with weights from 0": (lambda n: words_summed(n, 255, 0, 65_535), 8_224),
    "sum of words": (lambda n: sum_requant(2.0**-20, n, 0), (1 << 36) - 1),
    "bias of words": (lambda n: words_summed(1, bias=n), (1 << 37) - 32_640 * 256 - 1),
    "bias of words below zero": (lambda n: words_summed(1, bias=-n), (1 << 37) - 32_641 * 256),
}


@pytest.mark.parametrize("what", LIMITS)
def test_the_greatest_that_fits_words(what: str) -> None:
    make, greatest = LIMITS[what]
    make(greatest)
    with pytest.raises(UnsupportedError):
        make(greatest + 1)


@pytest.mark.parametrize("ratio", [200.0, 1e6, 1e14, 1e29, 1e300])
def test_a_sum_in_litert_whose_output_is_far_too_fine_is_refused(ratio: float) -> None:
    with pytest.raises(UnsupportedError, match="times the output's; build it from the float model"):
        added(ratio)


def test_roots_are_whole_and_below_two_to_the_fifteenth() -> None:
    numbers = np.random.default_rng(0).integers(0, 1 << 30, 300).tolist()
    edges = [r * r + d for r in (1, 2, 181, 16_383, 16_384, 32_767) for d in (-1, 0, 1)]
    for t in [0, *edges, *numbers, (1 << 30) - 1]:
        assert root_of(t) == isqrt(t)
    assert root_of(1 << 34) == (1 << 15) - 1


# -- comparisons ----------------------------------------------------------------------------------------------------

HOLDS: dict[str, Callable[[Any, Any], Any]] = {
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "equal": np.equal,
}
BYTES = np.arange(256).astype(np.uint8)


def compared(operation: str, numbers: Sequence[float], scale: float, zero: int) -> Any:
    """What the layer gives for each of 256 bytes, and each number."""
    constant, how = compare_constant(operation, np.array(numbers), scale, zero)
    shape = (1, 256, len(numbers))
    arguments: Any = ("c", X, "y", operation, shape, (1, 1, len(numbers)), constant)
    layer = Compare(*arguments, **how)
    return layer.reference(BYTES.repeat(len(numbers)).reshape(shape))[0].astype(bool)


@pytest.mark.parametrize("operation", HOLDS)
@pytest.mark.parametrize("zero", [0, 100, 255])
def test_a_constant_is_compared_with_every_byte(operation: str, zero: int) -> None:
    steps = [-1000, -1, 0, 1, 2, 127, 253, 254, 255, 256, 1000]
    for chosen in [[n] for n in steps] + [list(pair) for pair in product(steps, steps)]:
        found = compared(operation, [0.5 * (n - zero) for n in chosen], 0.5, zero)
        if min(chosen) < 0 and max(chosen) > 255 and operation != "equal":
            continue
        for k, n in enumerate(chosen):
            edges = operation != "equal" and min(chosen) <= 0 and max(chosen) >= 255
            if edges and n in (min(chosen), max(chosen)):
                continue
            assert (found[:, k] == HOLDS[operation](BYTES.astype(int), n)).all(), (chosen, n)


def test_numbers_between_bytes_are_the_nearest_one_and_those_beyond_are_none() -> None:
    steps = np.array([-0.6, -0.5 - 2e-6, -0.5 - 0.5e-6, -0.4, 0.4, 0.6, 127.4, 254.6, 255.4])
    assert nearest_byte(steps * 0.25 - 25, 0.25, 100).tolist() == [-1, -1, 0, 0, 0, 1, 127, 255, 255]
    above = np.array([255.5, 255.5 + 0.5e-6, 255.5 + 1.5e-6, 256.4])
    assert nearest_byte(above - 100, 1.0, 100).tolist() == [255, 255, 256, 256]


@pytest.mark.parametrize(
    ("scales", "zeros"), [((0.5, 0.5), (3, 7)), ((0.5, 0.25), (0, 9)), ((0.3, 0.8), (200, 100)), ((1.0, 0.7), (0, 0))]
)
def test_tensors_are_equal_where_they_lie_closer_than_half_of_both_steps(
    scales: tuple[float, float], zeros: tuple[int, int]
) -> None:
    numbers = [(np.arange(256) - zero) * scale for scale, zero in zip(scales, zeros, strict=True)]
    apart = numbers[0][:, None] - numbers[1]
    near = np.abs(apart) < (sum(scales) / 2 - 1e-5 if scales[0] != scales[1] else scales[0] / 2)
    due = {
        "greater": ~near & (apart > 0),
        "greater_equal": near | (apart > 0),
        "less": ~near & (apart < 0),
        "less_equal": near | (apart < 0),
        "equal": near,
    }
    for operation, expected in due.items():
        how: Any = compare_tensors(operation, scales, zeros)
        layer = Compare("c", Z, "y", operation, (1, 256, 256), (1, 256, 256), None, **how)
        a, b = np.broadcast_arrays(BYTES[:, None], BYTES)
        assert (layer.reference(a, b)[0].astype(bool) == expected).all(), operation
