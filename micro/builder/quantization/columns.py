"""Columns of tables: numbers of different ranges in one input, each of which gets a range of its own.

A single grid over an age and an income leaves one step to the age. So `put` first shifts and scales each number of such
an input: as the scaler does that the model begins with, or, in front of a dense layer, to the column's range over the
samples, which the layer's weights then undo.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import isinf, prod

import numpy as np

from ..graph import Columns, Graph, renamed
from ..kernels.dot import DotFloat
from ..kernels.elementwise import BinaryFloat
from ..kernels.layer import Array, Layer
from ..kernels.move import Move

ALIKE = 2.0
"""The ratio of the largest range to the smallest up to which the columns of a dense layer share a grid."""


def with_columns(graph: Graph, samples: Mapping[str, Array]) -> tuple[Graph, dict[str, Array]]:
    """The float32 graph whose inputs of columns are shifted and scaled by `put`, and the samples after that.

    samples: (count, *shape) of every input.
    """
    made = dict(samples)
    for name in graph.inputs:
        if sum(n > 1 for n in graph.shapes[name]) != 1 or name in graph.integers or name in graph.outputs:
            continue
        if name in graph.grids:  # the file's, of the numbers as they come
            continue
        numbers = samples[name].reshape(len(samples[name]), -1)
        graph, columns = _scaled(graph, name, Columns.unchanged(numbers.shape[1]))
        if not columns.differ:
            graph, columns = _picked(graph, name, columns)
        graph, columns = _spread(graph, name, columns, numbers)
        if columns.differ:
            graph = replace(graph, columns={**graph.columns, name: columns}, whole=graph.whole - {name})
            made[name] = columns.of(numbers).reshape(samples[name].shape)
    return graph, made


def _scaled(graph: Graph, name: str, columns: Columns) -> tuple[Graph, Columns]:
    """Without the scaler that the model begins with, if it has constants for each column."""
    reader = None if name in graph.outputs else _reader(graph, name)
    while isinstance(reader, BinaryFloat) and reader.output not in graph.whole.union(graph.outputs):
        constant = reader.constant
        if constant is None or constant.size not in (1, len(columns.factor)) or not _is_open(reader):
            break
        c = constant.reshape(-1).astype(np.float64)
        if reader.operation in ("mul", "div") and not c.all():
            break
        columns = columns.then(reader.operation, c)
        rest = [renamed(layer, {reader.output: name}) for layer in graph.layers if layer is not reader]
        graph = replace(graph.with_layers(rest), whole=graph.whole - {name})
        reader = _reader(graph, name)
    return graph, columns


def _picked(graph: Graph, name: str, columns: Columns) -> tuple[Graph, Columns]:
    """Without the scalers behind moves of some columns each, if they agree about every column."""
    moves = graph.consumers()[name]
    if not moves or not all(isinstance(m, Move) and m.fill is None and set(m.inputs) == {name} for m in moves):
        return graph, columns
    places = np.arange(len(columns.factor), dtype=np.float64)
    offset, factor = np.full(places.shape, np.nan), np.zeros(places.shape)  # a column that nothing reads becomes zero
    changed = graph
    for move in moves:
        picked = move.reference(*[places] * len(move.inputs)).reshape(-1).astype(int)
        changed, own = _scaled(changed, move.output, Columns.unchanged(len(picked)))
        for place, shift, scale in zip(picked, own.offset, own.factor, strict=True):
            if not np.isnan(offset[place]) and (offset[place], factor[place]) != (shift, scale):
                return graph, columns
            offset[place], factor[place] = shift, scale
    return changed, Columns(np.nan_to_num(offset), factor)


def _spread(graph: Graph, name: str, columns: Columns, numbers: Array) -> tuple[Graph, Columns]:
    """Every column as wide as the others, if a dense layer reads them; its weights and bias undo that."""
    layer, count = _reader(graph, name), len(columns.factor)
    if not isinstance(layer, DotFloat) or layer.kind != "dense" or layer.weights[0].size != count:
        return graph, columns
    if layer.name in graph.weight_scales:  # other weights than the file's bytes would be rounded a second time
        return graph, columns
    seen = columns.of(numbers).astype(np.float64)
    low, high = seen.min(0), seen.max(0)
    wide = (high - low) / 2
    widest = wide.max(initial=0)
    if widest == 0 or wide.min() * ALIKE >= widest:
        return graph, columns
    middle, wide = (low + high) / 2, np.where(wide > 0, wide, widest)
    rows = layer.weights.reshape(len(layer.weights), -1).astype(np.float64)
    undone = replace(
        layer,
        weights=(rows * wide).astype(np.float32).reshape(layer.weights.shape),
        bias=(layer.bias + rows @ middle).astype(np.float32),
    )
    graph = replace(graph, layers=tuple(undone if other is layer else other for other in graph.layers))
    return graph, columns.then("sub", middle).then("div", wide)


def _reader(graph: Graph, name: str) -> Layer | None:
    """The only layer that reads a tensor."""
    readers = graph.consumers()[name]
    return readers[0] if len(readers) == 1 and readers[0].inputs == (name,) else None


def _is_open(layer: BinaryFloat) -> bool:
    """Whether it clips nothing, and its shape is the first operand's."""
    return isinf(layer.low) and isinf(layer.high) and prod(layer.other) <= prod(layer.shape)
