"""The products of a plan as calls of MKL, with constant operands laid out for it once (`host/mkl.py`).

A plan is written with np.matmul. `prepare` makes steps of MKL of those that suit it; `bound` gives them the addresses
of a set of buffers, which do not move.
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
from .memory import Buffers
from .steps import Step
from .threads.workers import MOST

LEAST = 1 << 23  # minimum multiplications of a plan: loading MKL takes 25 ms
LARGE = 1 << 27  # minimum multiplications of a plan that several threads run: below, OpenBLAS's threads are quicker
_ROWS, _PLAIN, _TRANSPOSED, _PACKED, _LEFT, _RIGHT = 101, 111, 112, 151, 161, 162
_LARGEST = 2**31 - 1

_int, _float = ctypes.c_int, ctypes.c_float


def library(multiplications: int) -> Any:
    """MKL for a plan of so many multiplications, or None. Raises what `mkl.library` raises."""
    if multiplications < LEAST or mkl.asked() == mkl.NUMPY:
        return None
    threads = blas_kernels.threads() or 1
    if not mkl.asked() and (threads > MOST or (threads > 1 and multiplications < LARGE)):
        return None
    return mkl.library()


class Packed:
    """A constant operand of products with m rows, n columns and k terms in the layout of MKL's kernels."""

    __slots__ = ("address", "memory", "right", "shape")

    def __init__(self, library: Any, matrix: Array, m: int, n: int, k: int, right: bool) -> None:
        self.shape = matrix.shape
        self.right = right
        side = _RIGHT if right else _LEFT
        layout = _layout(matrix)
        assert layout is not None
        # MKL asks for at least 8 MB. Memory that it does not write to is never taken from the system.
        self.memory = mmap.mmap(
            -1, library.cblas_sgemm_pack_get_size(side, m, n, k), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        )
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        start = matrix.__array_interface__["data"][0]
        library.cblas_sgemm_pack(_ROWS, side, layout[0], m, n, k, 1.0, start, layout[1], self.address)

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
    """Change the products among steps to those of MKL, where it computes them."""
    known: dict[Any, Packed] = {}
    for step in steps:
        if step.function is not np.matmul or len(step.args) != 3 or not _fits(*step.args):
            continue
        a, b, out = step.args
        if out.ndim == 2:
            step.args = _with_packed(library, a, b, out, buffers, known)
            step.function = Product(library)
        elif buffers.of(out) is not None:
            step.function = Products(library)


def _fits(a: Array, b: Array, out: Array) -> bool:
    arrays = (a, b, out)
    if any(x.dtype != np.float32 or x.ndim < 2 or not x.size or max(x.shape[-2:]) > _LARGEST for x in arrays):
        return False
    layouts = [_layout(x) for x in arrays]
    if None in layouts or any(found and found[1] > _LARGEST for found in layouts):
        return False
    rows = layouts[2] is not None and layouts[2][0] == _PLAIN
    return rows and not (np.may_share_memory(out, a) or np.may_share_memory(out, b))


def _with_packed(library: Any, a: Array, b: Array, out: Array, buffers: Buffers, known: dict[Any, Packed]) -> Any:
    """The operands of a product of two matrices, one of them packed if it is constant."""
    m, k = a.shape
    for x, right in ((b, True), (a, False)):
        if buffers.of(x) is not None:
            continue
        key = (x.__array_interface__["data"][0], x.shape, x.strides, m, b.shape[1], right)
        if key not in known:
            known[key] = Packed(library, x, m, b.shape[1], k, right)
        return (a, known[key], out) if right else (known[key], b, out)
    return a, b, out


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
        if Packed in (type(a), type(b)):
            head = (_int(_ROWS), left[0], right[0])
            return self.library.cblas_sgemm_compute, (*head, *sizes, *left[1:], *right[1:], *end)
        head = (_int(_ROWS), left[0], right[0])
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
    found = _Address(x.__array_interface__["data"][0])
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
    start = x.__array_interface__["data"][0]
    offsets = np.zeros((), np.int64)
    for n, stride in zip(x.shape[:-2], x.strides[:-2], strict=True):
        offsets = offsets[..., None] + np.arange(n) * stride
    found = kind(*(start + int(o) for o in offsets.reshape(-1)))
    found.held = kept
    return found


def bound(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A step in its set of buffers: one of MKL with addresses, another as it is."""
    return function.bound(*args) if isinstance(function, (Product, Products)) else (function, args)
