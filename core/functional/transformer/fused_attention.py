"""onnxruntime's fused attention operators: com.microsoft Attention, MultiHeadAttention and GroupQueryAttention. They
differ from `attention` in their layouts, masks that add a finite number, and caches longer than their contents."""

from ... import dtypes
from ...errors import ShapeError
from ...shapes import assume_equal
from ..indexing.index_tuples import tensor_scatter
from ..movement.rearranging import narrow, pad, permute_dims, reshape
from ..operands import alias, astype, floating, like, tensor
from ..overriding import composite
from ..reductions.normalization import rms_norm
from .dot_product_attention import (
    as_bias,
    check_heads,
    dot_product_attention,
    merge_heads,
    split_heads,
    visible_keys,
    with_past,
)
from .rotary import rotary_embedding


def _seen(mask, batch, q_length, kv_length):
    """bool (batch, 1, 1 or q_length, kv_length) from one of onnxruntime's masks of integers: lengths (batch,); ends,
    then starts (2 * batch,); lengths and cumulative offsets (3 * batch + 2,); or 1 where a key is seen, (batch,
    kv_length), (batch, q_length, kv_length) or (batch, 1, longest, longest)."""
    backend = mask.backend
    if mask.ndim == 1 and mask.shape[0] in (batch, 2 * batch, 3 * batch + 2):
        column = backend.arange(0, 1, kv_length, mask.dtype)
        out = backend.binary("lt", column, reshape(narrow(mask, 0, 0, batch), (batch, 1, 1, 1)))
        if mask.shape[0] == 2 * batch:
            start = reshape(narrow(mask, 0, batch, batch), (batch, 1, 1, 1))
            out = backend.binary("logical_and", out, backend.binary("ge", column, start))
        return out
    seen = astype(mask, dtypes.bool)
    if mask.ndim == 2 and mask.shape[1] == kv_length:
        return reshape(seen, (mask.shape[0], 1, 1, kv_length))
    if mask.ndim == 3 and mask.shape[1:] == (q_length, kv_length):
        return reshape(seen, (mask.shape[0], 1, q_length, kv_length))
    if mask.ndim == 4 and mask.shape[2] >= kv_length:
        return narrow(narrow(seen, 2, kv_length - q_length, q_length), 3, 0, kv_length)
    raise ShapeError(
        "a mask of shape {} does not fit a batch of {}, {} queries and {} keys".format(
            mask.shape, batch, q_length, kv_length
        )
    )


def _attend(q, keys, values, mask, score_bias, is_causal, scale, mask_filter_value):
    """Attention on split heads, with the last query and the last key at the same position."""
    backend = q.backend
    q_length, kv_length = q.shape[2], keys.shape[2]
    check_heads(q, keys, values)
    bias = None
    if is_causal:
        bias = as_bias(None, visible_keys(q_length, kv_length, kv_length - q_length, None, 0, backend), q.dtype)
    if mask is not None:
        seen = _seen(tensor(mask, backend), q.shape[0], q_length, kv_length)
        hidden = backend.where(seen, backend.full((), 0, q.dtype), backend.full((), mask_filter_value, q.dtype))
        bias = hidden if bias is None else backend.binary("add", bias, hidden)
    if score_bias is not None:
        bias = like(score_bias, q) if bias is None else backend.binary("add", bias, like(score_bias, q))
    # A finite mask hides no key entirely; the first of more queries than keys see none.
    blind = is_causal and q_length > kv_length
    return dot_product_attention(q, keys, values, bias, scale or None, 0.0, blind)


