"""Estimates a kernel's work: arithmetic operations, and the fewest bytes it must move."""

from emberlet.shapes import size
from emberlet.sizes.size import typical

from ..lower.reductions import specification


def flops(item):
    """Arithmetic operations of an item. A multiply-add counts as two; operations inlined before the anchor are not
    counted."""
    return typical(_flops(item))


def _flops(item):
    anchor = item.anchor
    if anchor is None:
        return item.node.count
    after = len(item.chain) * item.node.count
    op = anchor.op
    if op in ("matmul", "conv"):
        return 2 * anchor.count * specification(anchor).size() + after
    if op == "dot_bytes":
        return 8 * anchor.count * specification(anchor).size() + after
    if op in ("reduce", "argreduce", "pool"):
        return anchor.count * specification(anchor).size() + after
    if op == "rows":
        return len(anchor.arg.members) * size(anchor.arg.full) + after
    if op == "attention":
        q, keys = anchor.srcs[0], anchor.srcs[1]
        return 2 * q.count * keys.shape[2] + 2 * anchor.count * keys.shape[2] + after
    if op == "packed":
        return 2 * anchor.count * anchor.srcs[0].shape[1] + after
    if op == "recurrence":
        return 2 * anchor.count * anchor.srcs[0].shape[3] + after
    return anchor.count + after


def nbytes(item, kernel):
    """Bytes of each input, once, and of the output."""
    return typical(sum([n.nbytes for n in kernel.inputs]) + item.node.nbytes)
