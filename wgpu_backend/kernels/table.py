"""Chooses the kernel template for an item of the fused graph."""

from emberlet.sizes.questions import known_equal
from emberlet.sizes.size import typical

from ..fuse.fusion import CHEAP
from ..fuse.own_ranges import levels_read
from ..lower.lowering import Lowering
from ..lower.reductions import specification
from ..record.node import is_wide
from . import loop as loop_kernel

# On a GPU a workgroup computes each result of a product with fewer results. On an H100 both ways take the same time for
# 256 results; for 1,024, tiles are faster.
FEW_CELLS = 256


class Options:
    """The device properties and choices that kernels are made for; the defaults are WebGPU's baseline.

    device_class: "gpu", or "swiftshader" or "cpu" for a software device; max_bindings: the most storage buffers of a
    kernel; page_bytes: the largest storage buffer; workgroup_bytes: the most workgroup memory; subgroups: whether
    kernels may use WGSL's subgroup operations; tiles: problem key -> tiles.Tile, as measured; tile: one for every
    contraction, or None.
    """

    def __init__(self, device_class="gpu", max_bindings=8, page_bytes=1 << 27, workgroup_bytes=16384, subgroups=False):
        self.device_class = device_class
        self.max_bindings = max_bindings
        self.page_bytes = page_bytes
        self.workgroup_bytes = workgroup_bytes
        self.subgroups = subgroups
        self.tiles = {}
        self.tile = None

    packed_again = CHEAP  # the same for operands that a kernel packs first
    stores_bytes = False  # whether kernels store single bytes
    reads_bytes = False  # whether convolutions of int16 read what these are widened from
    takes_pad = None  # which convolutions add the border of their padded pictures themselves
    little = 1 << 20  # operations that take no longer than one more dispatch: a small product computes its operand anew
    joins_lookups = True  # whether an epilogue may look its elements up in a table
    numbers_again = 64  # the highest cost of a single number that invocations compute themselves: it is no dispatch
    computed_again = CHEAP  # the highest cost of an inlined operand that a kernel recomputes at every read

    def packs(self, anchor, chain):
        """Whether the kernel of an anchor and a chain can store four bytes as a word."""
        from .byte_results import packs

        return packs(anchor, chain, lambda anchor, what: in_tiles(anchor, what, self), self.software)

    def ranges(self, item, x):
        """Whether the kernel of an item, whose product reads the levels of x in the range of x, finds that itself."""
        if self.software and (item.anchor.op == "dot_bytes" or self.device_class == "swiftshader"):
            return False
        return finds_range(item, x, self)

    def joins(self, item, node, chain):
        """Whether the kernel of an item can store as words what follows from its result along a chain, too."""
        if item.anchor.op not in ("dot_bytes", "rows") and self.device_class == "swiftshader":
            return False  # which computes products of floats by panels
        return node.nbytes <= self.page_bytes and self.packs(item.anchor, tuple(item.chain) + tuple(chain))

    def alike(self):
        """The part of a kernel's key that these options are (kernels/alike.py)."""
        return "{} {} {} {} {}".format(
            self.device_class, self.max_bindings, self.page_bytes, self.workgroup_bytes, self.subgroups
        )

    def kept(self, keys):
        """What keeps the kernels of a plan for later processes."""
        from ..kernel_cache import KernelFile

        return KernelFile(keys)

    def measured(self, anchor):
        """The Tile to use for an anchor if one was given or measured; else None."""
        if anchor.op not in ("matmul", "conv"):
            return None
        from ..lower.tiles import problem_key

        return self.tile or self.tiles.get(problem_key(anchor))

    def build(self, item, stored):
        """The Kernel of an item."""
        return build(item, stored, self)

    @property
    def software(self):
        """Whether this is a software device: few invocations keep it busy, and loads and barriers are expensive."""
        return self.device_class != "gpu"

    @property
    def little_words(self):
        """The same as `little` for an operand whose words a product computes, which makes its text long."""
        return self.little if self.software else 4 * self.little

    @property
    def most(self):
        """(bytes that all workgroups of a product read, at most, to find the range of its operand; levels that its
        invocations then compute, at most, if it is a product of floats)"""
        return (1 << 16, 1 << 16) if self.software else (1 << 24, 1 << 19)

    @staticmethod
    def of(device):
        """The Options for a Device."""
        options = Options(device.device_class, device.max_bindings, device.page_bytes, device.workgroup_bytes)
        options.subgroups = device.subgroups
        options.tiles = device.measured_tiles()
        return options


def describe(item):
    """A readable name for an item: its anchor, then the fused operations that follow."""
    parts = []
    chain = (item.node,)
    if item.anchor is not None:
        parts.append(_anchor_name(item.anchor))
        chain = item.chain
    for node in chain[-4:]:
        parts.append(node.arg if node.op in ("unary", "binary") else node.op)
    return "_".join(parts)


def _anchor_name(anchor):
    if anchor.op == "kernel":
        return anchor.arg[0]
    if anchor.op == "rows":
        return "rows_" + "_".join([r.arg[0] for r in anchor.arg.reductions])
    if anchor.op in ("reduce", "pool"):
        return anchor.op + "_" + anchor.arg[0]
    return "arg" + anchor.arg[0] if anchor.op == "argreduce" else anchor.op


