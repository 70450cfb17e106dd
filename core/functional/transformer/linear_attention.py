"""Attention without a growing cache: a state of fixed size goes from step to step (ONNX LinearAttention), and the
convolution over the last few steps that such models begin with (ONNX CausalConvWithState)."""

from ... import dtypes
from ...errors import ArgumentError, ShapeError
from ..movement.rearranging import narrow, permute_dims, reshape
from ..operands import astype, floating, like
from ..overriding import composite
from .dot_product_attention import merge_heads, split_heads

_RULES = {"linear": (False, False), "gated": (True, False), "delta": (False, True), "gated_delta": (True, True)}


def _each_step(x, steps):
    """(batch, heads, steps, size) as a list of (batch, heads, 1, size)."""
    return [narrow(x, 2, t, 1) for t in range(steps)]


#: function; ONNX LinearAttention; beta: TensorLike -> tuple[Tensor, Tensor]
@composite
def linear_attention(
    q, k, v, state=None, decay=None, beta=None, *, num_heads, kv_num_heads, scale=None, update_rule="gated_delta"
):
    """Attention by a state S (batch, kv_num_heads, d_k, d_v) instead of scores. Returns (y, the last state).

    At every step S is multiplied by exp(decay) ("gated"), then k ⊗ v is added, or beta * k ⊗ (v - Sᵀ k) ("delta"), and
    y = scale * Sᵀ q. update_rule: "linear" (neither), "gated", "delta" or "gated_delta". q (batch, steps, num_heads *
    d_k), k (batch, steps, kv_num_heads * d_k), v (batch, steps, kv_num_heads * d_v); decay (batch, steps,
    kv_num_heads), or times d_k; beta (batch, steps, kv_num_heads or 1); state None for zeros. scale: 1 / sqrt(d_k) by
    default. Sums are float32 or wider. Raises ShapeError if the shapes do not match, or decay or beta does not suit the
    rule.
    """
    if update_rule not in _RULES:
        raise ArgumentError("update_rule is one of {}, found {!r}".format(", ".join(sorted(_RULES)), update_rule))
    gated, delta = _RULES[update_rule]
    heads_fit = kv_num_heads > 0 and not num_heads % kv_num_heads
    if gated != (decay is not None) or delta != (beta is not None) or not heads_fit:
        raise ShapeError(
            "linear_attention by the rule {!r} takes {} decay and {} beta, and query heads a multiple of key heads, "
            "found {} and {}".format(
                update_rule, "a" if gated else "no", "a" if delta else "no", num_heads, kv_num_heads
            )
        )
    q = floating(q)
    dtype = q.dtype
    state_dtype = dtype if state is None else state.dtype
    wide = dtypes.promote(dtype, dtypes.float32)
    b = q.backend
    batch, steps = q.shape[:2]
    q, k, v = split_heads(q, num_heads), split_heads(k, kv_num_heads), split_heads(v, kv_num_heads)
    d_k, d_v, group = q.shape[3], v.shape[3], num_heads // kv_num_heads
    lead = (batch, kv_num_heads, steps)
    fits = k.shape == lead + (d_k,) and v.shape == lead + (d_v,)
    fits = fits and (state is None or state.shape == (batch, kv_num_heads, d_k, d_v))
    for given in (decay, beta):
        fits = fits and (given is None or given.shape[:2] + given.shape[3:] == (batch, steps))
    if not fits:
        found = [None if x is None else x.shape for x in (q, k, v, state, decay, beta)]
        raise ShapeError("linear_attention: q, k, v, state, decay and beta of shapes {} do not match".format(found))
    q = b.binary("mul", astype(q, wide), b.full((), scale or (d_k or 1) ** -0.5, wide))
    q, k, v = _each_step(q, steps), _each_step(astype(k, wide), steps), _each_step(astype(v, wide), steps)
    if decay is not None:
        decay = b.unary("exp", astype(split_heads(decay, kv_num_heads), wide))
        decay = _each_step(decay, steps)
    if beta is not None:
        beta = _each_step(astype(split_heads(beta, beta.shape[2]), wide), steps)
    s = b.full((batch, kv_num_heads, d_k, d_v), 0, wide) if state is None else astype(state, wide)
    out = []
    for t in range(steps):
        if gated:
            s = b.binary("mul", s, permute_dims(decay[t], (0, 1, 3, 2)))
        new = v[t]
        if delta:
            new = b.binary("mul", b.binary("sub", new, b.matmul(k[t], s)), beta[t])
        s = b.binary("add", s, b.binary("mul", permute_dims(k[t], (0, 1, 3, 2)), new))
        # Query heads that share a state are rows of one product.
        y = b.matmul(reshape(q[t], (batch, kv_num_heads, group, d_k)), s)
        out.append(reshape(y, (batch, num_heads, 1, d_v)))
    y = b.concat(out, 2) if steps else b.full((batch, num_heads, 0, d_v), 0, wide)
    return astype(merge_heads(y), dtype), astype(s, state_dtype)


#: function; ONNX CausalConvWithState; activation: str -> tuple[Tensor, Tensor]
@composite
def causal_conv(x, weight, bias=None, state=None, activation=None):
    """Causal depthwise convolution: x (batch, channels, length), weight (channels, 1, taps), bias (channels,), state
    (batch, channels, taps - 1): the steps before x, zeros if None. Returns (y like x, the new
    state). activation: None or "silu"."""
    from ..elementwise.activations import silu
    from ..windows.convolution_by_rank import conv1d

    x = floating(x)
    weight = like(weight, x)
    if x.ndim != 3 or weight.ndim != 3 or weight.shape[:2] != (x.shape[1], 1):
        raise ShapeError(
            "causal_conv: input {} does not fit weight {} (channels, 1, taps)".format(x.shape, weight.shape)
        )
    backend = x.backend
    before = weight.shape[2] - 1
    if state is None:
        longer = backend.pad(x, ((0, 0), (0, 0), (before, 0)), 0) if before else x
    else:
        state = like(state, x)
        if state.shape != (x.shape[0], x.shape[1], before):
            raise ShapeError(
                "causal_conv: a state of shape {} does not fit weight {}".format(state.shape, weight.shape)
            )
        longer = backend.concat((state, x), 2)
    y = conv1d(longer, weight, bias, groups=x.shape[1])
    if activation in ("silu", "swish"):
        y = silu(y)
    elif activation not in (None, "none"):
        raise ArgumentError("activation is None or 'silu', found {!r}".format(activation))
    return y, narrow(longer, 2, longer.shape[2] - before, before)
