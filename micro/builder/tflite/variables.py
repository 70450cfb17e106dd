"""Converters of variables, which keep a value until the next inference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from emberlet.codegen.ir.argument import Argument
from emberlet.codegen.ir.problem import Problem

from .reading import FileOperator, values
from .table import Inputs, converts

if TYPE_CHECKING:
    from .importing import Converting


@converts("CALL_ONCE")
def call_once(t: Converting, op: FileOperator, given: Inputs) -> None:
    """Initial values of variables, which must be the same for all elements."""
    number = op.integer("InitSubgraphIndex")
    if not 0 < number < len(t.graphs):
        raise Problem(f"it calls subgraph {number}, but the file has {len(t.graphs)}")
    graph, handles = t.graphs[number], dict[int, str]()
    for step in graph.operators:
        if step.kind == "VAR_HANDLE" and step.outputs:
            handles[step.outputs[0]] = _variable(step)
        elif step.kind == "ASSIGN_VARIABLE" and len(step.inputs) == 2 and step.inputs[0] in handles:
            first = values(graph.tensors[step.inputs[1]], "the first value of a variable")
            if first.size and np.any(first != first.reshape(-1)[0]):
                raise Problem("a variable whose initial values differ is not supported")
            byte = 128 if first.dtype == np.int8 else 0
            t.initial[handles[step.inputs[0]]] = int(first.reshape(-1)[0]) + byte if first.size else byte
        else:
            raise Problem(f"{step.kind} in a subgraph that runs once is not supported")


def _variable(op: FileOperator) -> str:
    return f"{op.options.get('Container', '')}/{op.options.get('SharedName', '')}".strip("/")


@converts("VAR_HANDLE")
def var_handle(t: Converting, op: FileOperator, given: Inputs) -> None:
    for n in op.outputs:
        t.handles[n] = _variable(op)


@converts("READ_VARIABLE")
def read_variable(t: Converting, op: FileOperator, given: Inputs) -> Sequence[Argument]:
    if len(op.inputs) != 1 or op.inputs[0] not in t.handles or len(op.outputs) != 1:
        raise Problem("the variable is missing")
    return [t.read_variable(t.handles[op.inputs[0]], op.outputs[0])]


@converts("ASSIGN_VARIABLE")
def assign_variable(t: Converting, op: FileOperator, given: Inputs) -> None:
    if len(op.inputs) != 2 or op.inputs[0] not in t.handles:
        raise Problem("the variable is missing")
    t.assigned[t.handles[op.inputs[0]]] = t.argument(op.inputs[1])
