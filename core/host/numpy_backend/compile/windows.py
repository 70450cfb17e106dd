"""Convolution and pooling: the border and the columns of an image are arrays that are there."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np

from ..elementwise import identity
from ..storage import WIDE, Array
from ..windows import taps
from .bias import in_product, with_ones
from .layout import is_last
from .steps import Writer
from .tracing import Call, Value

# Elements of the matrix of columns that is made and multiplied at a time.
BLOCK = 1 << 18
RUN = 1 << 14  # maximum bytes of an image that is pooled as one run of memory


def conv(w: Writer, call: Call) -> Any:
    x, weight, bias, stride, padding, dilation, groups = call.args
    value = call.results[0]
    if x.dtype.name in WIDE or not x.dtype.is_float or not math.prod(value.shape) or not math.prod(x.shape):
        return False
    if bias is not None and bias.dtype is not x.dtype:
        return False
    batch, (outputs, inputs, *kernel) = x.shape[0], weight.shape
    rows, spatial = inputs * math.prod(kernel), value.shape[2:]
    count = math.prod(spatial)
    image = w.with_border(x, padding, 0)
    matrix = w.array(weight)
    matrix = w.contiguous(matrix).reshape(groups, outputs // groups, rows)
    out = w.out(value)
    target = as_shape(out, (batch, groups, outputs // groups, count))
    result = out
    if target is None:
        result = w.scratch(value.shape, out.dtype)
        target = result.reshape(batch, groups, outputs // groups, count)
    if in_product(call):
        column = w.array(bias).reshape(1, outputs, 1)
        if max(kernel) > 1:
            matrix, bias = np.concatenate([matrix, column], -1), None
        else:
            whole = None if any(low or high for low, high in padding) else w.with_row(x)
            if whole is not None:
                matrix, bias, image = np.concatenate([matrix, column], -1), None, whole
    rows = matrix.shape[-1]
    if max(kernel) == 1:
        key: tuple[Any, ...] = (..., *(slice(None, None, s) for s in stride))
        seen = image[key]
        columns = as_shape(seen, (batch, groups, rows, count))
        if columns is None:
            columns = w.contiguous(seen).reshape(batch, groups, rows, count)
        _multiply(w, matrix, columns, target)
    else:
        whole = _by_lines(w, columns_of(image, kernel, stride, dilation), matrix, target, len(kernel))
        if whole is not None and type(x) is Value:
            w.columns[x, tuple(kernel), stride, padding, dilation] = whole[:, :, : inputs * math.prod(kernel)]
    if bias is not None:
        shift = w.contiguous(w.array(bias)).reshape(-1, *(1,) * len(spatial))
        w.map(np.add, result, shift, out)
    elif result is not out:
        w.copy(result, out)
    return None


def as_shape(x: Array, shape: tuple[int, ...]) -> Array | None:
    try:
        return np.reshape(x, shape, copy=False)
    except ValueError:
        return None


def _multiply(w: Writer, matrix: Array, columns: Array, target: Array) -> None:
    """target = matrix @ columns: (groups, m, rows), (batch, groups, rows, count), (batch, groups, m, count)."""
    if matrix.shape[0] == 1 and columns.shape[0] == 1:
        w.emit(np.matmul, matrix[0], columns[0, 0], target[0, 0], writes=(target[0, 0],))
    else:
        w.emit(np.matmul, matrix, columns, target, writes=(target,))


def _by_lines(w: Writer, columns: Array, matrix: Array, target: Array, rank: int) -> Array | None:
    """Some lines of the first spatial axis at a time, so that their columns stay in the cache; returns the columns of
    the whole batch, where they are computed at once."""
    batch, lines = columns.shape[0], columns.shape[-rank]
    line = math.prod(columns.shape[columns.ndim - rank + 1 :])
    groups, _, rows = matrix.shape
    taps = math.prod(columns.shape[1:-rank]) // groups
    whole = groups * rows * lines * line
    if batch * whole <= max(BLOCK, matrix.size):  # each part would read all the weights again
        if batch * groups == 1:
            matrixed = with_ones(w, (rows, lines * line), taps, 0, columns.dtype)[None, None]
            w.copy(columns, matrixed[:, :, :taps].reshape(columns.shape))
        else:
            matrixed = w.scratch((batch, groups, rows, lines * line), columns.dtype)
            _fill(w, columns, matrixed, taps)
        _multiply(w, matrix, matrixed, target)
        return matrixed
    step = max(1, min(lines, BLOCK // (groups * rows * line)))
    for item, first in product(range(batch), range(0, lines, step)):
        key: tuple[Any, ...] = (item, ..., slice(first, first + step), *(slice(None),) * (rank - 1))
        part = columns[key]
        count = part.shape[-rank] * line
        matrixed = w.scratch((1, groups, rows, count), columns.dtype)
        _fill(w, part, matrixed, taps)
        _multiply(w, matrix, matrixed, target[item : item + 1, :, :, first * line : first * line + count])
    return None


def _fill(w: Writer, columns: Array, matrixed: Array, taps: int) -> None:
    """Copy columns to where they are a matrix, with a row of 1 behind them if it has one more row."""
    w.copy(columns, matrixed[:, :, :taps].reshape(columns.shape))
    if taps < matrixed.shape[2]:
        w.copy(np.ones((), columns.dtype), matrixed[:, :, taps:])


def columns_of(x: Array, kernel: list[int], stride: tuple[int, ...], dilation: tuple[int, ...]) -> Array:
    """(n, c, *kernel, *spatial): for each tap of the kernel, the elements it sees."""
    sizes, steps = x.shape[2:], x.strides[2:]
    spatial = [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(sizes, kernel, stride, dilation, strict=True)]
    between_taps = [b * d for b, d in zip(steps, dilation, strict=True)]
    between_positions = [b * s for b, s in zip(steps, stride, strict=True)]
    return np.lib.stride_tricks.as_strided(
        x, (*x.shape[:2], *kernel, *spatial), (*x.strides[:2], *between_taps, *between_positions), writeable=False
    )


def pool(w: Writer, call: Call) -> Any:
    op, x, kernel, stride, padding, dilation = call.args
    if x.dtype.name in WIDE or type(x) is not Value or not math.prod(x.shape):
        return False
    kind = w.array(x).dtype
    image = w.with_border(x, padding, identity("max", kind) if op == "max" else 0)
    combine = np.maximum if op == "max" else np.add
    if pool_whole(w, call, combine, image):
        return None
    last = len(kernel) - 1
    for i in range(last):
        parts = taps(image, i + 2, kernel[i], stride[i], dilation[i])
        image = parts[0]
        for j, part in enumerate(parts[1:]):
            if not j:
                image = w.scratch(part.shape, kind)
            w.map(combine, parts[0] if not j else image, part, image)
    out = w.out(call.results[0])
    w.copy(_along_lines(w, combine, image, kernel[last], stride[last], dilation[last]), out)
    return None


def pool_whole(w: Writer, call: Call, combine: np.ufunc, image: Array) -> bool:
    """Pool a small image without gaps as one run of memory along each axis, which calls NumPy on fewer lines; results
    that mix two lines are left out. Returns whether it is such an image."""
    _, _, kernel, stride, _, dilation = call.args
    order = [0, *range(2, image.ndim), 1] if is_last(image) else list(range(image.ndim))
    memory = image.transpose(order)
    if memory.nbytes > RUN or not memory.flags.c_contiguous or max(kernel) == 1:
        return False
    seen = memory
    run = memory.reshape(-1)
    key: list[slice] = [slice(None), slice(None)]
    for axis, taps_, step, apart in zip(range(2, image.ndim), kernel, stride, dilation, strict=True):
        at = order.index(axis)
        shift = apart * math.prod(memory.shape[at + 1 :])
        used = run.size - shift * (taps_ - 1)
        if taps_ > 1:
            seen = w.scratch(memory.shape, memory.dtype)
            out = seen.reshape(-1)[:used]
            w.map(combine, run[:used], run[shift : shift + used], out)
            for i in range(2, taps_):
                w.map(combine, out, run[i * shift : i * shift + used], out)
            run = out
        count = call.results[0].shape[axis]
        key.append(slice(0, (count - 1) * step + 1, step))
    found = seen.transpose(np.argsort(order))[tuple(key)]
    value = call.results[0]
    users = w.users(value)
    if len(users) == 1 and users[0].op in ("relu", "clip", "grid"):
        w.put(value, found)  # which it reads as it lies
    else:
        w.copy(found, w.out(value))
    return True


def _along_lines(w: Writer, combine: np.ufunc, x: Array, kernel: int, stride: int, dilation: int) -> Array:
    """The last axis, as ../windows.py does it: all lines as one run of memory."""
    if kernel == 1:
        return x[..., ::stride]
    reach = dilation * (kernel - 1)
    count = (x.shape[-1] - reach - 1) // stride + 1
    flat = w.contiguous(x).reshape(-1)
    used = flat.size - reach
    out = w.scratch(x.shape, x.dtype)
    run = out.reshape(-1)[:used]
    w.map(combine, flat[:used], flat[dilation : dilation + used], run)
    for i in range(2, kernel):
        w.map(combine, run, flat[i * dilation : i * dilation + used], run)
    return out[..., : (count - 1) * stride + 1 : stride]
