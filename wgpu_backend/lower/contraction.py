"""Matrix products and convolutions as one problem: out[grid, row, column] = sum over inner of left × right.

A `Problem` says how coordinates of the three tensors follow from a position in the grid, a row (of the left operand:
rows of a matrix, output channels), a column (of the right: columns of a matrix, pixels) and the inner counters.
kernels/tile.py computes it with a register tile of rows × columns per invocation.
"""

from emberlet.shapes import size
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
        return size(self.inner)

    def cells(self):
        """The number of results of the whole problem."""
        return self.rows * self.columns * size(self.before) * size(self.after)


def problem(node, by_image=False):
    """The Problem of a matmul, conv or dot_bytes node. by_image: all pixels of an image are columns, and the batches of
    a product with one matrix are always rows, as kernels that copy panels of the right operand have it."""
    return _matmul(node, by_image) if node.arg is None else _conv(node, by_image)


def _matmul(node, by_image):
    a, b = node.srcs
    shape = node.shape
    rows, columns, inner = shape[-2], shape[-1], a.shape[-1]
    lead = shape[:-2]
    if len(b.shape) == 2 and len(a.shape) > 2 and (by_image or typical(rows) < 16):
        # All batches share one right-hand matrix, so the batch axes count as rows.

        def left(lowering, grid, row, k):
            return lowering.value(a, ix.unflatten(row, a.shape[:-1]) + [k[0]])

        def right(lowering, grid, column, k):
            return lowering.value(b, [k[0], column])

        def out(grid, row, column):
            return ix.unflatten(row, shape[:-1]) + [column]

        return Problem(size(shape[:-1]), columns, (), (), (inner,), 0, left, right, out)

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


def _conv(node, by_image):
    x, weight = node.srcs
    stride, padding, dilation, groups = node.arg
    spatial = len(stride)
    rows = node.shape[1] // groups
    channels = weight.shape[1]
    pixels = node.shape[2:]
    product = not by_image and _is_product(node)

    def taps(inner):
        return list(inner) + [ix.ZERO] * spatial if product else list(inner)

    def places(grid, column):
        return ix.unflatten(column, pixels) if by_image or product else list(grid[2:]) + [column]

    def left(lowering, grid, row, inner):
        return lowering.value(weight, [ix.add(ix.mul(grid[1], rows), row)] + taps(inner))

    def right(lowering, grid, column, inner):
        inner, at = taps(inner), places(grid, column)
        found = [grid[0], ix.add(ix.mul(grid[1], channels), inner[0])]
        conditions = []
        for i in range(spatial):
            w = window(at[i], inner[1 + i], stride[i], padding[i], dilation[i])
            conditions.append((w, x.shape[2 + i]))
            found.append(w.bounded(0, x.shape[2 + i] - 1))
        value = lowering.value(x, found)
        if product:
            return value
        return lowering.build.guard(conditions, value, lowering.build.const(0, value.type))

    def out(grid, row, column):
        return [grid[0], ix.add(ix.mul(grid[1], rows), row)] + places(grid, column)

    before, inner = (node.shape[0], groups), tuple(weight.shape[1:])
    if by_image or product:
        return Problem(rows, size(pixels), before, (), inner[:1] if product else inner, 0, left, right, out)
    unrolled = 1 if inner[-1] <= 7 else 0
    return Problem(rows, pixels[-1], before, pixels[:-1], inner, unrolled, left, right, out, stride[-1])
