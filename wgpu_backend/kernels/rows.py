"""The kernel of a row region: one workgroup per row (one invocation, if rows are short or many)."""

from emberlet.sizes.size import most, typical

from ..lower import index as ix
from ..lower.kernel_ir import SECOND, Frame
from ..lower.lowering import Lowering
from ..lower.rows import Rows, extents
from ..render import wgsl
from ..run import storage
from .loop import (
    BLOCK,
    MAX_ITERATIONS,
    WORKGROUP,
    as_held,
    as_value,
    combine,
    finish,
    first,
    flat,
    held,
    open_blocks,
    spread,
)


def rows(item, stored, name, options):
    """The Kernel of a "rows" item, whose anchor's arg is the Region."""
    region = item.anchor.arg
    length, count = extents(region)
    alone = typical(length) <= 32 or (options.software and typical(count) >= 32) or typical(count) >= 1 << 16
    alone = alone and length * (len(region.reductions) + 1) <= MAX_ITERATIONS
    width = 1
    if not alone:
        width = 64
        while width < 256 and width * 4 <= typical(length):
            width *= 2
    return _Rows(item, stored, region, length, count, width).kernel(name)


class _Rows:
    def __init__(self, item, stored, region, length, count, width):
        self.region = region
        self.length = length
        self.count = count
        self.width = width
        self.lowering = Lowering(item, stored)

    def kernel(self, name):
        low, region = self.lowering, self.region
        found = Rows(low, region, ix.counter("g", self.count), ix.counter("r", self.length))
        scalars = [low.value(s, found.row) for s in region.scalars]
        per_row = found.per_row
        second = low.item.second is not None
        count = 4 if low.in_bytes or second else 1  # elements that are stored at once
        at = ix.mul(ix.counter("r", self.length // count), count)
        places = [found.row if per_row else found.at(ix.add(at, ix.const(c))) for c in range(count)]
        cells = [low.place(place) for place in places]
        seconds = [low.place_second(places[c], cells[c][0]) for c in range(count)] if second else []
        vector_out = second and ix.all_in_fours(cells)
        out = wgsl.Renderer(low.slots)
        for k in range(len(found.bodies)):
            self._stage(out, "red{}".format(k), region.reductions[k], found.bodies[k])
            # Values that depend only on finished reductions are computed before the loops that use them.
            for s in range(len(scalars)):
                if self._ready(region.scalars[s], region.reductions[: k + 1]):
                    out.name(scalars[s])
        if not per_row:
            self._loop(out, self.length // count)
        elif self.width > 1:
            out.open("if (lane == 0u) {")
        out.store_all(cells, vector_out or low.in_bytes)
        if second:
            out.store_four(seconds, SECOND)
        if not per_row or self.width > 1:
            out.close()
        values = {"body": out.text(), "scratch": self._scratch()}
        if self.width > 1:
            values["workgroup"] = self.width
            values["flat"] = flat(self.count, "lane", 0)
            groups = self.count
        else:
            values["workgroup"] = WORKGROUP
            groups = (self.count + WORKGROUP - 1) // WORKGROUP
            values["flat"] = flat(groups, "lane", WORKGROUP)
        values["length"] = self.length
        return finish(Frame(name, low.slots, self.count, vector_out), "rows.wgsl", values, spread(groups))

    def _ready(self, scalar, done):
        for s in scalar.srcs:
            if id(s) in self.region.members and s not in done and not (s.op != "reduce" and self._ready(s, done)):
                return False
        return True

    def _loop(self, out, length):
        if self.width > 1:
            out.open("for (var r = lane; r < {}u; r += {}u) {{".format(length, self.width))
        else:
            out.open("for (var r = 0u; r < {}u; r++) {{".format(length))

    def _stage(self, out, name, reduction, body):
        op = reduction.arg[0]
        type = storage.register(reduction.dtype)
        self._fold(out, name if type != "bool" else name + "_held", op, type, body)
        if type == "bool":
            out.line("let {} = {};".format(name, as_value(name + "_held", type)))

    def _fold(self, out, name, op, type, body):
        out.line("var {}: {} = {};".format(name, held(type), first(op, type)))
        if op == "sum" and type == "f32" and most(self.length) > 2 * BLOCK * self.width:
            open_blocks(out, "r", "lane" if self.width > 1 else "0u", self.width, self.length)
            out.line("part = part + {};".format(out.name(body)))
            out.close()
            out.line("{0} = {0} + part;".format(name))
        else:
            self._loop(out, self.length)
            out.line("{} = {};".format(name, combine(op, type, name, as_held(out.name(body), type))))
        out.close()
        if self.width == 1:
            return
        scratch = "scratch_{}".format(held(type))
        out.line("{}[lane] = {};".format(scratch, name))
        out.open("for (var half = {}u; half > 0u; half = half / 2u) {{".format(self.width // 2))
        out.line("workgroupBarrier();")
        out.open("if (lane < half) {")
        out.line("{0} = {1};".format(name, combine(op, type, name, scratch + "[lane + half]")))
        out.line("{}[lane] = {};".format(scratch, name))
        out.close()
        out.close()
        out.line("workgroupBarrier();")
        out.line("{} = {}[0];".format(name, scratch))
        out.line("workgroupBarrier();")

    def _scratch(self):
        if self.width == 1:
            return ""
        types = []
        for r in self.region.reductions:
            type = held(storage.register(r.dtype))
            if type not in types:
                types.append(type)
        line = "var<workgroup> scratch_{0}: array<{0}, {1}>;"
        return "\n".join([line.format(t, self.width) for t in types])
