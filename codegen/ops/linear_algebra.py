"""Matrix products."""

from __future__ import annotations

from ..emit.emitter import Emission, Emitter, default
from ..emit.expression import Attribute, Binary, Expr
from ..ir.graph import Node
from ..ir.problem import Problem
from ..ir.types import Shape, TensorType, Type, broadcast
from ..ir.value import Value
from ..records import dataclass
from .attributes import Attributes
from .base import Plain, reshaped, transposed


@dataclass(frozen=True)
class GemmConfig:
    alpha: float
    beta: float
    trans_a: bool
    trans_b: bool


class Gemm(Node[GemmConfig]):
    """alpha · A' B' + beta · C; a dense layer if B and C are constants."""

    since, static = (1, 6, 7, 9, 11, 13), (1, 2)

    @classmethod
    def read(cls, a: Attributes) -> GemmConfig:
        a.has("broadcast")
        return GemmConfig(a.float("alpha", 1.0), a.float("beta", 1.0), a.flag("transA"), a.flag("transB"))

    def infer(self) -> tuple[Type, ...]:
        a, b, c = self.tensor(0), self.tensor(1), self.config
        for t in (a, b):
            if t.shape is not None and len(t.shape) != 2:
                raise Problem(f"expected matrices, found rank {len(t.shape)}")
        rows = None if a.shape is None else a.shape[1 if c.trans_a else 0]
        columns = None if b.shape is None else b.shape[0 if c.trans_b else 1]
        if a.shape is not None and b.shape is not None:
            inner = (a.shape[0 if c.trans_a else 1], b.shape[1 if c.trans_b else 0])
            if isinstance(inner[0], int) and isinstance(inner[1], int) and inner[0] != inner[1]:
                raise Problem(f"matrices {a.shape} and {b.shape} do not multiply")
        return (TensorType(a.dtype, (rows, columns)),)

    def bias(self) -> Value | None:
        """C as a layer's bias, if it is one value per column."""
        value, weight = self.value(2), self.value(1)
        if value is None or weight is None:
            return None
        columns = weight.shape[0 if self.config.trans_b else 1]
        return reshaped(value, (columns,)) if value.shape in ((columns,), (1, columns)) else None

    def emit(self, e: Emitter) -> Emission:
        c, weight, bias = self.config, self.value(1), self.bias()
        plain = c.alpha == 1.0 and not c.trans_a and (not self.has(2) or (c.beta == 1.0 and bias is not None))
        if weight is not None and plain and weight.dtype.is_float:
            return dense(e, transposed(weight) if c.trans_b else weight, bias)
        return e.call(
            "gemm",
            e.x(0),
            e.x(1),
            *([e.x(2)] if self.has(2) else []),
            alpha=default(c.alpha),
            beta=default(c.beta),
            trans_a=default(c.trans_a),
            trans_b=default(c.trans_b),
        )


def product_shape(a: Shape | None, b: Shape | None) -> Shape | None:
    """The shape of a @ b, by NumPy's rules. Raises Problem if they do not multiply."""
    if a is None or b is None:
        return None
    if not a or not b:
        raise Problem("a matrix product needs operands of rank 1 or more")
    left, right = (a if len(a) > 1 else (1, *a)), (b if len(b) > 1 else (*b, 1))
    if isinstance(left[-1], int) and isinstance(right[-2], int) and left[-1] != right[-2]:
        raise Problem(f"shapes {a} and {b} do not multiply")
    out = broadcast(left[:-2], right[:-2]) or ()
    return (*out, *(left[-2:-1] if len(a) > 1 else ()), *(right[-1:] if len(b) > 1 else ()))


def dense(e: Emitter, weight: Value, bias: Value | None) -> Expr:
    """Input 0 through a dense layer; if an embedding has the same weight, a product with the embedding's."""
    table = e.tied(weight)
    if table is not None:
        out = Binary("@", e.x(0), Attribute(table, "T"))
        return out if bias is None else Binary("+", out, e.parameter(e.node.inputs[2].name, bias))
    weights = {"weight": weight, "bias": bias}
    return e.apply(e.layer("Linear", *weight.shape, weights=weights, bias=default(bias is not None)), e.x(0))


class MatMul(Plain):
    """A matrix product as in NumPy; a dense layer without bias if the second operand is a constant matrix."""

    since, static = (1, 9, 13), (1,)

    def infer(self) -> tuple[Type, ...]:
        return (TensorType(self.dtype(0), product_shape(self.shape(0), self.shape(1))),)

    def emit(self, e: Emitter) -> Emission:
        weight = self.value(1)
        if weight is not None and len(weight.shape) == 2 and weight.dtype.is_float:
            return dense(e, weight, None)
        return Binary("@", e.x(0), e.x(1))


class Det(Plain):
    """The determinant of the last two axes."""

    since = (11, 22)

    def infer(self) -> tuple[Type, ...]:
        x = self.tensor(0)
        return (TensorType(x.dtype, None if x.shape is None else x.shape[:-2]),)

    def emit(self, e: Emitter) -> Emission:
        return e.call("det", e.x())
