"""Scaled dot-product attention: ONNX Attention (opsets 23 to 25) and FlexAttention, and what they share with other
variants.

The layout is (batch, heads, length, size). Keys and values may have fewer heads than queries: each then serves a group
of adjacent query heads (grouped-query attention), without being copied.
"""

import math

from ... import dtypes
from ...backend import operation
from ...errors import ShapeError, refuse
from ...shapes import assume_equal, broadcast
from ..movement.rearranging import pad, permute_dims, reshape
from ..operands import alias, astype, floating, like
from ..overriding import composite

_INF = float("inf")


def split_heads(x, count):
    """(batch, length, count * size) -> (batch, count, length, size)."""
    if x.ndim != 3 or count < 1 or x.shape[2] % count:
        raise ShapeError("{} does not divide into {} heads (batch, length, heads * size)".format(x.shape, count))
    return permute_dims(reshape(x, x.shape[:2] + (count, x.shape[2] // count)), (0, 2, 1, 3))


def merge_heads(x):
    """(batch, heads, length, size) -> (batch, length, heads * size)."""
    batch, count, length, width = x.shape
    return reshape(permute_dims(x, (0, 2, 1, 3)), (batch, length, count * width))


def visible_keys(q_length, kv_length, offset, left, right, backend):
    """bool (…, q_length, kv_length): whether query i, at position p = offset + i, may see key j: p - left <= j <= p +
    right, where None means no limit. offset: an int or a tensor (batch,). Returns None if every key may be seen."""
    if isinstance(offset, int):
        if (right is None or offset + right >= kv_length - 1) and (left is None or offset + q_length - 1 <= left):
            return None
        row = backend.reshape(backend.arange(offset, 1, q_length, dtypes.int32), (q_length, 1))
    else:
        row = backend.reshape(backend.arange(0, 1, q_length, dtypes.int32), (q_length, 1))
        row = backend.binary("add", row, backend.reshape(astype(offset, dtypes.int32), (offset.size, 1, 1, 1)))
    column = backend.arange(0, 1, kv_length, dtypes.int32)
    seen = None
    if right is not None:
        limit = backend.binary("add", row, backend.full((), right, dtypes.int32)) if right else row
        seen = backend.binary("le", column, limit)
    if left is not None:
        after = backend.binary("ge", column, backend.binary("sub", row, backend.full((), left, dtypes.int32)))
        seen = after if seen is None else backend.binary("logical_and", seen, after)
    return seen


def within_lengths(lengths, kv_length):
    """bool (batch, 1, 1, kv_length): whether key j lies within its sequence's length; lengths (batch,)."""
    backend = lengths.backend
    least, most = dtypes.int32.range
    if lengths.dtype.is_integer and lengths.dtype.range[1] > most:  # a length may be larger, to say that there is none
        lengths = backend.binary("minimum", lengths, backend.full((), most, lengths.dtype))
        if lengths.dtype.kind == "int":
            lengths = backend.binary("maximum", lengths, backend.full((), least, lengths.dtype))
    column = backend.arange(0, 1, kv_length, dtypes.int32)
    return backend.binary("lt", column, backend.reshape(astype(lengths, dtypes.int32), (lengths.size, 1, 1, 1)))


def both(a, b):
    """a and b as one mask; either may be None."""
    if a is None or b is None:
        return b if a is None else a
    return a.backend.binary("logical_and", a, b)


def as_bias(mask, seen, dtype):
    """The bias to add to the scores, or None: combines `mask` (bool, True where seen; or float, added) and `seen`
    (bool); either may be None."""
    if mask is not None and mask.dtype.is_bool:
        mask, seen = None, both(mask, seen)
    if seen is None:
        return None if mask is None else astype(mask, dtype)
    backend = seen.backend
    base = backend.full((), 0, dtype) if mask is None else astype(mask, dtype)
    return backend.where(seen, base, backend.full((), -_INF, dtype))


def _grouped(x, groups):
    """Query heads grouped by the key head they share: (b, h, s, d) -> (b, groups, h / groups * s, d)."""
    return reshape(x, (x.shape[0], groups, -1 if x.size else x.shape[1] // groups * x.shape[2], x.shape[3]))


def scaled_scores(q, keys, scale, softcap):
    """(raw, capped) products of each query with each key: (batch, heads, q_length, kv_length)."""
    backend = q.backend
    if q.dtype.bits == 16 and scale > 0:  # as in ONNX: both sides are scaled, so that neither leaves float16's range
        root = backend.full((), math.sqrt(scale), q.dtype)
        q, keys = backend.binary("mul", q, root), backend.binary("mul", keys, root)
    else:
        q = backend.binary("mul", q, backend.full((), scale, q.dtype))
    shape = q.shape[:3] + keys.shape[2:3]
    if q.shape[1] != keys.shape[1]:
        q = _grouped(q, keys.shape[1])
    raw = reshape(backend.matmul(q, permute_dims(keys, (0, 1, 3, 2))), shape)
    if not softcap:
        return raw, raw
    cap = backend.full((), softcap, raw.dtype)
    return raw, backend.binary("mul", backend.unary("tanh", backend.binary("div", raw, cap)), cap)


def _probabilities(scores, sink, blind=False):
    """softmax(scores); blind: 0 in the rows of queries that see no key, whose scores are all -inf."""
    from ..elementwise.activations import shares, softmax

    if sink is None and blind:
        backend = scores.backend
        peak = backend.reduce("max", scores, (3,), True)
        nothing = backend.binary("eq", peak, backend.full((), -_INF, scores.dtype))
        return backend.where(nothing, backend.full((), 0, scores.dtype), shares(scores, peak, 3))
    if sink is None:
        return softmax(scores, -1)
    # A sink takes part in the softmax and has no value.
    sink = sink.backend.expand(reshape(sink, (1, sink.size, 1, 1)), scores.shape[:3] + (1,))
    shares = softmax(sink.backend.concat((scores, sink), 3), -1)
    return shares.backend.slice(shares, (0,) * 4, scores.shape, (1,) * 4)


def _weighted_sum(p, values):
    backend = p.backend
    shape = p.shape[:3] + values.shape[3:]
    if p.shape[1] != values.shape[1]:
        p = _grouped(p, values.shape[1])
    return reshape(backend.matmul(p, values), shape)


def _check_bias(q, keys, bias):
    """Refuse a bias that would make more scores than there are."""
    shape = q.shape[:3] + keys.shape[2:3]
    if bias is not None and not assume_equal(broadcast(bias.shape, shape), shape, "attention"):
        raise ShapeError("attention: a mask or bias of shape {} does not fit scores of {}".format(bias.shape, shape))


def dot_product_attention(
    q, keys, values, bias=None, scale=None, softcap=0.0, blind=True, sink=None, softmax_dtype=None
):
    """softmax(softcap(q @ keysᵀ * scale) + bias) @ values on heads (batch, heads, length, size).

    bias: None, or float, broadcast to (batch, heads, q_length, kv_length), -inf where a key is masked; blind: whether a
    query may see no key, which gives 0; sink (heads,): an extra score per head that takes part in the softmax and has
    no key.
    """
    scale = 1 / math.sqrt(q.shape[3]) if scale is None else scale
    _check_bias(q, keys, bias)
    fast = operation(q.backend, "dot_product_attention")
    if fast and softmax_dtype is None:
        return fast(q, keys, values, bias, scale, softcap, blind, sink)
    return _attend(q, keys, values, bias, scale, softcap, blind, sink, softmax_dtype)[0]


def compose_attention(q, keys, values, bias, scale, softcap, blind, sink):
    """`dot_product_attention` from primitives, for a backend whose own kernel does not support these shapes."""
    return _attend(q, keys, values, bias, scale, softcap, blind, sink, None)[0]


def _attend(q, keys, values, bias, scale, softcap, blind, sink, softmax_dtype):
    """(result, (raw scores, capped scores, scores with bias, probabilities))."""
    backend = q.backend
    raw, capped = scaled_scores(q, keys, scale, softcap)
    scores = capped if bias is None else backend.binary("add", capped, bias)
    wide = scores if softmax_dtype is None else _converted(scores, softmax_dtype)
    p = astype(_probabilities(wide, sink, blind and bias is not None), q.dtype)
    out = astype(_weighted_sum(astype(p, values.dtype), values), q.dtype)
    return out, (raw, capped, scores, p)


def _converted(scores, softmax_dtype):
    """scores in the dtype of the softmax. Raises DTypeError unless that is floating."""
    scores = astype(scores, dtypes.dtype(softmax_dtype))
    if not scores.dtype.is_float:
        refuse("numeric", "softmax", scores.dtype)
    return scores


def check_heads(q, keys, values):
    """Raise ShapeError unless the heads of queries, keys and values match."""
    fits = q.ndim == 4 and keys.ndim == 4 and values.ndim == 4
    fits = fits and q.shape[0] == keys.shape[0] == values.shape[0] and q.shape[3] == keys.shape[3]
    fits = fits and keys.shape[1:3] == values.shape[1:3] and keys.shape[1] and not q.shape[1] % keys.shape[1]
    if not fits:
        raise ShapeError(
            "attention: queries {}, keys {} and values {} do not match; expected (batch, heads, length, size), equal "
            "sizes of queries and keys, and query heads a multiple of key heads".format(
                q.shape, keys.shape, values.shape
            )
        )


def shapes_match(shape, wanted):
    """Whether two shapes can be equal: open lengths are not compared, so that a plan needs no guard for them."""
    for a, b in zip(shape, wanted):
        if type(a) is int and type(b) is int and a != b:
            return False
    return len(shape) == len(wanted)


def with_past(past, new):
    """Keys or values after those of the cache: (batch, heads, length, size), joined along the lengths. Raises
    ShapeError if another length differs."""
    past = like(past, new)
    if past.ndim != new.ndim or not shapes_match(past.shape[:2] + past.shape[3:], new.shape[:2] + new.shape[3:]):
        raise ShapeError("attention: a cache of shape {} does not fit {} after it".format(past.shape, new.shape))
    return new.backend.concat((past, new), 2)


def _prepared(q, k, v, mask, past_key, past_value, kv_lengths, is_causal, num_heads, kv_num_heads, window):
    """Split the heads, prepend the cache and merge the masks: (q, keys, values, bias, whether a query may see no
    key)."""
    q = floating(q)
    k = like(k, q)
    v = floating(v)
    if q.ndim == 3:
        if not num_heads:
            raise ShapeError("attention on (batch, length, heads * size) needs num_heads")
        kv_num_heads = kv_num_heads or num_heads
        q, k, v = split_heads(q, num_heads), split_heads(k, kv_num_heads), split_heads(v, kv_num_heads)
    check_heads(q, k, v)
    offset = 0
    if (past_key is None) != (past_value is None) or (past_key is not None and kv_lengths is not None):
        raise ShapeError("attention takes past_key and past_value together, and not together with kv_lengths")
    if past_key is not None:
        offset = past_key.shape[2]
        k, v = with_past(past_key, k), with_past(past_value, v)
        check_heads(q, k, v)
    elif kv_lengths is not None:
        offset = kv_lengths - q.shape[2]
    left, right = window or (None, None)
    if is_causal:
        right = 0 if right is None else min(right, 0)
    seen = None
    if left is not None or right is not None:
        seen = visible_keys(q.shape[2], k.shape[2], offset, left, right, q.backend)
    blind = left is not None or mask is not None or kv_lengths is not None or (right is not None and right < 0)
    if kv_lengths is not None:
        seen = both(seen, within_lengths(kv_lengths, k.shape[2]))
    if mask is not None and mask.shape[-1] < k.shape[2]:
        missing = (0, k.shape[2] - mask.shape[-1])
        mask = pad(mask, [(0, 0)] * (mask.ndim - 1) + [missing], False if mask.dtype.is_bool else -_INF)
    return q, k, v, as_bias(mask, seen, q.dtype), blind


#: function; ONNX Attention
@composite
def attention(
    q,
    k,
    v,
    mask=None,
    *,
    past_key=None,
    past_value=None,
    kv_lengths=None,
    is_causal=False,
    scale=None,
    softcap=0.0,
    num_heads=None,
    kv_num_heads=None,
    window=None,
    softmax_dtype=None,
):
    """softmax(q @ kᵀ * scale + mask) @ v: the first output of ONNX Attention, in the layout of q.

    q (batch, heads, q_length, size), k and v (batch, kv_heads, kv_length, size), where heads is a multiple of
    kv_heads; or all three (batch, length, heads * size) with num_heads and kv_num_heads. v's size may differ.
    mask: bool (True: seen) or float (added to the scores), broadcast to (batch, heads, q_length, total length); keys
    beyond its last axis are masked. past_key, past_value (batch, kv_heads, past, size) come before k and v. kv_lengths
    (batch,): how many keys of each sequence are valid. is_causal: query i sees keys up to offset + i, where offset is
    past, kv_lengths - q_length, or 0. window: a pair (left, right) of how many keys before and after its own position a
    query sees, None for no limit. scale: 1 / sqrt(size) by default; softcap c > 0: scores become c * tanh(score / c);
    softmax_dtype: dtype of the softmax. A query that sees no key gives 0. Raises ShapeError if the shapes do not match.
    """
    layout = q.ndim
    q, k, v, bias, blind = _prepared(
        q, k, v, mask, past_key, past_value, kv_lengths, is_causal, num_heads, kv_num_heads, window
    )
    out = dot_product_attention(q, k, v, bias, scale, softcap, blind, None, softmax_dtype)
    return merge_heads(out) if layout == 3 else out


#: function; ONNX Attention; scores_output: int -> tuple[Tensor, Tensor, Tensor, Tensor | None]
@composite
def attention_outputs(
    q,
    k,
    v,
    mask=None,
    *,
    past_key=None,
    past_value=None,
    kv_lengths=None,
    is_causal=False,
    scale=None,
    softcap=0.0,
    num_heads=None,
    kv_num_heads=None,
    window=None,
    softmax_dtype=None,
    scores_output=None,
):
    """All four outputs of ONNX Attention: (the result of `attention`, present_key, present_value, scores).

    present_key and present_value (batch, kv_heads, total length, size): past and new. scores (batch, heads, q_length,
    total length), by scores_output (qk_matmul_output_mode): None for none, 0 for the scaled products, 1 after softcap,
    2 with the mask added, 3 for the probabilities.
    """
    layout = q.ndim
    q, k, v, bias, blind = _prepared(
        q, k, v, mask, past_key, past_value, kv_lengths, is_causal, num_heads, kv_num_heads, window
    )
    if scores_output is None:
        out, scores = dot_product_attention(q, k, v, bias, scale, softcap, blind, None, softmax_dtype), None
    else:
        scale = 1 / math.sqrt(q.shape[3]) if scale is None else scale
        _check_bias(q, k, bias)
        out, stages = _attend(q, k, v, bias, scale, softcap, blind, None, softmax_dtype)
        scores = stages[scores_output]
    return merge_heads(out) if layout == 3 else out, alias(k), alias(v), scores


#: function; ONNX FlexAttention; score_mod: Callable[[Tensor], Tensor]; prob_mod: Callable[[Tensor], Tensor]
@composite
def flex_attention(q, k, v, score_mod=None, prob_mod=None, *, scale=None, softmax_dtype=None):
    """Attention with custom functions applied to the scores and to the probabilities, both (batch, heads, q_length,
    kv_length) in softmax_dtype (by default float32 or wider) (ONNX FlexAttention)."""
    q = floating(q)
    k, v = like(k, q), floating(v)
    check_heads(q, k, v)
    if softmax_dtype is None:
        softmax_dtype = dtypes.promote(q.dtype, dtypes.float32)
    scores = scaled_scores(q, k, 1 / math.sqrt(q.shape[3]) if scale is None else scale, 0.0)[0]
    scores = _converted(scores, softmax_dtype)
    p = _probabilities(scores if score_mod is None else score_mod(scores), None)
    if prob_mod is not None:
        p = prob_mod(p)
    return astype(_weighted_sum(p, like(v, p)), v.dtype)
