"""Reductions, windows, matrix products, indexing and movement on the GPU against NumPy."""

from __future__ import annotations

import pytest
from emberlet import dtypes

INT = dtypes.int32


@pytest.mark.parametrize("op", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 2), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
def test_reduce(twin, make, op, axes, keepdims):
    x = make((3, 5, 4))
    twin.check(lambda k, x: k.reduce(op, x, axes, keepdims), x)


@pytest.mark.parametrize("op", ["any", "all"])
def test_reduce_bool(twin, make, op):
    twin.check(lambda k, x: k.reduce(op, x, (1,), False), make((6, 3), dtypes.bool))


@pytest.mark.parametrize("op", ["sum", "max", "min"])
def test_reduce_long_axis_by_a_workgroup(twin, make, op):
    twin.check(lambda k, x: k.reduce(op, x, (1,), False), make((3, 5000)), rtol=1e-5, atol=1e-4)
    twin.check(lambda k, x: k.reduce(op, x, (0, 1), True), make((30, 50), INT))


@pytest.mark.parametrize("op", ["sum", "prod", "any", "all"])
def test_reduce_of_nothing_is_the_identity(twin, make, op):
    dtype = dtypes.bool if op in ("any", "all") else dtypes.float32
    twin.check(lambda k, x: k.reduce(op, x, (1,), False), make((3, 0), dtype))


def test_max_propagates_nan(twin, make):
    x = make.of([[1.0, float("nan"), 2.0], [3.0, 1.0, 0.0]], dtypes.float32)
    twin.check(lambda k, x: k.reduce("max", x, (1,), False), x)
    twin.check(lambda k, x: k.argreduce("max", x, 1, False), x)


@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_argreduce_gives_the_first_extreme(twin, make, op, axis, keepdims):
    twin.check(lambda k, x: k.argreduce(op, x, axis, keepdims), make((9, 11), INT, 0, 4))


@pytest.mark.parametrize("op", ["max", "min"])
def test_argreduce_by_a_workgroup(twin, make, op):
    twin.check(lambda k, x: k.argreduce(op, x, 1, False), make((2, 3000), INT, 0, 50))


@pytest.mark.parametrize(
    "a, b",
    [((1, 1), (1, 1)), ((3, 4), (4, 5)), ((1, 700), (700, 10)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (5, 4, 6)),
     ((33, 65), (65, 17)), ((64, 64), (64, 64)), ((130, 70), (70, 131)), ((3, 0), (0, 2)), ((2, 40, 36), (2, 36, 44))],
    ids=str,
)  # fmt: skip
def test_matmul(twin, make, a, b):
    twin.check(lambda k, a, b: k.matmul(a, b), make(a), make(b), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.int8, dtypes.uint8, dtypes.int64], ids=str)
def test_matmul_of_integers_wraps(twin, make, dtype):
    twin.check(lambda k, a, b: k.matmul(a, b), make((5, 6), dtype), make((6, 7), dtype))


