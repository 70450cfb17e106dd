"""Evaluation: the outputs of a node whose inputs are all constants, computed by the code the node becomes.

There is one meaning of each operator, its emitted code run on the functional layer; folding uses that same code.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from emberlet.backend import get_backend
from emberlet.dtypes import DType
from emberlet.errors import EmberletError
from emberlet.tensor import Tensor

from .ir.argument import Argument, Dynamic
from .ir.graph import Graph, Model
from .ir.node import Node
from .ir.problem import Problem
from .ir.value import Fill, Inline, Text, Value


def foldable(node: Node[Any]) -> bool:
    """Whether every input of a node is a constant and running it twice gives the same."""
    inputs = [a for i, a in enumerate(node.inputs) if a.present and i not in node.typing]
    return node.pure and not node.graphs() and bool(inputs) and all(a.value is not None for a in inputs)


def evaluate(node: Node[Any]) -> tuple[Value | None, ...]:
    """A value for each output, None for those that are left out. Raises Problem where the node cannot be run."""
    from . import weights
    from .emit.module import ModuleWriter
    from .generation import instantiate

    outputs = tuple(replace(o, source=Dynamic()) for o in node.outputs if o.present)
    # Reshaped constants are inputs here: what a layer would absorb is passed in, so that nothing is a field.
    inputs = [a for a in node.inputs if a.present]
    home = get_backend()
    graph = Graph("folded", (replace(node, outputs=_dynamic(node.outputs)),), (), outputs)
    try:
        written = ModuleWriter(Model("folded", graph, ())).write()
        if written.problems:
            raise Problem(written.problems[0])
        instance = instantiate(written, "folded", home)
        instance.load_record(weights.tensors(written.record, home))
        results = instance()
    except EmberletError as error:
        raise Problem(f"on constants {[a.name for a in inputs]} it fails: {error}") from None
    results = results if isinstance(results, tuple) else (results,)
    values = iter(results)
    return tuple(value_of(next(values)) if o.present else None for o in node.outputs)


def _dynamic(outputs: tuple[Argument, ...]) -> tuple[Argument, ...]:
    return tuple(replace(o, source=Dynamic()) for o in outputs)


def value_of(x: Any) -> Value | None:
    """A tensor as a Value; None for lists and the like."""
    if not isinstance(x, Tensor):
        return None
    if x.dtype.kind == "string":
        return Value(x.dtype, x.shape, Text(tuple(x.backend.to_list(x))))
    return Value(x.dtype, x.shape, uniform(bytes(x.backend.to_bytes(x)), x.dtype, x.size))


def uniform(data: bytes, dtype: DType, count: int) -> Inline | Fill:
    """The elements; where all are one number, a fill."""
    width = dtype.bits // 8
    if count > 1 and width and data == data[:width] * count:
        number = Value(dtype, (), Inline(data[:width])).item()
        assert not isinstance(number, str)
        return Fill(number)
    return Inline(data)
