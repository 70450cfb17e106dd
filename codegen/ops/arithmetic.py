"""Arithmetic, comparison and logic of tensors that broadcast; sizes are computed as Python numbers."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from emberlet import dtypes
from emberlet.dtypes import DType

from ..emit.emitter import Emission, Emitter
from ..emit.expression import Binary, Call, Expr, Literal, Name, lift
from ..ir.graph import Node
from ..ir.problem import Problem
from ..ir.sizes import minus, plus, scaled
from ..ir.types import Dim, ScalarType, TensorType, Type, as_tensor, broadcast
from ..records import dataclass
from .attributes import Attributes
from .base import Plain


@dataclass(frozen=True)
class AlignConfig:
    """How the second operand is aligned. Before opset 7 it matched a run of the first's axes, from `axis` on (None: the
    last ones); from 7 on both broadcast by NumPy's rule and `axis` is None."""

    axis: int | None = None


@dataclass(frozen=True)
class Pairwise(Node[AlignConfig], ABC):
    """Two operands that broadcast. `operator`: Python's, if there is one; else `function`: the functional layer's."""

    operator: ClassVar[str] = ""
    function: ClassVar[str] = ""
    result: ClassVar[DType | None] = None

    @classmethod
    def read(cls, a: Attributes) -> AlignConfig:
        a.has("consumed_inputs")
        legacy = a.flag("broadcast", False)
        return AlignConfig(a.int("axis") if legacy and a.has("axis") else None)

    def infer(self) -> tuple[Type, ...]:
        if self.on_host():
            return (self.host_type(),)
        x, y = self.tensor(0), self.tensor(1)
        if x.dtype is not y.dtype and not self.mixes():
            raise Problem(f"the operands have dtypes {x.dtype} and {y.dtype}, expected one")
        shape = x.shape if self.config.axis is not None else broadcast(x.shape, y.shape)
        return (TensorType(self.result or x.dtype, shape),)

    def mixes(self) -> bool:
        """Whether operands of two dtypes are allowed."""
        return False

    def on_host(self) -> bool:
        """Whether both operands are Python numbers, one of them known only when the model runs."""
        return (
            bool(self.operator)
            and self.result is None
            and (isinstance(self.type(0), ScalarType) or isinstance(self.type(1), ScalarType))
            and all(isinstance(self.type(i), ScalarType) or self._number(i) for i in (0, 1))
        )

    def _number(self, i: int) -> bool:
        value = self.value(i)
        return value is not None and value.shape == () and value.dtype.is_integer

    def natural(self, i: int) -> bool:
        t, value = self.type(i), self.value(i)
        if value is not None:
            return int(value.item()) >= 0
        return isinstance(t, ScalarType) and t.natural

    def host_type(self) -> ScalarType:
        known = [self.dims(i) for i in (0, 1)]
        a, b = (None if k is None else k[0] for k in known)
        naturals = self.natural(0) and self.natural(1)
        value = self.of_sizes(a, b) if naturals else None
        surely = naturals and (self.operator != "-" or isinstance(value, str))
        return ScalarType(as_tensor(self.type(0)).dtype, value, surely)

    def of_sizes(self, a: Dim, b: Dim) -> Dim:
        """The operation on symbolic sizes, if its result is a size."""
        return None

    def emit(self, e: Emitter) -> Emission:
        if self.on_host():
            return self.host_expression(e.number(0), e.number(1))
        x, y = e.operand(0), e.operand(1)
        if self.config.axis is not None:
            y = self.aligned(e)
        return Binary(self.operator, x, y) if self.operator else e.call(self.function, x, y)

    def host_expression(self, a: Expr, b: Expr) -> Expr:
        return Binary(self.operator, a, b)

    def aligned(self, e: Emitter) -> Expr:
        """The second operand with axes of size 1 appended (opset 1 to 6)."""
        y = self.tensor(1).shape
        axis = self.config.axis or 0
        behind = self.rank(0) - (axis if axis >= 0 else axis + self.rank(0)) - self.rank(1)
        if y is None or behind < 0:
            raise Problem(f"axis {self.config.axis} does not line up the shapes {self.tensor(0).shape} and {y}")
        if behind == 0:
            return e.operand(1)
        return e.call("reshape", e.x(1), (*(d if isinstance(d, int) else -1 for d in y), *(1,) * behind))


