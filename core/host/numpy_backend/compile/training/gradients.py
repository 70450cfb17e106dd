"""Backward passes of convolution and pooling (../../gradients.py), and indexing, into arrays that are there."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...elementwise import SCATTER, WORDS
from ...gradients import inside, views, with_border
from ...storage import NARROW, WIDE, Array
from ..steps import Writer, copy_elements, part
from ..tracing import Call, Value
from ..windows import BLOCK, as_shape, columns_of

SHORT = 64  # elements of a line
LARGEST = 8 * BLOCK  # elements of the columns of a whole batch; more are computed image by image


def _fits(call: Call) -> bool:
    x = call.args[0]
    return x.dtype.is_float and x.dtype.name not in WIDE and bool(math.prod(x.shape)) and not call.open


def conv_input(w: Writer, call: Call) -> Any:
    g, weight, shape, stride, padding, dilation, groups = call.args
    if not _fits(call) or not math.prod(shape):
        return False
    batch, outputs, *spatial = g.shape
    inputs, kernel = weight.shape[1], weight.shape[2:]
    rows, count = inputs * math.prod(kernel), math.prod(spatial)
    matrix = w.contiguous(w.array(weight)).reshape(groups, outputs // groups, rows).swapaxes(1, 2)
    bordered = with_border(shape, padding)
    given, whole = w.array(g), w.scratch(bordered, w.array(g).dtype)
    w.emit(fill, whole, 0, writes=(whole,))
    # Where lines are short, each gets zeros behind it up to the length of a line of the result, so that all lines of an
    # image are one run.
    runs = len(kernel) == 2 and set(stride) == {1} and bordered[-1] <= SHORT and type(g) is Value
    if runs and spatial[1] < bordered[-1]:
        around = (*((0, 0),) * 3, (0, bordered[-1] - spatial[1]))
        longer, middle = w.padded(g, around, 0)
        w.copy(given, middle)
        given, spatial = longer, [spatial[0], bordered[-1]]
        count = math.prod(spatial)
    given = w.contiguous(given).reshape(batch, groups, outputs // groups, count)
    step = batch if batch * groups * rows * count <= LARGEST else 1
    for first in range(0, batch, step):
        columns = w.scratch((step, groups, rows, count), given.dtype)
        w.emit(np.matmul, matrix, given[first : first + step], columns, writes=(columns,))
        part_of = whole[first : first + step]
        if runs:
            flat = part_of.reshape(step, groups * inputs, -1, copy=False)
            seen = columns.reshape(step, groups * inputs, *kernel, count)
            for i, j in np.ndindex(*kernel):
                at, length = i * dilation[0] * spatial[1] + j * dilation[1], count - j * dilation[1]
                view = flat[:, :, at : at + length]
                w.map(np.add, view, seen[:, :, i, j, :length], view)
            continue
        seen = columns.reshape(step, groups * inputs, *kernel, *spatial)
        for tap, view in views(part_of, kernel, stride, dilation, tuple(spatial)):
            w.map(np.add, view, part(seen, (slice(None), slice(None), *tap)), view)
    w.put(call.results[0], whole[inside(shape, padding)])
    return None


def conv_weight(w: Writer, call: Call) -> Any:
    x, g, shape, stride, padding, dilation, groups = call.args
    if not _fits(call) or not math.prod(shape) or not math.prod(g.shape):
        return False
    outputs, inputs, *kernel = shape
    batch, _, *spatial = g.shape
    rows, count = inputs * math.prod(kernel), math.prod(spatial)
    columns = w.columns.get((x, tuple(kernel), stride, padding, dilation)) if type(x) is Value else None
    if columns is not None and columns.shape[-1] != count:
        columns = None
    given = w.contiguous(w.array(g)).reshape(batch, groups, outputs // groups, count)
    out = w.out(call.results[0])
    target = as_shape(out, (groups, outputs // groups, rows))
    if target is None:
        target = w.scratch((groups, outputs // groups, rows), out.dtype)
    if columns is None:
        seen = columns_of(w.with_border(x, padding, 0), kernel, stride, dilation)
        used: tuple[Any, ...] = (..., *map(slice, spatial))  # no windows behind the last one
        seen = seen[used]
        step = batch if batch * groups * rows * count <= LARGEST else 1
    else:
        step = batch
    step = step if batch * target.size <= BLOCK else 1
    for first in range(0, batch, step):
        lines = given[first : first + step]
        if columns is None:
            some = w.scratch((step, groups, rows, count), given.dtype)
            part_of = seen[first : first + step]
            w.copy(part_of, some.reshape(part_of.shape, copy=False))
        else:
            some = columns[first : first + step]
        products = w.scratch((step, *target.shape), target.dtype) if first or step > 1 else target[None]
        w.emit(np.matmul, lines, some.swapaxes(2, 3), products, writes=(products,))
        if step > 1:
            w.emit(np.add.reduce, products, (0,), target.dtype, target, False, writes=(target,))
        elif first:
            w.map(np.add, target, products[0], target)
    w.copy(target.reshape(shape, copy=False), out)
    return None


def fill(out: Array, value: float) -> None:
    """out[...] = value."""
    out.fill(value)


def max_pool(w: Writer, call: Call) -> Any:
    x, y, g, kernel, stride, padding, dilation = call.args
    if not _fits(call):
        return False
    image = w.with_border(x, padding, -math.inf)
    result, given = w.array(y), w.array(g)
    bordered = with_border(x.shape, padding)
    whole = w.scratch(bordered, given.dtype)
    disjoint = all(s >= d * (k - 1) + 1 for k, s, d in zip(kernel, stride, dilation, strict=True))
    covered = zip(bordered[2:], y.shape[2:], kernel, stride, strict=True)
    if not disjoint or any(k != s or n * k != size for size, n, k, s in covered):
        w.emit(fill, whole, 0, writes=(whole,))
    # With bits, as `where` of ../lowering.py: masked assignments of NumPy take several times as long.
    word = np.dtype(WORDS[given.itemsize])
    hit, free = (w.scratch(y.shape, np.dtype(bool)) for _ in range(2))
    mask = w.scratch(y.shape, word)
    places = list(views(whole, kernel, stride, dilation, y.shape[2:]))
    for k, (_, seen) in enumerate(views(image, kernel, stride, dilation, y.shape[2:])):
        w.map(np.equal, seen, result, hit)
        if k:
            w.map(np.logical_and, hit, free, hit)
            w.map(np.greater, free, hit, free)
        else:
            w.map(np.logical_not, hit, free)
        w.map(copy_elements, hit.view(np.int8), mask)
        w.map(np.negative, mask, mask)
        place = places[k][1]
        w.map(np.bitwise_and, given.view(word), mask, place.view(word) if disjoint else mask)
        if not disjoint:
            w.map(np.add, place, mask.view(given.dtype), place)
    w.put(call.results[0], whole[inside(x.shape, padding)])
    return None


def gather(w: Writer, call: Call) -> Any:
    x, indices, axis = call.args
    if call.open or x.dtype.kind == "string":
        return False
    out = w.out(call.results[0])
    w.emit(gather_into, w.array(x), _key(w, indices, axis), out, writes=(out,))
    return None


def _key(w: Writer, indices: Any, axis: int) -> list[Array]:
    key: list[Array] = list(np.ogrid[tuple(slice(n) for n in indices.shape)])
    key[axis] = w.array(indices)
    return key


def gather_into(x: Array, key: list[Array], out: Array) -> None:
    """out[...] = x[key]."""
    np.copyto(out, x[tuple(key)])


def scatter(w: Writer, call: Call) -> Any:
    x, indices, updates, axis, op = call.args
    if call.open or x.dtype.kind == "string" or x.dtype.name in NARROW or x.dtype.name in WIDE:
        return False
    out = w.out(call.results[0])
    once = indices.shape[axis] == 1  # then no place is met twice
    key = _key(w, indices, axis)
    w.emit(scatter_into, w.array(x), key, w.array(updates), SCATTER.get(op), once, out, writes=(out,))
    return None


def scatter_into(x: Array, key: list[Array], values: Array, ufunc: Any, once: bool, out: Array) -> None:
    """out[...] = x, then out[key] combined with the values."""
    np.copyto(out, x)
    place = tuple(key)
    if ufunc is None:
        out[place] = values
    elif once:
        out[place] = ufunc(out[place], values)
    else:
        ufunc.at(out, place, values)
