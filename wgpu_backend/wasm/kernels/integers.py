"""Products and convolutions of integers of at most 16 bits, such as centered 8-bit values, with sums in int32.

Pairs of terms lie side by side as int16, in panels of columns and in rows of the left operand, and i32x4.dot_i16x8_s
multiplies and adds eight terms at once, or more where vectors are longer. Sums are exact, as int32 wraps as it does
elsewhere. The tiles are those of contraction/. The weights of a convolution are widened tile by tile, in the order in
which they lie in memory; the last of an odd number of terms is paired with zeros. Files hold them by taps, then by
pairs of channels (../writer.py), and so go weights that are computed; an odd channel is then paired with zeros. Where
few channels make this many more products, all terms of a row are paired in their order there, too.
"""

from emberlet.shapes import size as size_of
from emberlet.sizes.size import is_open, typical

from ...lower.contraction import problem
from ..assembler import i32, i32x4, memory, op
from . import split
from .contraction import Contraction, _rows_of_tiles
from .contraction.tiles import NEAR
from .emitter.numbers import size
from .levels import offset_load
from .nest import begin, finish
from .pairs import LOAD_EIGHT, Pairs
from .runs import runs
from .tail import LINE

# Files hold weights so: panels of WIDTH columns, which are two vectors of 32-bit sums, and pairs of terms. Machine code
# has wider ones (../../llvm/byte_panels.py).
WIDTH = 8
PAIR = 2
ORDER = (1, 3, 0, 2)  # from (panels, pairs, WIDTH, 2) to (pairs, 2, panels, WIDTH), which is (terms, columns)
_WIDE = 8  # vectors of columns of a single row, whose right operand is not copied
MOST_ROWS = 8  # of a tile: more take twice as long to compile, since what follows the sums is long, and no less to run
FEW_ROWS = 5  # of a tile of vectors of four: a product takes a register beside its operands, and x86 has 16 in all
_MANY_TILES = 64  # to some of which fetching or widening a panel is little
_MANY_PANELS = 64  # to some of which packing the left operand is little


def integer_contraction(item, stored, name, options):
    """The Kernel of a "matmul" or "conv" item with operands in int16 and sums in int32, or None if nested loops are
    better."""
    node = item.anchor
    if node.dtype.name != "int32" or node.srcs[0].dtype.name != "int16":
        return None
    what = problem(node, True)
    if is_open(what.columns) or is_open(what.depth()) or what.columns < 2 * options.lanes or what.depth() < 4:
        return None
    if is_open(what.rows) and node.op == "conv":
        return None
    writer = _Integers(item, stored, what, options)
    if writer.direct and not writer.serves_one_row():
        return None
    return writer.kernel(name)


def is_offset(node):
    """Whether a node is another one less a known number."""
    return node.op == "binary" and node.arg == "sub" and node.srcs[1].op == "full"


def panels_of(weight):
    """The node of the panels, of which the right operand of a product is a view and a cast of 8-bit integers to wider
    ones, less a constant zero point; None for other operands."""
    while weight.srcs and weight.dtype.bits > 8 and (weight.op == "cast" or is_offset(weight)):
        weight = weight.srcs[0]
    if weight.op != "reshape" or weight.srcs[0].op != "permute" or weight.srcs[0].arg != ORDER:
        return None
    stored = weight.srcs[0].srcs[0]
    if stored.op != "data" or stored.word not in ("i8", "u8") or stored.shape[3:] != (PAIR,):
        return None
    panels, pairs, width = stored.shape[:3]
    return stored if weight.shape == (PAIR * pairs, panels * width) else None


def packed_products(tile, sums, left_at, line, count, step, add, load=None):
    """Add the products of a tile of packed operands: `count` words of 32 bits in each row of the left one, `line` bytes
    apart from `left_at` on, by panels of the right one, `step` bytes a word. add: (sum, left, right), vectors. load:
    (local with an address, n), vector n of the panel from there on, where it is not stored as it is multiplied."""
    e, f, vectors = tile.e, tile.f, tile.vectors
    a, b = f.local("i32"), f.local("i32")
    f.set(a, left_at)
    f.set(b, tile.packed)

    def plain(at, n):
        return memory("v128.load", f.get(at), offset=4 * tile.lanes * n)

    load = load or plain
    unroll = 1 if tile.unrolled == 1 else 4 if count % 4 == 0 else 2 if count % 2 == 0 else 1
    e.loop("depth", count, unroll)
    right = [f.local("v128") for _ in range(vectors)]
    left = f.local("v128")
    for u in range(unroll):
        for v in range(vectors):
            f.set(right[v], load(b, u * vectors + v))
        for r in range(tile.rows):
            f.set(left, memory("v128.load32_splat", f.get(a), offset=4 * u + r * line))
            for v in range(vectors):
                add(sums[r][v], f.get(left), f.get(right[v]))
    f.set(a, op("i32.add", f.get(a), i32(4 * unroll)))
    f.set(b, op("i32.add", f.get(b), i32(step * unroll)))
    e.close()


