"""Depthwise convolutions: one filter per channel, its taps in registers, over tiles of four rows by four columns.

Each vector of the image is loaded once for all rows of the tile that use it. Borders are stored with the image
(prepare.py), so no tap needs an edge test. Where many channels are shared by threads, and vectors are longer than four,
each thread computes a channel inside a border of zeros instead, which stays in its cache; of each line the even columns
first, if the filter moves by two. Integers of at most 16 bits lie in words of 32, which i32x4.dot_i16x8_s multiplies
with taps: in such a channel each word has the number below in its upper half, for the tap below; elsewhere the upper
halves meet zeros.
"""

from emberlet.sizes.size import is_open

from ...lower import index as ix
from ...lower.lowering import Lowering
from ...lower.reductions import window
from ...run import storage
from ..assembler import f32x4, i32, i32x4, memory, op
from . import split
from .nest import begin, finish

ROWS = 4  # of a tile
TAPS = 49  # taps of the largest filter, all of which are unrolled
PLANE = 1 << 18  # bytes of the largest channel that is copied
_EVEN = bytes((0, 1, 2, 3, 8, 9, 10, 11, 20, 21, 22, 23, 28, 29, 30, 31))  # 0 and 2 of one vector, 1 and 3 of another


def takes_pad(node):
    """Whether a "conv" node's kernel adds the border of its picture itself: zeros, around the height and the width."""
    x, weight = node.srcs
    stride, padding, _, groups = node.arg
    floats = node.dtype.kind == "float" and storage.word(x.dtype) == "f32"
    if x.op != "pad" or not (floats or _is_integers(node)) or len(stride) != 2:
        return False
    if [d for d in node.shape + x.shape + weight.shape if is_open(d)] or [p for p in padding if p != (0, 0)]:
        return False
    height, width = weight.shape[2:]
    inside = x.srcs[0].shape[-1]
    return (
        groups > 1
        and weight.shape[1] == 1
        and weight.shape[0] == groups
        and height * width <= TAPS
        and stride[-1] <= 2
        and min(node.shape[-1], inside) >= 4
        and node.shape[0] * groups >= split.ENOUGH
        and 4 * x.shape[2] * x.shape[3] <= PLANE
        and _adds_zeros(x)
    )


def _adds_zeros(pad):
    """Whether a "pad" node adds zeros around the last two of four axes, and nothing else."""
    (batch, channels, rows, columns), value = pad.arg
    borders = batch == channels == (0, 0) and min(rows + columns) >= 0
    return borders and not is_open(value) and value == 0


def _is_integers(node):
    """Whether a convolution sums products of int16 in int32."""
    return node.dtype.name == "int32" and node.srcs[0].dtype.name == node.srcs[1].dtype.name == "int16"


def depthwise(item, stored, name, options):
    """The Kernel of a "conv" item with one input and output channel per group, or None if it does not qualify."""
    node = item.anchor
    weight = node.srcs[1]
    stride, padding, _, groups = node.arg
    if (node.dtype.kind != "float" and not _is_integers(node)) or len(stride) not in (1, 2):
        return None
    if [d for d in node.shape[1:] + weight.shape if is_open(d)]:
        return None
    if groups == 1 or weight.shape[1] != 1 or weight.shape[0] != groups or [p for p in padding if p != (0, 0)]:
        return None
    taps = 1
    for d in weight.shape[2:]:
        taps *= d
    if node.shape[-1] < options.lanes or stride[-1] > 2 or taps > TAPS:
        return None
    writer = _Depthwise(item, stored, options)
    return writer.kernel(name) if writer.serves() else None


