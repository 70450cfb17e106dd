"""WGSL for a Loop: one invocation per element, or one workgroup per element if a long reduction has few results."""

from emberlet.sizes.questions import positive, smaller
from emberlet.sizes.size import is_open, most, typical

from ..lower.reductions import identity
from ..render import wgsl
from ..render.arrays import Arrays, with_sizes
from ..render.template import read, render

WORKGROUP = 64
# llvmpipe silently ends an invocation's loops after 65535 iterations in total.
MAX_ITERATIONS = 60000
LARGE_WORKGROUP = 256  # for many elements, where the overhead of a workgroup counts
LARGE = 1 << 16
MAX_GROUPS = 65535
BLOCK = 256  # terms of a long sum that are added sequentially
# A reduction gets a workgroup per result if it is at least as long as the first number and has at most as many results
# as the second. On a software device a workgroup is one thread, and its barriers cost more than it saves: as measured
# on lavapipe (benches/results/thresholds.md), it is faster only for a single long result (SwiftShader: docs/wgpu.md,
# "Kernels for SwiftShader"). The longest sums still get one, for precision. On a GPU it pays where one invocation per
# result would leave most of the device idle; those numbers are not measured yet (`dev.py bench thresholds` on a machine
# with a GPU).
GROUP_IN_SOFTWARE = ((1024, 1), (8192, 32))
GROUP_ON_GPU = ((128, 2048), (1024, 16384))


class Kernel:
    """A kernel as text and how to launch it: name, source, its bindings in order (the input nodes, a second output if
    there is one, then the output), and the workgroup counts (x, y, z)."""

    def __init__(self, name, source, inputs, groups):
        self.name = name
        self.source = source
        self.inputs = inputs
        self.groups = groups


