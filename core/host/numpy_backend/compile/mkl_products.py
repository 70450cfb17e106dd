"""The products of a plan as calls of MKL, with weights laid out for it once, and some of its functions of elements
(`host/mkl.py`).

A plan is written with NumPy's functions. `prepare` makes steps of MKL of those that suit it; `bound` gives them the
addresses of a set of buffers, which do not move.
"""

from __future__ import annotations

import ctypes
import math
import mmap
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import blas_kernels, mkl
from ..storage import Array
from .memory import Buffers, address
from .steps import Step
from .threads.schedule import large
from .threads.workers import MOST

LEAST = 1 << 23  # minimum multiplications of a plan: loading MKL takes 25 ms
PACKED = 512  # maximum rows of a product with packed weights: larger ones are as fast without
_ROWS, _PLAIN, _TRANSPOSED, _PACKED, _RIGHT = 101, 111, 112, 151, 162
_LARGEST = 2**31 - 1

_int, _float = ctypes.c_int, ctypes.c_float


def library(multiplications: int) -> Any:
    """MKL for a plan of so many multiplications, or None. Raises what `mkl.library` raises."""
    if multiplications < LEAST or mkl.asked() == mkl.NUMPY:
        return None
    threads = blas_kernels.threads() or 1
    if not mkl.asked() and (threads > MOST or (threads > 1 and not large(multiplications, mkl=True))):
        return None
    return mkl.library()


class Packed:
    """Constant weights (k, n) in the layout of MKL's kernels for products with m rows."""

    __slots__ = ("address", "memory", "shape")

    def __init__(self, library: Any, matrix: Array, m: int) -> None:
        self.shape = k, n = matrix.shape
        how, between = _layout(matrix) or (_PLAIN, n)
        # MKL asks for at least 8 MB. Memory that it does not write to is never taken from the system.
        size = library.cblas_sgemm_pack_get_size(_RIGHT, m, n, k)
        self.memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        library.cblas_sgemm_pack(_ROWS, _RIGHT, how, m, n, k, 1.0, address(matrix), between, self.address)

    def __repr__(self) -> str:
        return f"packed float32[{self.shape[0]}, {self.shape[1]}]"


