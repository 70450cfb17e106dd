"""Products with a constant matrix that a plan stores in panels of int8 (../../llvm/byte_panels.py): four terms by one
instruction, as in byte_products.py, and nothing is copied but the left operand, if that is not uint8.

The left operand is multiplied as unsigned bytes a' = a - low, the right one as signed ones. The columns' sums, which
lie behind each panel, make good for low and for the left operand's zero point z:

    sum of (a - z) b = sum of a' b + (low - z) (sum of b).
"""

from ...lower.contraction import problem
from ..assembler import i32, memory, op
from .byte_products import _Bytes
from .contraction import Contraction
from .contraction.tiles import NEAR
from .integers import ORDER, packed_products
from .levels import bare
from .nest import begin, finish

FOUR = 4  # terms of a column that lie side by side
# Panels are (panels, fours, columns, FOUR); ORDER makes (fours, FOUR, panels, columns) of them.


def panels_of(weight):
    """The node of the panels of which a product's right operand is a cast view; None for other operands."""
    weight = without_casts(weight)
    if weight.op != "reshape" or weight.srcs[0].op != "permute" or weight.srcs[0].arg != ORDER:
        return None
    cut = weight.srcs[0].srcs[0]
    stored = cut.srcs[0] if cut.op == "slice" else cut
    return stored if stored.op == "data" and stored.word == "i8" and stored.shape[3:] == (FOUR,) else None


def without_casts(node):
    """The integers that a node casts."""
    while node.op == "cast" and node.srcs[0].dtype.is_integer:
        node = node.srcs[0]
    return node


def panel_product(item, stored, name, options):
    """The Kernel of a "matmul" item whose right operand lies in panels as wide as a tile; else None."""
    node = item.anchor
    if not options.bytewise or node.op != "matmul" or node.dtype.name != "int32":
        return None
    found = panels_of(node.srcs[1])
    if found is None or found.shape[2] != 2 * options.lanes:
        return None
    writer = _Panels(item, stored, problem(node, True), options)
    return writer.kernel(name) if writer.serves() else None


class _Panels(_Bytes):
    def serves(self):
        """Whether the left operand is known to lie within 8 bits of a number, and its rows follow each other."""
        value = bare(self.right)
        self.e = e = begin("", self.low.slots, self.lanes)
        if value.op != "load" or self.low.slots.types[value.attr[0]] != "i8":
            return False
        if self.vectors != 2 or not self._split_left(self.low.slots):
            return False
        self.slot, index = value.attr[0], self.a.attr[1]
        if e.coefficient(index, "k") != 1 or (self.what.rows > 1 and e.coefficient(index, "row") != self.depth):
            return False
        return self.z is None or not e.depends(self.z, "k")

    def _split_left(self, slots):
        found = _Bytes._split_left(self, slots)
        if found:
            self.offset -= 128  # unsigned
        return found

    def kernel(self, name):
        what = self.what
        self.e = e = begin(name, self.low.slots, self.lanes)
        self.f = f = e.f
        self.direct = True  # nothing is packed
        panels = what.columns // (self.lanes * self.vectors)
        self.four_bytes = 4 * self.lanes * self.vectors
        self.panel_bytes = (self.fours + 1) * self.four_bytes
        self.copy = self.panels_at = e.addresses["scratch"]
        in_place = self.word == "u8" and not self.offset
        f.scratch = 0 if in_place else (what.rows * self.depth + 4 * self.lanes + 63) // 64 * 64
        self._share(panels)
        self._open_grid()
        self._place_left(in_place)
        self._blocks(panels, max(1, min(panels, NEAR // 2 // self.panel_bytes)), None)
        e.close()
        return finish(e, name, self.low.slots)

    def _open_panel(self, first, last):
        Contraction._open_panel(self, first, last)
        place = op("i32.mul", self.e.counters["panel"][0], i32(self.panel_bytes))
        self.packed = self.f.let(op("i32.add", self.e.addresses[self.slot], place))

    def _add_product(self, total, left, right):
        self.f.set(total, op("v128.dot_bytes", self.f.get(total), left, right))

    def _tile(self, first_row):
        """Sum and store a tile."""
        e, f = self.e, self.f
        sums = self._zeros()
        if self.offset or self.z is not None:
            at = self.fours * self.four_bytes
            columns = [memory("v128.load", self.packed, offset=at + 4 * self.lanes * v) for v in range(self.vectors)]
            columns = [f.let(column) for column in columns]
            for r, line in enumerate(sums):
                e.block()
                e.bind("row", f.let(op("i32.add", first_row, i32(r))))
                less = i32(self.offset) if self.z is None else op("i32.sub", i32(self.offset), e.scalar(self.z))
                less = op("i32x4.splat", f.let(less))
                for s, column in zip(line, columns):
                    f.set(s, op("i32x4.mul", less, column))
                e.close()
        left = op("i32.add", self.left_at, op("i32.mul", first_row, i32(self.depth)))
        packed_products(self, sums, left, self.depth, self.fours, self.four_bytes, self._add_product)
        self._store_tile(first_row, sums)
