"""Copying the right operand of a product into panels."""

from ....lower import index as ix
from ...assembler import i32, memory, op


class Packing:
    """The part of a Contraction that copies a panel."""

    def _copy_columns(self, to):
        """Copy a panel's columns of one term, which are neighbors."""
        e, f = self.e, self.f
        for v in range(self.vectors):
            e.block()
            e.bind("column", f.let(op("i32.add", self.first_column, i32(self.lanes * v))))
            e.lane = "column"
            f.do(memory("v128.store", to, e.vector(self.right), offset=4 * self.lanes * v))
            e.lane = None
            e.close()

    def _pack(self):
        """Copy the panel of the right operand that begins at the first column."""
        e, f, what = self.e, self.f, self.what
        width = self.lanes * self.vectors
        index = self.right.attr[1]
        to = f.local("i32")
        f.set(to, self.packed)

        def loops(write):
            for i, extent in enumerate(what.inner):
                e.loop("k{}".format(i), extent)
            write()
            f.set(to, op("i32.add", f.get(to), i32(4 * width)))
            for _ in what.inner:
                e.close()

        def by_runs():
            self.runs.copy(f.get(to), [f.let(e.index(self.runs.taps, 4))], lambda vectors: vectors[0])

        if self.runs:
            self.runs.tabulate(self.table, 4)
            if self.runs.goes_by_entries():
                self.runs.copy_all(self.packed, 4)
            else:
                loops(by_runs)
            return
        halves = self._by_axis(index)
        if e.coefficient(index, "column") is not None or halves is None:
            e.bind("column", self.first_column)
            loops(lambda: self._copy_columns(f.get(to)))
            return
        self._pack_places(halves, to, loops)

    def _pack_places(self, halves, to, loops):
        """`_pack` where a position is a pixel's position plus the tap's offset, which is the same for all pixels.
        halves: the two parts of the index; to: the local with the address of a line; loops(write): writes each line."""
        e, f = self.e, self.f
        width = self.lanes * self.vectors
        by_column, by_k = halves
        apart = self._apart()
        places, in_row = self._places(by_column, self.right.attr[0], 4, width, apart)

        def tap(n):
            return op("i32.add", places[n], f.let(e.index(by_k, 4)))

        def contiguous():
            base = f.let(tap(0))
            for v in range(self.vectors):
                at = 4 * self.lanes * v
                line = memory("v128.load", base, offset=at) if apart == 1 else e.every_second("f32", base, apart * at)
                f.do(memory("v128.store", f.get(to), line, offset=at))

        def scattered():
            offset = f.let(e.index(by_k, 4))
            if self.lanes > 4:  # one by one: compilers take long to put so many numbers into a vector
                for n in range(width):
                    number = memory("i32.load", op("i32.add", places[n], offset))
                    f.do(memory("i32.store", f.get(to), number, offset=4 * n))
                return
            for v in range(self.vectors):
                first = self.lanes * v
                out = memory("v128.load32_zero", op("i32.add", places[first], offset))
                for n in range(1, self.lanes):
                    out = memory("v128.load32_lane", op("i32.add", places[first + n], offset), out, lane=n)
                f.do(memory("v128.store", f.get(to), out, offset=4 * first))

        e.branch(in_row)
        loops(contiguous)
        e.close()
        e.branch(op("i32.eqz", in_row))
        loops(scattered)
        e.close()

    def _apart(self):
        """How many elements apart columns are that a panel takes by vectors: 2 by a stride of 2."""
        strides = self.node.op == "conv" and self.node.arg[0][-1] == 2
        return 2 if strides else 1

    def _places(self, by_column, slot, element, width, apart=1):
        """(the addresses of `width` columns, whether they are `apart` from each other), for elements of `element`
        bytes."""
        e, f = self.e, self.f
        places = []
        for n in range(width):
            e.block()
            at = f.local("i32")
            e.bind("column", f.let(op("i32.add", self.first_column, i32(n))))
            f.set(at, e.index(by_column, element, e.addresses[slot]))
            places.append(f.get(at))
            e.close()
        # All of them: a reversed line and the next may have the ends of a row.
        in_row = i32(1)
        for n in range(1, width):
            neighbor = op("i32.eq", op("i32.sub", places[n], places[0]), i32(element * apart * n))
            in_row = op("i32.and", in_row, neighbor) if n > 1 else neighbor
        return places, f.let(in_row)

    def _by_axis(self, index, columns=("column",)):
        """The index as the sum of (a part of the grid and column, a part of the taps); None if a term has both.
        columns: the counters that a column consists of."""
        e = self.e
        of_column, of_k = [], []
        names = ["k{}".format(i) for i in range(len(self.what.inner))]
        for c, atom in index.terms:
            taps = [n for n in names if e._atom_depends(atom, n)]
            if taps and [n for n in columns if e._atom_depends(atom, n)]:
                return None
            (of_k if taps else of_column).append((c, atom))
        return ix.Index(tuple(of_column), index.const), ix.Index(tuple(of_k), 0)
