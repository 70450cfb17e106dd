"""Adds borders to pictures of bytes."""

from emberlet.sizes.size import is_open

from ...assembler import i32, op
from ..nest import finish
from .planes import WORDS, WRITTEN_OUT, Picture, are_known


def border(item, stored, name, lanes):
    """The Kernel of a map that adds a border of a number to stored pictures of bytes; None for other items."""
    node = item.node
    if node.op != "pad" or item.region is not None or node.word not in WORDS or not are_known(node, node.srcs[0]):
        return None
    (x,), (pads, number) = node.srcs, node.arg
    if len(x.shape) < 3 or is_open(number) or [p for p in pads[:-2] if tuple(p) != (0, 0)]:
        return None
    (above, below), (left, right) = pads[-2:]
    if min(above, below, left, right) < 0 or left + right > WRITTEN_OUT or x.word != node.word:
        return None
    picture = Picture(item, stored, name, lanes, x)
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