def _layout(x: Array) -> tuple[int, int] | None:
    """How a matrix lies, as BLAS says it: (plain or transposed, elements from a row, or column, to the next). None if
    neither its rows nor its columns lie in one piece."""
    rows, columns = x.shape[-2:]
    down, across = x.strides[-2:]
    if down % 4 or across % 4:
        return None
    if (across == 4 or columns == 1) and (down >= 4 * columns or rows == 1):
        return _PLAIN, max(down // 4, columns) if rows > 1 else columns
    if (down == 4 or rows == 1) and (across >= 4 * rows or columns == 1):
        return _TRANSPOSED, max(across // 4, rows) if columns > 1 else rows
    return None


def prepare(library: Any, steps: list[Step], buffers: Buffers) -> None:
    """Change those steps to MKL's that it computes."""
    known: dict[Any, Packed] = {}
    for step in steps:
        name = _ELEMENTWISE.get(step.function)
        if name is not None:
            if _lie_alike(*step.args):
                step.function = Elementwise(library, name)
        elif step.function is not np.matmul or not _fits(*step.args):
            continue
        elif step.args[2].ndim == 2:
            a, b, out = step.args
            step.args = a, _weights(library, a, b, buffers, known), out
            step.function = Product(library)
        else:
            step.function = Products(library)


def _lie_alike(x: Any, out: Array) -> bool:
    """Whether each element of out is computed from one of x, in a run of memory or in place."""
    arrays = isinstance(x, np.ndarray) and x.dtype == out.dtype == np.float32 and x.shape == out.shape
    if not arrays or not (x.flags.c_contiguous and out.flags.c_contiguous) or x.size > _LARGEST:
        return False
    return address(x) == address(out) or not np.may_share_memory(x, out)


def _fits(a: Array, b: Array, out: Array) -> bool:
    arrays = (a, b, out)
    if any(x.dtype != np.float32 or x.ndim < 2 or not x.size or max(x.shape[-2:]) > _LARGEST for x in arrays):
        return False
    layouts = [_layout(x) for x in arrays]
    if None in layouts or any(found and found[1] > _LARGEST for found in layouts):
        return False
    rows = layouts[2] is not None and layouts[2][0] == _PLAIN
    return rows and not (np.may_share_memory(out, a) or np.may_share_memory(out, b))


def _weights(library: Any, a: Array, b: Array, buffers: Buffers, known: dict[Any, Packed]) -> Any:
    """b, packed if it is constant and its product with a is faster with that. Weights that lie row by row are
    multiplied as fast in place, and need no second copy."""
    m = len(a)
    if not 1 < m <= PACKED or buffers.of(b) is not None or (_layout(b) or (_PLAIN,))[0] == _PLAIN:
        return b
    key = address(b), b.shape, b.strides, m
    if key not in known:
        known[key] = Packed(library, b, m)
    return known[key]


class Product:
    """out = a @ b of matrices, of which one may be Packed."""

    __name__ = "mkl.product"

    def __init__(self, library: Any) -> None:
        self.library = library

    def __call__(self, *args: Any) -> None:
        function, found = self.bound(*args)
        function(*found)

    def bound(self, a: Any, b: Any, out: Array) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """The function of MKL and its arguments for arrays that stay where they are."""
        (m, n), k = out.shape, a.shape[1]
        left, right = _operand(a), _operand(b)
        end = (_float(0), *_operand(out)[1:])
        sizes = (_int(m), _int(n), _int(k))
        head = (_int(_ROWS), left[0], right[0])
        if type(b) is Packed:
            return self.library.cblas_sgemm_compute, (*head, *sizes, *left[1:], *right[1:], *end)
        return self.library.cblas_sgemm, (*head, *sizes, _float(1), *left[1:], *right[1:], *end)


def _operand(x: Any) -> tuple[Any, Any, Any]:
    """(how it lies, address, elements between its rows). The address keeps the memory."""
    if type(x) is Packed:
        at = _Address(x.address)
        at.held = x
        return _int(_PACKED), at, _int(x.shape[1])
    found = _layout(x)
    assert found is not None
    return _int(found[0]), _address(x), _int(found[1])


class _Address(ctypes.c_void_p):
    """An address that keeps what lies there."""

    held: Any = None


def _address(x: Array) -> _Address:
    found = _Address(address(x))
    found.held = x
    return found


class Products:
    """out = a @ b of stacks of matrices, which broadcast as in np.matmul."""

    __name__ = "mkl.products"

    def __init__(self, library: Any) -> None:
        self.library = library

    def __call__(self, *args: Any) -> None:
        function, found = self.bound(*args)
        function(*found)

    def bound(self, a: Array, b: Array, out: Array) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """The function of MKL and its arguments for arrays that stay where they are."""
        lead = out.shape[:-2]
        (m, n), k = out.shape[-2:], a.shape[-1]
        count = math.prod(lead)
        found = []
        for x in (a, b, out):
            layout = _layout(x)
            assert layout is not None
            places = _stack(np.broadcast_to(x, (*lead, *x.shape[-2:])), x, count)
            found.append((_one(layout[0]), places, _one(layout[1])))
        left, right, end = found
        head = (_int(_ROWS), left[0], right[0], _one(m), _one(n), _one(k))
        tail = (_ONE, *left[1:], *right[1:], _ZERO, *end[1:], _int(1), _one(count))
        return self.library.cblas_sgemm_batch, (*head, *tail)


def _one(number: int) -> Any:
    return (_int * 1)(number)


_ONE, _ZERO = (_float * 1)(1), (_float * 1)(0)


def _stack(x: Array, kept: Array, count: int) -> Any:
    """The addresses of the matrices of x, which keep its memory."""
    kind = type("Stack", (ctypes.Array,), {"_type_": ctypes.c_void_p, "_length_": count, "held": None})
    start = address(x)
    offsets = np.zeros((), np.int64)
    for n, stride in zip(x.shape[:-2], x.strides[:-2], strict=True):
        offsets = offsets[..., None] + np.arange(n) * stride
    found = kind(*(start + int(o) for o in offsets.reshape(-1)))
    found.held = kept
    return found


class Elementwise:
    """A function of MKL that computes each element of out from one of x; both lie without gaps."""

    # the most accurate variant; no error codes; subnormal numbers are kept
    _MODE = ctypes.c_longlong(0x2 | 0x100 | 0x140000)

    def __init__(self, library: Any, name: str) -> None:
        self.library = library
        self.__name__ = f"mkl.{name}"
        self.name = name

    def __call__(self, *args: Any) -> None:
        function, found = self.bound(*args)
        function(*found)

    def bound(self, x: Array, out: Array) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """The function of MKL and its arguments for arrays that stay where they are."""
        function = getattr(self.library, self.name)
        function.restype = None
        return function, (_int(x.size), _address(x), _address(out), self._MODE)


def normal_cdf(x: Array, out: Array) -> None:
    """The share of a normal distribution below each element: (1 + erf(x / √2)) / 2. Only in plans with MKL."""
    given, found = np.ascontiguousarray(x), np.empty(x.shape, x.dtype)
    Elementwise(mkl.library(), _ELEMENTWISE[normal_cdf])(given, found)
    np.copyto(out, found)


_ELEMENTWISE: dict[Any, str] = {normal_cdf: "vmsCdfNorm", np.exp: "vmsExp"}


def bound(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A step in its set of buffers: one of MKL with addresses, another as it is."""
    return function.bound(*args) if isinstance(function, (Product, Products, Elementwise)) else (function, args)
