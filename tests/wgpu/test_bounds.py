"""64-bit integers: results that exceed 32 bits are computed on the host, all others on the GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emberlet import dtypes
from emberlet import functional as F
from emberlet.backend import Backend, get_backend
from emberlet.tensor import Tensor
from emberlet.wgpu_backend import WgpuBackend
from emberlet.wgpu_backend.compiled import compile
from emberlet.wgpu_backend.record import bounds
from hypothesis import given, settings
from hypothesis import strategies as st

WIDE = [dtypes.int64, dtypes.uint64]
NEAR = [0, 1, 2, 7, 100, 46341, (1 << 31) - 2, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 40) + 3]
UNARY = ["neg", "abs", "sign", "bitwise_not", "floor"]
BINARY = ["add", "sub", "mul", "div", "floor_divide", "remainder", "fmod", "maximum", "minimum", "bitwise_and",
          "bitwise_or", "bitwise_xor"]  # fmt: skip
WITH_CONSTANT = {"shift_left": (0, 40), "shift_right": (0, 40), "pow": (0, 5)}
SHAPE = (2, 3)


def _number(draw: Any, dtype: Any) -> int:
    value: int = draw(st.sampled_from(NEAR))
    return value if dtype is dtypes.uint64 or draw(st.booleans()) else -value


def _leaf(draw: Any, dtype: Any) -> tuple[Any, ...]:
    small = draw(st.booleans())
    values = [draw(st.integers(0, 9)) if small else _number(draw, dtype) for _ in range(6)]
    return ("data", dtype, values)


@st.composite
def programs(draw: Any) -> list[tuple[Any, ...]]:
    """Steps over the tensors before them, all of one dtype and shape."""
    dtype = draw(st.sampled_from(WIDE))
    steps = [_leaf(draw, dtype), _leaf(draw, dtype)]
    for _ in range(draw(st.integers(1, 7))):
        a, b = draw(st.integers(0, len(steps) - 1)), draw(st.integers(0, len(steps) - 1))
        kind = draw(st.sampled_from(["unary", "binary", "binary", "constant", "reduce", "cumulative", "matmul", "where",
                                     "join", "scatter", "cast", "full", "arange", "realize"]))  # fmt: skip
        if kind == "unary":
            steps.append((kind, draw(st.sampled_from(UNARY)), a))
        elif kind == "binary":
            steps.append((kind, draw(st.sampled_from(BINARY)), a, b))
        elif kind == "constant":
            op = draw(st.sampled_from(sorted(WITH_CONSTANT)))
            steps.append((kind, op, a, dtype, draw(st.integers(*WITH_CONSTANT[op]))))
        elif kind in ("reduce", "cumulative"):
            steps.append((kind, draw(st.sampled_from(["sum", "prod", "max", "min"])), a, draw(st.integers(0, 1))))
        elif kind == "scatter":
            steps.append((kind, draw(st.sampled_from(["none", "add", "mul", "max"])), a, b))
        elif kind == "cast":
            steps.append((kind, draw(st.sampled_from([*WIDE, dtypes.int32, dtypes.uint32, dtypes.int8])), a, dtype))
        elif kind == "full":
            steps.append((kind, _number(draw, dtype), dtype))
        elif kind == "arange":
            steps.append((kind, _number(draw, dtype), draw(st.integers(0, 1 << 20)), dtype))
        else:
            steps.append((kind, a, b))
    return steps


def _run(k: Backend, steps: list[tuple[Any, ...]]) -> list[Tensor]:
    out: list[Tensor] = []
    for kind, *step in steps:
        if kind == "data":
            out.append(k.from_list(step[1], step[0], SHAPE))
        elif kind == "unary":
            out.append(k.unary(step[0], out[step[1]]))
        elif kind == "binary":
            out.append(k.binary(step[0], out[step[1]], out[step[2]]))
        elif kind == "constant":
            out.append(k.binary(step[0], out[step[1]], k.full((), step[3], step[2])))
        elif kind == "reduce":
            out.append(k.expand(k.reduce(step[0], out[step[1]], (step[2],), True), SHAPE))
        elif kind == "cumulative":
            out.append(k.cumulative(step[0], out[step[1]], step[2]))
        elif kind == "matmul":
            square = k.matmul(out[step[0]], k.permute(out[step[1]], (1, 0)))
            out.append(k.slice(k.concat([square, square], 1), (0, 0), SHAPE, (1, 1)))
        elif kind == "where":
            out.append(k.where(k.binary("lt", out[step[0]], out[step[1]]), out[step[1]], out[step[0]]))
        elif kind == "join":
            joined = k.pad(k.concat([out[step[0]], out[step[1]]], 0), ((1, 0), (0, 0)), 5)
            picks = k.from_list([0, 3], dtypes.int64, (2,))
            out.append(k.take(joined, picks, 0))
        elif kind == "scatter":
            picks = k.from_list([0, 1, 0, 0, 0, 0], dtypes.int64, SHAPE)
            out.append(k.scatter(out[step[1]], picks, out[step[2]], 0, step[0]))
        elif kind == "cast":
            out.append(k.cast(k.cast(out[step[1]], step[0]), step[2]))
        elif kind == "full":
            out.append(k.full(SHAPE, step[0], step[1]))
        elif kind == "arange":
            out.append(k.reshape(k.arange(step[0], step[1], 6, step[2]), SHAPE))
        else:
            k.realize(out[step[0]])
            out.append(out[step[0]])
    return out


@settings(max_examples=150, derandomize=True)
@given(steps=programs())
def test_expressions_around_32_bits_are_those_of_numpy(gpu: Backend, steps: list[tuple[Any, ...]]) -> None:
    with np.errstate(all="ignore"):
        want = [x.tolist() for x in _run(get_backend("numpy"), steps)]
    got = _run(gpu, steps)
    assert [x.tolist() for x in got] == want
    for x in got:
        found = x.data.op != "host" and bounds.interval(x.data)
        assert not found or (found[0] <= min(gpu.to_list(x)) and max(gpu.to_list(x)) <= found[1])


def _wide(k: Backend, *values: int) -> Tensor:
    return k.from_list(list(values), dtypes.int64, (len(values),))


@pytest.fixture
def strict(gpu: Any) -> Any:
    return WgpuBackend(device=gpu.device, strict=True)


def test_results_within_32_bits_stay_on_the_gpu(strict):
    x = _wide(strict, 1 << 30, -5)
    y = strict.binary("sub", strict.binary("add", x, _wide(strict, 1)), x)
    assert strict.to_list(strict.reduce("sum", y, (0,), False)) == [2]
    assert not strict.fallbacks


def test_values_are_looked_at_before_the_host_computes(strict):
    x = strict.from_list([3, 4], dtypes.int32, (2,))
    strict.realize(x)  # at this point the bounds are those of int32
    y = strict.cast(x, dtypes.int64)
    assert strict.to_list(strict.binary("mul", y, y)) == [9, 16]
    assert y.data.bounds == (3, 4)
    many = strict.from_bytes(np.full(70_000, 7, np.int32).tobytes(), dtypes.int32, (70_000,))
    strict.realize(many)  # too many to read, so the GPU finds the extremes
    assert strict.to_list(strict.reduce("sum", strict.cast(many, dtypes.int64), (0,), False)) == [490_000]


def test_intervals_of_narrow_integers_are_followed_back(gpu):
    picks = F.randint(10, 20, shape=(50,), backend=gpu)
    low, high = bounds.interval(picks.data)
    assert 0 <= low and high < 40
    assert picks.data.op == "binary"


def test_results_that_fit_again_come_back(gpu):
    x = _wide(gpu, 1 << 20, 3)
    y = gpu.binary("floor_divide", gpu.binary("mul", x, x), x)
    assert y.data.op == "data"
    assert gpu.to_list(y) == [1 << 20, 3]


def test_a_long_sum_is_looked_at_in_pieces(gpu):
    values = np.full(300_000, 20_000, np.int32)
    x = gpu.cast(gpu.from_bytes(values.tobytes(), dtypes.int32, values.shape), dtypes.int64)
    assert gpu.to_list(gpu.reduce("sum", x, (0,), False)) == [300_000 * 20_000]
    assert gpu.to_list(gpu.reduce("max", x, (0,), False)) == [20_000]


def test_sums_of_integers_are_64_bits_wide(gpu):
    x = F.asarray(np.array([[1 << 30] * 4, [-1] * 4], np.int32), device=gpu)
    assert F.sum(x, axis=1).tolist() == [1 << 32, -4]
    assert F.cumulative_sum(x[0]).tolist() == [1 << 30, 1 << 31, 3 << 30, 1 << 32]


def test_a_plan_assumes_that_sums_of_its_inputs_fit(gpu):
    x = gpu.from_list([5, 6], dtypes.int32, (2,))
    fast = compile(lambda x: F.astype(x, dtypes.int64) * 3 + 1, x, backend=gpu)
    assert fast.cut is None
    assert fast(x).tolist() == [16, 19]
    assert compile(lambda x: F.astype(x, dtypes.int64) + F.sum(_wide(gpu, 1 << 30, 1 - (1 << 30))), x, backend=gpu)(
        x
    ).tolist() == [6, 7]


def test_constants_of_a_saved_plan_are_computed_without_a_gpu():
    k = WgpuBackend(planning=True)
    x = k.binary("mul", k.binary("add", _wide(k, 1 << 16), k.full((), 0, dtypes.int64)), _wide(k, 1 << 16))
    assert x.data.op == "host"
    assert k.to_list(x) == [1 << 32]
    assert k.fallbacks == {"binary": 1}
