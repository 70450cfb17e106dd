"""The kernel that quantizes a tensor by its own range: one workgroup, for tensors that it passes over twice in less
time than two dispatches take (record/range_levels.py)."""

from ..lower import index as ix
from ..lower.kernel_ir import RESULT, Frame
from ..lower.lowering import Lowering
from ..render import wgsl
from ..render.arrays import assignment
from .loop import finish

WORKGROUP = 256


def range_levels(item, stored, name):
    """The Kernel of a "range_levels" item: source x; the words of its levels, less 128, then the bits of the scale and
    the zero point."""
    (x,) = item.anchor.srcs
    low = Lowering(item, stored)
    words = x.count // 4
    at = ix.mul(ix.counter("r", words), 4)
    four = [low.value(x, ix.unflatten(ix.add(at, ix.const(c)), x.shape)) for c in range(4)]
    four = low.vector(four) or four
    find, quantize = wgsl.Renderer(low.slots), wgsl.Renderer(low.slots)
    for value in four:
        each = find.name(value)
        find.line("low = minimum_f32(low, {});".format(each))
        find.line("high = maximum_f32(high, {});".format(each))
    levels = ["level_of({}, scale, point)".format(quantize.name(value)) for value in four]
    # Less 128, in 8 bits.
    word = "pack_four(vec4<u32>({})) ^ 0x80808080u".format(", ".join(levels))
    low.slots.uses(RESULT)
    quantize.line(assignment(low.slots, "r", word))
    numbers = ((0, "bitcast<u32>(scale)"), (1, "to_u32(point, 255.0)"))
    values = {
        "workgroup": WORKGROUP,
        "words": words,
        "fold": find.text(),
        "body": quantize.text(),
        "numbers": "\n".join([assignment(low.slots, "{}u".format(words + i), text) for i, text in numbers]),
    }
    return finish(Frame(name, low.slots, words), "range_levels.wgsl", values, (1, 1, 1))
