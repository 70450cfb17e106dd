"""Emitter: the interface for an operator's `emit`, one object per node.

It turns inputs into expressions, makes calls of the functional layer, registers layers and parameters, and appends
statements if an operator needs more than one expression.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from emberlet import dtypes, functional, nn
from emberlet.dtypes import DType, decimal

from ..ir.argument import Argument
from ..ir.graph import MAX_DIMS, Graph
from ..ir.problem import Problem
from ..ir.types import ScalarType, ShapeType, as_tensor
from ..ir.value import Value
from .expression import Attribute, Call, Expr, Index, Liftable, Name, lift
from .statement import Statement

if TYPE_CHECKING:
    from ..ir.graph import Node
    from .block import Block

Emission = Expr | tuple[Expr, ...]
"""One expression (for several outputs: one whose value is a tuple), or one expression for each output."""


class Emitter:
    """The view of one node on the code that is being written."""

    def __init__(self, block: Block, node: Node[Any]) -> None:
        self.block = block
        self.node = node
        self._once: dict[int, Expr] = {}

    # -- inputs as expressions ----------------------------------------------------------------------------------------

    def x(self, i: int = 0) -> Expr:
        """Input i as a tensor (or, for sequences and optionals, as it is held)."""
        return self.tensor(self._argument(i))

    def optional(self, i: int) -> Expr | None:
        """Input i as a tensor, None if it is omitted."""
        return self.x(i) if self.node.has(i) else None

    def operand(self, i: int) -> Expr:
        """Input i for arithmetic with a tensor of the same dtype: as a Python number if possible."""
        a = self._argument(i)
        if isinstance(a.type, ScalarType) and a.value is None:
            return self.block.held(a)
        literal = self._scalar_literal(a)
        return self.tensor(a) if literal is None else literal

    def number(self, i: int) -> Expr:
        """Input i, of one element, as a Python number."""
        a = self._argument(i)
        if a.value is not None:
            return lift(shortest(a.value))
        if isinstance(a.type, ScalarType):
            return self.block.held(a)
        if isinstance(a.type, ShapeType) and len(a.type.dims) == 1:
            return self.index(self.block.held(a), 0)
        return self._as_number(a)

    def integer(self, i: int) -> Expr:
        """Input i, of one element, as a Python int: an axis or a count. Raises Problem if it is not an integer."""
        dtype = as_tensor(self._argument(i).type).dtype
        if not dtype.is_integer:
            raise Problem(f"input {i} is {dtype}; expected an integer")
        return self.number(i)

    def _as_number(self, a: Argument) -> Expr:
        """A tensor of one element as a number: `int(n)`, or `float(n)` of an input, which also accept a number from the
        caller; else `x.item()`, because a tensor on MicroPython has no `float(x)`."""
        dtype = as_tensor(a.type).dtype
        if dtype.is_integer:
            return self.builtin("int", self.tensor(a))
        if dtype.is_float and any(a.name == i.name for i in self.block.module.model.graph.inputs):
            return self.builtin("float", self.tensor(a))
        return self.method(self.tensor(a), "item")

    def ints(self, i: int) -> Expr:
        """Input i, of rank 0 or 1 and integer, as a tuple of ints (or, from a tensor, a list)."""
        a = self._argument(i)
        if a.value is not None:
            if a.value.size > max(MAX_DIMS, len(self.node.outputs)):
                raise Problem(f"input {i} lists {a.value.size} sizes or axes; at most {MAX_DIMS} are supported")
            return lift(a.value.ints())
        if isinstance(a.type, ShapeType):
            return self.block.held(a)
        if isinstance(a.type, ScalarType):
            return lift((self.block.held(a),))
        dtype, shape = as_tensor(a.type).dtype, as_tensor(a.type).shape
        if not dtype.is_integer:
            raise Problem(f"input {i} lists sizes or axes, and is {dtype}; expected int64")
        if shape is not None and len(shape) > 1:
            raise Problem(f"input {i} lists sizes or axes, and has shape {shape}; expected one row")
        if shape is None:
            return self.method(self.method(self.tensor(a), "flatten"), "tolist")
        if shape == ():
            return lift((self._as_number(a),))
        return self.method(self.tensor(a), "tolist")

    def held(self, i: int) -> Expr:
        """Input i as the generated code holds it: a tensor, a number, a tuple, a list or None."""
        a = self._argument(i)
        if a.value is not None and self.node.hosted(i):
            return lift(a.value.item() if not a.value.shape else tuple(a.value.list()))
        return self.block.held(a)

    def tensor(self, a: Argument) -> Expr:
        """An argument as a tensor."""
        if a.value is not None:
            return self.block.constant(a)
        held = self.block.held(a)
        if isinstance(a.type, ScalarType | ShapeType):
            return self.create("asarray", held, dtype=as_tensor(a.type).dtype)
        return held

    def _argument(self, i: int) -> Argument:
        if not self.node.has(i):
            raise Problem(f"input {i} is missing")
        return self.node.inputs[i]

    def _scalar_literal(self, a: Argument) -> Expr | None:
        """A one-element constant as a Python number, if broadcasting it cannot add a dimension."""
        value = a.value
        if value is None or value.size != 1 or value.dtype.kind == "string" or value.dtype.bits < 8:
            return None
        if self._least_rank is None or self._least_rank < len(value.shape):
            return None
        return lift(shortest(value))

    @cached_property
    def _least_rank(self) -> int | None:
        """The smallest rank of the inputs that are no constants; None if there are none, or one of unknown rank."""
        shapes = [as_tensor(a.type).shape for a in self.node.inputs if a.present and a.value is None]
        ranks = [len(s) for s in shapes if s is not None]
        return min(ranks) if ranks and len(ranks) == len(shapes) else None

    # -- building expressions -----------------------------------------------------------------------------------------

    def call(self, function: str, *args: Liftable, **kwargs: Liftable | Default) -> Expr:
        """`F.function(args, kwargs)`; a keyword `default(value)` is omitted if the function has that default."""
        named = keywords(getattr(functional, function), kwargs)
        return Call(Attribute(Name("F"), function), tuple(lift(a) for a in args), named)

    def create(self, function: str, *args: Liftable, **kwargs: Liftable | Default) -> Expr:
        """A call that makes a tensor from no tensor: the model's backend is passed along."""
        return self.call(function, *args, **kwargs, backend=self.block.module.backend())

    def filled(self, shape: Liftable, number: int | float | bool | str, dtype: DType) -> Expr:
        """`F.zeros`, `F.ones` or `F.full(shape, number)`; the dtype is omitted if it is the default."""
        return self.block.module.fill(lift(shape), number, dtype)

    def method(self, x: Expr, name: str, *args: Liftable, **kwargs: Liftable) -> Expr:
        """`x.name(args, kwargs)`"""
        return Call(Attribute(x, name), tuple(lift(a) for a in args), _lifted(kwargs))

    def apply(self, function: Expr, *args: Liftable, **kwargs: Liftable) -> Expr:
        """`function(args, kwargs)`"""
        return Call(function, tuple(lift(a) for a in args), _lifted(kwargs))

    def builtin(self, name: str, *args: Liftable) -> Expr:
        """`name(args)` for a Python built-in."""
        return Call(Name(name), tuple(lift(a) for a in args))

    def shortest(self, value: Value) -> int | float | bool | str:
        """The only element of a constant, as its shortest decimal."""
        return shortest(value)

    def index(self, x: Expr, key: Liftable) -> Expr:
        return Index(x, lift(key))

    def shape_of(self, x: Expr) -> Expr:
        return Attribute(x, "shape")

    # -- layers, parameters, statements -------------------------------------------------------------------------------

    def layer(
        self, kind: str, *args: Liftable, weights: Mapping[str, Value | None], **kwargs: Liftable | Default
    ) -> Expr:
        """`self.name`, a layer `nn.kind(args, kwargs)` of the model with these weights (None: the layer has none)."""
        given = {k: v for k, v in weights.items() if v is not None}
        named = keywords(getattr(nn, kind), kwargs)
        return self.block.module.layer(self.node, kind, tuple(lift(a) for a in args), named, given)

    def tied(self, weight: Value) -> Expr | None:
        """`self.name.weight.val()` of the embedding whose table is this matrix transposed, if there is one (tied
        weights)."""
        return self.block.module.tied(weight)

    def parameter(self, name: str, value: Value) -> Expr:
        """`self.name`, a constant of the model."""
        return self.block.module.parameter(name, value)

    def push(self, *statements: Statement) -> None:
        """Statements that come before the node's own."""
        self.block.statements.extend(statements)

    def assign(self, hint: str, value: Expr) -> Expr:
        """A new local variable that holds `value`; it lives until the end of the block."""
        return self.block.local(hint, value)

    def results(self, call: Expr, count: int) -> Emission:
        """The first of a call's `count` results, as many as the node has outputs."""
        wanted = len(self.node.outputs)
        if wanted == count:
            return call
        if wanted == 1:
            return self.index(call, 0)
        found = self.assign("found", call)
        return tuple(self.index(found, i) for i in range(wanted))

    def once(self, i: int, hint: str, value: Expr) -> Expr:
        """`assign`, but only once for each key i."""
        if i not in self._once:
            self._once[i] = self.assign(hint, value)
        return self._once[i]

    def fresh(self, hint: str) -> str:
        """The name of a new local variable."""
        return self.block.fresh(hint)

    def targets(self) -> tuple[Expr, ...]:
        """The variables of the node's outputs, chosen now, for statements that assign them in several places."""
        return self.block.early_targets(self.node)

    def body(
        self, graph: Graph, inputs: Sequence[Expr | None], targets: Sequence[str] = ()
    ) -> tuple[list[Statement], tuple[Expr, ...]]:
        """A subgraph's statements and its outputs (as tensors, lists, …), its inputs bound to these expressions.

        targets: variables that the outputs may take at once, because nothing in the subgraph reads them."""
        return self.block.nested(graph, inputs, targets)


