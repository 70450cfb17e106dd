"""Products with weights of 2, 4 or 8 bits in blocks that share a scale (com.microsoft MatMulNBits), and embeddings of
such weights: read as the products and look-ups of real numbers that they mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from emberlet.codegen.evaluation import evaluate
from emberlet.codegen.ir.argument import ABSENT, Argument
from emberlet.codegen.ir.graph import Node
from emberlet.codegen.ir.problem import Problem
from emberlet.codegen.ir.types import UnknownType
from emberlet.codegen.ops.microsoft_products import GatherBlockQuantized, MatMulNBits

from ..kernels.layer import Array
from ..quantization.reference import ZERO
from .quantized import Parts, constant
from .state import Importer, numpy_of
from .table import translates

MOST_ROWS = 1 << 14
"""Of a weight or a table. Its real numbers are what the operator makes of ones, or of all indices."""


@translates(MatMulNBits)
def matmul(t: Importer, node: MatMulNBits) -> None:
    """In int8 the weights of a column with one block keep their scale; others get one for the column."""
    c = node.config
    _check(node, range(1, len(node.inputs)), c.rows)
    ones = constant(np.eye(c.rows, dtype=np.float32), "every")
    weights = constant(_real(node, (ones, *node.inputs[1:5])), f"{node.name}:weights")
    if c.block_size >= c.rows and not node.has(3):
        t.scales[weights.name] = t.array(node, 2, "the scales").astype(np.float64).reshape(-1), 1, ZERO
    parts = Parts(t, node)
    y = parts.make("MatMul", [node.inputs[0], weights], node.name)
    parts.output(parts.make("Add", [y, node.inputs[5]]) if node.has(5) else y)


@translates(GatherBlockQuantized)
def gather(t: Importer, node: GatherBlockQuantized) -> None:
    table = node.value(0)
    if table is None:
        raise Problem("a table that is only known when the model runs")
    axis = node.config.gather_axis % len(table.shape)
    _check(node, (2, 3), table.shape[axis])
    every = constant(np.arange(table.shape[axis], dtype=np.int64), "every")
    parts = Parts(t, node)
    real = constant(_real(node, (node.inputs[0], every, *node.inputs[2:])), parts.fresh("table"))
    parts.output(parts.make("Gather", [real, node.inputs[1]], node.name, axis=axis))


def _check(node: Node[Any], constants: Sequence[int] | range, rows: int) -> None:
    if any(node.has(k) and node.value(k) is None for k in constants if k < len(node.inputs)):
        raise Problem("weights, scales or a bias that the model computes are not supported; they must be constant")
    if not 0 < rows <= MOST_ROWS:
        raise Problem(f"a weight of {rows} rows; at most {MOST_ROWS} are supported")


def _real(node: Node[Any], inputs: Sequence[Argument]) -> Array:
    """What the operator makes of other inputs, all constant."""
    out = Argument("real", UnknownType())
    given = tuple(a if a.present else ABSENT for a in inputs)
    (found,) = evaluate(replace(node, inputs=given, outputs=(out,)).typed())
    if found is None:
        raise Problem("weights that cannot be taken out of their blocks")
    return np.ascontiguousarray(numpy_of(found), np.float32)
