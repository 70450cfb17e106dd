"""Dense layers: joins a product with a constant matrix and the addition of its bias into one layer."""

from __future__ import annotations

from typing import Any

from ..ir.argument import Argument
from ..ir.graph import Node
from ..ir.types import TensorType, product
from ..ops.arithmetic import Add
from ..ops.base import transposed
from ..ops.internal import Linear
from ..ops.linear_algebra import Gemm, MatMul
from ..ops.movement import Flatten, Reshape, ReshapeConfig
from .moves import target
from .rewriting import Change, Walk, as_bias, instead, interim, value_of, with_constant


def step(node: Node[Any], walk: Walk) -> Change | None:
    if isinstance(node, Add):
        return biased(node, walk)
    if isinstance(node, Reshape):
        return unflattened(node, walk)
    return None


def biased(node: Add, walk: Walk) -> Change | None:
    """x @ weight + bias."""
    for matmul, given, value in with_constant(node, MatMul, walk):
        weight = matmul.value(1)
        if weight is None or len(weight.shape) != 2 or not weight.dtype.is_float:
            continue
        bias = as_bias(given, value, matmul.tensor(0).rank, weight.shape[1])
        if bias is not None:
            made = Linear(node.name, (*matmul.inputs, bias), node.outputs, None)
            return instead(node, "joined {} products with their bias", made)
    return None


def unflattened(node: Reshape, walk: Walk) -> Change | None:
    """A dense layer without the reshape that merges leading axes before it and the one that restores them after it."""
    layer = walk.producer(node.inputs[0])
    if not isinstance(layer, Gemm | Linear) or not walk.alone(node.inputs[0]):
        return None
    flat = walk.producer(layer.inputs[0])
    if not isinstance(flat, Flatten | Reshape):
        return None
    source, out = flat.type(0), node.outputs[0].type
    if not isinstance(source, TensorType) or not isinstance(out, TensorType) or not source.shape or not out.shape:
        return None
    inputs = as_linear(layer)
    if inputs is None or inputs[0].value is None or flat.tensor(0).rank == 2:
        return None
    rows, width = inputs[0].value.shape
    lead = out.shape[:-1]
    tail = source.shape[len(lead) :]
    if None in source.shape or out.shape[-1] != width or source.shape[: len(lead)] != lead or product(tail) != rows:
        return None
    nodes: list[Node[Any]] = []
    x = flat.inputs[0]
    if len(tail) > 1:
        shape = target((*lead, rows), node, walk, nodes)
        if shape is None:
            return None
        x = interim(walk.fresh(node.name + "::rows"))
        nodes.append(Reshape(x.name, (flat.inputs[0], shape), (x,), ReshapeConfig(None, True)))
    made = Linear(node.name, (x, *inputs), node.outputs, None)
    return instead(node, "applied {} dense layers without merging axes", *nodes, made)


def as_linear(layer: Gemm | Linear) -> tuple[Argument, ...] | None:
    """(weight, bias) or (weight,) of a dense layer; None if it is not one."""
    if isinstance(layer, Linear):
        return layer.inputs[1:]
    c, weight, bias = layer.config, layer.value(1), layer.bias()
    if weight is None or c.alpha != 1.0 or c.trans_a or (layer.has(2) and (bias is None or c.beta != 1.0)):
        return None
    matrix = transposed(weight) if c.trans_b else weight
    out = [value_of(layer.inputs[1].name, matrix)]
    if bias is not None:
        out.append(value_of(layer.inputs[2].name, bias))
    return tuple(out)
