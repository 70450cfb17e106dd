"""com.microsoft: operators that the standard also has, or plain combinations of those."""

from __future__ import annotations

from dataclasses import replace

from emberlet import dtypes

from ..emit.emitter import Emission, Emitter, default
from ..emit.expression import Binary, lift
from ..ir.argument import Argument, Constant
from ..ir.choices import Gate, Metric
from ..ir.problem import Problem
from ..ir.types import TensorType, Type
from ..ir.value import scalar_value
from ..records import dataclass
from . import constant, expansion, indexing, sampling
from .attributes import Attributes
from .base import dim_at, reshaped
from .linear_algebra import product_shape
from .microsoft import Contrib, PlainContrib
from .text import check_pattern

FAMILY = "com.microsoft"


class Trilu(Contrib[constant.TriluConfig], constant.Trilu):
    arity = (1, 2)

    @classmethod
    def read(cls, a: Attributes) -> constant.TriluConfig:
        return constant.Trilu.read(a.at(14))


class GatherND(Contrib[indexing.GatherNDConfig], indexing.GatherND):
    arity = (2, 2)

    @classmethod
    def read(cls, a: Attributes) -> indexing.GatherNDConfig:
        return indexing.GatherND.read(a.at(11))


class GridSample(Contrib[sampling.GridSampleConfig], sampling.GridSample):
    arity = (2, 2)

    @classmethod
    def read(cls, a: Attributes) -> sampling.GridSampleConfig:
        return sampling.GridSample.read(a.at(16))


class Pad(Contrib[expansion.PadConfig], expansion.Pad):
    """As the standard's; the pads may be a matrix of one row."""

    arity = (2, 3)

    @classmethod
    def read(cls, a: Attributes) -> expansion.PadConfig:
        return expansion.Pad.read(a.at(13))

    @classmethod
    def make(cls, name: str, inputs: tuple[Argument, ...], outputs: tuple[Argument, ...], a: Attributes) -> Pad:
        pads = inputs[1].value if len(inputs) > 1 else None
        if pads is not None and len(pads.shape) == 2:
            flat = reshaped(pads, (pads.size,))
            row = replace(inputs[1], type=TensorType(flat.dtype, flat.shape), source=Constant(flat))
            inputs = (inputs[0], row, *inputs[2:])
        return super().make(name, inputs, outputs, a)


class Range(Contrib[None], constant.Range):
    """As the standard's; the step is 1 if it is omitted."""

    arity = (2, 3)

    @classmethod
    def read(cls, a: Attributes) -> None:
        return None

    @classmethod
    def make(cls, name: str, inputs: tuple[Argument, ...], outputs: tuple[Argument, ...], a: Attributes) -> Range:
        if len(inputs) == 2 and isinstance(inputs[0].type, TensorType):
            dtype = inputs[0].type.dtype
            step = Argument(f"{name}.delta", TensorType(dtype, ()), Constant(scalar_value(1, dtype)))
            inputs = (*inputs, step)
        return super().make(name, inputs, outputs, a)


class ExpandDims(PlainContrib):
    """x with a new axis of length 1; the axis is a number."""

    arity = (2, 2)

    def infer(self) -> tuple[Type, ...]:
        x, at = self.tensor(0), self.ints(1)
        if x.shape is None or at is None:
            return (TensorType(x.dtype),)
        rank = len(x.shape) + 1
        if len(at) != 1 or not -rank <= at[0] < rank:
            raise Problem(f"axis {at} does not exist in a result of rank {rank}")
        i = at[0] % rank
        return (TensorType(x.dtype, (*x.shape[:i], 1, *x.shape[i:])),)

    def emit(self, e: Emitter) -> Emission:
        return e.method(e.x(0), "expand_dims", e.integer(1))


class Unique(PlainContrib):
    """The distinct elements in order of occurrence, the inverse map, and counts."""

    arity = (1, 1)

    def infer(self) -> tuple[Type, ...]:
        x = self.tensor(0)
        return (TensorType(x.dtype, (None,)), TensorType(dtypes.int64, x.shape), TensorType(dtypes.int64, (None,)))

    def emit(self, e: Emitter) -> Emission:
        out = e.assign("unique", e.call("unique", e.x(0), sorted=False))
        return tuple(e.index(out, i) for i in (0, 2, 3))[: len(self.outputs)]


