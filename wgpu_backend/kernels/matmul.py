"""Matrix products through workgroup memory, for devices with many cores (shaders/matmul.wgsl).

Serves every contraction with one inner counter: batched products of any layout, and pointwise convolutions.
"""

from emberlet.sizes.questions import divides
from emberlet.sizes.size import typical

from ..lower import index as ix
from ..lower.contraction import problem
from ..lower.kernel_ir import Frame
from ..lower.lowering import Lowering
from ..render import wgsl
from .loop import finish, flat, spread

LANES = 256
SIDE = 16
# In smaller problems a block mostly overhangs the edge.
LEAST_SIDE = 32  # rows, columns and inner steps
LEAST_MEMORY = 8192  # bytes of workgroup memory: two tiles of blocks of 64
LARGE_MEMORY = 16384  # bytes: two tiles of blocks of 128
LARGE_BLOCK = 128
# Blocks of 128 that keep a GPU busy. With fewer, tiles in registers whose lanes share the inner steps are faster
# (tile.py): on an H100 2 to 5 times up to 1,536 × 1,536 results, where there are 144 blocks. `compile(…, tune=True)`
# measures both kernels (run/measure_tiles.py).
ENOUGH_BLOCKS = 256


def serves(what, options):
    """Whether a Problem is large enough in every direction to fill blocks."""
    return (
        not options.software
        and len(what.inner) == 1
        and typical(what.rows) >= LEAST_SIDE
        and typical(what.columns) >= LEAST_SIDE
        and typical(what.depth()) >= LEAST_SIDE
        and options.workgroup_bytes >= LEAST_MEMORY
    )