class Add(Pairwise):
    since, operator = (1, 6, 7, 13, 14), "+"

    def of_sizes(self, a: Dim, b: Dim) -> Dim:
        return plus(a, b)


class Sub(Pairwise):
    since, operator = (1, 6, 7, 13, 14), "-"

    def of_sizes(self, a: Dim, b: Dim) -> Dim:
        return minus(a, b)


class Mul(Pairwise):
    since, operator = (1, 6, 7, 13, 14), "*"

    def of_sizes(self, a: Dim, b: Dim) -> Dim:
        return scaled(b, a) if isinstance(a, int) else scaled(a, b) if isinstance(b, int) else None


class Div(Pairwise):
    """True division of floats; of integers, truncated toward zero."""

    since, operator = (1, 6, 7, 13, 14), "/"

    def of_sizes(self, a: Dim, b: Dim) -> Dim:
        return scaled(a, 1, b) if isinstance(b, int) else None

    def host_expression(self, a: Expr, b: Expr) -> Expr:
        if self.natural(0) and self.natural(1):
            return Binary("//", a, b)
        return Call(Name("int"), (Binary("/", a, b),))

    def emit(self, e: Emitter) -> Emission:
        if self.on_host() or self.dtype(0).is_float:
            return super().emit(e)
        return e.call("trunc_divide", e.operand(0), self.aligned(e) if self.config.axis is not None else e.operand(1))


class Pow(Pairwise):
    """The result has the base's dtype, whatever the exponent's is."""

    since, function = (1, 7, 12, 13, 15), "pow"

    def mixes(self) -> bool:
        return True

    def emit(self, e: Emitter) -> Emission:
        base, exponent = self.dtype(0), self.dtype(1)
        x, y = e.x(0), self.aligned(e) if self.config.axis is not None else e.operand(1)
        if base.is_float and isinstance(y, Literal) and y.text in ("2", "2.0"):
            return e.call("square", x)
        if base.is_float and isinstance(y, Literal):
            return Binary("**", x, y)
        power: Expr = Binary("**", x, y)
        promoted = dtypes.promote(base, exponent) if base.name != "uint64" and exponent.name != "uint64" else base
        if base is exponent or promoted is base:
            return power
        return e.method(power, "astype", base)


class And(Pairwise):
    since, function, result = (1, 7), "logical_and", dtypes.bool


class Or(Pairwise):
    since, function, result = (1, 7), "logical_or", dtypes.bool


class Xor(Pairwise):
    since, function, result = (1, 7), "logical_xor", dtypes.bool


class BitwiseAnd(Pairwise):
    since, operator = (18,), "&"


class BitwiseOr(Pairwise):
    since, operator = (18,), "|"


class BitwiseXor(Pairwise):
    since, operator = (18,), "^"


class Equal(Pairwise):
    since, operator, result = (1, 7, 11, 13, 19), "==", dtypes.bool


class Greater(Pairwise):
    since, operator, result = (1, 7, 9, 13), ">", dtypes.bool


class GreaterOrEqual(Pairwise):
    since, operator, result = (12, 16), ">=", dtypes.bool


class Less(Pairwise):
    since, operator, result = (1, 7, 9, 13), "<", dtypes.bool


class LessOrEqual(Pairwise):
    since, operator, result = (12, 16), "<=", dtypes.bool


@dataclass(frozen=True)
class BitShiftConfig:
    left: bool


class BitShift(Node[BitShiftConfig]):
    since = (11, 28)

    @classmethod
    def read(cls, a: Attributes) -> BitShiftConfig:
        return BitShiftConfig(a.string("direction", choices=("LEFT", "RIGHT")) == "LEFT")

    def infer(self) -> tuple[Type, ...]:
        return (TensorType(self.dtype(0), broadcast(self.shape(0), self.shape(1))),)

    def emit(self, e: Emitter) -> Emission:
        return Binary("<<" if self.config.left else ">>", e.x(0), e.operand(1))


@dataclass(frozen=True)
class ModConfig:
    fmod: bool = False


class Mod(Node[ModConfig]):
    """The remainder with the divisor's sign, or with fmod the dividend's."""

    since = (10, 13, 28)

    def infer(self) -> tuple[Type, ...]:
        return (TensorType(self.dtype(0), broadcast(self.shape(0), self.shape(1))),)

    def emit(self, e: Emitter) -> Emission:
        if self.config.fmod:
            return e.call("fmod", e.operand(0), e.operand(1))
        return Binary("%", e.operand(0), e.operand(1))


