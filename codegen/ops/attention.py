"""Attention, its linear relatives, and rotary positions."""

from __future__ import annotations

from typing import Any

from emberlet import dtypes
from emberlet.dtypes import DType

from ..emit.emitter import Default, Emission, Emitter, default
from ..emit.expression import Expr, Liftable, Name, lift
from ..emit.statement import Def, Return, fold_return
from ..ir.choices import Gate, UpdateRule
from ..ir.graph import Graph, Node
from ..ir.problem import Problem
from ..ir.types import Dim, TensorType, Type, as_tensor
from ..records import dataclass
from .attributes import Attributes
from .base import dim_at, times

Window = tuple[int | None, int | None]


@dataclass(frozen=True)
class AttentionConfig:
    """heads, kv_heads: None if q, k and v have an axis of heads; scale: None means 1 / sqrt(size); window: the numbers
    of keys visible before and after a query; scores: the stage of the scores that output 3 returns."""

    causal: bool
    heads: int | None
    kv_heads: int | None
    scale: float | None
    softcap: float
    softmax_dtype: DType | None
    window: Window
    scores: int


class Attention(Node[AttentionConfig]):
    """Scaled dot-product attention: inputs q, k, v, mask, past keys and values, lengths; outputs y, the keys and values
    with the past's before them, and scores."""

    since = (23, 24, 25)
    carries = ((4, 1, 2), (5, 2, 2))

    @classmethod
    def read(cls, a: Attributes) -> AttentionConfig:
        scores = a.int("qk_matmul_output_mode", 0)
        if not 0 <= scores <= 3:
            raise Problem(f"attribute 'qk_matmul_output_mode' is {scores}, expected 0 to 3")
        sides = [a.int(f"{side}_window_size", -1) for side in ("left", "right")]
        return AttentionConfig(
            a.flag("is_causal"),
            a.int("q_num_heads") if a.has("q_num_heads") else None,
            a.int("kv_num_heads") if a.has("kv_num_heads") else None,
            a.float("scale") if a.has("scale") else None,
            a.float("softcap", 0.0),
            a.float_dtype("softmax_precision") if a.has("softmax_precision") else None,
            (sides[0] if sides[0] >= 0 else None, sides[1] if sides[1] >= 0 else None),
            scores,
        )

    def heads(self, i: int) -> tuple[Dim, Dim, Dim, Dim]:
        """(batch, heads, length, size) of q, k or v."""
        shape, count = self.shape(i), self.config.heads if i == 0 else self.config.kv_heads
        if shape is None:
            return (None, None, None, None)
        if len(shape) == 4:
            return (shape[0], shape[1], shape[2], shape[3])
        if len(shape) != 3:
            raise Problem(f"input {i} has rank {len(shape)}, expected 3 or 4")
        if not count or count < 1:
            raise Problem(f"input {i} has rank 3, which needs the number of heads as an attribute")
        width = shape[2]
        if isinstance(width, int) and width % count:
            raise Problem(f"input {i}: {width} does not divide into {count} heads")
        return (shape[0], count, shape[1], width // count if isinstance(width, int) else None)

    def infer(self) -> tuple[Type, ...]:
        q, k, v = (self.tensor(i) for i in range(3))
        batch, heads, length, _ = self.heads(0)
        _, kv_heads, new, size = self.heads(1)
        value_size = self.heads(2)[3]
        total = joined(dim_at(self.shape(4), 2) if self.has(4) else 0, new)
        if q.shape is None:
            y = TensorType(q.dtype)
        elif len(q.shape) == 3:
            y = TensorType(q.dtype, (batch, length, times(heads, value_size)))
        else:
            y = TensorType(q.dtype, (batch, heads, length, value_size))
        return (
            y,
            TensorType(k.dtype, (batch, kv_heads, total, size)),
            TensorType(v.dtype, (batch, kv_heads, total, value_size)),
            TensorType(q.dtype, (batch, heads, length, total)),
        )

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        more = any(o.present for o in self.outputs[1:])
        options: dict[str, Liftable | Default] = {
            **{n: e.x(i) for n, i in (("past_key", 4), ("past_value", 5), ("kv_lengths", 6)) if self.has(i)},
            "is_causal": default(c.causal),
            "scale": default(c.scale),
            "softcap": default(c.softcap),
            "num_heads": default(c.heads if self.tensor(0).rank != 4 else None),
            "kv_num_heads": default(c.kv_heads if self.tensor(0).rank != 4 and c.kv_heads != c.heads else None),
            "window": default(c.window if c.window != (None, None) else None),
            "softmax_dtype": default(c.softmax_dtype if c.softmax_dtype is not self.dtype(0) else None),
        }
        mask = [e.x(3)] if self.has(3) else []
        given = [e.x(i) for i in range(3)]
        if not more:
            return e.call("attention", *given, *mask, **options)
        if len(self.outputs) > 3 and self.outputs[3].present:
            options["scores_output"] = c.scores
        out = e.assign("attended", e.call("attention_outputs", *given, *mask, **options))
        return tuple(e.index(out, i) for i in range(len(self.outputs)))


def joined(a: Dim, b: Dim) -> Dim:
    """The size of two axes joined, if it is known."""
    return b if a == 0 else a + b if isinstance(a, int) and isinstance(b, int) else None


@dataclass(frozen=True)
class RotaryEmbeddingConfig:
    """size: the number of elements of a head that are rotated, 0 for all; heads: 0 if x has an axis of heads."""

    interleaved: bool
    size: int
    heads: int


class RotaryEmbedding(Node[RotaryEmbeddingConfig]):
    """Positions as rotations of pairs of elements: inputs x, cosines, sines, positions."""

    since = (23,)

    @classmethod
    def read(cls, a: Attributes) -> RotaryEmbeddingConfig:
        return RotaryEmbeddingConfig(a.flag("interleaved"), a.int("rotary_embedding_dim", 0), a.int("num_heads", 0))

    def infer(self) -> tuple[Type, ...]:
        return (self.tensor(0),)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        return e.call(
            "rotary_embedding",
            *(e.x(i) for i in range(3)),
            *([e.x(3)] if self.has(3) else []),
            interleaved=default(c.interleaved),
            rotary_dim=default(c.size),
            num_heads=default(c.heads or None),
        )


@dataclass(frozen=True)
class FlexAttentionConfig:
    """score_mod, prob_mod: functions applied to the scores and to the probabilities."""

    scale: float | None
    softmax_dtype: DType
    score_mod: Graph | None
    prob_mod: Graph | None


class FlexAttention(Node[FlexAttentionConfig]):
    """Attention with functions of the model's own on scores and probabilities."""

    domain, since = "ai.onnx.preview", (1,)

    @classmethod
    def read(cls, a: Attributes) -> FlexAttentionConfig:
        types = [as_tensor(x.type) for x in a.inputs]
        q, k = types[0], types[1]
        wide = dtypes.float64 if q.dtype is dtypes.float64 else dtypes.float32
        dtype = a.float_dtype("softmax_precision") if a.has("softmax_precision") else wide
        known = q.shape is not None and k.shape is not None and len(q.shape) == len(k.shape) == 4
        scores = TensorType(dtype, (*q.shape[:3], k.shape[2]) if known and q.shape and k.shape else (None,) * 4)
        mods = [a.graph(name, (scores,)) if a.has(name) else None for name in ("score_mod", "prob_mod")]
        for graph in mods:
            if graph is not None and not len(graph.inputs) == len(graph.outputs) == 1:
                raise Problem("a modifier must have one input and one output")
        return FlexAttentionConfig(a.float("scale") if a.has("scale") else None, dtype, mods[0], mods[1])

    def infer(self) -> tuple[Type, ...]:
        q, v = self.tensor(0), self.tensor(2)
        if q.shape is None or v.shape is None:
            return (TensorType(v.dtype, (None,) * 4),)
        if not len(q.shape) == len(v.shape) == 4:
            raise Problem("expected inputs of rank 4")
        return (TensorType(v.dtype, (*q.shape[:3], v.shape[3])),)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        mods: dict[str, Expr] = {}
        for name, graph in (("score_mod", c.score_mod), ("prob_mod", c.prob_mod)):
            if graph is not None:
                function, x = e.fresh(name), e.fresh("scores" if name == "score_mod" else "probabilities")
                statements, outputs = e.body(graph, (Name(x),))
                e.push(Def(function, (x,), fold_return([*statements, Return(outputs)])))
                mods[name] = Name(function)
        wide = dtypes.float64 if self.dtype(0) is dtypes.float64 else dtypes.float32
        return e.call(
            "flex_attention",
            *(e.x(i) for i in range(3)),
            **mods,
            scale=default(c.scale),
            softmax_dtype=default(c.softmax_dtype if c.softmax_dtype is not wide else None),
        )


@dataclass(frozen=True)
class LinearAttentionConfig:
    heads: int
    kv_heads: int
    scale: float
    update_rule: UpdateRule


class LinearAttention(Node[LinearAttentionConfig]):
    """Attention as a recurrence: inputs q, k, v, state, decay, beta; outputs y and the state after the last step."""

    since = (27,)
    carries = ((3, 1, None),)

    @classmethod
    def read(cls, a: Attributes) -> LinearAttentionConfig:
        a.int("chunk_size", 64)  # it only says how the work may be split
        return LinearAttentionConfig(
            a.count("q_num_heads"),
            a.count("kv_num_heads"),
            a.float("scale", 0.0),
            a.choice("update_rule", UpdateRule, UpdateRule.GATED_DELTA),
        )

    def infer(self) -> tuple[Type, ...]:
        q, k, v, c = self.tensor(0), self.tensor(1), self.tensor(2), self.config
        batch, length = dim_at(q.shape, 0), dim_at(q.shape, 1)
        key, value = dim_at(k.shape, 2), dim_at(v.shape, 2)
        key = key // c.kv_heads if isinstance(key, int) else None
        value = value // c.kv_heads if isinstance(value, int) else None
        state = self.tensor(3).dtype if self.has(3) else q.dtype
        return (
            TensorType(q.dtype, (batch, length, times(c.heads, value))),
            TensorType(state, (batch, c.kv_heads, key, value)),
        )

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        return first_of(
            self,
            e,
            e.call(
                "linear_attention",
                *trailing(self, e, 6),
                num_heads=c.heads,
                kv_num_heads=c.kv_heads,
                scale=default(c.scale or None),
                update_rule=default(c.update_rule),
            ),
        )


@dataclass(frozen=True)
class CausalConvConfig:
    activation: Gate


class CausalConvWithState(Node[CausalConvConfig]):
    """A causal depthwise convolution along time: inputs x, weight, bias, state; outputs y and state."""

    since = (27,)
    carries = ((3, 1, None),)

    @classmethod
    def read(cls, a: Attributes) -> CausalConvConfig:
        word = a.string("activation", "none", ("none", "silu", "swish"))
        return CausalConvConfig(Gate(word.replace("swish", "silu")))

    def infer(self) -> tuple[Type, ...]:
        x, width = self.tensor(0), dim_at(self.shape(1), 2)
        past = width - 1 if isinstance(width, int) else None
        batch, channels = dim_at(x.shape, 0), dim_at(x.shape, 1)
        return (x, TensorType(x.dtype, (batch, channels, past)))

    def emit(self, e: Emitter) -> Emission:
        activation = default(None if self.config.activation is Gate.NONE else self.config.activation)
        return first_of(self, e, e.call("causal_conv", *trailing(self, e, 4), activation=activation))


def trailing(node: Node[Any], e: Emitter, count: int) -> list[Expr]:
    """The first `count` inputs, None for those omitted between others."""
    present = [i for i in range(count) if node.has(i)]
    return [e.x(i) if node.has(i) else lift(None) for i in range(max(present, default=-1) + 1)]


def first_of(node: Node[Any], e: Emitter, out: Expr) -> Expr:
    """Both values of a pair, or only the first if the node has one output."""
    return out if len(node.outputs) > 1 else e.index(out, 0)
