"""Arrays of known length, for SwiftShader: an index into one is checked in fewer instructions (docs/wgpu.md)."""

from .loop_kernel import Kernel
from .paging import element_size


def with_lengths(kernel, sizes, page_bytes):
    """`kernel` with the lengths of its arrays in its bindings; sizes: bytes of each tensor it binds, in order.

    Tensors of more than page_bytes, which are bound in pages, keep open arrays.
    """
    lines = kernel.source.split("\n")
    for i in range(len(lines)):
        line = lines[i]
        if line.startswith("@group(0) @binding("):
            number = int(line[len("@group(0) @binding(") : line.index(")", len("@group(0) @"))])
            at = line.rindex(">")
            element = line[line.index("array<") + len("array<") : at]
            if 0 < sizes[number] <= page_bytes:
                lines[i] = "{}, {}{}".format(line[:at], sizes[number] // element_size(element), line[at:])
    return Kernel(kernel.name, "\n".join(lines), kernel.inputs, kernel.groups)
