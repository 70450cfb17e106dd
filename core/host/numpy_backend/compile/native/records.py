"""Steps of a plan as records of `machine.py`."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ...storage import Array
from ..memory import address
from ..steps import copy_elements, maximum, minimum
from .machine import FLOATS, REGISTERS, STACK, Machine, address_of, record
from .ufuncs import loop

MOST = 4096  # maximum records of a step, and rows of elements: beyond, NumPy takes as long
TARGET, SOURCE = 4, 5  # the words of a record that have memcpy's first arguments
ROW = 32  # minimum bytes of rows that are copied as they are; shorter ones element by element
LONGEST = 0.02  # seconds of steps that run as one call
WORK = 10_000  # bound of the search for elements that two arrays share
_C_FUNCTION: Any = ctypes.CFUNCTYPE(None).__base__
_UFUNCS = {maximum: np.maximum, minimum: np.minimum}

Found = tuple[list[Any], list[Any]]  # arrays of records, and what their addresses are of
# a function, its arguments, about how many seconds it takes, its records if it has any
Planned = tuple[Callable[..., Any], Sequence[Any], float, Found | None]


def of_step(machine: Machine | None, function: Callable[..., Any], args: Sequence[Any]) -> Found | None:
    """The records of function(*args), or None if it has to be called from Python."""
    if machine is None:
        return None
    if isinstance(function, _C_FUNCTION):
        return _of_call(function, args)
    args = [*(_array(x, args[-1]) for x in args[:-1]), args[-1]]
    if not all(type(x) is np.ndarray and x.flags.aligned and x.dtype.isnative and x.size for x in args):
        return None
    if any(_shared(x, args[-1]) for x in args[:-1]) or not args[-1].flags.writeable:
        return None
    if function is copy_elements:
        return _of_copy(machine, *args) if args[0].dtype == args[1].dtype else None
    function = _UFUNCS.get(function, function)
    if function is np.matmul:
        return _of_product(machine, *args)
    if isinstance(function, np.ufunc) and function.nargs == len(args) and function.signature is None:
        return _of_elements(machine, function, args)
    return None


def _array(x: Any, out: Any) -> Any:
    """A number as an array. Python's own have the dtype of the result, as in NumPy (NEP 50)."""
    if isinstance(x, np.generic):
        return np.asarray(x)
    if type(x) in (int, float) and type(out) is np.ndarray and out.dtype.kind == "f":
        return np.asarray(x, out.dtype)
    return x


def _of_call(function: Any, args: Sequence[Any]) -> Found | None:
    """A C function with ctypes's arguments."""
    integers: list[int] = []
    floats: list[float] = []
    for x in args:
        if isinstance(x, ctypes.c_float):
            floats.append(x.value)
        elif isinstance(x, ctypes.Array):
            integers.append(ctypes.addressof(x))
        elif isinstance(x, (ctypes.c_int, ctypes.c_longlong, ctypes.c_void_p)):
            integers.append(x.value or 0)
        else:
            return None
    if len(integers) > REGISTERS + STACK or len(floats) > FLOATS:
        return None
    return [record(address_of(function), integers, floats)], [function, *args]


def _shared(x: Array, out: Array) -> bool:
    """Whether a result could be written over elements that are read later, which NumPy would copy first."""
    if not np.may_share_memory(x, out):
        return False
    if address(x) == address(out) and x.shape == out.shape and x.strides == out.strides:
        return False
    try:
        return bool(np.shares_memory(x, out, max_work=WORK))  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


Axis = tuple[int, ...]  # its size, then the stride of each array


def _axes(arrays: Sequence[Array], shape: tuple[int, ...]) -> list[Axis]:
    """The axes of arrays that broadcast to a shape, the longest stride of the last array first; those that lie behind
    each other in every array are one."""
    wide = [np.broadcast_to(x, shape) for x in arrays]
    found = [(n, *(x.strides[i] for x in wide)) for i, n in enumerate(shape) if n > 1]
    found.sort(key=lambda axis: -abs(axis[-1]))
    out: list[Axis] = []
    for n, *strides in found:
        if out and all(outer == n * inner for outer, inner in zip(out[-1][1:], strides, strict=True)):
            out[-1] = (out[-1][0] * n, *strides)
        else:
            out.append((n, *strides))
    return out


def _offsets(axes: Sequence[Axis], number: int) -> list[Any]:
    """For each array, the offsets in bytes of all indices of the axes."""
    found = []
    for a in range(number):
        at = np.zeros((), np.int64)
        for axis in axes:
            at = at[..., None] + np.arange(axis[0]) * axis[1 + a]
        found.append(at.reshape(-1))
    return found


