"""Attention without the matrix of scores: softmax(q kᵀ) v with a running maximum and sum.

(Milakov and Gimelshein 2018; Dao et al. 2022.) An invocation holds a few queries and their results in registers and
passes over the keys once; whenever a larger score appears, the sums so far are scaled down. On a GPU, where a few
queries would leave most lanes idle, several lanes share the keys of a query and merge their results in workgroup memory
(shaders/attention_split.wgsl).
"""

from emberlet.sizes.questions import divides, known_equal
from emberlet.sizes.size import typical

from ..lower import index as ix
from ..lower.kernel_ir import Frame
from ..lower.lowering import Lowering
from ..render import wgsl
from ..run import storage
from .loop import MAX_ITERATIONS, finish, flat, spread

MAX_SIZE = 128  # channels of a head: its queries and results are kept in registers
LANES = 8  # queries that a thread of a software device processes side by side
# Lanes that share the keys of a query on a GPU: at least the first number, and more until that many lanes are busy.
# Measured on an H100 with 1 to 1,024 queries, 4 to 32 heads and 16 to 8,192 keys.
LEAST_SPLIT = 4
BUSY = 1 << 13


def serves(q, keys, values, software):
    """Whether the kernel is a good choice: heads fit into registers, and queries fill the lanes of a software device.
    On a GPU, lanes share the keys."""
    rows = q.shape[0] * q.shape[1] * q.shape[2]
    enough = not software or typical(rows) >= LANES or typical(keys.shape[2]) <= 64
    enough = enough and keys.shape[2] <= MAX_ITERATIONS and not known_equal(rows * keys.shape[2], 0)
    return enough and 0 < q.shape[3] <= MAX_SIZE and 0 < values.shape[3] <= MAX_SIZE


def attention(item, stored, name, options):
    """The Kernel of an "attention" item: sources queries, keys, values, then bias and sink if present; arg (scale,
    softcap, has bias, has sink, whether a query that sees no key gets 0, the step between rounded weights or None).

    Weights are rounded as record/level_attention.py says. That takes their sum, so that keys are passed over twice.
    """
    return _Attention(item, stored, options).kernel(name)


