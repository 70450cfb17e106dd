"""com.microsoft: matrix products and convolutions fused with their neighbors, and weights of few bits."""

from __future__ import annotations

from dataclasses import replace

from emberlet.functional.elementwise.activations_by_name import ACTIVATIONS

from ..emit.emitter import Emission, Emitter, default
from ..emit.expression import Binary, Expr, lift
from ..ir.argument import Argument
from ..ir.choices import Activation
from ..ir.problem import Problem
from ..ir.types import Dim, Shape, TensorType, Type
from ..records import dataclass
from .attributes import Attributes
from .base import axis_of, transposed
from .convolution import Conv, ConvConfig
from .linear_algebra import Gemm, GemmConfig, product_shape
from .microsoft import Contrib, trailing
from .pooling import MaxPool, PoolConfig

FAMILY = "com.microsoft"


@dataclass(frozen=True)
class FusedActivation:
    """An activation by its name in ONNX, and its parameters in the order of `PARAMETERS`."""

    name: Activation
    parameters: tuple[float, ...]

    def apply(self, e: Emitter, x: Expr) -> Expr:
        if self.name is Activation.NONE:
            return x
        if self.name is Activation.CLIP:
            return e.call("clip", x, *(*self.parameters, float("-inf"), float("inf"))[:2])
        function, keywords = ACTIVATIONS[self.name]
        given = zip(keywords, self.parameters, strict=False)
        return e.call(function.__name__, x, **{k: default(v) for k, v in given})


# The activations that com.microsoft fuses -> their functions.
FUSED = ("Clip", *(name for name, (function, _) in ACTIVATIONS.items() if not function.__name__.startswith("_")))


def _activation(a: Attributes, parameters: tuple[float, ...]) -> FusedActivation:
    name = a.string("activation", "")
    if name and name not in FUSED:
        raise Problem(f"the fused activation {name!r} is not supported; it is one of {', '.join(sorted(FUSED))}")
    most = 2 if name == "Clip" else len(ACTIVATIONS[name][1]) if name else 0
    if most and len(parameters) > most:  # onnxruntime ignores those of one that has none
        raise Problem(f"the fused activation {name!r} has {most} parameters, found {len(parameters)}")
    return FusedActivation(Activation(name), parameters)


# -- products of matrices ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FusedGemmConfig:
    gemm: GemmConfig
    activation: FusedActivation


class FusedGemm(Contrib[FusedGemmConfig]):
    """Gemm and an activation."""

    arity, static = (2, 3), (1, 2)

    @classmethod
    def read(cls, a: Attributes) -> FusedGemmConfig:
        names = ("activation_alpha", "activation_beta", "activation_gamma")
        given = tuple(a.float(n) for n in names if a.has(n))
        return FusedGemmConfig(Gemm.read(a.at(13)), _activation(a, given))

    def gemm(self) -> Gemm:
        return Gemm(self.name, self.inputs, self.outputs, self.config.gemm)

    def infer(self) -> tuple[Type, ...]:
        return self.gemm().infer()

    def emit(self, e: Emitter) -> Emission:
        out = self.gemm().emit(e)
        assert not isinstance(out, tuple)
        return self.config.activation.apply(e, out)


class GemmFastGelu(Contrib[None]):
    """The tanh approximation of GELU of x @ weight + bias."""

    arity = (2, 3)

    @classmethod
    def read(cls, a: Attributes) -> None:
        return None

    def infer(self) -> tuple[Type, ...]:
        return (TensorType(self.dtype(0), product_shape(self.shape(0), self.shape(1))),)

    def emit(self, e: Emitter) -> Emission:
        out = Binary("@", e.x(0), e.x(1))
        return e.call("gelu", Binary("+", out, e.x(2)) if self.has(2) else out, approximate="tanh")


@dataclass(frozen=True)
class FusedMatMulConfig:
    """trans_batch: whether the first axis moves behind the other batch axes, for a and for b."""

    alpha: float
    trans_a: bool
    trans_b: bool
    trans_batch_a: bool
    trans_batch_b: bool
    activation: FusedActivation


