"""Copies the pixels of a panel as runs of neighbors, with vectors longer than four.

The columns of a panel are pixels of a few lines of the image. Each line's part is copied by whole vectors, whose ends
the next part overwrites. A table in scratch memory says where each vector begins: its address for the first tap, and
its place in a line of the panel.
"""

from ...lower import index as ix
from ..assembler import i32, memory, op, select

_SHORTEST = 4  # pixels of a line: less are copied one by one


def runs(tile):
    """The Runs of a convolution's tile (contraction.py), or None if other ways are better."""
    line = tile.node.shape[-1]
    if tile.node.op != "conv" or tile.lanes == 4 or line < _SHORTEST:
        return None
    lines = tile.what.columns // line
    column = ix.add(ix.mul(ix.counter("line", lines), line), ix.counter("pixel", line))
    inner = [ix.counter("k{}".format(i), extent) for i, extent in enumerate(tile.what.inner)]
    right = tile.what.right(tile.low, tile.grid, column, inner)
    if right.op != "load":
        return None
    slot, index = right.attr
    halves = tile._by_axis(index, ("line", "pixel"))
    step = tile.e.coefficient(halves[0], "pixel") if halves else None
    return Runs(tile, slot, halves, step) if step in (1, 2) else None


class Runs:
    """taps: the part of an index that depends on the terms of a column. room: the bytes of scratch memory that its
    table takes, with what copying writes behind the last panel."""

    def __init__(self, tile, slot, halves, step):
        self.tile = tile
        self.e = tile.e
        self.slot = slot
        self.word = tile.low.slots.types[slot]
        self.pixels, self.taps = halves
        self.step = step
        self.line = tile.node.shape[-1]
        self.width = tile.lanes * tile.vectors
        each = (min(self.line, self.width) + tile.lanes - 1) // tile.lanes
        self.room = 4 * tile.lanes + 8 * each * ((self.width - 2) // self.line + 2)

    def tabulate(self, table, element):
        """Write the table of the panel that begins at the first column; element: bytes of a number of the image."""
        tile, e, f = self.tile, self.e, self.e.f
        self.table = table
        self.end = f.local("i32")
        f.set(self.end, table)
        first = tile.first_column
        behind = f.let(op("i32.add", first, i32(self.width)))
        last = op("i32.div_u", op("i32.sub", behind, i32(1)), i32(self.line))
        begin = f.let(op("i32.div_u", first, i32(self.line)))
        e.loop("line", f.let(op("i32.add", last, i32(1))), 1, begin)
        start = f.let(op("i32.mul", e.counters["line"][0], i32(self.line)))
        stop = f.let(op("i32.add", start, i32(self.line)))
        left = f.let(select(op("i32.lt_u", start, first), first, start))
        right = f.let(select(op("i32.lt_u", stop, behind), stop, behind))
        e.loop("run", right, tile.lanes, left)
        column = e.counters["run"][0]
        e.bind("pixel", f.let(op("i32.sub", column, start)))
        f.do(memory("i32.store", f.get(self.end), e.index(self.pixels, element, e.addresses[self.slot])))
        f.do(memory("i32.store", f.get(self.end), op("i32.shl", op("i32.sub", column, first), i32(2)), offset=4))
        f.set(self.end, op("i32.add", f.get(self.end), i32(8)))
        e.close()
        e.close()

    def copy(self, to, taps, joined):
        """Write a line of the panel at `to`: `joined` makes a vector of those that begin `taps` bytes, a list, behind
        the first tap."""
        e, f = self.e, self.e.f
        e.loop("entry", f.get(self.end), 8, self.table)
        entry = e.counters["entry"][0]
        at = f.let(memory("i32.load", entry))
        place = f.let(op("i32.add", memory("i32.load", entry, offset=4), to))
        f.do(memory("v128.store", place, joined([self._vector(f.let(op("i32.add", at, tap))) for tap in taps])))
        e.close()

    def _vector(self, at):
        """Neighboring pixels, or every second one: none beyond, since the memory may end there."""
        e = self.e
        first = e.four_at(self.word, at, 0)
        if self.step == 1:
            return first
        element = 1 if self.word in ("i8", "u8") else 4
        return op("v128.even_odd", first, e.four_at(self.word, at, element * (self.tile.lanes - 1)))
