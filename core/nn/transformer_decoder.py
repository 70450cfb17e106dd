"""The transformer's decoder (Vaswani et al. 2017)."""

from ..module import Module
from .attention import AttentionCache, MultiHeadAttention, causal_mask
from .dropout import Dropout
from .layer_norm import LayerNorm
from .transformer_encoder import PositionWiseFeedForward


class TransformerDecoderLayer(Module):
    """Self-attention, attention to the encoder's memory, then the feed-forward layer, each with a residual connection.
    A norm follows each of them (norm_1, norm_2, norm_3 in that order) or, if norm_first, precedes it."""

    def __init__(
        self, d_model, d_ff, n_heads, dropout=0.1, norm_first=False, quiet_softmax=False, activation=None,
        epsilon=1e-5, dtype=None, backend=None, initializer=None,
    ):  # fmt: skip
        rest = (dtype, backend, initializer)
        self.cross_attn = MultiHeadAttention(d_model, n_heads, dropout, -1.0e4, quiet_softmax, *rest)
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout, -1.0e4, quiet_softmax, *rest)
        self.pwff = PositionWiseFeedForward(d_model, d_ff, dropout, activation, *rest)
        self.norm_1 = LayerNorm(d_model, epsilon, dtype=dtype, backend=backend)
        self.norm_2 = LayerNorm(d_model, epsilon, dtype=dtype, backend=backend)
        self.norm_3 = LayerNorm(d_model, epsilon, dtype=dtype, backend=backend)
        self.dropout = Dropout(dropout)
        self.norm_first = norm_first
        if norm_first:  # with norm_first, Burn numbers the norms differently
            self.BURN_NAMES = {"norm_1": "norm_3", "norm_2": "norm_1", "norm_3": "norm_2"}

    def forward(self, x, memory, mask_pad, mask_attn, memory_mask_pad, memory_mask_attn, cache):
        """x (batch, seq, d_model), memory (batch, seq_m, d_model); masks are True at positions to ignore -> the shape
        of x."""
        own, other = cache or (None, None)
        seen = self.norm_1(x) if self.norm_first else x
        x = x + self.dropout(self.self_attn(seen, None, None, mask_pad, mask_attn, own, False).context)
        x = x if self.norm_first else self.norm_1(x)
        seen = self.norm_2(x) if self.norm_first else x
        x = x + self.dropout(
            self.cross_attn(seen, memory, memory, memory_mask_pad, memory_mask_attn, other, False).context
        )  # fmt: skip
        x = x if self.norm_first else self.norm_2(x)
        seen = self.norm_3(x) if self.norm_first else x
        x = x + self.dropout(self.pwff(seen))
        return x if self.norm_first else self.norm_3(x)


class TransformerDecoder(Module):
    """n_layers TransformerDecoderLayers: target (batch, seq, d_model) and memory (batch, seq_m, d_model) -> the
    target's shape.

    mask_pad (batch, seq), memory_mask_pad (batch, seq_m): True at padding; mask_attn (batch, seq, seq) or (seq, seq)
    and memory_mask_attn (batch, seq, seq_m) or (seq, seq_m): True hides a step from another. Self-attention is causal
    only with a causal mask_attn (`attention.causal_mask`) or with a cache.
    """

    SHOWN = "d_model d_ff n_heads n_layers dropout norm_first quiet_softmax"

    def __init__(
        self, d_model, d_ff, n_heads, n_layers, dropout=0.1, norm_first=False, quiet_softmax=False, activation=None,
        epsilon=1e-5, dtype=None, backend=None, initializer=None,
    ):  # fmt: skip
        self.d_model = d_model
        self.d_ff = d_ff
        self.n_heads = n_heads
        self.n_layers = n_layers
        self.dropout = dropout
        self.norm_first = norm_first
        self.quiet_softmax = quiet_softmax
        rest = (dropout, norm_first, quiet_softmax, activation, epsilon, dtype, backend, initializer)
        self.layers = [TransformerDecoderLayer(d_model, d_ff, n_heads, *rest) for _ in range(n_layers)]

    def new_cache(self):
        """The cache for step-by-step generation: for each layer, the keys and values of the target and of the
        memory."""
        return [(AttentionCache(), AttentionCache(grow=False)) for _ in self.layers]

    def forward(
        self, target, memory, mask_pad=None, mask_attn=None, memory_mask_pad=None, memory_mask_attn=None, cache=None
    ):  # fmt: skip
        """With a cache (`new_cache()`), target holds only the new steps, which attend causally to themselves and all
        earlier ones; the memory's keys and values are computed in the first call."""
        if cache is not None and mask_attn is None:
            seq = target.shape[1]
            mask_attn = causal_mask(seq, len(cache[0][0]) + seq, target.backend)
        x = target
        for i in range(len(self.layers)):
            kept = None if cache is None else cache[i]
            x = self.layers[i](x, memory, mask_pad, mask_attn, memory_mask_pad, memory_mask_attn, kept)
        return x
