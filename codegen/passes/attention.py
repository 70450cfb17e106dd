"""Attention coalescing: softmax(q @ k * scale + mask) @ v, in the many forms that exporters write, becomes one call.

A query with all keys masked by -inf then gives 0, whereas the parts give NaN.
"""

from __future__ import annotations

import math
import re
from typing import Any

from emberlet import dtypes
from emberlet.dtypes.decimal import shortest

from ..ir.argument import Argument
from ..ir.graph import Node
from ..ir.types import Dim, Shape, TensorType
from ..ops.arithmetic import Add, Div, Mul, Where
from ..ops.attention import Attention, AttentionConfig
from ..ops.elementwise import IsNaN, Not
from ..ops.expansion import Expand
from ..ops.linear_algebra import MatMul
from ..ops.movement import Reshape, Transpose, TransposeConfig, Unsqueeze
from ..ops.normalization import Dropout
from ..ops.slicing import Slice
from ..ops.softmax import Softmax
from ..records import dataclass
from .rewriting import Change, Walk, instead, interim, number, shape_of

LEAST = -3e38  # a number of at most this is meant to hide a key: exporters use float32's lowest
LEAST_TWICE = -1e4  # the same, if hidden keys are also set to 0 after the softmax
MOST_MASKED = 1 << 22
_CUT = re.compile(r"min\((\d+), (.+)\)")


@dataclass(frozen=True)
class Scores:
    """The argument of softmax: q @ k, k with its last two axes exchanged; scale; mask; hides: the mask is boolean, and
    true where a key is hidden."""

    q: Argument
    k: Argument
    scale: float
    mask: Argument | None
    hides: bool = False


def step(node: Node[Any], walk: Walk) -> Change | None:
    if isinstance(node, Attention):
        return shared(node, walk)
    if not isinstance(node, MatMul):
        return None
    if not walk.alone(node.inputs[0]):
        return None
    probabilities, guard = zeroed(node.inputs[0], walk)
    softmax = walk.made_by(probabilities, Softmax)
    if softmax is None or not last_axis(softmax):
        return None
    found = scores(softmax.inputs[0], walk, guard)
    if found is None or not fits(found, node):
        return None
    q, v = found.q, node.inputs[1]
    nodes: list[Node[Any]] = []
    keys = exchanged(found.k, node.name, walk, nodes)
    mask = found.mask
    if mask is not None and found.hides:
        seen = walk.fresh(node.name + "::seen")
        nodes.append(Not(seen, (mask,), (interim(seen),), None))
        mask = nodes[-1].outputs[0]
    size = q.type.shape[-1] if isinstance(q.type, TensorType) and q.type.shape else None
    is_default = isinstance(size, int) and math.isclose(found.scale * math.sqrt(size), 1.0, rel_tol=1e-6)
    config = AttentionConfig(
        False, None, None, None if is_default else shortest(found.scale, dtypes.float32), 0.0, None, (None, None), 0
    )
    inputs = (q, keys, v) if mask is None else (q, keys, v, mask)
    return instead(
        node, "recognized {} attentions written as parts", *nodes, Attention(node.name, inputs, node.outputs, config)
    )


def shared(node: Attention, walk: Walk) -> Change | None:
    """Keys and values as they were before being repeated for the heads that share them."""
    if node.config.heads is not None or node.has(4) or any(o.present for o in node.outputs[1:]):
        return None
    found = [unrepeated(node.inputs[i], walk) for i in (1, 2)]
    if found[0] is None or found[1] is None:
        return None
    shapes = [shape_of(a) for a in found if a is not None]
    if shapes[0] is None or shapes[1] is None or not same(shapes[0][1], shapes[1][1]):
        return None
    made = Attention(node.name, (node.inputs[0], found[0], found[1], *node.inputs[3:]), node.outputs, node.config)
    return instead(node, "removed {} repetitions of keys and values", made)


