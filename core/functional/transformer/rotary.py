"""Rotary positional embedding (Su et al. 2021): RotaryEmbedding of ONNX and of com.microsoft."""

from ... import dtypes
from ...errors import ShapeError
from ..indexing.picking import check_bounds
from ..movement.rearranging import expand_dims, narrow, reshape
from ..operands import astype, floating, like
from ..overriding import composite


def _rows(position_ids, positions, batch, length, backend):
    """The rows of a cache of `positions` rows at which each token turns. Raises IndexingError for one outside."""
    if position_ids.size == 1 and position_ids.shape != (batch, length):
        # One number: the position of the first token of every sequence.
        at = backend.binary("add", astype(reshape(position_ids, (1, 1)), dtypes.int64),
                      backend.reshape(backend.arange(0, 1, length, dtypes.int64), (1, length)))  # fmt: skip
    else:
        at = position_ids
    return check_bounds(at, positions, 0)[0]


def _angles(cache, at, length):
    """(batch or 1, length, half): the rows of a cache at the given positions."""
    if at is None:
        return cache if cache.ndim == 3 else reshape(narrow(cache, 0, 0, length), (1, length, cache.shape[1]))
    return cache.backend.take(cache, at, 0)


#: function; ONNX RotaryEmbedding
@composite
def rotary_embedding(x, cos, sin, position_ids=None, *, interleaved=False, rotary_dim=0, num_heads=None):
    """x with pairs of elements of each head rotated by the angles of their position.

    x: (batch, heads, length, size), or (batch, length, heads * size), where num_heads defaults to what cos implies.
    cos, sin: (positions, rotary_dim / 2), indexed by position_ids (batch, length), or counting up from a single number;
    without position_ids (batch, length, rotary_dim / 2), or the first rows of a 2-D cache. rotary_dim: how many leading
    elements of a head are rotated (0: all). Pairs are adjacent elements if `interleaved`, else they take one element
    from each half. Raises ShapeError if x and the caches do not fit, IndexingError for a position that is not a row.
    """
    x = floating(x)
    cos, sin = like(cos, x), like(sin, x)
    shape = x.shape
    if x.ndim not in (3, 4) or not cos.ndim:
        raise ShapeError("rotary_embedding: expected 3 or 4 axes, and caches of 2 or 3, found {}".format(shape))
    if x.ndim == 3:
        heads = num_heads or shape[2] // (2 * cos.shape[-1])
        if not heads or shape[2] % heads:
            raise ShapeError("rotary_embedding: {} does not divide into {} heads".format(shape, heads))
        x = reshape(x, shape[:2] + (heads, shape[2] // heads))
    length = shape[-2] if len(shape) == 4 else shape[1]
    turned = rotary_dim or x.shape[3]
    if cos.shape != sin.shape or cos.shape[-1] * 2 != turned or turned > x.shape[3]:
        raise ShapeError(
            "rotary_embedding: caches {} and {} do not fit {} rotated elements of heads of size {}".format(
                cos.shape, sin.shape, turned, x.shape[3]
            )
        )
    at = 2 if len(shape) == 3 else 1
    backend = x.backend
    rows = None if position_ids is None else _rows(position_ids, cos.shape[0], shape[0], length, backend)
    cos, sin = expand_dims(_angles(cos, rows, length), at), expand_dims(_angles(sin, rows, length), at)
    head = narrow(x, 3, 0, turned)
    half = turned // 2
    if interleaved:
        pairs = reshape(head, head.shape[:3] + (half, 2))
        a, b = [reshape(narrow(pairs, 4, i, 1), head.shape[:3] + (half,)) for i in (0, 1)]
    else:
        a, b = narrow(head, 3, 0, half), narrow(head, 3, half, half)
    first = backend.binary("sub", backend.binary("mul", a, cos), backend.binary("mul", b, sin))
    second = backend.binary("add", backend.binary("mul", a, sin), backend.binary("mul", b, cos))
    if interleaved:
        out = reshape(backend.concat((expand_dims(first, 4), expand_dims(second, 4)), 4), head.shape)
        parts = [out]
    else:
        parts = [first, second]
    if turned < x.shape[3]:
        parts.append(narrow(x, 3, turned, x.shape[3] - turned))
    return reshape(backend.concat(parts, 3) if len(parts) > 1 else parts[0], shape)
