"""Kernels of your own: how `WgpuBackend.launch` prepares the given WGSL."""

from emberlet.errors import BackendError
from emberlet.shapes import size

from ..lower.kernel_ir import pages
from ..record.node import unpacked
from ..render import wgsl
from ..render.arrays import declaration, labels
from ..render.template import read, render
from .launch_text import arranged, covers
from .loop import Kernel, flat, spread


def prepared(name, source, inputs, word, shape, groups, values):
    """(source, groups, whole) of a kernel to be launched: the filled-in template, the workgroups as (x, y, z), and
    whether it is certain to write every element of the result; others are zeroed first."""
    groups = tuple(groups)
    given = dict(values or {})
    number = None
    if len(groups) == 2:
        elements, width = groups
        if width < 1:
            raise BackendError("kernel {}: a workgroup has at least one invocation, not {}".format(name, width))
        number = (elements + width - 1) // width
        given["flat"] = flat(number, "lane", width)
        given["workgroup"] = width
        groups = spread(number)
    elif len(groups) != 3:
        raise BackendError(
            "kernel {}: groups are (x, y, z) workgroups or (elements, workgroup size), not {}".format(name, groups)
        )
    if "\n" not in source:
        source = read(source)
    result = None
    if "{{" in source:
        given["name"] = name
        given["count"] = size(shape)
        if "bindings" not in given:
            result = "out" if _names_bindings(source) else None
            lines = []
            for slot in range(len(inputs)):
                lines.append(declaration(slot, "read", "in{}".format(slot), unpacked(inputs[slot].data).word))
            lines.append(declaration(len(inputs), "read_write", "out", word))
            given["bindings"] = "\n".join(lines)
        source = render(source, given)
    number = given["flat"] if number is not None and elements >= size(shape) else None
    return _finished(name, source, len(inputs), result, number, size(shape), groups)


_known = {}  # what `_finished` was given -> what it returned: a kernel is launched many times
KNOWN = 256


def _finished(*key):
    found = _known.get(key)
    if found is None:
        name, source, inputs, result, number, count, groups = key
        source, result = arranged(name, source, inputs, result)
        whole = number is not None and covers(source, result, number, count)
        if len(_known) >= KNOWN:
            _known.clear()
        found = _known[key] = (wgsl.finish(source, half="f16>" in source), groups, whole)
    return found


def _names_bindings(source):
    """Whether a template takes the bindings that emberlet declares."""
    return "bindings" in [part.split("}}")[0].strip() for part in source.split("{{")[1:]]


def zeroing(kernel, nbytes, page_bytes):
    """The Kernel that zeroes the result of another one."""
    count = pages(nbytes, page_bytes)
    names = labels("out", count)
    bindings = [declaration(i, "read_write", names[i], "u32") for i in range(count)]
    body = ["if (i < arrayLength(&{0})) {{ {0}[i] = 0u; }}".format(n) for n in names]
    values = {"bindings": "\n".join(bindings), "body": "\n".join(body)}
    words = (min(nbytes, page_bytes) + 3) // 4
    return Kernel("zero_" + kernel.name, render(read("zero.wgsl"), values), [], spread((words + 63) // 64))


def kernel(item, options):
    """The Kernel of a "kernel" item."""
    name, source, groups, _ = item.anchor.arg
    nodes = list(item.anchor.srcs)
    counts = [pages(node.nbytes, options.page_bytes) for node in nodes + [item.node]]
    if max(counts) > 1:
        from .launch_pages import over_pages

        source = over_pages(name, source, counts, options.page_bytes)
    return Kernel(name, source, nodes, groups)
