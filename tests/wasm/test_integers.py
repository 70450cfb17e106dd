"""Products and convolutions of 8-bit integers of shapes drawn at random are exact, sum by sum."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from support.rows import every

Array = np.ndarray[Any, Any]


def drawn(rng: np.random.Generator, dtype: type, shape: tuple[int, ...]) -> Array:
    """Random values of every size; now and then only the extremes, which give the largest sums possible."""
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    if rng.integers(4) == 0:
        return rng.choice(np.array([low, high], dtype), shape)
    return rng.integers(low, high, shape, dtype, endpoint=True)


def compared(function: Callable[..., Any], arrays: list[Array]) -> None:
    """`function` gives the same bytes on wasm, plain and compiled, as on NumPy."""
    want = np.asarray(function(*[emberlet.asarray(a, backend="numpy") for a in arrays]))
    tensors = [emberlet.asarray(a, backend="wasm") for a in arrays]
    from emberlet.wgpu_backend.compiled import compile as compiled

    for found in (function(*tensors), compiled(function, *tensors, backend="wasm")(*tensors)):
        np.testing.assert_array_equal(np.asarray(found), want, strict=True)


def zero_point(rng: np.random.Generator, dtype: type, choose: random.Random) -> Array | None:
    return None if choose.randrange(3) == 0 else drawn(rng, dtype, ())


@pytest.mark.parametrize(("m", "k", "n"), [(64, 600, 512), (13, 5000, 260), (7, 40000, 9)])
def test_large_products_go_block_by_block(m: int, k: int, n: int) -> None:
    rng = np.random.default_rng(m)
    arrays = [drawn(rng, np.uint8, (m, k)), drawn(rng, np.int8, (k, n))]
    compared(F.matmul_integer, arrays)


@every("seed", range(60), share=4)
def test_convolution(seed: int) -> None:
    choose, rng = random.Random(seed), np.random.default_rng(seed)
    axes = choose.choice([1, 2, 2, 2, 3])
    groups = choose.choice([1, 1, 2, 3])
    channels, filters = groups * choose.choice([1, 2, 3, 5, 8, 17]), groups * choose.choice([1, 2, 6, 7, 13])
    kernel = tuple(choose.randrange(1, 4) for _ in range(axes))
    size = (*[choose.randrange(3, 12) for _ in range(axes - 1)], choose.randrange(3, choose.choice([12, 40])))
    options: dict[str, Any] = {
        "stride": tuple(choose.choice([1, 1, 2]) for _ in range(axes)),
        "padding": tuple((choose.randrange(3), choose.randrange(3)) for _ in range(axes)),
        "groups": groups,
    }
    kinds = [choose.choice([np.int8, np.uint8]) for _ in range(2)]
    x, w = (
        drawn(rng, kinds[0], (choose.choice([1, 1, 2]), channels, *size)),
        drawn(rng, kinds[1], (filters, channels // groups, *kernel)),
    )
    zero, levels = drawn(rng, kinds[0], ()), drawn(rng, np.uint8, ())
    bias = rng.integers(-10000, 10000, filters).astype(np.int32)
    scales = rng.uniform(0.001, 0.02, filters).astype(np.float32)

    def convolve(x: Any, w: Any, zero: Any, levels: Any, bias: Any, scales: Any) -> Any:
        if seed % 2:
            return F.conv_integer(x, w, zero, **options)
        return F.qlinear_conv(x, 0.01, zero, w, scales, None, 0.03, levels, bias, **options)

    compared(convolve, [x, w, zero, levels, bias, scales])


def test_a_product_of_constants_is_summed_in_32_bits_on_the_host(tmp_path: Path) -> None:
    from emberlet.wgpu_backend import plan_file

    a, b = np.full((4, 300), 255, np.uint8), np.full((300, 8), 127, np.int8)

    def model(x: Any) -> Any:
        left, right = (emberlet.asarray(v, backend=x.backend) for v in (a, b))
        return F.take(F.matmul_integer(left, right), x, 0)

    path = str(tmp_path / "constant.wasm")
    plan_file.save(path, model, emberlet.asarray(np.array([1, 3], np.int32), backend="numpy"))
    (found,) = plan_file.load(path).run(np.array([1, 3], np.int32))
    np.testing.assert_array_equal(np.asarray(found), np.full((2, 8), 300 * 255 * 127))


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("transposed", [False, True])
def test_8_bit_weights_take_a_byte_each_in_a_file(rows: int, transposed: bool, tmp_path: Path) -> None:
    from emberlet.wgpu_backend import plan_file

    rng = np.random.default_rng(rows)
    x, w, zeros = drawn(rng, np.uint8, (rows, 250)), drawn(rng, np.int8, (250, 400)), drawn(rng, np.int8, (400,))

    def model(x: Any) -> Any:
        stored = emberlet.asarray(np.ascontiguousarray(w.T) if transposed else w, backend=x.backend)
        weight = F.permute_dims(stored, (1, 0)) if transposed else stored
        return F.matmul_integer(x, weight, 118, emberlet.asarray(zeros, backend=x.backend))

    path = tmp_path / "small.wasm"
    plan_file.save(str(path), model, emberlet.asarray(x, backend="numpy"))
    assert path.stat().st_size < w.size + 8000
    (found,) = plan_file.load(str(path)).run(x)
    wanted = (x.astype(np.int32) - 118) @ (w.astype(np.int32) - zeros.astype(np.int32))
    np.testing.assert_array_equal(np.asarray(found), wanted)


@every("seed", range(24), share=3)
def test_products_with_weights_of_a_file_are_exact(seed: int) -> None:
    from emberlet.wgpu_backend import plan_file

    choose, rng = random.Random(seed), np.random.default_rng(seed)
    rows, terms = choose.choice([2, 5, 6, 13, 32]), 2 * choose.choice([1, 2, 3, 4, 17, 96])
    columns = choose.choice([8, 16, 24, 96, 1000])  # whole panels
    kinds = [choose.choice([np.int8, np.uint8]) for _ in range(2)]
    w, again = drawn(rng, kinds[1], (terms, columns)), choose.randrange(3) == 0
    lead = choose.choice([(), (3,)])

    def model(x: Any) -> Any:
        weight = emberlet.asarray(w, backend=x.backend)
        out = F.matmul_integer(x, weight)
        return (out, F.matmul_integer(F.flip(x, 0), weight)) if again else (out,)

    dims = {"x": {0: ("length", 40)}} if seed % 3 == 0 and not lead else None
    example = emberlet.asarray(drawn(rng, kinds[0], (*lead, 4 if dims else rows, terms)), backend="numpy")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.wasm")
        plan_file.save(path, model, example, inputs=["x"], dims=dims)
        saved = plan_file.load(path)
        for count in (rows, 1, 7) if dims else (rows,):
            x = drawn(rng, kinds[0], (*lead, count, terms))
            wide = x.astype(np.int32)
            wanted = [wide @ w.astype(np.int32), wide[::-1] @ w.astype(np.int32)]
            for found, want in zip(saved.run(x), wanted, strict=False):
                np.testing.assert_array_equal(np.asarray(found), want)


def test_8_bit_weights_can_be_results_too(tmp_path: Path) -> None:
    from emberlet.wgpu_backend import plan_file

    rng = np.random.default_rng(3)
    x, w = drawn(rng, np.uint8, (3, 20)), drawn(rng, np.int8, (20, 9))

    def model(x: Any) -> Any:
        weight = F.flip(emberlet.asarray(w, backend=x.backend), 0)
        return F.matmul_integer(x, weight), weight

    path = tmp_path / "both.wasm"
    plan_file.save(str(path), model, emberlet.asarray(x, backend="numpy"))
    product, weight = plan_file.load(str(path)).run(x)
    np.testing.assert_array_equal(np.asarray(weight), w[::-1])
    np.testing.assert_array_equal(np.asarray(product), x.astype(np.int32) @ w[::-1].astype(np.int32))