def tabulate(tile, by_term):
    """Write the bytes from a pixel's position to each of its terms, which are the same for all pixels, to `tile.table`.
    by_term: the part of the right operand's index that depends on the term."""
    e, f = tile.e, tile.f
    n = size(tile.low.slots.types[tile.loaded(tile.right).attr[0]])
    to = f.local("i32")
    f.set(to, tile.table)
    for i, extent in enumerate(tile.what.inner):
        e.loop("k{}".format(i), extent)
    f.do(memory("i32.store", f.get(to), e.index(by_term, n)))
    f.set(to, op("i32.add", f.get(to), i32(4)))
    for _ in tile.what.inner:
        e.close()


class _Integers(Pairs, Contraction):
    type = "i32"
    tails = False

    def __init__(self, item, stored, what, options):
        Contraction.__init__(self, item, stored, what, options)
        most = min(options.rows, FEW_ROWS if self.lanes == 4 else MOST_ROWS)
        self.rows = _rows_of_tiles(what.rows, most, self.lanes)
        # LLVM adds the products of several steps to each other before it adds them to the sums, and runs out of
        # registers.
        self.unrolled = 1 if options.backend == "native" and self.rows > 1 else 4
        self.many = 2 * self.lanes  # numbers of 16 bits in a vector: eight, or more in longer ones
        self.taps = what.inner[1:]
        self.channels = what.inner[0]
        pairs = (self.channels + 1) // 2
        for extent in self.taps:
            pairs *= extent
        self.pairs = pairs  # of terms, in a row or a column
        self.panels = self._stored_panels()
        one = not is_open(what.rows) and what.rows == 1
        self.direct = self.panels is None and one
        # Longer vectors of bytes are widened as fast as vectors of int16 are loaded; with four, that takes longer.
        self.in_place = self.panels is not None and (one or self.lanes > 4)
        if self.direct and what.columns >= self.lanes * _WIDE:
            self.vectors = _WIDE

    def loaded(self, right):
        return offset_load(right)[0]

    def _share(self, panels):
        """As in Contraction; but threads that share panels all pack the whole left operand, and those that share the
        tiles of stored panels only fetch or widen these."""
        Contraction._share(self, panels)
        if self.shared == 1 and self.left_copy is None and typical(self.what.rows) > 1 and panels < _MANY_PANELS:
            self.f.repeats = True
        if self.panels is None or is_open(self.what.rows):
            return
        tiles = (self.what.rows + self.rows - 1) // self.rows
        if tiles >= split.ENOUGH:
            self.shared, self.f.repeats = 2, tiles < _MANY_TILES

    def _stored_panels(self):
        """(the slot of the right operand, how eight numbers are loaded, their zero point), if it holds panels of 8
        bits; else None."""
        found = None if self.taps else panels_of(self.node.srcs[1])
        if found is None or found.shape[2] != self.lanes * self.vectors:
            return None
        value, zero = self.right, 0
        while value.op != "load":
            if value.op == "sub" and value.args[1].op == "const":
                zero += value.args[1].attr
            elif value.op != "cast" and (value.op != "function" or value.attr != ("wrap_i", "16u")):
                return None
            value = value.args[0]
        if self.low.slots.nodes[value.attr[0]] is not found:
            return None
        return value.attr[0], LOAD_EIGHT[found.word], zero

    def serves_one_row(self):
        """Whether the right operand can be read in place: a matrix whose columns are neighbors."""
        if self.taps:
            return False
        e = begin("", self.low.slots, self.lanes)
        waiting = [self.right]
        while waiting:
            value = waiting.pop()
            waiting.extend(value.args)
            if value.op == "load" and e.coefficient(value.attr[1], "column") not in (0, 1):
                return False
        return True

    def kernel(self, name):
        what, slots = self.what, self.low.slots
        self.e = e = begin(name, slots, self.lanes)
        self.f = f = e.f
        self.read, self.offset = offset_load(self.right)
        self.halves = self._by_axis(self.read.attr[1]) if self.read.op == "load" else None
        fewest = (what.depth() + 1) // 2
        in_order = self.node.op == "conv" and not self.direct and self._left_in_memory()
        one_tap = size_of(self.taps) == 1
        self.across = self.halves is not None and not self.direct and (in_order or 8 * fewest <= 7 * self.pairs)
        if self.across and one_tap and e.coefficient(self.read.attr[1], "column") is not None:
            self.across = False  # vectors are loaded as they are
        if self.across:
            self.pairs = fewest
        by_tile = in_order and (self.across or one_tap)
        self.line = 4 * self.pairs + (LINE if by_tile else 0)
        width = self.lanes * self.vectors
        panels = (what.columns + width - 1) // width
        self.panel_bytes = self.pairs * width * 4
        self.stored_bytes = self.panel_bytes // 2  # of a panel in a file
        whole = 4 * self.lanes
        self.left_bytes = ((self.rows if by_tile else what.rows) * self.line + whole - 1) // whole * whole
        in_place = self.direct or self.in_place
        self.together = together = panels if self.direct else self._together(panels)
        f.scratch = self.left_bytes + (0 if in_place else together * self.panel_bytes)
        self.packed_left = e.addresses["scratch"]
        self.left_copy = self.packed_left if by_tile else None
        self._share(panels)
        self._open_grid()
        if not by_tile:
            self._pack_left()
        self.panels_at = f.let(op("i32.add", self.packed_left, i32(self.left_bytes)))
        self.runs = runs(self) if self.across else None
        if self.across:
            behind = f.scratch + 4 * self.lanes  # what runs write behind the last panel
            self.table = f.let(op("i32.add", self.packed_left, i32(behind)))
            f.scratch = behind + 4 * what.depth()
            tabulate(self, self.halves[1])
        if self.runs:
            self.run_table = f.let(op("i32.add", self.packed_left, i32(f.scratch)))
            f.scratch += self.runs.room
        self._blocks(panels, together, None if in_place else self._pack)
        e.close()
        return finish(e, name, slots)

    def _together(self, panels):
        """How many panels a block has: those that several tiles read in place stay in the L1 cache."""
        if not self.in_place:
            return Contraction._together(self, panels)
        if self.rows == 1:
            return panels
        return max(1, min(panels, NEAR // self.stored_bytes - 1))

    def _open_panel(self, first, last):
        Contraction._open_panel(self, first, last)
        if self.panels is not None:
            place = op("i32.mul", self.e.counters["panel"][0], i32(self.stored_bytes))
            self.stored = self.f.let(op("i32.add", self.e.addresses[self.panels[0]], place))
            if self.in_place:
                self.packed = self.stored

    # -- tiles ----------------------------------------------------------------------------------------------------

    def _add_product(self, total, left, right):
        self.f.set(total, op("i32x4.add", self.f.get(total), op("i32x4.dot_i16x8_s", left, right)))

    def _tile(self, first_row):
        """Sum and store a tile."""
        if self.direct:
            self._row(first_row)
            return
        self._fetch_panel(first_row)
        self._fetch_results(first_row)
        sums = self._zeros()
        step, load = 4 * self.lanes * self.vectors, None
        if self.in_place:
            step, load = step // 2, self._of_panel
        left = self.left_copy
        if left is None:
            left = op("i32.add", self.packed_left, op("i32.mul", first_row, i32(self.line)))
        packed_products(self, sums, left, self.line, self.pairs, step, self._add_product, load)
        self._store_tile(first_row, sums)

    def _fetch_panel(self, first_row):
        """Fetch this tile's share of the stored panel that the next block has in this one's place."""
        f, rows = self.f, typical(self.what.rows)
        if not self.in_place or rows <= self.rows:
            return
        share = (self.stored_bytes + rows - 1) // rows
        ahead = f.let(op("i32.add", self.packed, op("i32.mul", first_row, i32(share))))
        for at in range(0, share * self.rows, LINE):
            f.do(memory("v128.prefetch", ahead, offset=self.together * self.stored_bytes + at))

    def _row(self, first_row):
        """Sum and store a part of the only row, reading the right operand in place."""
        f = self.f
        sums = self._zeros()
        a = f.local("i32")
        f.set(a, self.packed_left)

        def term():
            out = []
            for n in range(self.vectors // 2):
                at = f.let(op("i32.add", self.first_column, i32(self.many * n))) if n else self.first_column
                out.append(self._eight_of(self.right, "column", at))
            return out

        def add(low, high):
            left = f.let(memory("v128.load32_splat", f.get(a)))
            for n in range(len(low)):
                beside = i32x4(0) if high is None else high[n]
                for v in range(2):
                    self._add_product(sums[0][2 * n + v], left, self._pair(low[n], beside, v))
            f.set(a, op("i32.add", f.get(a), i32(4)))

        self._pairs(term, add)
        self._store_tile(first_row, sums)
