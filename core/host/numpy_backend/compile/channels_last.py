"""Convolution and pooling of images whose channels lie last in memory: products of (positions, elements that a position
sees) with (those, outputs). Other images are left to windows.py."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np

from ..elementwise import identity
from ..storage import Array
from ..windows import taps
from . import depthwise, few_rows, runs, windows, winograd
from .bias import in_product, with_ones
from .layout import from_last, is_last, to_last
from .steps import Writer
from .tracing import Call

SHORT = 64  # channels: with fewer, the bias is repeated for all positions, because its inner loop would be too short
REPEATED = 1 << 16  # maximum elements of a repeated bias


def conv(w: Writer, call: Call) -> Any:
    value = call.results[0]
    if value not in w.last:
        if runs.conv(w, call):
            return None
        return depthwise.conv(w, call) if depthwise.by_lines(call) else windows.conv(w, call)
    x, weight, bias, stride, padding, dilation, _ = call.args
    outputs, _, *kernel = weight.shape
    image = w.with_border(x, padding, 0)
    out = w.out(value)
    result = out
    target = windows.as_shape(to_last(out), (-1, outputs))
    if target is None:
        result = w.scratch(value.shape, out.dtype, last=True)
        target = to_last(result).reshape(-1, outputs)
    matrix = w.array(weight).reshape(outputs, -1, *kernel)
    row = None
    if winograd.fits(call):
        winograd.conv(w, call, image, result)
        if result is not out:
            w.copy(result, out)
        return None
    if in_product(call):
        row = w.array(bias).reshape(1, outputs)
        if max(kernel) == 1:
            whole = None if any(low or high for low, high in padding) else w.with_row(x)
            image, row = (image, None) if whole is None else (whole, row)
    if max(kernel) == 1:
        key: tuple[Any, ...] = (..., *(slice(None, None, s) for s in stride))
        _by_position(w, image[key], _weights(w, matrix, row, True), target)
    else:
        seen = windows.columns_of(image, kernel, stride, dilation)
        last = is_last(image) or (image.shape[1] == 1 and kernel[-1] > seen.shape[-1])  # the longer runs
        _by_lines(w, seen, _weights(w, matrix, row, last), target, last)
    if bias is not None and row is None:
        shift = w.array(bias)
        known = w.buffers.of(shift) is None
        column = shift.reshape(-1, *(1,) * len(kernel))
        w.map(np.add, result, _shift(shift, result.shape) if known else column, out)
    elif result is not out:
        w.copy(result, out)
    return None


def _weights(w: Writer, matrix: Array, row: Array | None, last: bool) -> Array:
    """(elements that a position sees, outputs) of weights (outputs, inputs, *kernel), with a bias as a last row.
    last: whether the inputs are the last axis of those elements."""
    out = (to_last(matrix) if last else matrix).reshape(len(matrix), -1)
    return np.ascontiguousarray((out if row is None else np.concatenate([out, row.T], axis=1)).T)


def _shift(bias: Array, shape: tuple[int, ...]) -> Array:
    """A constant bias that broadcasts over (n, c, *spatial)."""
    column = bias.reshape(-1, *(1,) * (len(shape) - 2))
    if len(bias) >= SHORT or math.prod(shape[1:]) > REPEATED:
        return column
    return from_last(np.broadcast_to(bias, (1, *shape[2:], len(bias))).copy())


def _by_position(w: Writer, seen: Array, matrix: Array, target: Array) -> None:
    columns = windows.as_shape(to_last(seen), (-1, len(matrix)))
    if columns is None:
        copied = w.scratch(seen.shape, seen.dtype, last=True)
        w.copy(seen, copied)
        columns = to_last(copied).reshape(-1, len(matrix))
    few_rows.product(w, columns, matrix, target)


def _by_lines(w: Writer, seen: Array, matrix: Array, target: Array, last: bool) -> None:
    """Multiply some lines of an image at a time, so that their columns stay cached. seen: (n, c, *kernel, *spatial)."""
    rank = seen.ndim // 2 - 1
    batch, lines = seen.shape[0], seen.shape[-rank]
    line = math.prod(seen.shape[seen.ndim - rank + 1 :])
    rows = len(matrix)
    if batch * lines * line * rows <= max(windows.BLOCK, matrix.size):  # every part would read all the weights again
        few_rows.product(w, _filled(w, seen, rows, last), matrix, target)
        return
    step = min(lines, max(windows.BLOCK // (rows * line), -(-winograd.POSITIONS // line)))
    for item, first in product(range(batch), range(0, lines, step)):
        key: tuple[Any, ...] = (slice(item, item + 1), ..., slice(first, first + step), *(slice(None),) * (rank - 1))
        columns = _filled(w, seen[key], rows, last)
        at = (item * lines + first) * line
        place = target[at : at + len(columns)]
        w.emit(np.matmul, columns, matrix, place, writes=(place,))


def _filled(w: Writer, part: Array, rows: int, last: bool) -> Array:
    """Columns as a matrix (positions, rows), with a 1 behind each where there is one row more."""
    rank = part.ndim // 2 - 1
    n, channels, *kernel = part.shape[: 2 + rank]
    spatial = part.shape[2 + rank :]
    within, over = range(2, 2 + rank), range(2 + rank, part.ndim)
    taps, positions = channels * math.prod(kernel), n * math.prod(spatial)
    if last:
        columns = with_ones(w, (positions, rows), taps, 1, part.dtype)
        place = columns[:, :taps].reshape(n, *spatial, *kernel, channels, copy=False)
        w.copy(part.transpose(0, *over, *within, 1), place)
        return columns
    lying = with_ones(w, (rows, positions), taps, 0, part.dtype)
    place = lying[:taps].reshape(channels, *kernel, n, *spatial, copy=False)
    w.copy(part.transpose(1, *within, 0, *over), place)
    return lying.T


def pool(w: Writer, call: Call) -> Any:
    """`pool`, in the order of additions of windows.py."""
    value = call.results[0]
    if value not in w.last:
        return windows.pool(w, call)
    op, x, kernel, stride, padding, dilation = call.args
    kind = w.array(x).dtype
    image = w.with_border(x, padding, identity("max", kind) if op == "max" else 0)
    combine = np.maximum if op == "max" else np.add
    if windows.pool_whole(w, call, combine, image):
        return None
    out = w.out(value)
    last = len(kernel) - 1
    for axis in range(len(kernel)):
        parts = taps(image, axis + 2, kernel[axis], stride[axis], dilation[axis])
        image = parts[0]
        for part in parts[1:]:
            target = image
            if image is parts[0]:
                target = out if axis == last else w.scratch(part.shape, kind, last=True)
            w.map(combine, image, part, target)
            image = target
    w.copy(image, out)
    return None
