"""Kernels whose results are bytes that products read as words (fuse/packing.py): an invocation stores four
neighbors."""

from emberlet.sizes.questions import divides, known_equal
from emberlet.sizes.size import is_open

from ..lower import index as ix
from ..lower.contraction import problem
from ..lower.kernel_ir import Frame, coordinates
from ..lower.lowering import Lowering, after
from ..lower.reductions import specification
from ..render import wgsl
from .loop import BLOCK, MAX_ITERATIONS, WORKGROUP, combine, finish, first, flat, spread, wants_group

_PRODUCTS = ("matmul", "conv", "dot_bytes")
_MOST_TAPS = 16  # of a pool whose windows are written out


def packs(anchor, chain, in_tiles, software):
    """Whether the kernel of an anchor can store what follows from a chain as words: an invocation has four neighbors of
    the anchor's results, which are the bytes of a word behind the chain. in_tiles(anchor, problem): whether a product
    of floats is computed by tiles; software: whether the device is one."""
    if anchor.op in _PRODUCTS:
        return _is_tiled(anchor, in_tiles) and _lines(anchor, chain) is not None
    if anchor.op == "rows":
        region = anchor.arg
        return known_equal(region.exit.shape, region.full) and byte_axis(anchor, chain) == region.axes[-1]
    if anchor.op in ("pool", "reduce"):
        extent = specification(anchor).size()
        few = not is_open(extent) and 0 < extent <= 2 * BLOCK and not wants_group(anchor.count, extent, software)
        return few and anchor.arg[0] in ("sum", "max", "min") and byte_axis(anchor, chain) is not None
    return anchor.op == "attention" and byte_axis(anchor, chain) == 3


def byte_lines(item):
    """The lines of a product, "rows" or "columns", of which four give the bytes of a word if the item stores words;
    else None."""
    whole = item.region[0] if item.region else item.node
    if item.second is not None:
        return _lines(item.anchor, tuple(item.chain) + tuple(item.second[1]))
    return _lines(item.anchor, item.chain) if whole.word in ("i8", "u8") else None


def _lines(anchor, chain):
    axis = byte_axis(anchor, chain)
    if anchor.arg is None:
        return "columns" if axis == len(anchor.shape) - 1 else None
    return "rows" if axis == 1 and divides(4, anchor.shape[1] // anchor.arg[3]) else None


def _is_tiled(anchor, in_tiles):
    """Whether a product is computed by tiles: one of floats may be faster in other ways."""
    what = problem(anchor)
    depth = what.depth()
    if known_equal(depth, 0) or depth > MAX_ITERATIONS:
        return False
    return anchor.op == "dot_bytes" or in_tiles(anchor, what)


def byte_axis(anchor, chain):
    """The axis of an anchor's result along which four neighbors are the bytes of a word behind a chain; else None."""
    shape = anchor.shape
    for axis in range(len(shape)):
        if divides(4, shape[axis]) and not known_equal(shape[axis], 0):
            if ix.consecutive([_place(shape, axis, byte, chain) for byte in range(4)]):
                return axis
    return None


def _place(shape, axis, byte, chain):
    """Where an element is stored, one of four neighbors along an axis."""
    at = [ix.counter("c{}".format(i), shape[i]) for i in range(len(shape))]
    at[axis] = ix.add(ix.mul(ix.counter("c{}".format(axis), shape[axis] // 4), 4), ix.const(byte))
    return ix.flatten(*after(chain, at, shape))


def pooled(item, stored, name):
    """The Kernel of a pool or reduction that gives bytes: an invocation has four, and folds them side by side, with
    small windows written out."""
    anchor = item.anchor
    axis, shape = byte_axis(anchor, item.chain), tuple(anchor.shape)
    low = Lowering(item, stored)
    window = specification(anchor)
    looped = [("r{}".format(i), n) for i, n in enumerate(window.extents)] if window.size() > _MOST_TAPS else []
    steps = [[ix.counter(name, n) for name, n in looped]] if looped else _taps(window.extents)
    at = coordinates("g", shape[:axis] + (shape[axis] // 4,) + shape[axis + 1 :])
    out = wgsl.Renderer(low.slots)
    places = []
    for byte in range(4):
        place = list(at)
        place[axis] = ix.add(ix.mul(at[axis], 4), ix.const(byte))
        places.append(place)
        out.line("var acc{}: {} = {};".format(byte, window.type, first(window.op, window.type)))
    terms = [[window.body(low, place, taps) for place in places] for taps in steps]
    for counter, extent in looped:
        out.open("for (var {0} = 0u; {0} < {1}u; {0}++) {{".format(counter, extent))
    for four in terms:
        for byte in range(4):
            acc = "acc{}".format(byte)
            out.line("{} = {};".format(acc, combine(window.op, window.type, acc, out.name(four[byte]))))
    for _ in looped:
        out.close()
    cells = []
    for byte in range(4):
        value = low.build.make("variable", window.type, (), "acc{}".format(byte))
        cells.append(low.place(places[byte], low.round(value, anchor.dtype)))
    out.store_four(cells)
    count = anchor.count // 4
    groups = (count + WORKGROUP - 1) // WORKGROUP
    values = {"workgroup": WORKGROUP, "flat": flat(groups, "lane", WORKGROUP), "body": out.text()}
    return finish(Frame(name, low.slots, count), "map.wgsl", values, spread(groups))


def _taps(extents):
    """All positions in a window."""
    out = [[]]
    for n in extents:
        out = [taps + [ix.const(i)] for taps in out for i in range(n)]
    return out