class FusedMatMul(Contrib[FusedMatMulConfig]):
    """alpha · a' @ b', where a' and b' are a and b, with axes exchanged if requested."""

    arity, static = (2, 2), (1,)

    @classmethod
    def read(cls, a: Attributes) -> FusedMatMulConfig:
        return FusedMatMulConfig(
            a.float("alpha", 1.0),
            a.flag("transA"),
            a.flag("transB"),
            a.flag("transBatchA"),
            a.flag("transBatchB"),
            cls.activation(a),
        )

    @classmethod
    def activation(cls, a: Attributes) -> FusedActivation:
        return FusedActivation(Activation.NONE, ())

    def axes(self, i: int) -> tuple[int, ...]:
        """The order of operand i's axes."""
        c, rank = self.config, self.rank(i)
        batch = (c.trans_batch_a, c.trans_batch_b)[i]
        turned = (c.trans_a, c.trans_b)[i]
        if rank < 2:
            return tuple(range(rank))
        lead, rest = ((*range(1, rank - 1),), (0, rank - 1)) if batch else ((*range(rank - 2),), (rank - 2, rank - 1))
        return (*lead, *(reversed(rest) if turned else rest))

    def plain(self) -> bool:
        c = self.config
        return not (c.trans_a or c.trans_b or c.trans_batch_a or c.trans_batch_b)

    def infer(self) -> tuple[Type, ...]:
        shapes: list[Shape | None] = [self.shape(0), self.shape(1)]
        if not self.plain():
            shapes = [None if s is None else tuple(s[j] for j in self.axes(i)) for i, s in enumerate(shapes)]
        return (TensorType(self.dtype(0), product_shape(shapes[0], shapes[1])),)

    def operand(self, e: Emitter, i: int) -> Expr:
        if self.plain():
            return e.x(i)
        axes, x = self.axes(i), e.x(i)
        rank = len(axes)
        if axes == tuple(range(rank)):
            return x
        if axes == (*range(rank - 2), rank - 1, rank - 2):
            return e.method(x, "matrix_transpose")
        return e.method(x, "permute_dims", axes)

    def emit(self, e: Emitter) -> Emission:
        c, weight = self.config, self.value(1)
        if weight is not None and len(weight.shape) == 2 and weight.dtype.is_float and not c.trans_batch_b:
            matrix = transposed(weight) if c.trans_b else weight
            layer = e.layer("Linear", *matrix.shape, weights={"weight": matrix}, bias=False)
            out = e.apply(layer, self.operand(e, 0))
        else:
            out = Binary("@", self.operand(e, 0), self.operand(e, 1))
        return c.activation.apply(e, out if c.alpha == 1.0 else Binary("*", out, lift(c.alpha)))


class TransposeMatMul(FusedMatMul):
    """The former name of FusedMatMul."""

    arity = (2, 2)


class FusedMatMulActivation(FusedMatMul):
    """FusedMatMul and an activation."""

    arity = (2, 2)

    @classmethod
    def activation(cls, a: Attributes) -> FusedActivation:
        names = ("activation_alpha", "activation_beta", "activation_gamma")
        given = tuple(a.float(n) for n in names if a.has(n))
        a.int("activation_axis", -1)
        return _activation(a, given)


# -- convolutions -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FusedConvConfig:
    conv: ConvConfig
    activation: FusedActivation


class FusedConv(Contrib[FusedConvConfig]):
    """A convolution, plus another tensor (input 3), then an activation."""

    arity, static = (2, 4), (1, 2)

    @classmethod
    def read(cls, a: Attributes) -> FusedConvConfig:
        return FusedConvConfig(Conv.read(a.at(11)), _activation(a, a.floats("activation_params", ())))

    def conv(self) -> Conv:
        return Conv(self.name, self.inputs[:3], self.outputs, self.config.conv)

    def infer(self) -> tuple[Type, ...]:
        return self.conv().infer()

    def emit(self, e: Emitter) -> Emission:
        out = self.conv().emit(e)
        assert not isinstance(out, tuple)
        return self.config.activation.apply(e, Binary("+", out, e.x(3)) if self.has(3) else out)


CHANNELS_FIRST = "moveaxis", -1, 1
CHANNELS_LAST = "moveaxis", 1, -1


def channels_first(argument: Argument) -> Argument:
    """An argument of shape (n, *spatial, c) with the channels moved to axis 1."""
    t = argument.type
    if not isinstance(t, TensorType) or t.shape is None:
        return argument
    return replace(argument, type=TensorType(t.dtype, (t.shape[0], t.shape[-1], *t.shape[1:-1])))


def channels_last(t: Type) -> Type:
    """(n, c, *spatial) as (n, *spatial, c)."""
    assert isinstance(t, TensorType)
    return t if t.shape is None else TensorType(t.dtype, (t.shape[0], *t.shape[2:], t.shape[1]))


