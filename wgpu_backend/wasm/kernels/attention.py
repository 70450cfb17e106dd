"""Attention in one pass: softmax(q kᵀ) v by blocks of keys, with a running maximum and sum, and no matrix of scores.

(Milakov and Gimelshein 2018; Dao et al. 2022.) For a head, the scaled queries are copied to scratch memory, and a block
of keys and values at a time: the keys by columns, so that a vector holds neighboring ones. A tile of rows then gets its
scores from registers, their weights, and its share of the results, which stay in scratch memory until the last block.
Whenever a larger score appears, the results so far are scaled down. Of many rows, a part at a time goes through all
keys, so that scratch memory holds no more; threads that share the rows of few heads have them all.
"""

from emberlet.sizes.size import is_open, most, typical

from ...lower import index as ix
from ...lower.lowering import Lowering
from ..assembler import f32, f32x4, i32, i32x4, memory, op, select, unsigned_min
from . import operations, split
from .emitter.vectors import extract, splat
from .nest import begin, by_vectors, finish

ROWS = 6  # of a tile: with 4 vectors of keys, 24 sums, 4 keys and a query fill 29 of AVX-512's 32 registers
MOST_ROWS = 128 * ROWS  # of a head at a time: each time, all keys are copied anew
KEYS = 128  # of a block: more would leave the caches, and fewer spend more on each row's maximum and sum
# From these numbers on, one pass takes less time than products and a softmax on a stored matrix of scores
# (benches/attention.py): of a head's queries and keys, and of all scores, which leave the caches.
LEAST_ROWS, LEAST_KEYS, LEAST_SCORES = 64, 256, 1 << 19
WIDE, LEAST_WIDE_KEYS = 64, 1024  # of more channels, copying keys and values takes longer beside what is saved
LEAST_SIZE, MOST_SIZE = 4, 256  # channels of a head


def serves(q, keys, values):
    """Whether the kernel is a good choice."""
    sizes = (q.shape[3], values.shape[3])
    if [n for n in sizes if is_open(n) or not LEAST_SIZE <= n <= MOST_SIZE]:
        return False
    rows, columns = typical(q.shape[2]), typical(keys.shape[2])
    scores = typical(q.shape[0] * q.shape[1]) * rows * columns
    least = LEAST_KEYS if max(sizes) <= WIDE else LEAST_WIDE_KEYS
    return rows >= LEAST_ROWS and columns >= least and scores >= LEAST_SCORES


def attention(item, stored, name, options):
    """The Kernel of an "attention" item: sources queries, keys, values, then bias and sink if present; arg (scale,
    softcap, has bias, has sink, whether a query that sees no key gets 0)."""
    lanes = options.lanes
    while lanes > min(item.anchor.shape[3], item.anchor.srcs[0].shape[3]):
        lanes //= 2
    return _Attention(item, stored, lanes, options.relaxed).kernel(name)