def unrepeated(a: Argument, walk: Walk) -> Argument | None:
    """x, if a value repeats each head of x several times in a row; else None."""
    flat = walk.producer(a)
    wide = walk.made_by(flat.inputs[0], Expand) if isinstance(flat, Reshape) else walk.made_by(a, Expand)
    if wide is None or (isinstance(flat, Reshape) and not isinstance(flat.type(0), TensorType)):
        return None
    out, many = shape_of(a), shape_of(wide.outputs[0])
    if out is None or many is None or None in out:
        return None
    if len(many) == 4:
        x = wide.inputs[0]
        before = shape_of(x)
        if before is None or before[1:2] != (1,):
            return None
        return x if (before[0], *before[2:]) == (out[0], *out[2:]) else None
    new = walk.made_by(wide.inputs[0], Unsqueeze)
    if new is None or len(many) != 5 or new.axes() not in ((2,), (-3,)):
        return None
    before = shape_of(new.inputs[0])
    if before is None or many[:2] + many[3:] != before or (out[0], *out[2:]) != (before[0], *before[2:]):
        return None
    if not (isinstance(before[1], int) and isinstance(many[2], int) and out[1] == before[1] * many[2]):
        return None
    return new.inputs[0]


def through(a: Argument, walk: Walk) -> Argument:
    """The probabilities, without operations that change nothing: dropout, and a guard against rows of NaN."""
    while True:
        node = walk.producer(a)
        if isinstance(node, Dropout) and not node.trains():
            a = node.inputs[0]
        elif isinstance(node, Where) and number(node.inputs[1]) == 0.0:
            guard = walk.made_by(node.inputs[0], IsNaN)
            if guard is None or guard.inputs[0].name != node.inputs[2].name:
                return a
            a = node.inputs[2]
        else:
            return a


def zeroed(a: Argument, walk: Walk) -> tuple[Argument, tuple[str, bool] | None]:
    """The probabilities before those of hidden keys are set to 0, and (the name of the condition, whether it is true
    for hidden keys), or None if none are set. This is how NeMo and ESPnet give 0 to a query that sees no key."""
    a = through(a, walk)
    node = walk.made_by(a, Where)
    for hidden, kept in ((1, 2), (2, 1)):
        if node is not None and number(node.inputs[hidden]) == 0.0 and walk.alone(node.inputs[kept]):
            return through(node.inputs[kept], walk), (node.inputs[0].name, hidden == 1)
    return a, None


def last_axis(softmax: Softmax) -> bool:
    rank = softmax.tensor(0).rank
    return softmax.config.axis == -1 or (rank is not None and softmax.config.axis == rank - 1)


def scores(a: Argument, walk: Walk, guard: tuple[str, bool] | None = None) -> Scores | None:
    """A value as Scores, read backwards: the mask, the scale, the product. guard: the condition from `zeroed`; exactly
    these scores must have been hidden."""
    mask, hides = None, False
    node = walk.producer(a)
    if isinstance(node, Add):
        for i in (0, 1):
            inner, scale = scaled(node.inputs[i], walk)
            if walk.made_by(inner, MatMul) is not None and walk.alone(node.inputs[i]):
                mask, a = node.inputs[1 - i], node.inputs[i]
                break
        else:
            return None
    elif isinstance(node, Where):
        for kept, hidden in ((1, 2), (2, 1)):
            least = number(node.inputs[hidden])
            if least is None or not walk.alone(node.inputs[kept]):
                continue
            if guard is not None:
                whole = guard == (node.inputs[0].name, hidden == 1) and least <= LEAST_TWICE
            else:
                whole = least == float("-inf") or (least <= LEAST and first_key_seen(node.inputs[0], kept == 1, walk))
            if whole:
                mask, hides, a = node.inputs[0], kept == 2, node.inputs[kept]
                break
        else:
            return None
    product, scale = scaled(a, walk)
    matmul = walk.made_by(product, MatMul)
    if matmul is None or not walk.alone(product) or (guard is not None and not isinstance(node, Where)):
        return None
    q, left = scaled(matmul.inputs[0], walk)
    k, right = scaled(matmul.inputs[1], walk)
    return Scores(q, k, scale * left * right, mask, hides)


