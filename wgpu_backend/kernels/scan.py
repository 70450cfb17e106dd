"""Cumulative sums, products, maxima and minima: one invocation per line, or one workgroup if lines are few."""

from emberlet.sizes.size import most, typical

from ..lower import index as ix
from ..lower.kernel_ir import Frame, coordinates
from ..lower.lowering import Lowering
from ..render import wgsl
from ..run import storage
from .loop import BLOCK, MAX_ITERATIONS, WORKGROUP, as_held, as_value, combine, finish, first, flat, held, spread

_GROUP = 256
# On a GPU a line gets a workgroup if there are fewer lines than the first number, each at least as long as the second;
# otherwise one invocation per line keeps as many busy. Not measured yet (`dev.py bench thresholds` on a machine with a
# GPU). On software devices one invocation per line is up to 25 times as fast (benches/results/thresholds.md). Lines
# longer than MAX_ITERATIONS need a workgroup everywhere.
_FEW_LINES = 512
_LONG_LINE = 128


def _steps(combined):
    """The unrolled doubling steps of a scan."""
    lines = []
    reach = 1
    while reach < _GROUP:
        lines += [
            "partial[lane] = acc;",
            "workgroupBarrier();",
            "if (lane >= {}u) {{".format(reach),
            "    let left = partial[lane - {}u];".format(reach),
            "    acc = {};".format(combined),
            "}",
            "workgroupBarrier();",
        ]
        reach *= 2
    return "\n".join(lines)


def wants_group(lines, length, software):
    """Whether a scan should use a workgroup per line rather than an invocation per line."""
    few = not software and typical(lines) < _FEW_LINES and typical(length) >= _LONG_LINE
    return few or length > MAX_ITERATIONS


def cumulative(item, stored, name, options):
    """The Kernel of a "cumulative" item; arg of its anchor: (op, axis)."""
    node = item.anchor
    op, axis = node.arg
    (x,) = node.srcs
    length = x.shape[axis]
    lines = node.count // length
    type = storage.register(x.dtype)
    lowering = Lowering(item, stored)
    across = coordinates("g", x.shape[:axis] + x.shape[axis + 1 :])
    at = list(across)
    at.insert(axis, ix.counter("r", length))
    body = lowering.value(x, at)
    total = lowering.round(lowering.build.make("reduced", type), node.dtype)
    result, store = lowering.place(at, total)
    grouped = wants_group(lines, length, options.software)
    read = wgsl.Renderer(lowering.slots)
    element = as_held(read.name(body), type)
    # scan.wgsl has reads and writes in one block, so they share names.
    write = wgsl.Renderer(lowering.slots, as_value("acc", type), None if grouped else read)
    write.store(store, result)
    values = {
        "type": held(type),
        "identity": first(op, type),
        "length": length,
        "fold": read.text(),
        "element": element,
        "body": write.text(),
        "combine": combine(op, type, "acc", element),
        "combine_carry": combine(op, type, "carry", "acc"),
        "workgroup": _GROUP if grouped else WORKGROUP,
    }
    frame = Frame(name, lowering.slots, lines)
    if grouped:
        values["flat"] = flat(lines, "lane", 0)
        values["steps"] = _steps(combine(op, type, "left", "acc"))
        return finish(frame, "scan_group.wgsl", values, spread(lines))
    groups = (lines + WORKGROUP - 1) // WORKGROUP
    values["flat"] = flat(groups, "lane", WORKGROUP)
    if op == "sum" and type == "f32" and most(length) > 2 * BLOCK:
        values["block"] = BLOCK  # for precision (loop.open_blocks)
        return finish(frame, "scan_blocks.wgsl", values, spread(groups))
    return finish(frame, "scan.wgsl", values, spread(groups))
