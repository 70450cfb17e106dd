"""Kernels of your own: how `WgpuBackend.launch` prepares the given WGSL."""

from emberlet.errors import BackendError
from emberlet.shapes import size

from ..lower.kernel_ir import pages
from ..record.node import unpacked
from ..render import wgsl
from ..render.arrays import declaration
from ..render.template import read, render
from .loop import Kernel, flat, spread


def prepared(name, source, inputs, word, shape, groups, values):
    """(source, groups) of a kernel to be launched: the filled-in template, and the workgroups as (x, y, z)."""
    groups = tuple(groups)
    given = dict(values or {})
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
    if "{{" in source:
        given["name"] = name
        given["count"] = size(shape)
        lines = []
        for slot in range(len(inputs)):
            lines.append(declaration(slot, "read", "in{}".format(slot), unpacked(inputs[slot].data).word))
        lines.append(declaration(len(inputs), "read_write", "out", word))
        given["bindings"] = "\n".join(lines)
        source = render(source, given)
    for line in source.split("\n"):
        if "var<storage" in line and "@binding(" in line:
            declared = line[line.index(">") + 1 : line.rindex(":")].strip()
            if _occurrences(source, declared) < 2:
                raise BackendError(
                    "kernel {} declares {} but does not use it, so WebGPU has no place to bind it".format(
                        name, declared
                    )
                )
    return wgsl.finish(source, half="f16>" in source), groups


def _occurrences(source, name):
    count = 0
    at = source.find(name)
    while at >= 0:
        before = source[at - 1 : at] if at else " "
        after = source[at + len(name) : at + len(name) + 1] or " "
        if not _identifier(before) and not _identifier(after):
            count += 1
        at = source.find(name, at + 1)
    return count


def _identifier(character):
    return character.isalpha() or character.isdigit() or character == "_"


def kernel(item, options):
    """The Kernel of a "kernel" item."""
    name, source, groups = item.anchor.arg
    nodes = list(item.anchor.srcs)
    counts = [pages(node.nbytes, options.page_bytes) for node in nodes + [item.node]]
    if max(counts) > 1:
        from .launch_pages import over_pages

        source = over_pages(name, source, counts, options.page_bytes)
    return Kernel(name, source, nodes, groups)
