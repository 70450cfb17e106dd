"""Kernels against float64, for each length of vectors that this processor has. `dev.py fuzz products` draws more."""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.wgpu_backend.compiled import compile
from emberlet.wgpu_backend.llvm.backend import NativeBackend
from support.drawn_products import KINDS, close
from support.draws import draw

SEEDS, COUNT = range(8), 3  # of which a run draws so many


@pytest.mark.parametrize("kind", KINDS)
def test_drawn_ones_equal_float64_and_integers(kind: str, backend: NativeBackend) -> None:
    for seed in draw(kind).sample(SEEDS, COUNT):
        KINDS[kind](seed, backend)


@pytest.mark.parametrize("rows", [5, 14, 15, 20, 28, 29])
def test_few_rows_by_a_matrix_beyond_the_cache_equal_float64(backend: NativeBackend, rows: int) -> None:
    numbers = np.random.default_rng(rows)
    a, b = (numbers.standard_normal(shape).astype(np.float32) for shape in ((rows, 260), (260, 1031)))
    x, y = (emberlet.asarray(v, backend=backend) for v in (a, b))
    close(F.matmul(x, y), a.astype(np.float64) @ b.astype(np.float64), 260)


@pytest.mark.parametrize("columns", [30, 49, 100, 196])
@pytest.mark.parametrize("depth", [1024, 2048])
def test_rows_whose_lengths_are_those_of_pages_equal_float64(backend: NativeBackend, depth: int, columns: int) -> None:
    numbers = np.random.default_rng(columns)
    a, b = (numbers.standard_normal(shape).astype(np.float32) for shape in ((31, depth), (depth, columns)))
    x, y = (emberlet.asarray(v, backend=backend) for v in (a, b))
    close(F.matmul(x, y), a.astype(np.float64) @ b.astype(np.float64), depth)


@pytest.mark.parametrize("columns", [33, 49, 57])
@pytest.mark.parametrize(("rows", "depth"), [(31, 24), (5, 64), (45, 1024), (600, 512)])
def test_a_single_column_behind_the_others_equals_float64(
    backend: NativeBackend, rows: int, depth: int, columns: int
) -> None:
    numbers = np.random.default_rng(columns)
    shapes = (rows, depth), (2, depth, columns), (rows, 1)
    a, b, c = (numbers.standard_normal(shape).astype(np.float32) for shape in shapes)
    x, y, z = (emberlet.asarray(v, backend=backend) for v in (a, b, c))
    want = np.maximum(a.astype(np.float64) @ b.astype(np.float64) + c, 0)
    close(F.relu(F.matmul(x, y) + z), want, depth)


PICTURES = [
    ((2, 17, 5, 13), (31, 17, 3, 3), {"padding": 1}),
    ((1, 17, 6, 14), (9, 17, 3, 3), {"padding": 2, "stride": 2}),
    ((1, 20, 33, 27), (16, 20, 1, 1), {"stride": 2}),
    ((1, 9, 40, 41), (40, 9, 3, 3), {"padding": 2, "dilation": 2}),
    ((1, 12, 9, 70), (60, 12, 3, 5), {"padding": 1}),
    ((1, 64, 12, 4), (18, 32, 3, 1), {"groups": 2}),
    ((2, 30, 90), (17, 30, 3), {"padding": 1}),
    ((2, 30, 91), (17, 30, 5), {"stride": 2}),
    ((1, 7, 5, 6, 11), (20, 7, 3, 3, 3), {"padding": 1}),
    ((1, 8, 4, 7, 16), (20, 8, 2, 3, 3), {"stride": 2}),
    ((1, 48, 7, 7), (20, 48, 3, 3), {"padding": 1}),
    ((1, 12, 160, 140), (14, 12, 3, 3), {"padding": 1}),
]


