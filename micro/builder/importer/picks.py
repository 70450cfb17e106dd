"""Operators that only select elements of the input. The operator is evaluated on the numbers 0, 1, 2, …, which shows
the source of each element.

This map is split into blocks with constant strides, and each block becomes one part of a move.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from emberlet import dtypes
from emberlet.codegen.evaluation import evaluate
from emberlet.codegen.ir.argument import Constant
from emberlet.codegen.ir.graph import Node
from emberlet.codegen.ir.problem import Problem
from emberlet.codegen.ir.types import TensorType
from emberlet.codegen.ir.value import Inline, Value
from emberlet.codegen.ops.blocks import SpaceToDepth
from emberlet.codegen.ops.expansion import Expand, Tile
from emberlet.codegen.ops.indexing import GatherElements, GatherND

from ..kernels.lanes import Take
from ..kernels.move import Move, Part, strides
from ..kernels.nest import Axis
from .lanes import whole_of
from .layout import StoredTensor, dims_of
from .state import Importer
from .table import translates
from .values import numpy_of

MOST_ELEMENTS = 1 << 22

MOST_PARTS = 64
"""The most blocks of a move; each becomes a loop in the kernel."""

Places = npt.NDArray[np.int64]


@translates(Tile, Expand, SpaceToDepth, GatherElements, GatherND)
def pick(t: Importer, node: Node[Any]) -> None:
    """The node as a move, with one part per block of its map. Raises Problem if there are too many."""
    held, dims = t.of(node.inputs[0]), dims_of(node.outputs[0])
    if isinstance(node, GatherElements) and node.value(1) is None and prod(held.dims) == held.dims[node.config.axis]:
        _picked(t, node, held)
        return
    if max(prod(dims), prod(held.dims)) > MOST_ELEMENTS:
        raise Problem(f"expanding shape {held.dims} to {dims} is not supported")
    order = held.order if len(dims) == len(held.dims) else tuple(range(len(dims)))
    lies = np.empty(prod(held.dims), np.int64)
    lies[np.transpose(np.arange(lies.size).reshape(held.dims), held.order).reshape(-1)] = np.arange(lies.size)
    places = np.transpose(lies[index_map(node, held.dims)].reshape(dims), order)
    parts = blocks(places)
    if len(parts) > MOST_PARTS:
        raise Problem(f"the elements go to {len(parts)} separate places; at most {MOST_PARTS} are supported")
    out = t.define(node.outputs[0], order)
    t.add(Move(node.name, (held.name,) * len(parts), out.name, out.shape, tuple(parts)))


def _picked(t: Importer, node: GatherElements, held: StoredTensor) -> None:
    """Elements of a row, at computed places."""
    indices = whole_of(t, node, 1)
    indices = t.ordered(indices, tuple(range(len(indices.dims))))
    out = t.define(node.outputs[0], tuple(range(len(indices.dims))))
    at = (node.name, (held.name, indices.name), out.name)
    t.add(Take(*at, (1, prod(held.dims), 1), prod(indices.dims), None))


def index_map(node: Node[Any], dims: Sequence[int]) -> Places:
    """The index in the input of each element of the output, in order. Raises Problem."""
    dtype, given = dtypes.float32, node.dtype(0)
    if not (given.is_float or given.is_integer or given.is_bool):
        raise Problem(f"dtype {given} is not supported")
    count = np.arange(prod(dims), dtype=np.float32)
    value = Value(dtype, tuple(dims), Inline(count.tobytes()))
    first = replace(node.inputs[0], type=TensorType(dtype, tuple(dims)), source=Constant(value))
    if any(a.present and a.value is None for a in node.inputs[1:]):
        raise Problem(
            "indices or sizes that the model computes are not supported; use Gather, which takes such indices"
        )
    (found,) = evaluate(replace(node, inputs=(first, *node.inputs[1:])).typed())
    if found is None:
        raise Problem("the elements that it moves depend on a tensor that the model computes, which is not supported")
    return numpy_of(found).astype(np.int64).reshape(-1)


def blocks(places: Places) -> list[Part]:
    """The map as parts of a move: offsets in the input, in the output's shape in memory."""
    to = strides(places.shape)
    waiting: list[tuple[Places, int]] = [(places, 0)]
    parts: list[Part] = []
    while waiting and len(parts) <= MOST_PARTS:
        block, at = waiting.pop()
        cuts = {k: runs(block, k) for k in range(block.ndim) if block.shape[k] > 1}
        uneven = {k: r for k, r in cuts.items() if len(r) > 1}
        if uneven:
            axis = min(uneven, key=lambda k: len(uneven[k]))
            for r in reversed(uneven[axis]):
                index = tuple(slice(r.start, r.stop) if k == axis else slice(None) for k in range(block.ndim))
                waiting.append((block[index], at + r.start * to[axis]))
            continue
        origin = block[(0,) * block.ndim]
        steps = [int(np.take(block, 1, k).flat[0] - origin) if n > 1 else 0 for k, n in enumerate(block.shape)]
        axes = tuple(Axis(n, (step, out)) for n, step, out in zip(block.shape, steps, to, strict=True))
        parts.append(Part(int(origin), at, axes))
    return parts


def runs(block: Places, axis: int) -> list[range]:
    """The longest runs with a constant stride along an axis."""
    steps = np.diff(np.moveaxis(block, axis, 0).reshape(block.shape[axis], -1), axis=0)
    steady = (steps == steps[:, :1]).all(1)
    found, start = [], 0
    for i in range(len(steps)):
        goes_on = steady[i] and (i == start or (steady[i - 1] and steps[i, 0] == steps[i - 1, 0]))
        if not goes_on:
            found.append(range(start, i + 1))
            start = i + 1
    found.append(range(start, block.shape[axis]))
    return found
