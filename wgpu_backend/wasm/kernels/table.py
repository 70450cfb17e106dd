"""Chooses the Wasm kernel for an item of the fused graph."""

from emberlet.errors import UnsupportedError

from ...kernels.table import describe
from ...lower.reductions import SPECIFICATIONS
from ...record.node import no_kernel
from . import contraction, depthwise, direct, integers, lines, nest, rows, single_row


class Options:
    """The options that kernels are built with: `kernels.table.Options` for one thread of WebAssembly. relaxed: whether
    to use relaxed SIMD."""

    device_class = "wasm"
    software = True
    max_bindings = 14
    page_bytes = 1 << 32
    computed_again = 0
    packed_again = 5  # casts and a zero point
    subgroups = False
    alike = None  # kernels are built for each item

    def __init__(self, relaxed=True):
        self.relaxed = relaxed

    def build(self, item, stored):
        """The Kernel of an item."""
        anchor = item.anchor
        name = describe(item)
        if anchor is not None:
            if anchor.op == "kernel":
                raise UnsupportedError("kernel {} is WGSL, which the wasm backend does not run".format(anchor.arg[0]))
            special = _SPECIAL.get(anchor.op)
            if special is not None:
                return special(item, stored, name)
            if anchor.op not in SPECIFICATIONS:
                raise no_kernel(anchor.op, "wasm")
            if anchor.op in ("matmul", "conv"):
                kernel = direct.direct(item, stored, name, self) if anchor.op == "conv" else None
                if kernel is None:
                    kernel = contraction.contraction(item, stored, name, self)
                if kernel is None and anchor.op == "matmul":
                    kernel = single_row.single_row(item, stored, name, self)
                if kernel is None:
                    kernel = integers.integer_contraction(item, stored, name)
                if kernel is None and anchor.op == "conv":
                    kernel = depthwise.depthwise(item, stored, name, self)
                if kernel is not None:
                    return kernel
        return nest.loop(item, stored, name)


_SPECIAL = {
    "rows": rows.rows,
    "cumulative": lines.cumulative,
    "scatter": lines.scatter,
    "sort_runs": lines.sort,
}
