"""Quantiles, counts, correlation, diagonals, stacking and reductions without NaN equal NumPy's on every backend."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.errors import ArgumentError, DTypeError, EmberletError, ShapeError
from support.every_backend import ALL
from support.rows import every

DRAW = np.random.default_rng(3)
NAN = float("nan")
A = DRAW.normal(size=(3, 4, 5)).astype(np.float32)
EVEN = DRAW.normal(size=(3, 6)).astype(np.float32)
HOLES = np.where(DRAW.random((4, 7)) < 0.3, np.float32(NAN), DRAW.normal(size=(4, 7)).astype(np.float32))
HOLES[2] = NAN
INTS = DRAW.integers(0, 9, (4, 6))
LINE = (DRAW.integers(-40, 40, 57) / 8).astype(np.float32)  # many elements lie on edges of intervals
WEIGHTS = DRAW.random(57).astype(np.float32)
COUNTED = DRAW.integers(0, 12, 57)
BATCH = DRAW.normal(size=(2, 3, 3)).astype(np.float32)
WIDE = DRAW.normal(size=(3, 5)).astype(np.float32)

# A call of the library, and NumPy's of the same meaning.
CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = {
    "median": (F.median, np.median, (A,)),
    "median of an axis": (lambda x: F.median(x, 1, keepdims=True), lambda a: np.median(a, 1, keepdims=True), (A,)),
    "median of two axes": (lambda x: F.median(x, (0, 2)), lambda a: np.median(a, (0, 2)), (A,)),
    "median of an even number": (lambda x: F.median(x, 1), lambda a: np.median(a, 1), (EVEN,)),
    "median of integers": (lambda x: F.median(x, -1), lambda a: np.median(a, -1), (INTS,)),
    "median with NaN": (lambda x: F.median(x, 1), lambda a: np.median(a, 1), (HOLES,)),
    "median of infinities": (F.median, np.median, (np.array([np.inf, np.inf, 1, np.inf], np.float32),)),
    "quantiles": (lambda x: F.quantile(x, [0.1, 0.5, 0.77, 1]), lambda a: np.quantile(a, [0.1, 0.5, 0.77, 1]), (A,)),
    "quantiles of an axis": (
        lambda x: F.quantile(x, (0.25, 0.6), 1, keepdims=True),
        lambda a: np.quantile(a, (0.25, 0.6), 1, keepdims=True), (A,)),
    **{
        f"quantile, {method}": (
            lambda x, m=method: F.quantile(x, [0, 0.3, 0.5, 0.9], axis=1, method=m),
            lambda a, m=method: np.quantile(a, [0, 0.3, 0.5, 0.9], axis=1, method=m), (EVEN,))
        for method in ("linear", "lower", "higher", "nearest", "midpoint")
    },
    "percentile": (lambda x: F.percentile(x, 35.0, 0), lambda a: np.percentile(a, 35.0, 0), (A,)),
    "percentiles": (lambda x: F.percentile(x, [5, 95]), lambda a: np.percentile(a, [5, 95]), (A,)),
    "nanmedian": (lambda x: F.nanmedian(x, 1), lambda a: np.nanmedian(a, 1), (HOLES,)),
    "nanquantile": (lambda x: F.nanquantile(x, [0.2, 0.9], 1), lambda a: np.nanquantile(a, [0.2, 0.9], 1), (HOLES,)),
    "nanquantile of all": (lambda x: F.nanquantile(x, 0.3), lambda a: np.nanquantile(a, 0.3), (HOLES,)),
    **{
        f"{name}, {axis}, {keepdims}": (
            lambda x, n=name, a=axis, k=keepdims: getattr(F, n)(x, a, keepdims=k),
            lambda x, n=name, a=axis, k=keepdims: getattr(np, n)(x, a, keepdims=k), (HOLES,))
        for name in ("nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd")
        for axis, keepdims in ((None, False), (1, True), ((0, 1), False))
    },
    "nanvar of a sample": (lambda x: F.nanvar(x, 1, correction=1), lambda a: np.nanvar(a, 1, ddof=1), (HOLES,)),
    "nansum of integers": (lambda x: F.nansum(x, 0), lambda a: np.nansum(a, 0), (INTS,)),
    "nan_to_num": (F.nan_to_num, np.nan_to_num, (np.array([NAN, np.inf, -np.inf, 2.5], np.float32),)),
    "nan_to_num, told": (
        lambda x: F.nan_to_num(x, 1.0, posinf=7.0), lambda a: np.nan_to_num(a, nan=1.0, posinf=7.0),
        (np.array([NAN, np.inf, 2.5], np.float32),)),
    "histogram": (lambda x: F.histogram(x), lambda a: np.histogram(a), (LINE,)),
    "histogram of a range": (
        lambda x: F.histogram(x, 16, (-4, 4)), lambda a: np.histogram(a, 16, (-4, 4)), (LINE,)),
    "histogram with edges": (
        lambda x: F.histogram(x, [-4.0, -1.0, 0.5, 3.0]), lambda a: np.histogram(a, [-4.0, -1.0, 0.5, 3.0]), (LINE,)),
    "histogram with weights": (
        lambda x, w: F.histogram(x, 8, (-5, 5), weights=w), lambda a, w: np.histogram(a, 8, (-5, 5), weights=w),
        (LINE, WEIGHTS)),
    "density": (
        lambda x: F.histogram(x, 8, (-5, 5), density=True), lambda a: np.histogram(a, 8, (-5, 5), density=True),
        (LINE,)),
    "histogram of one value": (
        lambda x: F.histogram(x, 3), lambda a: np.histogram(a, 3), (np.full(4, 2.0, np.float32),)),
    "histogram of nothing": (lambda x: F.histogram(x, 3), lambda a: np.histogram(a, 3), (np.zeros(0, np.float32),)),
    "bincount": (F.bincount, np.bincount, (COUNTED,)),
    "bincount with weights": (
        lambda x, w: F.bincount(x, w, 20), lambda a, w: np.bincount(a, w, 20), (COUNTED, WEIGHTS)),
    "bincount of nothing": (
        lambda x: F.bincount(x, minlength=2), lambda a: np.bincount(a, minlength=2), (COUNTED[:0],)),
    "cov": (F.cov, np.cov, (WIDE,)),
    "cov of columns": (
        lambda x: F.cov(x, correction=0, rowvar=False), lambda a: np.cov(a, ddof=0, rowvar=False), (WIDE,)),
    "cov of one variable": (F.cov, np.cov, (LINE,)),
    "corrcoef": (F.corrcoef, np.corrcoef, (WIDE,)),
    "corrcoef of columns": (lambda x: F.corrcoef(x, rowvar=False), lambda a: np.corrcoef(a, rowvar=False), (BATCH[0],)),
    **{f"diag {k} of a matrix": (lambda x, k=k: F.diag(x, k), lambda a, k=k: np.diag(a, k), (WIDE,))
       for k in (0, 1, 4, 5, 9, -1, -2, -3)},
    **{f"diag {k} of a vector": (lambda x, k=k: F.diag(x, k), lambda a, k=k: np.diag(a, k), (WIDE[0],))
       for k in (0, 2, -1)},
    "trace": (lambda x: F.trace(x, 1), lambda a: np.trace(a, 1), (WIDE,)),
    "trace of integers": (F.trace, np.trace, (INTS,)),
    "cross": (F.cross, np.cross, (BATCH, BATCH[::-1].copy())),
    "cross along the middle": (
        lambda x, y: F.cross(x, y, axis=1), lambda a, b: np.cross(a, b, axis=1), (BATCH, BATCH[::-1].copy())),
    "cross, broadcast": (F.cross, np.cross, (BATCH, WIDE[0, :3].copy())),
    **{f"{name}, {len(arrays[0].shape)} axes": (
        lambda *x, n=name: getattr(F, n)(x), lambda *a, n=name: getattr(np, n)(a), arrays)
       for name in ("vstack", "hstack", "dstack", "column_stack")
       for arrays in ((WIDE[0], WIDE[1]), (WIDE, WIDE), (BATCH, BATCH))},
    "vstack of numbers": (lambda *x: F.vstack(x), lambda *a: np.vstack(a), (np.float32(1), np.float32(2))),
    "deg2rad": (F.deg2rad, np.deg2rad, (LINE,)),
    "rad2deg": (F.rad2deg, np.rad2deg, (LINE,)),
    "cumprod": (lambda x: F.cumprod(x, 1), lambda a: np.cumprod(a, 1), (WIDE,)),
    "argtopk": (lambda x: F.argtopk(x, 3, 1), lambda a: np.argsort(-a, 1, kind="stable")[:, :3], (WIDE,)),
    "hard_shrink": (lambda x: F.hard_shrink(x, 0.4), lambda a: np.where(abs(a) > 0.4, a, 0), (WIDE,)),
    "soft_shrink": (
        lambda x: F.soft_shrink(x, 0.4), lambda a: np.sign(a) * np.maximum(abs(a) - np.float32(0.4), 0), (WIDE,)),
    "tanhshrink": (F.tanhshrink, lambda a: a - np.tanh(a), (WIDE,)),
    "threshold": (lambda x: F.threshold(x, 0.1, 20.0), lambda a: np.where(a > 0.1, a, 20), (WIDE,)),
}  # fmt: skip


def numbers(found: Any) -> list[Any]:
    return [np.asarray(part) for part in (found if isinstance(found, (tuple, list)) else (found,))]


@pytest.mark.parametrize("backend", ALL)
@every("case", CASES)
def test_it_equals_numpys(case: str, backend: str) -> None:
    ours, numpys, arrays = CASES[case]
    found = numbers(ours(*(F.asarray(a, backend=backend) for a in arrays)))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # NumPy warns about rows of NaN
        expected = numbers(numpys(*arrays))
    assert [a.shape for a in found] == [a.shape for a in expected]
    for a, b in zip(found, expected, strict=True):
        assert a.dtype.kind == b.dtype.kind
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("backend", ALL)
def test_the_median_with_its_index_is_pytorchs_lower_one(backend: str) -> None:
    """The first is torch.tensor([[1.0, 5.0, 3.0, 2.0], [8.0, 4.0, 6.0, 7.0]]).median(1, keepdim=True)."""
    x = F.asarray([[1.0, 5.0, 3.0, 2.0], [8.0, 4.0, 6.0, 7.0]], backend=backend)
    values, indices = F.median_with_indices(x, 1)
    assert (values.tolist(), indices.tolist()) == ([[2.0], [6.0]], [[3], [2]])
    values, indices = F.median_with_indices(F.asarray([[3, 1, 2], [9, 9, 0]], backend=backend), 1, keepdims=False)
    assert (values.tolist(), indices.tolist()) == ([2, 9], [2, 0])
    values, indices = F.median_with_indices(F.asarray([1.0, NAN, 3.0], backend=backend))
    assert values.isnan().all() and indices.tolist() == [1]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: F.quantile(F.asarray(A), 1.5), ArgumentError, "from 0 to 1"),
        (lambda: F.quantile(F.asarray(A), 0.5, method="middle"), ArgumentError, "higher, linear"),
        (lambda: F.median(F.zeros((3, 0)), 1), ShapeError, "no elements"),
        (lambda: F.median(F.asarray(A), dim=1), ArgumentError, "median_with_indices"),
        (lambda: F.histogram(F.asarray(HOLES)), ArgumentError, "finite"),
        (lambda: F.histogram(F.asarray(LINE), 0), ArgumentError, "at least 1 bin"),
        (lambda: F.histogram(F.asarray(LINE), 4, (3, 1)), ArgumentError, "the lower one first"),
        (lambda: F.histogram(F.asarray(LINE), weights=[1.0]), ShapeError, "weights"),
        (lambda: F.bincount(F.asarray([1, -2])), ArgumentError, "-2"),
        (lambda: F.bincount(F.asarray([1.5])), DTypeError, "integers"),
        (lambda: F.bincount(F.asarray(INTS)), ShapeError, "1-D"),
        (lambda: F.cov(F.asarray(A)), ShapeError, "observations"),
        (lambda: F.diag(F.asarray(A)), ShapeError, r"linalg\.diagonal"),
        (lambda: F.trace(F.asarray(A)), ShapeError, r"linalg\.trace"),
        (lambda: F.cross(F.asarray(EVEN), F.asarray(EVEN)), ShapeError, "3 elements"),
        (lambda: F.hstack([]), ShapeError, "at least one"),
    ],
)
def test_what_makes_no_sense_is_refused(call: Callable[[], Any], error: type[EmberletError], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


SMOOTH = (
    "median of an axis", "quantiles of an axis", "cov", "corrcoef", "diag 1 of a matrix", "diag 2 of a vector", "trace",
    "cross", "vstack, 2 axes", "dstack, 2 axes", "deg2rad", "tanhshrink", "soft_shrink", "cumprod",
)  # fmt: skip


@pytest.mark.parametrize("case", SMOOTH)
def test_gradients_are_the_slopes_that_finite_differences_see(case: str) -> None:
    ours, _, arrays = CASES[case]
    emberlet.check_grads(ours, [F.asarray(a.astype(np.float64), backend="numpy") for a in arrays])


@pytest.mark.parametrize("backend", ["numpy", pytest.param("wgpu", marks=pytest.mark.needs("gpu-driver"))])
@pytest.mark.parametrize("case", ["median of an axis", "nanquantile", "nanvar, 1, True", "cov", "cross", "trace"])
def test_a_plan_computes_the_same(case: str, backend: str) -> None:
    ours, _, arrays = CASES[case]

    class Own(emberlet.Module):
        def forward(self, *x: Any) -> Any:
            return ours(*x)

    inputs = [F.asarray(a, backend=backend) for a in arrays]
    compiled = Own().compile(*inputs, backend=backend)
    for factor in (1.0, 2.0):
        found = compiled(*(x * factor for x in inputs))
        np.testing.assert_allclose(np.asarray(found), np.asarray(ours(*(x * factor for x in inputs))), rtol=1e-5)
