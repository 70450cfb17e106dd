"""Matrix products and convolutions as one problem: out[grid, row, column] = sum over inner of left × right.

A `Problem` says how coordinates of the three tensors follow from a position in the grid, a row (of the left operand:
rows of a matrix, output channels), a column (of the right: columns of a matrix, pixels) and the inner counters.
kernels/tile.py computes it with a register tile of rows × columns per invocation.
"""

from emberlet.sizes.size import typical

from . import index as ix
from .reductions import window


class Problem:
    """rows, columns: extents; before, after: the grid's extents slower and faster than the row tiles; inner: extents
    of the inner counters, the last `unrolled` of which are short and written out; left(lowering, grid, row, inner),
    right(lowering, grid, column, inner): Values; out(grid, row, column): coordinates of the result; step: how far the
    right operand's position moves per column if neighboring columns share elements, else 0."""

    def __init__(self, rows, columns, before, after, inner, unrolled, left, right, out, step=0):
        self.rows = rows
        self.columns = columns
        self.before = before
        self.after = after
        self.inner = inner
        self.unrolled = unrolled
        self.left = left
        self.right = right
        self.out = out
        self.step = step

    def depth(self):
        n = 1
        for e in self.inner:
            n *= e
        return n

    def cells(self):
        """The number of results of the whole problem."""
        n = self.rows * self.columns
        for e in self.before:
            n *= e
        for e in self.after:
            n *= e
        return n


def problem(node):
    """The Problem of a matmul, conv or dot_bytes node."""
    return _matmul(node) if node.arg is None else _conv(node)


def _matmul(node):
    a, b = node.srcs
    shape = node.shape
    rows, columns, inner = shape[-2], shape[-1], a.shape[-1]
    lead = shape[:-2]
    if len(b.shape) == 2 and len(a.shape) > 2 and typical(rows) < 16:
        # All batches share one right-hand matrix, so the batch axes count as rows.
        total = 1
        for d in shape[:-1]:
            total *= d

        def left(lowering, grid, row, k):
            return lowering.value(a, ix.unflatten(row, a.shape[:-1]) + [k[0]])

        def right(lowering, grid, column, k):
            return lowering.value(b, [k[0], column])

        def out(grid, row, column):
            return ix.unflatten(row, shape[:-1]) + [column]

        return Problem(total, columns, (), (), (inner,), 0, left, right, out)

    def left(lowering, grid, row, k):
        return lowering.operand(a, list(grid) + [row, k[0]])

    def right(lowering, grid, column, k):
        return lowering.operand(b, list(grid) + [k[0], column])

    def out(grid, row, column):
        return list(grid) + [row, column]

    return Problem(rows, columns, lead, (), (inner,), 0, left, right, out)


def _is_product(node):
    """Whether a convolution is a product of matrices: each result reads one pixel."""
    stride, padding = node.arg[:2]
    kernel = node.srcs[1].shape[2:]
    for i in range(len(stride)):
        if kernel[i] != 1 or stride[i] != 1 or tuple(padding[i]) != (0, 0):
            return False
    return True


def _conv(node):
    x, weight = node.srcs
    stride, padding, dilation, groups = node.arg
    spatial = len(stride)
    rows = node.shape[1] // groups
    channels = weight.shape[1]
    kernel = weight.shape[2:]
    pixels = node.shape[2:]

    def left(lowering, grid, row, inner):
        return lowering.value(weight, [ix.add(ix.mul(grid[1], rows), row)] + list(inner))

    def channel(grid, inner):
        return ix.add(ix.mul(grid[1], channels), inner[0])

    if _is_product(node):
        columns = 1
        for d in pixels:
            columns *= d

        def right(lowering, grid, column, inner):
            return lowering.value(x, [grid[0], channel(grid, inner)] + ix.unflatten(column, pixels))

        def out(grid, row, column):
            return [grid[0], ix.add(ix.mul(grid[1], rows), row)] + ix.unflatten(column, pixels)

        def tap(lowering, grid, row, inner):
            return left(lowering, grid, row, list(inner) + [ix.ZERO] * spatial)

        return Problem(rows, columns, (node.shape[0], groups), (), (channels,), 0, tap, right, out)

    def right(lowering, grid, column, inner):
        at = [grid[0], channel(grid, inner)]
        places = list(grid[2:]) + [column]
        conditions = []
        for i in range(spatial):
            w = window(places[i], inner[1 + i], stride[i], padding[i], dilation[i])
            conditions.append((w, x.shape[2 + i]))
            at.append(w.bounded(0, x.shape[2 + i] - 1))
        value = lowering.value(x, at)
        return lowering.build.guard(conditions, value, lowering.build.const(0, value.type))

    def out(grid, row, column):
        return [grid[0], ix.add(ix.mul(grid[1], rows), row)] + list(grid[2:]) + [column]

    unrolled = 1 if kernel[-1] <= 7 else 0
    inner = (channels,) + tuple(kernel)
    return Problem(
        rows, pixels[-1], (node.shape[0], groups), pixels[:-1], inner, unrolled, left, right, out, stride[-1]
    )
