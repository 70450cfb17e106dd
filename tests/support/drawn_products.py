"""Products and convolutions of drawn shapes, compared with NumPy in float64, those of integers with int64."""

from __future__ import annotations

import random
from typing import Any

import emberlet
import numpy as np
from emberlet import functional as F

from .drawn_attention import attention

Array = np.ndarray[Any, Any]
EPSILON = 2.0**-23


def sizes(choose: random.Random, most: int, count: int) -> list[int]:
    """Small lengths more often than large ones, and those around a vector's."""
    near = [n + d for n in (4, 8, 14, 16, 28, 32) for d in (-1, 0, 1)]
    return [choose.choice(near) if choose.random() < 0.4 else int(most ** choose.random()) for _ in range(count)]


def close(found: Any, want: Array, depth: int) -> None:
    """float32 sums of `depth` terms, against float64."""
    bound = 2 * EPSILON * depth**0.5 * max(1.0, float(np.abs(want).max(initial=0.0)))
    np.testing.assert_allclose(np.asarray(found), want, rtol=0, atol=bound)


def product(seed: int, backend: Any) -> None:
    """relu(a @ b), with batches, some of them shared, and transposed operands."""
    choose, numbers = random.Random(seed), np.random.default_rng(seed)
    rows, depth, columns = sizes(choose, 300, 3)
    if choose.random() < 0.05:
        depth = choose.choice([1024, 2048])  # rows as long as a page of memory
    lead = choose.choice([(), (), (2,), (2, 3)])
    a = numbers.standard_normal((*lead, rows, depth)).astype(np.float32)
    b = numbers.standard_normal((*lead[choose.randrange(2) :], depth, columns)[-2 - len(lead) :]).astype(np.float32)
    if choose.random() < 0.3:
        b = np.ascontiguousarray(b.swapaxes(-1, -2)).swapaxes(-1, -2)
    x, y = (emberlet.asarray(v, backend=backend) for v in (a, b))
    close(F.relu(F.matmul(x, y)), np.maximum(a.astype(np.float64) @ b.astype(np.float64), 0), depth)


def _convolution(choose: random.Random) -> tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]:
    """(the picture's shape, the weight's, options)."""
    axes, groups = choose.choice([1, 2, 2, 2, 3]), choose.choice([1, 1, 1, 2, 4])
    channels, out = (groups * n for n in sizes(choose, 40 if axes < 3 else 8, 2))
    if choose.random() < 0.3:
        groups = out = channels  # depthwise
    kernel = [choose.choice([1, 1, 2, 3, 3, 5, 7][: 7 if axes < 3 else 5]) for _ in range(axes)]
    dilation = choose.choice([1, 1, 1, 2])
    lengths = sizes(choose, 40, axes) if axes < 3 else [choose.randint(1, 9) for _ in range(axes)]
    picture = [max((k - 1) * dilation + 1, n) for k, n in zip(kernel, lengths, strict=True)]
    options = {
        "stride": choose.choice([1, 1, 2, 3]),
        "padding": choose.choice([0, kernel[0] // 2, kernel[0] // 2, 2]),
        "dilation": dilation,
        "groups": groups,
    }
    return (choose.choice([1, 2]), channels, *picture), (out, channels // groups, *kernel), options


def _conv(given: list[Any], options: dict[str, Any]) -> Any:
    return F.conv(given[0], given[1], None, **options)


def convolution(seed: int, backend: Any) -> None:
    """Those of every kind, over one to three axes."""
    choose, numbers = random.Random(seed), np.random.default_rng(seed)
    picture, kernel, options = _convolution(choose)
    x, w = (numbers.standard_normal(shape).astype(np.float32) for shape in (picture, kernel))
    exact = [emberlet.asarray(v.astype(np.float64), backend="python" if x.size < 99 else "numpy") for v in (x, w)]
    want = np.asarray(_conv(exact, options))
    found = _conv([emberlet.asarray(v, backend=backend) for v in (x, w)], options)
    close(found, want, int(np.prod(kernel[1:])))


def integer_product(seed: int, backend: Any) -> None:
    """Exact products of integers within ±255."""
    choose, numbers = random.Random(seed), np.random.default_rng(seed)
    rows, depth, columns = sizes(choose, 200, 3)
    lead = choose.choice([(), (), (2,)])
    a = numbers.integers(-255, 256, (*lead, rows, depth), dtype=np.int32)
    b = numbers.integers(-255, 256, (depth, columns), dtype=np.int32)
    x, y = (emberlet.asarray(v, backend=backend) for v in (a, b))
    np.testing.assert_array_equal(np.asarray(backend.matmul_8bit(x, y)), a.astype(np.int64) @ b.astype(np.int64))


def integer_convolution(seed: int, backend: Any) -> None:
    """Exact convolutions of integers within ±255."""
    choose, numbers = random.Random(seed), np.random.default_rng(seed)
    picture, kernel, options = _convolution(choose)
    a, b = (numbers.integers(-255, 256, shape, dtype=np.int32) for shape in (picture, kernel))
    want = np.asarray(_conv([emberlet.asarray(v.astype(np.float64), backend="numpy") for v in (a, b)], options))
    x, w = (emberlet.asarray(v, backend=backend) for v in (a, b))
    n = len(picture) - 2
    stride, padding, dilation = (options["stride"],) * n, ((options["padding"],) * 2,) * n, (options["dilation"],) * n
    found = np.asarray(backend.conv_8bit(x, w, None, stride, padding, dilation, options["groups"]))
    np.testing.assert_array_equal(found.astype(np.float64), want)


KINDS = {
    "product": product,
    "convolution": convolution,
    "integer product": integer_product,
    "integer convolution": integer_convolution,
    "attention": attention,
}
