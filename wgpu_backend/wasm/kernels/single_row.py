"""Products of one row and a matrix, which is read once and in place.

Loading the matrix takes the time, not multiplying. Of few columns, the sums are held in registers: several vectors of
columns, or several terms of few columns, so that no addition waits for the one before. Of many, a few rows of the
matrix at a time are added to sums in memory, so that each is read along its length.
"""

from ...lower.contraction import problem
from ..assembler import f32x4, i32, memory, op
from .contraction import Contraction, fixed
from .folds import BLOCK

SUMS = 8  # vectors that are summed independently
LEAST, MOST = 128, 1024  # columns of a panel whose sums lie in memory
PANELS = 8  # of a matrix that has enough columns, for threads to share
FEW_PANELS, LONGER = 2, 192  # in vectors of four: lines that are longer are read ahead, which outweighs more threads
TOGETHER = 8  # rows of the matrix that are then read together


def single_row(item, stored, name, options):
    """The Kernel of a "matmul" item with one row, or None if nested loops are better."""
    node = item.anchor
    if node.dtype.kind != "float":
        return None
    what = problem(node, True)
    if not fixed(what) or what.rows != 1 or what.columns < 2 * options.lanes or what.depth() < 4:
        return None
    writer = _SingleRow(item, stored, what, options)
    return writer.kernel(name) if writer.serves() else None


class _SingleRow(Contraction):
    tails = False

    def __init__(self, item, stored, what, options):
        Contraction.__init__(self, item, stored, what, options)
        self.wide = what.columns >= LEAST and self._float_panels() is None
        if self.wide:
            most, least = (FEW_PANELS, LONGER) if self.lanes == 4 else (PANELS, LEAST)
            panels = max(1, (what.columns + MOST - 1) // MOST, min(most, what.columns // least))
            if panels == 1 and what.columns % self.lanes:
                panels = 2  # a single one would reach beyond the last column
            self.vectors = (what.columns + self.lanes * panels - 1) // (self.lanes * panels)
            return
        self.parts = SUMS // self.vectors
        if self._float_panels() is not None:
            return
        fewest = None
        for vectors in (8, 6, 4, 3, 2):
            width = self.lanes * vectors
            panels = (what.columns + width - 1) // width
            if what.columns >= width and (fewest is None or panels * vectors < fewest):
                fewest = panels * vectors
                self.vectors = vectors
        self.parts = max(1, SUMS // self.vectors)

    def serves(self):
        """Whether neighboring columns are neighbors in memory, too, and terms follow each other forward."""
        if not Contraction.serves(self) or self.by_k < 0:
            return False
        return self._float_panels() is not None or (self._direct() and self.step >= 0)

    def _share(self, panels):
        Contraction._share(self, panels)
        self.f.work *= 2  # the matrix is loaded for one row only
        self.f.streams = self.right.attr[0]

    def _tile(self, first_row):
        """Sum and store the columns of a panel."""
        depth = self.what.depth()
        self.at, self.beside, self.step = self._pointers(first_row)
        if self.wide:
            self._in_memory(first_row)
            return
        sums = self._zeros()
        self._by_blocks(depth, lambda terms: self._add(sums[0], terms))
        self._store_tile(first_row, sums)

    def _by_blocks(self, depth, add):
        """Add all terms; long sums by blocks, as in folds.py."""
        if depth <= 2 * BLOCK:
            add(depth)
            return
        self.e.loop("part", depth // BLOCK)
        add(BLOCK)
        self.e.close()
        if depth % BLOCK:
            add(depth % BLOCK)

    def _advance(self, terms):
        f = self.f
        f.set(self.at, op("i32.add", f.get(self.at), i32(4 * terms * self.by_k)))
        f.set(self.beside, op("i32.add", f.get(self.beside), i32(terms * self.step)))

    def _in_groups(self, terms, together, write):
        """write(count) for groups of terms."""
        whole = terms // together * together
        if whole:
            self.e.loop("depth", whole, together)
            write(together)
            self._advance(together)
            self.e.close()
        if terms - whole:
            write(terms - whole)
            self._advance(terms - whole)

    # -- sums in registers ----------------------------------------------------------------------------------------

    def _add(self, totals, terms):
        """Add the products of the next terms to the totals."""
        f = self.f
        parts = [[f.local("v128") for _ in totals] for _ in range(self.parts)]
        for part in parts:
            for one in part:
                f.set(one, f32x4(0.0))
        self._in_groups(terms, 2 * self.parts, lambda count: self._terms(parts, count))
        for n in range(len(totals)):
            for part in parts:
                f.set(totals[n], op("f32x4.add", f.get(totals[n]), f.get(part[n])))

    def _terms(self, parts, count):
        f = self.f
        left = f.local("v128")
        for n in range(count):
            f.set(left, self._left(n))
            for v, total in enumerate(parts[n % self.parts]):
                right = memory("v128.load", f.get(self.beside), offset=n * self.step + 4 * self.lanes * v)
                f.set(total, self._multiplied(f.get(left), right, f.get(total)))

    def _left(self, n):
        return memory("v128.load32_splat", self.f.get(self.at), offset=4 * n * self.by_k)

    # -- sums in memory -------------------------------------------------------------------------------------------

    def _in_memory(self, first_row):
        e, f = self.e, self.f
        depth = self.what.depth()
        length = 4 * self.lanes * self.vectors
        sums, totals = self.panels_at, f.let(op("i32.add", self.panels_at, i32(length)))
        long = depth > 2 * BLOCK
        f.scratch = 2 * length if long else length

        def every(write):
            e.loop("lane", length, 4 * self.lanes)
            write(e.counters["lane"][0])
            e.close()

        def clear(at):
            every(lambda n: f.do(memory("v128.store", op("i32.add", at, n), f32x4(0.0))))

        def add(count):
            left = [f.let(self._left(n)) for n in range(count)]

            def four(lane):
                right, to = f.let(op("i32.add", f.get(self.beside), lane)), f.let(op("i32.add", sums, lane))
                total = memory("v128.load", to)
                for n in range(count):
                    total = self._multiplied(left[n], memory("v128.load", right, offset=n * self.step), total)
                f.do(memory("v128.store", to, total))

            every(four)

        def block(terms):
            clear(sums)
            self._in_groups(terms, TOGETHER, add)
            if long:
                every(into_totals)

        def into_totals(lane):
            to = f.let(op("i32.add", totals, lane))
            part = memory("v128.load", op("i32.add", sums, lane))
            f.do(memory("v128.store", to, op("f32x4.add", memory("v128.load", to), part)))

        if long:
            clear(totals)
        self._by_blocks(depth, block)
        e.loop("four", self.lanes * self.vectors, self.lanes)
        four = e.counters["four"][0]
        e.bind("row", first_row)
        e.bind("column", f.let(op("i32.add", self.first_column, four)))
        e.lane = "column"
        at = op("i32.add", totals if long else sums, op("i32.mul", four, i32(4)))
        e.define("sum", f.let(memory("v128.load", at)), True)
        e.store_four(self.store, self.result, self.low.slots.result.word)
        e.lane = None
        e.close()
