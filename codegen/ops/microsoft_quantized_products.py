"""com.microsoft: products and convolutions of quantized tensors, and a quantized LSTM."""

from __future__ import annotations

from emberlet import dtypes

from ..emit.emitter import Emission, Emitter, default
from ..emit.expression import Expr, SliceKey, lift
from ..ir.choices import Activation, Direction
from ..ir.problem import Problem
from ..ir.types import TensorType, Type
from ..records import dataclass
from . import quantization
from .attributes import Attributes
from .base import dim_at
from .linear_algebra import product_shape
from .microsoft import Contrib, PlainContrib, trimmed
from .microsoft_products import CHANNELS_FIRST, CHANNELS_LAST, channels_first, channels_last
from .quantization import plain, point, result_dtype

FAMILY = "com.microsoft"


@dataclass(frozen=True)
class QConvConfig:
    conv: quantization.QConvConfig
    channels_last: bool


class QLinearConv(Contrib[QConvConfig]):
    """As in the standard, optionally with the channels last in x and in the result."""

    arity = (8, 9)

    @classmethod
    def read(cls, a: Attributes) -> QConvConfig:
        return QConvConfig(quantization.QLinearConv.read(a.at(10)), a.flag("channels_last"))

    def conv(self) -> quantization.QLinearConv:
        x = channels_first(self.inputs[0]) if self.config.channels_last else self.inputs[0]
        return quantization.QLinearConv(self.name, (x, *self.inputs[1:]), self.outputs, self.config.conv)

    def infer(self) -> tuple[Type, ...]:
        (t,) = self.conv().infer()
        return (channels_last(t) if self.config.channels_last else t,)

    def emit(self, e: Emitter) -> Emission:
        conv = self.conv()
        if not self.config.channels_last:
            return conv.emit(e)
        _, *others = conv.arguments(e)
        return e.method(conv.of(e, [e.method(e.x(0), *CHANNELS_FIRST), *others]), *CHANNELS_LAST)


@dataclass(frozen=True)
class QGemmConfig:
    alpha: float
    trans_a: bool
    trans_b: bool


class QGemm(Contrib[QGemmConfig]):
    """alpha · a' b' + c of quantized matrices, each with scale and zero point; requantized if scale and zero point of
    the result are given, else float32."""

    arity = (6, 9)

    @classmethod
    def read(cls, a: Attributes) -> QGemmConfig:
        return QGemmConfig(a.float("alpha", 1.0), a.flag("transA"), a.flag("transB"))

    def infer(self) -> tuple[Type, ...]:
        a, b, c = self.shape(0), self.shape(3), self.config
        rows = None if a is None else a[1 if c.trans_a else 0]
        columns = None if b is None else b[0 if c.trans_b else 1]
        return (TensorType(self.dtype(8) if self.has(8) else dtypes.float32, (rows, columns)),)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        given: list[Expr | None] = [e.x(i) if i in (0, 3) else plain(e, i) for i in range(6)]
        given += [e.optional(6)] if self.has(6) or self.has(7) else []
        given += [plain(e, 7), plain(e, 8)] if self.has(7) else []
        return e.call(
            "qgemm",
            *given,
            alpha=default(c.alpha),
            trans_a=default(c.trans_a),
            trans_b=default(c.trans_b),
            dtype=default(result_dtype(e, 8)),
        )


class MatMulIntegerToFloat(PlainContrib):
    """A product of integers times both scales: inputs a, b, their scales, their zero points, bias."""

    arity = (4, 7)

    def infer(self) -> tuple[Type, ...]:
        return (TensorType(self.dtype(2), product_shape(self.shape(0), self.shape(1))),)

    def emit(self, e: Emitter) -> Emission:
        rest = [e.x(0), e.x(1), plain(e, 2), plain(e, 3), point(e, 4), point(e, 5), e.optional(6)]
        return e.call("matmul_integer_to_float", *trimmed(rest))


class DynamicQuantizeMatMul(PlainContrib):
    """x, quantized by its range, times a quantized weight: inputs x, weight, its scale, zero point, bias."""

    arity = (3, 5)

    def infer(self) -> tuple[Type, ...]:
        return (TensorType(self.dtype(0), product_shape(self.shape(0), self.shape(1))),)

    def emit(self, e: Emitter) -> Emission:
        rest = [e.x(0), e.x(1), plain(e, 2), point(e, 3), e.optional(4)]
        return e.call("dynamic_quantize_matmul", *trimmed(rest))


@dataclass(frozen=True)
class DynamicLstmConfig:
    direction: Direction
    activations: tuple[Activation, ...]
    alphas: tuple[float, ...]
    betas: tuple[float, ...]
    clip: float
    input_forget: bool


class DynamicQuantizeLSTM(Contrib[DynamicLstmConfig]):
    """An LSTM whose products are of integers: inputs x, w (directions, d_input, 4 · d_hidden), r (directions, d_hidden,
    4 · d_hidden), bias, lengths, first h, first c, peepholes, then scale and zero point of w and those of r."""

    arity, static = (12, 12), (1, 2, 3, 7)

    @classmethod
    def read(cls, a: Attributes) -> DynamicLstmConfig:
        a.has("hidden_size")
        return DynamicLstmConfig(
            a.choice("direction", Direction, Direction.FORWARD),
            a.activations("activations"),
            a.floats("activation_alpha", ()),
            a.floats("activation_beta", ()),
            a.float("clip", 0.0),
            a.flag("input_forget"),
        )

    def infer(self) -> tuple[Type, ...]:
        x, n = self.tensor(0), 2 if self.config.direction == "bidirectional" else 1
        if x.shape is not None and len(x.shape) != 3:
            raise Problem(f"the input has rank {len(x.shape)}, expected (steps, batch, features)")
        steps, batch, hidden = dim_at(x.shape, 0), dim_at(x.shape, 1), dim_at(self.shape(2), 1)
        state = TensorType(x.dtype, (n, batch, hidden))
        return (TensorType(x.dtype, (steps, n, batch, hidden)), state, state)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        out = e.call(
            "dynamic_quantize_lstm",
            *(e.x(i) for i in (0, 1, 8, 9, 2, 10, 11)),
            *([e.x(3)] if self.has(3) else []),
            initial_h=default(e.optional(5)),
            initial_c=default(e.optional(6)),
            peepholes=default(e.optional(7)),
            sequence_lens=default(e.optional(4)),
            direction=default(c.direction),
            activations=default(c.activations or None),
            alphas=default(c.alphas),
            betas=default(c.betas),
            clip=default(c.clip),
            input_forget=default(c.input_forget),
        )
        asked = len(self.outputs)
        return e.index(out, 0) if asked == 1 else out if asked == 3 else e.index(out, SliceKey(None, lift(asked)))
