"""Convolutions of integers of at most 16 bits that read a copy of the picture, with vectors longer than four.

A word of the copy has a pixel of two neighboring channels, so that a vector of words, beside the weights of these
channels, is a step of eight results or more (integers.py). The picture is copied once, not once for each tap; where the
filter moves by two, the even columns of a line lie before the odd ones.
"""

from emberlet.shapes import size
from emberlet.sizes.size import is_open

from ....lower import index as ix
from ....lower.contraction import problem
from ...assembler import i32, i32x4, memory, op, select
from ..contraction import LINE, Contraction, _rows_of_tiles, fixed
from ..nest import begin, finish
from ..pairs import Pairs

TAPS = 25  # whose products are written out
ROWS = 4  # of a tile: a product takes a register beside its operands, and x86 has 16 in all
_PICTURE = 1 << 17  # bytes of the largest copy


def direct_integers(item, stored, name, options):
    """The Kernel of a "conv" item with operands in int16 and sums in int32, or None if others are better."""
    node = item.anchor
    if node.op != "conv" or node.dtype.name != "int32" or node.srcs[0].dtype.name != "int16" or options.lanes == 4:
        return None
    what, stride = problem(node, True), node.arg[0]
    picture = node.srcs[0].shape
    if not fixed(what) or [d for d in picture[2:] if is_open(d)] or len(stride) != 2 or stride[1] > 2:
        return None
    if [p for p in node.arg[1] if p != (0, 0)] or not 2 <= size(what.inner[1:]) <= TAPS or what.rows < 2:
        return None
    if node.shape[-1] % options.lanes or what.columns < 2 * options.lanes:
        return None
    writer = _Direct(item, stored, what, options)
    return writer.kernel(name) if writer.serves() else None