class NhwcFusedConv(FusedConv):
    """FusedConv with the channels last in x, in the result and in the added tensor; weights (m, c / groups,
    *kernel)."""

    arity, static = (2, 4), (1, 2)

    def conv(self) -> Conv:
        inputs = (channels_first(self.inputs[0]), *self.inputs[1:3])
        return Conv(self.name, inputs, self.outputs, self.config.conv)

    def infer(self) -> tuple[Type, ...]:
        return (channels_last(self.conv().infer()[0]),)

    def emit(self, e: Emitter) -> Emission:
        out = e.method(self.conv().of(e, e.method(e.x(0), *CHANNELS_FIRST)), *CHANNELS_LAST)
        return self.config.activation.apply(e, Binary("+", out, e.x(3)) if self.has(3) else out)


class NhwcConv(NhwcFusedConv):
    """A convolution with the channels last in x and in the result."""

    arity = (2, 3)


class NhwcMaxPool(Contrib[PoolConfig]):
    """Maxima of windows of (n, *spatial, c)."""

    arity = (1, 1)

    @classmethod
    def read(cls, a: Attributes) -> PoolConfig:
        return MaxPool.read(a.at(12))

    def pool(self) -> MaxPool:
        return MaxPool(self.name, (channels_first(self.inputs[0]),), self.outputs, self.config)

    def infer(self) -> tuple[Type, ...]:
        return (channels_last(self.pool().infer()[0]),)

    def emit(self, e: Emitter) -> Emission:
        return e.method(self.pool().pool(e, "max_pool", e.method(e.x(0), *CHANNELS_FIRST)), *CHANNELS_LAST)


# -- weights of few bits ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MatMulNBitsConfig:
    rows: int
    columns: int
    bits: int
    block_size: int


class MatMulNBits(Contrib[MatMulNBitsConfig]):
    """x @ a weight of 2, 4 or 8 bits: inputs x, packed weight, scales, zero points, the block of each row, bias."""

    arity = (3, 6)

    @classmethod
    def read(cls, a: Attributes) -> MatMulNBitsConfig:
        a.int("accuracy_level", 0)  # the coarsest rounding that x may get; emberlet does not round it
        if a.int("weight_prepacked", 0):
            raise Problem("a weight packed for one GPU (weight_prepacked) is not supported")
        bits = a.int("bits", 4)
        if bits not in (2, 4, 8):
            raise Problem(f"weights of {bits} bits are not supported; 2, 4 and 8 are")
        return MatMulNBitsConfig(a.int("K"), a.int("N"), bits, a.int("block_size"))

    def infer(self) -> tuple[Type, ...]:
        x = self.tensor(0)
        return (TensorType(x.dtype, None if x.shape is None else (*x.shape[:-1], self.config.columns)),)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        return e.call(
            "matmul_nbits",
            e.x(0),
            *trailing(e, 1, 6),
            rows=c.rows,
            columns=c.columns,
            bits=default(c.bits),
            block_size=default(c.block_size),
        )


@dataclass(frozen=True)
class GatherBlockConfig:
    gather_axis: int
    quantize_axis: int
    block_size: int
    bits: int


class GatherBlockQuantized(Contrib[GatherBlockConfig]):
    """Rows of a quantized table as real numbers: inputs table, indices, scales, zero points."""

    arity = (3, 4)

    @classmethod
    def read(cls, a: Attributes) -> GatherBlockConfig:
        bits = a.int("bits", 4)
        if bits not in (2, 4, 8):
            raise Problem(f"a table of {bits} bits is not supported; 2, 4 and 8 are")
        return GatherBlockConfig(a.int("gather_axis", 0), a.int("quantize_axis", 1), a.int("block_size", 128), bits)

    def infer(self) -> tuple[Type, ...]:
        table, indices, scales, c = self.tensor(0), self.shape(1), self.tensor(2), self.config
        if table.dtype.is_float:
            raise Problem(f"a table of {table.dtype} is not supported")
        if table.shape is None or indices is None:
            return (TensorType(scales.dtype),)
        dims: list[Dim] = list(table.shape)
        last = dims[-1]
        if table.dtype.name == "uint8" and c.bits < 8:
            dims[-1] = last * (8 // c.bits) if isinstance(last, int) else None
        at = axis_of(c.gather_axis, len(dims))
        return (TensorType(scales.dtype, (*dims[:at], *indices, *dims[at + 1 :])),)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        return e.call(
            "gather_block_quantized",
            e.x(0),
            e.x(1),
            e.x(2),
            *([e.x(3)] if self.has(3) else []),
            gather_axis=default(c.gather_axis),
            quantize_axis=default(c.quantize_axis),
            block_size=default(c.block_size),
            bits=default(c.bits),
        )
