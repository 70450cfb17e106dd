"""com.microsoft: attention as onnxruntime fuses it, and rotary positions."""

from __future__ import annotations

from ..emit.emitter import Default, Emission, Emitter, default
from ..emit.expression import Expr, Liftable
from ..ir.problem import Problem
from ..ir.types import Dim, TensorType, Type
from ..records import dataclass
from .attributes import Attributes
from .base import dim_at
from .microsoft import Contrib, trailing
from .quantization import plain, point

FAMILY = "com.microsoft"

HIDDEN = -10000.0


@dataclass(frozen=True)
class AttentionConfig:
    """sizes: the widths of queries, keys and values side by side, empty if they are equal; scale: 0 means 1 / sqrt(size
    of a head); hidden: the number added to the scores of masked keys."""

    heads: int
    sizes: tuple[int, ...]
    causal: bool
    scale: float
    hidden: float

    def keywords(self) -> dict[str, Liftable | Default]:
        return {
            "num_heads": self.heads,
            "is_causal": default(self.causal),
            "scale": default(self.scale or None),
            "mask_filter_value": default(self.hidden),
        }


def _config(a: Attributes, sizes: tuple[int, ...] = ()) -> AttentionConfig:
    return AttentionConfig(
        a.count("num_heads"),
        sizes,
        a.flag("unidirectional"),
        a.float("scale", 0.0),
        a.float("mask_filter_value", HIDDEN),
    )


def _refuse(a: Attributes, *names: str) -> None:
    """Raise Problem if one of these attributes is not 0."""
    for name in names:
        if a.int(name, 0):
            raise Problem(f"attribute {name!r} is {a.int(name)}; supported is 0")


def added(*dims: Dim) -> Dim:
    """The sum, if every summand is known."""
    known = [d for d in dims if isinstance(d, int)]
    return sum(known) if len(known) == len(dims) else None


def split(width: Dim, parts: int) -> Dim:
    return width // parts if isinstance(width, int) else None


class Attention(Contrib[AttentionConfig]):
    """Projection to queries, keys and values, and attention among them: inputs x, weight, bias, mask, past, score bias;
    outputs y and present, the extended past."""

    arity, static = (2, 7), (1, 2)
    carries = ((4, 1, 3),)

    @classmethod
    def read(cls, a: Attributes) -> AttentionConfig:
        _refuse(a, "do_rotary", "past_present_share_buffer")
        a.int("rotary_embedding_dim", 0)
        return _config(a, a.ints("qkv_hidden_sizes", ()))

    def infer(self) -> tuple[Type, ...]:
        if self.has(6):
            raise Problem("input 6, past_sequence_length, is not supported")
        x, weight, c = self.tensor(0), self.shape(1), self.config
        batch, length = dim_at(x.shape, 0), dim_at(x.shape, 1)
        width = c.sizes[2] if len(c.sizes) == 3 else split(dim_at(weight, 1), 3)
        past = dim_at(self.shape(4), 3) if self.has(4) else 0
        present = (2, batch, c.heads, added(past, length), split(width, c.heads))
        return (TensorType(x.dtype, (batch, length, width)), TensorType(x.dtype, present))

    def emit(self, e: Emitter) -> Emission:
        sizes = default(self.config.sizes or None)
        out = e.call("self_attention", e.x(0), e.x(1), *trailing(e, 2, 6), qkv_sizes=sizes, **self.config.keywords())
        return out if len(self.outputs) > 1 else e.index(out, 0)


