"""Regions: the nodes of a graph as a tree of regions, each a module that can run as one step.

A module's nodes become a region if no value leaves the module and comes back changed. Any other module is dissolved,
and its parts belong to the enclosing module.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import field
from itertools import pairwise
from typing import Any

from ..ir.argument import Argument
from ..ir.graph import Graph, Node
from ..ir.types import TensorType
from ..ops.internal import InputSize, Sizes
from ..records import dataclass
from .moving import hoisted, separate_sizes
from .ordering import circles, sorted_by
from .scopes import Path, parameters

FEW = 2
SMALL = 4  # a module of one layer and at most this many nodes gets no class
FEW_STEPS = 6  # a module that occurs once and has at most this many lines gets no class


@dataclass
class Region:
    """A module: nodes and inner modules in an order they can run in. `places` are the paths of the nodes' own modules,
    by the name of the node."""

    path: Path
    items: list[Node[Any] | Region]
    inputs: list[Argument] = field(default_factory=list)
    outputs: list[Argument] = field(default_factory=list)

    def nodes(self) -> list[Node[Any]]:
        """Every node in it, in order."""
        out: list[Node[Any]] = []
        for item in self.items:
            out += item.nodes() if isinstance(item, Region) else [item]
        return out

    def regions(self) -> list[Region]:
        return [i for i in self.items if isinstance(i, Region)]

    def own(self) -> list[Node[Any]]:
        """The nodes outside of its inner regions."""
        return [i for i in self.items if not isinstance(i, Region)]


def grouped(
    graph: Graph, scopes: Sequence[Path], whole: bool = False, chosen: set[Path] | None = None, caches: bool = False
) -> tuple[Region, dict[str, Path]]:
    """The tree of a graph's nodes by their paths, and for each node the path of the module that it is or belongs to.

    whole: put all nodes in one region. chosen: the paths that become regions, by default the worthwhile ones. caches:
    inline a module around nearly the whole model, which would only hand the caches on.
    """
    nodes, paths = separate_sizes(graph, list(scopes))
    paths = hoisted(nodes, paths)
    places = {node.name: path for node, path in zip(nodes, paths, strict=True)}
    candidates, homes = (chosen, paths) if chosen is not None else candidates_of(nodes, paths)
    if caches:
        candidates = candidates - {_wrapper(candidates, nodes, paths)}
    tree = _Tree(nodes, homes, set() if whole else candidates)
    root = tree.region((), list(range(len(nodes))))
    _interfaces(root, {a.name for a in graph.outputs})
    return root, places


# -- which modules may be regions -------------------------------------------------------------------------------------


def candidates_of(nodes: Sequence[Node[Any]], paths: Sequence[Path]) -> tuple[set[Path], list[Path]]:
    """The paths that may become regions, and for each node the path of its region if all of them do."""
    count: dict[Path, int] = {}
    heavy: dict[Path, int] = {}
    children: dict[Path, set[str]] = {}
    for node, path in zip(nodes, paths, strict=True):
        weight = 1 if parameters(node) else 0
        for n in range(len(path) + 1):
            count[path[:n]] = count.get(path[:n], 0) + 1
            heavy[path[:n]] = heavy.get(path[:n], 0) + weight
            if n < len(path):
                children.setdefault(path[:n], set()).add(path[n])
    candidates = set()
    for path, n in count.items():
        listed = children.get(path)
        is_list = listed is not None and all(c.isdigit() for c in listed)
        if path and n >= FEW and heavy[path] and not is_list:
            candidates.add(path)
    return worthwhile(candidates, nodes, paths, heavy), list(paths)


def worthwhile(
    candidates: set[Path], nodes: Sequence[Node[Any]], paths: Sequence[Path], heavy: dict[Path, int]
) -> set[Path]:
    """The candidates for which a person would write a class: not a single layer with few nodes around it (SMALL), and
    not a short module that occurs once (FEW_STEPS)."""
    within: dict[Path, list[str]] = {path: [] for path in candidates}
    for node, path in zip(nodes, paths, strict=True):
        if not isinstance(node, Sizes | InputSize):
            op = node.op()
            for n in range(1, len(path) + 1):
                if path[:n] in within:
                    within[path[:n]].append(op)
    for ops in within.values():
        ops.sort()
    alike: dict[tuple[str, ...], int] = {}
    for ops in within.values():
        alike[tuple(ops)] = alike.get(tuple(ops), 0) + 1
    steps = _steps(candidates, paths)
    kept = set(candidates)
    for path in sorted(candidates, key=len, reverse=True):
        ops = within[path]
        single = heavy[path] == 1 and len(ops) <= SMALL
        once = alike[tuple(ops)] == 1 and len(steps[path]) <= FEW_STEPS and not path[-1].isdigit()
        if single or once:
            kept.discard(path)
            around = next((path[:n] for n in range(len(path) - 1, 0, -1) if path[:n] in kept), None)
            if around is not None:
                steps[around] |= steps[path]
                steps[around].discard(_step(path))
    return kept


def _wrapper(candidates: set[Path], nodes: Sequence[Node[Any]], paths: Sequence[Path]) -> Path:
    """The path of a module that is nearly the whole model, like `model` beside `lm_head`; () if there is none."""
    tops = {p[:1] for p in candidates}
    path = next(iter(tops), ())
    if len(tops) > 1 or path not in candidates or path[-1].isdigit() or len(candidates) < 2:
        return ()
    steps = [n for n, p in zip(nodes, paths, strict=True) if p[:1] != path]
    around = sum(isinstance(n.outputs[0].type, TensorType) for n in steps)  # without sizes and caches
    return path if around <= FEW_STEPS else ()


def _steps(candidates: set[Path], paths: Sequence[Path]) -> dict[Path, set[Any]]:
    """The steps of each candidate's forward: its own nodes and its inner modules, with those of a list as one."""
    steps: dict[Path, set[Any]] = {path: set() for path in candidates}
    for i, path in enumerate(paths):
        held = [path[:n] for n in range(1, len(path) + 1) if path[:n] in steps]
        for outer, inner in pairwise(held):
            steps[outer].add(_step(inner))
        if held:
            steps[held[-1]].add(i)
    return steps