class _Depthwise:
    def __init__(self, item, stored, options):
        node = item.anchor
        x, weight = node.srcs
        stride, _, dilation, self.groups = node.arg
        self.options = options
        self.low = low = Lowering(item, stored)
        self.grid_count = node.shape[0] * self.groups
        self.height = node.shape[2] if len(stride) == 2 else 1
        self.width = node.shape[-1]
        self.kernel_shape = (weight.shape[2] if len(stride) == 2 else 1, weight.shape[-1])
        grid = ix.unflatten(ix.counter("grid", self.grid_count), (node.shape[0], self.groups))
        places = [ix.counter("row", self.height), ix.counter("column", self.width)][-len(stride) :]
        taps = [ix.counter("k0", self.kernel_shape[0]), ix.counter("k1", self.kernel_shape[1])][-len(stride) :]
        at = list(grid)
        for i in range(len(stride)):
            w = window(places[i], taps[i], stride[i], (0, 0), dilation[i])
            at.append(w.bounded(0, x.shape[2 + i] - 1))
        self.filter = low.value(weight, [grid[1], ix.ZERO] + taps)
        self.word = "f32" if node.dtype.kind == "float" else "i32"
        self.plane = None  # the bytes of a channel with its border, if the kernel copies it
        self.together = 1  # lines of taps that a word's halves are multiplied with
        if id(x) not in stored and takes_pad(node):
            self._lay_out(x, grid, stride, dilation)
        else:
            self.image = low.value(x, at)
        value = low.build.make("variable", self.word, (), "sum")
        self.result, self.store = low.place(list(grid) + places, low.round(value, node.dtype))

    def _lay_out(self, x, grid, stride, dilation):
        """The lines of a channel's plane. parts: (value of a pixel, their number in a line, the place of the first
        one), for the columns from one step of the filter to the next."""
        height, width = x.srcs[0].shape[2:]
        (above, _), (before, _) = x.arg[0][2:]
        self.inside = height
        self.above = above
        self.by = (stride, dilation)
        self.apart = apart = stride[1] if width >= stride[1] * self.options.lanes else 1
        self.half = (x.shape[3] + apart - 1) // apart
        self.line = apart * self.half
        self.plane = 4 * x.shape[2] * self.line
        if self.word == "i32" and dilation[0] == 1 and self.kernel_shape[0] > 1:
            self.together = 2
        self.parts = []
        for first in range(apart):
            count = (width - first + apart - 1) // apart
            column = ix.add(ix.mul(ix.counter("x", count), apart), ix.const(first))
            pixel = self.low.value(x.srcs[0], list(grid) + [ix.counter("y", height), column])
            self.parts.append((pixel, count, self._in_line(before + first)))

    def _in_line(self, column):
        """The place of a column in a line of the plane."""
        return column % self.apart * self.half + column // self.apart

    def serves(self):
        """Whether image and filter are read from memory at linear positions."""
        if self.filter.op != "load" or (not self.plane and self.image.op != "load"):
            return False
        types = self.low.slots.types
        read = [self.filter] if self.plane else [self.image, self.filter]
        if self.word == "i32" and [1 for v in read if types[v.attr[0]] != "i32"]:
            return False
        e = begin("", self.low.slots)
        if self.plane:
            return self._serves_plane(e)
        self.steps = [e.coefficient(self.image.attr[1], n) for n in ("row", "column", "k0", "k1")]
        self.taps = [e.coefficient(self.filter.attr[1], n) for n in ("k0", "k1")]
        for step in self.steps + self.taps:
            if step is None or not 0 <= step < 1 << 20:
                return False
        return self.steps[1] in (1, 2)

    def _serves_plane(self, e):
        """`serves` where the kernel computes the image in a plane."""
        self.taps = [e.coefficient(self.filter.attr[1], n) for n in ("k0", "k1")]
        (down, right), (below, _) = self.by
        self.steps = [down * self.line, right // self.apart, below * self.line]
        few = min([count for _, count, _ in self.parts]) < self.options.lanes
        return None not in self.taps and min(self.taps) >= 0 and not few

    def kernel(self, name):
        slots = self.low.slots
        self.e = e = begin(name, slots, self.options.lanes)
        self.f = e.f
        rows = min(ROWS, self.height)
        wide = e.lanes
        tiles, panels = (self.height + rows - 1) // rows, (self.width + wide - 1) // wide
        shared = split.chosen([self.grid_count, tiles, panels])
        e.f.work = self.grid_count * self.height * self.width * self.kernel_shape[0] * self.kernel_shape[1] // 4
        if self.plane:
            self._clear()
        e.loop("grid", self.grid_count, split=shared == 0)
        if self.plane:
            self._copy()
        weights = self._weights()
        e.loop("tile", self.height, rows, clamp=self.height - rows if self.height % rows else None, split=shared == 1)
        clamp = self.width - wide if self.width % wide else None
        e.loop("panel", self.width, wide, clamp=clamp, split=shared == 2)
        self._tile(e.counters["tile"][0], e.counters["panel"][0], rows, weights)
        for _ in range(3):
            e.close()
        return finish(e, name, slots)

    def _clear(self):
        """Fill a thread's plane with zeros, of which the border stays."""
        e, f = self.e, self.f
        whole = (self.plane + 4 * e.lanes - 1) // (4 * e.lanes) * 4 * e.lanes
        f.scratch = whole
        e.loop("cleared", whole, 4 * e.lanes)
        f.do(memory("v128.store", op("i32.add", e.addresses["scratch"], e.counters["cleared"][0]), f32x4(0.0)))
        e.close()

    def _copy(self):
        """Compute a channel in the plane."""
        e, f = self.e, self.f
        counts = [count for _, count, _ in self.parts]
        groups = [self.parts] if counts[0] == counts[-1] else [[part] for part in self.parts]
        for parts in groups:
            count = parts[0][1]
            e.loop("x", count, e.lanes, clamp=count - e.lanes if count % e.lanes else None)
            to = f.local("i32")
            f.set(to, op("i32.add", e.addresses["scratch"], op("i32.shl", e.counters["x"][0], i32(2))))
            f.set(to, op("i32.add", f.get(to), i32(4 * self.above * self.line)))
            e.lane = "x"
            if self.together == 2:
                self._copy_pairs(parts, to)
            else:
                e.loop("y", self.inside)
                self._put(to, parts, [e.vector(pixel) for pixel, _, _ in parts])
                e.close()
            e.lane = None
            e.close()

    def _put(self, to, parts, vectors):
        """Store vectors of a line at the address in a local, which then has the next line's."""
        f = self.f
        for (_, _, place), vector in zip(parts, vectors):
            f.do(memory("v128.store", f.get(to), vector, offset=4 * place))
        f.set(to, op("i32.add", f.get(to), i32(4 * self.line)))

    def _copy_pairs(self, parts, to):
        """Store vectors of each line, beside those of the next one."""
        e, f = self.e, self.f
        last = [f.local("v128") for _ in parts]

        def lower():
            return [op("v128.and", f.get(n), i32x4(0xFFFF)) for n in last]

        e.block()
        e.bind("y", i32(0))
        for n, (pixel, _, _) in zip(last, parts):
            f.set(n, e.vector(pixel))
        e.close()
        if self.above:
            f.set(to, op("i32.sub", f.get(to), i32(4 * self.line)))
            self._put(to, parts, [op("i32x4.shl", f.get(n), i32(16)) for n in last])
        if self.inside > 1:
            e.loop("y", self.inside, 1, 1)
            below = [f.let(e.vector(pixel)) for pixel, _, _ in parts]
            upper = [op("i32x4.shl", vector, i32(16)) for vector in below]
            self._put(to, parts, [op("v128.or", a, b) for a, b in zip(lower(), upper)])
            for n, vector in zip(last, below):
                f.set(n, vector)
            e.close()
        self._put(to, parts, lower())

    def _weights(self):
        """The taps of the channel, or two of a column, each broadcast to a vector."""
        e, f = self.e, self.f
        height, width = self.kernel_shape
        slot, index = self.filter.attr
        e.block()
        e.bind("k0", i32(0))
        e.bind("k1", i32(0))
        at = f.local("i32")
        f.set(at, e.index(index, 4, e.addresses[slot]))
        e.close()
        out = {}
        for k0 in range(0, height, self.together):
            for k1 in range(width):
                offset = 4 * (k0 * self.taps[0] + k1 * self.taps[1])
                if self.word == "f32":
                    tap = memory("v128.load32_splat", f.get(at), offset=offset)
                else:
                    tap = memory("i32.load16_u", f.get(at), offset=offset)
                    if self.together == 2 and k0 + 1 < height:
                        below = memory("i32.load16_u", f.get(at), offset=offset + 4 * self.taps[0])
                        tap = op("i32.or", tap, op("i32.shl", below, i32(16)))
                    tap = op("i32x4.splat", tap)
                out[k0, k1] = f.let(tap)
        return out

    def _tile(self, first_row, first_column, rows, weights):
        """Sum and store a tile."""
        e, f = self.e, self.f
        by_row, by_column, by_k0 = self.steps[:3]
        sums = [f.local("v128") for _ in range(rows)]
        for s in sums:
            f.set(s, f32x4(0.0))
        at = f.local("i32")
        f.set(at, self._place(first_row, first_column))
        # {offset of a vector: the rows and taps that use it}.
        served = {}
        for r in range(rows):
            for k0, k1 in weights:
                across = self._in_line(k1 * self.by[1][1]) if self.plane else k1 * self.steps[3]
                place = r * by_row + k0 * by_k0 + across
                served.setdefault(place, []).append((r, k0, k1))
        for place in sorted(served):
            four = self._four(f.get(at), 4 * place, by_column)
            if len(served[place]) > 1:
                four = f.let(four)
            for r, k0, k1 in served[place]:
                f.set(sums[r], self._multiplied(four, weights[k0, k1], f.get(sums[r])))
        word = self.low.slots.result.word
        for r in range(rows):
            e.block()
            e.bind("row", f.let(op("i32.add", first_row, i32(r))))
            e.bind("column", first_column)
            e.lane = "column"
            e.define("sum", f.get(sums[r]), True)
            e.store_four(self.store, self.result, word)
            e.lane = None
            e.close()

    def _place(self, row, column):
        """The address of a result's first tap."""
        e, f = self.e, self.f
        if self.plane:
            by_row, by_column = self.steps[:2]
            place = op("i32.add", op("i32.mul", row, i32(4 * by_row)), op("i32.mul", column, i32(4 * by_column)))
            return op("i32.add", e.addresses["scratch"], place)
        slot, index = self.image.attr
        e.block()
        for name, value in (("row", row), ("column", column), ("k0", i32(0)), ("k1", i32(0))):
            e.bind(name, value)
        at = f.let(e.index(index, 4, e.addresses[slot]))
        e.close()
        return at

    def _four(self, at, offset, step):
        first = memory("v128.load", at, offset=offset)
        if step == 1:
            return first
        # Elements 0, 2, 4 and 6, and none beyond: the memory may end there.
        second = memory("v128.load", at, offset=offset + 4 * (self.e.lanes - 1))
        if self.e.lanes != 4:
            return op("v128.even_odd", first, second)
        return op("i8x16.shuffle", first, second, imm=_EVEN)

    def _multiplied(self, a, b, c):
        if self.word == "i32":
            return op("i32x4.add", c, op("i32x4.dot_i16x8_s", a, b))
        if self.options.relaxed:
            return op("f32x4.relaxed_madd", a, b, c)
        return op("f32x4.add", c, op("f32x4.mul", a, b))
