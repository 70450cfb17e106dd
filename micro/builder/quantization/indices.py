"""Indices that do not fit a byte in an int8 model: tensors whose elements take two bytes, the lower one first.

ArgMax and TopK write them, and Gather reads them; in between they may be reshaped, but nothing computes with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from emberlet.errors import UnsupportedError
from emberlet.host.quantization.calibration import Range

from ..graph import Graph, Grid, Reshape
from ..kernels.arg import Arg
from ..kernels.lanes import Take, TopK
from ..kernels.layer import Array, Layer
from .reference import quantize, steps_of
from .sixteen import to_bytes, to_words

MOST_IN_A_BYTE = 256

MOST = 1 << 16

ZERO = Grid(1.0, 0)
SIGNED = Grid(1.0, MOST >> 1)


def with_words(graph: Graph, ranges: Mapping[str, Range] | None) -> Graph:
    """The float32 graph with `words` and their grids: tensors of indices that do not fit a byte.

    Raises UnsupportedError if a layer that only handles bytes reads such a tensor.
    """
    found: dict[str, Layer] = {}
    for layer in graph.layers:
        found.update((name, layer) for name in _indices(layer) if _count(layer) > MOST_IN_A_BYTE)
    if not found:
        return graph
    linked = [layer for layer in graph.layers if isinstance(layer, Reshape)]
    grown = True
    while grown:
        grown = False
        for reshape in linked:
            source, output = reshape.inputs[0], reshape.output
            if (source in found) != (output in found):
                found[source if output in found else output] = reshape
                grown = True
    words: dict[str, Grid] = {}
    for name, layer in found.items():
        _check(graph, name, layer)
        words[name] = SIGNED if ranges is not None and ranges[name][0] < 0 else ZERO
    return replace(graph, words=frozenset(words), grids={**graph.grids, **words})


def _indices(layer: Layer) -> tuple[str, ...]:
    """The tensor of indices that a layer reads or writes."""
    if isinstance(layer, Arg) or (isinstance(layer, TopK) and layer.indices):
        return (layer.output,)
    return (layer.inputs[-1],) if isinstance(layer, Take) else ()


def _count(layer: Layer) -> int:
    """The number of elements that the indices range over."""
    return int(layer.shape[1])  # type: ignore[attr-defined]


def _check(graph: Graph, name: str, layer: Layer) -> None:
    writer = next((w for w in graph.layers if w.output == name), None)
    readers = graph.consumers()[name]
    near = [*readers, *([] if writer is None else [writer])]
    alone = all(name in _indices(other) or isinstance(other, Reshape) for other in near)
    over = any(_count(other) > MOST for other in near if name in _indices(other))
    if not alone or over or name in graph.states or name in graph.integers:
        count = _count(layer) if not isinstance(layer, Reshape) else f"more than {MOST_IN_A_BYTE}"
        raise UnsupportedError(
            f"{layer.name}: the index of one of {count}; in int8 an index is a byte, or two where "
            f"only ArgMax, TopK, Gather and outputs of the model touch it, one of at most {MOST}: "
            "build the model with --float"
        )


def stored(graph: Graph, name: str, x: Array) -> Array:
    """Numbers as a quantized graph stores them; of two bytes, the lower one comes first."""
    grid = graph.grids[name]
    zero = grid.zero
    if grid.wide:
        words = steps_of(x, grid.scale, zero, 16)
        return to_bytes(words.reshape(words.shape or (1,)))
    if name not in graph.words:
        return quantize(x, graph.grids[name].scale, zero)
    whole = np.clip(np.rint(np.asarray(x, np.float64)) + zero, 0, MOST - 1).astype("<u2")
    return np.ascontiguousarray(whole).view(np.uint8).reshape(*whole.shape, 2)


def numbers(graph: Graph, name: str, x: Array) -> Array:
    """The numbers that such bytes represent."""
    grid = graph.grids[name]
    if grid.wide:
        return np.asarray((to_words(x).reshape(-1) - grid.zero) * grid.scale)
    pairs = np.ascontiguousarray(x, np.uint8).reshape(-1, 2).astype(np.int64)
    return np.asarray(pairs[:, 0] + 256 * pairs[:, 1] - graph.grids[name].zero)
