"""Sizes: gives each size that the model does not name an identity, so that passes see which are equal.

A size of an input or a node's result has the same identity wherever types are inferred from it. `forgotten` removes the
identities after the passes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from ..ir.argument import Argument
from ..ir.graph import Graph, Node
from ..ir.problem import Problem
from ..ir.sizes import identified, without_identities
from ..ir.types import AbsentType, TensorType, Type
from ..records import replace
from .rewriting import Rewrite, typed, with_graphs


def run(graph: Graph) -> Rewrite:
    """The graph with its types inferred again, from its inputs on."""
    if _named(graph):
        return graph, Counter()
    values: dict[str, Argument] = {}
    out = _retyped(graph, values, True)
    return (graph if out == graph else out), Counter()


def _named(graph: Graph) -> bool:
    """Whether each size of every tensor already has a number or a name."""
    return all(_plain(a.type) for a in graph.inputs) and all(
        not node.graphs() and all(_plain(o.type) for o in node.outputs) for node in graph.nodes
    )


def _plain(t: Type) -> bool:
    return isinstance(t, AbsentType) or (isinstance(t, TensorType) and t.shape is not None and None not in t.shape)


def _retyped(graph: Graph, values: dict[str, Argument], outermost: bool) -> Graph:
    for a in graph.inputs if outermost else ():
        values[a.name] = replace(a, type=identified(a.type, a.name))
    nodes: list[Node[Any]] = []
    for old in graph.nodes:
        if old.outputs and all(o.value is not None for o in old.outputs if o.present):
            values.update((o.name, o) for o in old.outputs if o.present)
            nodes.append(old)  # computed when it was read, so not computed again
            continue
        inputs = tuple(values.get(a.name, a) if a.value is None else a for a in old.inputs)
        node = with_graphs(old, lambda g: _retyped(g, values, False))
        node = replace(node, inputs=inputs)
        try:
            node = typed(node)
        except Problem:
            pass  # keep the types as read
        values.update((o.name, o) for o in node.outputs if o.present)
        nodes.append(node)
    outputs = tuple(values.get(a.name, a) if a.value is None else a for a in graph.outputs)
    return replace(graph, nodes=tuple(nodes), outputs=outputs)


def forgotten(graph: Graph) -> Graph:
    """The graph without the identities that `run` and later passes gave to sizes."""
    return _changed(graph, without_identities)


def _changed(graph: Graph, change: Callable[[Type], Type]) -> Graph:
    def argument(a: Argument) -> Argument:
        t = change(a.type)
        return a if t is a.type or t == a.type else replace(a, type=t)

    def arguments(held: tuple[Argument, ...]) -> tuple[Argument, ...]:
        new = tuple(map(argument, held))
        return held if all(a is b for a, b in zip(new, held, strict=True)) else new

    nodes: list[Node[Any]] = []
    for old in graph.nodes:
        node = with_graphs(old, lambda g: _changed(g, change))
        inputs, outputs = arguments(node.inputs), arguments(node.outputs)
        if inputs is not node.inputs or outputs is not node.outputs:
            node = replace(node, inputs=inputs, outputs=outputs)
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes), inputs=arguments(graph.inputs), outputs=arguments(graph.outputs))
