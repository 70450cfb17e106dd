"""The python backend's kernels for complex elements, which its buffers hold in lists. Elements of complex64 are rounded
to two float32 after each operation."""

from __future__ import annotations

import cmath
import functools
import math
from array import array
from collections.abc import Callable
from typing import Any

from ... import dtypes
from ...errors import DTypeError, FormatError
from ...python_backend import PythonBackend
from ...python_backend.buffers import flat
from ...shapes import broadcast, size
from ...tensor import Tensor

NAN = complex(math.nan, math.nan)


def _sign(v: complex) -> complex:
    return v / abs(v) if v else 0j


def _expm1(v: complex) -> complex:
    # exp(v) - 1 without the loss of digits near 0.
    a, b = v.real, v.imag
    return complex(math.expm1(a) * math.cos(b) - 2 * math.sin(b / 2) ** 2, math.exp(a) * math.sin(b))


def _log1p(v: complex) -> complex:
    a, b = v.real, v.imag
    return complex(math.log1p(a * (2 + a) + b * b) / 2, math.atan2(b, 1 + a)) if abs(v) < 0.5 else _log(1 + v)


def _log(v: complex) -> complex:
    return cmath.log(v) if v else complex(-math.inf, cmath.phase(v))


def _atan(v: complex) -> complex:
    return complex(v.real, math.copysign(math.inf, v.imag)) if v in (1j, -1j) else cmath.atan(v)


def _atanh(v: complex) -> complex:
    return complex(math.copysign(math.inf, v.real), v.imag) if v in (1, -1) else cmath.atanh(v)


_UNARY: dict[str, Callable[[complex], Any]] = {
    "neg": lambda v: -v, "abs": abs, "sign": _sign, "sqrt": cmath.sqrt, "exp": cmath.exp, "expm1": _expm1,
    "log": _log, "log1p": _log1p, "sin": cmath.sin, "cos": cmath.cos, "tan": cmath.tan, "asin": cmath.asin,
    "acos": cmath.acos, "atan": _atan, "sinh": cmath.sinh, "cosh": cmath.cosh, "tanh": cmath.tanh,
    "asinh": cmath.asinh, "acosh": cmath.acosh, "atanh": _atanh, "isnan": cmath.isnan, "isinf": cmath.isinf,
    "logical_not": lambda v: not v,
}  # fmt: skip


def _divide(a: complex, b: complex) -> complex:
    if b:
        return a / b
    return NAN if not a or a != a else complex(math.copysign(math.inf, a.real) if a.real else math.nan,
                                               math.copysign(math.inf, a.imag) if a.imag else math.nan)  # fmt: skip


def _power(a: complex, b: complex) -> complex:
    return a**b if a or not b else 0j if b.real > 0 else NAN


_BINARY: dict[str, Callable[[complex, complex], Any]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": _divide, "pow": _power,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
}  # fmt: skip


def _rounded(values: list[Any], dtype: Any) -> list[complex]:
    values = [complex(v) for v in values]
    if dtype.bits == 128:
        return values
    parts = array("f", [p for v in values for p in (v.real, v.imag)]).tolist()
    return [complex(*parts[i : i + 2]) for i in range(0, len(parts), 2)]


def _new(values: list[Any], dtype: Any, shape: tuple[int, ...], backend: Any) -> Tensor:
    return backend.new(_rounded(values, dtype), dtype, tuple(shape))


def _safe(function: Callable[..., Any], *values: complex) -> Any:
    try:
        return function(*values)
    except (ValueError, OverflowError, ZeroDivisionError):
        return NAN


def _unary(backend: Any, op: str, x: Any) -> Tensor:
    if op not in _UNARY:
        raise DTypeError(f"{op} does not take complex numbers")
    values = [_safe(_UNARY[op], v) for v in flat(x)]
    if op in ("isnan", "isinf", "logical_not"):
        return backend.from_list(values, dtypes.bool, x.shape)
    if op == "abs":
        return backend.from_list([v.real for v in values], x.dtype.part, x.shape)
    return _new(values, x.dtype, x.shape, backend)


