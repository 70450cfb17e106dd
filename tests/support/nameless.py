"""Removes the names from models, as tools do that number everything."""

from __future__ import annotations

import random
from collections.abc import Iterator

import onnx


def stripped(model: onnx.ModelProto, seed: int = 0) -> onnx.ModelProto:
    """A copy whose nodes, weights and values have drawn numbers for names, without metadata; inputs and outputs keep
    theirs."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    numbers = list(range(100_000))
    random.Random(seed).shuffle(numbers)
    kept = {v.name for v in (*made.graph.input, *made.graph.output)}
    names: dict[str, str] = {"": ""}
    for graph in _graphs(made.graph):
        del graph.value_info[:]
        del graph.metadata_props[:]
        graph.name, graph.doc_string = "g", ""
        for node in graph.node:
            del node.metadata_props[:]
            node.name, node.doc_string = "", ""
            for fields in (node.input, node.output):
                fields[:] = [_new(n, names, kept, numbers) for n in fields]
        for v in (*graph.initializer, *graph.input, *graph.output):
            v.name = _new(v.name, names, kept, numbers)
        for s in graph.sparse_initializer:
            s.values.name = _new(s.values.name, names, kept, numbers)
    del made.metadata_props[:]
    return made


def _new(name: str, names: dict[str, str], kept: set[str], numbers: list[int]) -> str:
    if name in kept:
        return name
    if name not in names:
        names[name] = str(numbers.pop())
    return names[name]


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for a in node.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                yield from _graphs(a.g)
            for g in a.graphs:
                yield from _graphs(g)
