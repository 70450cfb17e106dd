"""Chooses the Wasm kernel for an item of the fused graph."""

from emberlet.errors import UnsupportedError, refuse

from ...kernels.table import describe
from ...lower.reductions import SPECIFICATIONS
from . import contraction, depthwise, direct, integers, lines, nest, rows, single_row
from .pictures import direct_integers
from .pictures.border import border
from .pictures.max_pool import max_pool


class Options:
    """The options that kernels are built with: `kernels.table.Options` for one thread of WebAssembly. relaxed: whether
    to use relaxed SIMD; lanes: numbers in a vector; rows: the most of a tile of products; small: kernels whose tensors
    have at most so many elements get vectors of four, which are compiled sooner; bytewise: whether vectors of more than
    four multiply bytes and sum four neighbors in one instruction (byte_products.py)."""

    device_class = "wasm"
    software = True
    max_bindings = 14
    page_bytes = 1 << 32
    computed_again = 0
    little = 0
    packed_again = 5  # casts and a zero point
    joins_lookups = False
    numbers_again = 64  # kernels compute them before their loops, in less time than another one takes to begin
    packs = None  # products read bytes as they are
    stores_bytes = True  # one by one
    ranges = None  # nor is there a kernel that quantizes by a range
    joins = None  # a kernel has one result
    subgroups = False
    takes_pad = staticmethod(depthwise.takes_pad)  # convolutions that add the border of their pictures (fuse/fusion.py)

    def __init__(self, relaxed=True, lanes=4, rows=6, backend="wasm", small=0, bytewise=False):
        self.relaxed = relaxed
        self.lanes = lanes
        self.rows = rows
        self.backend = backend
        self.small = small
        self.bytewise = bytewise
        self.reads_bytes = not bytewise

    def alike(self):
        """The part of a kernel's key that these options are (../../kernels/alike.py)."""
        return "{} {} {} {} {} {}".format(self.backend, self.relaxed, self.lanes, self.rows, self.small, self.bytewise)

    def kept(self, keys):
        """None: kernels are written anew in each process."""
        return None

    def measured(self, anchor):
        """None: nothing is measured."""
        return None

    def build(self, item, stored):
        """The Kernel of an item."""
        anchor = item.anchor
        if self.small and _most(item) <= self.small:
            return Options(self.relaxed, 4, 6, self.backend).build(item, stored)
        name = describe(item)
        if anchor is not None:
            if anchor.op == "kernel":
                text = "kernel {} is WGSL, which the {} backend does not run"
                raise UnsupportedError(text.format(anchor.arg[0], self.backend))
            if anchor.op == "rows":
                return rows.rows(item, stored, name, self.lanes)
            if anchor.op == "attention":
                from .attention import attention

                return attention(item, stored, name, self)
            if anchor.op == "packed":
                from .packed_weights import packed

                return packed(item, stored, name, self)
            special = _SPECIAL.get(anchor.op)
            if special is not None:
                return special(item, stored, name)
            if anchor.op not in SPECIFICATIONS:
                refuse("no kernel", anchor.op, "the " + self.backend)
            if anchor.op in ("matmul", "conv"):
                kernel = self._product(item, stored, name)
                if kernel is not None:
                    return kernel
        of_bytes = border if anchor is None else max_pool if anchor.op == "pool" else None
        kernel = of_bytes(item, stored, name, self.lanes) if of_bytes else None
        return nest.loop(item, stored, name, self.lanes) if kernel is None else kernel

    def _product(self, item, stored, name):
        """The Kernel of a "matmul" or "conv" item, or None if nested loops are better."""
        conv = item.anchor.op == "conv"
        kernel = direct.direct(item, stored, name, self) if conv else None
        if kernel is None:
            kernel = contraction.contraction(item, stored, name, self)
        if kernel is None and not conv:
            kernel = single_row.single_row(item, stored, name, self)
        if kernel is None and self.bytewise:
            from . import byte_products, stored_panels

            kernel = stored_panels.panel_product(item, stored, name, self)
            if kernel is None:
                kernel = byte_products.byte_contraction(item, stored, name, self)
        if kernel is None:
            kernel = direct_integers.direct_integers(item, stored, name, self)
        if kernel is None:
            kernel = integers.integer_contraction(item, stored, name, self)
        if kernel is None and conv:
            kernel = depthwise.depthwise(item, stored, name, self)
        if kernel is None and self.lanes > 4:  # shorter vectors, for fewer columns
            shorter = Options(self.relaxed, self.lanes // 2, self.rows, self.backend, bytewise=self.bytewise)
            kernel = shorter._product(item, stored, name)
        return kernel


def _most(item):
    """The elements of an item's largest tensor: its result, or an operand of its anchor."""
    found = item.node.count
    if item.anchor is not None:
        region = item.anchor.arg if item.anchor.op == "rows" else None
        nodes = region.reductions if region else (item.anchor,)
        for node in nodes:
            for n in (node,) + tuple(node.srcs):
                found = max(found, n.count)
    return found


_SPECIAL = {
    "cumulative": lines.cumulative,
    "scatter": lines.scatter,
    "sort_runs": lines.sort,
}