def wins(what):
    """Whether a Problem has enough blocks to keep a GPU busy."""
    blocks = -(-typical(what.rows) // LARGE_BLOCK) * -(-typical(what.columns) // LARGE_BLOCK)
    grid = typical(what.cells() // (what.rows * what.columns))
    return blocks * grid >= ENOUGH_BLOCKS


def matmul(item, stored, name, options, fine=0):
    """The Kernel of a matmul or pointwise conv item whose elements are f32; fine: row and column vectors per lane, 0 to
    choose."""
    # Large blocks reuse each element more.
    fine = fine or (2 if options.workgroup_bytes >= LARGE_MEMORY else 1)
    return _Blocked(item, stored, problem(item.anchor), fine).kernel(name)


class _Blocked:
    def __init__(self, item, stored, what, fine):
        self.item = item
        self.what = what
        self.low = Lowering(item, stored)
        self.vectors = fine  # row and column vectors per invocation
        self.block = SIDE * 4 * fine
        self.depth = 16
        self.row_tiles = (what.rows + self.block - 1) // self.block
        self.column_tiles = (what.columns + self.block - 1) // self.block
        shape = tuple(what.before) + (self.row_tiles, self.column_tiles)
        self.groups = 1
        for d in shape:
            self.groups *= d
        position = ix.unflatten(ix.counter("t", self.groups), shape)
        self.grid = position[:-2]
        self.row_block = position[-2]
        self.column_block = position[-1]

    def _inside(self, block, offset, extent):
        """block * size + offset, assumed to lie within the extent: results beyond it are never stored."""
        return ix.add(ix.mul(block, self.block), offset).bounded(0, extent - 1)

    def kernel(self, name):
        what, low = self.what, self.low
        inner = what.inner[0]
        ragged = not divides(self.depth, inner)
        left, right = [], []
        count = self.block * self.depth // 4 // LANES  # vectors that each lane loads of either operand
        quads = self.depth // 4
        for u in range(count):
            # Left: four inner steps of one row; right: four columns of one inner step.
            row = self._inside(self.row_block, ix.counter("row{}".format(u), self.block), what.rows)
            quad = ix.mul(ix.counter("quad{}".format(u), (inner + 3) // 4 + quads), 4)
            steps = [ix.add(quad, ix.const(c)).bounded(0, inner - 1) for c in range(4)]
            left.append(self._values([what.left(low, self.grid, row, [k]) for k in steps]))
            k = ix.counter("k{}".format(u), inner)
            first = ix.mul(ix.counter("column{}".format(u), self.block // 4), 4)
            columns = [self._inside(self.column_block, ix.add(first, ix.const(c)), what.columns) for c in range(4)]
            right.append(self._values([what.right(low, self.grid, column, [k]) for column in columns]))
        cells = self._cells()
        bring = wgsl.Renderer(low.slots)
        for u in range(count):
            self._bring_left(bring, u, left[u], quads, ragged, inner)
            self._bring_right(bring, u, right[u], ragged, inner)
        start = wgsl.Renderer(low.slots)
        for i in range(4 * self.vectors):
            for j in range(self.vectors):
                start.line("var acc{}_{} = vec4<f32>();".format(i, j))
        width = self.block // 4
        multiply = []
        for i in range(self.vectors):
            multiply.append("let a{} = left_tile[k * {}u + y + {}u];".format(i, width, i * SIDE))
        for j in range(self.vectors):
            multiply.append("let b{} = right_tile[k * {}u + x + {}u];".format(j, width, j * SIDE))
        for i in range(4 * self.vectors):
            for j in range(self.vectors):
                text = "acc{0}_{1} = acc{0}_{1} + a{2}.{3} * b{1};"
                multiply.append(text.format(i, j, i // 4, "xyzw"[i % 4]))
        out = wgsl.Renderer(low.slots)
        self._store(out, cells)
        values = {
            "block_rows": self.block,
            "block_columns": self.block,
            "depth": self.depth,
            "left_size": self.depth * width,
            "right_size": self.depth * width,
            "flat": flat(self.groups, "lane", 0),
            "start": start.text(),
            "steps": (inner + self.depth - 1) // self.depth,
            "fold": bring.text(),
            "multiply": "\n".join(multiply),
            "body": out.text(),
        }
        frame = Frame(name, low.slots, self.groups)
        frame.vector_out = self.vector_out
        return finish(frame, "matmul.wgsl", values, spread(self.groups))

    def _values(self, four):
        return self.low.vector(four) or four

    def _bring_left(self, out, u, four, quads, ragged, inner):
        at = "lane + {}u".format(u * LANES) if u else "lane"
        out.line("let row{} = ({}) / {}u;".format(u, at, quads))
        out.line("let part{} = ({}) % {}u;".format(u, at, quads))
        out.line("let quad{0} = step * {1}u + part{0};".format(u, quads))
        for c in range(4):
            name = out.name(four[c])
            if ragged:
                name = "select(0.0, {}, quad{} * 4u + {}u < {}u)".format(name, u, c, inner)
            place = "left_tile[(part{0} * 4u + {1}u) * {2}u + row{0} / 4u][row{0} % 4u]".format(u, c, self.block // 4)
            out.line("{} = {};".format(place, name))

    def _bring_right(self, out, u, four, ragged, inner):
        at = "lane + {}u".format(u * LANES) if u else "lane"
        width = self.block // 4
        out.line("let within{} = ({}) / {}u;".format(u, at, width))
        out.line("let column{} = ({}) % {}u;".format(u, at, width))
        out.line("let k{0} = step * {1}u + within{0};".format(u, self.depth))
        text = out.four(four)
        if ragged:
            text = "select(vec4<f32>(), {}, k{} < {}u)".format(text, u, inner)
        out.line("right_tile[within{0} * {1}u + column{0}] = {2};".format(u, width, text))

    def _line(self, i, lane):
        """The offset within the block of line i of a lane, as an Index of the lane counter."""
        vector = ix.add(ix.counter(lane, SIDE), ix.const(i // 4 * SIDE))
        return ix.add(ix.mul(vector, 4), ix.const(i % 4))

    def _cells(self):
        what, low = self.what, self.low
        cells = []
        for i in range(4 * self.vectors):
            row = self._inside(self.row_block, self._line(i, "y"), what.rows)
            for j in range(4 * self.vectors):
                column = self._inside(self.column_block, self._line(j, "x"), what.columns)
                value = low.build.make("variable", "f32", (), "acc{}_{}.{}".format(i, j // 4, "xyzw"[j % 4]))
                value = low.round(value, self.item.anchor.dtype)
                cells.append(low.place(what.out(self.grid, row, column), value))
        self.vector_out = divides(4, what.columns) and self.item.node.word[0] == "f"
        self.vector_out = self.vector_out and ix.all_in_fours(cells)
        return cells

    def _store(self, out, cells):
        what = self.what
        wide = 4 * self.vectors
        for i in range(wide):
            row = ix.add(ix.mul(self.row_block, self.block), self._line(i, "y"))
            if not divides(self.block, what.rows):
                out.open("if ({} < {}u) {{".format(out.index(row), what.rows))
            for j in range(0, wide, 4 if self.vector_out else 1):
                column = ix.add(ix.mul(self.column_block, self.block), self._line(j, "x"))
                if not divides(self.block, what.columns):
                    out.open("if ({} < {}u) {{".format(out.index(column), what.columns))
                at = i * wide + j
                out.store_all(cells[at : at + 4] if self.vector_out else cells[at : at + 1], self.vector_out)
                if not divides(self.block, what.columns):
                    out.close()
            if not divides(self.block, what.rows):
                out.close()
