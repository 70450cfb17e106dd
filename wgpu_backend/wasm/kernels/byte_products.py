"""Products and convolutions of integers that lie within 8 bits of some number: four terms by one instruction.

The instruction (v128.dot_bytes) multiplies unsigned bytes of the right operand with signed ones of the left and adds
four products to a sum of 32 bits, which wraps and never saturates. The right operand's lowest value is subtracted from
it, the left one's zero point is not; both are made good at the start of the sums:

    sum of (a - z) (b' + low) = sum of a b' + low (sum of a - K z) - z (sum of b'),  over K terms, b' = b - low.

The tiles are those of contraction/. Terms go in the order of the left operand's memory, so that its rows of int8 are
read in place. Four neighboring terms of a column lie side by side in a panel; missing ones are zeros there.
"""

from emberlet.sizes.size import is_open

from ...lower import index as ix
from ...lower.contraction import problem
from ..assembler import i32, i32x4, memory, op
from .contraction import FAR, PAGE, Contraction, _rows_of_tiles
from .emitter.numbers import size, total
from .integers import MOST_ROWS, packed_products, tabulate
from .levels import bare, bounds
from .nest import begin, finish
from .runs import runs
from .tail import LINE

_ONES = 0x01010101
_SHORT_ROWS = range(4, 64, 4)  # depths of rows that are summed by words of four bytes
_SPAN = 255  # between the lowest and the highest value of an operand


def byte_contraction(item, stored, name, options):
    """The Kernel of a "matmul" or "conv" item with operands in int16, of which that is known, and sums in int32; None
    if it is not, or the processor has no such instruction."""
    node = item.anchor
    if not options.bytewise or options.lanes < 8 or stored.bind_numbers:
        return None
    if node.dtype.name != "int32" or node.srcs[0].dtype.name != "int16":
        return None
    what = problem(node, True)
    if is_open(what.rows) or is_open(what.columns) or is_open(what.depth()) or is_open(node.count):
        return None
    if what.columns < 2 * options.lanes or what.depth() < 4 or what.rows < 2:
        return None
    writer = _Bytes(item, stored, what, options)
    return writer.kernel(name) if writer.serves() else None