def first_key_seen(a: Argument, seen: bool, walk: Walk) -> bool:
    """Whether a condition is certain to be `seen` for the first key of every query. No query then has only hidden keys,
    so a large negative number hides keys exactly as -inf does."""
    while a.value is None:
        node = walk.producer(a)
        if isinstance(node, Not):
            a, seen = node.inputs[0], not seen
        elif isinstance(node, Slice) and _from_the_first(node):
            a = node.inputs[0]
        else:
            return False
    shape = a.value.shape
    if not shape or not shape[-1] or a.value.size > MOST_MASKED:
        return False
    return all(bool(v) is seen for v in a.value.list()[:: shape[-1]])


def _from_the_first(node: Slice) -> bool:
    """Whether a slice starts with the first element of each axis, and skips none."""
    if node.open():
        return False
    starts, _, _, steps = node.bounds()
    return not any(s != 0 for s in starts) and all(s == 1 for s in steps)


def scaled(a: Argument, walk: Walk) -> tuple[Argument, float]:
    """(x, factor), if a value is x times a number."""
    node = walk.producer(a)
    if isinstance(node, Mul):
        for i in (0, 1):
            factor = number(node.inputs[i])
            if factor is not None and _keeps_rank(node, 1 - i):
                return node.inputs[1 - i], factor
    if isinstance(node, Div):
        factor = number(node.inputs[1])
        if factor and _keeps_rank(node, 0):
            return node.inputs[0], 1 / factor
    return a, 1.0


def _keeps_rank(node: Node[Any], i: int) -> bool:
    return node.inputs[i].type == node.outputs[0].type


def fits(found: Scores, node: MatMul) -> bool:
    """Whether q, k and v are surely (batch, heads, length, size), and the mask covers every key."""
    shapes = [a.type.shape if isinstance(a.type, TensorType) else None for a in (found.q, found.k, node.inputs[1])]
    q, k, v = shapes
    if q is None or k is None or v is None or not len(q) == len(k) == len(v) == 4:
        return False
    total = k[3]
    sizes_match = same(q[0], k[0], v[0]) and same(q[1], k[1], v[1]) and same(q[3], k[2]) and same(total, v[2])
    if not sizes_match or not node.dtype(0).is_float:
        return False
    if found.mask is None:
        return True
    t = found.mask.type
    shape: Shape | None = t.shape if isinstance(t, TensorType) else None
    if shape is None or not 1 <= len(shape) <= 4 or not isinstance(t, TensorType):
        return False
    return (same(shape[-1], total) or cut_to(shape[-1], total)) and (t.dtype.is_bool or t.dtype is node.dtype(0))


def cut_to(d: Dim, total: Dim) -> bool:
    """Whether a mask's keys are the first of a table of at least two, as many as there are: `min(32, length)`. It fits
    the scores only if the table is long enough."""
    found = _CUT.fullmatch(d) if isinstance(d, str) else None
    return found is not None and found[2] == total and int(found[1]) > 1


def same(*dims: Dim) -> bool:
    return dims[0] is not None and all(d == dims[0] for d in dims)


def exchanged(a: Argument, name: str, walk: Walk, nodes: list[Node[Any]]) -> Argument:
    """The keys, (batch, heads, length, size), if a value is their transpose in the last two axes."""
    turned = walk.made_by(a, Transpose)
    perm = turned.perm() if turned is not None else (0, 1, 2, 3)
    source = a if turned is None else turned.inputs[0]
    perm = (perm[0], perm[1], perm[3], perm[2])
    if perm == (0, 1, 2, 3):
        return source
    keys = walk.fresh(name + "::keys")
    nodes.append(Transpose(keys, (source,), (interim(keys),), TransposeConfig(perm)))
    return nodes[-1].outputs[0]