def _binary(backend: Any, op: str, a: Tensor, b: Tensor) -> Tensor:
    if op not in _BINARY:
        raise DTypeError(f"{op} does not take complex numbers")
    shape = broadcast(a.shape, b.shape)
    left, right = [flat(x if x.shape == shape else backend.expand(x, shape)) for x in (a, b)]
    values = [_safe(_BINARY[op], p, q) for p, q in zip(left, right, strict=True)]
    if op in ("eq", "ne"):
        return backend.from_list(values, dtypes.bool, shape)
    return _new(values, a.dtype, shape, backend)


def _cast(backend: Any, x: Tensor, dtype: Any, saturate: bool = True) -> Tensor:
    if dtype.kind == "complex":
        return _new(list(flat(x)), dtype, x.shape, backend)
    if dtype.is_bool:
        return backend.from_list([bool(v) for v in flat(x)], dtype, x.shape)
    raise DTypeError(f"{x.dtype} to {dtype} would lose the imaginary part; write real(x).astype({dtype})")


def _from_bytes(backend: Any, data: Any, dtype: Any, shape: tuple[int, ...]) -> Tensor:
    if len(memoryview(data).cast("B")) != dtype.nbytes(size(shape)):
        raise FormatError(f"{dtype} of shape {tuple(shape)} takes {dtype.nbytes(size(shape))} bytes")
    parts = memoryview(bytes(data)).cast(dtype.part.code).tolist()
    return _new([complex(*parts[i : i + 2]) for i in range(0, len(parts), 2)], dtype, shape, backend)


def to_bytes(x: Any) -> memoryview:
    """The elements as pairs of floats."""
    return memoryview(array(x.dtype.part.code, [p for v in flat(x) for p in (v.real, v.imag)])).cast("B")


def install() -> None:
    """Give the python backend its complex kernels."""

    def wrap(name: str, own: Callable[..., Any], wanted: Callable[..., bool]) -> None:
        getattr(PythonBackend(), name)  # a kernel is stored in the class on first use
        real = getattr(PythonBackend, name)

        @functools.wraps(real)
        def kernel(self: Any, *args: Any, **kwargs: Any) -> Any:
            return own(self, *args, **kwargs) if wanted(*args, **kwargs) else real(self, *args, **kwargs)

        setattr(PythonBackend, name, kernel)

    def first(x: Any, *_: Any, **__: Any) -> bool:
        return bool(x.dtype.kind == "complex")

    wrap("unary", _unary, lambda op, x: first(x))
    wrap("binary", _binary, lambda op, a, b: first(a))
    wrap("cast", _cast, lambda x, dtype, saturate=True: "complex" in (x.dtype.kind, dtype.kind))
    wrap("to_bytes", lambda backend, x: to_bytes(x), first)
    wrap("from_bytes", _from_bytes, lambda data, dtype, shape: dtype.kind == "complex")
    wrap("from_list", lambda b, values, dtype, shape: _new(list(values), dtype, shape, b),
         lambda values, dtype, shape: dtype.kind == "complex")  # fmt: skip
    for name in ("full", "arange", "reduce", "cumulative", "matmul", "pad", "scatter", "conv"):
        _round_results(name)


def _round_results(name: str) -> None:
    getattr(PythonBackend(), name)
    real = getattr(PythonBackend, name)

    @functools.wraps(real)
    def kernel(self: Any, *args: Any, **kwargs: Any) -> Any:
        out = real(self, *args, **kwargs)
        if out.dtype.kind == "complex" and isinstance(out.data[0], list):
            out = Tensor((_rounded(out.data[0], out.dtype), *out.data[1:]), out.dtype, out.shape, out.backend)
        return out

    setattr(PythonBackend, name, kernel)