class MatMulInteger16(PlainContrib):
    """The product of matrices of 16-bit integers, in 32 bits."""

    arity = (2, 2)

    def infer(self) -> tuple[Type, ...]:
        unsigned = self.dtype(0) is dtypes.uint16 and self.dtype(1) is dtypes.uint16
        return (TensorType(dtypes.uint32 if unsigned else dtypes.int32, product_shape(self.shape(0), self.shape(1))),)

    def emit(self, e: Emitter) -> Emission:
        (t,) = self.infer()
        assert isinstance(t, TensorType)
        return Binary("@", *(e.method(e.x(i), "astype", t.dtype) for i in (0, 1)))


@dataclass(frozen=True)
class DistanceConfig:
    metric: Metric = Metric.SQEUCLIDEAN


class CDist(Contrib[DistanceConfig]):
    """The distance of each row of one matrix from each row of another."""

    arity = (2, 2)

    def infer(self) -> tuple[Type, ...]:
        a, b = self.tensor(0), self.shape(1)
        return (TensorType(a.dtype, (dim_at(a.shape, 0), dim_at(b, 0))),)

    def emit(self, e: Emitter) -> Emission:
        difference = Binary("-", e.method(e.x(0), "expand_dims", 1), e.x(1))
        total = e.call("sum", e.call("square", difference), axis=-1)
        return e.call("sqrt", total) if self.config.metric == "euclidean" else total


@dataclass(frozen=True)
class GatedConfig:
    epsilon: float
    activation: Gate


class GatedRMSNorm(Contrib[GatedConfig]):
    """Root mean square normalization of groups of the scale's length, times an activation of a gate."""

    arity = (3, 3)

    @classmethod
    def read(cls, a: Attributes) -> GatedConfig:
        activation = a.string("activation", "silu", ("silu", "swish", "sigmoid"))
        return GatedConfig(a.float("epsilon", 1e-5), Gate(activation.replace("swish", "silu")))

    def infer(self) -> tuple[Type, ...]:
        size = dim_at(self.shape(1), 0)
        if not isinstance(size, int):
            raise Problem("the length of the scale is not known")
        return (self.tensor(0),)

    def emit(self, e: Emitter) -> Emission:
        x, size = self.tensor(0), dim_at(self.shape(1), 0)
        gate, epsilon = e.call(self.config.activation, e.x(2)), default(self.config.epsilon)
        if x.shape is not None and x.shape[-1] == size:
            return Binary("*", e.call("rms_norm", e.x(0), e.x(1), epsilon=epsilon), gate)
        groups = e.method(e.x(0), "reshape", lift((-1, size)))
        out = e.call("rms_norm", groups, e.x(1), epsilon=epsilon)
        return Binary("*", e.method(out, "reshape", e.shape_of(e.x(0))), gate)


@dataclass(frozen=True)
class TokenizerConfig:
    pad_value: str
    separators: tuple[str, ...]
    expression: str | None
    mark: bool
    shortest: int


class Tokenizer(Contrib[TokenizerConfig]):
    """Splits strings into rows of tokens, as skl2onnx writes for CountVectorizer and TfidfVectorizer."""

    arity, loops = (1, 1), True

    @classmethod
    def read(cls, a: Attributes) -> TokenizerConfig:
        separators = a.strings("separators", ()) if a.has("separators") else ()
        expression = a.string("tokenexp") if a.has("tokenexp") else None
        if (expression is None) == (not separators):
            raise Problem("expected either tokenexp or separators")
        for pattern in (*separators, *([expression] if expression else [])):
            check_pattern(pattern)
        config = TokenizerConfig(a.string("pad_value"), separators, expression, a.flag("mark"), a.int("mincharnum", 1))
        if config.shortest < 1 or (separators == ("",) and config.shortest > 1):
            raise Problem(f"mincharnum is {config.shortest}, which these tokens cannot have")
        return config

    def infer(self) -> tuple[Type, ...]:
        shape = self.shape(0)
        if shape is not None and len(shape) not in (1, 2):
            raise Problem(f"takes strings of rank 1 or 2, found rank {len(shape)}")
        return (TensorType(dtypes.string, None if shape is None else (*shape, None)),)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        return e.call(
            "tokenize",
            e.x(0),
            c.pad_value,
            separators=default(c.separators),
            expression=default(c.expression),
            mark=default(c.mark),
            shortest=default(c.shortest),
        )