#: function; com.microsoft Attention; qkv_sizes: Sequence[int] -> tuple[Tensor, Tensor]
@composite
def self_attention(
    x, weight, bias=None, mask=None, past=None, score_bias=None, *, num_heads, qkv_sizes=None, is_causal=False,
    scale=None, mask_filter_value=-10000.0,
):  # fmt: skip
    """Projection to queries, keys and values, then attention (com.microsoft Attention).

    x (batch, length, d), weight (d, q + k + v), bias (q + k + v,), where qkv_sizes gives q, k and v (by default a third
    each); past (2, batch, heads, past length, size). Returns (y (batch, length, v), present: past and new keys and
    values, like past). mask: see MultiHeadAttention's; score_bias is added to the scores.
    """
    from ..dense import linear

    projected = linear(x, weight, bias)
    sizes = list(qkv_sizes) if qkv_sizes else [projected.shape[2] // 3] * 3
    parts, start = [], 0
    for n in sizes:
        parts.append(split_heads(narrow(projected, 2, start, n), num_heads))
        start += n
    q, keys, values = parts
    backend = q.backend
    present = None
    if past is not None:
        past = like(past, q)
        both = [reshape(narrow(past, 0, i, 1), past.shape[1:]) for i in (0, 1)]
        keys, values = with_past(both[0], keys), with_past(both[1], values)
    if keys.shape == values.shape:
        present = backend.concat([reshape(t, (1,) + t.shape) for t in (keys, values)], 0)
    return merge_heads(_attend(q, keys, values, mask, score_bias, is_causal, scale, mask_filter_value)), present


def _unpacked(x, i):
    """Part i of (batch, length, heads, parts, size), as (batch, heads, length, size)."""
    part = narrow(x, 3, i, 1)
    return permute_dims(reshape(part, x.shape[:3] + x.shape[4:]), (0, 2, 1, 3))


#: function; com.microsoft MultiHeadAttention -> tuple[Tensor, Tensor, Tensor]
@composite
def multi_head_attention(
    q, k=None, v=None, bias=None, mask=None, score_bias=None, past_key=None, past_value=None, *, num_heads,
    scale=None, is_causal=False, mask_filter_value=-10000.0,
):  # fmt: skip
    """Attention after projection (com.microsoft MultiHeadAttention).

    q, k, v (batch, length, heads * size); or k, v (batch, heads, length, size); or q (batch, length, heads, 3, size)
    holding all three; or k (batch, length, heads, 2, size) holding two. bias: of q, k and v, joined. mask: integers,
    1 where a key is seen, (batch, kv_length) or (batch, q_length, kv_length), or lengths (batch,); mask_filter_value is
    added to the scores of masked keys. score_bias is added to all scores. past_key, past_value (batch, heads, past,
    size). Returns (y (batch, q_length, heads * size of v), present_key, present_value).
    """
    q = floating(q)
    b = q.backend
    biases = [None] * 3
    if bias is not None:
        bias = like(bias, q)
        width = q.shape[2] if q.ndim == 3 else num_heads * q.shape[4]
        rest = bias.shape[0] - 2 * width
        biases = [narrow(bias, 0, 0, width), narrow(bias, 0, width, width), narrow(bias, 0, 2 * width, rest)]

    def heads(x, i):
        if x.ndim == 4:
            return x
        return split_heads(x if biases[i] is None else b.binary("add", x, biases[i]), num_heads)

    if q.ndim == 5:
        q, k, v = [_with_bias(_unpacked(q, i), biases[i]) for i in range(3)]
    elif v is None:
        k, v = [_with_bias(_unpacked(like(k, q), i), biases[i + 1]) for i in (0, 1)]
        q = heads(q, 0)
    else:
        q, k, v = heads(q, 0), heads(like(k, q), 1), heads(like(v, q), 2)
    if past_key is not None:
        k, v = with_past(past_key, k), with_past(past_value, v)
    check_heads(q, k, v)
    return merge_heads(_attend(q, k, v, mask, score_bias, is_causal, scale, mask_filter_value)), alias(k), alias(v)


def _with_bias(x, bias):
    if bias is None:
        return x
    count, width = x.shape[1], x.shape[3]
    return x.backend.binary("add", x, reshape(bias, (1, count, 1, width)))


def _extended(past, new, start, total_length):
    """The cache with `new` written at `start` (batch,), long enough for total_length."""
    if past is None or not past.shape[2]:
        length, past = new.shape[2], None
    else:
        length = past.shape[2]
    missing = max(total_length, length) - length
    if past is None:
        return pad(new, [(0, 0), (0, 0), (0, missing), (0, 0)]) if missing else new
    if new.shape[0] == 1 and missing == new.shape[2]:
        return with_past(past, new)  # a single sequence fills its cache completely
    return tensor_scatter(pad(past, [(0, 0), (0, 0), (0, missing), (0, 0)]), new, start, 2)


#: function; com.microsoft GroupQueryAttention; k: TensorLike | None; v: TensorLike | None;
#:   past_key: TensorLike | None; past_value: TensorLike | None; last_key: TensorLike | None
#:   -> tuple[Tensor, Tensor, Tensor]
@composite
def group_query_attention(
    q, k, v, past_key, past_value, last_key, total_length, cos=None, sin=None, position_ids=None, score_bias=None,
    sink=None, *, num_heads, kv_num_heads, scale=None, softcap=0.0, window=None, interleaved=False, q_norm=None,
    k_norm=None, epsilon=1e-6,
):  # fmt: skip
    """Causal attention with a cache, key heads shared by query heads, and rotary positions inside (com.microsoft
    GroupQueryAttention).

    q (batch, length, num_heads * size), k and v (batch, length, kv_num_heads * size); or q alone, with all three
    concatenated. past_key, past_value (batch, kv_num_heads, past, size). last_key (batch,): index of each sequence's
    last key, including the new ones; total_length: the number of keys of the longest sequence. cos, sin: caches of
    `rotary_embedding`. window: how many keys a query sees, its own included. sink (num_heads,): extra scores that take
    part in the softmax and have no key. q_norm, k_norm (size,): weights of an RMS normalization of each head before the
    rotation, with `epsilon`. Returns (y like q, present_key, present_value).
    """
    q = floating(q)
    b = q.backend
    batch, length = q.shape[:2]
    total_length = int(total_length)
    if k is None:
        size = q.shape[2] // (num_heads + 2 * kv_num_heads)
        shared = kv_num_heads * size
        k = narrow(q, 2, num_heads * size, shared)
        v = narrow(q, 2, num_heads * size + shared, shared)
        q = narrow(q, 2, 0, num_heads * size)
    q, k, v = split_heads(q, num_heads), split_heads(like(k, q), kv_num_heads), split_heads(like(v, q), kv_num_heads)
    if q_norm is not None:
        q, k = rms_norm(q, q_norm, epsilon), rms_norm(k, k_norm, epsilon)
    first = length == total_length
    if first:
        start = b.full((batch,), 0, dtypes.int64)
    else:
        last = astype(reshape(tensor(last_key, b), (batch,)), dtypes.int64)
        start = b.binary("sub", last, b.full((), length - 1, dtypes.int64))
    if cos is not None:
        if position_ids is None:
            step = b.reshape(b.arange(0, 1, length, dtypes.int64), (1, length))
            position_ids = b.binary("add", reshape(start, (batch, 1)), step)
        turned = 2 * cos.shape[-1]
        q = rotary_embedding(q, cos, sin, position_ids, interleaved=interleaved, rotary_dim=turned)
        k = rotary_embedding(k, cos, sin, position_ids, interleaved=interleaved, rotary_dim=turned)
    k, v = _extended(past_key, k, start, total_length), _extended(past_value, v, start, total_length)
    check_heads(q, k, v)
    left = window - 1 if window and window > 0 else None
    seen = visible_keys(length, k.shape[2], 0 if first else start, left, 0, b)
    if score_bias is not None:
        score_bias = like(score_bias, q)
        behind = k.shape[2] - score_bias.shape[3]  # the unused part of the cache is masked
        score_bias = pad(score_bias, [(0, 0)] * 3 + [(0, behind)]) if behind else score_bias
    bias = as_bias(score_bias, seen, q.dtype)
    sink = None if sink is None else like(sink, q)
    if sink is not None and sink.size != num_heads:
        raise ShapeError(
            "group_query_attention: sink has {} scores, one for each of {} heads".format(sink.size, num_heads)
        )
    # Of several queries, those before the first key see none.
    blind = not first and not assume_equal(length, 1, "group_query_attention")
    out = dot_product_attention(q, floating(k), floating(v), bias, scale or None, softcap, blind, sink)
    return merge_heads(out), k, v