class _Attention:
    def __init__(self, item, stored, options):
        self.item = item
        self.node = item.anchor
        self.low = Lowering(item, stored)
        q, keys = self.node.srcs[0], self.node.srcs[1]
        self.group = q.shape[1] // keys.shape[1]
        batch, heads, length, self.size = q.shape
        self.depth = self.node.shape[3]
        self.keys = keys.shape[2]
        self.step = self.node.arg[5]
        self.rows = 1
        most = 4 if options.software else 2
        queries = typical(batch * heads * length)
        while self.rows < most and typical(length) >= self.rows * 2 and queries >= self.rows * 64:
            self.rows *= 2
        tiles = (length + self.rows - 1) // self.rows
        self.threads = batch * heads * tiles
        self.width = 64
        if options.software:
            # A workgroup is one thread: few queries are spread over more of them.
            self.width = 2 * LANES if typical(self.threads) >= 8 * LANES else LANES
        self.split = 1
        if not options.software:
            self._share(options)
        self.batch, self.head, tile = ix.unflatten(ix.counter("t", self.threads), (batch, heads, tiles))
        self.ragged = not divides(self.rows, length)
        self.lines = [ix.add(ix.mul(tile, self.rows), ix.const(r)) for r in range(self.rows)]
        self.length = length

    def _share(self, options):
        """Choose how many lanes share the keys of a query."""
        keys = typical(self.keys)
        while self.split < self.width and keys >= 4 * self.split:
            if self.split >= LEAST_SPLIT and typical(self.threads) * self.split >= BUSY:
                break
            self.split *= 2
        vectors = (self.depth + 3) // 4
        while self.split > 1 and self.rows * (16 * vectors + 8) * self.width // 2 > options.workgroup_bytes:
            self.width //= 2
            self.split = min(self.split, self.width)

    def _fours(self, node, lead, count):
        """vec4 texts' Values of `count` neighboring elements along the last axis: lists of 4, the last padded."""
        values = [self.low.value(node, list(lead) + [ix.const(d)]) for d in range(count)]
        zero = self.low.build.const(0, storage.register(node.dtype))
        while len(values) % 4:
            values.append(zero)
        fours = []
        for at in range(0, len(values), 4):
            four = values[at : at + 4]
            fours.append(self.low.vector(four) or four)
        return fours

    def _open_keys(self, out, keys):
        """Open the loop over the keys of an invocation."""
        first, step = ("slice", "j += {}u".format(self.split)) if self.split > 1 else ("0u", "j++")
        out.open("for (var j = {}; j < {}u; {}) {{".format(first, self.keys, step))
        for c in range(len(keys)):
            out.line("let k{} = {};".format(c, out.four(keys[c])))

    def _scores(self, out, chunks, softcap, added):
        """The scores of one key."""
        for r in range(self.rows):
            dots = ["dot(q{}_{}, k{})".format(r, c, c) for c in range(chunks)]
            out.line("var s{} = {};".format(r, " + ".join(dots)))
            if softcap:
                cap = wgsl.literal(softcap, "f32")
                out.line("s{0} = {1} * tanh_f32(s{0} / {1});".format(r, cap))
            if added:
                out.line("s{0} = s{0} + {1};".format(r, out.name(added[r])))

    def _weigh(self, out):
        """The weights that the scores of a key give it beside the keys before."""
        for r in range(self.rows):
            self._join(out, r, "s{}".format(r), "")

    def _join(self, out, r, score, factor):
        """Add a score, and the sum of weights that belongs to it, to the largest score and the sum of a query. factor:
        the text of that sum and a sign, nothing for 1."""
        out.line("let new{0} = max(top{0}, {1});".format(r, score))
        out.line("let base{0} = select(new{0}, 0.0, new{0} == lowest);".format(r))
        out.line("let shrink{0} = exp(top{0} - base{0});".format(r))
        out.line("let weight{0} = exp({1} - base{0});".format(r, score))
        out.line("sum{0} = sum{0} * shrink{0} + {1}weight{0};".format(r, factor))
        out.line("top{0} = new{0};".format(r))

    def _join_lane(self, out, r, pair):
        """Add another lane's part to the largest score and the sum of a query."""
        out.line("let pair{} = {};".format(r, pair))
        self._join(out, r, "pair{}.x".format(r), "pair{}.y * ".format(r))

    def kernel(self, name):
        low = self.low
        srcs = self.node.srcs
        scale, softcap, has_bias, has_sink = self.node.arg[:4]
        shared = ix.floordiv(self.head, self.group)
        # A tile may overhang; results beyond the edge are not stored.
        lines = [line.bounded(0, self.length - 1) for line in self.lines]
        j = ix.counter("j", self.keys)
        queries = [self._fours(srcs[0], (self.batch, self.head, line), self.size) for line in lines]
        keys = self._fours(srcs[1], (self.batch, shared, j), self.size)
        values = self._fours(srcs[2], (self.batch, shared, j), self.depth)
        added = [low.operand(srcs[3], [self.batch, self.head, line, j]) for line in lines] if has_bias else None
        sink = low.value(srcs[-1], [self.head]) if has_sink else None
        results = self._results(lines)
        out = wgsl.Renderer(low.slots)
        sink_top, sink_sum = (out.name(sink), "1.0") if has_sink else ("lowest", "0.0")
        if has_sink and self.split > 1:  # it counts once
            sink_top = "select(lowest, {}, slice == 0u)".format(sink_top)
            sink_sum = "select(0.0, 1.0, slice == 0u)"
        out.line("let lowest = from_bits(0xff800000u);")
        for r in range(self.rows):
            factor = wgsl.literal(scale, "f32")
            for c in range(len(queries[r])):
                out.line("let q{}_{} = {} * {};".format(r, c, out.four(queries[r][c]), factor))
            for c in range(len(values)):
                out.line("var o{}_{} = vec4<f32>();".format(r, c))
            out.line("var top{} = {};".format(r, sink_top))
            out.line("var sum{} = {};".format(r, sink_sum))
        if self.step is not None:
            self._totals(out, keys, softcap, added)
        self._open_keys(out, keys)
        self._scores(out, len(keys), softcap, added)
        if self.step is None:
            self._weigh(out)
        else:
            self._round(out)
        kept = "o{0}_{1} * shrink{0}" if self.step is None else "o{0}_{1}"
        for c in range(len(values)):
            out.line("let x{} = {};".format(c, out.four(values[c])))
            for r in range(self.rows):
                out.line(("o{0}_{1} = " + kept + " + x{1} * weight{0};").format(r, c))
        out.close()
        tiles = self.width // self.split
        if self.split > 1:
            self._merge(out, len(values), tiles)
        for r in range(self.rows if self.step is None else 0):
            # A query that sees no key gets 0.
            out.line("let scale{0} = select(1.0 / sum{0}, 0.0, sum{0} == 0.0);".format(r))
        self._store(out, results)
        groups = (self.threads + tiles - 1) // tiles
        named = {"workgroup": self.width, "rows": self.rows, "body": out.text()}
        named["flat"] = flat(groups, "lane" if self.split == 1 else "lane % {}u".format(tiles), tiles)
        frame = Frame(name, low.slots, self.threads)
        frame.vector_out = self.vector_out
        if self.split == 1:
            return finish(frame, "attention.wgsl", named, spread(groups))
        named.update({"split": self.split, "tiles": tiles})
        named["vectors"] = self.rows * len(values) * self.width // 2
        named["pairs"] = self.rows * self.width // (2 if self.step is None else 1)
        return finish(frame, "attention_split.wgsl", named, spread(groups))

    def _totals(self, out, keys, softcap, added):
        """The largest score of all keys, and the sum of the weights, of each query."""
        self._open_keys(out, keys)
        self._scores(out, len(keys), softcap, added)
        self._weigh(out)
        out.close()
        if self.split == 1:
            return
        for r in range(self.rows):
            out.line("pairs[{}u + lane] = vec2<f32>(top{}, sum{});".format(r * self.width, r, r))
        out.line("workgroupBarrier();")
        for r in range(self.rows):
            out.line("top{} = lowest;".format(r))
            out.line("sum{} = 0.0;".format(r))
        tiles = self.width // self.split
        out.open("for (var other = lane % {0}u; other < {1}u; other += {0}u) {{".format(tiles, self.width))
        for r in range(self.rows):
            self._join_lane(out, r, "pairs[{}u + other]".format(r * self.width))
        out.close()

    def _round(self, out):
        """The rounded weights of a key."""
        step = wgsl.literal(self.step, "f32")
        for r in range(self.rows):
            out.line("let base{0} = select(top{0}, 0.0, top{0} == lowest);".format(r))
            share = "exp(s{0} - base{0}) / sum{0}".format(r)
            out.line("let weight{0} = f32(level_of({1}, {2}, 0.0)) * {2};".format(r, share, step))

    def _merge(self, out, vectors, tiles):
        """Merge the results of the lanes that share queries, in the first of them; the others end."""
        half = self.width // 2
        part = "o{0}_{1} * shrink{0} + {2} * weight{0}" if self.step is None else "o{0}_{1} + {2}"
        out.open("for (var half = {}u; half >= {}u; half = half / 2u) {{".format(half, tiles))
        out.open("if (lane >= half && lane < 2u * half) {")
        for r in range(self.rows):
            if self.step is None:
                out.line("pairs[{}u + lane - half] = vec2<f32>(top{}, sum{});".format(r * half, r, r))
            for c in range(vectors):
                out.line("parts[{}u + lane - half] = o{}_{};".format((r * vectors + c) * half, r, c))
        out.close()
        out.line("workgroupBarrier();")
        out.open("if (lane < half) {")
        for r in range(self.rows):
            if self.step is None:
                self._join_lane(out, r, "pairs[{}u + lane]".format(r * half))
            for c in range(vectors):
                there = "parts[{}u + lane]".format((r * vectors + c) * half)
                out.line(("o{0}_{1} = " + part + ";").format(r, c, there))
        out.close()
        out.line("workgroupBarrier();")
        out.close()
        out.open("if (lane >= {}u || place >= {}u) {{".format(tiles, self.threads))
        out.line("return;")
        out.close()

    def _results(self, lines):
        """Per query the (Value, store Index) of every element of its result."""
        out = []
        for r in range(self.rows):
            cells = []
            for d in range(self.depth):
                text = "o{}_{}.{}".format(r, d // 4, "xyzw"[d % 4])
                if self.step is None:
                    text = "({} * scale{})".format(text, r)
                value = self.low.build.make("variable", "f32", (), text)
                at = [self.batch, self.head, lines[r], ix.const(d)]
                cells.append(self.low.place(at, self.low.round(value, self.node.dtype)))
            out.append(cells)
        self.vector_out = self.item.node.word[0] == "f" and self.depth % 4 == 0
        self.vector_out = self.vector_out and all(ix.all_in_fours(cells) for cells in out)
        return out

    def _store(self, out, results):
        for r in range(self.rows):
            if self.ragged and r:
                out.open("if ({} < {}u) {{".format(out.index(self.lines[r]), self.length))
            out.store_all(results[r], self.vector_out or self.low.in_bytes)
            if self.ragged and r:
                out.close()
