"""Patterns of values, written as formulas: `x * sigmoid(alpha * x)`.

A product matches through nested products, quotients, powers and roots, in any order, and its numbers are multiplied; a
sum matches in either order. The same name stands for the same value everywhere. Exporters write the same function in
many of these ways. Powers of a value are added only where that keeps its domain: x * x / x is not x at 0, nor is
sqrt(x) * sqrt(x) below it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any, NamedTuple

from emberlet import dtypes
from emberlet.dtypes import DType

from ..ir.argument import Argument
from ..ir.graph import Node
from ..ir.types import TensorType
from ..ops.arithmetic import Add, Div, Mul, Pow, Sub
from ..ops.elementwise import Reciprocal, Sqrt
from .rewriting import Walk, number

MOST = 3  # different factors of a formula
DEEPEST = 16  # products, quotients and powers within each other that a formula is written as

Found = dict[str, Any]
"""What the names of a pattern stand for: Arguments, and floats for those of numbers."""


class Parts(NamedTuple):
    """What a node multiplies: the product of the constants, which have this dtype, and factors with their powers."""

    constant: float
    factors: list[tuple[Argument, float]]
    dtype: DType


class Pattern:
    """A formula. Matches values; operators make larger ones."""

    def matches(self, a: Argument, walk: Walk, found: Found) -> Iterator[Found]:
        """Yields `found` with what the names stand for, for each way in which a value is this."""
        raise NotImplementedError

    def __mul__(self, other: Pattern | float) -> Product:
        a, b = product_of(self), product_of(other)
        return Product(a.number * b.number, a.names + b.names, a.factors + b.factors)

    __rmul__ = __mul__

    def __pow__(self, power: float) -> Product:
        return Product(1.0, (), ((self, power),))

    def __truediv__(self, other: Pattern | float) -> Product:
        if not isinstance(other, Pattern):
            return self * (1 / other)
        whole = product_of(other)
        return self * Product(1 / whole.number, (), tuple((p, -power) for p, power in whole.factors))

    def __add__(self, other: Pattern | float) -> Sum:
        return Sum(self, other, Add)

    __radd__ = __add__

    def __sub__(self, other: Pattern) -> Sum:
        return Sum(self, other, Sub)


class Named(Pattern):
    """Any value."""

    def __init__(self, name: str) -> None:
        self.name = name

    def matches(self, a: Argument, walk: Walk, found: Found) -> Iterator[Found]:
        if self.name not in found or found[self.name].name == a.name:
            yield {**found, self.name: a}


class Number(Pattern):
    """A constant; `value` if that is given."""

    def __init__(self, name: str, value: float | None = None) -> None:
        self.name, self.value = name, value

    def matches(self, a: Argument, walk: Walk, found: Found) -> Iterator[Found]:
        n = number(a)
        if n is not None and (self.value is None or close(n, self.value, dtype_of(a))):
            yield {**found, self.name: n}


class Sum(Pattern):
    """A sum or a difference of two."""

    def __init__(self, left: Pattern, right: Pattern | float, kind: type[Node[Any]]) -> None:
        self.left = left
        self.right = right if isinstance(right, Pattern) else Number("", right)
        self.kind = kind

    def matches(self, a: Argument, walk: Walk, found: Found) -> Iterator[Found]:
        node = walk.made_by(a, self.kind)
        if node is not None:
            for left, right in (node.inputs, node.inputs[::-1])[: 2 if self.kind is Add else 1]:
                for first in self.left.matches(left, walk, found):
                    yield from self.right.matches(right, walk, first)


class Call(Pattern):
    """The first output of an operator of one operand, if it fulfills a condition."""

    def __init__(self, kind: type[Any], x: Pattern, condition: Callable[[Any], bool] = lambda node: True) -> None:
        self.kind, self.x, self.condition = kind, x, condition

    def matches(self, a: Argument, walk: Walk, found: Found) -> Iterator[Found]:
        node = walk.made_by(a, self.kind)
        if node is not None and self.condition(node):
            yield from self.x.matches(node.inputs[0], walk, found)


class Product(Pattern):
    """number · the numbers called `names`, of which there is at most one, · the factors to their powers."""

    def __init__(self, number: float, names: tuple[str, ...], factors: tuple[tuple[Pattern, float], ...]) -> None:
        self.number, self.names, self.factors = number, names, factors

    def matches(self, a: Argument, walk: Walk, found: Found) -> Iterator[Found]:
        yield from self.made_of(Parts(1.0, [(a, 1.0)], dtype_of(a)), walk, found)
        node = walk.producer(a)
        parts = None if node is None else product(node, walk)
        if parts is not None:
            yield from self.made_of(parts, walk, found)

    def made_of(self, parts: Parts, walk: Walk, found: Found) -> Iterator[Found]:
        """As `matches`, for a product."""
        constant, factors, dtype = parts
        if len(factors) != len(self.factors) or not (self.names or close(constant, self.number, dtype)):
            return
        numbers = dict.fromkeys(self.names, constant / self.number)
        for order in permutations(factors):
            if all(power == wanted for (_, power), (_, wanted) in zip(order, self.factors, strict=True)):
                yield from self._each([a for a, _ in order], walk, {**found, **numbers})

    def _each(self, values: list[Argument], walk: Walk, found: Found) -> Iterator[Found]:
        if not values:
            yield found
            return
        pattern, _ = self.factors[-len(values)]
        for first in pattern.matches(values[0], walk, found):
            yield from self._each(values[1:], walk, first)


def product_of(a: Pattern | float) -> Product:
    if isinstance(a, Product):
        return a
    if isinstance(a, Number):
        return Product(1.0, (a.name,), ())
    return Product(1.0, (), ((a, 1.0),)) if isinstance(a, Pattern) else Product(float(a), (), ())


def sqrt(x: Pattern) -> Product:
    return x**0.5


def close(n: float, wanted: float, dtype: DType = dtypes.float32) -> bool:
    """Whether a constant is this number: a whole one or a half exactly, others to the digits that files write and their
    dtype holds."""
    digits = {dtypes.float16: 2.0**-11, dtypes.bfloat16: 2.0**-8}.get(dtype, 1e-4)
    return n == wanted if not 2 * wanted % 1 else math.isclose(n, wanted, rel_tol=digits)


def dtype_of(a: Argument) -> DType:
    return a.type.dtype if isinstance(a.type, TensorType) else dtypes.float32


def product(node: Node[Any], walk: Walk, depth: int = 0) -> Parts | None:
    """What a node multiplies; None if that is more than formulas have. Products that others read, too, are factors."""
    constant = 1.0
    powers: dict[tuple[str, bool, int | None], tuple[Argument, float]] = {}
    for a, power in operands(node):
        n = number(a)
        if n is not None and (n > 0 or power == 1 or (n < 0 and power == -1)):
            constant *= n**power
            continue
        inner = walk.producer(a)
        factors = [(a, 1.0)]
        if abs(power) == 1 and inner is not None and operands(inner) and (walk.alone(a) or is_power(inner)):
            within = product(inner, walk, depth + 1) if depth < DEEPEST else None
            if within is None:
                return None
            constant *= within.constant**power if within.constant else 0.0
            factors = within.factors
        for factor, own in factors:
            own *= power
            key = factor.name, own > 0, None if own and own % 1 == 0 else len(powers)
            powers[key] = factor, powers.get(key, (factor, 0.0))[1] + own
        if len(powers) > MOST:
            return None
    return Parts(constant, list(powers.values()), dtype_of(node.outputs[0]))


def operands(node: Node[Any]) -> list[tuple[Argument, float]]:
    """The factors of a product, a quotient, a power or a root, with their powers; none of other nodes."""
    match node:
        case Mul():
            return [(a, 1.0) for a in node.inputs]
        case Div():
            return [(node.inputs[0], 1.0), (node.inputs[1], -1.0)]
        case Reciprocal():
            return [(node.inputs[0], -1.0)]
        case Sqrt():
            return [(node.inputs[0], 0.5)]
        case Pow() if (power := number(node.inputs[1])) is not None:
            return [(node.inputs[0], power)]
        case _:
            return []


def is_power(node: Node[Any]) -> bool:
    """Whether a node is a power of one value."""
    return not isinstance(node, Mul | Div) or (isinstance(node, Div) and number(node.inputs[0]) == 1.0)
