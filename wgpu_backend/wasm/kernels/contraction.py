"""Matrix products and convolutions: tiles of results held in registers, over panels of the right operand.

out[grid, row, column] = sum over k of left[grid, row, k] * right[grid, k, column]. Eight columns of the right operand
are copied side by side, row k by row k, into a *panel*; files hold constant matrices so. Its products with the left
operand are then summed in registers, in tiles of six rows by eight columns (Goto and van de Geijn 2008). Longer vectors
make both larger. For a convolution, columns are the pixels of the whole image and k goes over channels and taps, so
that the panel is the im2col of these eight pixels.
"""

from emberlet.shapes import size
from emberlet.sizes.questions import divides, known_equal
from emberlet.sizes.size import is_open, least, surely_less, typical

from ...lower import index as ix
from ...lower.contraction import problem
from ...lower.lowering import Lowering
from ..assembler import E, f32, f32x4, i32, memory, op, unsigned_min
from . import split
from .nest import begin, finish
from .runs import runs
from .tail import LINE, tail

ROWS = 6  # rows of a tile: with two vectors of columns, 12 sums, 2 columns and 1 row fill 15 of x86's registers
VECTORS = 2
PAGE = 1 << 12  # bytes
NEAR, FAR = 1 << 15, 1 << 20  # bytes that the L1 cache holds, and that the L2 cache does not
BLOCK_BYTES = 1 << 17  # bytes of panels that are processed together, four times as many where vectors are longer
_FEWER_ROWS = 13
_PANELS = 4  # that threads share well
_WRITTEN_OUT = 2  # rows of a tile whose epilogues are not a loop

# Files hold constant matrices in panels of WIDTH columns (../writer.py), which are read in place.
WIDTH = 8
PANEL_ORDER = (1, 0, 2)  # from (panels, terms, WIDTH) to (terms, panels, WIDTH), which is (terms, columns)


def contraction(item, stored, name, options):
    """The Kernel of a "matmul" or "conv" item, or None if nested loops are better."""
    node = item.anchor
    if node.dtype.kind != "float":
        return None
    what = problem(node, True)
    if typical(what.columns) < options.lanes or typical(what.depth()) < 4 or typical(what.rows) < 2:
        return None
    if node.op == "conv" and not fixed(what):
        return None
    writer = Contraction(item, stored, what, options)
    if not writer.serves():
        return None
    return writer.kernel(name)


def float_panels_of(weight):
    """The node of the panels, of which the right operand of a product is a view; None for other operands."""
    if weight.op != "reshape" or weight.srcs[0].op != "permute" or weight.srcs[0].arg != PANEL_ORDER:
        return None
    stored = weight.srcs[0].srcs[0]
    if stored.op != "data" or stored.word != "f32" or stored.shape[2:] != (WIDTH,):
        return None
    panels, terms = stored.shape[:2]
    return stored if weight.shape == (terms, panels * WIDTH) else None


def fixed(what):
    """Whether nothing but the number of products is an open size."""
    return not (is_open(what.rows) or is_open(what.columns) or is_open(what.depth()))


def _rows_of_tiles(rows, most):
    """How many rows a tile has, at most `most`: few should be computed twice, and loading the columns takes as long as
    two rows."""
    if is_open(rows):
        return most
    best, least = 1, 3 * rows
    for n in range(2, min(most, rows) + 1):
        cost = (rows + n - 1) // n * (n + 2)
        if cost <= least:
            best, least = n, cost
    return best


