"""NumPy's functions beyond the array API standard against NumPy, on random shapes and dtypes, on every backend."""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.errors import ArgumentError, DTypeError, IndexingError, ShapeError
from support.every_backend import WGPU
from support.rows import every

R = np.random.RandomState(11)
A, B, V, W = R.randn(4, 5), R.randn(4, 5), R.randn(7), R.randn(3)
N, M = R.randint(-40, 40, (4, 5)), R.randint(-9, 9, (4, 5))
RISING = np.sort(R.randn(6))
HOLES = np.where(R.rand(4, 5) < 0.3, np.nan, A)

# A function of (np or emberlet, the arrays' converter).
CALLS: dict[str, Any] = {
    "cbrt": lambda p, t: p.cbrt(t(A)),
    "cbrt of zeros": lambda p, t: p.cbrt(t(np.array([0.0, -8.0, np.inf, np.nan]))),
    "sinc": lambda p, t: p.sinc(t(A * 0)) + p.sinc(t(A)),
    "fmax": lambda p, t: p.fmax(t(HOLES), t(B)),
    "fmin": lambda p, t: p.fmin(t(B), t(HOLES)),
    "fmax of integers": lambda p, t: p.fmax(t(N), t(M)),
    "heaviside": lambda p, t: p.heaviside(t(np.round(A)), t(B)),
    "heaviside of NaN": lambda p, t: p.heaviside(t(HOLES), 0.5),
    "divmod": lambda p, t: p.divmod(t(N), t(np.where(M == 0, 3, M))),
    "divmod of floats": lambda p, t: p.divmod(t(A), 0.3),
    "gcd": lambda p, t: p.gcd(t(N), t(M)),
    "lcm": lambda p, t: p.lcm(t(N), t(M)),
    "round": lambda p, t: p.round(t(A), 2),
    "round of integers": lambda p, t: p.round(t(N), 3),
    "round to tens": lambda p, t: p.round(t(A * 100), -1),
    "round integers to tens": lambda p, t: p.round(t(np.array([155, 145, -155, -5, -15, 123456785])), -1),
    "round integers to what they are below": lambda p, t: p.round(t(N), -30),
    "average": lambda p, t: p.average(t(A), 1, t(np.abs(B))),
    "average with weights of an axis": lambda p, t: p.average(t(A), axis=0, weights=t(np.arange(1.0, 5.0))),
    "ptp": lambda p, t: p.ptp(t(A), 1, keepdims=True),
    "gradient": lambda p, t: p.gradient(t(A)),
    "gradient over an axis": lambda p, t: p.gradient(t(A), 0.5, axis=0),
    "gradient of two": lambda p, t: p.gradient(t(A[:2, 0])),
    "trapezoid": lambda p, t: p.trapezoid(t(A), axis=0, dx=0.3),
    "trapezoid over positions": lambda p, t: p.trapezoid(t(V[:6]), t(RISING)),
    "digitize": lambda p, t: p.digitize(t(A), t(RISING)),
    "digitize at the edges": lambda p, t: p.digitize(t(RISING), t(RISING), right=True),
    "interp": lambda p, t: p.interp(t(A), t(RISING), t(V[:6])),
    "interp with bounds": lambda p, t: p.interp(t(A), t(RISING), t(V[:6]), left=-5.0, right=5.0),
    "interp of one point": lambda p, t: p.interp(t(A), t(RISING[:1]), t(V[:1])),
    "interp of NaN": lambda p, t: p.interp(t(HOLES), t(RISING), t(V[:6])),
    "polyval": lambda p, t: p.polyval(t(W), t(A)),
    "convolve": lambda p, t: p.convolve(t(V), t(W)),
    "convolve, same": lambda p, t: p.convolve(t(W), t(V), "same"),
    "convolve, even": lambda p, t: p.convolve(t(V), t(V[:4]), "same"),
    "convolve, valid": lambda p, t: p.convolve(t(V), t(W), "valid"),
    "convolve of integers": lambda p, t: p.convolve(t(N[0]), t(M[0])),
    "convolve of bools": lambda p, t: p.convolve(t(N[0] > 0), t(M[0] > 0)),
    "convolve of integers, same": lambda p, t: p.convolve(t(N[0]), t(M[0][:2]), "same"),
    "kron": lambda p, t: p.kron(t(A), t(W)),
    "kron of matrices": lambda p, t: p.kron(t(A[:2, :2]), t(B[:2, :3])),
    "dot": lambda p, t: p.dot(t(A), t(B.T)),
    "dot of a vector": lambda p, t: p.dot(t(A), t(B[0])),
    "dot of square matrices": lambda p, t: p.dot(t(A[:, :4]), t(B[:, :4])),
    "dot with a number": lambda p, t: p.dot(t(A), 2.0),
    "append": lambda p, t: p.append(t(A), t(B), 1),
    "append of all": lambda p, t: p.append(t(A), t(V)),
    "insert": lambda p, t: p.insert(t(A), 2, t(B[0]), axis=0),
    "insert a number": lambda p, t: p.insert(t(V), -1, 3.5),
    "delete": lambda p, t: p.delete(t(A), 1, 1),
    "delete several": lambda p, t: p.delete(t(V), [0, -1, 2]),
    "array_split": lambda p, t: p.array_split(t(A), 3, 1),
    "array_split at positions": lambda p, t: p.array_split(t(V), [2, 5]),
    "block": lambda p, t: p.block([[t(A), t(B)], [t(B), t(A)]]),
    "block of vectors": lambda p, t: p.block([t(V), t(W)]),
    "rot90": lambda p, t: [p.rot90(t(A), k) for k in (-1, 0, 1, 2, 3)],
    "rot90 of other axes": lambda p, t: p.rot90(t(A.reshape(2, 2, 5)), 1, (2, 0)),
    "atleast": lambda p, t: [f(t(x)) for f in (p.atleast_1d, p.atleast_2d, p.atleast_3d) for x in (A[0, 0], V, A)],
    "logspace": lambda p, t: p.logspace(-1, 2, 7),
    "logspace of a base": lambda p, t: p.logspace(0, 3, 4, base=2.0, endpoint=False),
    "geomspace": lambda p, t: p.geomspace(-2.0, -32.0, 5),
    "tri": lambda p, t: [p.tri(3), p.tri(2, 4, 1), p.tri(4, 2, -1)],
    "vander": lambda p, t: [p.vander(t(W)), p.vander(t(W), 2), p.vander(t(W), 4, increasing=True)],
    "vander of integers": lambda p, t: p.vander(t(N[0]), 3),
    "indices": lambda p, t: p.indices((2, 3)),
    "triangles": lambda p, t: [*p.tril_indices(3), *p.triu_indices(4, 1, 3), *p.tril_indices(2, -1, 4)],
    "unravel_index": lambda p, t: p.unravel_index(t(np.array([[0, 7], [23, 11]])), (2, 3, 4)),
    "ravel_multi_index": lambda p, t: p.ravel_multi_index((t(np.array([0, 1])), t(np.array([2, 1]))), (2, 3)),
    "unravel_index of narrow integers": lambda p, t: p.unravel_index(t(np.array([200], np.uint8)), (100, 100)),
    "ravel_multi_index of narrow integers": lambda p, t: p.ravel_multi_index(
        (t(np.array([100], np.int8)), t(np.array([5], np.int8))), (1000, 1000)
    ),
    "flatnonzero": lambda p, t: p.flatnonzero(t(M)),
    "union1d": lambda p, t: p.union1d(t(N), t(M)),
    "intersect1d": lambda p, t: p.intersect1d(t(N), t(M)),
    "setdiff1d": lambda p, t: p.setdiff1d(t(N), t(M)),
    "pad an int": lambda p, t: p.pad(t(A), 2, mode="edge"),
    "tril": lambda p, t: p.tril(t(A), -1),
}


