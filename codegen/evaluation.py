"""Evaluation: computes the outputs of a node with constant inputs by the node's generated code.

Each operator has a single meaning: its emitted code, run on the functional layer. Folding uses that same code.
"""

from __future__ import annotations

from typing import Any

from emberlet.dtypes import DType
from emberlet.errors import EmberletError
from emberlet.host.digests import blake2b
from emberlet.tensor import Tensor

from .budget import Exceeded, counted, remembered
from .ir.argument import Argument, Constant, Dynamic
from .ir.graph import Graph, Model, Node
from .ir.keys import node_key
from .ir.problem import Problem, explained
from .ir.types import ScalarType, ShapeType, TensorType, product
from .ir.value import Fill, Inline, Text, Transposed, Value, ints_value, scalar_value
from .records import replace

SMALL = 1024


def known(node: Node[Any], limit: int = SMALL) -> Node[Any]:
    """The node with the known values of its outputs: sizes, and results of small constants.

    The types of later nodes depend on it (a Reshape's shape, a Slice's axes); the dead-code pass removes the node.
    """
    outputs = []
    for o in node.outputs:
        value: Value | None = None
        t = o.type
        if isinstance(t, ScalarType) and isinstance(t.value, int):
            value = scalar_value(t.value, t.dtype)
        elif isinstance(t, ShapeType) and all(isinstance(d, int) for d in t.dims):
            value = ints_value(tuple(d for d in t.dims if isinstance(d, int)))
        if value is not None:
            o = replace(o, type=TensorType(value.dtype, value.shape), source=Constant(value))
        outputs.append(o)
    node = replace(node, outputs=tuple(outputs))
    if node.absorbed or node.widens or any(o.value is not None for o in outputs) or not foldable(node):
        return node
    types = [o.type for o in outputs if o.present]
    sizes = [product(t.shape) if isinstance(t, TensorType) and t.shape is not None else None for t in types]
    if any(n is None or n > limit for n in sizes) or sum(a.value.size for a in node.inputs if a.value) > limit:
        return node
    free = node.folded()
    try:
        values = evaluate(node) if free is None else (free,)
    except Exceeded:
        return node  # left to be computed at run time
    pairs = zip(outputs, (named(node, i, v) for i, v in enumerate(values)), strict=True)
    return replace(
        node,
        outputs=tuple(
            o if v is None else replace(o, type=TensorType(v.dtype, v.shape), source=Constant(v)) for o, v in pairs
        ),
    )


def named(node: Node[Any], i: int, value: Value | None) -> Value | None:
    """Output i's value, distinguished from others with the same elements by its computation."""
    if value is None or value.origin is not None or isinstance(value.source, Fill | Transposed):
        return value
    return replace(value, origin=f"{computation(node)} {i}")


def computation(node: Node[Any]) -> str:
    """A digest of a node's operation and constants: one line, however long the chain behind it."""
    return blake2b(repr(node_key(node)).encode(), digest_size=16).hexdigest()


def foldable(node: Node[Any]) -> bool:
    """Whether every input of a node is constant and running it twice gives the same result."""
    inputs = [a for i, a in enumerate(node.inputs) if a.present and i not in node.typing]
    return (
        node.pure
        and not node.unbounded
        and not node.graphs()
        and bool(inputs)
        and all(a.value is not None for a in inputs)
    )


def evaluate(node: Node[Any], stored: int = 0) -> tuple[Value | None, ...]:
    """A value for each output, None for omitted ones.

    stored: the number of elements of the model's file that it reads, which extend the budget. Raises Problem if the
    node cannot be run, Exceeded if it would take more memory or time than the budget has.
    """
    if stored:
        return _evaluate(node, stored)
    return remembered(computation(node), node, lambda: _evaluate(node, 0), _small)


def _small(values: tuple[Value | None, ...]) -> bool:
    return sum(v.size for v in values if v) <= SMALL


def _evaluate(node: Node[Any], stored: int) -> tuple[Value | None, ...]:
    from . import weights
    from .emit.instance import instantiate
    from .emit.module import ModuleWriter

    outputs = tuple(replace(o, source=Dynamic()) for o in node.outputs if o.present)
    # Reshaped constants are inputs here: what a layer would absorb is passed in, so there are no fields.
    graph = Graph("folded", (replace(node, outputs=_dynamic(node.outputs)),), (), outputs)
    try:
        with counted(stored) as home:
            written = ModuleWriter(Model("folded", graph, (), (), tuple(o.name for o in outputs))).write()
            if written.problems:
                raise Problem(written.problems[0])
            instance = instantiate(written, "folded", home)
            instance.load_record(weights.tensors(written.record, home), layout="burn")
            results = instance()
            results = results if isinstance(results, tuple) else (results,)
            values = iter(results)
            return tuple(value_of(next(values)) if o.present else None for o in node.outputs)
    except Problem:
        raise
    except Exception as error:  # the operator's own code, on operands chosen by a file
        names = [a.name for a in node.inputs if a.present]
        if isinstance(error, MemoryError):  # not a Problem: what follows from the result would be reported instead
            raise MemoryError(f"on constants {names}: {error}".rstrip(": ")) from error
        said = str(error) if isinstance(error, EmberletError) else explained(error)
        raise Problem(f"on constants {names} it fails: {said}") from error


def _dynamic(outputs: tuple[Argument, ...]) -> tuple[Argument, ...]:
    return tuple(replace(o, source=Dynamic()) for o in outputs)


def value_of(x: Any) -> Value | None:
    """A tensor as a Value; None for lists and the like."""
    if not isinstance(x, Tensor):
        return None
    if x.dtype.kind == "string":
        return Value(x.dtype, x.shape, Text(tuple(x.backend.to_list(x))))
    return Value(x.dtype, x.shape, uniform(bytes(x.backend.to_bytes(x)), x.dtype, x.size))


def uniform(data: bytes, dtype: DType, count: int) -> Inline | Fill:
    """The elements, as a fill if they are all equal."""
    width = dtype.bits // 8
    if count > 1 and width and data == data[:width] * count:
        number = Value(dtype, (), Inline(data[:width])).item()
        assert not isinstance(number, str)
        return Fill(number)
    return Inline(data)