class _Bytes(Contraction):
    type = "i32"
    tails = False
    unrolled = 4
    many_rows = 512

    def __init__(self, item, stored, what, options):
        Contraction.__init__(self, item, stored, what, options)
        self.rows = _rows_of_tiles(what.rows, min(options.rows, MOST_ROWS))
        self.depth = what.depth()
        self.fours = (self.depth + 3) // 4
        self.taps = [n for n in what.inner[1:] if n != 1]

    def serves(self):
        """Whether both operands are known to lie within 8 bits of a number, rows of the left one follow each other in
        memory, and taps of the right one are at a fixed distance from pixels."""
        slots = self.low.slots
        found = bounds(self.right, slots)
        if found is None or found[1] - found[0] > _SPAN:
            return False
        self.lowest = found[0]
        if not self._split_left(slots):
            return False
        self.e = e = begin("", slots, self.lanes)
        index = self.a.attr[1]
        if e.coefficient(index, "k") != 1 or e.coefficient(index, "row") != self.depth:
            return False
        if self.z is not None and e.depends(self.z, "k"):
            return False
        self.halves = self._by_axis(self.right.attr[1]) if self.right.op == "load" else None
        if self.taps:
            return self.halves is not None
        if self.halves is not None and e.coefficient(self.right.attr[1], "column") is not None:
            self.halves = None  # vectors are loaded as they are
        return True

    def _split_left(self, slots):
        """Find the left operand as (a - `offset`) - z: a Value that is loaded and, less the offset, within int8."""
        value, self.z = bare(self.left), None
        if value.op == "sub":
            value, self.z = bare(value.args[0]), value.args[1]
        found = bounds(value, slots)
        if value.op != "load" or found is None or found[1] - found[0] > _SPAN:
            return False
        self.a = value
        self.word = slots.types[value.attr[0]]
        self.offset = found[0] + 128 if self.word != "i8" else 0
        return True

    # -- the kernel -----------------------------------------------------------------------------------------------

    def kernel(self, name):
        what = self.what
        self.e = e = begin(name, self.low.slots, self.lanes)
        self.f = f = e.f
        self.direct = False
        width = self.lanes * self.vectors
        panels = (what.columns + width - 1) // width
        self.four_bytes = 4 * width
        self.panel_bytes = (self.fours + 1) * self.four_bytes  # the last line: the sums of the columns
        together = self._together(panels)
        at = e.addresses["scratch"]
        self.begins = at  # of each row: what its sums begin with, and its zero point
        self.table = f.let(op("i32.add", at, i32(8 * what.rows)))  # the bytes from a pixel to each term
        room = 8 * what.rows + 4 * self.depth
        self.copy = f.let(op("i32.add", at, i32(room)))
        if self.word != "i8":
            room += what.rows * self.depth + 4 * self.lanes
        room = (room + 63) // 64 * 64
        self.panels_at = f.let(op("i32.add", at, i32(room)))
        f.scratch = room + together * self.panel_bytes
        words = what.rows * self.depth // 4
        self.by_words = self.lanes <= words <= together * self.panel_bytes // 4 and self.depth in _SHORT_ROWS
        self.runs = runs(self) if self.halves is not None else None
        if self.runs:
            self.run_table = f.let(op("i32.add", at, i32(f.scratch + 4 * self.lanes)))
            f.scratch += self.runs.room
        self._share(panels)
        self._open_grid()
        self._left_rows()
        if self.halves is not None:
            tabulate(self, self.halves[1])
        self._blocks(panels, together, self._pack)
        e.close()
        return finish(e, name, self.low.slots)

    def _left_rows(self):
        """Find where the rows of the left operand begin as int8, copying other ones; and what their sums begin with."""
        e, f, what = self.e, self.f, self.what
        self._place_left(self.word == "i8")
        any_zero = f.local("i32")
        f.set(any_zero, i32(0))
        if self.lowest and self.by_words:
            self._sum_words()
        e.loop("row", what.rows)
        row = e.counters["row"][0]
        zero = i32(-self.offset)
        if self.z is not None:
            zero = op("i32.add", e.scalar(self.z), zero)
        zero = f.let(zero)
        to = f.let(op("i32.add", self.begins, op("i32.shl", row, i32(3))))
        if self.lowest:
            begin = op("i32.mul", row, i32(self.depth))
            if self.by_words:
                words = f.let(op("i32.add", self.panels_at, begin))
                sums = total([memory("i32.load", words, offset=n) for n in range(0, self.depth, 4)])
            else:
                sums = self._row_sum(f.let(op("i32.add", self.left_at, begin)))
            sums = op("i32.sub", sums, op("i32.mul", zero, i32(self.depth)))
            f.do(memory("i32.store", to, op("i32.mul", sums, i32(self.lowest))))
        else:
            f.do(memory("i32.store", to, i32(0)))
        f.do(memory("i32.store", to, zero, offset=4))
        f.set(any_zero, op("i32.or", f.get(any_zero), zero))
        e.close()
        self.any_zero = None if self.z is None and not self.offset else f.get(any_zero)

    def _place_left(self, in_place):
        """Find where the left operand begins as bytes less `offset`, copying it unless it is used in place."""
        e, f = self.e, self.f
        e.block()
        e.bind("row", i32(0))
        e.bind("k", i32(0))
        slot, index = self.a.attr
        word = size(self.word)
        first = f.let(e.index(ix.Index(index.terms, index.const), word, e.addresses[slot]))
        e.close()
        self.left_at = first if in_place else self.copy
        if in_place:
            return
        e.loop("number", self.what.rows * self.depth, self.lanes)
        n = e.counters["number"][0]
        number = e.four_at(self.word, op("i32.add", first, op("i32.mul", n, i32(word))), 0)
        if self.offset:
            number = op("i32x4.sub", number, i32x4(self.offset))
        f.do(memory("v128.store_8", op("i32.add", self.copy, n), number, offset=0))
        e.close()

    def _sum_words(self):
        """Write the sums of four neighbors each of the left operand where panels will be."""
        e, f = self.e, self.f
        words = self.what.rows * self.depth // 4
        e.loop("word", words, self.lanes, clamp=words - self.lanes if words % self.lanes else None)
        place = f.let(op("i32.shl", e.counters["word"][0], i32(2)))
        line = memory("v128.load", op("i32.add", self.left_at, place))
        sums = op("v128.dot_bytes", i32x4(0), i32x4(_ONES), line)
        f.do(memory("v128.store", op("i32.add", self.panels_at, place), sums))
        e.close()

    def _row_sum(self, at):
        """The sum of a row of int8."""
        e, f = self.e, self.f
        whole = self.depth // (4 * self.lanes) * 4 * self.lanes
        out = f.local("i32")
        f.set(out, i32(0))
        if whole:
            parts = f.local("v128")
            f.set(parts, i32x4(0))
            e.loop("k", whole, 4 * self.lanes)
            line = memory("v128.load", op("i32.add", at, e.counters["k"][0]))
            f.set(parts, op("v128.dot_bytes", f.get(parts), i32x4(_ONES), line))
            e.close()
            half = self.lanes // 2
            while half:
                f.set(parts, op("i32x4.add", f.get(parts), op("v128.turn", f.get(parts), i32(half))))
                half //= 2
            f.set(out, op("i32x4.extract_lane", f.get(parts), imm=b"\0"))
        if self.depth > whole:
            e.loop("k", self.depth, 1, whole)
            number = memory("i32.load8_s", op("i32.add", at, e.counters["k"][0]))
            f.set(out, op("i32.add", f.get(out), number))
            e.close()
        return f.get(out)

    # -- panels ---------------------------------------------------------------------------------------------------

    def _pack(self):
        """Copy the panel of the right operand that begins at the first column, less its lowest value, as bytes."""
        e, f = self.e, self.f
        if self.halves is None:
            self.far = self._far()
            self._by_fours(self._vectors)
        elif self.runs:
            self.runs.tabulate(self.run_table, size(self.runs.word))
            self._by_fours(None)
        else:
            slot = self.right.attr[0]
            word = self.low.slots.types[slot]
            places, in_row = self._places(self.halves[0], slot, size(word), self.lanes * self.vectors)

            def contiguous(k):
                at = f.let(op("i32.add", places[0], self._tap(k)))
                return [e.four_at(word, at, size(word) * self.lanes * v) for v in range(self.vectors)]

            e.branch(in_row)
            self._by_fours(contiguous)
            e.close()
            e.branch(op("i32.eqz", in_row))
            self._scattered(word, places)
            e.close()
        if self.any_zero is not None:
            e.branch(self.any_zero)
            self._column_sums()
            e.close()

    def _far(self):
        """(slot, index) of a matrix in memory whose rows lie on pages of their own, else None: nothing else fetches the
        columns of the next panels before they are read."""
        waiting = [self.right]
        while waiting:
            value = waiting.pop()
            waiting.extend(value.args)
            if value.op == "load":
                slot, index = value.attr
                row = self.e.coefficient(index, "k0")
                word = size(self.low.slots.types[slot])
                if row is not None and row * word >= PAGE and row * word * self.depth >= FAR:
                    return (slot, index) if self.e.coefficient(index, "column") == 1 else None
        return None

    def _tap(self, k):
        return memory("i32.load", op("i32.add", self.table, op("i32.shl", k, i32(2))))

    def _vectors(self, k):
        """The columns of a term, where neighbors in memory or computed."""
        e, f = self.e, self.f
        out = []
        e.block()
        e.bind("k0", k)
        if self.far is not None:
            e.bind("column", self.first_column)
            slot, index = self.far
            at, offset = e.address(slot, index, self.low.slots.types[slot])
            f.do(memory("v128.prefetch", f.let(at), offset=offset + LINE))
        for v in range(self.vectors):
            e.block()
            e.bind("column", f.let(op("i32.add", self.first_column, i32(self.lanes * v))) if v else self.first_column)
            e.lane = "column"
            e._depends = {}
            out.append(f.let(e.vector(self.right)))
            e.lane = None
            e._depends = {}
            e.close()
        e.close()
        return out

    def _by_fours(self, columns):
        """Write the fours of terms of a panel; columns(k): the vectors of term k, as numbers of 32 bits; None: they
        are copied by runs."""
        e, f = self.e, self.f
        to = f.local("i32")
        f.set(to, self.packed)

        def four_by_runs(k, count):
            taps = [f.let(self._tap(f.let(op("i32.add", k, i32(n))) if n else k)) for n in range(count)]
            self.runs.copy(f.get(to), taps, joined)
            f.set(to, op("i32.add", f.get(to), i32(self.four_bytes)))

        def joined(numbers):
            out = numbers[0]
            for n in range(1, len(numbers)):
                out = op("i32x4.add", out, op("i32x4.shl", numbers[n], i32(8 * n)))
            least = self.lowest * (_ONES & ((1 << (8 * len(numbers))) - 1))
            return op("i32x4.sub", out, i32x4(least)) if least else out

        def four(k, count):
            if columns is None:
                four_by_runs(k, count)
                return
            terms = [columns(f.let(op("i32.add", k, i32(n))) if n else k) for n in range(count)]
            for v in range(self.vectors):
                f.do(memory("v128.store", f.get(to), joined([t[v] for t in terms]), offset=4 * self.lanes * v))
            f.set(to, op("i32.add", f.get(to), i32(self.four_bytes)))

        whole = self.depth // 4 * 4
        e.loop("four", whole, 4)
        four(e.counters["four"][0], 4)
        e.close()
        if self.depth > whole:
            e.block()
            four(i32(whole), self.depth - whole)
            e.close()

    def _scattered(self, word, places):
        """The same where columns are not neighbors in memory: byte by byte."""
        e, f = self.e, self.f
        if self.depth % 4:
            for v in range(self.vectors):
                at = (self.fours - 1) * self.four_bytes + 4 * self.lanes * v
                f.do(memory("v128.store", self.packed, i32x4(0), offset=at))
        e.loop("term", self.depth)
        k = e.counters["term"][0]
        tap = f.let(self._tap(k))
        to = op("i32.mul", op("i32.shr_u", k, i32(2)), i32(self.four_bytes))
        to = f.let(op("i32.add", op("i32.add", self.packed, to), op("i32.and", k, i32(3))))
        load = {"i8": "i32.load8_s", "u8": "i32.load8_u"}.get(word, "i32.load")
        for n, place in enumerate(places):
            number = memory(load, op("i32.add", place, tap))
            if self.lowest:
                number = op("i32.sub", number, i32(self.lowest))
            f.do(memory("i32.store8", to, number, offset=4 * n))
        e.close()

    def _column_sums(self):
        """Write the sums of a panel's columns behind it."""
        e, f = self.e, self.f
        sums = [f.local("v128") for _ in range(self.vectors)]
        for s in sums:
            f.set(s, i32x4(0))
        e.loop("four", self.fours)
        at = f.let(op("i32.add", self.packed, op("i32.mul", e.counters["four"][0], i32(self.four_bytes))))
        for v, s in enumerate(sums):
            line = memory("v128.load", at, offset=4 * self.lanes * v)
            f.set(s, op("v128.dot_bytes", f.get(s), line, i32x4(_ONES)))
        e.close()
        for v, s in enumerate(sums):
            f.do(memory("v128.store", self.packed, f.get(s), offset=self.fours * self.four_bytes + 4 * self.lanes * v))

    # -- tiles ----------------------------------------------------------------------------------------------------

    def _add_product(self, total, left, right):
        self.f.set(total, op("v128.dot_bytes", self.f.get(total), right, left))

    def _tile(self, first_row):
        """Sum and store a tile."""
        e, f, vectors = self.e, self.f, self.vectors
        sums = self._zeros()
        terms = f.let(op("i32.add", self.begins, op("i32.shl", first_row, i32(3))))
        if self.lowest:
            for r, line in enumerate(sums):
                first = f.let(memory("v128.load32_splat", terms, offset=8 * r))
                for s in line:
                    f.set(s, first)
        if self.any_zero is not None:
            e.branch(self.any_zero)
            columns = [
                f.let(memory("v128.load", self.packed, offset=self.fours * self.four_bytes + 4 * self.lanes * v))
                for v in range(vectors)
            ]
            for r, line in enumerate(sums):
                zero = f.let(memory("v128.load32_splat", terms, offset=8 * r + 4))
                for s, column in zip(line, columns):
                    f.set(s, op("i32x4.sub", f.get(s), op("i32x4.mul", zero, column)))
            e.close()
        left = op("i32.add", self.left_at, op("i32.mul", first_row, i32(self.depth)))
        packed_products(self, sums, left, self.depth, self.fours, self.four_bytes, self._add_product)
        self._store_tile(first_row, sums)