def parts(value: Any) -> list[Any]:
    return [p for v in value for p in parts(v)] if isinstance(value, (list, tuple)) else [np.asarray(value)]


@pytest.mark.parametrize("backend", ["numpy", "python", "loops", WGPU])
@every("name", CALLS)
def test_a_function_is_numpys(name: str, backend: str) -> None:
    with np.errstate(all="ignore"):
        wanted = parts(CALLS[name](np, np.asarray))
    emberlet.set_default_backend(backend)
    try:
        found = parts(CALLS[name](emberlet, emberlet.asarray))
    finally:
        emberlet.set_default_backend(None)
    assert [x.shape for x in found] == [x.shape for x in wanted]
    for ours, theirs in zip(found, wanted, strict=True):
        assert (ours.dtype.kind == "f") == (theirs.dtype.kind == "f")
        exact = backend != "wgpu" and ours.dtype == np.float64
        np.testing.assert_allclose(ours, theirs, rtol=1e-12 if exact else 2e-5, atol=1e-12 if exact else 1e-5)


@pytest.mark.parametrize("backend", ["numpy", "python"])
def test_large_integers_keep_their_digits(backend: str) -> None:
    large = np.array([2**60 + 5, 3])
    x = emberlet.asarray(large, backend=backend)
    assert F.convolve(x, emberlet.asarray([1, 2], backend=backend)).tolist() == np.convolve(large, [1, 2]).tolist()
    assert F.round(x, -1).tolist() == [(2**60 + 5) // 10 * 10, 0]


@pytest.mark.parametrize("backend", ["numpy", "python"])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_more_decimals_than_the_dtype_holds_change_nothing(dtype: str, backend: str) -> None:
    x = emberlet.asarray([1.5, -0.25, 30000.0], dtype=dtype, backend=backend)
    for decimals in (36, 40, 300):
        np.testing.assert_allclose(np.asarray(F.round(x, decimals)), np.asarray(x), rtol=1e-6)
    assert F.round(x, -40).tolist() == [0, 0, 0]


def test_a_geometric_sequence_may_span_all_floats() -> None:
    found = F.geomspace(1e-200, 1e200, 5, dtype="float64")
    np.testing.assert_allclose(np.asarray(found), np.geomspace(1e-200, 1e200, 5), rtol=1e-12)


def test_what_has_no_meaning_is_refused() -> None:
    x = emberlet.zeros((2, 3))
    with pytest.raises(DTypeError, match="integers"):
        F.gcd(x, 2)
    with pytest.raises(ShapeError, match="matmul multiplies batches"):
        F.dot(emberlet.zeros((2, 2, 2)), emberlet.zeros((2, 2)))
    with pytest.raises(ShapeError, match="2 elements"):
        F.gradient(x[:1])
    with pytest.raises(ArgumentError, match="'full', 'same' or 'valid'"):
        F.convolve(x[0], x[1], "reflect")
    with pytest.raises(ShapeError, match="outside"):
        F.insert(x, 4, 1.0, 1)
    with pytest.raises(ShapeError, match="outside"):
        F.delete(x, 3, 1)
    with pytest.raises(ArgumentError, match="one sign"):
        F.geomspace(-1.0, 2.0)
    with pytest.raises(ArgumentError, match="finite"):
        F.geomspace(1.0, float("inf"))
    with pytest.raises(IndexingError, match="outside"):
        F.unravel_index([24], (2, 3, 4))
    with pytest.raises(IndexingError, match="outside axis 1"):
        F.ravel_multi_index([emberlet.asarray([0]), emberlet.asarray([3])], (2, 3))
    with pytest.raises(ShapeError, match="points"):
        F.interp(x, [0.0, 1.0], [1.0])
    with pytest.raises(ShapeError, match="fit axis"):
        F.average(x, 0, x[0])
