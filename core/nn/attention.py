"""Multi-head attention (Vaswani et al. 2017), with a cache for generating step by step."""

from ..errors import ShapeError
from ..functional.elementwise.activations import quiet_softmax, softmax
from ..functional.transformer.dot_product_attention import dot_product_attention, merge_heads, split_heads
from ..module import Module
from .linear import Linear


class AttentionOutput:
    """context: (batch, seq_q, d_model); weights: (batch, n_heads, seq_q, seq_k), after the softmax, or None."""

    def __init__(self, context, weights):
        self.context = context
        self.weights = weights


class AttentionCache:
    """The keys and values of a MultiHeadAttention so far: (batch, n_heads, seq, d_head) each, None before the first
    call.

    grow: every call appends its own; otherwise the first call's are kept (attention to a constant memory).
    """

    def __init__(self, grow=True):
        self.grow = grow
        self.key = None
        self.value = None

    def __len__(self):
        return 0 if self.key is None else self.key.shape[2]

    def add(self, key, value):
        """Append key and value; returns (all keys, all values)."""
        if self.key is not None:
            key = key.backend.concat((self.key, key), 2)
            value = value.backend.concat((self.value, value), 2)
        self.key, self.value = key, value
        return key, value


class MultiHeadAttention(Module):
    """softmax(q kᵀ / sqrt(d_head)) v in n_heads heads, where q, k, v are Linear projections of query, key and value,
    and a fourth Linear merges the heads. key and value default to query, value to key.

    query (batch, seq_q, d_model), key and value (batch, seq_k, d_model). mask_pad (batch, seq_k): True hides a key from
    every query; mask_attn (batch, seq_q, seq_k) or (seq_q, seq_k): True hides one key from one query. min_float: the
    number added to a hidden score. quiet_softmax: a query may attend to nothing (softmax with an extra score of 0).
    All inputs, and then the results, may be without the batch.
    """

    SHOWN = "d_model n_heads d_head min_float quiet_softmax"

    def __init__(
        self, d_model, n_heads, dropout=0.1, min_float=-1.0e4, quiet_softmax=False, dtype=None, backend=None,
        initializer=None,
    ):  # fmt: skip
        if d_model % n_heads:
            raise ShapeError("MultiHeadAttention: {} heads do not divide d_model {}".format(n_heads, d_model))
        self.d_model = d_model
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.dropout = dropout
        self.min_float = min_float
        self.quiet_softmax = quiet_softmax
        arguments = (d_model, d_model, True, dtype, backend, initializer)
        self.query = Linear(*arguments)
        self.key = Linear(*arguments)
        self.value = Linear(*arguments)
        self.output = Linear(*arguments)

    def forward(
        self, query, key=None, value=None, mask_pad=None, mask_attn=None, cache=None, need_weights=True
    ):  # fmt: skip
        """-> AttentionOutput, whose weights are None unless they are needed. With an AttentionCache, query holds only
        the new steps, which attend to the cached steps and to themselves."""
        if len(query.shape) == 2:
            from .unbatched import attention

            return attention(self, query, key, value, mask_pad, mask_attn, cache, need_weights)
        key = query if key is None else key
        value = key if value is None else value
        q = split_heads(self.query(query), self.n_heads)
        if cache is not None and not cache.grow and len(cache):
            k, v = cache.key, cache.value
        else:
            k, v = split_heads(self.key(key), self.n_heads), split_heads(self.value(value), self.n_heads)
            if cache is not None:
                k, v = cache.add(k, v)
        bias = self._bias(q, k, mask_pad, mask_attn)
        weights = sink = None
        if need_weights:
            scores = (q * self.d_head**-0.5) @ k.mT
            scores = scores if bias is None else scores + bias
            weights = quiet_softmax(scores, -1) if self.quiet_softmax else softmax(scores, -1)
            context = weights @ v
        else:
            if self.quiet_softmax:
                sink = q.backend.full((self.n_heads,), 0, q.dtype)
            context = dot_product_attention(q, k, v, bias, blind=False, sink=sink)
        return AttentionOutput(self.output(merge_heads(context)), weights)

    def _bias(self, q, k, mask_pad, mask_attn):
        """The masks as a bias on the scores (batch or 1, 1, seq_q or 1, seq_k), or None."""
        hidden = None
        if mask_pad is not None:
            hidden = mask_pad.reshape((mask_pad.shape[0], 1, 1, k.shape[2]))
        if mask_attn is not None:
            lead = mask_attn.shape[0] if len(mask_attn.shape) == 3 else 1
            batch = q.shape[0]
            if isinstance(lead, int) and isinstance(batch, int) and lead not in (1, batch):
                raise ShapeError(
                    "MultiHeadAttention: mask_attn is (seq_q, seq_k) or (batch, seq_q, seq_k), the same for all heads; "
                    "found shape {} for a batch of {}".format(tuple(mask_attn.shape), batch)
                )
            mask_attn = mask_attn.reshape((lead, 1, q.shape[2], k.shape[2]))
            hidden = mask_attn if hidden is None else hidden | mask_attn
        return None if hidden is None else hidden.astype(q.dtype) * self.min_float


def causal_mask(seq_q, seq_k, backend=None):
    """(seq_q, seq_k) bool that hides from each query the keys after it; the last query sees every key."""
    from ..functional.creation.fills import arange

    queries = arange(seq_k - seq_q, seq_k, backend=backend).reshape((seq_q, 1))
    return arange(seq_k, backend=backend).reshape((1, seq_k)) > queries


def pad_mask(lengths, seq):
    """(batch, seq) bool, True at the padding after the first lengths[i] steps of row i. lengths: (batch,) integers."""
    from ..functional.creation.fills import arange

    return arange(seq, backend=lengths.backend).reshape((1, seq)) >= lengths.reshape((lengths.shape[0], 1))