class Default:
    """A keyword argument that is omitted if the called function or layer has the same default."""

    def __init__(self, value: Liftable) -> None:
        self.value = value

    def omitted(self, default: Liftable) -> bool:
        """Whether the value is this default; ONNX's attributes are float32 and are written as such."""
        value = self.value
        if isinstance(value, float) and isinstance(default, float):
            return value in (default, decimal.shortest(default, dtypes.float32))
        if isinstance(value, DType):
            return default in (value, value.name)
        return value == default and (
            type(value) is type(default) or (isinstance(value, str) and isinstance(default, str))
        )


def default(value: Liftable) -> Default:
    return Default(value)


def default_of(function: Callable[..., object], parameter: str) -> Liftable:
    """The default of a parameter of a function or layer: ONNX's defaults are written nowhere else."""
    return _defaults(function)[parameter]


@cache
def _defaults(function: Callable[..., object]) -> dict[str, Liftable]:
    return {name: p.default for name, p in inspect.signature(function).parameters.items()}


def keywords(function: Callable[..., object], kwargs: Mapping[str, Liftable | Default]) -> tuple[tuple[str, Expr], ...]:
    out = []
    for k, v in kwargs.items():
        if isinstance(v, Default):
            if v.omitted(default_of(function, k)):
                continue
            v = v.value
        out.append((k, lift(v)))
    return tuple(out)


def _lifted(kwargs: Mapping[str, Liftable]) -> tuple[tuple[str, Expr], ...]:
    return tuple((k, lift(v)) for k, v in kwargs.items())


def shortest(value: Value) -> int | float | bool | str:
    """The only element of a constant; a float32 as the shortest decimal that rounds to it."""
    item = value.item()
    return decimal.shortest(item, dtypes.float32) if isinstance(item, float) and value.dtype.bits == 32 else item
