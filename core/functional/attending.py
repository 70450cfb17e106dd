"""Attention: every query looks at every key and takes a mean of the values, weighted by how well they match."""

from .. import dtypes
from ..errors import ShapeError
from .activations import softmax
from .linear_algebra import matmul
from .movement import broadcast_to, matrix_transpose, narrow, reshape
from .operands import astype, floating, like, tensor


def _heads(x, wanted):
    """x (batch, heads, length, d) with each head repeated so that there are `wanted` of them."""
    heads = x.shape[1]
    if heads == wanted:
        return x
    if wanted % heads:
        raise ShapeError("{} query heads do not divide among {} key heads".format(wanted, heads))
    batch, _, length, d = x.shape
    x = broadcast_to(reshape(x, (batch, heads, 1, length, d)), (batch, heads, wanted // heads, length, d))
    return reshape(x, (batch, wanted, length, d))


def causal_mask(queries, keys, backend, offset=0):
    """bool (queries, keys): True where key j lies at or before query i, queries starting `offset` keys in."""
    row = backend.reshape(backend.arange(offset, 1, queries, dtypes.int64), (queries, 1))
    col = backend.reshape(backend.arange(0, 1, keys, dtypes.int64), (1, keys))
    return backend.binary("le", col, row)


def attention_scores(q, k, mask=None, is_causal=False, scale=None, softcap=0.0, causal_offset=0):
    """q·kᵀ · scale, softcapped, and masked (bool: False is cut off; float: added): what softmax then weighs."""
    b = q.backend
    if scale is None:
        scale = q.shape[-1] ** -0.5
    # The scale is split between both sides: the product then overflows no sooner than it must.
    root = b.full((), scale**0.5, q.dtype)
    scores = matmul(b.binary("mul", q, root), b.binary("mul", matrix_transpose(k), root))
    if softcap:
        cap = b.full((), softcap, q.dtype)
        scores = b.binary("mul", b.unary("tanh", b.binary("div", scores, cap)), cap)
    low = b.full((), float("-inf"), q.dtype)
    if is_causal:
        scores = b.where(causal_mask(q.shape[-2], k.shape[-2], b, causal_offset), scores, low)
    if mask is not None:
        mask = tensor(mask, b)
        if mask.dtype.is_bool:
            scores = b.where(mask, scores, low)
        else:
            scores = b.binary("add", scores, astype(mask, q.dtype))
    return scores


def scaled_dot_product_attention(q, k, v, mask=None, is_causal=False, scale=None, softcap=0.0, causal_offset=0):
    """softmax(q·kᵀ · scale + mask)·v for q (…, queries, d), k (…, keys, d), v (…, keys, d_value).

    With (batch, heads, length, d), k and v may have fewer heads than q, each then serving several. mask: bool (False
    is cut off) or float (added), broadcasting to (…, queries, keys). scale: 1/sqrt(d) unless given. A query whose keys
    are all cut off gives zeros.
    """
    q = floating(q)
    k, v = like(k, q), like(v, q)
    if q.ndim == 4 and k.ndim == 4:
        k, v = _heads(k, q.shape[1]), _heads(v, q.shape[1])
    fast = getattr(q.backend, "attention", None)
    if fast:
        return fast(q, k, v, mask, is_causal, scale, softcap, causal_offset)
    scores = attention_scores(q, k, mask, is_causal, scale, softcap, causal_offset)
    weights = softmax(scores, -1)
    if mask is not None or is_causal:
        b = q.backend
        nothing = b.binary("eq", b.reduce("max", scores, (scores.ndim - 1,), True), b.full((), float("-inf"), q.dtype))
        weights = b.where(nothing, b.full((), 0, q.dtype), weights)
    return matmul(weights, v)


attention = scaled_dot_product_attention


def rotary_embedding(x, cos, sin, interleaved=False):
    """Pairs of features turned by an angle that depends on the position: x (…, length, d), cos and sin (…, length, h).

    The first 2 · h of the d features are turned. A pair is (i, i + h), or neighbours (2i, 2i + 1) where interleaved.
    """
    x = floating(x)
    k = x.backend
    cos, sin = like(cos, x), like(sin, x)
    half = cos.shape[-1]
    turned, rest = narrow(x, -1, 0, 2 * half), None
    if x.shape[-1] > 2 * half:
        rest = narrow(x, -1, 2 * half, x.shape[-1] - 2 * half)
    lead = turned.shape[:-1]
    if interleaved:
        pairs = reshape(turned, lead + (half, 2))
        a, b = reshape(narrow(pairs, -1, 0, 1), lead + (half,)), reshape(narrow(pairs, -1, 1, 1), lead + (half,))
    else:
        a, b = narrow(turned, -1, 0, half), narrow(turned, -1, half, half)
    real = k.binary("sub", k.binary("mul", a, cos), k.binary("mul", b, sin))
    imag = k.binary("add", k.binary("mul", a, sin), k.binary("mul", b, cos))
    if interleaved:
        shape = real.shape + (1,)
        out = k.concat((reshape(real, shape), reshape(imag, shape)), len(shape) - 1)
        out = reshape(out, real.shape[:-1] + (2 * half,))
    else:
        out = k.concat((real, imag), real.ndim - 1)
    return out if rest is None else k.concat((out, rest), x.ndim - 1)
