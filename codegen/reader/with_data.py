"""Reads a model as onnx's ModelProto with its external data, under the limits of the reader. Needs the package onnx."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..ir.problem import refusing
from . import read_model
from .parsing import by_onnx
from .values import Values

if TYPE_CHECKING:
    from onnx import ModelProto


def model_with_data(path: str) -> ModelProto:
    """The model in a file with its external data: what `read_model` takes, under the same limits. Raises
    EmberletError, OSError."""
    with refusing(path):
        read_model(path)
        found: Any = by_onnx(Path(path).read_bytes())
        values = Values(Path(path).parent)
        for tensor in tensors(found):
            if tensor.data_location:
                held: Any = values.value(tensor).source
                tensor.raw_data = bytes(held.load())
                del tensor.external_data[:]
                tensor.data_location = 0
    return found


def tensors(model: Any) -> Iterator[Any]:
    """All tensors of a model."""
    graphs: list[Any] = [model.graph, *model.functions]
    while graphs:
        graph = graphs.pop()
        if hasattr(graph, "initializer"):
            yield from graph.initializer
            yield from (t for sparse in graph.sparse_initializer for t in (sparse.values, sparse.indices))
        for a in (a for node in graph.node for a in node.attribute):
            yield from (a.t, *a.tensors)
            yield from (t for sparse in (a.sparse_tensor, *a.sparse_tensors) for t in (sparse.values, sparse.indices))
            graphs += [a.g, *a.graphs]
