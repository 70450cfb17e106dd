"""The typed IR as plain dicts and lists, for `emberlet inspect --json`."""

from __future__ import annotations

import os
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from emberlet.dtypes import DType

from .ir.argument import Argument
from .ir.graph import Graph, Node
from .ir.types import MapType, OptionalType, ScalarType, SequenceType, ShapeType, TensorType, Type
from .ir.value import Value

if TYPE_CHECKING:
    from onnx import ModelProto

SMALL = 64  # elements: of a larger constant only dtype and shape are written


def as_json(source: str | os.PathLike[str] | bytes | ModelProto) -> dict[str, Any]:
    """A model as plain values for `json.dumps`: its name, opsets, inputs, outputs and nodes, before any pass.

    A dimension is a number, a name, or None if unknown. A value has `type`, `source` (dynamic, constant, static) and,
    where it is a constant of up to 64 elements, `value`. Raises ModelError, OSError.
    """
    from .ir import read

    model = read(source)
    return {
        "name": model.name,
        "source": model.source,
        "producer": model.producer,
        "opsets": {domain or "ai.onnx": version for domain, version in model.opsets},
        **_graph(model.graph),
    }


def _graph(graph: Graph) -> dict[str, Any]:
    return {
        "inputs": [_argument(a) for a in graph.inputs],
        "outputs": [_argument(a) for a in graph.outputs],
        "nodes": [_node(n) for n in graph.nodes],
    }


def _node(node: Node[Any]) -> dict[str, Any]:
    return {
        "name": node.name,
        "op": node.op(),
        "domain": node.domain or "ai.onnx",
        "family": node.family,
        "inputs": [_argument(a) for a in node.inputs],
        "outputs": [_argument(a) for a in node.outputs],
        "config": _config(node.config),
    }


def _argument(a: Argument) -> dict[str, Any] | None:
    if not a.present:
        return None
    out: dict[str, Any] = {"name": a.name, "type": _type(a.type), "source": type(a.source).__name__.lower()}
    if a.value is not None and a.value.size <= SMALL:
        out["value"] = [_number(v) for v in a.value.list()]
    return out


def _type(t: Type) -> dict[str, Any]:
    match t:
        case TensorType():
            return {"kind": "tensor", "dtype": t.dtype.name, "shape": None if t.shape is None else list(t.shape)}
        case ScalarType():
            return {"kind": "scalar", "dtype": t.dtype.name, "value": t.value}
        case ShapeType():
            return {"kind": "shape", "dims": list(t.dims)}
        case SequenceType() | OptionalType():
            kind = "sequence" if isinstance(t, SequenceType) else "optional"
            return {"kind": kind, "element": _type(t.element)}
        case MapType():
            return {"kind": "map", "key": t.key.name, "value": t.value.name}
        case _:
            return {"kind": "unknown"}


def _number(v: Any) -> Any:
    """A number for JSON, which has no infinities and no NaN: they become text."""
    return repr(v) if isinstance(v, float) and (v != v or v in (float("inf"), float("-inf"))) else v


def _config(held: Any) -> Any:
    if isinstance(held, Graph):
        return _graph(held)
    if isinstance(held, Value):
        out: dict[str, Any] = {"dtype": held.dtype.name, "shape": list(held.shape)}
        return out | ({"value": [_number(v) for v in held.list()]} if held.size <= SMALL else {})
    if isinstance(held, DType):
        return held.name
    if isinstance(held, Enum):
        return held.value
    if isinstance(held, TensorType | ScalarType | ShapeType | SequenceType | OptionalType | MapType):
        return _type(held)
    if is_dataclass(held) and not isinstance(held, type):
        return {f.name: _config(getattr(held, f.name)) for f in fields(held)}
    if isinstance(held, tuple | list):
        return [_config(v) for v in held]
    return _number(held)
