"""Repetition: finds repeated blocks of a graph by what they compute, for files that name no modules.

The nodes that depend on weights form a sequence in the file's order. It is cut where the fewest values cross, and each
part is cut again in the same way: a residual branch becomes one item of the sequence around it. Runs of items that
occur more than once, equal except for numbers and weights, become blocks, starting with the run that saves the most
lines; then runs among blocks and inside them. A wrong guess here costs lines, not correctness: classes are proved equal
by their code (`classes.py`), and a block that differs from the others gets its own class.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...ir.graph import Graph, Node
from ...ir.types import ScalarType, ShapeType
from ..scopes import Path, common, weights
from .block_names import Part, around, kind_of
from .sequence import Item, NodeSequence

MOST_ASIDE = 8  # maximum number of nodes between a table and a value that is read throughout the model
FEW = 7  # two blocks of at most this many nodes do not become a list


def blocks_of(graph: Graph) -> tuple[list[Path], set[Path], dict[Path, str]]:
    """A path for each node, the paths of the blocks, and a name for the class of each; all paths are () if nothing
    repeats."""
    nodes = graph.nodes
    strong = _strong(nodes)
    sequence = NodeSequence([nodes[i] for i in strong])
    root = sequence.replaced()
    if not sequence.rules:
        return [() for _ in nodes], set(), {}
    placed: list[Path | None] = [None] * len(nodes)
    places = _Places(sequence)
    places.assign(root, ())
    for i, path in zip(strong, places.paths, strict=True):
        placed[i] = path
    return _beside(graph, placed), set(places.kinds), places.kinds


def _strong(nodes: Sequence[Node[Any]]) -> list[int]:
    """The nodes that have weights or depend on them, except through sizes."""
    held: set[str] = set()
    out = []
    for i, node in enumerate(nodes):
        if any(isinstance(o.type, ScalarType | ShapeType) for o in node.outputs):
            continue
        layer = node.table() is not None or weights(node)
        if layer or any(a.name in held for a in node.uses()):
            held.update(o.name for o in node.outputs if o.present)
            out.append(i)
    aside = _for_all(nodes, out)
    return [i for i in out if i not in aside]


def _for_all(nodes: Sequence[Node[Any]], strong: Sequence[int]) -> set[int]:
    """The nodes that compute, from a table or a vector alone, values that are read throughout the model, such as a
    relative position bias or the cosines and sines of a rotary embedding."""
    users: dict[str, list[int]] = {}
    place = {i: n for n, i in enumerate(strong)}
    maker = {o.name: i for i in strong for o in nodes[i].outputs if o.present}
    for i in strong:
        for a in nodes[i].uses():
            users.setdefault(a.name, []).append(i)
    reads = {i: {maker[a.name] for a in nodes[i].uses() if a.name in maker} for i in strong}

    def far(i: int) -> bool:
        at = sorted({u for o in nodes[i].outputs for u in users.get(o.name, [])})
        return len(at) > 2 and place[at[-1]] - place[at[0]] > len(strong) // 3

    aside: set[int] = set()
    for i in strong:
        node = nodes[i]
        vectors = not reads[i] and all(a.value is not None and len(a.value.shape) == 1 for a in weights(node))
        if i in aside or (node.table() is None and not vectors):
            continue
        inside, todo, ends = {i}, [i], []
        while todo and len(inside) < MOST_ASIDE:
            at = todo.pop(0)
            if far(at):
                ends.append(at)
                continue
            for u in sorted({u for o in nodes[at].outputs for u in users.get(o.name, [])}):
                if u not in inside and reads[u] <= inside and not weights(nodes[u]) and len(nodes[u].outputs) == 1:
                    inside.add(u)
                    todo.append(u)
        ends += [at for at in todo if far(at)]
        while ends:
            at = ends.pop()
            if at not in aside:
                aside.add(at)
                ends += reads[at]
    return aside


def _beside(graph: Graph, placed: Sequence[Path | None]) -> list[Path]:
    """The paths; a node without one belongs to the innermost block that holds all its readers."""
    out: list[Path | None] = list(placed)
    readers: dict[str, Path] = {a.name: () for a in graph.outputs}
    for i in range(len(graph.nodes) - 1, -1, -1):
        node = graph.nodes[i]
        path = out[i]
        if path is None:
            found = [readers[o.name] for o in node.outputs if o.name in readers]
            path = found[0] if found else ()
            for other in found[1:]:
                path = common(path, other)
            out[i] = path
        for a in node.uses():
            if a.present and a.value is None:
                readers[a.name] = common(readers[a.name], path) if a.name in readers else path
    return [p or () for p in out]


# -- places -----------------------------------------------------------------------------------------------------------


class _Places:
    """Paths for blocks: items of a list for consecutive ones, else separate fields."""

    def __init__(self, sequence: NodeSequence) -> None:
        self.sequence = sequence
        self.paths: list[Path] = [()] * len(sequence.nodes)
        self.kinds: dict[Path, str] = {}
        self._kinds: dict[int, str] = {}

    def kind(self, rule: int) -> str:
        if rule not in self._kinds:
            item = self.sequence.rules[rule][0]
            s = self.sequence
            outside = {m for i in range(item.first, item.last) for m in s.reads[i] if m < item.first}
            kind = kind_of(Part(s.nodes[item.first : item.last], len(outside)))
            within = {self.kind(i.rule) for held in item.lists() for i in held if i.rule >= 0}
            self._kinds[rule] = around(kind, s.nodes[item.first : item.last]) if kind in within else kind
        return self._kinds[rule]

    def assign(self, items: list[Item], prefix: Path) -> None:
        runs = list(self._runs(items))
        names = [self._name(run) if run[0].rule >= 0 else "" for run in runs]
        count: dict[str, int] = {}
        for name in names:
            count[name] = count.get(name, 0) + 1
        number: dict[str, int] = {}
        for run, name in zip(runs, names, strict=True):
            if not name:
                for i in range(run[0].first, run[0].last):
                    self.paths[i] = prefix
                continue
            number[name] = number.get(name, 0) + 1
            path = (*prefix, f"{name}{number[name]}" if count[name] > 1 else name)
            for n, item in enumerate(run):
                place = (*path, str(n)) if len(run) > 1 else path
                self.kinds[place] = self.kind(item.rule)
                self.paths[item.first : item.last] = [place] * (item.last - item.first)
                self.assign(item.items, place)

    def _runs(self, items: list[Item]) -> Iterator[list[Item]]:
        """Consecutive blocks as one run, everything else alone; includes the items of parts."""
        run: list[Item] = []
        for item in items:
            if run and item.rule >= 0 and self._continues(run, item):
                run.append(item)
                continue
            yield from self._listed(run)
            run = [item] if item.rule >= 0 else []
            if item.rule < 0:
                yield from self._runs(item.items) if item.items else [[item]]
        yield from self._listed(run)

    def _continues(self, run: Sequence[Item], item: Item) -> bool:
        """Whether a block takes the result of a run's last block, and the same number of values."""
        last, s = run[-1], self.sequence
        reads = {m for i in range(item.first, item.last) for m in s.reads[i]}
        return any(last.first <= m < last.last for m in reads) and self._ports(item) == self._ports(run[0])

    def _listed(self, run: Sequence[Item]) -> Iterator[list[Item]]:
        """A run as a list, or as separate blocks if it is just two small ones."""
        if len(run) == 2 and run[0].last - run[0].first < FEW:
            yield from ([item] for item in run)
        elif run:
            yield list(run)

    def _ports(self, item: Item) -> tuple[int, int]:
        """The numbers of inputs and outputs of an item."""
        s = self.sequence
        inside = range(item.first, item.last)
        takes: set[int | str] = {m for i in inside for m in s.reads[i] if m < item.first}
        takes |= {a.name for i in inside for a in s.nodes[i].uses() if a.name in s.entries}
        gives = sum(s.ends.get(o.name, 0) >= item.last for n in s.nodes[item.first : item.last] for o in n.outputs)
        return len(takes), gives

    def _name(self, run: Sequence[Item]) -> str:
        kinds = [self.kind(item.rule) for item in run]
        if len(run) > 1:
            return "layers" if all(k.endswith("Layer") for k in kinds) else "blocks"
        return _field(kinds[0])


def _field(kind: str) -> str:
    return "".join("_" + c.lower() if c.isupper() and n else c.lower() for n, c in enumerate(kind))
