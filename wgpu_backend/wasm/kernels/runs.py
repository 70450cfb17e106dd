"""Copies the pixels of a panel as runs of neighbors, with vectors longer than four.

The columns of a panel are pixels of a few lines of the image. Each line's part is copied by whole vectors, whose ends
the next part overwrites. A table in scratch memory says where each vector begins: its address for the first tap, and
its place in a line of the panel.
"""

from ...lower import index as ix
from ..assembler import i32, memory, op, select, unsigned_min

_WRITTEN_OUT = 9  # taps of a line whose copies are written out
_NEAR = 1 << 14  # bytes of lines that are written entry by entry: they stay in the L1 cache
_SHORTEST = 4  # pixels of a line: less are copied one by one


def runs(tile):
    """The Runs of a convolution's tile (contraction/), or None if other ways are better."""
    line = tile.node.shape[-1]
    if tile.node.op != "conv" or tile.lanes == 4 or line < _SHORTEST:
        return None
    lines = tile.what.columns // line
    column = ix.add(ix.mul(ix.counter("line", lines), line), ix.counter("pixel", line))
    inner = [ix.counter("k{}".format(i), extent) for i, extent in enumerate(tile.what.inner)]
    right = tile.loaded(tile.what.right(tile.low, tile.grid, column, inner))
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
        right = f.let(unsigned_min(stop, behind))
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

    def goes_by_entries(self):
        """Whether `copy_all` serves: with masks that cost nothing, as of AVX-512, and a few taps side by side."""
        extent = self.tile.what.inner[-1]
        return self.tile.lanes == 16 and extent <= _WRITTEN_OUT and self._beside() is not None

    def _beside(self):
        """The numbers of the image from a tap to the next one of a line, if they are known."""
        return self.e.coefficient(self.taps, "k{}".format(len(self.tile.what.inner) - 1))

    def copy_all(self, panel, element):
        """Write all lines of the panel, those of some channels entry by entry, so that little is done for each vector.
        What a vector holds behind its run, the next entry overwrites; behind the last one lies another line, which a
        mask keeps."""
        tile, e, f = self.tile, self.e, self.e.f
        inner, bytes_apart = tile.what.inner, tile.term_bytes
        beside = element * self._beside()
        taps = tile.what.depth() // inner[0]
        most = max(1, _NEAR // (taps * bytes_apart))
        together = max([n for n in range(1, most + 1) if inner[0] % n == 0])
        e.loop("channels", inner[0], together)
        channel = e.counters["channels"][0]
        at_channel = f.let(op("i32.add", panel, op("i32.mul", channel, i32(taps * bytes_apart))))
        e.loop("entry", f.get(self.end), 8, self.table)
        entry = e.counters["entry"][0]
        at, place = [f.let(memory("i32.load", entry, offset=n)) for n in (0, 4)]
        left = op("i32.sub", i32(self.width), op("i32.shr_u", place, i32(2)))
        mask = f.let(op("i32x4.lt_u", op("v128.ramp", i32(1)), op("i32x4.splat", left)))
        to = f.local("i32")
        f.set(to, op("i32.add", at_channel, place))
        e.loop("k0", f.let(op("i32.add", channel, i32(together))), 1, channel)
        for n in range(1, len(inner) - 1):
            e.loop("k{}".format(n), inner[n])
        e.bind("k{}".format(len(inner) - 1), i32(0))
        first = f.let(op("i32.add", at, f.let(e.index(self.taps, element))))
        lowest = min(0, beside * (inner[-1] - 1))
        first = f.let(op("i32.add", first, i32(lowest))) if lowest else first
        for n in range(inner[-1]):
            vector = self._vector(first, n * beside - lowest)
            f.do(memory("v128.store_masked", f.get(to), vector, mask, offset=n * bytes_apart))
        f.set(to, op("i32.add", f.get(to), i32(inner[-1] * bytes_apart)))
        for _ in range(len(inner) + 1):
            e.close()

    def _vector(self, at, offset=0):
        """Neighboring pixels, or every second one: none beyond, since the memory may end there."""
        e = self.e
        first = e.four_at(self.word, at, offset)
        if self.step == 1:
            return first
        element = 1 if self.word in ("i8", "u8") else 4
        return op("v128.even_odd", first, e.four_at(self.word, at, offset + element * (self.tile.lanes - 1)))
