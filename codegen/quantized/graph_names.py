"""Names in the graph of an ONNX model, and dropping what has none. Needs the package onnx."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto


def graphs_of(node: NodeProto) -> Iterator[GraphProto]:
    """The branches and bodies of a node."""
    for a in node.attribute:
        if a.HasField("g"):
            yield a.g
        yield from a.graphs


def names_in(graph: GraphProto) -> Iterator[str]:
    """The names that a graph, its branches and its bodies use."""
    for values in (graph.input, graph.output, graph.initializer, graph.value_info):
        yield from (v.name for v in values)
    for node in graph.node:
        yield node.name
        yield from node.input
        yield from node.output
        for inner in graphs_of(node):
            yield from names_in(inner)


def names_defined(graph: GraphProto) -> Iterator[str]:
    """The names of the values that a graph, its branches and its bodies have, once for each."""
    yield from (v.name for values in (graph.input, graph.initializer) for v in values)
    for node in graph.node:
        yield from node.output
        for inner in graphs_of(node):
            yield from names_defined(inner)


class Unused:
    """Makes names that the graph does not use yet."""

    def __init__(self, graph: GraphProto) -> None:
        self._taken = set(names_in(graph))

    def stem(self, name: str, *endings: str) -> str:
        """The name, with underscores where it and one of these endings are a name already."""
        while any(name + ending in self._taken for ending in endings):
            name += "_"
        self._taken.update(name + ending for ending in endings)
        return name


def names_read(nodes: Iterable[NodeProto]) -> Iterator[str]:
    """The names that nodes read, those in the branches and bodies within them, too."""
    for node in nodes:
        yield from node.input
        for graph in graphs_of(node):
            yield from names_read(graph.node)
            yield from (o.name for o in graph.output)


def readers(graph: GraphProto) -> dict[str, list[NodeProto]]:
    """Name -> the nodes that read it, once for each time."""
    found: dict[str, list[NodeProto]] = {}
    for node in graph.node:
        for name in names_read([node]):
            found.setdefault(name, []).append(node)
    return found


def keep_only(field: Any, wanted: Sequence[bool]) -> None:
    """Leave only the wanted messages of a repeated field. `remove` would compare with all before it."""
    for i in reversed(range(len(wanted))):
        if not wanted[i]:
            del field[i]


def drop_unused(graph: GraphProto) -> None:
    """Drop the initializers that nothing reads and that are no outputs."""
    used = {*names_read(graph.node)} | {o.name for o in graph.output}
    keep_only(graph.initializer, [t.name in used for t in graph.initializer])


def rename_inputs(nodes: Iterable[NodeProto], names: Mapping[str, str]) -> None:
    """Let nodes read values under other names, in their branches and bodies, too, where these have no value of such a
    name themselves."""
    if not names:
        return
    for node in nodes:
        if any(n in names for n in node.input):
            node.input[:] = [names.get(n, n) for n in node.input]
        for inner in graphs_of(node):
            own = {v.name for values in (inner.input, inner.initializer) for v in values}
            own.update(o for n in inner.node for o in n.output)
            outer = {old: new for old, new in names.items() if old not in own}
            rename_inputs(inner.node, outer)
            for o in inner.output:
                o.name = outer.get(o.name, o.name)
