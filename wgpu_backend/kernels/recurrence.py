"""All steps of a recurrent layer in one kernel, which reads their number from the block of sizes.

A workgroup computes a sequence in one direction; its lanes share the hidden units. The states that are multiplied with
weights are in workgroup memory, all others in registers.
"""

from emberlet.sizes.questions import known_equal

from ..lower import index as ix
from ..lower.kernel_ir import Frame
from ..lower.lowering import Lowering
from ..render import wgsl
from ..run import storage
from .loop import MAX_ITERATIONS, finish, flat, spread

WIDEST = 256  # invocations of a workgroup: WebGPU's baseline


def _block(hidden):
    """Terms of a product that are written out; a loop runs over the blocks."""
    return 16 if hidden <= 256 else 32 if hidden <= 512 else 64


def serves(steps, hidden, matrices, options):
    """Whether the kernel computes `steps` steps of `hidden` units."""
    each = 1 + (-(-hidden // WIDEST)) * (2 + len(matrices) * (2 + hidden // _block(hidden)))
    fits = (2 + (len(matrices) > 1)) * 4 * hidden <= options.workgroup_bytes
    return fits and 0 < hidden and steps * each <= MAX_ITERATIONS


def recurrence(item, stored, name, options):
    """The Kernel of a "recurrence" item: sources part, states, matrices, own weights, lengths; arg (Unit, whether there
    are lengths)."""
    return _Recurrence(item, stored).kernel(name)


class _Recurrence:
    def __init__(self, item, stored):
        self.node = item.anchor
        self.low = Lowering(item, stored)
        self.unit, has_lengths = self.node.arg
        unit, srcs = self.unit, list(self.node.srcs)
        self.lengths = srcs.pop() if has_lengths else None
        self.part = srcs.pop(0)
        self.first = [srcs.pop(0) for _ in unit.states]
        self.matrices = [srcs.pop(0) for _ in unit.products]
        self.own = srcs
        self.directions, self.steps, self.batch, _ = self.part.shape
        self.hidden = self.node.shape[3]
        self.count = self.directions * self.batch
        self.width = min(WIDEST, (self.hidden + 31) // 32 * 32)
        self.rounds = -(-self.hidden // self.width)
        self.direction, self.sequence = ix.unflatten(ix.counter("g", self.count), (self.directions, self.batch))
        self.at = ix.counter("j", self.hidden)
        self.type = storage.register(self.node.dtype)

    def kernel(self, name):
        low, unit = self.low, self.unit
        out = self.out = wgsl.Renderer(low.slots)
        states = ["s{}".format(i) for i in range(len(unit.states))]
        sums = [["p{}_{}".format(k, c) for c in range(len(unit.products[k][1]))] for k in range(len(unit.products))]
        if self.rounds == 1:
            out.line("let j = lane;")
        for private in states + [n for names in sums for n in names]:
            out.line("var {}: {};".format(private, self._held()))
        self._provide(states, sums)
        self._each_unit()
        for i in range(len(states)):
            first = low.value(self.first[i], [self.direction, self.sequence, self.at])
            out.line("{} = {};".format(self._own(states[i]), out.name(first)))
        out.line("hidden_state[j] = {};".format(self._own("s0")))
        out.close()
        out.line("workgroupBarrier();")
        out.line("var now = 0u;")
        out.open("for (var t = 0u; t < {}u; t++) {{".format(self.steps))
        for k in range(len(sums)):
            self._product(k, sums[k])
        self._advance(states)
        out.line("now = {}u - now;".format(self.hidden))
        out.line("workgroupBarrier();")
        out.close()
        self._each_unit()
        for i in range(len(states)):
            at = ix.const(self.steps + i)
            out.store(self._place(at), low.build.make("variable", self.type, (), self._own(states[i])))
        out.close()
        scratch = ["var<workgroup> hidden_state: array<{}, {}>;".format(self.type, 2 * self.hidden)]
        if len(sums) > 1:
            scratch.append("var<workgroup> multiplied: array<{}, {}>;".format(self.type, self.hidden))
        values = {"body": out.text(), "scratch": "\n".join(scratch), "workgroup": self.width}
        values["steps"], values["hidden"] = self.steps, self.hidden
        values["flat"] = flat(self.count, "lane", 0)
        return finish(Frame(name, low.slots, self.count), "recurrence.wgsl", values, spread(self.count))

    def _held(self):
        return self.type if self.rounds == 1 else "array<{}, {}>".format(self.type, self.rounds)

    def _own(self, name):
        """A lane's own variable, of the unit at hand."""
        return name if self.rounds == 1 else name + "[u]"

    def _each_unit(self):
        """Open a block for each unit of a lane, j."""
        if self.rounds == 1:
            self.out.open("if (j < {}u) {{".format(self.hidden))
            return
        ends = (self.rounds, self.width, self.hidden)
        self.out.open("for (var u = 0u; u < {}u && lane + u * {}u < {}u; u++) {{".format(*ends))
        self.out.line("let j = lane + u * {}u;".format(self.width))

    def _place(self, step):
        return ix.flatten([step, self.direction, self.sequence, self.at], self.node.shape)

    def _time(self):
        """The position in x and y of step t."""
        t = ix.counter("t", self.steps)
        if not self.unit.backwards:
            return t
        return ix.add(ix.const(self.steps - 1), ix.mul(t, -1)).bounded(0, self.steps - 1)

    def _column(self, gate):
        return ix.add(ix.const(gate * self.hidden), self.at)

    def _provide(self, states, sums):
        """Give the placeholders of the unit their values."""
        low, unit = self.low, self.unit
        for i in range(len(unit.part)):
            at = [self.direction, self._time(), self.sequence, self._column(i)]
            low.fix(unit.part[i], low.value(self.part, at))
        for i in range(len(states)):
            low.fix(unit.states[i], low.build.make("variable", self.type, (), self._own(states[i])))
        for i in range(len(unit.own)):
            low.fix(unit.own[i], low.value(self.own[i], [self.direction, ix.ZERO, self.at]))
        for k in range(len(sums)):
            for c in range(len(sums[k])):
                total = low.build.make("variable", self.type, (), self._own(sums[k][c]))
                low.fix(unit.products[k][1][c], low.round(total, self.node.dtype))

    def _value(self, node):
        return self.low.value(node, [ix.ZERO] * len(node.shape))

    def _product(self, k, names):
        """Product k, of each unit's columns."""
        out = self.out
        node = self.unit.products[k][0]
        vector = "hidden_state[now + {}]"
        if node is not self.unit.states[0]:
            vector = "multiplied[{}]"
            self._each_unit()
            out.line("multiplied[j] = {};".format(out.name(self._value(node))))
            out.close()
            out.line("workgroupBarrier();")
        block = _block(self.hidden)
        whole = self.hidden // block
        self._each_unit()
        for c in range(len(names)):
            out.line("var sum{} = 0.0;".format(c))
        if whole:
            out.open("for (var q = 0u; q < {}u; q++) {{".format(whole))
            for e in range(block):
                at = ix.add(ix.mul(ix.counter("q", whole), block), ix.const(e))
                self._term(k, vector, at, len(names))
            out.close()
        for e in range(whole * block, self.hidden):
            self._term(k, vector, ix.const(e), len(names))
        for c in range(len(names)):
            out.line("{} = sum{};".format(self._own(names[c]), c))
        out.close()

    def _term(self, k, vector, at, columns):
        out = self.out
        factor = out.temporary("factor {} {}".format(k, at.key), vector.format(out.index(at)))
        for c in range(columns):
            weight = self.low.value(self.matrices[k], [self.direction, at, self._column(c)])
            out.line("sum{0} = sum{0} + {1} * {2};".format(c, factor, out.name(weight)))

    def _advance(self, states):
        """Compute and store the new states of each unit."""
        low, out, build = self.low, self.out, self.low.build
        new = [self._value(node) for node in self.unit.results]
        result = new[0]
        if self.lengths is not None:
            alive = self._alive()
            result = build.make("where", self.type, (alive, new[0], build.const(0, self.type)))
            for i in range(len(new)):
                before = low.value(self.unit.states[i], [ix.ZERO] * 3)
                new[i] = build.make("where", self.type, (alive, new[i], before))
        self._each_unit()
        names = [out.name(value) for value in new]
        out.store(self._place(self._time()), result)
        for i in range(len(states)):
            out.line("let next{} = {};".format(i, names[i]))
        for i in range(len(states)):
            out.line("{} = next{};".format(self._own(states[i]), i))
        out.line("hidden_state[{}u - now + j] = next0;".format(self.hidden))
        out.close()

    def _alive(self):
        """Whether the sequence has this step. The second of two directions gets its sequence backwards."""
        build = self.low.build
        at = build.index(self._time(), "i32")
        if not known_equal(self.directions, 1):
            turned = ix.add(ix.const(self.steps - 1), ix.mul(ix.counter("t", self.steps), -1))
            second = build.make("eq", "bool", (build.index(self.direction, "u32"), build.const(1, "u32")))
            other = build.index(turned.bounded(0, self.steps - 1), "i32")
            at = build.make("where", "i32", (second, other, at))
        return build.make("lt", "bool", (at, self.low.value(self.lengths, [ix.ZERO, self.sequence, ix.ZERO])))
