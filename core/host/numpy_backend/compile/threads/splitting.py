"""Steps as parts that run at the same time, each in a thread of its own."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...storage import Array
from ..memory import address
from ..steps import Step, arrays_in, shares

RATE, SPEED = 1e11, 1.5e10  # multiplications and additions, and bytes, that a thread does in a second
CALL = 1e-6  # seconds of a call of NumPy whatever it computes
LOOP = 2e-8  # seconds that NumPy takes to begin an inner loop
LEAST = 4e-6  # seconds of a step that is split
CACHED = 64  # bytes that a processor reads and writes at once
NARROW = 16  # elements of an innermost axis that stay together: a line of the cache


def seconds(step: Step) -> float:
    """About how long a step takes."""
    found = CALL + sum(_nbytes(a) for a in arrays_in(step.args)) / SPEED
    if step.over is not None:
        found += LOOP * step.over.size / max(1, _run(step.over))
    if step.function is np.matmul:
        found += 2 * step.args[2].size * step.args[0].shape[-1] / RATE
    return found


def _nbytes(array: Array) -> int:
    """About how many bytes of the cache an array takes, whose broadcast axes have a stride of 0."""
    axes = [(n, abs(s)) for n, s in zip(array.shape, array.strides, strict=True) if s and n > 1]
    return math.prod(n for n, _ in axes) * min(CACHED, min((s for _, s in axes), default=0) or array.itemsize)


def _run(array: Array) -> int:
    """How many elements lie side by side."""
    run = 1
    for stride, n in sorted((abs(s), n) for n, s in zip(array.shape, array.strides, strict=True) if n > 1):
        if stride != run * array.itemsize:
            break
        run *= n
    return run


def written(step: Step) -> Sequence[Array]:
    """The arrays that a step changes."""
    if step.function is np.matmul:
        return (step.args[2],)
    return step.writes


def ways(step: Step, threads: int, cuts: dict[int, list[int]], owner: Any) -> Iterator[list[Step]]:
    """The step in as many parts as there are threads, split along one axis of its result or another.

    cuts: for the id of a buffer, the addresses at which the parts that wrote it last begin; owner(array): the buffer.
    """
    if step.over is not None:
        kind, out = "map", step.over
    elif step.function is np.matmul:
        if min(a.ndim for a in step.args[:2]) < 2:  # a vector: its result has no axis of rows, or none of columns
            return
        kind, out = "product", step.args[2]
    elif getattr(step.function, "__name__", "") == "reduce" and isinstance(
        getattr(step.function, "__self__", None), np.ufunc
    ):
        kind, out = "reduction", step.args[3]
    else:
        return
    for axis in _axes(out, kind, threads):
        n = out.shape[axis]
        for bounds in _bounds(step, out, axis, n, threads, cuts, owner):
            yield [_part(step, kind, axis, lo, hi) for lo, hi in bounds]


def _axes(out: Array, kind: str, threads: int) -> list[int]:
    """The axes to try."""
    axes = [i for i, n in enumerate(out.shape) if n >= threads]
    if kind == "product":
        # A part of the columns reads a part of the second operand, which is often the weights; of the rows, the first.
        rows, columns = out.shape[-2:]
        last = [out.ndim - 2] if rows >= threads else []
        if columns >= 4 * NARROW * threads:
            last.insert(0 if columns > rows else 1, out.ndim - 1)
        return sorted((i for i in axes if i < out.ndim - 2), key=lambda i: -out.shape[i]) + last
    axes.sort(key=lambda i: -abs(out.strides[i]))
    narrow = [i for i in axes[1:] if out.shape[i] >= 2 * NARROW * threads][-1:]
    return axes[:1] + narrow


def _bounds(
    step: Step, out: Array, axis: int, n: int, threads: int, cuts: dict[int, list[int]], owner: Any
) -> Iterator[list[tuple[int, int]]]:
    """Where to cut an axis: where an operand was cut, or at equal parts."""
    seen: set[tuple[int, ...]] = set()
    for x in arrays_in(step.args):
        behind = out.ndim - axis
        if x.ndim < behind or x.shape[-behind] != n or x.strides[-behind] <= 0:
            continue
        at = [(cut - address(x)) // x.strides[-behind] for cut in cuts.get(id(owner(x)), [])]
        edges = [0, *at, n]
        if at and all(a < b for a, b in zip(edges, edges[1:], strict=False)) and tuple(at) not in seen:
            seen.add(tuple(at))
            yield list(zip(edges, edges[1:], strict=False))
    unit = NARROW if out.strides[axis] == out.itemsize and n >= 2 * NARROW * threads else 1
    edges = [min(n, stop * unit) for _, stop in shares(-(-n // unit), threads)]
    if tuple(edges[:-1]) not in seen:
        yield list(zip([0, *edges], edges, strict=False))


def _part(step: Step, kind: str, axis: int, lo: int, hi: int) -> Step:
    args: list[Any] = list(step.args)
    if kind == "map":
        rank = args[-1].ndim
        args = [_along(a, axis - rank + a.ndim, lo, hi) if isinstance(a, np.ndarray) else a for a in args]
        return Step(step.function, tuple(args), (args[-1],), args[-1])
    if kind == "product":
        a, b, out = args
        behind = axis - out.ndim
        if behind != -1:
            a = _along(a, a.ndim + behind, lo, hi)
        if behind != -2:
            b = _along(b, b.ndim + behind, lo, hi)
        out = _along(out, axis, lo, hi)
        return Step(step.function, (a, b, out), (out,))
    x, axes, _, out, *keep = args
    gone = {a % x.ndim for a in ((axes,) if isinstance(axes, int) else axes)}
    left = list(range(x.ndim)) if keep and keep[0] else [i for i in range(x.ndim) if i not in gone]
    args[0] = _along(x, left[axis], lo, hi)
    args[3] = _along(out, axis, lo, hi)
    return Step(step.function, tuple(args), (args[3],))


def _along(x: Array, axis: int, lo: int, hi: int) -> Array:
    """x[lo:hi] along an axis, if x has it and does not broadcast there."""
    if axis < 0 or x.shape[axis] == 1:
        return x
    return x[(*(slice(None),) * axis, slice(lo, hi))]