def _step(inner: Path) -> Path:
    return (*inner[:-1], "*") if inner[-1].isdigit() else inner


class _Tree:
    """Builds regions from the outermost inward."""

    def __init__(self, nodes: Sequence[Node[Any]], homes: Sequence[Path], candidates: set[Path]) -> None:
        self.nodes = nodes
        self.homes = homes
        self.candidates = set(candidates)
        self.maker = {o.name: i for i, node in enumerate(nodes) for o in node.outputs if o.present}
        self.reads = [sorted({self.maker[a.name] for a in node.uses() if a.name in self.maker}) for node in nodes]

    def region(self, path: Path, members: list[int]) -> Region:
        """The region of a path, of the nodes `members`."""
        while True:
            owner = {i: self._child(path, i) for i in members}
            bad = self._entangled(members, owner)
            if not bad:
                break
            self.candidates -= bad
        parts: dict[Path, list[int]] = {}
        for i in members:
            part = owner[i]
            if isinstance(part, tuple):
                parts.setdefault(part, []).append(i)
        order = self._order(members, owner)
        items: list[Node[Any] | Region] = []
        for key in order:
            items.append(self.region(key, parts[key]) if isinstance(key, tuple) else self.nodes[key])
        return Region(path, items)

    def _child(self, path: Path, i: int) -> Path | int:
        """The inner region that contains node i, or the node itself."""
        home = self.homes[i]
        for n in range(len(path) + 1, len(home) + 1):
            if home[:n] in self.candidates:
                return home[:n]
        return i

    def _edges(self, members: list[int], owner: dict[int, Path | int]) -> dict[Path | int, set[Path | int]]:
        """{part: the parts that it reads}."""
        edges: dict[Path | int, set[Path | int]] = {owner[i]: set() for i in members}
        for i in members:
            mine = owner[i]
            for j in self.reads[i]:
                other = owner.get(j)
                if other is not None and other != mine:
                    edges[mine].add(other)
        return edges

    def _entangled(self, members: list[int], owner: dict[int, Path | int]) -> set[Path]:
        """The inner regions that depend on each other cyclically."""
        bad: set[Path] = set()
        for group in circles(self._edges(members, owner)):
            bad.update(k for k in group if isinstance(k, tuple))
        return bad

    def _order(self, members: list[int], owner: dict[int, Path | int]) -> list[Path | int]:
        """The parts in topological order, close to the file's, with the items of a list consecutive."""
        edges = self._edges(members, owner)
        first: dict[Path | int, int] = {}
        for i in members:
            first.setdefault(owner[i], i)
        lists: dict[Path | int, Path | int] = {
            key: (*key[:-1], "*") for key in edges if isinstance(key, tuple) and key[-1].isdigit()
        }

        def merged_key(key: Path | int) -> Path | int:
            return lists.get(key, key)

        def merged_edges() -> dict[Path | int, set[Path | int]]:
            found: dict[Path | int, set[Path | int]] = {}
            for key, reads in edges.items():
                own = merged_key(key)
                found.setdefault(own, set()).update({merged_key(r) for r in reads} - {own})
            return found

        for group in circles(merged_edges()):  # something comes between the items of a list
            for key in list(lists):
                if lists[key] in group:
                    del lists[key]
        merged = merged_edges()
        inside: dict[Path | int, list[Path | int]] = {}
        for key in edges:
            inside.setdefault(merged_key(key), []).append(key)
        start = {key: min(first[k] for k in held) for key, held in inside.items()}
        out: list[Path | int] = []
        for key in sorted_by(merged, start):
            held = inside[key]
            if len(held) == 1:
                out += held
            else:
                out += sorted_by({k: edges[k] & set(held) for k in held}, first)
        return out


# -- what goes in and out ---------------------------------------------------------------------------------------------


def _interfaces(root: Region, results: set[str]) -> None:
    """Fill in the inputs and outputs of every region below `root`; a region without outputs is dissolved."""
    readers = Counter(results)
    _count_readers(root, readers)
    _fill(root, readers)


def _count_readers(region: Region, readers: Counter[str]) -> None:
    for item in region.items:
        if isinstance(item, Region):
            _count_readers(item, readers)
        else:
            readers.update({a.name for a in item.uses()})


def _fill(region: Region, readers: Counter[str]) -> tuple[dict[str, Argument], dict[str, Argument], Counter[str]]:
    """(what a region needs, what it makes, how often a node in it reads each value)."""
    needed: dict[str, Argument] = {}
    made: dict[str, Argument] = {}
    inside: Counter[str] = Counter()
    items: list[Node[Any] | Region] = []
    for item in region.items:
        if isinstance(item, Region):
            wants, outs, reads = _fill(item, readers)
            inside += reads
            items += [item] if item.outputs else item.items
            uses: Iterable[Argument] = wants.values()
        else:
            uses = item.uses()
            outs = {o.name: o for o in item.outputs if o.present}
            inside.update({a.name for a in item.uses()})
            items.append(item)
        for a in uses:
            if a.present and a.value is None and a.name not in made:
                needed.setdefault(a.name, a)
        made.update(outs)
    region.items = items
    region.inputs = list(needed.values())
    region.outputs = [a for name, a in made.items() if readers[name] > inside[name]]
    return needed, made, inside
