"""The transformer's encoder (Vaswani et al. 2017)."""

from ..module import Module
from .activation import Gelu
from .attention import AttentionCache, MultiHeadAttention, causal_mask
from .dropout import Dropout
from .layer_norm import LayerNorm
from .linear import Linear


class PositionWiseFeedForward(Module):
    """linear_outer(activation(linear_inner(x))) for x (…, d_model), with d_ff hidden units. activation: Gelu by
    default."""

    SHOWN = "d_model d_ff"

    def __init__(
        self, d_model, d_ff, dropout=0.1, activation=None, dtype=None, backend=None, initializer=None
    ):  # fmt: skip
        self.d_model = d_model
        self.d_ff = d_ff
        self.linear_inner = Linear(d_model, d_ff, True, dtype, backend, initializer)
        self.linear_outer = Linear(d_ff, d_model, True, dtype, backend, initializer)
        self.dropout = Dropout(dropout)
        self.activation = activation or Gelu()

    def forward(self, x):
        """x (…, d_model) -> the same shape."""
        return self.linear_outer(self.dropout(self.activation(self.linear_inner(x))))


class TransformerEncoderLayer(Module):
    """Self-attention, then the feed-forward layer, each with a residual connection. A norm follows each of them (norm_1
    the attention, norm_2 the feed-forward layer) or, if norm_first, precedes it."""

    def __init__(
        self, d_model, d_ff, n_heads, dropout=0.1, norm_first=False, quiet_softmax=False, activation=None,
        epsilon=1e-5, dtype=None, backend=None, initializer=None,
    ):  # fmt: skip
        rest = (dtype, backend, initializer)
        self.mha = MultiHeadAttention(d_model, n_heads, dropout, -1.0e4, quiet_softmax, *rest)
        self.pwff = PositionWiseFeedForward(d_model, d_ff, dropout, activation, *rest)
        self.norm_1 = LayerNorm(d_model, epsilon, dtype=dtype, backend=backend)
        self.norm_2 = LayerNorm(d_model, epsilon, dtype=dtype, backend=backend)
        self.dropout = Dropout(dropout)
        self.norm_first = norm_first
        if norm_first:  # Burn numbers the norms by the sublayer they belong to
            self.BURN_NAMES = {"norm_1": "norm_2", "norm_2": "norm_1"}

    def forward(self, x, mask_pad=None, mask_attn=None, cache=None):
        """x (batch, seq, d_model); masks are True at positions to ignore -> the same shape."""
        seen = self.norm_1(x) if self.norm_first else x
        x = x + self.dropout(self.mha(seen, None, None, mask_pad, mask_attn, cache, False).context)
        if self.norm_first:
            return x + self.dropout(self.pwff(self.norm_2(x)))
        x = self.norm_1(x)
        return self.norm_2(x + self.dropout(self.pwff(x)))


class TransformerEncoder(Module):
    """n_layers TransformerEncoderLayers: x (batch, seq, d_model) -> the same shape.

    mask_pad (batch, seq): True at padding; mask_attn (batch, seq, seq) or (seq, seq): True hides a step from another.
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
        self.layers = [TransformerEncoderLayer(d_model, d_ff, n_heads, *rest) for _ in range(n_layers)]

    def new_cache(self):
        """The cache for step-by-step generation: an AttentionCache for each layer."""
        return [AttentionCache() for _ in self.layers]

    def forward(self, x, mask_pad=None, mask_attn=None, cache=None):
        """With a cache (`new_cache()`), x holds only the new steps, which attend causally to themselves and all earlier
        ones."""
        if cache is not None and mask_attn is None:
            mask_attn = causal_mask(x.shape[1], len(cache[0]) + x.shape[1], x.backend)
        for i in range(len(self.layers)):
            x = self.layers[i](x, mask_pad, mask_attn, None if cache is None else cache[i])
        return x
