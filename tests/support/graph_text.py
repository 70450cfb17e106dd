"""A graph as text: each node's operator, inputs, config and types. Numbers of weights are left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from emberlet.codegen.ir.argument import Argument
from emberlet.codegen.ir.graph import Graph
from emberlet.codegen.ir.types import describe
from emberlet.codegen.ir.value import Value


def graph_text(graph: Graph) -> str:
    return "\n".join([*_nodes(graph), "-> " + ", ".join(_argument(a) for a in graph.outputs)])


def _nodes(graph: Graph) -> Iterator[str]:
    for node in graph.nodes:
        outputs = ", ".join(f"{o.name}: {describe(o.type)}" for o in node.outputs)
        yield f"{outputs} = {node.op()}({', '.join(_argument(a) for a in node.inputs)}) {_config(node.config)}"


def _argument(a: Argument) -> str:
    return a.name if a.value is None else _value(a.value)


def _value(value: Value) -> str:
    if value.dtype.is_integer and value.size <= 64:
        return f"{value.dtype.name}{list(value.shape)} {value.ints()}"
    number = f" {float(value.item()):.4g}" if value.size == 1 and value.dtype.is_float else ""
    return f"{value.dtype.name}{list(value.shape)}{number}"


def _config(held: Any) -> str:
    if isinstance(held, Graph):
        return f"{{ {graph_text(held)} }}"
    if isinstance(held, Value):
        return _value(held)
    if is_dataclass(held) and not isinstance(held, type):
        return f"<{', '.join(f'{f.name}={_config(getattr(held, f.name))}' for f in fields(held))}>"
    if isinstance(held, tuple):
        return f"({', '.join(map(_config, held))})"
    return f"{held:.4g}" if isinstance(held, float) else str(held)
