"""The plain Python backend against NumPy with memory views that cannot be cast and sorts that are not stable, as under
MicroPython; and functions that MicroPython's `math` may lack, against CPython's own."""

from __future__ import annotations

import math
import random
from array import array as typed
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import dtypes
from emberlet import functional as F
from emberlet.backend import get_backend
from emberlet.errors import FormatError
from emberlet.python_backend import (
    activations,
    binary,
    buffers,
    casts,
    dense_loops,
    identities,
    reductions,
    scalars,
    scattering,
    sorting,
    views,
)
from emberlet.tensor import Tensor
from support.rows import every


@pytest.fixture(params=["python", "loops"])
def home(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    backend = get_backend(request.param)
    backend.from_bytes(bytes(4), dtypes.float32, (1,))
    for module in (activations, binary, buffers, casts, reductions, scattering, sorting, views):
        monkeypatch.setattr(module, "MICRO", True)
    return backend


DTYPES = ["float32", "float64", "int8", "uint8", "int16", "int32", "int64", "float16", "bool"]


def drawn(dtype: str, *shape: int) -> Any:
    return (
        np.random.default_rng(len(dtype) + sum(shape)).integers(0 if dtype[0] in "ub" else -3, 4, shape).astype(dtype)
    )


def same(found: emberlet.Tensor, expected: Any) -> None:
    """Read as a list, since NumPy cannot share the memory of borrowed elements."""
    assert (found.shape, found.dtype.name) == (expected.shape, expected.dtype.name)
    np.testing.assert_allclose(np.array(found.tolist(), "float64"), np.array(expected, "float64"), 1e-5, 1e-6)


OPERATIONS = {
    "row": (lambda xp, x: x[1], ()),
    "elements": (lambda xp, x: x[2, 1], ()),
    "turned": (lambda xp, x: x.T, ()),
    "reversed": (lambda xp, x: x[::-1, ::-2], ()),
    "columns": (lambda xp, x: x[:, 1:4:2], ()),
    "spread": (lambda xp, x: xp.broadcast_to(x[:, None], (5, 3, 4)), ()),
    "joined": (lambda xp, x: xp.concat([x[::-1], x]), ()),
    "sum": (lambda xp, x: xp.sum(x, axis=0), ("bool",)),
    "largest": (lambda xp, x: xp.max(x, axis=1), ()),
    "sum of some": (lambda xp, x: xp.sum(x[:, ::2]), ("bool",)),
    "sorted": (lambda xp, x: xp.sort(x, axis=0), ()),
    "sorting": (lambda xp, x: xp.argsort(x, axis=1, stable=True), ()),
    "chosen": (lambda xp, x: xp.take(x, np.array([2, 0, -1, 2]), axis=0), ()),
    "chosen columns": (lambda xp, x: xp.take(x, np.array([3, 0, 0]), axis=1), ()),
    "along": (lambda xp, x: xp.take_along_axis(x, np.array([[0], [3], [1], [2], [1]]), axis=1), ()),
    "where": (lambda xp, x: xp.where(x[:, :1] != x[0], x, x[0]), ()),
    "rows less columns": (lambda xp, x: x[:, :1] - x[1], ("bool", "uint8")),
    "column times row": (lambda xp, x: x[:, :1] * x[:1], ("bool",)),
    "scaled": (lambda xp, x: 2 * x, ("bool",)),
    "compared": (lambda xp, x: x.T[:, None] > x[:, :1].T[..., None], ()),
    "product": (lambda xp, x: x.T @ x, ("bool", "float16")),
    "nonzero": (lambda xp, x: xp.nonzero(x)[1], ()),
    "widened": (lambda xp, x: xp.astype(x, xp.float64), ()),
    "narrowed": (lambda xp, x: xp.astype(x, xp.int8), ()),
    "truth": (lambda xp, x: xp.astype(x[::-1], xp.bool), ()),
}  # fmt: skip


@every("dtype", DTYPES)
@every("name", OPERATIONS)
def test_an_operation_on_bytes_that_stay_where_they_are(home: Any, name: str, dtype: str) -> None:
    call, without = OPERATIONS[name]
    if dtype in without:
        return
    values = drawn(dtype, 5, 4)
    x = home.from_bytes(values.tobytes(), emberlet.dtypes.dtype(dtype), values.shape)
    assert isinstance(x.data[0], buffers.Borrowed) == (dtype not in ("uint8", "bool", "float16"))
    found = call(F, x) if name not in ("narrowed", "widened", "truth") else call(emberlet, x)
    same(found, call(np, values))
    same(x, values)


def test_sorting_keeps_the_order_of_equals_and_puts_nan_last(home: Any) -> None:
    values = np.float32([2, np.nan, 1, 2, -1, 1, np.nan, 2])
    x = F.asarray(values, backend=home)
    assert F.argsort(x).tolist() == [4, 2, 5, 0, 3, 7, 1, 6]
    assert F.argsort(x, descending=True).tolist() == [1, 6, 0, 3, 7, 2, 5, 4]


@pytest.mark.parametrize("key", [np.s_[1], np.s_[:, 1], np.s_[::-1, ::2], np.s_[1:4:2, ::-3], np.s_[4, 3], np.s_[5:]])
def test_assigning_to_a_region(home: Any, key: Any) -> None:
    values, new = drawn("int32", 5, 4), 100 + np.arange(20, dtype=np.int32).reshape(5, 4)
    x = F.asarray(values, backend=home)
    x[key] = F.asarray(new, backend=home)[key]
    values[key] = new[key]
    same(x, values)


def test_borrowed_elements_are_read_in_pieces() -> None:
    numbers = list(range(-70, 90))
    borrowed = buffers.Borrowed(typed("h", numbers).tobytes(), "h")
    assert (len(borrowed), list(borrowed), borrowed[3], borrowed[159]) == (160, numbers, -67, 89)
    assert buffers.run(borrowed, 60, 10) == typed("h", numbers[60:70])
    assert list(buffers.Borrowed(b"", "f")) == []


def test_bytes_of_another_length_are_refused(home: Any) -> None:
    for count in (7, 9, 0):
        with pytest.raises(FormatError, match="8"):
            home.from_bytes(bytes(count), dtypes.float32, (2,))


@pytest.mark.parametrize("streamed", [False, True])
def test_a_dense_layer_reads_weights_row_by_row_where_they_stay_in_flash(streamed: bool) -> None:
    home = get_backend("loops")
    x, w, b = (np.random.default_rng(3).normal(size=s).astype(np.float32) for s in ((2, 3, 5), (5, 4), (4,)))
    weight = F.asarray(w, backend=home)
    if streamed:
        data = (buffers.Borrowed(bytes(8) + w.tobytes(), "f"), 2, None)
        weight = Tensor(data, weight.dtype, weight.shape, home)
    assert dense_loops.right_of(weight)[2] == streamed
    for bias in (None, b):
        given = None if bias is None else F.asarray(bias, backend=home)
        found = F.linear(F.asarray(x, backend=home), weight, given)
        np.testing.assert_allclose(np.asarray(found), x @ w + (0 if bias is None else bias), rtol=1e-5, atol=1e-6)
    same(F.asarray(x[0], backend=home) @ weight, x[0] @ w)


POINTS = [0.0, -0.0, 1e-20, 1e-9, 0.3, 0.999, 1.0, 2.5, 2.9999, 3.0, 3.7, 5.999, 6.0, 6.1, 30.0, 700.0, math.inf]


def _close(found: float, expected: float) -> bool:
    if math.copysign(1, found) != math.copysign(1, expected):
        return False
    return found == expected or math.isclose(found, expected, rel_tol=1e-14)


def test_functions_that_math_may_lack() -> None:
    for point in POINTS:
        for x in (point, -point):
            assert _close(scalars._erf(x), math.erf(x)), x
            if x < 700:
                assert _close(scalars._expm1(x), math.expm1(x)), x
    assert math.isnan(scalars._erf(math.nan))


def test_log1p_where_math_has_none() -> None:
    scope: dict[str, Any] = {}
    source = open(scalars.__file__, encoding="utf-8").read().split("if hasattr", 1)[0]
    exec(source, scope)
    for x in (*POINTS, -0.5, -0.999999, -1e-12):
        assert _close(scope["log1p"](x), math.log1p(x)), x


def _outcome(function: Any, *args: float) -> float:
    """NumPy's result, without warnings."""
    with np.errstate(all="ignore"):
        return float(function(*np.array(args)))


SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 2.5, 1e200, -1e200, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize(
    ("ours", "numpys"),
    [(scalars.divide, np.divide), (scalars.power, np.power), (scalars.fmod, np.fmod), (scalars.maximum, np.maximum),
     (scalars.minimum, np.minimum)],
)  # fmt: skip
def test_functions_of_two_floats_never_raise(ours: Any, numpys: Any) -> None:
    for a in SPECIAL:
        for b in SPECIAL:
            if ours is scalars.power and b == 0.5:
                continue  # NumPy takes the square root, which differs for -0.0 and -inf
            found, expected = ours(a, b), _outcome(numpys, a, b)
            assert math.isclose(found, expected, rel_tol=1e-14) or (found != found and expected != expected), (a, b)
            if found == 0 and ours in (scalars.divide, scalars.power, scalars.fmod):
                assert math.copysign(1, found) == math.copysign(1, expected), (a, b)


def test_functions_of_two_integers() -> None:
    draw = random.Random(4)
    pairs = [(draw.randint(-99, 99), draw.randint(-12, 12)) for _ in range(200)]
    pairs += [(a, b) for a in (-2, -1, 0, 1, 2) for b in (-65, -64, -2, -1, 0, 1, 2, 63, 64, 65)]
    for a, b in pairs:
        quotient = 0 if not b else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        assert scalars.int_divide(a, b) == quotient
        assert scalars.int_fmod(a, b) == (a - quotient * b if b else 0)
        assert scalars.int_floor_divide(a, b) == (a // b if b else 0)
        assert scalars.int_remainder(a, b) == (a % b if b else 0)
        expected = a**b if b >= 0 else {1: 1, -1: 1 if b % 2 == 0 else -1}.get(a, 0)
        assert (scalars.int_power(a, b) - expected) % (1 << 64) == 0
        assert scalars.shift_left(a, b) == (a << b if 0 <= b < 64 else 0)
        assert scalars.shift_right(a, b) == (a >> b if 0 <= b < 64 else -1 if a < 0 else 0)


def test_identities_of_reductions() -> None:
    expected = {"sum": 0, "any": 0, "prod": 1, "all": 1}
    for dtype in (dtypes.float32, dtypes.int8, dtypes.bool):
        assert {op: identities.identity(op, dtype) for op in expected} == expected
    assert [identities.identity(op, dtypes.float16) for op in ("max", "min")] == [-math.inf, math.inf]
    assert [identities.identity(op, dtypes.int8) for op in ("max", "min")] == [-128, 127]
    assert [identities.identity(op, dtypes.bool) for op in ("max", "min")] == [False, True]
