"""Elementwise primitives on the GPU against NumPy, with difficult values: NaN, infinities, zeros, overflow."""

from __future__ import annotations

import numpy as np
import pytest
from emberlet import dtypes
from emberlet.backend.protocol import BINARY, UNARY
from support.rows import every

SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    1e-7,
    -3e-5,
    88.0,
    -80.0,
    float("inf"),
    -float("inf"),
    float("nan"),
]
FLOAT_UNARY = [op for op in UNARY if op != "bitwise_not"]
FLOAT_BINARY = [op for op in BINARY if not op.startswith(("bitwise", "shift", "logical"))]
INT_BINARY = [op for op in BINARY if not op.startswith("logical") and op != "atan2"]
INTEGERS = [dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16, dtypes.int32, dtypes.uint32, dtypes.int64]


@pytest.mark.parametrize("op", FLOAT_UNARY)
def test_float_unary_agrees_also_on_special_values(twin, make, op):
    x = make.of(SPECIAL, dtypes.float32)
    twin.check(lambda k, x: k.unary(op, x), x, rtol=4e-6, atol=1e-30)
    spread = make.of(np.linspace(-12, 12, 600).astype(np.float32), dtypes.float32)
    twin.check(lambda k, x: k.unary(op, x), spread, rtol=4e-6, atol=2e-7)


@pytest.mark.parametrize("op", ["sin", "cos"])
def test_sines_of_many_turns_are_as_exact_as_of_one(twin, make, op):
    x = np.concatenate((np.linspace(-3000, 3000, 5000), np.linspace(-100000, 100000, 5000))).astype(np.float32)
    twin.check(lambda k, x: k.unary(op, x), make.of(x, dtypes.float32), rtol=0, atol=2e-6)


@pytest.mark.parametrize("op", FLOAT_BINARY)
def test_float_binary_agrees_on_every_pair_of_special_values(twin, make, op):
    values = [v for v in SPECIAL if abs(v) < 80 or v != v or v in (float("inf"), -float("inf"))]
    a = make.of(np.array(values).reshape(-1, 1), dtypes.float32)
    b = make.of(np.array([*values, 3.0, -7.0, 0.3]).reshape(1, -1), dtypes.float32)
    twin.check(lambda k, a, b: k.binary(op, a, b), a, b, rtol=1e-5, atol=1e-30)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@every("op", INT_BINARY)
def test_integer_binary_wraps_and_divides_by_zero_like_the_protocol(twin, make, op, dtype):
    if op in ("shift_left", "shift_right"):
        a, b = make((6, 7), dtype, 0, 100), make((6, 7), dtype, 0, min(dtype.bits, 20))
    elif op == "pow":
        a, b = make((6, 7), dtype, -5, 5), make((6, 7), dtype, 0, 4)
    else:
        a, b = make((6, 7), dtype, -100, 100), make((6, 7), dtype, -4, 5)
    twin.check(lambda k, a, b: k.binary(op, a, b), a, b)


@pytest.mark.parametrize("target", [dtypes.float8_e4m3fn, dtypes.float6_e2m3fn, dtypes.float4_e2m1fn], ids=str)
def test_floats_below_16_bits_are_computed_on_the_host(twin, gpu, make, target):
    before = gpu.fallbacks.get("binary", 0)
    twin.check(lambda k, x: k.binary("add", k.cast(x, target), k.cast(x, target)), make((40,)), rtol=0, atol=0)
    assert gpu.fallbacks["binary"] == before + 1


def test_float64_is_computed_in_float32_and_says_so_once(gpu):
    from emberlet.wgpu_backend import WgpuBackend

    backend = WgpuBackend(device=gpu.device)
    with pytest.warns(UserWarning, match=r"float64.*float32") as told:
        x = backend.from_list([1.0, 0.1], dtypes.float64, (2,))
        y = backend.binary("add", x, x)
    assert len(told) == 1
    np.testing.assert_allclose(backend.to_list(y), [2.0, 0.2], rtol=1e-7)


def test_a_strict_backend_refuses_what_would_run_on_the_host(gpu):
    from emberlet.errors import UnsupportedError
    from emberlet.wgpu_backend import WgpuBackend

    strict = WgpuBackend(device=gpu.device, strict=True)
    x = strict.from_list([1 << 40], dtypes.int64, (1,))
    with pytest.raises(UnsupportedError, match=r"\(add, int64 \(1,\), int64 \(1,\)\)"):
        strict.binary("add", x, x)


@pytest.mark.parametrize("op", ["sub", "div", "eq", "ne", "le", "ge", "lt", "gt", "mul", "fmod", "floor_divide", "pow"])
def test_an_element_with_itself(twin, make, op):
    x = make.of([0.0, -0.0, 1.5, float("inf"), -float("inf"), float("nan"), -3.0], dtypes.float32)
    twin.check(lambda k, x: k.binary(op, x, x), x)
