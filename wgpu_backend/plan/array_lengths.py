"""Arrays of known length, for SwiftShader: an index into one is checked in fewer instructions (docs/wgpu.md)."""

from ..kernels.loop import Kernel
from .paging import element_size

_BINDING = "@group(0) @binding("


def with_lengths(kernel, sizes, page_bytes):
    """`kernel` with the lengths of its arrays in its bindings; sizes: bytes of each tensor it binds, in order.

    Open arrays remain for tensors of more than page_bytes, which are bound in pages, and where a constant lies beyond
    the end (a tile that reaches over it, whose results are dropped): WGSL refuses that for arrays of known length.
    """
    lines = kernel.source.split("\n")
    for i in range(len(lines)):
        line = lines[i]
        if line.startswith(_BINDING):
            nbytes = sizes[int(line[len(_BINDING) : line.index(")", len(_BINDING))])]
            name = line[line.index("> ") + 2 : line.index(":")]
            end = line.rindex(">")
            length = nbytes // element_size(line[line.index("array<") + len("array<") : end])
            if nbytes <= page_bytes and _largest_constant(kernel.source, name) < length:
                lines[i] = "{}, {}{}".format(line[:end], length, line[end:])
    return Kernel(kernel.name, "\n".join(lines), kernel.inputs, kernel.groups)


def _largest_constant(text, name):
    """The largest number that stands as an index into the array; 0 without one."""
    largest = 0
    for part in text.split(name + "[")[1:]:
        index = part[: part.index("]")]
        if index[-1:] == "u" and index[:-1].isdigit():
            largest = max(largest, int(index[:-1]))
    return largest
