"""A region as a graph of its own: inner modules are calls, and sizes are read from its inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..ir.argument import DYNAMIC, Argument, Static
from ..ir.graph import Graph, Node
from ..ir.sizes import terms
from ..ir.types import ScalarType, SequenceType, TensorType, Type, UnknownType
from ..ir.value import ints_value
from ..ops.arithmetic import Add
from ..ops.constant import Shape, ShapeConfig
from ..ops.internal import InputSize, InputSizeConfig, Sizes
from ..ops.movement import Reshape, ReshapeConfig
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
    opened = tuple(open_shapes(shaped([*sizes, *nodes])))
    return Graph(".".join(region.path), opened, tuple(region.inputs), tuple(region.outputs))


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
            axis, by = _axis_of(read.type, t.value)
            if by:
                mine = Argument(f"{a.name} in {here}", t, DYNAMIC)
                config = InputSizeConfig(axis, t.value, by)
                sizes += [*way, InputSize(f"size {mine.name}", (read,), (mine,), config)]
                renamed[a.name] = mine
                break
    return sizes, renamed


def _axis_of(t: Type, symbol: str) -> tuple[int, int]:
    """(axis, multiple) of an axis whose size is a multiple of a symbol, preferably the symbol itself; (0, 0) if there
    is none."""
    shape = t.shape if isinstance(t, TensorType) and t.shape is not None else ()
    if symbol in shape:
        return shape.index(symbol), 1
    for axis, d in enumerate(shape):
        found = terms(d) if isinstance(d, str) else None
        if found is not None and set(found) == {(symbol,)}:
            return axis, found[symbol,]
    return 0, 0


def shaped(nodes: Sequence[Node[Any]]) -> list[Node[Any]]:
    """The nodes; a value that is reshaped and added to a tensor of that shape is written `x + y.reshape(x.shape)`."""
    place = {o.name: i for i, node in enumerate(nodes) for o in node.outputs if o.present}
    readers = Counter(a.name for node in nodes for a in node.uses())
    like: dict[int, Argument] = {}
    for node in nodes:
        if not isinstance(node, Add):
            continue
        for a, other in (node.inputs, node.inputs[::-1]):
            at = place.get(a.name, -1)
            t = other.type
            if at < 0 or not isinstance(nodes[at], Reshape) or readers[a.name] != 1 or other.value is not None:
                continue
            if place.get(other.name, -1) < at and isinstance(t, TensorType) and t == a.type and t.shape is not None:
                if None not in t.shape and any(isinstance(d, str) for d in t.shape):
                    like[at] = other
                    break
    out: list[Node[Any]] = []
    for i, node in enumerate(nodes):
        if i in like:
            shape = Argument(f"{node.name}::like", UnknownType())
            out.append(Shape(shape.name, (like[i],), (shape,), ShapeConfig(0, None)).typed())
            node = replace(node, inputs=(node.inputs[0], out[-1].outputs[0]), config=ReshapeConfig(None, False))
        out.append(node)
    return out


def open_shapes(nodes: Sequence[Node[Any]]) -> list[Node[Any]]:
    """The nodes; a shape used only by reshapes, with one size that is not a number, becomes (-1, 16, 8) if a size then
    need not be read."""
    users: dict[str, list[Node[Any]]] = {}
    for node in nodes:
        for a in node.uses():
            users.setdefault(a.name, []).append(node)
    plain = {n.outputs[0].name for n in nodes if isinstance(n, Sizes) and _is_open(n, users)}
    free = {
        n.outputs[0].name
        for n in nodes
        if isinstance(n, InputSize) and all(u.outputs[0].name in plain for u in users.get(n.outputs[0].name, []))
    }
    out: list[Node[Any]] = []
    changed: dict[str, Argument] = {}
    for node in nodes:
        if isinstance(node, Sizes) and node.outputs[0].name in plain and node.inputs[0].name in free:
            dims = tuple(d if isinstance(d, int) else -1 for d in node.config.dims)
            name = node.outputs[0].name
            changed[name] = Argument(name, node.outputs[0].type, Static(ints_value(dims)))
        elif node.outputs[0].name not in free:
            inputs = tuple(changed.get(a.name, a) for a in node.inputs)
            out.append(node if inputs == node.inputs else replace(node, inputs=inputs))
    return out


def _is_open(node: Sizes, users: Mapping[str, Sequence[Node[Any]]]) -> bool:
    dims = node.config.dims
    used = users.get(node.outputs[0].name, [])
    return (
        sum(not isinstance(d, int) for d in dims) == len(node.inputs) == 1
        and all(d > 0 for d in dims if isinstance(d, int))
        and all(isinstance(u, Reshape) and u.inputs[1].name == node.outputs[0].name for u in used)
    )


def _rank(a: Argument) -> int:
    """The rank of an input among others: first the values that flow through the layers, then masks and sizes, then
    caches."""
    t = a.type
    if isinstance(t, SequenceType):
        return 2
    return 0 if isinstance(t, TensorType) and t.dtype.is_float else 1