class _Attention:
    def __init__(self, item, stored, lanes, relaxed):
        node = item.anchor
        q, k, v = node.srcs[:3]
        self.scale, self.softcap, has_bias, has_sink, self.blind = node.arg[:5]
        self.lanes = lanes
        self.relaxed = relaxed
        batch, heads, self.length, self.size = q.shape
        self.keys = k.shape[2]
        self.depth = node.shape[3]
        self.heads = batch * heads
        self.low = low = Lowering(item, stored)
        b, h = ix.unflatten(ix.counter("head", self.heads), (batch, heads))
        shared = ix.floordiv(h, heads // k.shape[1])
        row, key = ix.counter("row", self.length), ix.counter("key", self.keys)
        channel, out = ix.counter("channel", self.size), ix.counter("out", self.depth)
        self.q = low.value(q, [b, h, row, channel])
        self.k = low.value(k, [b, shared, key, channel])
        self.v = low.value(v, [b, shared, key, out])
        self.bias = low.operand(node.srcs[3], [b, h, row, key]) if has_bias else None
        self.sink = low.value(node.srcs[-1], [h]) if has_sink else None
        value = low.build.make("variable", "f32", (), "sum")
        self.result, self.store = low.place([b, h, row, out], low.round(value, node.dtype))
        self.across = 4 if lanes > 8 else 2  # vectors of keys in a tile
        self.columns = (self.depth + lanes - 1) // lanes  # vectors of a result
        self.together = 2 if self.columns > 1 else 1  # of which so many are summed at a time
        if self.columns % self.across == 0:
            self.together = self.across
        self.columns = (self.columns + self.together - 1) // self.together * self.together
        self.width = self.columns * lanes

    def kernel(self, name):
        self.e = e = begin(name, self.low.slots, self.lanes)
        self.f = f = e.f
        f.work = typical(self.heads * self.length * self.keys) * (self.size + self.depth) // 8
        self.shared = split.chosen([self.heads, (self.length + ROWS - 1) // ROWS])
        self._reserve()
        e.loop("head", self.heads, split=self.shared == 0)
        self._open_part()
        self._queries()
        self._begin_rows()
        e.loop("block", self.keys, KEYS)
        self.first = e.counters["block"][0]
        left = f.let(op("i32.sub", i32(self.keys), self.first))
        self.many = f.let(unsigned_min(left, i32(KEYS)))
        self._pack()
        self._open_tiles()
        self._scores()
        self._weights()
        self._add_values()
        e.close()
        e.close()
        self._open_tiles()
        self._finish_rows()
        for _ in range(3):
            e.close()
        return finish(e, name, self.low.slots)

    def _reserve(self):
        """The addresses of what is in scratch memory."""
        self.rows = (self.length + ROWS - 1) // ROWS * ROWS
        self.in_parts = self.shared == 0 and most(self.rows) > MOST_ROWS
        rows = MOST_ROWS if self.in_parts else self.rows
        parts = (
            ("packed", self.size * KEYS),  # the keys of a block, by channels
            ("values", KEYS * self.width),
            ("weights", ROWS * KEYS),  # the scores of a tile, then their weights
            ("shrink", 16),  # by how much the results of its rows become smaller
            ("sums", rows * self.width),  # of the results
            ("queries", rows * self.size),
            ("top", rows),  # the largest scores
            ("total", rows),  # the sums of weights
        )
        at = 0
        self.at = {}
        for name, count in parts:
            self.at[name] = self.f.let(op("i32.add", self.e.addresses["scratch"], i32(4 * at)))
            at = at + count
        self.f.scratch = 4 * at

    def _place(self, name, *terms):
        """The address of a number in scratch memory. terms: (expression, how many numbers a step of it is)."""
        out = self.at[name]
        for e, count in terms:
            out = op("i32.add", out, op("i32.mul", e, i32(4 * count)))
        return self.f.let(out)

    def _open_part(self):
        """Open the loop over the parts of a head's rows: `begin` is the first row of one, `behind` how many it has."""
        e, f = self.e, self.f
        if not self.in_parts:
            e.block()
            self.begin, self.behind = i32(0), self.rows
            return
        e.loop("part", self.rows, MOST_ROWS)
        self.begin = e.counters["part"][0]
        self.behind = f.let(unsigned_min(op("i32.sub", i32(self.rows), self.begin), i32(MOST_ROWS)))

    def _queries(self):
        """Copy the queries of a part, scaled."""
        e, f = self.e, self.f
        end, start = self.length, 0
        if self.in_parts:
            start = self.begin
            end = f.let(unsigned_min(op("i32.add", self.begin, self.behind), i32(self.length)))
        e.loop("row", end, 1, start)
        row = op("i32.sub", e.counters["row"][0], self.begin)

        def write(wide):
            at = self._place("queries", (row, self.size), (e.counters["channel"][0], 1))
            if wide:
                f.do(memory("v128.store", at, op("f32x4.mul", e.vector(self.q), f32x4(self.scale))))
            else:
                f.do(memory("f32.store", at, op("f32.mul", e.scalar(self.q), f32(self.scale))))

        by_vectors(e, "channel", self.size, write)
        e.close()

    def _begin_rows(self):
        e, f = self.e, self.f
        top = f32(-float("inf")) if self.sink is None else f.let(e.scalar(self.sink))
        total = f32(0.0 if self.sink is None else 1.0)
        e.loop("start", self.behind)
        row = e.counters["start"][0]
        f.do(memory("f32.store", self._place("top", (row, 1)), top))
        f.do(memory("f32.store", self._place("total", (row, 1)), total))
        e.loop("vector", self.width, self.lanes)
        at = self._place("sums", (row, self.width), (e.counters["vector"][0], 1))
        f.do(memory("v128.store", at, f32x4(0.0)))
        e.close()
        e.close()

    def _pack(self):
        """Copy a block of keys and values."""
        e, f = self.e, self.f
        e.loop("x", KEYS)
        x = e.counters["x"][0]
        e.bind("key", f.let(op("i32.add", self.first, unsigned_min(x, op("i32.sub", self.many, i32(1))))))
        self._pack_key(x)
        e.close()
        e.loop("x", self.many)
        x = e.counters["x"][0]
        e.bind("key", f.let(op("i32.add", self.first, x)))
        self._each_column(
            lambda to: f.do(memory("v128.store", self._place("values", (x, self.width), (to, 1)), e.vector(self.v)))
        )
        e.close()

    def _pack_key(self, x):
        """Copy the channels of key number x of the block."""
        e, f = self.e, self.f
        to = f.local("i32")
        f.set(to, self._place("packed", (x, 1)))
        step = e.coefficient(self.k.attr[1], "channel") if self.k.op == "load" else None
        if step is None or step < 0 or self.low.slots.types[self.k.attr[0]] != "f32":
            e.loop("channel", self.size)
            f.do(memory("f32.store", f.get(to), e.scalar(self.k)))
            f.set(to, op("i32.add", f.get(to), i32(4 * KEYS)))
            e.close()
            return
        slot, index = self.k.attr
        at = f.local("i32")
        e.bind("channel", i32(0))
        f.set(at, e.index(index, 4, e.addresses[slot]))
        unroll = 8 if self.size % 8 == 0 else 4 if self.size % 4 == 0 else 1
        e.loop("depth", self.size, unroll)
        for u in range(unroll):
            number = memory("f32.load", f.get(at), offset=4 * u * step)
            f.do(memory("f32.store", f.get(to), number, offset=4 * u * KEYS))
        f.set(at, op("i32.add", f.get(at), i32(4 * unroll * step)))
        f.set(to, op("i32.add", f.get(to), i32(4 * unroll * KEYS)))
        e.close()

    def _each_column(self, write):
        """`write(first number)` for the vectors of a row of results. The last ones may begin earlier than their place,
        and repeat columns."""
        e, f = self.e, self.f
        e.loop("vector", self.width, self.lanes)
        to = e.counters["vector"][0]
        e.bind("out", f.let(unsigned_min(to, i32(self.depth - self.lanes))))
        self._by_lane("out", lambda: write(to))
        e.close()

    def _by_lane(self, counter, write):
        self.e.lane = counter
        self.e._depends = {}
        write()
        self.e.lane = None
        self.e._depends = {}

    def _open_tiles(self):
        self.e.loop("tile", self.behind, ROWS, split=self.shared == 1)
        self.tile = self.e.counters["tile"][0]

    def _scores(self):
        """The products of a tile's queries with the keys of the block."""
        e, f = self.e, self.f
        wide = self.lanes * self.across
        end = op("i32.and", op("i32.add", self.many, i32(wide - 1)), i32(-wide))
        e.loop("panel", f.let(end), wide)
        panel = e.counters["panel"][0]
        sums = self._zeros(self.across)
        a, b = f.local("i32"), f.local("i32")
        f.set(a, self._place("queries", (self.tile, self.size)))
        f.set(b, self._place("packed", (panel, 1)))
        unroll = 4 if self.size % 4 == 0 else 1
        e.loop("depth", self.size, unroll)
        right = [f.local("v128") for _ in range(self.across)]
        for u in range(unroll):
            for v in range(self.across):
                f.set(right[v], memory("v128.load", f.get(b), offset=4 * (u * KEYS + v * self.lanes)))
            for r in range(ROWS):
                left = f.let(memory("v128.load32_splat", f.get(a), offset=4 * (r * self.size + u)))
                for v in range(self.across):
                    f.set(sums[r][v], self._multiplied(left, f.get(right[v]), f.get(sums[r][v])))
        f.set(a, op("i32.add", f.get(a), i32(4 * unroll)))
        f.set(b, op("i32.add", f.get(b), i32(4 * unroll * KEYS)))
        e.close()
        at = self._place("weights", (panel, 1))
        for r in range(ROWS):
            for v in range(self.across):
                f.do(memory("v128.store", at, f.get(sums[r][v]), offset=4 * (r * KEYS + v * self.lanes)))
        e.close()

    def _weights(self):
        """Replace a tile's scores by their weights beside the keys before."""
        e, f = self.e, self.f
        many = KEYS // self.lanes
        e.loop("r", ROWS)
        r = e.counters["r"][0]
        row = f.let(op("i32.add", self.tile, r))
        e.bind("row", f.let(unsigned_min(op("i32.add", self.begin, row), i32(self.length - 1))))
        at = self._place("weights", (r, KEYS))
        if self.softcap:
            cap = f32x4(self.softcap)
            for n in range(many):
                score = op("f32x4.div", memory("v128.load", at, offset=4 * n * self.lanes), cap)
                capped = op("f32x4.mul", operations.vector("tanh", "f32", (f.let(score),)), cap)
                f.do(memory("v128.store", at, capped, offset=4 * n * self.lanes))
        if self.bias is not None:
            self._add_bias(at)
        e.within(op("i32.lt_u", self.many, i32(KEYS)), lambda: self._mask(at))
        scores = [f.let(memory("v128.load", at, offset=4 * n * self.lanes)) for n in range(many)]
        top, total = self._place("top", (row, 1)), self._place("total", (row, 1))
        before = f.let(memory("f32.load", top))
        # One instruction where `max` takes six. It may lose a NaN, whose weight makes the row's sum NaN in any case.
        new = f.let(op("f32.max", before, self._folded("max", scores, "pmax")))
        base = f.let(select(op("f32.eq", new, f32(-float("inf"))), f32(0.0), new))
        shrink = f.let(operations.scalar("exp", "f32", (op("f32.sub", before, base),)))
        every = f.let(op("f32x4.splat", base))
        weights = []
        for n in range(many):
            weights.append(f.let(operations.vector("exp", "f32", (f.let(op("f32x4.sub", scores[n], every)),))))
            f.do(memory("v128.store", at, weights[n], offset=4 * n * self.lanes))
        added = op("f32.mul", memory("f32.load", total), shrink)
        f.do(memory("f32.store", total, op("f32.add", added, self._folded("add", weights))))
        f.do(memory("f32.store", top, new))
        f.do(memory("f32.store", self._place("shrink", (r, 1)), shrink))
        e.close()

    def _mask(self, at):
        """Make the scores behind the last key -inf."""
        ramp = i32x4(0, 1, 2, 3) if self.lanes == 4 else op("v128.ramp", i32(1))
        lowest = splat(f32(-float("inf")), "f32")
        for n in range(KEYS // self.lanes):
            key = op("i32x4.add", ramp, splat(i32(n * self.lanes), "i32"))
            inside = op("i32x4.lt_u", key, op("i32x4.splat", self.many))
            score = memory("v128.load", at, offset=4 * n * self.lanes)
            masked = op("v128.bitselect", score, lowest, inside)
            self.f.do(memory("v128.store", at, masked, offset=4 * n * self.lanes))

    def _add_bias(self, at):
        """Add the bias to a row of scores: by vectors in a whole block, else one by one, as there may be no memory
        behind the last key's."""
        e, f = self.e, self.f

        def vectors():
            for n in range(KEYS // self.lanes):
                e.block()
                e.bind("key", f.let(op("i32.add", self.first, i32(n * self.lanes))))
                place = {"offset": 4 * n * self.lanes}
                self._by_lane(
                    "key",
                    lambda place=place: f.do(
                        memory("v128.store", at, memory("v128.load", at, **place) + e.vector(self.bias), **place)
                    ),
                )
                e.close()

        def numbers():
            e.loop("x", self.many)
            x = e.counters["x"][0]
            e.bind("key", f.let(op("i32.add", self.first, x)))
            place = f.let(op("i32.add", at, op("i32.shl", x, i32(2))))
            f.do(memory("f32.store", place, memory("f32.load", place) + e.scalar(self.bias)))
            e.close()

        whole = f.let(op("i32.eq", self.many, i32(KEYS)))
        e.within(whole, vectors)
        e.within(op("i32.eqz", whole), numbers)

    def _folded(self, how, vectors, of_vectors=None):
        """The maximum or the sum of the numbers of vectors. of_vectors: the instruction for those, if it has another
        name than that for numbers."""
        f = self.f
        across = "f32x4." + (of_vectors or how)
        while len(vectors) > 1:
            half = len(vectors) // 2
            vectors = [f.let(op(across, vectors[n], vectors[n + half])) for n in range(half)]
        out = vectors[0]
        turned = self.lanes // 2 if self.lanes > 4 else 0
        while turned:
            out = f.let(op(across, out, op("v128.turn", out, i32(turned))))
            turned //= 2
        number = extract(out, "f32", 0)
        for n in range(1, self.lanes if self.lanes == 4 else 1):
            number = op("f32." + how, number, extract(out, "f32", n))
        return f.let(number)

    def _add_values(self):
        """Add the block's values, by their weights, to the results of a tile."""
        e, f = self.e, self.f
        e.loop("vector", self.width, self.lanes * self.together)
        column = e.counters["vector"][0]
        sums = [[f.local("v128") for _ in range(self.together)] for _ in range(ROWS)]
        at = self._place("sums", (self.tile, self.width), (column, 1))
        for r in range(ROWS):
            shrink = f.let(memory("v128.load32_splat", self.at["shrink"], offset=4 * r))
            for v in range(self.together):
                before = memory("v128.load", at, offset=4 * (r * self.width + v * self.lanes))
                f.set(sums[r][v], op("f32x4.mul", before, shrink))
        a, b = f.local("i32"), f.local("i32")
        f.set(a, self.at["weights"])
        f.set(b, self._place("values", (column, 1)))
        e.loop("x", self.many)
        right = [f.let(memory("v128.load", f.get(b), offset=4 * v * self.lanes)) for v in range(self.together)]
        for r in range(ROWS):
            left = f.let(memory("v128.load32_splat", f.get(a), offset=4 * r * KEYS))
            for v in range(self.together):
                f.set(sums[r][v], self._multiplied(left, right[v], f.get(sums[r][v])))
        f.set(a, op("i32.add", f.get(a), i32(4)))
        f.set(b, op("i32.add", f.get(b), i32(4 * self.width)))
        e.close()
        for r in range(ROWS):
            for v in range(self.together):
                f.do(memory("v128.store", at, f.get(sums[r][v]), offset=4 * (r * self.width + v * self.lanes)))
        e.close()

    def _finish_rows(self):
        """Store the results of a tile."""
        e, f = self.e, self.f
        e.loop("r", ROWS)
        row = f.let(op("i32.add", self.tile, e.counters["r"][0]))

        def store():
            e.bind("row", f.let(op("i32.add", self.begin, row)))
            total = f.let(memory("f32.load", self._place("total", (row, 1))))
            factor = op("f32.div", f32(1.0), total)
            if self.blind:  # a query that sees no key gets 0
                factor = select(op("f32.eq", total, f32(0.0)), f32(0.0), factor)
            factor = f.let(op("f32x4.splat", factor))

            def column(to):
                at = self._place("sums", (row, self.width), (to, 1))
                e.define("sum", f.let(op("f32x4.mul", memory("v128.load", at), factor)), True)
                e.store_four(self.store, self.result, self.low.slots.result.word)

            self._each_column(column)

        e.within(op("i32.lt_u", op("i32.add", self.begin, row), i32(self.length)), store)
        e.close()

    def _zeros(self, vectors):
        f = self.f
        sums = [[f.local("v128") for _ in range(vectors)] for _ in range(ROWS)]
        for line in sums:
            for s in line:
                f.set(s, f32x4(0.0))
        return sums

    def _multiplied(self, a, b, c):
        return op("f32x4.relaxed_madd", a, b, c) if self.relaxed else op("f32x4.add", c, op("f32x4.mul", a, b))