def spread(groups):
    """`groups` workgroups as (x, y, z) within the limit of one dimension; the shader recovers the flat number."""
    if most(groups) <= MAX_GROUPS:
        return (positive(groups), 1, 1)
    if is_open(groups):
        # Fill the first dimension; workgroups beyond the count do nothing.
        return (smaller(groups, MAX_GROUPS), (groups + MAX_GROUPS - 1) // MAX_GROUPS, 1)
    x = MAX_GROUPS
    y = (groups + x - 1) // x
    if y <= MAX_GROUPS:
        return (x, y, 1)
    return (x, MAX_GROUPS, (y + MAX_GROUPS - 1) // MAX_GROUPS)


def flat(groups, lane, width):
    """WGSL text of the flat invocation (or, with width 0, workgroup) number for `spread(groups)`."""
    x, y, z = spread(groups)
    if is_open(y):
        x = MAX_GROUPS  # if there is a second row
    number = "group.x"
    if is_open(y) or y > 1:
        number = "({} + group.y * {}u)".format(number, x)
    if z > 1:
        number = "({} + group.z * {}u)".format(number, x * y)
    return "{} * {}u + {}".format(number, width, lane) if width else number


def wants_group(count, extent, software):
    """Whether a reduction should use a workgroup per result rather than an invocation per result."""
    if extent > MAX_ITERATIONS:
        return True
    for length, results in GROUP_IN_SOFTWARE if software else GROUP_ON_GPU:
        if typical(extent) >= length and typical(count) <= results:
            return True
    return False


def held(type):
    """The type of an accumulator of `type`: bools are held as 0 or 1, since NVIDIA's driver loses bools in workgroup
    memory."""
    return "u32" if type == "bool" else type


def as_held(text, type):
    """WGSL text that converts a value of `type` to the accumulator's type."""
    return "select(0u, 1u, {})".format(text) if type == "bool" else text


def as_value(text, type):
    """WGSL text that converts an accumulator to a value of `type`."""
    return "({} != 0u)".format(text) if type == "bool" else text


def first(op, type):
    """WGSL text of the accumulator's initial value under `op`."""
    value = identity(op, type)
    return wgsl.literal(int(value), "u32") if type == "bool" else wgsl.literal(value, type)


def combine(op, type, a, b):
    """WGSL text that folds b into a, both of the accumulator's type."""
    if op == "sum":
        return "{} + {}".format(a, b)
    if op == "prod":
        return "{} * {}".format(a, b)
    if op == "any" or (type == "bool" and op == "max"):
        return "{} | {}".format(a, b)
    if op == "all" or (type == "bool" and op == "min"):
        return "{} & {}".format(a, b)
    if type == "f32":
        # NaN wins: once a is NaN no comparison replaces it.
        sign = ">" if op == "max" else "<"
        return "select({0}, {1}, {1} {2} {0} || isnan_f32({1}))".format(a, b, sign)
    return "{}({}, {})".format(op, a, b)


def better(op, type, new, old):
    """WGSL text of whether `new` replaces the extreme `old` (argmax, argmin)."""
    sign = ">" if op == "argmax" else "<"
    text = "{} {} {}".format(new, sign, old)
    if type == "f32":
        text = "{} || (isnan_f32({}) && !isnan_f32({}))".format(text, new, old)
    return text


def render_loop(loop, range_of=None):
    """A Kernel for the Loop; its workgroups span the results, or each is one result (counter "r" of a flat
    reduction). range_of: a function from the lanes of such a workgroup to the text of the function with which it finds
    the range of an operand."""
    red = loop.reduction
    values = {}
    if red is not None and red.counters and red.counters[0][0] == "r":
        return _group_kernel(loop, red, values, range_of)
    renderer = wgsl.Renderer(loop.slots, "acc" if red is None else as_value("acc", red.type))
    if red is not None:
        _serial(renderer, red)
        if red.op[:3] == "arg":
            renderer.reduced = "i32(best)"
    if loop.vector_out:
        renderer.store_four(loop.cells)
    else:
        for result, store in loop.cells:
            renderer.store(store, result)
    width = WORKGROUP if typical(loop.count) < LARGE else LARGE_WORKGROUP
    groups = (loop.count + width - 1) // width
    values["workgroup"] = width
    values["flat"] = flat(groups, "lane", width)
    values["body"] = renderer.text()
    return finish(loop, "map.wgsl", values, spread(groups))


def finish(frame, template, values, groups):
    """The Kernel of a rendered template: its name, bindings and the library functions it calls filled in."""
    values["name"] = frame.name
    values["count"] = frame.count
    arrays = Arrays(frame.slots, frame.vector_out)
    values["bindings"] = arrays.declarations()
    source = wgsl.finish(render(read(template), values), arrays.accessors(), arrays.half())
    if frame.slots.limits.sizes is not None:
        source = with_sizes(source, frame.slots.limits.sizes)
    slots = frame.slots.bound() + frame.slots.written()[:-1]
    return Kernel(frame.name, source, [frame.slots.node(slot) for slot in slots], groups)


def _serial(renderer, red):
    renderer.line("var acc: {} = {};".format(held(red.type), first(red.op, red.type)))
    if red.op[:3] == "arg":
        renderer.line("var best = 0u;")
    if red.op == "sum" and red.type == "f32" and most(red.extent()) > 2 * BLOCK:
        _serial_sum(renderer, red)
        return
    for name, extent in red.counters:
        renderer.open("for (var {0} = 0u; {0} < {1}u; {0}++) {{".format(name, extent))
    _fold(renderer, red)
    for _ in red.counters:
        renderer.close()


def _serial_sum(renderer, red):
    """A long sum, by blocks of the innermost loops."""
    inner = 1
    cut = len(red.counters) - 1
    while cut and most(inner * red.counters[cut][1]) <= BLOCK:
        inner *= red.counters[cut][1]
        cut -= 1
    for name, extent in red.counters[:cut]:
        renderer.open("for (var {0} = 0u; {0} < {1}u; {0}++) {{".format(name, extent))
    name, extent = red.counters[cut]
    open_blocks(renderer, name, "0u", 1, extent, BLOCK // inner)
    for name, extent in red.counters[cut + 1 :]:
        renderer.open("for (var {0} = 0u; {0} < {1}u; {0}++) {{".format(name, extent))
    renderer.line("part = part + {};".format(renderer.name(red.body)))
    for _ in red.counters[cut:]:
        renderer.close()
    renderer.line("acc = acc + part;")
    for _ in red.counters[: cut + 1]:
        renderer.close()


def open_blocks(renderer, name, first, step, extent, size=BLOCK):
    """Open two loops over `name`, from `first` by `step`: over blocks, and over the `size` steps of a block, which sum
    into `part`.

    Rounding errors grow with the number of sequential additions (Higham 1993, The accuracy of floating point
    summation). Summing by blocks leaves the steps of one block plus the number of blocks, at no cost.
    """
    span = size * step
    renderer.open("for (var block = {}; block < {}u; block += {}u) {{".format(first, extent, span))
    renderer.line("var part = 0.0;")
    end = "min(block + {}u, {}u)".format(span, extent)
    renderer.open("for (var {0} = block; {0} < {1}; {0} += {2}u) {{".format(name, end, step))


def _group_fold(renderer, red, width):
    """The part that one lane of a workgroup of `width` folds."""
    extent = red.extent()
    if red.op == "sum" and red.type == "f32" and most(extent) > 2 * BLOCK * width:
        open_blocks(renderer, "r", "lane", width, extent)
        renderer.line("part = part + {};".format(renderer.name(red.body)))
        renderer.close()
        renderer.line("acc = acc + part;")
    else:
        renderer.open("for (var r = lane; r < {}u; r += {}u) {{".format(extent, width))
        _fold(renderer, red)
    renderer.close()


def _fold(renderer, red):
    text = renderer.name(red.body)
    if red.op[:3] == "arg":
        renderer.open("if ({}) {{".format(better(red.op, red.type, text, "acc")))
        renderer.line("acc = {};".format(text))
        renderer.line("best = {};".format(renderer.index(red.position)))
        renderer.close()
    else:
        renderer.line("acc = {};".format(combine(red.op, red.type, "acc", as_held(text, red.type))))


def _group_kernel(loop, red, values, range_of):
    extent = red.extent()
    width = 64
    while width < 256 and width * 4 <= typical(extent):
        width *= 2
    renderer = wgsl.Renderer(loop.slots)
    _group_fold(renderer, red, width)
    after = wgsl.Renderer(loop.slots, as_value("acc", red.type))
    arg = red.op[:3] == "arg"
    if arg:
        after.reduced = "i32(best)"
        template = "reduce_arg.wgsl"
        other = "{0} || ({1} == {2} && other_at < best)".format(
            better(red.op, red.type, "other", "acc"), "other", "acc"
        )
        if red.type == "f32":
            other += " || (isnan_f32(other) && isnan_f32(acc) && other_at < best)"
        values["replaces"] = other
    else:
        template = "reduce_group.wgsl"
        values["combine"] = combine(red.op, red.type, "acc", "other")
    after.store(loop.cells[0][1], loop.cells[0][0])
    values["start"] = "let range = range_of(lane);\n" if range_of else ""
    values["range"] = "\n" + range_of(width) if range_of else ""
    values["workgroup"] = width
    values["flat"] = flat(loop.count, "lane", 0)
    values["extent"] = extent
    values["type"] = held(red.type)
    values["identity"] = first(red.op, red.type)
    values["fold"] = renderer.text()
    values["body"] = after.text()
    return finish(loop, template, values, spread(loop.count))