@pytest.mark.parametrize(
    "shape, weight, stride, padding, dilation, groups",
    [
        ((1, 3, 8, 8), (4, 3, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 1),
        ((2, 3, 9, 7), (5, 3, 3, 2), (2, 1), ((0, 2), (1, 0)), (1, 2), 1),
        ((1, 4, 6, 6), (4, 1, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 4),
        ((1, 4, 6, 6), (8, 2, 3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1), 2),
        ((2, 16, 10, 10), (24, 16, 1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
        ((2, 3, 20), (4, 3, 5), (2,), ((2, 2),), (1,), 1),
        ((1, 2, 5, 6, 4), (3, 2, 2, 3, 2), (1, 1, 2), ((1, 0), (1, 1), (0, 1)), (1, 1, 1), 1),
        ((1, 32, 28, 28), (40, 32, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 1),
    ],
    ids=str,
)
def test_conv(twin, make, shape, weight, stride, padding, dilation, groups):
    twin.check(
        lambda k, x, w, b: k.conv(x, w, b, stride, padding, dilation, groups),
        make(shape), make(weight), make((weight[0],)), rtol=1e-4, atol=1e-4,
    )  # fmt: skip
    twin.check(
        lambda k, x, w: k.conv(x, w, None, stride, padding, dilation, groups),
        make(shape), make(weight), rtol=1e-4, atol=1e-4,
    )  # fmt: skip


@pytest.mark.parametrize("width", [4, 5, 6, 9, 13, 17])
def test_conv_of_a_padded_and_spread_input(twin, make, width):
    def spread(k, x, w):
        # A transposed convolution as the functional layer makes it: zeros between the elements, then a convolution.
        n = x.shape[3]
        y = k.pad(k.reshape(x, (1, 2, 3, n, 1)), ((0, 0), (0, 0), (0, 0), (0, 0), (0, 1)), 0)
        y = k.slice(k.reshape(y, (1, 2, 3, 2 * n)), (0, 0, 0, 0), (1, 2, 3, 2 * n - 1), (1, 1, 1, 1))
        return k.conv(y, w, None, (1, 1), ((1, 1), (1, 2)), (1, 1), 1)

    twin.check(spread, make((1, 2, 3, width)), make((3, 2, 3, 3)), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("op", ["max", "sum"])
@pytest.mark.parametrize(
    "shape, kernel, stride, padding, dilation",
    [
        ((1, 2, 6, 6), (2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1)),
        ((2, 3, 7, 9), (3, 2), (1, 2), ((1, 1), (0, 1)), (1, 2)),
        ((1, 2, 11), (3,), (2,), ((1, 1),), (1,)),
        ((1, 1, 5, 5, 5), (2, 2, 2), (1, 1, 1), ((0, 0), (0, 0), (0, 0)), (1, 1, 1)),
    ],
    ids=str,
)
def test_pool(twin, make, op, shape, kernel, stride, padding, dilation):
    twin.check(lambda k, x: k.pool(op, x, kernel, stride, padding, dilation), make(shape))


def test_pool_of_a_large_window_by_a_workgroup(twin, make):
    twin.check(lambda k, x: k.pool("sum", x, (14, 14), (1, 1), ((0, 0), (0, 0)), (1, 1)), make((1, 8, 14, 14)))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_take_counts_negative_indices_from_the_end(twin, make, axis):
    picks = make((3, 2), dtypes.int64, -4, 4)
    twin.check(lambda k, x, i: k.take(x, i, axis), make((4, 5, 6)), picks)


@pytest.mark.parametrize("axis", [0, 1])
def test_gather(twin, make, axis):
    twin.check(lambda k, x, i: k.gather(x, i, axis), make((4, 5)), make((4, 5), dtypes.int64, -4, 4))


@pytest.mark.parametrize("op", ["none", "add", "mul", "max", "min"])
@pytest.mark.parametrize("axis", [0, 1])
def test_scatter_applies_updates_in_order(twin, make, op, axis):
    picks = make((4, 3), dtypes.int64, -4, 4)
    twin.check(lambda k, x, i, u: k.scatter(x, i, u, axis, op), make((6, 5)), picks, make((4, 3)))


@pytest.mark.parametrize("op", ["none", "add", "max"])
def test_scatter_by_line_and_by_element_give_the_same(twin, make, op):
    picks = make((5, 300), dtypes.int64, -7, 7)
    twin.check(lambda k, x, i, u: k.scatter(x, i, u, 0, op), make((7, 300), INT), picks, make((5, 300), INT))
    twin.check(lambda k, x, i, u: k.scatter(x, i, u, 0, op), make((7, 310), INT), picks, make((5, 300), INT))
    flags = make((5, 300), dtypes.bool)
    twin.check(lambda k, x, i, u: k.scatter(x, i, u, 0, "none"), make((7, 300), dtypes.bool), picks, flags)


@pytest.mark.parametrize("op", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("axis", [0, 1])
def test_cumulative(twin, make, op, axis):
    twin.check(lambda k, x: k.cumulative(op, x, axis), make((7, 13)))
    twin.check(lambda k, x: k.cumulative(op, x, axis), make((7, 13), INT, -3, 3))


def test_cumulative_along_a_long_axis(twin, make):
    twin.check(lambda k, x: k.cumulative("sum", x, 1), make((3, 3000), INT))
    twin.check(lambda k, x: k.cumulative("sum", x, 0), make((3000, 2), INT))


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


def test_nonzero(twin, make):
    twin.check(lambda k, x: k.nonzero(x), make((4, 5), INT, 0, 2))


def test_movement_composes(twin, make):
    def moves(k, x):
        y = k.permute(x, (2, 0, 1))
        y = k.reshape(y, (4, 15))
        y = k.slice(y, (3, 14), (4, 5), (-1, -3))
        y = k.pad(y, ((1, 2), (0, 3)), 7)
        return k.expand(k.reshape(y, (7, 1, 8)), (2, 7, 3, 8))

    twin.check(moves, make((3, 5, 4)))
    twin.check(moves, make((3, 5, 4), dtypes.int64))


def test_concat_of_views_and_results(twin, make):
    def joined(k, a, b):
        c = k.matmul(a, b)
        return k.concat([a, k.permute(b, (1, 0)), c, k.slice(c, (0, 0), (0, 6), (1, 1))], 0)

    twin.check(joined, make((5, 6)), make((6, 6)))


def test_concat_of_more_parts_than_a_stage_has_bindings(twin, make):
    parts = [make((2, 3)) for _ in range(12)]
    twin.check(lambda k, *xs: k.concat(list(xs), 1), *parts)


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.int64, dtypes.int8], ids=str)
def test_creation(twin, dtype):
    twin.check(lambda k: k.full((2, 3), 5, dtype))
    twin.check(lambda k: k.arange(-3, 2, 9, dtype))
    twin.check(lambda k: k.full((), 1, dtype))


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


def test_slices_of_a_reshaped_concatenation_keep_their_own_parts(twin, make):
    def graph(k, x, y):
        whole = k.reshape(k.concat([x, y], 0), (2, 2, 3))
        first, second = [k.slice(whole, (i, 0, 0), (1, 2, 3), (1, 1, 1)) for i in (0, 1)]
        return k.concat([first, second], 0), k.concat([second, first, second], 1)

    twin.check(graph, make((2, 3)), make((2, 3)))


@pytest.mark.parametrize("layer", ["lstm", "gru", "rnn"])
@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("batch", [1, 3])
def test_bidirectional_recurrence(twin, make, layer, steps, batch):
    from emberlet import functional as F

    gates = {"lstm": 4, "gru": 3, "rnn": 1}[layer]

    def graph(k, x, w, r):
        out = getattr(F, layer)(x, w, r, direction="bidirectional")
        return tuple(out) if isinstance(out, (tuple, list)) else (out,)

    twin.check(graph, make((steps, batch, 3)), make((2, gates * 2, 3)), make((2, gates * 2, 2)))


def test_scattered_zeros_multiply_nan_and_infinity(twin, make):
    values = [float("nan"), float("inf"), 2.0, -3.0]
    x = make.cpu.from_list(values, dtypes.float32, (4,))
    picks = make.cpu.from_list([0, 1, 2], dtypes.int64, (3,))
    twin.check(lambda k, x, i: k.scatter(x, i, k.full((3,), 0.0, dtypes.float32), 0, "mul"), x, picks)
