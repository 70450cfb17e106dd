"""Tiles of a product's results: their sums in registers, and storing them."""

from emberlet.sizes.questions import known_equal
from emberlet.sizes.size import is_open

from ....lower import index as ix
from ...assembler import f32x4, i32, memory, op
from ..tail import LINE

NEAR, FAR = 1 << 15, 1 << 20  # bytes that the L1 cache holds, and that the L2 cache does not
_WRITTEN_OUT = 2  # rows of a tile whose epilogues are not a loop


def fixed(what):
    """Whether nothing but the number of products is an open size."""
    return not (is_open(what.rows) or is_open(what.columns) or is_open(what.depth()))


class Tiles:
    """The part of a Contraction that computes a tile."""

    def _tile(self, first_row):
        """Sum and store a tile."""
        e, f, what = self.e, self.f, self.what
        if self.fetches:
            self._fetch_columns(first_row)
        sums = self._zeros()
        a, b, step = self._pointers(first_row)
        depth = what.depth()
        most = 4 if self.lanes == 4 or self.rows < 10 else 2  # products of a large tile hide what a loop costs
        unroll = most if is_open(depth) or depth % most == 0 else 2 if depth % 2 == 0 else 1
        by_row = 0 if is_open(self.by_row) else 4 * self.by_row
        if self.left_copy is not None:
            by_row = 4 * depth + LINE
        left_offset = self._offsets(a, (4 * self.by_k, unroll), (by_row, self.rows))
        right_offset = self._offsets(b, (step, unroll))
        lines = [f.let(i32(4 * r * self.by_row)) for r in range(1, self.rows)] if is_open(self.by_row) else None
        whole = depth // unroll * unroll
        ahead = self._next_rows(a)
        e.loop("depth", whole, unroll)
        if ahead is not None:
            self._fetch_rows(ahead, unroll)
        self._products(a, b, step, sums, unroll, left_offset, right_offset, lines)
        e.close()
        if not known_equal(whole, depth):
            e.loop("depth", depth, 1, whole)
            self._products(a, b, step, sums, 1, left_offset, right_offset, lines)
            e.close()
        self._store_tile(first_row, sums)

    def _next_rows(self, a):
        """A local with the address of the rows behind those of a tile, where these follow each other and come from
        memory or a far cache; else None."""
        what, f = self.what, self.f
        depth = what.depth()
        if (
            self.lanes == 4
            or is_open(what.rows)
            or is_open(what.columns)
            or is_open(depth)
            or self.left_copy is not None
            or (self.by_row, self.by_k) != (depth, 1)
        ):
            return None
        if 4 * what.rows * depth < FAR or 4 * self.rows * depth > NEAR:
            return None
        ahead = f.local("i32")
        f.set(ahead, op("i32.add", f.get(a), i32(4 * self.rows * what.depth())))
        return ahead

    def _fetch_rows(self, ahead, unroll):
        """Fetch a part of the next rows that is as long as what `unroll` terms of these take."""
        f = self.f
        size = 4 * self.rows * unroll
        for at in range(0, size, LINE):
            f.do(memory("v128.prefetch", f.get(ahead), offset=at))
        f.set(ahead, op("i32.add", f.get(ahead), i32(size)))

    def _products(self, a, b, step, sums, unroll, left_offset, right_offset, lines):
        """Add the products of `unroll` terms to the sums of a tile. lines: the bytes from a row to the next ones, where
        that is an open size."""
        f, vectors = self.f, self.vectors
        rows = [f.get(a)] * self.rows
        if lines:
            rows[1:] = [f.let(op("i32.add", f.get(a), line)) for line in lines]
        right = [f.local("v128") for _ in range(vectors)]
        left = f.local("v128")
        for u in range(unroll):
            for v in range(vectors):
                f.set(right[v], memory("v128.load", f.get(b), offset=right_offset(u) + 4 * self.lanes * v))
            for r in range(self.rows):
                f.set(left, memory("v128.load32_splat", rows[r], offset=left_offset(u, r)))
                for v in range(vectors):
                    f.set(sums[r][v], self._multiplied(f.get(left), f.get(right[v]), f.get(sums[r][v])))
        f.set(a, op("i32.add", f.get(a), i32(4 * unroll * self.by_k)))
        f.set(b, op("i32.add", f.get(b), i32(unroll * step)))

    def _pointers(self, first_row):
        """Locals with the addresses of the first terms of a tile, of its left and right operand, and the bytes between
        two terms of the right one."""
        e, f = self.e, self.f
        e.block()
        e.bind("row", first_row)
        e.bind("k", i32(0))
        e.bind("column", self.first_column)
        slot, index = self.left.attr
        a, b = f.local("i32"), f.local("i32")
        bare = ix.Index(index.terms, index.const)
        f.set(a, e.index(bare, 4, e.addresses[slot]) if self.left_copy is None else self.left_copy)
        if self.direct:
            e.bind("k0", i32(0))
            f.set(b, e.index(self.right.attr[1], 4, e.addresses[self.right.attr[0]]))
            step = 4 * self.step
        else:
            f.set(b, self.packed)
            step = self.term_bytes
        e.close()
        return a, b, step

    def _offsets(self, pointer, *axes):
        """A function from places along axes to the bytes from the pointer. axes: (bytes of a step, number of places).

        Offsets of loads are not negative. Where an axis runs backward in memory, as in a reversed kernel, the pointer
        moves to the first of the bytes.
        """
        lowest = sum([min(0, step * (count - 1)) for step, count in axes])
        if lowest:
            self.f.set(pointer, op("i32.add", self.f.get(pointer), i32(lowest)))
        return lambda *places: sum([place * axis[0] for place, axis in zip(places, axes)]) - lowest

    def _zeros(self):
        """A local for each vector of a tile's sums, set to zero."""
        f = self.f
        sums = [[f.local("v128") for _ in range(self.vectors)] for _ in range(self.rows)]
        for line in sums:
            for s in line:
                f.set(s, f32x4(0.0))
        return sums

    def _fetch_columns(self, first_row):
        """Fetch this tile's share of the next block: some of its rows, each as long as a block."""
        e, f, what, many = self.e, self.f, self.what, self.together
        slot, index = self.right.attr
        line = 4 * e.coefficient(index, "k0")
        width = self.lanes * self.vectors
        parts = (what.rows + self.rows - 1) // self.rows * many
        share = (what.depth() + parts - 1) // parts
        first = e.counters["block"][0]
        e.block()
        e.bind("column", f.let(op("i32.mul", op("i32.add", first, i32(many)), i32(width))))
        part = op("i32.mul", op("i32.div_u", first_row, i32(self.rows)), i32(many))
        part = op("i32.add", part, op("i32.sub", e.counters["panel"][0], first))
        e.bind("k0", f.let(op("i32.mul", part, i32(share))))
        at, offset = e.address(slot, index, "f32")
        at = f.let(at)
        e.loop("fetched", share)
        at = f.let(op("i32.add", at, op("i32.mul", e.counters["fetched"][0], i32(line))))
        for n in range(0, 4 * many * width, LINE):
            f.do(memory("v128.prefetch", at, offset=offset + n))
        e.close()
        e.close()

    def _fetch_results(self, first_row):
        """Fetch the lines that a tile's results will be written to, where these are beyond the caches: a store waits
        for its line."""
        e, f, what = self.e, self.f, self.what
        if self.lanes == 4 or not fixed(what) or 4 * what.rows * what.columns < FAR:
            return
        for r in range(self.rows):
            e.block()
            e.bind("row", f.let(op("i32.add", first_row, i32(r))))
            e.bind("column", self.first_column)
            at, offset = e.address("out", self.store, self.low.slots.result.word)
            f.do(memory("v128.prefetch", f.let(at), offset=offset))
            e.close()

    def _store_tile(self, first_row, sums):
        """Apply the epilogue to the sums of a tile and store them."""
        e, f = self.e, self.f
        if self.lanes > 4 and self.rows > _WRITTEN_OUT:
            self._store_rows(first_row, sums)
            return
        for r in range(self.rows):
            e.block()
            e.bind("row", f.let(op("i32.add", first_row, i32(r))))
            self._store_row([f.get(s) for s in sums[r]])
            e.close()

    def _store_rows(self, first_row, sums):
        """`_store_tile` by a loop over rows, for which the sums go through memory. Compilers take much longer for an
        epilogue that is written out for each row than for all products."""
        e, f = self.e, self.f
        size = 4 * self.lanes
        if self.sums_at is None:
            self.sums_at = f.scratch
            f.scratch += self.rows * self.vectors * size
        at = f.let(op("i32.add", e.addresses["scratch"], i32(self.sums_at)))
        for r, line in enumerate(sums):
            for v, s in enumerate(line):
                f.do(memory("v128.store", at, f.get(s), offset=(r * self.vectors + v) * size))
        e.loop("stored", self.rows)
        r = e.counters["stored"][0]
        e.bind("row", f.let(op("i32.add", first_row, r)))
        line = f.let(op("i32.add", at, op("i32.mul", r, i32(self.vectors * size))))
        self._store_row([memory("v128.load", line, offset=v * size) for v in range(self.vectors)])
        e.close()

    def _store_row(self, sums):
        """Apply the epilogue to a row's sums, and store them. sums: expressions."""
        e, f, columns = self.e, self.f, self.what.columns
        e.aligned = self.lane == "column" and not is_open(columns) and columns % self.lanes == 0
        word, stores = self.low.slots.result.word, []

        def compute(v, found):
            e.bind(self.lane, f.let(op("i32.add", self.first_column, i32(self.lanes * v))))
            e.lane = self.lane
            e.define("sum", f.let(found), True)
            if e.coefficient(self.store) == 1:
                stores.append(e.ready(self.store, self.result, word))
            else:
                e.store_four(self.store, self.result, word)
            e.lane = None

        e.beside([lambda v=v, s=s: compute(v, s) for v, s in enumerate(sums)])
        if stores:
            e.put(stores)
        e.aligned = False

    def _multiplied(self, a, b, c):
        if self.options.relaxed:
            return op("f32x4.relaxed_madd", a, b, c)
        return op("f32x4.add", c, op("f32x4.mul", a, b))