@pytest.mark.parametrize("kind", ["floats", "integers"])
def test_convolutions_whose_panels_span_lines_equal_float64(backend: NativeBackend, kind: str) -> None:
    for picture, kernel, options in PICTURES:
        numbers = np.random.default_rng(len(picture))
        if kind == "floats":
            x, w = (numbers.standard_normal(shape).astype(np.float32) for shape in (picture, kernel))
        else:
            x, w = (numbers.integers(-127, 128, shape, dtype=np.int32) for shape in (picture, kernel))
        wide = [emberlet.asarray(v.astype(np.float64), backend="numpy") for v in (x, w)]
        want = np.asarray(F.conv(wide[0], wide[1], None, **options))
        given = [emberlet.asarray(v, backend=backend) for v in (x, w)]
        if kind == "floats":
            close(F.conv(given[0], given[1], None, **options), want, int(np.prod(kernel[1:])))
            continue
        n = len(picture) - 2
        stride, padding, dilation = (options.get(k, d) for k, d in (("stride", 1), ("padding", 0), ("dilation", 1)))
        around = ((padding,) * 2,) * n
        found = backend.conv_8bit(*given, None, (stride,) * n, around, (dilation,) * n, options.get("groups", 1))
        np.testing.assert_array_equal(np.asarray(found).astype(np.float64), want)


DEPTHWISE = [  # picture, kernel, padding of each axis, stride, dilation
    ((1, 20, 9, 17), (3, 3), ((1, 1), (1, 1)), (1, 1), (1, 1)),
    ((2, 16, 33, 32), (5, 5), ((2, 2), (2, 2)), (2, 2), (1, 1)),
    ((1, 33, 7, 7), (5, 5), ((2, 2), (2, 2)), (1, 1), (1, 1)),
    ((1, 17, 12, 40), (3, 3), ((0, 3), (2, 1)), (1, 2), (2, 1)),
    ((3, 8, 5, 21), (3, 1), ((2, 0), (0, 0)), (1, 1), (2, 1)),
    ((1, 16, 6, 5), (3, 3), ((1, 1), (7, 7)), (1, 1), (1, 2)),  # results wider than the picture
    ((1, 16, 4, 3), (3, 3), ((1, 1), (1, 1)), (1, 1), (1, 1)),
]


@pytest.mark.parametrize("case", DEPTHWISE)
def test_depthwise_convolutions_of_many_channels_with_a_border_equal_float64(
    backend: NativeBackend, case: tuple[Any, ...]
) -> None:
    picture, kernel, padding, stride, dilation = case
    channels = picture[1]
    numbers = np.random.default_rng(channels)
    shapes = picture, (channels, 1, *kernel), (channels,)
    x, w, b = (numbers.standard_normal(shape).astype(np.float32) for shape in shapes)

    def network(x: Any, w: Any, b: Any) -> Any:
        options = {"padding": padding, "stride": stride, "dilation": dilation, "groups": channels}
        y = F.relu(x)
        return F.conv(y, w, b, **options), F.silu(F.conv(y, w, None, **options)) + 1

    want = network(*[emberlet.asarray(v.astype(np.float64), backend="numpy") for v in (x, w, b)])
    given = [emberlet.asarray(v, backend=backend) for v in (x, w, b)]
    traced = compile(lambda x: network(x, *given[1:]), given[0], backend=backend)
    for found in (network(*given), traced(x)):
        for one, right in zip(found, want, strict=True):
            close(one, np.asarray(right), kernel[0] * kernel[1])


@pytest.mark.parametrize("case", DEPTHWISE)
def test_depthwise_convolutions_of_integers_with_a_border_are_exact(
    backend: NativeBackend, case: tuple[Any, ...]
) -> None:
    picture, kernel, padding, stride, dilation = case
    channels = picture[1]
    numbers = np.random.default_rng(channels)
    x = numbers.integers(0, 256, picture, dtype=np.int32)
    w = numbers.integers(-127, 128, (channels, 1, *kernel), dtype=np.int32)

    def network(x: Any, w: Any, convolve: Any) -> Any:
        return convolve(F.where(x > 200, x - 9, x - 3), w, None, stride, padding, dilation, channels)

    wide = [emberlet.asarray(v.astype(np.float64), backend="numpy") for v in (x, w)]
    want = np.asarray(network(*wide, F.conv))
    found = network(*[emberlet.asarray(v, backend=backend) for v in (x, w)], backend.conv_8bit)
    np.testing.assert_array_equal(np.asarray(found).astype(np.float64), want)