class MultiHeadAttention(Contrib[AttentionConfig]):
    """Attention after projection: inputs query, key, value, bias, mask, score bias, past key, past value; outputs y and
    the keys and values, including the past's."""

    arity, static = (1, 10), (3,)
    carries = ((6, 1, 2), (7, 2, 2))

    @classmethod
    def read(cls, a: Attributes) -> AttentionConfig:
        return _config(a)

    def infer(self) -> tuple[Type, ...]:
        for i, what in ((8, "past_sequence_length"), (9, "cache_indirection")):
            if self.has(i):
                raise Problem(f"input {i}, {what}, is not supported")
        if len(self.outputs) > 3 and self.outputs[3].present:
            raise Problem("output 3, the scores, is not supported")
        for i, what, ranks in ((0, "query", (3, 5)), (1, "key", (3, 4, 5)), (2, "value", (3, 4))):
            shape = self.shape(i) if self.has(i) else None
            if shape is not None and len(shape) not in ranks:
                raise Problem(f"its {what} has {len(shape)} axes, expected {' or '.join(map(str, ranks))}")
        q, heads = self.tensor(0), self.config.heads
        batch, length = dim_at(q.shape, 0), dim_at(q.shape, 1)
        if q.rank == 5:
            size = value_size = dim_at(q.shape, 4)
            new = length
        else:
            size = value_size = split(dim_at(q.shape, 2), heads)
            source = self.shape(2) if self.has(2) else None
            if source is not None:
                value_size = source[3] if len(source) == 4 else split(dim_at(source, 2), heads)
            keys = self.shape(1) if self.has(1) else None
            new = dim_at(keys, 2 if keys is not None and len(keys) == 4 else 1)
        total = added(dim_at(self.shape(6), 2) if self.has(6) else 0, new)
        width = heads * value_size if isinstance(value_size, int) else None
        return (
            TensorType(q.dtype, (batch, length, width)),
            TensorType(q.dtype, (batch, heads, total, size)),
            TensorType(q.dtype, (batch, heads, total, value_size)),
        )

    def emit(self, e: Emitter) -> Emission:
        out = e.call("multi_head_attention", e.x(0), *trailing(e, 1, 8), **self.config.keywords())
        return e.results(out, 3)


class QAttention(Contrib[AttentionConfig]):
    """Attention whose projection is a product of integers: inputs x, weight, bias, their scales, mask, zero points of x
    and weight, past; outputs y and present."""

    arity, static = (5, 9), (1, 2)
    carries = ((8, 1, 3),)

    @classmethod
    def read(cls, a: Attributes) -> AttentionConfig:
        _refuse(a, "do_rotary", "past_present_share_buffer")
        return _config(a)

    def infer(self) -> tuple[Type, ...]:
        x, weight, c = self.tensor(0), self.shape(1), self.config
        batch, length = dim_at(x.shape, 0), dim_at(x.shape, 1)
        width = split(dim_at(weight, 1), 3)
        past = dim_at(self.shape(8), 3) if self.has(8) else 0
        present = (2, batch, c.heads, added(past, length), split(width, c.heads))
        return (TensorType(self.dtype(2), (batch, length, width)), TensorType(self.dtype(2), present))

    def emit(self, e: Emitter) -> Emission:
        given = [e.x(0), e.x(1), plain(e, 3), plain(e, 4), point(e, 6), point(e, 7), e.x(2)]
        parts = e.assign("parts", e.call("split", e.call("matmul_integer_to_float", *given), 3, axis=-1))
        past = {"past_key": e.index(e.x(8), 0), "past_value": e.index(e.x(8), 1)} if self.has(8) else {}
        out = e.call(
            "multi_head_attention",
            *(e.index(parts, i) for i in range(3)),
            mask=default(e.optional(5)),
            **past,
            **self.config.keywords(),
        )
        if len(self.outputs) < 2:
            return e.index(out, 0)
        out = e.assign("attended", out)
        return e.index(out, 0), e.call("stack", (e.index(out, 1), e.index(out, 2)))


@dataclass(frozen=True)
class GroupQueryConfig:
    """window: the number of keys visible to a query, None for all before it; smooth: the softmax includes a score of 0
    that belongs to no key."""

    heads: int
    kv_heads: int
    scale: float
    softcap: float
    window: int | None
    rotary: bool
    interleaved: bool
    smooth: bool
    epsilon: float


