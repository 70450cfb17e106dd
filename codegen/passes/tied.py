"""Tied weights: a transposed copy of an embedding's table becomes the table.

Where the last layer of a language model shares the table of its embedding, PyTorch's exporters may fold the
transposition: the file then holds the table twice, once transposed under a name that the exporter made
(`onnx::MatMul_12`, `val_2`). Two parameters with names of their own stay apart, whatever their values: they are two in
checkpoints too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..checkpoint_names import is_parameter_name
from ..ir.argument import Constant
from ..ir.graph import Graph, Node
from ..ir.value import WORDS, Stored, Value
from ..ops.base import transposed
from ..ops.linear_algebra import Gemm, MatMul
from ..records import replace
from .rewriting import Change, Rewrite, Walk, instead, rewrite

SAID = "replaced {} transposed copies of an embedding's table by the table"


def run(graph: Graph) -> Rewrite:
    found: dict[tuple[int, ...], list[Value]] = {}
    for node in graph.walk():
        table = node.table()
        if table is not None and isinstance(table.source, Stored) and table.dtype.bits in WORDS:
            name = table.origin
            alike = found.setdefault(table.shape, [])
            if isinstance(name, str) and is_parameter_name(name) and all(table.key() != t.key() for t in alike):
                alike.append(table)
    copies: dict[object, Value | None] = {}  # the key of a matrix -> the table that it copies

    def step(node: Node[Any], walk: Walk) -> Change | None:
        weight = node.value(1) if isinstance(node, MatMul | Gemm) else None
        if weight is None or not isinstance(weight.source, Stored) or len(weight.shape) != 2:
            return None
        name = weight.origin
        tables = found.get((weight.shape[1], weight.shape[0]))
        if not tables or not isinstance(name, str) or is_parameter_name(name):
            return None
        if weight.key() not in copies:
            copies[weight.key()] = next((t for t in tables if is_transposition(weight, t)), None)
        table = copies[weight.key()]
        if table is None:
            return None
        given = replace(node.inputs[1], source=Constant(transposed(table)))
        return instead(node, SAID, replace(node, inputs=(node.inputs[0], given, *node.inputs[2:])))

    return rewrite(graph, step)


def is_transposition(matrix: Value, table: Value) -> bool:
    """Whether `matrix` is `table` transposed, bit for bit. A table that repeats one number proves nothing, as it has no
    orientation."""
    if matrix.dtype is not table.dtype or matrix.shape != table.shape[::-1]:
        return False
    columns, rows = matrix.shape
    code = WORDS[table.dtype.bits]
    left: Sequence[int] = memoryview(matrix.raw()).cast("B").cast(code)
    right: Sequence[int] = memoryview(table.raw()).cast("B").cast(code)
    if all(word == left[0] for word in left[:rows]):
        return False
    return all(left[i * rows : (i + 1) * rows] == right[i::columns] for i in range(columns))
