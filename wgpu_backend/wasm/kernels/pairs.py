"""Copying the operands of a product of integers as pairs of int16 (integers.py)."""

from ...lower import index as ix
from ..assembler import i32, i32x4, memory, op, unsigned_min
from .emitter.numbers import size
from .levels import bare

LOAD_EIGHT = {"i8": "v128.load8x8_s", "u8": "v128.load8x8_u"}


class Pairs:
    """The part of a product of integers that copies its operands."""

    # -- eight numbers of 16 bits ---------------------------------------------------------------------------------

    def _eight(self, value):
        """A Value modulo 2 ** 16 at eight neighboring positions of the lane counter."""
        e, f = self.e, self.f
        if not e.depends(value, e.lane):
            return e.keep((value.id, "8"), e.level(value), lambda: op("i16x8.splat", e.scalar(value)))
        args = value.args
        whole = value.type in ("i32", "u32")
        if value.op == "function" and value.attr in (("wrap_i", "16u"), ("wrap_u", "16u")):
            return self._eight(args[0])
        if value.op == "cast" and whole and args[0].type in ("i32", "u32"):
            return self._eight(args[0])
        if value.op in ("add", "sub", "mul") and whole:
            return op("i16x8." + value.op, self._eight(args[0]), self._eight(args[1]))
        if value.op == "load" and whole and e.coefficient(value.attr[1]) == 1:
            slot, index = value.attr
            word = self.low.slots.types[slot]
            at, offset = e.address(slot, index, word)
            return self._eight_at(word, at, offset)
        first = f.let(e.vector(value))
        known = e.counters[e.lane]
        e.block()
        e.bind(e.lane, f.let(op("i32.add", known[0], i32(self.lanes))))
        second = f.let(e.vector(value))
        e.close()
        e.counters[e.lane] = known
        e._levels = {}
        return self._low_halves(first, second)

    def _low_halves(self, first, second):
        """The lower 16 bits of all numbers of two vectors."""
        picks = [4 * n + half for n in range(self.many) for half in (0, 1)]
        return op("i8x16.shuffle", first, second, imm=bytes(picks))

    def _pair(self, low, high, second):
        """The columns of one term interleaved with those of the next, as int16: the first or the second half of
        them."""
        picks = []
        for n in range(self.lanes * second, self.lanes * (second + 1)):
            picks += [2 * n, 2 * n + 1, 4 * self.lanes + 2 * n, 4 * self.lanes + 2 * n + 1]
        return op("i8x16.shuffle", low, high, imm=bytes(picks))

    def _eight_at(self, word, at, offset):
        """Eight neighboring elements at an address, modulo 2 ** 16."""
        if word in LOAD_EIGHT:
            return memory(LOAD_EIGHT[word], at, offset=offset)
        at = self.f.let(at)
        first, second = [memory("v128.load", at, offset=offset + 4 * self.lanes * n) for n in range(2)]
        return self._low_halves(first, second)

    def _eight_of(self, value, counter, at):
        """`_eight` with the lane counter `counter` at a position."""
        e = self.e
        e.block()
        e.bind(counter, at)
        e.lane = counter
        out = self.f.let(self._eight(value))
        e.lane = None
        e.close()
        return out

    def _left_in_memory(self):
        """Whether the terms of a row of the left operand follow each other in memory, and nothing but a zero point is
        subtracted from them."""
        value = bare(self.left)
        if value.op == "sub" and not self.e.depends(value.args[1], "k"):
            value = bare(value.args[0])
        return value.op == "load" and self.e.coefficient(value.attr[1], "k") == 1

    # -- packing --------------------------------------------------------------------------------------------------

    def _pack_left(self):
        """Copy the left operand as pairs of int16, row by row."""
        e, f, what = self.e, self.f, self.what
        to = f.local("i32")
        f.set(to, self.packed_left)
        counters = [ix.counter("k{}".format(i), extent) for i, extent in enumerate(what.inner)]
        value = what.left(self.low, self.grid, self.row, counters)

        def put(how, number, nbytes):
            f.do(memory(how, f.get(to), number))
            f.set(to, op("i32.add", f.get(to), i32(nbytes)))

        if self.shared == 2:  # the rows of this range of tiles, the last of which is moved back
            first, last = [f.param(n) for n in range(len(f.params) - 2, len(f.params))]
            first = f.let(unsigned_min(f.let(op("i32.mul", first, i32(self.rows))), i32(what.rows - self.rows)))
            last = f.let(unsigned_min(f.let(op("i32.mul", last, i32(self.rows))), i32(what.rows)))
            f.set(to, op("i32.add", self.packed_left, op("i32.mul", first, i32(4 * self.pairs))))
            e.loop("row", last, 1, first)
        else:
            e.loop("row", what.rows)
        (self._left_in_order if self.across else self._left_by_taps)(value, put)
        e.close()

    def _left_in_order(self, value, put):
        """Write the terms of a row one after the other."""
        e, inner = self.e, self.what.inner
        for i, extent in enumerate(inner):
            e.loop("k{}".format(i), extent)
        put("i32.store16", e.scalar(value), 2)
        for _ in inner:
            e.close()
        if self.what.depth() % 2:
            put("i32.store16", i32(0), 2)

    def _left_by_taps(self, value, put):
        """Write the channels of each tap of a row."""
        e, channels = self.e, self.channels
        for i, extent in enumerate(self.taps):
            e.loop("k{}".format(i + 1), extent)
        whole = channels // self.many * self.many
        if whole:
            e.loop("eights", whole, self.many)
            put("v128.store", self._eight_of(value, "k0", e.counters["eights"][0]), 2 * self.many)
            e.close()
        if channels - whole:
            e.loop("k0", channels, 1, whole)
            put("i32.store16", e.scalar(value), 2)
            e.close()
        if channels % 2:
            put("i32.store16", i32(0), 2)
        for _ in self.taps:
            e.close()

    def _copy_left(self, first_row):
        """Copy a tile's rows of the left operand, whose terms lie in memory in the order of pairs."""
        e, f, depth = self.e, self.f, self.what.depth()
        e.loop("copied", self.rows)
        e.bind("row", f.let(op("i32.add", first_row, e.counters["copied"][0])))
        to = f.let(op("i32.add", self.left_copy, op("i32.mul", e.counters["copied"][0], i32(self.line))))
        if depth >= self.many:
            e.loop("eights", depth, self.many, clamp=depth - self.many if depth % self.many else None)
            k = e.counters["eights"][0]
            eight = self._eight_of(self.left, "k", k)
            f.do(memory("v128.store", op("i32.add", to, op("i32.shl", k, i32(1))), eight))
        else:
            e.loop("k", depth)
            k = e.counters["k"][0]
            f.do(memory("i32.store16", op("i32.add", to, op("i32.shl", k, i32(1))), e.scalar(self.left)))
        e.close()
        if depth % 2:
            f.do(memory("i32.store16", to, i32(0), offset=2 * depth))
        e.close()

    def _pack(self):
        """Copy the panel of the right operand that begins at the first column: for each pair of terms, eight columns
        of two int16."""
        e, f = self.e, self.f
        to = f.local("i32")
        f.set(to, self.packed)
        if self.panels is not None:
            self._widen(to)
            return
        if not self.across and (self.halves is None or e.coefficient(self.read.attr[1], "column") is not None):
            self._write_pairs(to, lambda: self._eight_of(self.right, "column", self.first_column))
            return
        # A position is a pixel's position plus the tap's offset, which is the same for all pixels.
        slot = self.read.attr[0]
        word = self.low.slots.types[slot]
        n = size(word)
        if self.runs:
            self._pack_runs(to, n)
            return
        apart = self._apart()
        places, in_row = self._places(self.halves[0], slot, n, self.many, apart)

        def in_a_row(offset):
            at = op("i32.add", places[0], offset)
            if apart == 1:
                return f.let(self._less(self._eight_at(word, at, 0)))
            at = f.let(at)
            halves = [e.every_second(word, at, 2 * n * self.lanes * v) for v in range(2)]
            return f.let(self._less(self._low_halves(*halves)))

        def scattered(offset):
            fours = []
            for first in (0, self.lanes):
                out = i32x4(0)
                for lane in range(self.lanes):
                    out = e.lane_at(word, op("i32.add", places[first + lane], offset), out, lane)
                fours.append(out)
            return f.let(self._less(self._low_halves(*fours)))

        for condition, eight in ((in_row, in_a_row), (op("i32.eqz", in_row), scattered)):
            e.branch(condition)
            if self.across:
                self._in_order(lambda taps, eight=eight: self._write_pair(to, *[eight(tap) for tap in taps]))
            else:
                self._write_pairs(to, lambda eight=eight: eight(f.let(e.index(self.halves[1], n))))
            e.close()

    def _less(self, eight):
        """Numbers of 16 bits that were loaded, less what is subtracted from them. Where one stands alone, what lies
        beside it meets a zero."""
        return op("i16x8.sub", eight, op("i16x8.splat", i32(self.offset))) if self.offset else eight

    def _widen(self, to):
        """Copy the panel that the file holds, with twice the bits."""
        e, f = self.e, self.f
        at = f.local("i32")
        f.set(at, self.stored)
        many = 4 if self.pairs % 4 == 0 else 1
        e.loop("pair", self.pairs, many)
        for n in range(2 * many):
            f.do(memory("v128.store", f.get(to), self._of_panel(at, n), offset=4 * self.lanes * n))
        f.set(at, op("i32.add", f.get(at), i32(4 * self.lanes * many)))
        f.set(to, op("i32.add", f.get(to), i32(8 * self.lanes * many)))
        e.close()

    def _of_panel(self, at, n):
        """Vector n of int16 from an address in a stored panel."""
        out = memory(self.panels[1], self.f.get(at), offset=2 * self.lanes * n)
        return op("i16x8.sub", out, op("i16x8.splat", i32(self.panels[2]))) if self.panels[2] else out

    def _pack_runs(self, to, element):
        """`_pack` by runs of pixels of so many bytes."""
        f = self.f
        self.runs.tabulate(self.run_table, element)

        def joined(numbers):
            low = op("v128.and", numbers[0], i32x4(0xFFFF)) if self.runs.word != "u8" else numbers[0]
            return self._less(op("v128.or", low, op("i32x4.shl", numbers[1], i32(16))) if len(numbers) > 1 else low)

        def write(taps):
            self.runs.copy(f.get(to), taps, joined)
            f.set(to, op("i32.add", f.get(to), i32(8 * self.lanes)))

        self._in_order(write)

    def _write_pair(self, to, low, high=None):
        """Write the columns of a term beside those of the next one, or beside zeros if that is None."""
        f = self.f
        if high is None:
            high = i32x4(0)
        for v in range(2):
            f.do(memory("v128.store", f.get(to), self._pair(low, high, v), offset=4 * self.lanes * v))
        f.set(to, op("i32.add", f.get(to), i32(8 * self.lanes)))

    def _in_order(self, write):
        """Call write(bytes from the first term of a column to a term and to the next one) for all pairs in memory's
        order, and with one for a term that is left."""
        e, f, depth = self.e, self.f, self.what.depth()
        at = f.local("i32")
        f.set(at, self.table)
        e.loop("pair", depth // 2)
        write([f.let(memory("i32.load", f.get(at), offset=n)) for n in (0, 4)])
        f.set(at, op("i32.add", f.get(at), i32(8)))
        e.close()
        if depth % 2:
            e.block()
            write([f.let(memory("i32.load", f.get(at)))])
            e.close()

    def _write_pairs(self, to, eight):
        """Write all pairs of terms of a panel, tap by tap; eight(): eight columns of the current term."""
        e = self.e
        for i, extent in enumerate(self.taps):
            e.loop("k{}".format(i + 1), extent)
        self._pairs(eight, lambda low, high: self._write_pair(to, low, high))
        for _ in self.taps:
            e.close()

    def _pairs(self, term, write):
        """write(one term, the next or None) for all pairs of channels; term(): that of the channel that is bound."""
        e, f = self.e, self.f
        whole = self.channels // 2 * 2

        def at(channel):
            e.block()
            e.bind("k0", channel)
            out = term()
            e.close()
            return out

        if whole:
            e.loop("pair", whole, 2)
            first = e.counters["pair"][0]
            write(at(first), at(f.let(op("i32.add", first, i32(1)))))
            e.close()
        if self.channels % 2:
            e.block()
            write(at(i32(whole)), None)
            e.close()