# -- any number of operands -------------------------------------------------------------------------------------------


LINE = 8
"""The most operands joined in one expression."""


@dataclass(frozen=True)
class Variadic(Plain, ABC):
    """One or more operands, joined pair by pair. Before opset 8 they had one shape."""

    function: ClassVar[str] = ""

    def infer(self) -> tuple[Type, ...]:
        return (TensorType(self.dtype(0), broadcast(*(self.shape(i) for i in range(len(self.inputs))))),)

    def emit(self, e: Emitter) -> Emission:
        out = e.x(0)
        for i in range(1, len(self.inputs)):
            if i % LINE == 0:  # so that a thousand operands nest no deeper than eight
                out = e.assign("joined", out)
            out = self.join(e, out, e.operand(i))
        return out

    def join(self, e: Emitter, a: Expr, b: Expr) -> Expr:
        return e.call(self.function, a, b)


@dataclass(frozen=True)
class Extreme(Variadic, ABC):
    """The extreme of sizes is a Python number."""

    builtin: ClassVar[str] = ""

    def infer(self) -> tuple[Type, ...]:
        numbers = [self.ints(i) for i in range(len(self.inputs))]
        held = [isinstance(a.type, ScalarType) or (a.value is not None and not a.value.shape) for a in self.inputs]
        if not all(held) or len(held) < 2 or not any(isinstance(a.type, ScalarType) for a in self.inputs):
            return super().infer()
        known = [n[0] for n in numbers if n]
        value = {"min": min, "max": max}[self.builtin](known) if len(known) == len(numbers) else None
        natural = all(isinstance(a.type, ScalarType) and a.type.natural for a in self.inputs if a.value is None)
        return (ScalarType(self.dtype(0), value, natural and all(n >= 0 for n in known)),)

    def emit(self, e: Emitter) -> Emission:
        if isinstance(self.outputs[0].type, ScalarType):
            return e.builtin(self.builtin, *(e.number(i) for i in range(len(self.inputs))))
        return super().emit(e)


class Max(Extreme):
    since, function, builtin = (1, 6, 8, 12, 13), "maximum", "max"


class Min(Extreme):
    since, function, builtin = (1, 6, 8, 12, 13), "minimum", "min"


class Sum(Variadic):
    since = (1, 6, 8, 13)

    def join(self, e: Emitter, a: Expr, b: Expr) -> Expr:
        return Binary("+", a, b)


class Mean(Sum):
    since = (1, 6, 8, 13)

    def emit(self, e: Emitter) -> Emission:
        total = super().emit(e)
        assert isinstance(total, Expr)
        return total if len(self.inputs) == 1 else Binary("/", total, lift(len(self.inputs)))


class Where(Plain):
    since = (9, 16)

    def infer(self) -> tuple[Type, ...]:
        y, z = self.dtype(1), self.dtype(2)
        if y is not z:
            raise Problem(f"chooses between {y} and {z}, expected one dtype")
        return (TensorType(y, broadcast(*(self.shape(i) for i in range(3)))),)

    def emit(self, e: Emitter) -> Emission:
        y, z = e.operand(1), e.operand(2)
        numbers = all(v is not None and v.size == 1 for v in (self.value(1), self.value(2)))
        if numbers and self.dtype(1).name != "float32":  # which two Python floats would become
            y = e.x(1)
        return e.call("where", e.x(0), y, z)


@dataclass(frozen=True)
class ClipConfig:
    """The bounds before opset 11, when they became inputs."""

    low: float | None = None
    high: float | None = None


class Clip(Node[ClipConfig]):
    """The input clamped between two bounds, either of which may be missing."""

    since, static = (1, 6, 11, 12, 13), (1, 2)

    @classmethod
    def read(cls, a: Attributes) -> ClipConfig:
        a.has("consumed_inputs")
        return ClipConfig(
            a.float("min") if a.has("min") else None,
            a.float("max") if a.has("max") else None,
        )

    def infer(self) -> tuple[Type, ...]:
        return (TensorType(self.dtype(0), self.shape(0)),)

    def emit(self, e: Emitter) -> Emission:
        low: Expr = e.operand(1) if self.has(1) else lift(self.config.low)
        high: Expr = e.operand(2) if self.has(2) else lift(self.config.high)
        return e.call("clip", e.x(0), low, *([] if high == lift(None) else [high]))
