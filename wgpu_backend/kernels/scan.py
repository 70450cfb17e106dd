"""Cumulative sums, products, maxima and minima: one invocation a line, or one workgroup where lines are few."""

from ..lower import index as ix
from ..lower.kernel_ir import coordinates
from ..lower.lowering import Lowering
from ..lower.reductions import identity
from ..render import wgsl
from ..run import storage
from .loop import MAX_ITERATIONS, WORKGROUP, combine, finish, flat, spread

_GROUP = 256


def _steps(combined):
    """The doubling steps of a scan, written out."""
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


class _Shape:
    """What `finish` reads of a Loop."""

    def __init__(self, name, lowering, word, count):
        self.name = name
        self.word = word
        self.count = count
        self.inputs = lowering.inputs
        self.types = lowering.types
        self.vector_out = False


def cumulative(item, stored, name):
    """The Kernel of a "cumulative" item; arg of its anchor: (op, axis)."""
    node = item.anchor
    op, axis = node.arg
    (x,) = node.srcs
    length = x.shape[axis]
    lines = node.count // length
    type = storage.register(x.dtype)
    lowering = Lowering(stored)
    across = coordinates("g", x.shape[:axis] + x.shape[axis + 1 :])
    at = list(across)
    at.insert(axis, ix.counter("r", length))
    body = lowering.value(x, at)
    total = lowering.round(lowering.build.make("reduced", type), node.dtype)
    result, store = lowering.place(item, at, total)
    grouped = (lines < 512 and length >= 128) or length > MAX_ITERATIONS
    read = wgsl.Renderer(lowering.types)
    element = read.name(body)
    # In scan.wgsl what is read and what is written stand in one block, and share their names.
    write = wgsl.Renderer(lowering.types, "acc", None if grouped else read)
    write.store("out", store, result, item.node.word)
    values = {
        "type": type,
        "identity": wgsl.literal(identity(op, type), type),
        "length": length,
        "fold": read.text(),
        "element": element,
        "body": write.text(),
        "combine": combine(op, type, "acc", element),
        "combine_carry": combine(op, type, "carry", "acc"),
        "workgroup": _GROUP if grouped else WORKGROUP,
    }
    shape = _Shape(name, lowering, item.node.word, lines)
    if grouped:
        values["flat"] = flat(lines, "lane", 0)
        values["steps"] = _steps(combine(op, type, "left", "acc"))
        return finish(shape, "scan_group.wgsl", values, spread(lines))
    groups = (lines + WORKGROUP - 1) // WORKGROUP
    values["flat"] = flat(groups, "lane", WORKGROUP)
    return finish(shape, "scan.wgsl", values, spread(groups))
