"""Products with a matrix of 2, 4 or 8 bits: its weights become floats in registers, a panel's column in each lane.

A word holds neighboring weights of one column, so that a vector of words has those of a panel's columns, and shifts
give a vector of weights for each of them. Few rows: the products of a block are summed, multiplied by its scales, and
the sums never leave the registers. More rows: a panel is unpacked to scratch memory, and its tiles are those of
contraction/. Either way the whole matrix is read once, in its bits (record/packed_weights.py has its form).
"""

from emberlet.sizes.size import is_open

from ...lower import index as ix
from ...lower.contraction import Problem
from ...record.packed_weights import FEW, WORD
from ..assembler import i32, i32x4, memory, op
from .contraction import Contraction

UNROLLED = 4  # words


def packed(item, stored, name, options):
    """The Kernel of a "packed" item."""
    shorter = type(options)(
        options.relaxed, item.anchor.srcs[1].shape[2], options.rows, options.backend, bytewise=options.bytewise
    )
    writer = _Packed(item, stored, shorter)
    assert writer.serves()  # the left operand has a buffer
    return writer.kernel(name)


def _problem(node):
    x, _, scales = node.srcs[:3]

    def left(lowering, grid, row, k):
        return lowering.value(x, [row] + k)

    def right(lowering, grid, column, k):
        return lowering.value(scales, [ix.ZERO] * 3)

    def out(grid, row, column):
        return [row, column]

    return Problem(node.shape[0], node.shape[1], (), (), x.shape[1:], 0, left, right, out)


class _Packed(Contraction):
    tails = False

    def __init__(self, item, stored, options):
        Contraction.__init__(self, item, stored, _problem(item.anchor), options)
        self.bits, self.block = self.node.arg
        self.slots = [self.low.slots.of(node) for node in self.node.srcs[1:]]
        whole = self.what.columns % self.lanes == 0  # else the last two panels have columns in common
        if self._direct() or not whole:
            self.vectors = 1
        self.each = WORD // self.bits  # weights of a word

    def _direct(self):
        few = not is_open(self.what.rows) and self.what.rows <= FEW
        if few:
            self.rows = self.what.rows
        return few

    # -- weights --------------------------------------------------------------------------------------------------

    def _open_weights(self, vector=0):
        """Locals with the addresses of the words, scales and zero points of a panel, which are a vector's columns."""
        e, f = self.e, self.f
        self.at = []
        for node, slot in zip(self.node.srcs[1:], self.slots):
            at = f.local("i32")
            if self.vectors == 1:
                panel = op("i32.mul", e.counters["panel"][0], i32(4 * node.shape[1] * self.lanes))
            else:
                first = op("i32.add", self.first_column, i32(self.lanes * vector))
                panel = op("i32.mul", first, i32(4 * node.shape[1]))
            f.set(at, op("i32.add", e.addresses[slot], panel))
            self.at.append(at)

    def _of_block(self):
        """The scales and zero points of the next block."""
        f, found = self.f, []
        for at in self.at[1:]:
            found.append(f.let(memory("v128.load", f.get(at))))
            f.set(at, op("i32.add", f.get(at), i32(4 * self.lanes)))
        return found

    def _floats(self, word, place, zeros):
        """The weights in one place of words."""
        begin = self.bits * place
        if zeros is None:
            high = op("i32x4.shl", word, i32(WORD - begin - self.bits)) if begin + self.bits < WORD else word
            level = op("i32x4.shr_s", high, i32(WORD - self.bits))
        else:
            level = op("i32x4.shr_u", word, i32(begin)) if begin else word
            if begin + self.bits < WORD:
                level = op("v128.and", level, i32x4((1 << self.bits) - 1))
        number = op("f32x4.convert_i32x4_s", level)
        return number if zeros is None else op("f32x4.sub", number, zeros)

    def _over_blocks(self, begin, write, end):
        """begin(), write(which word from here, how many weights it has) and end(the block's scales) for all blocks;
        write's addresses advance after each group of words (`_advance`)."""
        e, depth = self.e, self.what.depth()
        whole = depth // self.block

        def block(terms):
            constants = self._of_block()
            zeros = constants[1] if len(constants) > 1 else None
            begin()
            words, rest = terms // self.each, terms % self.each
            together = max([n for n in range(1, UNROLLED + 1) if words % n == 0]) if words else 1
            if words:
                e.loop("word", words, together)
                for n in range(together):
                    write(n, self.each, zeros, constants[0])
                self._advance(together)
                e.close()
            if rest:
                write(0, rest, zeros, constants[0])
                self._advance(1)
            end(constants[0])

        if whole:
            e.loop("whole", whole)
            block(self.block)
            e.close()
        if depth % self.block:
            e.block()
            block(depth % self.block)
            e.close()

    def _advance(self, words):
        f = self.f
        for at, step in self.moving:
            f.set(at, op("i32.add", f.get(at), i32(words * step)))

    def _word(self, n):
        return self.f.let(memory("v128.load", self.f.get(self.at[0]), offset=4 * self.lanes * n))

    # -- many rows ------------------------------------------------------------------------------------------------

    def _pack(self):
        """Unpack the weights of as many panels as a tile has vectors."""
        f = self.f
        to = f.local("i32")
        line = 4 * self.lanes * self.vectors

        def write(n, count, zeros, scales):
            word = self._word(n)
            for place in range(count):
                number = op("f32x4.mul", self._floats(word, place, zeros), scales)
                f.do(memory("v128.store", f.get(to), number, offset=(n * self.each + place) * line))

        for vector in range(self.vectors):
            self._open_weights(vector)
            f.set(to, op("i32.add", self.packed, i32(4 * self.lanes * vector)))
            self.moving = [(self.at[0], 4 * self.lanes), (to, self.each * line)]
            self._over_blocks(lambda: None, write, lambda scales: None)

    # -- few rows -------------------------------------------------------------------------------------------------

    def _tile(self, first_row):
        """Sum and store a tile."""
        if not self.direct:
            Contraction._tile(self, first_row)
            return
        e, f = self.e, self.f
        sums = self._zeros()
        self._open_weights()
        a = f.local("i32")
        e.block()
        e.bind("row", first_row)
        e.bind("k", i32(0))
        slot, index = self.left.attr
        f.set(a, e.index(ix.Index(index.terms, index.const), 4, e.addresses[slot]))
        e.close()
        self.moving = [(self.at[0], 4 * self.lanes), (a, 4 * self.each)]
        parts = [[f.local("v128") for _ in range(2 if self.rows == 1 else 1)] for _ in range(self.rows)]

        def begin():
            for line in parts:
                for part in line:
                    f.set(part, _zero())

        def write(n, count, zeros, scales):
            word = self._word(n)
            for place in range(count):
                number = f.let(self._floats(word, place, zeros))
                for r, line in enumerate(parts):
                    offset = 4 * (self.by_row * r + n * self.each + place)
                    left = memory("v128.load32_splat", f.get(a), offset=offset)
                    part = line[place % len(line)]
                    f.set(part, self._multiplied(left, number, f.get(part)))

        def end(scales):
            for (total,), line in zip(sums, parts):
                part = f.get(line[0])
                if len(line) > 1:
                    part = op("f32x4.add", part, f.get(line[1]))
                f.set(total, self._multiplied(part, scales, f.get(total)))

        self._over_blocks(begin, write, end)
        self._store_tile(first_row, sums)


def _zero():
    return i32x4(0)