class GroupQueryAttention(Contrib[GroupQueryConfig]):
    """Causal attention with a cache, each key head shared by several query heads: inputs query, key, value, past key,
    past value, each sequence's last index, the longest length, cosines, sines, positions, score bias,
    sinks, two scales of quantized caches, the weights of norms of queries and keys."""

    arity = (7, 16)
    carries = ((3, 1, 2), (4, 2, 2))

    @classmethod
    def read(cls, a: Attributes) -> GroupQueryConfig:
        _refuse(a, "sliding_window_cache", "qk_output")
        for name in ("k_quant_type", "v_quant_type"):
            a.string(name, "NONE", ("NONE",))
        a.int("kv_cache_bit_width", 0)
        if not a.flag("causal", True):
            raise Problem("attribute 'causal' is 0; supported is 1")
        window = a.int("local_window_size", -1)
        return GroupQueryConfig(
            a.count("num_heads"),
            a.count("kv_num_heads"),
            a.float("scale", 0.0),
            a.float("softcap", 0.0),
            window if window > 0 else None,
            a.flag("do_rotary"),
            a.flag("rotary_interleaved"),
            a.int("smooth_softmax", 0) > 0,
            a.float("qk_norm_epsilon", 1e-6),
        )

    def infer(self) -> tuple[Type, ...]:
        for i, what in ((12, "k_scale"), (13, "v_scale")):
            if self.has(i):
                raise Problem(f"input {i}, {what}, is not supported")
        if self.config.rotary and not (self.has(7) and self.has(8)):
            raise Problem(
                "attribute 'do_rotary' is 1, and there are no cosines and sines (inputs 7 and 8) to rotate by"
            )
        if self.has(14) != self.has(15):
            raise Problem("the weights of the norms of queries and keys (inputs 14 and 15) come together")
        q, c = self.tensor(0), self.config
        batch, length, width = (dim_at(q.shape, i) for i in range(3))
        size = split(width, c.heads if self.has(1) else c.heads + 2 * c.kv_heads)
        width = c.heads * size if isinstance(size, int) else None
        # A cache may have its final length from the start, or the length of its content.
        cache = TensorType(q.dtype, (batch, c.kv_heads, None, size))
        return (TensorType(q.dtype, (batch, length, width)), cache, cache)

    def sink(self, e: Emitter) -> Expr | None:
        if self.config.smooth and not self.has(11):
            return e.create("zeros", (self.config.heads,), dtype=self.dtype(0))
        return e.optional(11)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        rotary = (7, 8, 9) if c.rotary else ()
        given = [e.optional(i) for i in range(1, 5)]
        out = e.call(
            "group_query_attention",
            e.x(0),
            *given,
            e.x(5),
            e.number(6),
            **{k: e.optional(i) for i, k in zip(rotary, ("cos", "sin", "position_ids"), strict=False) if self.has(i)},
            score_bias=default(e.optional(10)),
            sink=default(self.sink(e)),
            num_heads=c.heads,
            kv_num_heads=c.kv_heads,
            scale=default(c.scale or None),
            softcap=default(c.softcap),
            window=default(c.window),
            interleaved=default(c.interleaved),
            q_norm=default(e.optional(14)),
            k_norm=default(e.optional(15)),
            epsilon=default(c.epsilon if self.has(14) else 1e-6),
        )
        return e.results(out, 3)


@dataclass(frozen=True)
class RotaryConfig:
    heads: int
    size: int
    interleaved: bool


class RotaryEmbedding(Contrib[RotaryConfig]):
    """Positions as rotations of pairs of elements: inputs x, positions, cosines, sines."""

    arity = (4, 4)

    @classmethod
    def read(cls, a: Attributes) -> RotaryConfig:
        _refuse(a, "is_packed_batching")
        if a.float("scale", 1.0) != 1.0:
            raise Problem(f"attribute 'scale' is {a.float('scale')}; supported is 1.0")
        return RotaryConfig(a.int("num_heads", 0), a.int("rotary_embedding_dim", 0), a.flag("interleaved"))

    def infer(self) -> tuple[Type, ...]:
        return (self.tensor(0),)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        return e.call(
            "rotary_embedding",
            e.x(0),
            e.x(2),
            e.x(3),
            e.x(1),
            interleaved=default(c.interleaved),
            rotary_dim=default(c.size),
            num_heads=default(c.heads or None),
        )
