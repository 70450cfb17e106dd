"""What primitives on the GPU do with NaN, long axes, narrow dtypes and more operands than a kernel has bindings. What
they compute elsewhere: tests/plans/test_programs.py, tests/core/test_array_api_properties.py and the contract."""

from __future__ import annotations

import pytest
from emberlet import dtypes

INT = dtypes.int32


@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.int8, dtypes.uint8, dtypes.int64], ids=str)
def test_matmul_of_integers_wraps(twin, make, dtype):
    twin.check(lambda k, a, b: k.matmul(a, b), make((5, 6), dtype), make((6, 7), dtype))


def test_pool_of_a_large_window_by_a_workgroup(twin, make):
    twin.check(lambda k, x: k.pool("sum", x, (14, 14), (1, 1), ((0, 0), (0, 0)), (1, 1)), make((1, 8, 14, 14)))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_sort_is_stable_and_puts_nan_last(twin, make, axis, descending):
    twin.check(lambda k, x: k.sort(x, axis, descending), make((9, 12), INT, 0, 4))
    x = make.of([[3.0, float("nan"), 1.0, -0.0, 0.0, float("inf"), -float("inf"), 1.0]] * 2, dtypes.float32)
    twin.check(lambda k, x: k.sort(x, 1, descending), x)


@pytest.mark.parametrize("length", [1, 2, 1000, 1025, 3000, 5000])
def test_sort_of_a_long_axis_merges_runs(twin, make, length):
    twin.check(lambda k, x: k.sort(x, 1, False), make((2, length), INT, -500, 500))
    twin.check(lambda k, x: k.sort(x, 0, True), make((length, 2)))


def test_concat_of_more_parts_than_a_stage_has_bindings(twin, make):
    parts = [make((2, 3)) for _ in range(12)]
    twin.check(lambda k, *xs: k.concat(list(xs), 1), *parts)


def test_random_bits_are_the_same_integers_on_every_backend(twin):
    twin.check(lambda k: k.random_bits((5, 7), 0x123456789ABCDEF, (1 << 64) + 5))
    twin.check(lambda k: k.random_bits((9,), 3, (1 << 96) - 1))


@pytest.mark.parametrize("dtype", [dtypes.int4, dtypes.uint4, dtypes.int2, dtypes.bool, dtypes.float16], ids=str)
def test_narrow_dtypes_travel_unchanged(gpu, make, dtype):
    x = make((3, 5), dtype, -2 if dtype.bits < 4 else -8, 2 if dtype.bits < 4 else 8)
    data = bytes(x.backend.to_bytes(x))
    y = gpu.from_bytes(data, dtype, x.shape)
    gpu.realize(y)
    assert bytes(gpu.to_bytes(y)) == data


def test_primitives_other_than_nonzero_never_fall_back_to_the_host(gpu, twin, make):
    before = dict(gpu.fallbacks)
    x, i = make((4, 6)), make((4, 6), dtypes.int64, 0, 4)
    twin.check(lambda k, x, i: k.scatter(k.cumulative("sum", x, 1), i, x, 0, "add"), x, i)
    twin.check(lambda k, x: k.sort(x, 1, True), x)
    assert gpu.fallbacks == before


@pytest.mark.parametrize("dtype", [dtypes.uint8, dtypes.int8, dtypes.int16, dtypes.uint4, dtypes.int32, dtypes.uint32])
def test_numbers_of_a_list_wrap_into_narrower_integers(gpu, make, dtype):
    values = [300, -1, 70000, -(1 << 31) - 5, (1 << 32) + 9, 3]
    assert gpu.to_list(gpu.from_list(values, dtype, (6,))) == make.cpu.to_list(make.cpu.from_list(values, dtype, (6,)))


@pytest.mark.parametrize("op", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_cumulative_along_every_axis_with_what_follows(twin, make, op, axis):
    x = make((3, 1, 4, 5))
    twin.check(lambda k, x: k.cumulative(op, x, axis), x, rtol=1e-4)
    twin.check(lambda k, x: k.binary("mul", k.cumulative(op, x, axis), x), x, rtol=1e-4)
    twin.check(lambda k, x: k.cumulative(op, k.permute(x, (2, 0, 3, 1)), axis), x, rtol=1e-4)
    long = make((2, 300, 3))
    twin.check(lambda k, x: k.binary("add", k.cumulative(op, x, 1), x) if op != "prod" else x, long, rtol=1e-3)


def test_scattered_zeros_multiply_nan_and_infinity(twin, make):
    values = [float("nan"), float("inf"), 2.0, -3.0]
    x = make.cpu.from_list(values, dtypes.float32, (4,))
    picks = make.cpu.from_list([0, 1, 2], dtypes.int64, (3,))
    twin.check(lambda k, x, i: k.scatter(x, i, k.full((3,), 0.0, dtypes.float32), 0, "mul"), x, picks)