def build(item, stored, options):
    """The Kernel of an item."""
    special = _SPECIAL.get(item.anchor.op) if item.anchor is not None else None
    if special is not None:
        kernel = special(item, stored, options)
        if kernel is not None:
            return kernel
    flat = False
    if item.anchor is not None:
        extent = specification(item.anchor).size()
        flat = loop_kernel.wants_group(item.anchor.count, extent, options.software)
    lowering = Lowering(item, stored, item.anchor, flat)
    wide = item.anchor is None and (is_wide(item.node) or lowering.in_bytes)
    loop = lowering.loop(describe(item), wide)
    if lowering.ranged is None:
        return loop_kernel.render_loop(loop)
    from .range_levels import range_of

    return loop_kernel.render_loop(loop, lambda lanes: range_of(lowering, lowering.ranged, lanes, False))


def _cumulative(item, stored, options):
    from .scan import cumulative

    return cumulative(item, stored, describe(item), options)


def _scatter(item, stored, options):
    from .scatter import scatter

    return scatter(item, stored, describe(item))


def _sort(item, stored, options):
    from .sort import sort_runs

    return sort_runs(item, stored, describe(item))


def _merge(item, stored, options):
    from .sort import merge_runs

    return merge_runs(item, stored, describe(item))


def _contraction(item, stored, options):
    from ..lower.contraction import problem
    from ..lower.tiles import choose
    from . import matmul as matmul_kernel
    from . import panel as panel_kernel
    from .byte_results import byte_lines
    from .tile import contraction

    what = problem(item.anchor)
    if known_equal(what.depth(), 0) or what.depth() > loop_kernel.MAX_ITERATIONS:
        return None
    fours = byte_lines(item)
    if options.tile is None and panel_kernel.serves(what, item, options):
        return panel_kernel.panels(item, stored, describe(item), options)
    tile = options.measured(item.anchor) if fours is None else choose(what, options.device_class, fours)
    if tile is None:
        if by_groups(what, options):
            return None
        if item.anchor.word[0] == "f" and matmul_kernel.serves(what, options) and matmul_kernel.wins(what):
            return matmul_kernel.matmul(item, stored, describe(item), options)
        tile = choose(what, options.device_class)
    levels = levels_read(item)
    if levels is not None and id(levels) not in stored:
        tile = range_tile(what, levels.srcs[0], options, fours)
    if tile.blocks:
        return matmul_kernel.matmul(item, stored, describe(item), options, tile.blocks)
    return contraction(item, stored, describe(item), tile)


def finds_range(item, x, options):
    """Whether a product finds the range of its first operand x in less time than a dispatch takes."""
    from ..lower.contraction import problem
    from .byte_results import byte_lines

    what, fours = problem(item.anchor), byte_lines(item)
    if known_equal(what.depth(), 0) or what.depth() > loop_kernel.MAX_ITERATIONS:
        return False
    in_words, shared = item.anchor.op == "dot_bytes", 1
    if fours is None and by_groups(what, options):
        if in_words or typical(what.cells()) * x.nbytes > options.most[0]:
            return False
    else:
        tile = range_tile(what, x, options, fours)
        if in_words or tile is None or not in_tiles(item.anchor, what, options):
            return in_words and tile is not None
        shared = tile.rows if item.anchor.op == "conv" else tile.columns
    return typical(what.cells() * what.depth()) // shared <= options.most[1]


def range_tile(what, x, options, fours):
    """The best Tile whose workgroups may read all of x each, to find its range; None if there is none."""
    from ..lower.tiles import candidates, workgroups
    from .range_levels import for_range

    for tile in candidates(what, options.device_class, fours=fours):
        tile = for_range(tile)
        if workgroups(what, tile) * x.nbytes <= options.most[0]:
            return tile
    return None


def in_tiles(anchor, what, options):
    """Whether a product of floats is computed by tiles, none of which was measured."""
    from . import matmul as matmul_kernel

    if options.measured(anchor) is not None or by_groups(what, options):
        return False
    return anchor.word[0] != "f" or not (matmul_kernel.serves(what, options) and matmul_kernel.wins(what))


def by_groups(what, options):
    """Whether a workgroup should compute each result of a Problem."""
    if options.device_class == "swiftshader":
        return False  # the loads of a few long loops cost less than a workgroup's barriers
    if not loop_kernel.wants_group(what.cells(), what.depth(), options.software):
        return False
    # On a GPU the lanes of a tile share its inner steps, up to 16 of them.
    return options.software or typical(what.columns) == 1 or typical(what.cells()) < FEW_CELLS


def _rows(item, stored, options):
    from .rows import rows

    return rows(item, stored, describe(item), options)


def _pool(item, stored, options):
    """By four results at a time where they are stored as the bytes of a word; else None."""
    from .byte_results import pooled

    whole = item.region[0] if item.region else item.node
    return pooled(item, stored, describe(item)) if whole.word in ("i8", "u8") else None


def _range_levels(item, stored, options):
    from .range_levels import range_levels

    return range_levels(item, stored, describe(item), options.software)


def _own(item, stored, options):
    from .launch import kernel

    return kernel(item, options)


def _recurrence(item, stored, options):
    from .recurrence import recurrence

    return recurrence(item, stored, describe(item), options)


def _attention(item, stored, options):
    from .attention import attention

    return attention(item, stored, describe(item), options)


_SPECIAL = {
    "attention": _attention,
    "kernel": _own,
    "pool": _pool,
    "reduce": _pool,
    "range_levels": _range_levels,
    "rows": _rows,
    "recurrence": _recurrence,
    "matmul": _contraction,
    "conv": _contraction,
    "dot_bytes": _contraction,
    "cumulative": _cumulative,
    "scatter": _scatter,
    "sort_runs": _sort,
    "merge_runs": _merge,
}
