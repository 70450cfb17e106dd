"""The largest bytes of windows. A pooled line is the largest of its lines first, in scratch memory, where it has its
border, and then of neighbors."""

from ...assembler import i32, memory, op, select, unsigned_min
from ..nest import finish
from .planes import WORDS, WRITTEN_OUT, Picture, are_known


def max_pool(item, stored, name, lanes):
    """The Kernel of the largest values in windows of stored pictures of bytes; None for other items."""
    node = item.anchor
    x = node.srcs[0]
    how, kernel, stride, padding, dilation = node.arg
    if how != "max" or len(kernel) != 2 or set(dilation) != {1} or x.word not in WORDS or not are_known(node, x):
        return None
    if stride[1] > 2 or kernel[1] > WRITTEN_OUT or node.shape[-1] < lanes:
        return None
    for i, (before, _) in enumerate(padding):  # each window meets the picture
        if not 0 <= before < kernel[i] or (node.shape[2 + i] - 1) * stride[i] - before >= x.shape[2 + i]:
            return None
    picture = Picture(item, stored, name, lanes, x)
    if picture.value is None:
        return None
    return _MaxPool(picture, node, x.word).kernel(name)


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