class _Direct(Pairs, Contraction):
    type = "i32"
    tails = False
    direct = True

    def __init__(self, item, stored, what, options):
        Contraction.__init__(self, item, stored, what, options)
        self.rows = _rows_of_tiles(what.rows, min(options.rows, ROWS), self.lanes)
        self.many = 2 * self.lanes  # numbers of 16 bits in a vector
        self.channels, *self.taps = what.inner
        self.pairs = (self.channels + 1) // 2
        height, width = self.node.srcs[0].shape[2:]
        self.apart = self.node.arg[0][1]
        self.half = (width + self.apart - 1) // self.apart
        self.picture = (height, self.apart * self.half)
        self.plane = 4 * height * self.apart * self.half  # bytes of two channels
        self.parts = []  # (the value of a pixel, their number in a line, the place of the first one)
        for first in range(self.apart):
            count = (width - first + self.apart - 1) // self.apart
            column = ix.add(ix.mul(ix.counter("x", count), self.apart), ix.const(first))
            channel = ix.add(ix.mul(self.grid[1], self.channels), ix.counter("c", self.channels))
            place = [self.grid[0], channel, ix.counter("y", height), column]
            self.parts.append((self.low.value(self.node.srcs[0], place), count, first * self.half))

    def serves(self):
        """Whether the weights of a row follow each other in memory, the copy stays in the caches, and its lines are no
        shorter than a vector."""
        self.e = begin("", self.low.slots, self.lanes)
        few = min([count for _, count, _ in self.parts]) < self.lanes
        return not few and self.pairs * self.plane <= _PICTURE and self._left_in_memory()

    def kernel(self, name):
        slots = self.low.slots
        self.e = e = begin(name, slots, self.lanes)
        self.f = f = e.f
        width = self.lanes * self.vectors
        panels = (self.what.columns + width - 1) // width
        taps = size(self.taps)
        self.line = 4 * self.pairs * taps + LINE
        behind = self.pairs * self.plane + 4 * self.lanes  # what the last line may write behind itself
        f.scratch = behind + self.rows * self.line + 4 * self.many
        self._share(panels)
        f.repeats = self.shared != 0
        self._open_grid()
        self.panels_at, self.panel_bytes = e.addresses["scratch"], 0
        self.left_copy = f.let(op("i32.add", e.addresses["scratch"], i32(behind)))
        self._copy_picture()
        self._blocks(panels, panels, None)
        e.close()
        return finish(e, name, slots)

    # -- copies ---------------------------------------------------------------------------------------------------

    def _copy_picture(self):
        """Copy the picture of a group."""
        e, f = self.e, self.f
        height, line = self.picture
        e.loop("pair", self.pairs)
        pair = e.counters["pair"][0]
        first = f.let(op("i32.shl", pair, i32(1)))
        plane = f.let(op("i32.add", e.addresses["scratch"], op("i32.mul", pair, i32(self.plane))))
        second = None
        if self.channels % 2:
            odd = f.let(op("i32.eq", first, i32(self.channels - 1)))
            second = f.let(op("i32.sub", op("i32.add", first, i32(1)), odd))  # whose weights are zeros
        e.loop("y", height)
        to = f.let(op("i32.add", plane, op("i32.mul", e.counters["y"][0], i32(4 * line))))
        for pixel, count, place in self.parts:
            e.loop("x", count, self.lanes, clamp=count - self.lanes if count % self.lanes else None)
            low = self._pixels(pixel, first)
            high = self._pixels(pixel, f.let(op("i32.add", first, i32(1))) if second is None else second)
            word = op("v128.or", op("v128.and", low, i32x4(0xFFFF)), op("i32x4.shl", high, i32(16)))
            at = op("i32.add", to, op("i32.shl", e.counters["x"][0], i32(2)))
            f.do(memory("v128.store", at, word, offset=4 * place))
            e.close()
        e.close()
        e.close()

    def _pixels(self, pixel, channel):
        """A vector of pixels of a channel."""
        e = self.e
        e.block()
        e.bind("c", channel)
        e.lane = "x"
        out = self.f.let(e.vector(pixel))
        e.lane = None
        e.close()
        return out

    def _copy_left(self, first_row):
        """Copy the weights of a tile's rows, those of two channels side by side."""
        e, f = self.e, self.f
        taps = size(self.taps)
        e.loop("copied", self.rows)
        e.bind("row", f.let(op("i32.add", first_row, e.counters["copied"][0])))
        to = f.local("i32")
        f.set(to, op("i32.add", self.left_copy, op("i32.mul", e.counters["copied"][0], i32(self.line))))

        # A vector may reach behind its channel, but not behind the weights.
        behind = (taps + self.many - 1) // self.many * self.many - taps
        whole = max(0, (self.channels * taps - behind) // (2 * taps))
        if whole:
            e.loop("pair", whole)
            first = f.let(op("i32.mul", e.counters["pair"][0], i32(2 * taps)))
            for begin in range(0, taps, self.many):
                at = [f.let(op("i32.add", first, i32(begin + n * taps))) for n in range(2)]
                low, high = [self._eight_of(self.left, "k", k) for k in at]
                for v in range(2):
                    offset = 4 * (begin + self.lanes * v)
                    f.do(memory("v128.store", f.get(to), self._pair(low, high, v), offset=offset))
            f.set(to, op("i32.add", f.get(to), i32(4 * taps)))
            e.close()
        if whole < self.pairs:
            e.loop("rest", self.pairs, 1, whole)
            first = f.let(op("i32.mul", e.counters["rest"][0], i32(2 * taps)))
            e.loop("tap", taps)
            k = f.let(op("i32.add", first, e.counters["tap"][0]))
            f.do(memory("i32.store16", f.get(to), self._weight(k)))
            if self.channels % 2 and whole == self.pairs - 1:
                f.do(memory("i32.store16", f.get(to), i32(0), offset=2))
            else:
                last = i32(self.channels * taps)
                beside = f.let(op("i32.add", k, i32(taps)))
                inside = op("i32.lt_u", beside, last)
                other = self._weight(f.let(select(inside, beside, k)))
                f.do(memory("i32.store16", f.get(to), op("i32.mul", other, inside), offset=2))
            f.set(to, op("i32.add", f.get(to), i32(4)))
            e.close()
            e.close()
        e.close()

    def _weight(self, k):
        """The weight of a term of the row that is bound."""
        e = self.e
        e.block()
        e.bind("k", k)
        out = self.f.let(e.scalar(self.left))
        e.close()
        return out

    # -- tiles ----------------------------------------------------------------------------------------------------

    def _tile(self, first_row):
        """Sum and store a tile."""
        e, f = self.e, self.f
        sums = self._zeros()
        a = f.local("i32")
        f.set(a, self.left_copy)
        places = []
        for v in range(self.vectors):
            column = f.let(op("i32.add", self.first_column, i32(self.lanes * v)))
            line = f.let(op("i32.div_u", column, i32(self.node.shape[-1])))
            pixel = op("i32.sub", column, op("i32.mul", line, i32(self.node.shape[-1])))
            place = op("i32.add", op("i32.mul", line, i32(self.node.arg[0][0] * self.picture[1])), pixel)
            b = f.local("i32")
            f.set(b, op("i32.add", e.addresses["scratch"], op("i32.shl", place, i32(2))))
            places.append(b)
        taps = size(self.taps)
        e.loop("pair", self.pairs)
        left, right = f.local("v128"), [f.local("v128") for _ in range(self.vectors)]
        for n in range(taps):
            offset = 4 * self._offset(n)
            for v in range(self.vectors):
                f.set(right[v], memory("v128.load", f.get(places[v]), offset=offset))
            for r in range(self.rows):
                f.set(left, memory("v128.load32_splat", f.get(a), offset=4 * n + r * self.line))
                for v in range(self.vectors):
                    product = op("v128.dot_pairs", f.get(sums[r][v]), f.get(left), f.get(right[v]))
                    f.set(sums[r][v], product)
        f.set(a, op("i32.add", f.get(a), i32(4 * taps)))
        for b in places:
            f.set(b, op("i32.add", f.get(b), i32(self.plane)))
        e.close()
        self._store_tile(first_row, sums)

    def _offset(self, tap):
        """The words from a pixel to that of a tap."""
        down, across = [n * d for n, d in zip(divmod(tap, self.taps[1]), self.node.arg[2])]
        return down * self.picture[1] + across % self.apart * self.half + across // self.apart
