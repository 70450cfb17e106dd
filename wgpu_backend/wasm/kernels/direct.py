"""Convolutions with few results for each pixel, which read the image in place.

A tile is eight neighboring pixels of one line of the image by up to six channels. Copying the pixels of all taps side
by side, as contraction/ does, takes as long as the products of seven channels.
"""

from ...lower import index as ix
from ...lower.contraction import problem
from ..assembler import i32, memory, op, unsigned_min
from .contraction import BLOCK_BYTES, FAR, LINE, VECTORS, Contraction, fixed
from .nest import begin, finish

TAPS = 9  # of the products that are written out one after the other

# The time of copying a term of eight columns, in that of eight products.
PACKING = 7
_AHEAD = 4  # channels whose products take as long as memory


def direct(item, stored, name, options):
    """The Kernel of a "conv" item, or None if copying the image or nested loops are better."""
    node = item.anchor
    width = VECTORS * options.lanes
    if node.dtype.kind != "float":
        return None
    what = problem(node, True)
    if not fixed(what) or node.shape[-1] < width or what.rows < 2 or what.depth() < 4 or len(what.inner) < 2:
        return None
    taps = what.depth() // what.inner[0]
    line = node.shape[-1]
    lines = what.columns // line
    panels = lines * ((line + width - 1) // width)
    packed = (what.columns + width - 1) // width
    if taps < 2 or panels * what.rows > packed * (what.rows + PACKING):
        return None
    writer = _Direct(item, stored, what, options)
    return writer.kernel(name) if writer.serves() else None


class _Direct(Contraction):
    direct = True
    tails = False
    lane = "pixel"

    def _column(self):
        """The column, by a counter for the lines of the image and one for the pixels of a line."""
        self.line = self.node.shape[-1]
        self.lines = self.what.columns // self.line
        return ix.add(ix.mul(ix.counter("line", self.lines), self.line), ix.counter("pixel", self.line))

    def serves(self):
        """Whether neighboring pixels are neighbors in memory, too, and taps are at a fixed distance from them."""
        if not Contraction.serves(self):
            return False
        e, index = self.e, self.right.attr[1]
        self.steps = [e.coefficient(index, "k{}".format(i)) for i in range(len(self.what.inner))]
        return e.coefficient(index, "pixel") == 1 and None not in self.steps and min(self.steps) >= 0

    def kernel(self, name):
        slots = self.low.slots
        self.e = e = begin(name, slots, self.lanes)
        self.f = e.f
        self.width = VECTORS * self.lanes
        self.tiles = (self.line + self.width - 1) // self.width
        panels = self.lines * self.tiles
        # Process as many lines together as fit the L2 cache with all of their channels.
        taps = self.what.depth() // self.what.inner[0]
        together = max(1, min(panels, BLOCK_BYTES * taps // (self.what.depth() * self.width * 4)))
        self._share(panels)
        self._open_grid()
        self._blocks(panels, together, None)
        e.close()
        return finish(e, name, slots)

    def _open_panel(self, first, last):
        e, f = self.e, self.f
        e.loop("panel", last, 1, first)
        panel = e.counters["panel"][0]
        if self.tiles == 1:
            e.bind("line", panel)
            self.first_column = i32(0)
            return
        e.bind("line", f.let(op("i32.div_u", panel, i32(self.tiles))))
        at = op("i32.mul", op("i32.sub", panel, op("i32.mul", e.counters["line"][0], i32(self.tiles))), i32(self.width))
        if self.line % self.width:
            at = f.let(at)
            at = unsigned_min(at, i32(self.line - self.width))
        self.first_column = f.let(at)

    def _tile(self, first_row):
        """Sum and store a tile."""
        e, f = self.e, self.f
        sums = self._zeros()
        inner = self.what.inner
        e.block()
        for n in range(len(inner)):
            e.bind("k{}".format(n), i32(0))
        e.bind("k", i32(0))
        e.bind("row", first_row)
        e.bind("pixel", self.first_column)
        a, b = f.local("i32"), f.local("i32")
        for to, (slot, index) in ((a, self.left.attr), (b, self.right.attr)):
            f.set(to, e.index(ix.Index(index.terms, index.const), 4, e.addresses[slot]))
        e.close()
        self._terms(a, b, sums)
        self._store_tile(first_row, sums)

    def _terms(self, a, b, sums):
        """Add all products: loops over the outer axes of the taps, the inner ones written out."""
        e, f, inner = self.e, self.f, self.what.inner
        looped = len(inner)
        count = 1
        while looped and count * inner[looped - 1] <= TAPS:
            looped -= 1
            count *= inner[looped]
        offsets = [0]
        for axis in range(looped, len(inner)):
            offsets = [at + 4 * n * self.steps[axis] for at in offsets for n in range(inner[axis])]
        left_offset = self._offsets(a, (4 * self.by_k, len(offsets)), (4 * self.by_row, self.rows))
        for axis in range(looped):
            e.loop("at{}".format(axis), inner[axis])
        right = [f.local("v128") for _ in range(self.vectors)]
        left = f.local("v128")
        if self.lanes > 4 and 4 * self.steps[0] * inner[0] >= FAR:
            self._prefetch(b, offsets)
        for k, offset in enumerate(offsets):
            for v in range(self.vectors):
                f.set(right[v], memory("v128.load", f.get(b), offset=offset + 4 * self.lanes * v))
            for r in range(self.rows):
                f.set(left, memory("v128.load32_splat", f.get(a), offset=left_offset(k, r)))
                for v in range(self.vectors):
                    f.set(sums[r][v], self._multiplied(f.get(left), f.get(right[v]), f.get(sums[r][v])))
        if looped:
            f.set(a, op("i32.add", f.get(a), i32(4 * len(offsets) * self.by_k)))
        for axis in range(looped - 1, -1, -1):
            back = inner[axis + 1] * self.steps[axis + 1] if axis + 1 < looped else 0
            f.set(b, op("i32.add", f.get(b), i32(4 * (self.steps[axis] - back))))
            e.close()

    def _prefetch(self, b, offsets):
        """Fetch the pixels of a channel that is summed soon. Those of one lie on a few short lines, far from those of
        the next one, and processors fetch by themselves only what goes on."""
        f = self.f
        ahead, size = 4 * self.steps[0] * _AHEAD, 4 * self.width
        begin = 0
        for offset in sorted(offsets):
            begin = max(begin, offset)
            while begin < offset + size:
                f.do(memory("v128.prefetch", f.get(b), offset=ahead + begin))
                begin += LINE
