"""Reads planes of bytes, and fills and copies lines of them."""

from emberlet.shapes import size
from emberlet.sizes.size import is_open

from ....lower import index as ix
from ....lower.lowering import Lowering
from ...assembler import i32, i32x4, memory, op
from ..nest import begin

WORDS = ("i8", "u8")
WRITTEN_OUT = 16  # bytes of a line's border, and taps of a window's line


def are_known(node, x):
    """Whether no size of a result and its picture is open, nor 0."""
    return not [d for d in node.shape + x.shape if is_open(d)] and node.count and x.count


class Picture:
    """A kernel that reads planes of bytes, line by line. value: what loads a byte; None if planes do not lie in memory
    so."""

    def __init__(self, item, stored, name, lanes, x):
        self.low = low = Lowering(item, stored)
        self.planes, (self.height, self.width) = size(x.shape[:-2]), x.shape[-2:]
        at = ix.unflatten(ix.counter("plane", self.planes), x.shape[:-2])
        at += [ix.counter("y", self.height), ix.counter("x", self.width)]
        value = low.value(x, at)
        self.whole = 4 * lanes  # bytes of a vector
        self.value = value if value.op == "load" and low.slots.types[value.attr[0]] in WORDS else None
        self.results = None
        if item.anchor is not None:
            result = low.build.make("reduced", "u32" if x.word == "u8" else "i32")
            place = ix.unflatten(ix.counter("plane", self.planes), x.shape[:-2])
            place += [ix.counter("row", item.anchor.shape[-2]), ix.counter("column", item.anchor.shape[-1])]
            self.results = low.place(place, result)
        self.e = begin(name, low.slots, lanes)
        if self.value is not None and self.e.coefficient(self.value.attr[1], "x") != 1:
            self.value = None

    def line(self):
        """The address of the line whose number is bound."""
        e = self.e
        e.block()
        e.bind("x", i32(0))
        slot, index = self.value.attr
        at = e.f.let(e.index(index, 1, e.addresses[slot]))
        e.close()
        return at

    def _parts(self, count):
        """(bytes of a step, how these are loaded, and stored) of as many bytes, at least four."""
        if count >= self.whole:
            return self.whole, "v128.load", "v128.store"
        return 4, "i32.load", "i32.store"

    def _each(self, count, write):
        """write(bytes from the first, how they are loaded and stored) for all parts; the last may repeat others."""
        e = self.e
        step, load, store = self._parts(count)
        e.loop("byte", count, step, clamp=count - step if count % step else None)
        write(e.counters["byte"][0], load, store)
        e.close()

    def fill(self, to, count, byte):
        """Write as many equal bytes."""
        f = self.e.f
        if count < 4:
            for n in range(count):
                f.do(memory("i32.store8", to, i32(byte), offset=n))
            return
        word = byte * 0x01010101
        word -= (word >> 31) << 32

        def write(n, _, store):
            number = i32(word) if store == "i32.store" else i32x4(word)
            f.do(memory(store, op("i32.add", to, n), number))

        self._each(count, write)

    def copy(self, to, at):
        """Copy a line."""
        f = self.e.f
        if self.width < 4:
            for n in range(self.width):
                f.do(memory("i32.store8", to, memory("i32.load8_u", at, offset=n), offset=n))
            return
        self._each(
            self.width,
            lambda n, load, store: f.do(memory(store, op("i32.add", to, n), memory(load, op("i32.add", at, n)))),
        )
