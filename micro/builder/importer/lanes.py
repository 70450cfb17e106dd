"""Operators along one axis: TopK, CumSum, Gather with computed indices, OneHot."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from emberlet.codegen.ir.argument import Argument
from emberlet.codegen.ir.graph import Node
from emberlet.codegen.ir.problem import Problem
from emberlet.codegen.ops.indexing import Gather, OneHot, TopK
from emberlet.codegen.ops.reduction import CumSum

from ..kernels import lanes
from ..kernels.elementwise import MapFloat
from .layout import StoredTensor, dims_of, dtype_of
from .state import Importer
from .table import translates
from .values import BYTES


def lanes_of(held: StoredTensor, axis: int) -> tuple[int, int, int]:
    """(outer, length, inner): the number of elements before, along and after an axis, in memory order."""
    at, sizes = held.order.index(axis), [held.dims[k] for k in held.order]
    return prod(sizes[:at]), sizes[at], prod(sizes[at + 1 :])


@translates(TopK)
def top_k(t: Importer, node: TopK) -> None:
    """Values and indices are separate layers, each written only if something reads it."""
    held, c = t.of(node.inputs[0]), node.config
    shape = lanes_of(held, c.axis % len(held.dims))
    for output, indices in zip(node.outputs, (False, True), strict=False):
        if output.present and (output.name in t.outputs.read or not t.outputs.read):
            k = dims_of(output)[c.axis % len(held.dims)]
            if k > shape[1]:
                raise Problem(f"k is {k}, but there are only {shape[1]} elements")
            out = t.define(output, held.order)
            name = f"{node.name} indices" if indices else node.name
            t.add(lanes.TopK(name, (held.name,), out.name, shape, k, c.largest, indices))


@translates(CumSum)
def running_sum(t: Importer, node: CumSum) -> None:
    held, axis = t.of(node.inputs[0]), node.ints(1)
    if axis is None:
        raise Problem("an axis that the model computes is not supported; export the model with a fixed axis")
    shape = lanes_of(held, axis[0] % len(held.dims))
    out = t.define(node.outputs[0], held.order)
    c = node.config
    t.add(lanes.RunningSumFloat(node.name, (held.name,), out.name, shape, c.exclusive, c.reverse))


@translates(OneHot)
def one_hot(t: Importer, node: OneHot) -> None:
    held = whole_of(t, node, 0)
    values = t.array(node, 2, "the values off and on")
    dims, rank = dims_of(node.outputs[0]), len(held.dims) + 1
    axis = node.config.axis % rank
    held = t.ordered(held, tuple(range(len(held.dims))))
    out = t.define(node.outputs[0], tuple(range(rank)))
    off, on = (float(v) for v in values.reshape(-1))
    at = (prod(dims[:axis]), dims[axis], prod(dims[axis + 1 :]))
    t.add(lanes.OneHot(node.name, (held.name,), out.name, *at, off, on))


def take(t: Importer, node: Gather) -> None:
    """Gather with indices that are computed or a model input, from a constant (an embedding) or a tensor."""
    indices = whole_of(t, node, 1)
    indices = t.ordered(indices, tuple(range(len(indices.dims))))
    names: tuple[str, ...]
    code: int | None = None
    if node.value(0) is None:
        held = t.of(node.inputs[0])
        axis = node.config.axis % len(held.dims)
        order, shape, table, names = held.order, lanes_of(held, axis), None, (held.name, indices.name)
    else:
        table = t.array(node, 0, "what is picked from")
        axis, order = node.config.axis % table.ndim, tuple(range(table.ndim))
        shape, names = lanes_of(StoredTensor("", table.shape, order), axis), (indices.name,)
        code = BYTES.get(node.dtype(0).name)
        table = table.astype(np.float32)
    if shape[1] < 1:
        raise Problem("it picks from an empty axis")
    # The axes of the indices replace the indexed axis.
    more = len(indices.dims)
    laid: list[int] = []
    for k in order:
        if k == axis:
            laid += range(axis, axis + more)
        else:
            laid.append(k if k < axis else k + more - 1)
    out = t.define(node.outputs[0], tuple(laid))
    if code is not None:
        t.grids.coded[out.name] = code
    t.add(lanes.Take(node.name, names, out.name, shape, prod(indices.dims), table))


def whole_of(t: Importer, node: Node[Any], i: int) -> StoredTensor:
    """An input that holds indices; floats are truncated to whole numbers."""
    argument: Argument = node.inputs[i]
    held = t.of(argument)
    if dtype_of(argument).is_integer or held.name in t.grids.whole:
        return held
    name = t.layout.part_of(held, "whole")
    t.grids.whole.add(name)
    t.add(MapFloat(f"{node.name} indices", (held.name,), name, t.layout.shapes[name], (("trunc", ()),)))
    return StoredTensor(name, held.dims, held.order)
