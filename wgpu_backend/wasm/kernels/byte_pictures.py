"""Pictures of 8-bit integers, a byte each: borders around them, and their max pooling.

Both go by vectors of bytes, of which there are four times as many as of numbers of 32 bits. A pooled line is the
largest of its lines first, in scratch memory, where it has its border, and then of neighbors.
"""

from emberlet.shapes import size
from emberlet.sizes.size import is_open

from ...lower import index as ix
from ...lower.lowering import Lowering
from ..assembler import i32, i32x4, memory, op, select, unsigned_min
from .nest import begin, finish

_WORDS = ("i8", "u8")
_WRITTEN_OUT = 16  # bytes of a border, and taps of a window's line


def border(item, stored, name, lanes):
    """The Kernel of a map that adds a border of a number to stored pictures of bytes; None for other items."""
    node = item.node
    if node.op != "pad" or item.region is not None or node.word not in _WORDS or not _are_known(node, node.srcs[0]):
        return None
    (x,), (pads, number) = node.srcs, node.arg
    if len(x.shape) < 3 or is_open(number) or [p for p in pads[:-2] if tuple(p) != (0, 0)]:
        return None
    (above, below), (left, right) = pads[-2:]
    if min(above, below, left, right) < 0 or left + right > _WRITTEN_OUT or x.word != node.word:
        return None
    picture = _Picture(item, stored, name, lanes, x)
    if picture.value is None:
        return None
    e, f, byte = picture.e, picture.e.f, int(number) & 255
    rows, line = node.shape[-2:]
    f.work = node.count // 8
    e.loop("plane", picture.planes, split=True)
    to = f.let(op("i32.add", e.addresses["out"], op("i32.mul", e.counters["plane"][0], i32(rows * line))))
    picture.fill(to, above * line, byte)
    e.loop("y", picture.height)
    at = f.let(op("i32.add", to, op("i32.mul", e.counters["y"][0], i32(line))))
    at = f.let(op("i32.add", at, i32(above * line)))
    picture.fill(at, left, byte)
    picture.copy(f.let(op("i32.add", at, i32(left))), picture.line())
    picture.fill(f.let(op("i32.add", at, i32(left + picture.width))), right, byte)
    e.close()
    picture.fill(f.let(op("i32.add", to, i32((rows - below) * line))), below * line, byte)
    e.close()
    return finish(e, name, picture.low.slots)


def max_pool(item, stored, name, lanes):
    """The Kernel of the largest values in windows of stored pictures of bytes; None for other items."""
    node = item.anchor
    x = node.srcs[0]
    how, kernel, stride, padding, dilation = node.arg
    if how != "max" or len(kernel) != 2 or set(dilation) != {1} or x.word not in _WORDS or not _are_known(node, x):
        return None
    if stride[1] > 2 or kernel[1] > _WRITTEN_OUT or node.shape[-1] < lanes:
        return None
    for i, (before, _) in enumerate(padding):  # each window meets the picture
        if not 0 <= before < kernel[i] or (node.shape[2 + i] - 1) * stride[i] - before >= x.shape[2 + i]:
            return None
    picture = _Picture(item, stored, name, lanes, x)
    if picture.value is None:
        return None
    return _MaxPool(picture, node, x.word).kernel(name)


def _are_known(node, x):
    return not [d for d in node.shape + x.shape if is_open(d)] and node.count and x.count


class _Picture:
    """A kernel that reads planes of bytes, line by line. value: what loads a byte; None if planes do not lie in memory
    so."""

    def __init__(self, item, stored, name, lanes, x):
        self.low = low = Lowering(item, stored)
        self.planes, (self.height, self.width) = size(x.shape[:-2]), x.shape[-2:]
        at = ix.unflatten(ix.counter("plane", self.planes), x.shape[:-2])
        at += [ix.counter("y", self.height), ix.counter("x", self.width)]
        value = low.value(x, at)
        self.whole = 4 * lanes  # bytes of a vector
        self.value = value if value.op == "load" and low.slots.types[value.attr[0]] in _WORDS else None
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


class _MaxPool:
    def __init__(self, picture, node, word):
        self.picture = picture
        self.node = node
        self.word = word
        _, self.kernel_shape, self.stride, padding, _ = node.arg
        self.before = (padding[0][0], padding[1][0])

    def kernel(self, name):
        picture, node = self.picture, self.node
        e, f = picture.e, picture.e.f
        rows, columns = node.shape[-2:]
        f.work = node.count * self.kernel_shape[0] // 4
        last = (columns - 1) * self.stride[1] + self.kernel_shape[1]  # bytes of a line with its border
        behind = max(0, last - self.before[1] - picture.width)
        f.scratch = self.before[1] + picture.width + behind + 2 * picture.whole
        line = e.addresses["scratch"]
        lowest = 0 if self.word == "u8" else 0x80
        picture.fill(line, self.before[1], lowest)
        begin = f.let(op("i32.add", line, i32(self.before[1])))
        e.loop("plane", picture.planes, split=True)
        e.loop("row", rows)
        self._largest_line(begin)
        picture.fill(f.let(op("i32.add", begin, i32(picture.width))), behind, lowest)
        e.loop("column", columns, e.lanes, clamp=columns - e.lanes if columns % e.lanes else None)
        self._largest_neighbors(line)
        e.close()
        e.close()
        e.close()
        return finish(e, name, picture.low.slots)

    def _largest_line(self, to):
        """Write the largest bytes of a window's lines. A line beside the picture is the nearest one, which the window
        has, too. Vectors also read, and write, a few bytes behind the lines."""
        picture = self.picture
        e, f = picture.e, picture.e.f
        lines = []
        for n in range(self.kernel_shape[0]):
            e.block()
            at = f.let(op("i32.mul", e.counters["row"][0], i32(self.stride[0])))
            if n > self.before[0]:
                at = f.let(op("i32.add", at, i32(n - self.before[0])))
            elif n < self.before[0]:
                less = i32(self.before[0] - n)
                at = f.let(select(op("i32.lt_u", at, less), i32(0), op("i32.sub", at, less)))
            e.bind("y", unsigned_min(at, i32(picture.height - 1)))
            lines.append(picture.line())
            e.close()
        name = "i8x16.max_" + ("u" if self.word == "u8" else "s")
        e.loop("byte", picture.width, picture.whole)
        byte = e.counters["byte"][0]
        found = [memory("v128.load", op("i32.add", at, byte)) for at in lines]
        largest = found[0]
        for other in found[1:]:
            largest = op(name, largest, other)
        f.do(memory("v128.store", op("i32.add", to, byte), largest))
        e.close()

    def _largest_neighbors(self, line):
        """Store a vector of results from the largest bytes of their lines."""
        picture, step = self.picture, self.stride[1]
        e, f = picture.e, picture.e.f
        column = e.counters["column"][0]
        at = f.let(op("i32.add", line, op("i32.mul", column, i32(step)) if step > 1 else column))
        largest = None
        for n in range(self.kernel_shape[1]):
            found = e.every_second(self.word, at, n) if step > 1 else e.four_at(self.word, at, n)
            largest = found if largest is None else op("i32x4.max_s", largest, found)
        e.define("reduced", f.let(largest), True)
        e.lane = "column"
        result, store = picture.results
        e.store_four(store, result, picture.low.slots.result.word)
        e.lane = None
