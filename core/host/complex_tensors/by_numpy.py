"""Linear algebra of complex matrices (…, m, n), rounding and sets of complex numbers, by NumPy, for the backends numpy
and python."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any

from ...errors import ArgumentError, ShapeError, UnsupportedError
from .gate import is_double, tensors_in


def _numpy() -> Any:
    try:
        return import_module("numpy")
    except ImportError:
        raise UnsupportedError("linear algebra, rounding and sets of complex numbers need NumPy") from None


def _result(name: str, parts: Any) -> Any:
    where = "emberlet.functional.reductions.sets" if name.startswith("Unique") else "emberlet.linalg.results"
    return getattr(import_module(where), name)(parts)


def _arrays(name: str, *values: Any) -> tuple[Any, ...]:
    found = tuple(_numpy().asarray(v) for v in values)
    if found[0].ndim < 2:
        raise ShapeError(f"{name} takes matrices (..., m, n), found shape {found[0].shape}")
    return found


def cholesky(x: Any, *, upper: bool = False) -> Any:
    (a,) = _arrays("cholesky", x)
    low = _numpy().linalg.cholesky(a)
    return low.swapaxes(-1, -2).conj() if upper else low


def det(x: Any) -> Any:
    return _numpy().linalg.det(*_arrays("det", x))


def eigh(x: Any) -> Any:
    return "EighResult", _numpy().linalg.eigh(*_arrays("eigh", x))


def eigvalsh(x: Any) -> Any:
    return _numpy().linalg.eigvalsh(*_arrays("eigvalsh", x))


def inv(x: Any) -> Any:
    return _numpy().linalg.inv(*_arrays("inv", x))


def matrix_norm(x: Any, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    return _numpy().linalg.norm(*_arrays("matrix_norm", x), ord=ord, axis=(-2, -1), keepdims=keepdims)


def matrix_power(x: Any, n: int) -> Any:
    return _numpy().linalg.matrix_power(*_arrays("matrix_power", x), n)


def _rtol(a: Any, rtol: Any) -> Any:
    return max(a.shape[-2:]) * _numpy().finfo(a.dtype).eps if rtol is None else _numpy().asarray(rtol)


def matrix_rank(x: Any, *, rtol: Any = None) -> Any:
    (a,) = _arrays("matrix_rank", x)
    values = _numpy().linalg.svd(a, compute_uv=False)
    bound = _numpy().asarray(_rtol(a, rtol))[..., None] * values.max(-1, keepdims=True, initial=0)
    return (values > bound).sum(-1)


def pinv(x: Any, *, rtol: Any = None) -> Any:
    (a,) = _arrays("pinv", x)
    return _numpy().linalg.pinv(a, _rtol(a, rtol))


def qr(x: Any, *, mode: str = "reduced") -> Any:
    if mode not in ("reduced", "complete"):
        raise ArgumentError(f"qr: mode is 'reduced' or 'complete', found {mode!r}")
    return "QRResult", _numpy().linalg.qr(*_arrays("qr", x), mode=mode)


def slogdet(x: Any) -> Any:
    return "SlogdetResult", _numpy().linalg.slogdet(*_arrays("slogdet", x))


def solve(x1: Any, x2: Any) -> Any:
    a, b = _arrays("solve", x1, x2)
    single = b.ndim == 1
    b = b[:, None] if single else b
    lead = _numpy().broadcast_shapes(a.shape[:-2], b.shape[:-2])
    out = _numpy().linalg.solve(*(_numpy().broadcast_to(m, lead + m.shape[-2:]) for m in (a, b)))
    return out[..., 0] if single else out


def svd(x: Any, *, full_matrices: bool = True) -> Any:
    return "SVDResult", _numpy().linalg.svd(*_arrays("svd", x), full_matrices=full_matrices)


def svdvals(x: Any) -> Any:
    return _numpy().linalg.svd(*_arrays("svdvals", x), compute_uv=False)


def round(x: Any, decimals: int = 0) -> Any:
    return _numpy().round(_numpy().asarray(x), decimals)


def _unique(x: Any) -> tuple[Any, Any, Any, Any]:
    """(values, first indices, inverse indices, counts); every NaN is a value of its own, as the standard says."""
    a = _numpy().asarray(x)
    values, first, inverse, counts = _numpy().unique(a, True, True, True, equal_nan=False)
    return values, first, inverse.reshape(a.shape), counts


def unique_all(x: Any) -> Any:
    return "UniqueAllResult", _unique(x)


def unique_counts(x: Any) -> Any:
    return "UniqueCountsResult", _unique(x)[::3]


def unique_inverse(x: Any) -> Any:
    return "UniqueInverseResult", _unique(x)[::2]


def unique_values(x: Any) -> Any:
    return _unique(x)[0]


def _asarray(x: Any, backend: Any) -> Any:
    return import_module("emberlet.lookup").function("asarray")(x, backend=backend)


def _single(x: Any, backend: Any) -> Any:
    return _asarray(x, backend) if isinstance(x, (list, tuple)) else x


def _of_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        tensors = list(tensors_in(args, kwargs))
        backend = tensors[0].backend if tensors else None
        if not any(map(is_double, tensors)):  # a list has the precision of the tensors; NumPy's is float64
            args = tuple(_single(a, backend) for a in args)
            kwargs = {name: _single(a, backend) for name, a in kwargs.items()}
        try:
            found = function(*args, **kwargs)
        except _numpy().linalg.LinAlgError as error:
            kind = ShapeError if "square" in str(error) or "dimension" in str(error) else ArgumentError
            raise kind(f"{function.__name__}: {error}") from None

        def made(part: Any) -> Any:
            return _asarray(_numpy().asarray(part), backend)  # NumPy's float64 is a Python float, too

        if isinstance(found, tuple):
            return _result(found[0], tuple(made(part) for part in found[1]))
        return made(found)

    return call


FUNCTIONS = {
    f.__name__: _of_tensors(f)
    for f in (
        cholesky, det, eigh, eigvalsh, inv, matrix_norm, matrix_power, matrix_rank, pinv, qr, round, slogdet, solve,
        svd, svdvals, unique_all, unique_counts, unique_inverse, unique_values,
    )
}  # fmt: skip
