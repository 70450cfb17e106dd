"""The typed IR as text, for `emberlet inspect`: nested braces, one field per line."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from emberlet.dtypes import DType

from .ir.argument import Argument, Constant, Dynamic, Static
from .ir.graph import Graph, Node
from .ir.problem import refusing
from .ir.types import MapType, OptionalType, ScalarType, SequenceType, ShapeType, TensorType, Type, describe_shape
from .ir.value import Value

if TYPE_CHECKING:
    from onnx import ModelProto

STEP = "    "


def inspect(source: str | os.PathLike[str] | bytes | ModelProto) -> str:
    """The typed IR of a model as it is read, before any pass, and its number of nodes per family.

    Raises ModelError, OSError.
    """
    from .reader import read_model

    with refusing(source):
        graph = read_model(source).graph
        return format_graph(graph) + summary(graph) + "\n"


def summary(graph: Graph) -> str:
    """ "12 nodes: 5 convolution, 4 elementwise, 3 pooling", subgraphs included."""
    counts = Counter(node.family for node in graph.walk())
    said = ", ".join(f"{n} {name}" for name, n in sorted(counts.items(), key=lambda item: (-item[1], item[0])))
    total = counts.total()
    return f"{total} node{'' if total == 1 else 's'}" + (f": {said}" if said else "")


def format_graph(graph: Graph) -> str:
    """A graph with its nodes, inputs and outputs."""
    return "\n".join(_graph(graph)) + "\n"


def _block(head: str, items: list[list[str]], brackets: str = "{}") -> list[str]:
    """`head {`, the items indented with a comma after each, `}`."""
    if not items:
        return [head + brackets]
    lines = [head + brackets[0]]
    for item in items:
        lines += [STEP + line for line in item]
        lines[-1] += ","
    return [*lines, brackets[1]]


def _field(name: str, value: list[str]) -> list[str]:
    return [f"{name}: {value[0]}", *value[1:]]


def _graph(graph: Graph) -> list[str]:
    return _block(
        "Graph ",
        [
            _field("nodes", _block("", [_node(n) for n in graph.nodes], "[]")),
            _field("inputs", _block("", [_argument(a) for a in graph.inputs], "[]")),
            _field("outputs", _block("", [_argument(a) for a in graph.outputs], "[]")),
        ],
    )


def _node(node: Node[Any]) -> list[str]:
    items = [
        [f"name: {node.name!r}"],
        _field("inputs", _block("", [_argument(a) for a in node.inputs], "[]")),
        _field("outputs", _block("", [_argument(a) for a in node.outputs], "[]")),
    ]
    if node.config is not None:
        items.append(_field("config", _value(node.config)))
    return _block(node.op() + " ", items)


def _argument(a: Argument) -> list[str]:
    if not a.present:
        return ["Absent"]
    source = {Dynamic: "Dynamic", Constant: "Constant", Static: "Static"}[type(a.source)]
    return _block("Argument ", [[f"name: {a.name!r}"], _field("type", _type(a.type)), [f"value_source: {source}"]])


def _type(t: Type) -> list[str]:
    match t:
        case TensorType():
            shape = "None" if t.shape is None else describe_shape(t.shape)
            static = t.static_shape
            return _block(
                "Tensor ",
                [[f"dtype: {t.dtype.name}"], [f"rank: {t.rank}"], [f"shape: {shape}"], [f"static_shape: {static}"]],
            )
        case ScalarType():
            return _block("Scalar ", [[f"dtype: {t.dtype.name}"], [f"value: {_dim(t.value)}"]])
        case ShapeType():
            return _block("Shape ", [[f"rank: {len(t.dims)}"], ["dims: (" + ", ".join(map(_dim, t.dims)) + ")"]])
        case SequenceType():
            return _block("Sequence ", [_field("element", _type(t.element))])
        case MapType():
            return _block("Map ", [[f"key: {t.key.name}"], [f"value: {t.value.name}"]])
        case OptionalType():
            return _block("Optional ", [_field("element", _type(t.element))])
        case _:
            return [type(t).__name__.removesuffix("Type")]


def _dim(d: int | str | None) -> str:
    return "?" if d is None else str(d)


def _value(value: Any) -> list[str]:
    if isinstance(value, Graph):
        return _graph(value)
    if isinstance(value, Value):
        return [f"Value {{ dtype: {value.dtype.name}, shape: {value.shape} }}"]
    if isinstance(value, DType):
        return [value.name]
    if isinstance(value, Enum):
        return [f"{type(value).__name__}.{value.name}"]
    if is_dataclass(value) and not isinstance(value, type):
        if isinstance(value, TensorType | ScalarType | ShapeType | SequenceType | OptionalType | MapType):
            return _type(value)
        items = [_field(f.name, _value(getattr(value, f.name))) for f in fields(value)]
        return _block(type(value).__name__ + " ", items)
    return [repr(value)]
