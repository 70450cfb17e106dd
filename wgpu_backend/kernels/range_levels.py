"""The kernel that quantizes a tensor by its own range: one workgroup, for tensors that it passes over twice in less
time than two dispatches take (record/range_levels.py)."""

from ..lower import index as ix
from ..lower.kernel_ir import RESULT, Frame
from ..lower.lowering import Lowering
from ..render import wgsl
from ..render.arrays import assignment
from .loop import finish

WORKGROUP = 256
AT_ONCE = 4  # words of which a lane loads the elements before it uses any


def range_levels(item, stored, name):
    """The Kernel of a "range_levels" item: source x; the words of its levels, less 128, then the bits of the scale and
    the zero point."""
    (x,) = item.anchor.srcs
    low = Lowering(item, stored)
    words = x.count // 4
    first = ix.counter("r", words)
    places = [ix.add(first, ix.const(WORKGROUP * n)).bounded(0, words - 1) for n in range(AT_ONCE)]
    fours = [_elements(low, x, place) for place in places]
    find, quantize = wgsl.Renderer(low.slots), wgsl.Renderer(low.slots)
    found = [[find.name(value) for value in four] for four in fours]
    for n in range(AT_ONCE):
        for c in range(4):
            # Beyond the end there is anything: the range includes 0.
            each = "x{}_{}".format(n, c)
            left = max(0, words - WORKGROUP * n)
            find.line("let {} = select(0.0, {}, r < {}u);".format(each, found[n][c], left))
            find.line("low = minimum_f32(low, {});".format(each))
            find.line("high = maximum_f32(high, {});".format(each))
    given = [[quantize.name(value) for value in four] for four in fours]
    low.slots.uses(RESULT)
    for n in range(AT_ONCE):
        levels = ["level_of({}, scale, point)".format(each) for each in given[n]]
        # Less 128, in 8 bits.
        word = "pack_four(vec4<u32>({})) ^ 0x80808080u".format(", ".join(levels))
        quantize.open("if (r < {}u) {{".format(max(0, words - WORKGROUP * n)))
        quantize.line(assignment(low.slots, "r + {}u".format(WORKGROUP * n), word))
        quantize.close()
    numbers = ((0, "bitcast<u32>(scale)"), (1, "to_u32(point, 255.0)"))
    values = {
        "workgroup": WORKGROUP,
        "step": WORKGROUP * AT_ONCE,
        "words": words,
        "fold": find.text(),
        "body": quantize.text(),
        "numbers": "\n".join([assignment(low.slots, "{}u".format(words + i), text) for i, text in numbers]),
    }
    return finish(Frame(name, low.slots, words), "range_levels.wgsl", values, (1, 1, 1))


def _elements(low, x, word):
    """The four Values of a word's elements."""
    at = ix.mul(word, 4)
    four = [low.value(x, ix.unflatten(ix.add(at, ix.const(c)), x.shape)) for c in range(4)]
    return low.vector(four) or four
