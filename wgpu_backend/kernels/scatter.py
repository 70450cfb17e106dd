"""Scatter in the order of the updates, without atomics: lines along the axis are independent.

Many lines: one invocation copies a line and applies its updates in turn. Few lines: one invocation per element looks
through the indices of its line.
"""

from emberlet.sizes.questions import known_equal, positive
from emberlet.sizes.size import surely_less, typical

from ..lower import index as ix
from ..lower.kernel_ir import RESULT, Frame, coordinates
from ..lower.lowering import Lowering
from ..lower.operations import lookup, undisguised
from ..render import wgsl
from ..render.arrays import assignment, element
from ..run import storage
from .loop import MAX_ITERATIONS, WORKGROUP, finish, flat, spread


def scatter(item, stored, name):
    """The Kernel of a "scatter" item; anchor's sources: x, indices, updates; arg (axis, op)."""
    node = item.anchor
    x, picks, _updates = node.srcs
    axis, _op = node.arg
    extent = x.shape[axis]
    steps = picks.shape[axis]
    lines = picks.count // positive(steps)
    # Lines outside the extent of the indices are only copied, which the per-element form does anyway.
    whole = known_equal(picks.shape[:axis] + picks.shape[axis + 1 :], x.shape[:axis] + x.shape[axis + 1 :])
    many = typical(lines) >= 256 or typical(steps * node.count) > (1 << 24)
    if whole and not known_equal(steps, 0) and many and extent + steps <= MAX_ITERATIONS:
        return _by_line(item, stored, name, extent, steps, lines)
    return _by_element(item, stored, name, steps)


def _combined(lowering, op, old, new, dtype):
    if op == "none":
        return new
    operation = {"add": "add", "mul": "mul", "max": "maximum", "min": "minimum"}[op]
    out = undisguised(lowering.build, operation, old, new) if old.type == "f32" else None
    if out is None:
        out = lowering.build.make(operation, old.type, (old, new))
    return out if op in ("max", "min") else lowering.round(out, dtype)


def _by_line(item, stored, name, extent, steps, lines):
    node = item.anchor
    x, picks, updates = node.srcs
    axis, op = node.arg
    lowering = Lowering(item, stored)
    build = lowering.build
    across = coordinates("g", x.shape[:axis] + x.shape[axis + 1 :])

    def along(position):
        at = list(across)
        at.insert(axis, position)
        return at

    copied, copy_to = lowering.value(x, along(ix.counter("r", extent))), along(ix.counter("r", extent))
    step = along(ix.counter("r", steps))
    pick = lookup(lowering, picks, step, extent)
    target = ix.flatten(along(pick), node.shape)
    new = lowering.value(updates, step)
    old = build.make("reduced", storage.register(node.dtype))
    result = _combined(lowering, op, old, new, node.dtype)
    copy = wgsl.Renderer(lowering.slots)
    copy.store(ix.flatten(copy_to, node.shape), copied)
    apply = wgsl.Renderer(lowering.slots, "(old != 0u)" if node.dtype.is_bool else "old")
    # Otherwise it would fall into another invocation's line.
    apply.open("if ({} < {}u) {{".format(apply.index(pick), extent))
    at = apply.index(target)
    apply.line("let at = {};".format(at))
    old = element(lowering.slots, RESULT, "at")
    apply.line("let old = {};".format("f32({})".format(old) if node.word == "f16" else old))
    apply.line(assignment(lowering.slots, "at", apply.element_of(result)))
    apply.close()
    values = {"extent": extent, "steps": steps, "fold": copy.text(), "body": apply.text(), "workgroup": WORKGROUP}
    groups = (lines + WORKGROUP - 1) // WORKGROUP
    values["flat"] = flat(groups, "lane", WORKGROUP)
    return finish(Frame(name, lowering.slots, lines), "scatter.wgsl", values, spread(groups))


def _by_element(item, stored, name, steps):
    node = item.anchor
    x, picks, updates = node.srcs
    axis, op = node.arg
    lowering = Lowering(item, stored)
    build = lowering.build
    at = coordinates("g", node.shape)
    step = list(at)
    step[axis] = ix.counter("r", positive(steps))
    conditions = [(at[i], picks.shape[i]) for i in range(len(at)) if i != axis]
    start = wgsl.Renderer(lowering.slots)
    start.line("var acc: {} = {};".format(storage.register(node.dtype), start.name(lowering.value(x, at))))
    body = wgsl.Renderer(lowering.slots, "acc", start)
    if not known_equal(steps, 0):
        acc = build.make("reduced", storage.register(node.dtype))
        pick = lookup(lowering, picks, step, x.shape[axis])
        hit = build.make("eq", "bool", (build.index(pick, "u32"), build.index(at[axis], "u32")))
        new = _combined(lowering, op, acc, lowering.value(updates, step), node.dtype)
        body.open("for (var r = 0u; r < {}u; r++) {{".format(steps))
        guards = ["{} < {}u".format(body.index(i), limit) for i, limit in conditions if not surely_less(i.hi, limit)]
        guards.append(body.name(hit))
        body.open("if ({}) {{".format(" && ".join(guards)))
        body.line("acc = {};".format(body.name(new)))
        body.close()
        body.close()
    body.store(ix.flatten(at, node.shape), build.make("reduced", storage.register(node.dtype)))
    groups = (node.count + WORKGROUP - 1) // WORKGROUP
    values = {"workgroup": WORKGROUP, "flat": flat(groups, "lane", WORKGROUP)}
    values["body"] = start.text() + "\n" + body.text()
    return finish(Frame(name, lowering.slots, node.count), "map.wgsl", values, spread(groups))
