"""Finds the constants of a plan that are 8-bit integers, dequantized: files store them so (stored.py), exactly."""

from __future__ import annotations

from array import array
from typing import Any, NamedTuple

from emberlet import dtypes
from emberlet.shapes import size
from emberlet.tensor import Tensor

from ..record.host_evaluation import defer, evaluate, values_of
from ..record.levels import REACH, parts
from .storing import SMALLEST

MOST = 1 << 24  # counts below it are exact in float32
SIGNED = bytes(byte ^ 0x80 for byte in range(256))  # uint8 as int8 that is 128 less


class Narrow(NamedTuple):
    """(q + offset) * scale: q as a Tensor of int8 and offset, and the scale as a Tensor of float32 whose axes are those
    of q or have length 1, or that has none; None for int32 values q + offset."""

    q: Any
    offset: int
    scale: Any


def narrow(nodes: list[Any], backend: Any) -> dict[int, Narrow]:
    """What is known of constants that are to be computed, by the id of their node."""
    found = {}
    for node in nodes:
        one = _narrow(node, backend) if node.word in ("f32", "i32") and node.nbytes >= SMALLEST else None
        if one is not None:
            found[id(node)] = one
    return found


def _narrow(node: Any, backend: Any) -> Narrow | None:
    host = backend.host
    floats = node.op == "cast" and node.dtype is dtypes.float32  # integers that are multiplied as floats
    levels = node.srcs[0] if floats else node
    made = parts(Tensor(levels, levels.dtype, levels.shape, backend))
    if made is None or made[0].dtype.bits != 8:
        return None
    q: Any
    q, zero, scale = (None if t is None else values_of([t.data], host)[0] for t in made)
    if floats and scale is None:
        scale = host.from_bytes(array("f", [1.0]).tobytes(), dtypes.float32, ())
    offset = 0
    if zero is not None:
        points = set(host.to_list(host.reshape(zero, (zero.size,))))
        if len(points) != 1 or abs(min(points)) > REACH:
            return None
        offset = -int(points.pop())
    if q.dtype.kind == "uint":
        data = bytes(host.to_bytes(q)).translate(SIGNED)
        q, offset = host.from_bytes(data, dtypes.int8, q.shape), offset + 128
    return Narrow(q, offset, scale)


def permute(found: dict[int, Narrow], nodes: list[Any], host: Any) -> None:
    """Add what is known of permutations of constants, before they are computed."""
    for node in nodes:
        q, offset, scale = found.get(id(node.srcs[0]), (None, 0, None))
        if q is not None and node.op == "permute":
            moved = host.permute(scale, node.arg) if scale is not None and scale.ndim else scale
            found[id(node)] = Narrow(host.permute(q, node.arg), offset, moved)


def compute(known: dict[int, Narrow], nodes: list[Any], host: Any) -> None:
    """`evaluate`, but for what files store as it is known here: in plain Python, millions of weights take seconds."""
    left = []
    for node in nodes:
        one = known.get(id(node)) if node.word == "f32" else None
        if one is not None and encoded(one, host):
            defer(node, host)
        else:
            left.append(node)
    evaluate(left, host)


def encoded(found: Narrow, host: Any) -> tuple[bytes, list[int], bytes] | None:
    """(the bytes of q, [elements in a row with one scale, number of scales, offset], the bytes of the scales); None if
    the scales do not follow one another, or are too many to save bytes."""
    data = bytes(host.to_bytes(found.q))
    scale = found.scale
    if scale is None or not scale.ndim:
        return data, [1, 1, found.offset], b"" if scale is None else bytes(host.to_bytes(scale))
    whole = [axis for axis, n in enumerate(scale.shape) if n != 1]
    first, last = min(whole, default=0), max(whole, default=0)
    if scale.shape[first : last + 1] != found.q.shape[first : last + 1]:
        return None
    each = size(found.q.shape[last + 1 :])
    if max(each, scale.size) >= MOST or 2 * scale.size > found.q.size:
        return None
    return data, [each, scale.size, found.offset], bytes(host.to_bytes(scale))


def parts_of(found: Narrow | None, host: Any) -> list[Any]:
    """Sources of the tensors by which a plan's file stores a constant; none if it is stored unchanged."""
    from emberlet.host.burnpack_writer import Source

    stored = encoded(found, host) if found else None
    if stored is None:
        return []
    data, numbers, scales = stored
    data = data.ljust((len(data) + 3) // 4 * 4, b"\0")
    scales = array("f", numbers).tobytes() + scales
    return [
        Source(dtypes.int8, (len(data),), lambda: data),
        Source(dtypes.float32, (len(scales) // 4,), lambda: scales),
    ]
