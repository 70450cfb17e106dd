"""A region as a graph of its own: inner modules are calls, and sizes are read from its inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ir.argument import DYNAMIC, Argument
from ..ir.graph import Graph, Node
from ..ir.types import ScalarType, SequenceType, TensorType
from ..ops.internal import InputSize, InputSizeConfig
from ..records import replace
from .invoke import invoke
from .regions import Region
from .runs import looped

if TYPE_CHECKING:
    from .writer import Hierarchy


def graph_of(hierarchy: Hierarchy, region: Region) -> Graph:
    """A region with its inner modules as calls, and calls of a list's items as loops."""
    is_root = not region.path
    sizes, renamed = ([], {}) if is_root else local_sizes(hierarchy, region)
    nodes: list[Node[Any]] = []
    for item in region.items:
        if isinstance(item, Region):
            given = [renamed.get(a.name, a) for a in item.inputs]
            made = invoke(item.path, ".".join(item.path), given, item.outputs)
            if any(not n.pure for n in item.nodes()):
                hierarchy.impure.add(made.name)
            nodes.append(made)
        else:
            inputs = tuple(renamed.get(a.name, a) for a in item.inputs)
            nodes.append(item if inputs == item.inputs else replace(item, inputs=inputs))
    if is_root:
        graph = hierarchy.model.graph
        results = {a.name for a in graph.outputs}
        return replace(graph, nodes=tuple(looped(nodes, results, hierarchy.lengths)))
    nodes = looped(nodes, {a.name for a in region.outputs}, hierarchy.lengths)
    used = {a.name for n in nodes for a in n.uses()}
    read = []
    for n in reversed(sizes):
        if n.outputs[0].name in used:
            read.append(n)
            used |= {a.name for a in n.inputs}
    sizes = read[::-1]
    region.inputs = sorted((a for a in region.inputs if a.name in used), key=_rank)
    return Graph(".".join(region.path), (*sizes, *nodes), tuple(region.inputs), tuple(region.outputs))


def local_sizes(hierarchy: Hierarchy, region: Region) -> tuple[list[Node[Any]], dict[str, Argument]]:
    """Outer sizes, read from the region's own inputs if one has them."""
    sizes: list[Node[Any]] = []
    renamed: dict[str, Argument] = {}
    for a in region.inputs:
        t = a.type
        if not isinstance(t, ScalarType) or not isinstance(t.value, str):
            continue
        here = ".".join(region.path)
        for given in region.inputs:
            way = hierarchy.caches.way_to(given, t.value, here)
            read = way[-1].outputs[0] if way else given
            g = read.type
            if isinstance(g, TensorType) and g.shape is not None and t.value in g.shape:
                mine = Argument(f"{a.name} in {here}", t, DYNAMIC)
                config = InputSizeConfig(g.shape.index(t.value), t.value)
                sizes += [*way, InputSize(f"size {mine.name}", (read,), (mine,), config)]
                renamed[a.name] = mine
                break
    return sizes, renamed


def _rank(a: Argument) -> int:
    """The rank of an input among others: first what flows through the layers, then masks and sizes, then caches."""
    t = a.type
    if isinstance(t, SequenceType):
        return 2
    return 0 if isinstance(t, TensorType) and t.dtype.is_float else 1