class Contraction:
    type = "f32"  # of the sums
    lane = "column"  # the counter whose neighbors a vector holds
    many_rows = 128  # to which packing is little
    tails = True  # whether tiles of one vector can be made of panels of two

    def __init__(self, item, stored, what, options):
        self.lanes = options.lanes if options else 4
        self.item = item
        self.node = item.anchor
        self.what = what
        self.options = options
        self.low = low = Lowering(item, stored)
        self.grid_count = size(what.before)
        self.grid = ix.unflatten(ix.counter("grid", self.grid_count), what.before)
        self.row = ix.counter("row", what.rows)
        self.column = self._column()
        self.k = ix.counter("k", what.depth())
        self.left = what.left(low, self.grid, self.row, ix.unflatten(ix.counter("k", what.depth()), what.inner))
        inner = [ix.counter("k{}".format(i), extent) for i, extent in enumerate(what.inner)]
        self.right = what.right(low, self.grid, self.column, inner)
        value = low.build.make("variable", self.type, (), "sum")
        self.result, self.store = low.place(
            what.out(self.grid, self.row, self.column), low.round(value, self.node.dtype)
        )
        self.rows = _rows_of_tiles(what.rows, options.rows if options else ROWS)
        self.vectors = VECTORS if typical(what.columns) >= 2 * self.lanes else 1
        self.in_panels = None  # the slot of panels that the right operand consists of, if it is stored so
        self.left_copy = None  # the address of a tile's rows, if they are copied
        self.tail = None
        self.sums_at = None  # where in the scratch memory a tile's sums lie

    def _column(self):
        return ix.counter("column", self.what.columns)

    def _float_panels(self):
        """The slot of the right operand if it holds panels; else None."""
        if self.node.op != "matmul" or self.lanes * self.vectors != WIDTH or self.right.op != "load":
            return None
        slot, found = self.right.attr[0], float_panels_of(self.node.srcs[1])
        return slot if found is not None and self.low.slots.nodes[slot] is found else None

    def serves(self):
        """Whether the left operand's index is linear in the row and in k."""
        self.e = e = begin("", self.low.slots, self.lanes)
        if self.left.op != "load":
            return False
        index = self.left.attr[1]
        self.by_row, self.by_k = e.stride(index, "row"), e.coefficient(index, "k")
        if self.by_row is None or (is_open(self.by_row) and least(self.by_row) < 0):
            return False
        return self.by_k is not None and self.right.op == "load"

    # -- the kernel -----------------------------------------------------------------------------------------------

    def kernel(self, name):
        what = self.what
        slots = self.low.slots
        self.e = e = begin(name, slots, self.lanes)
        self.f = e.f
        width = self.lanes * self.vectors
        self.direct = self._direct()
        self.in_panels = self._float_panels()
        in_place = self.direct or self.in_panels is not None
        panels = (what.columns + width - 1) // width
        self.term_bytes = 4 * width  # bytes of a panel for each term
        self.panel_bytes = what.depth() * self.term_bytes
        # Process as many panels together as fit the L2 cache; a tile's rows then stay in the L1 cache.
        together = panels if self.direct else self._together(panels)
        self.f.scratch = 0 if in_place else together * self.panel_bytes
        self.runs = None
        if not in_place and e.coefficient(self.right.attr[1], "column") is None:
            self.runs = runs(self)
            if self.runs and self.runs.step > 1:  # which takes a register that all else is computed around
                self.rows = _rows_of_tiles(what.rows, min(self.rows, _FEWER_ROWS))
        self.tail = tail(self)
        room = self.rows * (4 * what.depth() + LINE) if self._collides() and typical(together) > 1 else 0
        self._share(panels)
        self._open_grid()
        self.panels_at = e.addresses["scratch"]
        if self.runs:
            self.table = self.f.let(op("i32.add", self.panels_at, i32(self.f.scratch + 4 * self.lanes)))
            self.f.scratch += self.runs.room
        if room:
            self.left_copy = self.f.let(op("i32.add", self.panels_at, i32(self.f.scratch)))
            self.f.scratch += room
        if self.tail and self.tail.room:
            self.tail.column = self.f.let(op("i32.add", self.panels_at, i32(self.f.scratch)))
            self.f.scratch += self.tail.room
        self._blocks(panels, together, None if in_place else self._pack)
        e.close()
        return finish(e, name, slots)

    def _together(self, panels):
        """How many panels a block has."""
        room = BLOCK_BYTES if self.lanes == 4 else 4 * BLOCK_BYTES
        return max(1, min(typical(panels), room // typical(self.panel_bytes)))

    def _share(self, panels):
        """Choose the loop that threads share: over the grid, else over panels, which are then packed once, or tiles."""
        what = self.what
        tiles = 1 if is_open(what.rows) else (what.rows + self.rows - 1) // self.rows
        self.shared = split.chosen([self.grid_count, panels, tiles])
        packs = self.lanes > 4 and not self.direct and typical(what.rows) < self.many_rows
        if self.shared == 2 and packs and typical(panels) >= _PANELS:
            self.shared = 1  # threads that share tiles pack all panels, each for itself
        self.f.repeats = self.shared == 2 and not self.direct and self.in_panels is None
        self.f.work = typical(self.grid_count * what.rows * what.columns * what.depth()) // 8

    def _open_grid(self):
        self.e.loop("grid", self.grid_count, split=self.shared == 0)

    def _blocks(self, panels, together, pack):
        """The loops over blocks of panels, each packed by `pack()` if that is not None, and over their tiles."""
        e, what = self.e, self.what
        width = self.lanes * self.vectors
        few = is_open(what.columns) and least(what.columns) < width  # whether there may be fewer than a panel has
        if few:
            e.branch(op("i32.lt_u", i32(what.columns), i32(width)))
            self._one_by_one()
            e.close()
            e.branch(op("i32.ge_u", i32(what.columns), i32(width)))
        begin, end = 0, panels
        if self.shared == 1 and not surely_less(panels, 2):
            self.f.steps = panels
            begin, end = [self.f.param(n) for n in range(len(self.f.params) - 2, len(self.f.params))]
            e.branch(op("i32.lt_u", begin, end))
        else:
            e.block()
        e.loop("block", end, together, begin)
        first = e.counters["block"][0]
        last = self.f.let(op("i32.add", first, i32(together)))
        if not divides(together, panels) or self.shared == 1:
            end = end if isinstance(end, E) else i32(end)
            last = self.f.let(unsigned_min(last, end))
        if pack:
            if self._by_rows():
                self._pack_rows(first, last)
            else:
                self._open_panel(first, last)
                pack()
                e.close()
            if self.tail and self.tail.alone:
                self.tail.copy(first, last)
        if not is_open(what.rows) or least(what.rows) >= self.rows:
            self._tiles(first, last)
        else:
            rows = self.rows
            e.branch(op("i32.ge_u", i32(what.rows), i32(rows)))
            self._tiles(first, last)
            e.close()
            e.branch(op("i32.lt_u", i32(what.rows), i32(rows)))
            self.rows = 1
            self._tiles(first, last)
            self.rows = rows
            e.close()
        for _ in range(3 if few else 2):
            e.close()

    def _tiles(self, first, last):
        """The loop over the tiles of a block's panels."""
        e, rows = self.e, self.what.rows
        clamp = None if divides(self.rows, rows) else rows - self.rows
        e.loop("tile", rows, self.rows, clamp=clamp, split=self.shared == 2)
        if self.left_copy is not None:
            self._copy_left(e.counters["tile"][0])
        self._open_panel(first, last)
        tile = e.counters["tile"][0]
        if self.tail is None:
            self._tile(tile)
        else:
            panel = e.counters["panel"][0]
            e.branch(op("i32.lt_u", panel, i32(self.tail.whole)))
            self._tile(tile)
            e.close()
            e.branch(op("i32.eq", panel, i32(self.tail.whole)))
            self.tail.compute(tile)
            e.close()
        e.close()
        e.close()

    def _collides(self):
        """Whether all rows of the left operand begin in one set of the L1 cache, so that they evict each other."""
        if self.lanes == 4 or self.direct or self.by_k != 1 or is_open(self.by_row) or not fixed(self.what):
            return False
        return self.rows > 8 and 4 * self.by_row % PAGE == 0 and self.what.depth() >= self.lanes

    def _copy_left(self, first_row):
        """Copy a tile's rows of the left operand, a line of the cache further apart than they are long."""
        e, f, depth = self.e, self.f, self.what.depth()
        slot, index = self.left.attr
        e.loop("copied", self.rows)
        e.bind("row", f.let(op("i32.add", first_row, e.counters["copied"][0])))
        e.bind("k", i32(0))
        at = f.let(e.index(index, 4, e.addresses[slot]))
        to = op("i32.mul", e.counters["copied"][0], i32(4 * depth + LINE))
        to = f.let(op("i32.add", self.left_copy, to))
        e.loop("number", depth, self.lanes, clamp=depth - self.lanes if depth % self.lanes else None)
        n = f.let(op("i32.shl", e.counters["number"][0], i32(2)))
        f.do(memory("v128.store", op("i32.add", to, n), memory("v128.load", op("i32.add", at, n))))
        e.close()
        e.close()

    def _one_by_one(self):
        """The results of a matrix of few columns, on one of the threads that share the panels."""
        e, f = self.e, self.f
        if self.shared == 1:
            begin, end = [f.param(n) for n in range(len(f.params) - 2, len(f.params))]
            e.branch(op("i32.and", op("i32.eqz", begin), op("i32.gt_u", end, i32(0))))
        else:
            e.block()
        e.loop("row", self.what.rows)
        e.loop("column", self.what.columns)
        total = f.local("f32")
        f.set(total, f32(0.0))
        e.loop("k", self.what.depth())
        e.bind("k0", e.counters["k"][0])
        f.set(total, f.get(total) + e.scalar(self.left) * e.scalar(self.right))
        e.close()
        e.define("sum", f.get(total))
        e.store(self.store, self.result, self.low.slots.result.word)
        for _ in range(3):
            e.close()

    def _open_panel(self, first, last):
        """Open the loop over the panels of a block."""
        e, f = self.e, self.f
        width, columns = self.lanes * self.vectors, self.what.columns
        e.loop("panel", last, 1, first)
        panel = e.counters["panel"][0]
        at = op("i32.mul", panel, i32(width))
        if not divides(width, columns):  # the last panel starts earlier, so some of its columns are computed twice
            at = f.let(at)
            at = unsigned_min(at, i32(columns - width))
        self.first_column = f.let(at)
        begin, number = self.panels_at, op("i32.sub", panel, first)
        if self.in_panels is not None:
            begin, number = e.addresses[self.in_panels], panel
        self.packed = f.let(op("i32.add", begin, op("i32.mul", number, i32(self.panel_bytes))))

    def _direct(self):
        """Whether the right operand is read in place: for few rows, copying it does not pay."""
        e, index = self.e, self.right.attr[1]
        if len(self.what.inner) > 1:
            return False
        by_column, self.step = e.coefficient(index, "column"), e.coefficient(index, "k0")
        if by_column != 1 or self.step is None or is_open(self.what.columns):
            return False
        tiles = 1 if self.lanes > 4 and self._is_far() else 2
        return typical(self.what.rows) <= tiles * self.rows

    def _is_far(self):
        """Whether neighboring rows of the right operand lie on different pages, and all of it beyond the L2 cache: to
        read it twice takes longer than to copy it."""
        columns = typical(self.what.columns)
        return 4 * columns >= PAGE and 4 * columns * typical(self.what.depth()) >= FAR

    def _by_rows(self):
        """Whether the panels of a block are copied together, row by row: each row of a far matrix lies on pages of its
        own, and finding a page takes longer than reading a few vectors there."""
        e, what = self.e, self.what
        if type(self) is not Contraction or self.lanes == 4:  # other classes pack in their own way
            return False
        if len(what.inner) > 1 or not fixed(what) or not self._is_far():
            return False
        return e.coefficient(self.right.attr[1], "column") == 1

    def _pack_rows(self, first, last):
        """Copy the panels of a block."""
        e, f = self.e, self.f
        e.loop("k0", self.what.depth())
        at = f.let(op("i32.mul", e.counters["k0"][0], i32(self.term_bytes)))
        self._open_panel(first, last)
        self._copy_columns(f.let(op("i32.add", self.packed, at)))
        e.close()
        e.close()

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
        apart = self._apart(4)
        places, in_row = self._places(by_column, self.right.attr[0], 4, width, apart)

        def tap(n):
            return op("i32.add", places[n], f.let(e.index(by_k, 4)))

        def contiguous():
            base = f.let(tap(0))
            for v in range(self.vectors):
                at = 4 * self.lanes * v
                line = memory("v128.load", base, offset=at) if apart == 1 else e.every_second(base, apart * at)
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

    def _apart(self, element):
        """How many elements of so many bytes apart columns are that a panel takes by vectors: 2 by a stride of 2."""
        strides = self.node.op == "conv" and element == 4 and self.node.arg[0][-1] == 2
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

    def _tile(self, first_row):
        """Sum and store a tile."""
        e, f, what = self.e, self.f, self.what
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
        if self.lanes == 4 or not fixed(what) or self.left_copy is not None or (self.by_row, self.by_k) != (depth, 1):
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
        e, f = self.e, self.f
        for v, found in enumerate(sums):
            e.block()
            e.bind(self.lane, f.let(op("i32.add", self.first_column, i32(self.lanes * v))))
            e.lane = self.lane
            e.define("sum", f.let(found), True)
            e.store_four(self.store, self.result, self.low.slots.result.word)
            e.lane = None
            e.close()

    def _multiplied(self, a, b, c):
        if self.options.relaxed:
            return op("f32x4.relaxed_madd", a, b, c)
        return op("f32x4.add", c, op("f32x4.mul", a, b))
