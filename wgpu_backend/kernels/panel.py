"""Matrix products for SwiftShader (shaders/panel.wgsl), which runs a shader as four-wide machine code without
optimizing it: few loads and an innermost loop that fits the instruction cache matter most (docs/wgpu.md).

An invocation holds a panel of the right operand, inner steps × columns, and loops over rows of the left one: the loop
carries only counters, and partial sums are kept in the result's buffer. If the device has subgroups, the four lanes
load different parts of a row and broadcast them.
"""

from emberlet.sizes.questions import divides
from emberlet.sizes.size import typical

from ..lower import index as ix
from ..lower.contraction import problem
from ..lower.kernel_ir import Frame
from ..lower.lowering import Lowering
from ..render import wgsl
from .loop import finish, flat, spread

LANES = 4
LEAST_WORK = 1 << 24  # multiply-adds from which on these shaders are worth their compile time
# Inner steps and columns of a panel, chosen to keep the loop over rows within 32 KiB of code.
SHARED = (32, 8)
ALONE = (16, 16)


def serves(what, item, options):
    """Whether a Problem is a product of matrices that panels divide, large enough, with sums kept in f32."""
    if options.device_class != "swiftshader" or len(what.inner) != 1 or what.unrolled or len(what.after):
        return False
    depth, columns = SHARED if options.subgroups else ALONE
    for node in (item.node,) + tuple(item.anchor.srcs):
        if node.nbytes > options.page_bytes:
            return False
    return (
        item.node.word == "f32"
        and item.anchor.word == "f32"
        and divides(depth, what.depth())
        and divides(LANES * columns, what.columns)
        and divides(32, what.rows)
        and typical(what.cells() * what.depth()) >= LEAST_WORK
    )


def panels(item, stored, name, options):
    """The Kernel of a matmul or pointwise conv item that `serves` admits."""
    return _Panels(item, stored, options).kernel(name)


class _Panels:
    def __init__(self, item, stored, options):
        self.item = item
        self.subgroups = options.subgroups
        self.what = what = problem(item.anchor)
        self.low = Lowering(item, stored)
        self.depth, self.columns = SHARED if options.subgroups else ALONE
        self.steps = what.depth() // self.depth
        wide = LANES * self.columns
        self.rows = 32
        for rows in (64, 128):
            # Longer ranges of rows reuse each panel more, but some tens of workgroups should remain.
            if divides(rows, what.rows) and typical(what.cells() // (rows * wide)) >= 32:
                self.rows = rows
        shape = tuple(what.before) + (what.rows // self.rows, what.columns // wide)
        self.groups = 1
        for d in shape:
            self.groups *= d
        position = ix.unflatten(ix.counter("t", self.groups), shape)
        self.grid = position[:-2]
        self.row = ix.add(ix.mul(position[-2], self.rows), ix.counter("i", self.rows))
        first = ix.add(ix.mul(position[-1], wide), ix.mul(ix.counter("lane", LANES), self.columns))
        self.line = [ix.add(first, ix.const(j)) for j in range(self.columns)]
        self.inner = ix.mul(ix.counter("panel", self.steps), self.depth)

    def kernel(self, name):
        low = self.low
        right = [[self._block(g, q) for g in range(self.depth // 4)] for q in range(self.columns // 4)]
        left = self._left()
        cells, sums = [], []
        for j in range(self.columns):
            total = low.build.make("variable", "f32", (), "total{}.{}".format(j // 4, "xyzw"[j % 4]))
            cells.append(low.place(self.what.out(self.grid, self.row, self.line[j]), total))
            sums.append((total, cells[j][1]))
        self.vector_out = ix.all_in_fours(cells)
        plain = all(cells[j][0] is sums[j][0] for j in range(self.columns))
        out = wgsl.Renderer(low.slots)
        looped = self.steps if plain else self.steps - 1
        if looped:
            out.open("for (var panel = 0u; panel < {}u; panel++) {{".format(looped))
            self._panel(out, left, right, sums, sums, "panel > 0u")
            out.close()
        if not plain:
            # The epilogue is applied only to the last panel's totals.
            out.open("{")
            out.line("let panel = {}u;".format(self.steps - 1))
            self._panel(out, left, right, cells, sums, "true" if self.steps > 1 else "")
            out.close()
        values = {"flat": flat(self.groups, "lane", 0), "body": out.text()}
        values["lane"] = "subgroup_invocation_id" if self.subgroups else "local_invocation_index"
        values["rows"] = self.rows
        values["width"] = self.columns
        values["columns"] = LANES * self.columns
        values["depth"] = self.depth
        frame = Frame(name, low.slots, self.groups)
        frame.vector_out = self.vector_out
        return finish(frame, "panel.wgsl", values, spread(self.groups))

    def _step(self, offset):
        return ix.add(self.inner, offset)

    def _block(self, g, q):
        """The right operand's Values at inner steps 4g … 4g+3 (outer list) and columns 4q … 4q+3."""
        columns = self.line[4 * q : 4 * q + 4]
        steps = [self._step(ix.const(4 * g + k)) for k in range(4)]
        block = [[self.what.right(self.low, self.grid, c, [k]) for c in columns] for k in steps]
        lines = [self.low.vector(line) for line in block]
        if all(lines):
            return lines
        turned = [self.low.vector([block[k][c] for k in range(4)]) for c in range(4)]
        if all(turned):
            return [[turned[c][k] for c in range(4)] for k in range(4)]
        return block

    def _left(self):
        """Groups of four Values along the inner steps: one for four steps, or for sixteen that the lanes share."""
        fours = []
        for at in range(0, self.depth, 16 if self.subgroups else 4):
            start = ix.const(at)
            if self.subgroups:
                start = ix.add(ix.mul(ix.counter("lane", LANES), 4), start)
            steps = [self._step(ix.add(start, ix.const(c))) for c in range(4)]
            four = [self.what.left(self.low, self.grid, self.row, [k]) for k in steps]
            fours.append(self.low.vector(four) or four)
        return fours

    def _panel(self, out, left, right, cells, sums, before):
        """One panel: load it, then loop over the rows. cells: what to store; before: when there are sums to add to."""
        for q in range(len(right)):
            for g in range(len(right[q])):
                lines = [out.four(line) for line in right[q][g]]
                out.line("let right{}_{} = mat4x4<f32>({});".format(q, g, ", ".join(lines)))
        out.open("for (var i = 0u; i < {}u; i++) {{".format(self.rows))
        lefts = []
        for g in range(len(left)):
            text = out.four(left[g])
            if not self.subgroups:
                lefts.append(out.temporary("left {}".format(g), text))
                continue
            mine = out.temporary("left {}".format(g), text)
            for lane in range(LANES):
                whole = "subgroupBroadcast({}, {}u)".format(mine, lane)
                lefts.append(out.temporary("left {} {}".format(g, lane), whole))
        for q in range(len(right)):
            terms = ["right{}_{} * {}".format(q, g, lefts[g]) for g in range(len(lefts))]
            if before:
                old = self._stored(out, sums[4 * q : 4 * q + 4])
                terms.insert(0, old if before == "true" else "select(vec4<f32>(), {}, {})".format(old, before))
            out.line("let total{} = {};".format(q, " + ".join(terms)))
        out.store_all(cells, self.vector_out)
        out.close()

    def _stored(self, out, four):
        """The stored partial sums of four neighboring results."""
        if self.vector_out:
            return out.stored(ix.quarter(four[0][1]))
        return "vec4<f32>({})".format(", ".join([out.stored(store) for _, store in four]))