def _of_elements(machine: Machine, ufunc: Any, args: Sequence[Array]) -> Found | None:
    """A ufunc, one call of its loop for each row of elements."""
    found = loop(ufunc, "".join(x.dtype.char for x in args))
    axes = _axes(args, args[-1].shape) or [(1, *(0 for _ in args))]
    rows = math.prod(axis[0] for axis in axes[:-1])
    if found is None or rows > MOST:
        return None
    return _rows(machine, found, args, axes[:-1], [axes[-1][0]], axes[-1][1:])


def _rows(
    machine: Machine,
    found: tuple[int, int],
    args: Sequence[Array],
    outer: Sequence[Axis],
    sizes: Sequence[int],
    strides: Sequence[int],
) -> Found:
    """A loop, called for each index of the outer axes."""
    starts = np.array([address(x) for x in args], np.int64)
    places = np.ascontiguousarray(np.array(_offsets(outer, len(args)), np.int64).T + starts)
    inner = np.array([*sizes, *strides], np.int64)
    here = places.copy()  # a loop may leave other addresses there, as that of np.matmul does
    call = address(here), address(inner), address(inner) + 8 * len(sizes), found[1]
    return [
        record(machine.copy, (address(here), address(places), places.nbytes)),
        record(found[0], call, count=len(places), steps=(8 * len(args), 0)),
    ], [args, places, here, inner]


def _of_product(machine: Machine, a: Array, b: Array, out: Array) -> Found | None:
    """np.matmul of stacks of matrices."""
    found = loop(np.matmul, "".join(x.dtype.char for x in (a, b, out)))
    if found is None or min(a.ndim, b.ndim) < 2:
        return None
    (m, k), n, lead = a.shape[-2:], b.shape[-1], out.shape[:-2]
    stacks = [x[..., 0, 0] for x in (a, b, out)]
    axes = _axes(stacks, lead) or [(1, 0, 0, 0)]
    if math.prod(axis[0] for axis in axes[:-1]) > MOST:
        return None
    strides = [*axes[-1][1:], *a.strides[-2:], *b.strides[-2:], *out.strides[-2:]]
    return _rows(machine, found, (a, b, out), axes[:-1], [axes[-1][0], m, k, n], strides)


def _of_copy(machine: Machine, source: Array, target: Array) -> Found | None:
    """target[...] = source, in rows of bytes or, where those are short, by the loop of np.positive."""
    axes = _axes((source, target), target.shape) or [(1, source.itemsize, target.itemsize)]
    n, *last = axes[-1]
    if last != [source.itemsize, target.itemsize] or n * source.itemsize < ROW:
        longest = max(axes, key=lambda axis: axis[0])
        return _of_elements_along(machine, source, target, axes, longest)
    outer = axes[:-1]
    longest = max(outer, key=lambda axis: axis[0], default=(1, 0, 0))
    if outer:
        outer.remove(longest)
    count, *steps = longest
    if math.prod(axis[0] for axis in outer) > MOST:
        return None
    to_source, to_target = _offsets(outer, 2)
    whole = n * source.itemsize
    one = record(machine.copy, (address(target), address(source), whole), (), count, (steps[1], steps[0]))
    records = np.repeat(one, len(to_source), axis=0)
    records[:, TARGET] += to_target
    records[:, SOURCE] += to_source
    return [records], [source, target]


def _of_elements_along(machine: Machine, source: Array, target: Array, axes: list[Axis], inner: Axis) -> Found | None:
    found = loop(np.positive, source.dtype.char + target.dtype.char)
    outer = list(axes)
    outer.remove(inner)
    if found is None or math.prod(axis[0] for axis in outer) > MOST:
        return None
    return _rows(machine, found, (source, target), outer, [inner[0]], inner[1:])


def joined(machine: Machine | None, steps: Iterable[Planned]) -> list[tuple[Callable[..., Any], tuple[Any, ...]]]:
    """The calls of steps, of which those in a row that have records are one call. After LONGEST, Python gets to run
    between two calls, so that an interrupt is seen."""
    calls: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
    records: list[Any] = []
    held: list[Any] = []
    sum_of_seconds = 0.0

    def close() -> None:
        nonlocal records, held, sum_of_seconds
        if records and machine is not None:
            calls.append(machine.call(records, held))
        records, held, sum_of_seconds = [], [], 0.0

    for function, args, seconds, found in steps:
        if found is None:
            close()
            calls.append((function, tuple(args)))
            continue
        if sum_of_seconds + seconds > LONGEST:
            close()
        records += found[0]
        held += found[1]
        sum_of_seconds += seconds
    close()
    return calls
