"""The kernel of a contraction: each invocation computes a tile of rows × columns in registers.

Operands are read through their lowered expressions, so that views, casts and padding are part of the kernel, and the
epilogue is evaluated where a result is stored. Four neighboring reads become one vec4 where the index expressions
show that they are contiguous and aligned.

A problem of few results and many inner steps would leave most of a GPU idle: there the steps of a tile are split among
several lanes of a workgroup, which add up their sums in workgroup memory (shaders/contraction_split.wgsl).
"""

from emberlet.sizes.questions import divides
from emberlet.sizes.size import is_open

from ..lower import index as ix
from ..lower.contraction import problem
from ..lower.kernel_ir import RESULT, SECOND, Frame
from ..lower.lowering import Lowering
from ..lower.tiles import split_axis
from ..render import wgsl
from ..run import storage
from .byte_results import byte_lines
from .loop import finish, flat, spread
from .range_levels import range_of


def contraction(item, stored, name, tile):
    """The Kernel of a matmul or conv item, tiled as `tile` says."""
    return _Tiled(item, stored, tile).kernel(name)


class _Tiled:
    def __init__(self, item, stored, tile):
        self.item = item
        self.tile = tile
        self.problem = problem(item.anchor)
        self.lowering = Lowering(item, stored)
        self.type = storage.register(item.anchor.dtype)
        self.words = item.anchor.op == "dot_bytes"
        self.read_type = "u32" if self.words else self.type  # of operands
        p = self.problem
        self.row_tiles = (p.rows + tile.rows - 1) // tile.rows
        self.column_tiles = (p.columns + tile.columns - 1) // tile.columns
        # Columns are grouped by 4 if their number allows: a group is read and stored as one vector.
        self.group = 4 if tile.columns % 4 == 0 and divides(4, p.columns) else 1
        self.shape = tuple(p.before) + (self.row_tiles,) + tuple(p.after) + (self.column_tiles,)
        self.threads = 1
        for d in self.shape:
            self.threads *= d
        position = ix.unflatten(ix.counter("t", self.threads), self.shape)
        self.grid = position[: len(p.before)] + position[len(p.before) + 1 : -1]
        self.row_tile = position[len(p.before)]
        self.column_tile = position[-1]
        self.rows = [self._line(self.row_tile, tile.rows, i).bounded(0, p.rows - 1) for i in range(tile.rows)]
        self.columns = [self._line(self.column_tile, tile.columns, j) for j in range(tile.columns)]
        # A tile may overhang. Reads beyond the edge are harmless in WebGPU and their results never stored, so indices
        # may be simplified as if they were within the extent; but not if columns share elements: a column outside would
        # then misread an element that a column inside needs.
        if not p.step:
            self.columns = [c.bounded(0, p.columns - 1) for c in self.columns]

        # Sums of neighboring columns form vectors: the shaders are shorter and compile several times faster.
        self.chunks = [(at, min(4, tile.columns - at)) for at in range(0, tile.columns, 4)]

    def _line(self, tile, count, offset):
        return ix.add(ix.mul(tile, count), ix.const(offset))

    def _loops(self):
        """((counter, extent) of each loop, the inner positions of each step in the innermost one)."""
        p, tile = self.problem, self.tile
        loops = []
        steps = [[]]
        looped = len(p.inner) - p.unrolled
        for i in range(len(p.inner)):
            counter = ix.counter("r{}".format(i), p.inner[i])
            if i < looped:
                unroll = tile.unroll if i == looped - 1 and divides(tile.unroll, p.inner[i]) else 1
                if unroll > 1:
                    counter = ix.mul(ix.counter("r{}".format(i), p.inner[i] // unroll), unroll)
                loops.append(("r{}".format(i), p.inner[i] // unroll))
                steps = [s + [ix.add(counter, ix.const(u))] for s in steps for u in range(unroll)]
            else:
                steps = [s + [ix.const(u)] for s in steps for u in range(p.inner[i])]
        return loops, steps

    def _sums(self):
        """The sum of each cell of the tile, at its place, and into `seconds` the second results."""
        low = self.lowering
        sums = []
        self.seconds = []
        for i in range(self.tile.rows):
            for j in range(self.tile.columns):
                value = low.build.make("variable", self.type, (), self._cell(i, j))
                value = low.round(value, self.item.anchor.dtype)
                at = self.problem.out(self.grid, self.rows[i], self.columns[j])
                sums.append(low.place(at, value))
                if self.item.second is not None:
                    self.seconds.append(low.place_second(at, sums[-1][0]))
        return sums

    def kernel(self, name):
        p, tile, low = self.problem, self.tile, self.lowering
        loops, steps = self._loops()
        left = [[p.left(low, self.grid, row, k) for k in steps] for row in self.rows]
        right = [[p.right(low, self.grid, column, k) for column in self.columns] for k in steps]
        left = self._left_vectors(left)
        right = [self._vectors(line) for line in right] if self.group == 4 else self._by_step(right)
        sums = self._sums()
        ranged = self._range()  # before any other text: it may say that an operand is read as vectors
        split = "r{}".format(split_axis(p)) if tile.split > 1 and loops else None  # the counter that is split
        out = wgsl.Renderer(low.slots)
        for i in range(tile.rows):
            for q in range(len(self.chunks)):
                zero = "{}()".format(self._vector_type(q, self.type))
                out.line("var acc{}_{} = {};".format(i, q, zero))
        for counter, extent in loops:
            if counter == split:
                out.open("for (var {0} = slice; {0} < {1}u; {0} += {2}u) {{".format(counter, extent, tile.split))
            elif is_open(extent) or extent > 1:
                out.open("for (var {0} = 0u; {0} < {1}u; {0}++) {{".format(counter, extent))
        for k in range(len(steps)):
            a = [out.name(left[i][k]) for i in range(tile.rows)]
            b = [self._vector(out, k, q, right[k]) for q in range(len(self.chunks))]
            for i in range(tile.rows):
                for q in range(len(b)):
                    out.line("acc{0}_{1} = acc{0}_{1} + {2};".format(i, q, self._products(a[i], b[q], q)))
        for counter, extent in loops:
            if is_open(extent) or extent > 1 or counter == split:
                out.close()
        values = {"workgroup": tile.workgroup, "rows": tile.rows, "columns": tile.columns, "range": ranged}
        values["first"] = "let range = range_of(lane);\n" if ranged else ""
        template = "contraction.wgsl"
        tiles = tile.workgroup  # of one workgroup
        if split:
            template = "contraction_split.wgsl"
            tiles //= tile.split
            values.update({"tiles": tiles, "split": tile.split, "type": self.type})
            values["partials"] = tile.rows * tile.columns * tile.workgroup // 2
            self._add_parts(out, tiles)
        self._store(out, sums)
        groups = (self.threads + tiles - 1) // tiles
        values["flat"] = flat(groups, "lane % {}u".format(tiles) if split else "lane", tiles)
        values["body"] = out.text()
        frame = Frame(name, low.slots, self.threads)
        frame.vector_out = self.vector_out
        return finish(frame, template, values, spread(groups))

    def _range(self):
        """The text of the function that finds the range of an operand, where the product needs that."""
        x = self.lowering.ranged
        return "" if x is None else "\n" + range_of(self.lowering, x, self.tile.workgroup, self.words)

    def _add_parts(self, out, tiles):
        """Add up the sums of the lanes that share a tile, in the first of them; the others end."""
        tile = self.tile
        cells = [self._cell(i, j) for i in range(tile.rows) for j in range(tile.columns)]
        half = tile.workgroup // 2
        places = ["partial[{}u + lane]".format(n * half) for n in range(len(cells))]
        others = ["partial[{}u + lane - half]".format(n * half) for n in range(len(cells))]
        out.open("for (var half = {}u; half >= {}u; half = half / 2u) {{".format(half, tiles))
        out.open("if (lane >= half && lane < 2u * half) {")
        for n in range(len(cells)):
            out.line("{} = {};".format(others[n], cells[n]))
        out.close()
        out.line("workgroupBarrier();")
        out.open("if (lane < half) {")
        for n in range(len(cells)):
            out.line("{0} = {0} + {1};".format(cells[n], places[n]))
        out.close()
        out.line("workgroupBarrier();")
        out.close()
        out.open("if (lane >= {}u || place >= {}u) {{".format(tiles, self.threads))
        out.line("return;")
        out.close()

    def _vector_type(self, q, type):
        width = self.chunks[q][1]
        return "vec{}<{}>".format(width, type) if width > 1 else type

    def _products(self, a, b, q):
        """The products of an element of the left operand and chunk q of the right one."""
        if not self.words:
            return "{} * {}".format(a, b)
        width = self.chunks[q][1]
        if width == 1:
            return "dot_bytes({}, {})".format(a, b)
        each = ["dot_bytes({}, {}.{})".format(a, b, "xyzw"[i]) for i in range(width)]
        return "{}({})".format(self._vector_type(q, self.type), ", ".join(each))

    def _cell(self, i, j):
        """The name of the sum of row i and column j."""
        for q in range(len(self.chunks)):
            start, width = self.chunks[q]
            if start <= j < start + width:
                return "acc{}_{}".format(i, q) + ("." + "xyzw"[j - start] if width > 1 else "")

    def _vector(self, out, k, q, line):
        """The name of chunk q of the right operand's line at step k."""
        start, width = self.chunks[q]
        values = line[start : start + width]
        if width == 1:
            return out.name(values[0])
        whole = out.whole(values) if width == 4 else None
        if whole is not None:
            return whole
        names = [out.name(v) for v in values]
        out.line("let b{}_{} = {}({});".format(k, q, self._vector_type(q, self.read_type), ", ".join(names)))
        return "b{}_{}".format(k, q)

    def _vectors(self, line):
        """`line` with each four aligned, contiguous loads replaced by the components of one vector load."""
        line = list(line)
        for at in range(0, len(line) - 3, 4):
            found = self.lowering.vector(line[at : at + 4])
            if found:
                line[at : at + 4] = found
        return line

    def _left_vectors(self, left):
        """Vector loads along the inner steps if those are contiguous, else along the rows (for weights stored that
        way)."""
        out = [self._vectors(line) for line in left]
        if len(left) % 4 or (len(left[0]) >= 4 and out[0][0] is not left[0][0]):
            return out
        columns = [self._vectors([line[k] for line in left]) for k in range(len(left[0]))]
        return [[columns[k][i] for k in range(len(columns))] for i in range(len(left))]

    def _by_step(self, right):
        """Vector loads along the inner steps, for a transposed operand."""
        columns = [self._vectors([step[j] for step in right]) for j in range(len(right[0]))]
        return [[columns[j][k] for j in range(len(columns))] for k in range(len(right))]

    def _store(self, out, sums):
        p, tile = self.problem, self.tile
        ragged_rows = not divides(tile.rows, p.rows)
        ragged_columns = not divides(tile.columns, p.columns)
        self.vector_out = self._vector_store(sums)
        lines = 4 if byte_lines(self.item) == "rows" else 1
        for i in range(0, tile.rows, lines):
            if ragged_rows and i:
                out.open("if ({} < {}u) {{".format(self._raw(out, self.row_tile, tile.rows, i), p.rows))
            for j in range(0, tile.columns, self.group):
                if ragged_columns and j:
                    out.open("if ({} < {}u) {{".format(self._raw(out, self.column_tile, tile.columns, j), p.columns))
                at = i * tile.columns + j
                if self.seconds:
                    for c in range(lines):
                        self._store_group(out, sums, at + c * tile.columns, 1, RESULT)
                    self._store_group(out, self.seconds, at, lines, SECOND)
                else:
                    self._store_group(out, sums, at, lines, RESULT)
                if ragged_columns and j:
                    out.close()
            if ragged_rows and i:
                out.close()

    def _store_group(self, out, cells, at, lines, slot):
        """Store the cells of a group of columns, from `at` on: those of four lines as words, or those of one."""
        if lines == 4:
            for n in range(at, at + self.group):
                out.store_four([cells[n + c * self.tile.columns] for c in range(4)], slot)
        elif slot == SECOND:
            out.store_four(cells[at : at + 4], slot)
        else:
            out.store_all(cells[at : at + self.group], self.vector_out or self.lowering.in_bytes)

    def _raw(self, out, tile, count, offset):
        return out.index(ix.add(ix.mul(tile, count), ix.const(offset)))

    def _vector_store(self, sums):
        """Whether every group of four columns is stored as one vector."""
        return self.group == 4 and self.item.node.word[0] == "f" and ix.all_in_fours(sums)
