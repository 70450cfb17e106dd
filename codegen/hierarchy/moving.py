"""Moves nodes to the modules where a person would write them: shapes into every module that reads them, and
computations shared by all items of a list in front of the list."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from ..ir.argument import Argument
from ..ir.graph import Graph, Node
from ..ops.internal import InputSize, Sizes
from ..records import replace
from .scopes import Path, common, weights


def separate_sizes(graph: Graph, paths: list[Path]) -> tuple[list[Node[Any]], list[Path]]:
    """The nodes, with shapes rebuilt in every module that reads them, which costs nothing."""
    users: dict[str, list[int]] = {}
    captured: set[str] = {a.name for a in graph.outputs}
    for i, node in enumerate(graph.nodes):
        direct = {a.name for a in node.inputs}
        for a in node.uses():
            if a.name in direct:
                users.setdefault(a.name, []).append(i)
            else:
                captured.add(a.name)
    nodes: list[Node[Any]] = []
    out: list[Path] = []
    renamed: dict[tuple[str, Path], Argument] = {}
    for i, node in enumerate(graph.nodes):
        if isinstance(node, Sizes) and node.outputs[0].name not in captured:
            name = node.outputs[0].name
            wanted = list(dict.fromkeys(paths[u] for u in users.get(name, [])))
            for n, path in enumerate(wanted):
                mine = node.outputs[0] if n == 0 else replace(node.outputs[0], name=f"{name} in {'.'.join(path)}")
                renamed[name, path] = mine
                label = node.name if n == 0 else f"{node.name} in {'.'.join(path)}"
                nodes.append(replace(node, name=label, outputs=(mine,)))
                out.append(path)
            continue
        inputs = tuple(renamed.get((a.name, paths[i]), a) for a in node.inputs)
        nodes.append(node if inputs == node.inputs else replace(node, inputs=inputs))
        out.append(() if isinstance(node, InputSize) else paths[i])
    return nodes, out


def hoisted(nodes: Sequence[Node[Any]], paths: list[Path]) -> list[Path]:
    """The paths, with nodes shared by the items of a list moved before the list, and readers of another module's table
    moved to the module that holds both."""
    paths = list(paths)
    maker = {o.name: i for i, node in enumerate(nodes) for o in node.outputs if o.present}
    users: dict[int, list[int]] = {}
    for i, node in enumerate(nodes):
        for a in node.uses():
            if a.name in maker:
                users.setdefault(maker[a.name], []).append(i)
    _share_tables(nodes, paths)
    for i, here in enumerate(paths):
        level = _list_level(here, [paths[u] for u in users.get(i, [])])
        if level is None:
            continue
        chain = _independent(i, level + 1, nodes, paths, maker, here[: level + 1])
        if chain is not None:
            for j in chain:
                paths[j] = here[:level]
    return paths


def _share_tables(nodes: Sequence[Node[Any]], paths: list[Path]) -> None:
    """Move the readers of another module's table to the module that holds both."""
    tables: dict[Hashable, int] = {}
    for i, node in enumerate(nodes):
        table = node.table()
        if table is not None:
            tables.setdefault(table.key(), i)
    for i, node in enumerate(nodes):
        for a in weights(node):
            held = a.value.source if a.value is not None else None
            key = getattr(held, "matrix", None)
            if key is not None and key.key() in tables and tables[key.key()] != i:
                paths[i] = common(paths[i], paths[tables[key.key()]][:-1])


def _list_level(here: Path, others: Iterable[Path]) -> int | None:
    """The length of the common prefix of two paths that separate at two items of one list."""
    levels = []
    for other in others:
        n = len(common(here, other))
        if n < len(here) and n < len(other) and here[n].isdigit() and other[n].isdigit():
            levels.append(n)
    return min(levels, default=None)


def _independent(
    i: int, depth: int, nodes: Sequence[Node[Any]], paths: Sequence[Path], maker: dict[str, int], inside: Path
) -> set[int] | None:
    """The nodes of a module from which node i is computed, if only constants and outer values enter; else None."""
    found: set[int] = set()
    todo = [i]
    while todo:
        at = todo.pop()
        if at in found:
            continue
        node = nodes[at]
        if weights(node) or not node.pure or len(found) > 64:
            return None
        found.add(at)
        for a in node.uses():
            made = maker.get(a.name)
            if made is not None and paths[made][:depth] == inside:
                todo.append(made)
    return found
