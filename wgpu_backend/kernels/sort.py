"""Stable sorting along the last axis, as a permutation: runs are sorted in workgroup memory, then merged pairwise.

Elements become unsigned keys of the same order (shaders/math.wgsl, sort_key_*); ties are broken by position, so every
step is stable. Merging is by rank: an element's position is that in its own run plus the number of elements of the
sibling run before it, found by bisection.
"""

from ..lower import index as ix
from ..lower.kernel_ir import Frame, coordinates
from ..lower.lowering import Lowering
from ..lower.operations import sort_key
from ..render import wgsl
from ..render.arrays import assignment
from .loop import WORKGROUP, finish, flat, spread

RUN = 1024  # elements that a workgroup sorts, in 8 KiB of workgroup memory


def run_length(length):
    """The length of the runs that sort_runs leaves for lines of `length` elements."""
    run = 2
    while run < length and run < RUN:
        run *= 2
    return run


def sort_runs(item, stored, name):
    """The Kernel of a "sort_runs" item: source x, arg descending; positions (i32), sorted within each run."""
    node = item.anchor
    (x,) = node.srcs
    length = x.shape[-1]
    run = run_length(length)
    lines = node.count // length
    runs = (length + run - 1) // run
    lowering = Lowering(item, stored)
    at = coordinates("line", x.shape[:-1]) + [ix.counter("r", length)]
    read = wgsl.Renderer(lowering.slots)
    key = read.name(sort_key(lowering, x, at, node.arg))
    values = {
        "fold": read.text(),
        "key": key,
        "length": length,
        "run": run,
        "runs": runs,
        "workgroup": min(256, run // 2),
        "flat": flat(lines * runs, "lane", 0),
        "body": assignment(lowering.slots, "line * {}u + r".format(length), "i32(at)"),
    }
    frame = Frame(name, lowering.slots, lines * runs)
    return finish(frame, "sort_runs.wgsl", values, spread(lines * runs))


def merge_runs(item, stored, name):
    """The Kernel of a "merge_runs" item: sources x and positions; arg (descending, run length)."""
    node = item.anchor
    x, positions = node.srcs
    descending, run = node.arg
    length = x.shape[-1]
    lowering = Lowering(item, stored)
    build = lowering.build
    line = coordinates("line", x.shape[:-1])

    def position_and_key(counter):
        place = lowering.value(positions, list(line) + [ix.counter(counter, length)])
        return place, sort_key(lowering, x, list(line) + [ix.of_value(place, 0, length - 1)], descending)

    place, key = position_and_key("r")
    mine = wgsl.Renderer(lowering.slots)
    mine.line("let my_at = {};".format(mine.name(place)))
    mine.line("let my_key = {};".format(mine.name(key)))
    place, key = position_and_key("middle")
    other = wgsl.Renderer(lowering.slots)
    other.line("let before = {};".format(other.name(build.make("cast", "u32", (key,)))))
    groups = (node.count + WORKGROUP - 1) // WORKGROUP
    values = {
        "fold": mine.text(),
        "body": other.text(),
        "store": assignment(lowering.slots, "line * {}u + target_at".format(length), "i32(my_at)"),
        "length": length,
        "run": run,
        "workgroup": WORKGROUP,
        "flat": flat(groups, "lane", WORKGROUP),
    }
    return finish(Frame(name, lowering.slots, node.count), "merge_runs.wgsl", values, spread(groups))
