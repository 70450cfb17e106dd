"""Matrix products and convolutions: tiles of results held in registers, over panels of the right operand.

out[grid, row, column] = sum over k of left[grid, row, k] * right[grid, k, column]. Eight columns of the right operand
are copied side by side, row k by row k, into a *panel*; files hold constant matrices so. Its products with the left
operand are then summed in registers, in tiles of six rows by eight columns (Goto and van de Geijn 2008). Longer vectors
make both larger. For a convolution, columns are the pixels of the whole image and k goes over channels and taps, so
that the panel is the im2col of these eight pixels.
"""

from emberlet.shapes import size
from emberlet.sizes.questions import divides
from emberlet.sizes.size import is_open, least, surely_less, typical

from ....lower import index as ix
from ....lower.contraction import problem
from ....lower.lowering import Lowering
from ...assembler import E, f32, i32, memory, op, unsigned_min
from .. import split
from ..nest import begin, finish
from ..runs import runs
from ..tail import LINE, tail
from .packing import Packing
from .tiles import FAR, NEAR, Tiles, fixed

ROWS = 6  # rows of a tile: with two vectors of columns, 12 sums, 2 columns and 1 row fill 15 of x86's registers
VECTORS = 2
PAGE = 1 << 12  # bytes
BLOCK_BYTES = 1 << 17  # bytes of panels that are processed together, four times as many where vectors are longer
_FEWER_ROWS = 13
_FETCHED = 1 << 17  # bytes of a matrix, from which on it is fetched
_PANELS = 4  # that threads share well

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


def _rows_of_tiles(rows, most, lanes=4):
    """How many rows a tile has, at most `most`: few should be computed twice, and loading the columns takes as long as
    two rows, or with vectors of eight half of one, since multiplying is the limit there."""
    if is_open(rows):
        return most
    loading = 0.5 if lanes == 8 else 2
    best, least = 1, (1 + loading) * rows
    for n in range(2, min(most, rows) + 1):
        cost = (rows + n - 1) // n * (n + loading)
        if cost <= least:
            best, least = n, cost
    return best


class Contraction(Packing, Tiles):
    """The kernel of a product."""

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
        self.rows = _rows_of_tiles(what.rows, options.rows if options else ROWS, self.lanes)
        self.vectors = VECTORS if typical(what.columns) >= 2 * self.lanes else 1
        self.in_panels = None  # the slot of panels that the right operand consists of, if it is stored so
        self.left_copy = None  # the address of a tile's rows, if they are copied
        self.tail = None
        self.sums_at = None  # where in the scratch memory a tile's sums lie

    def loaded(self, right):
        """What is loaded to compute the right operand, which may differ from it by a number; else the operand."""
        return right

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
        self.together = together = panels if self.direct else self._together(panels)
        self.fetches = not in_place and self._fetches() and together < panels
        self.f.scratch = 0 if in_place else together * self.panel_bytes
        self.runs = None
        if not in_place and e.coefficient(self.right.attr[1], "column") is None:
            self.runs = runs(self)
            if self.runs and self.runs.step > 1:  # which takes a register that all else is computed around
                self.rows = _rows_of_tiles(what.rows, min(self.rows, _FEWER_ROWS), self.lanes)
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
        """How many panels a block has. While one is fetched, it stays in the L1 cache, or where rows lie on pages of
        their own, in half of the L2 cache: each page is then looked up once for several panels."""
        room = BLOCK_BYTES if self.lanes == 4 else 4 * BLOCK_BYTES
        if self._fetches():
            room = BLOCK_BYTES if self._is_far() else NEAR
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

    def _fetches(self):
        """Whether tiles fetch the next block's columns: a matrix of which neighbors in a column lie far from each
        other, and too large to be in a near cache. The pixels of a convolution were written just before."""
        e, what = self.e, self.what
        if type(self) is not Contraction or self.lanes == 4 or self.node.op != "matmul" or not fixed(what):
            return False
        (slot, index), depth = self.right.attr, what.depth()
        if e.coefficient(index, "column") != 1 or e.coefficient(index, "k0") is None:
            return False
        if self.low.slots.types[slot] != "f32":
            return False
        return what.rows > self.rows and 4 * what.rows * depth <= FAR and 4 * what.columns * depth >= _FETCHED

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
