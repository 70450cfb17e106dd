"""Reductions and scans over contiguous rows."""

from .. import dtypes
from ..shapes import reduced, size
from . import scalars
from .buffers import MICRO, build, code_of, flat
from .identities import identity


def _product(row):
    total = 1
    for v in row:
        total *= v
    return total


def _has_nan(row):
    for v in row:
        if v != v:
            return True
    return False


def largest(row):
    """max(row), but NaN if there is one."""
    total = sum(row)
    if total != total and _has_nan(row):  # a sum may also be NaN for infinities of both signs
        return total
    return max(row)


def smallest(row):
    """min(row), but NaN if there is one."""
    total = sum(row)
    if total != total and _has_nan(row):
        return total
    return min(row)


def _function(op, dtype):
    if op == "max":
        return largest if dtype.is_float else max
    if op == "min":
        return smallest if dtype.is_float else min
    found = {"sum": sum, "prod": _product, "any": any, "all": all}.get(op)
    if not found:
        from .lacking import no_kernel

        no_kernel("reduce " + op)
    return found


def rows(backend, x, axes, listed=True):
    """(values, length): x's elements with `axes` moved last, and the number of elements per reduction.

    listed: return a list, for callers that read it more than once.
    """
    kept = [i for i in range(len(x.shape)) if i not in axes]
    order = kept + list(axes)
    length = size([x.shape[a] for a in axes])
    if order != sorted(order):
        x = backend.permute(x, tuple(order))
    values = flat(x)
    if listed and not MICRO and code_of(x.dtype) is not None:
        values = values.tolist()
    return values, length


def reduce(backend, op, x, axes, keepdims):
    shape = reduced(x.shape, axes, keepdims)
    out = dtypes.bool if op in ("any", "all") else x.dtype
    count = size(shape)
    if not count:
        return backend.new(build(out, (), 0), out, shape)
    if not x.size:
        return backend.new(build(out, [identity(op, x.dtype)] * count, count), out, shape)
    function = _function(op, x.dtype)
    block = size(x.shape[axes[0] :]) if axes else 1
    step = size(x.shape[axes[-1] + 1 :]) if axes else 1
    if not MICRO and step > 1 and axes == tuple(range(axes[0], axes[-1] + 1)):
        # The elements of one reduction are `step` apart: a strided slice.
        values = flat(x)
        results = []
        for start in range(0, x.size, block):
            results += [function(values[i : start + block : step]) for i in range(start, start + step)]
    else:
        values, length = rows(backend, x, axes, op in ("max", "min"))
        results = [function(values[i : i + length]) for i in range(0, len(values), length)]
    return backend.new(build(out, results, count), out, shape)


def argreduce(backend, op, x, axis, keepdims):
    if op not in ("max", "min"):
        from .lacking import no_kernel

        no_kernel("argreduce " + op)
    values, length = rows(backend, x, (axis,))
    function = _function(op, x.dtype)
    results = []
    for i in range(0, len(values), length):
        row = values[i : i + length]
        best = function(row)
        j = 0
        if best == best:
            while row[j] != best:
                j += 1
        else:
            while row[j] == row[j]:
                j += 1
        results.append(j)
    shape = reduced(x.shape, (axis,), keepdims)
    return backend.new(build(dtypes.int64, results, len(results)), dtypes.int64, shape)


def cumulative(backend, op, x, axis):
    length = x.shape[axis]
    step = size(x.shape[axis + 1 :])
    values = list(flat(x))
    join = {"max": scalars.maximum, "min": scalars.minimum}.get(op)
    block = length * step
    for start in range(0, len(values), block or 1):
        for i in range(start + step, start + block):
            if op == "sum":
                values[i] += values[i - step]
            elif op == "prod":
                values[i] *= values[i - step]
            elif not join:
                from .lacking import no_kernel

                no_kernel("cumulative " + op)
            else:
                values[i] = join(values[i], values[i - step])
    return backend.new(build(x.dtype, values, len(values)), x.dtype, x.shape)
