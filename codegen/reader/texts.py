"""Finds texts that are not UTF-8, which protobuf returns as bytes; such files are refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..protobuf import AttributeProto, GraphProto, ModelProto, NodeProto, TypeProto, ValueInfoProto


def broken_text(model: ModelProto) -> bytes | None:
    """The first name or text of a model that is not UTF-8; None if all are."""
    texts: Iterable[Any] = (*_model(model), *_graph(model.graph))
    return next((t for t in texts if isinstance(t, bytes)), None)


def _model(model: ModelProto) -> Iterator[Any]:
    yield from (model.producer_name, model.producer_version, model.doc_string)
    yield from (i.domain for i in model.opset_import)
    for f in model.functions:
        yield from (f.name, f.domain, getattr(f, "overload", ""), *f.input, *f.output, *f.attribute)
        yield from (i.domain for i in f.opset_import)
        yield from _nodes(f.node)
        for a in f.attribute_proto:
            yield from _attribute(a)


def _graph(graph: GraphProto) -> Iterator[Any]:
    yield graph.name
    for t in (*graph.initializer, *(s.values for s in graph.sparse_initializer)):
        yield t.name
        for entry in t.external_data:
            yield from (entry.key, entry.value)
    for info in (*graph.input, *graph.output, *graph.value_info):
        yield from _info(info)
    yield from _nodes(graph.node)


def _info(info: ValueInfoProto) -> Iterator[Any]:
    yield info.name
    yield from _type(info.type)


def _type(t: TypeProto) -> Iterator[Any]:
    if t.HasField("tensor_type"):
        yield from (d.dim_param for d in t.tensor_type.shape.dim)
    elif t.HasField("sequence_type"):
        yield from _type(t.sequence_type.elem_type)
    elif t.HasField("optional_type"):
        yield from _type(t.optional_type.elem_type)


def _nodes(nodes: Iterable[NodeProto]) -> Iterator[Any]:
    for n in nodes:
        yield from (n.name, n.op_type, n.domain, getattr(n, "overload", ""), *n.input, *n.output)
        for a in n.attribute:
            yield from _attribute(a)


def _attribute(a: AttributeProto) -> Iterator[Any]:
    yield from (a.name, a.ref_attr_name)
    if a.HasField("g"):
        yield from _graph(a.g)
    if a.HasField("t"):
        yield a.t.name
        for entry in a.t.external_data:
            yield from (entry.key, entry.value)
    if a.HasField("tp"):
        yield from _type(a.tp)
