"""Quantizing a tensor by its own range: a kernel of one workgroup, for tensors that it passes over twice in less time
than two dispatches take (record/range_levels.py), and what products do that find the range themselves
(fuse/own_ranges.py)."""

from ..lower import index as ix
from ..lower.kernel_ir import RESULT, Frame
from ..lower.lowering import Lowering
from ..lower.operations import four_of_word
from ..lower.tiles import Tile
from ..render import wgsl
from ..render.arrays import assignment
from ..render.template import read, render
from .loop import finish

WORKGROUP = 256
FEW = 16  # lanes on a software device, where a workgroup is one thread and barriers cost most
SUMS = 14 << 10  # bytes of workgroup memory for the sums of a product that finds a range
AT_ONCE = 4  # words of which a lane loads the elements before it uses any


def range_levels(item, stored, name, software):
    """The Kernel of a "range_levels" item: source x; the words of its levels, less 128, or with "floats" the
    floats of levels less the zero point, then the bits of the scale and the zero point."""
    (x,) = item.anchor.srcs
    low = Lowering(item, stored)
    words, width = x.count // 4, FEW if software else WORKGROUP
    quantize = wgsl.Renderer(low.slots)
    given = [[quantize.name(value) for value in four] for four in _fours(low, x, width)]
    tail = x.count if item.anchor.arg == "floats" else words
    low.slots.uses(RESULT)
    for n in range(len(given)):
        quantize.open("if (r < {}u) {{".format(max(0, words - width * n)))
        place = "r + {}u".format(width * n)
        if tail == words:
            quantize.line(assignment(low.slots, place, "word_of_levels({}, range)".format(", ".join(given[n]))))
        for c in range(4 if tail > words else 0):
            less = "f32(level_of({}, range.x, range.y)) - range.y".format(given[n][c])
            quantize.line(assignment(low.slots, "({}) * 4u + {}u".format(place, c), "bitcast<u32>({})".format(less)))
        quantize.close()
    numbers = ((0, "bitcast<u32>(range.x)"), (1, "to_u32(range.y, 255.0)"))
    values = {
        "workgroup": width,
        "step": width * len(given),
        "words": words,
        "range": range_of(low, x, width),
        "body": quantize.text(),
        "numbers": "\n".join([assignment(low.slots, "{}u".format(tail + i), text) for i, text in numbers]),
    }
    return finish(Frame(name, low.slots, words), "range_levels.wgsl", values, (1, 1, 1))


def for_range(tile):
    """A Tile for a product that finds the range of its operand: with many lanes, each of which then reads less, but on
    a software device, where a workgroup is one thread."""
    if tile.workgroup <= FEW:
        return tile
    lanes = WORKGROUP
    while tile.split > 1 and lanes > tile.workgroup and tile.rows * tile.columns * lanes * 2 > SUMS:
        lanes //= 2
    return Tile(tile.rows, tile.columns, tile.unroll, lanes, 0, tile.split)


def range_of(low, x, workgroup, vectors=True):
    """The text of a function that finds the range of x, for kernels with `workgroup` lanes. vectors: whether it may
    read vectors, which everything else that reads x then has to."""
    words = x.count // 4
    find = wgsl.Renderer(low.slots)
    found = [[find.name(value) for value in four] for four in _fours(low, x, workgroup, vectors)]
    for n in range(len(found)):
        for c in range(4):
            # Beyond the end there is anything: the range includes 0.
            each = "x{}_{}".format(n, c)
            left = max(0, words - workgroup * n)
            find.line("let {} = select(0.0, {}, r < {}u);".format(each, found[n][c], left))
            find.line("low = minimum_f32(low, {});".format(each))
            find.line("high = maximum_f32(high, {});".format(each))
    values = {"workgroup": workgroup, "step": workgroup * len(found), "words": words, "fold": find.text()}
    return render(read("range_of.wgsl"), values)


def _fours(low, x, workgroup, vectors=True):
    """The four Values of each of the words whose elements a lane loads at once."""
    first, words = ix.counter("r", x.count // 4), x.count // 4
    at_once = min(AT_ONCE, -(-words // workgroup))
    places = [ix.add(first, ix.const(workgroup * n)).bounded(0, words - 1) for n in range(at_once)]
    return [four_of_word(low, x, place, vectors) for place in places]
