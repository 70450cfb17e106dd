"""The columns behind the last whole panel of a product, with vectors longer than four.

The last panel is moved back to end with the last column, so that some of its columns are computed twice. Where one
vector holds those that are left, only that one is computed. A single column behind vectors, such as the last one of
7 × 7 pixels, is a product of its own: its terms are copied side by side, and a vector holds neighboring terms.
"""

from emberlet.sizes.size import is_open

from ..assembler import f32x4, i32, memory, op
from .emitter.vectors import extract

LINE = 64  # bytes of a line of a cache
_MOST = 12  # panels before the last one, at most, where computing all of that one takes notably longer
_SUMS = 4  # vectors that are summed independently


def tail(tile):
    """The Tail of a product's tiles (contraction/), or None if the last panel is like the others."""
    what, lanes = tile.what, tile.lanes
    if lanes == 4 or tile.vectors != 2 or not tile.tails or is_open(what.columns):
        return None
    whole, left = divmod(what.columns, 2 * lanes)
    if not left or whole > _MOST:
        return None
    alone = left % lanes == 1 and not tile.direct and tile.by_k == 1
    alone = alone and not is_open(what.depth()) and what.depth() % lanes == 0
    if not alone and left > lanes:
        return None
    return Tail(tile, whole, alone, left > 1 or not alone)


class Tail:
    """whole: the number of whole panels; alone: whether the last column is computed by itself; vector: whether a vector
    of columns is left besides. room: the bytes of scratch memory that the column takes."""

    def __init__(self, tile, whole, alone, vector):
        self.tile = tile
        self.whole = whole
        self.alone = alone
        self.vector = vector
        self.room = 4 * tile.what.depth() if alone else 0
        self.column = None  # the address of the last column's terms

    def copy(self, first, last):
        """Copy the last column's terms out of its panel, if a block of packed panels has that."""
        tile = self.tile
        e, f = tile.e, tile.f
        e.branch(op("i32.eq", last, i32(self.whole + 1)))
        at = op("i32.mul", op("i32.sub", i32(self.whole), first), i32(tile.panel_bytes))
        at = f.let(op("i32.add", op("i32.add", tile.panels_at, at), i32(tile.term_bytes - 4)))
        e.loop("k", tile.what.depth())
        k = e.counters["k"][0]
        number = memory("i32.load", op("i32.add", at, op("i32.mul", k, i32(tile.term_bytes))))
        f.do(memory("i32.store", op("i32.add", self.column, op("i32.shl", k, i32(2))), number))
        e.close()
        e.close()

    def compute(self, first_row):
        """The results of a tile's rows in these columns."""
        tile = self.tile
        f = tile.f
        further = tile.lanes - self.alone  # columns of the panel before the vector
        known = tile.vectors, tile.first_column, tile.packed
        tile.vectors = 1
        if self.vector:
            tile.first_column = f.let(op("i32.add", known[1], i32(further)))
            tile.packed = f.let(op("i32.add", known[2], i32(4 * further)))
            tile._tile(first_row)
        tile.vectors, tile.first_column, tile.packed = known
        if self.alone:
            self._sum(first_row)

    def _sum(self, first_row):
        """The last column's results, row by row."""
        tile = self.tile
        e, f, depth, lanes = tile.e, tile.f, tile.what.depth(), tile.lanes
        many = max([n for n in range(1, _SUMS + 1) if depth % (n * lanes) == 0])
        slot, index = tile.left.attr
        e.loop("one", tile.rows)
        one = e.counters["one"][0]
        e.bind("row", f.let(op("i32.add", first_row, one)))
        e.bind("column", i32(tile.what.columns - 1))
        e.bind("k", i32(0))
        if tile.left_copy is None:
            a = f.let(e.index(index, 4, e.addresses[slot]))
        else:
            a = f.let(op("i32.add", tile.left_copy, op("i32.mul", one, i32(4 * depth + LINE))))
        sums = [f.local("v128") for _ in range(many)]
        for s in sums:
            f.set(s, f32x4(0.0))
        e.loop("term", 4 * depth, 4 * lanes * many)
        at = e.counters["term"][0]
        left, right = f.let(op("i32.add", a, at)), f.let(op("i32.add", self.column, at))
        for n, s in enumerate(sums):
            offset = 4 * lanes * n
            pair = [memory("v128.load", x, offset=offset) for x in (left, right)]
            f.set(s, tile._multiplied(*pair, f.get(s)))
        e.close()
        total = f.get(sums[0])
        for s in sums[1:]:
            total = total + f.get(s)
        by = lanes // 2
        while by:
            total = f.let(total)
            total = total + op("v128.turn", total, i32(by))
            by //= 2
        e.define("sum", f.let(extract(total, "f32", 0)))
        e.store(tile.store, tile.result, tile.low.slots.result.word)
        e.close()
