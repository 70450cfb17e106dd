"""Repetition: finds repeated blocks of a graph by what they compute, for files that name no modules.

The nodes that depend on weights form a sequence in the file's order. It is cut where the fewest values cross, and each
part is cut again in the same way: a residual branch becomes one item of the sequence around it. Runs of items that
occur more than once, equal except for numbers and weights, become blocks, starting with the run that saves the most
lines; then runs among blocks and inside them. A wrong guess here costs lines, not correctness: classes are proved equal
by their code (`classes.py`), and a block that differs from the others gets its own class.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import field, fields, is_dataclass
from enum import Enum
from itertools import pairwise
from typing import Any

from ..ir.graph import Graph, Node
from ..ir.keys import trainable
from ..ir.types import ScalarType, ShapeType
from ..ir.value import Value
from ..records import dataclass
from .block_names import POOLS, Part, around, kind_of
from .scopes import Path, common, parameters, weights

MAX_DEEP = 48
LONGEST = 64  # items of a block
LINES_OF_A_CLASS = 6
LEAST_SAVED = 2
MOST_ASIDE = 8  # the most nodes from a table to a value read all over the model
FEW = 7  # the most nodes of a block of which two do not make a list
_EXACT = ("axis", "axes", "perm")


@dataclass
class Item:
    """A part of the sequence: its nodes first .. last - 1. A part of several nodes has `items`."""

    first: int
    last: int
    token: int
    items: list[Item] = field(default_factory=list)
    rule: int = -1
    counted: bool = True

    def lists(self) -> Iterator[list[Item]]:
        if self.items:
            yield self.items
            for item in self.items:
                yield from item.lists()


def blocks_of(graph: Graph) -> tuple[list[Path], set[Path], dict[Path, str]]:
    """A path for each node, the paths of the blocks, and a name for the class of each; all paths are () if nothing
    repeats."""
    nodes = graph.nodes
    strong = _strong(nodes)
    sequence = _Sequence([nodes[i] for i in strong])
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
    """The nodes that compute, from a table or a vector alone, values read all over the model, such as a relative
    position bias, or the cosines and sines of a rotary embedding."""
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
    """The paths, with each node that has none put into the innermost block that holds all its readers."""
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


# -- what a node is, numbers and names aside --------------------------------------------------------------------------


def _plan(held: Any, exact: bool = False) -> Hashable:
    """A config without its numbers."""
    if isinstance(held, Value):
        return ("value", len(held.shape))
    if isinstance(held, Graph):
        return ("graph", id(held))
    if is_dataclass(held) and not isinstance(held, type):
        parts = ((f.name, _plan(getattr(held, f.name), f.name in _EXACT)) for f in fields(held))
        return (type(held).__name__, *parts)
    if isinstance(held, tuple):
        return held if exact else tuple(_plan(v) for v in held)
    if isinstance(held, bool | Enum) or held is None or exact:
        return held
    return "number"


def _shared(nodes: Sequence[Node[Any]]) -> set[Hashable]:
    """The matrices that several nodes share: they make one layer, which belongs to no single block."""
    seen: set[Hashable] = set()
    twice: set[Hashable] = set()
    for node in nodes:
        for key in {a.value.key() for a in weights(node) if a.value is not None and _is_matrix(a.value)}:
            (twice if key in seen else seen).add(key)
    return twice


def _is_matrix(value: Value) -> bool:
    return len(value.shape) > 1 and value.origin is not None and max(value.shape) < value.size


class _Sequence:
    """The nodes that depend on weights, in order, and the blocks found among them."""

    def __init__(self, nodes: Sequence[Node[Any]]) -> None:
        self.nodes = nodes
        self.known: dict[Hashable, int] = {}
        self.rules: dict[int, list[Item]] = {}
        self.maker = {o.name: i for i, node in enumerate(nodes) for o in node.outputs if o.present}
        self.entries = {n.inputs[0].name for n in nodes if any(_is_layer(a.value) for a in weights(n))} - {*self.maker}
        self.reads = [[self.maker[a.name] for a in node.uses() if a.name in self.maker] for node in nodes]
        self.ends = self._ends()
        self.crossing = self._crossing()
        shared = _shared(nodes)
        self.lines = [0.55 + (1 if parameters(node) else 0) for node in nodes]
        self.tokens = [self._token(i, shared) for i in range(len(nodes))]

    def _intern(self, what: Hashable) -> int:
        return self.known.setdefault(what, len(self.known))

    def _token(self, i: int, shared: set[Hashable]) -> int:
        node = self.nodes[i]
        if shared and any(a.value is not None and a.value.key() in shared for a in weights(node)):
            return self._intern(("alone", i))
        inputs: list[Hashable] = []
        for a in node.inputs:
            if not a.present:
                inputs.append("absent")
            elif a.value is not None:
                alike = trainable(a.value) and a.value.size > 1
                inputs.append((a.value.dtype.name, len(a.value.shape), alike))
            else:
                inputs.append("made" if a.name in self.maker or a.name in self.entries else "given")
        deep = getattr(node.config, "groups", 1) != 1
        return self._intern((node.op(), _plan(node.config), tuple(inputs), len(node.outputs), deep))

    # -- cuts ---------------------------------------------------------------------------------------------------------

    def _ends(self) -> dict[str, int]:
        """The last reader of each value. A value read all over the model, such as a mask, does not flow from block to
        block: it counts only up to its first reader, if that follows at once."""
        uses: dict[str, list[int]] = {}
        for i, node in enumerate(self.nodes):
            for a in node.uses():
                if a.name in self.maker:
                    uses.setdefault(a.name, []).append(i)
        far = len(self.nodes) // 3
        out = {}
        for name, at in uses.items():
            made = self.maker[name]
            if at[-1] - made <= far:
                out[name] = at[-1]
            elif at[0] - made <= 2:
                out[name] = at[0]
        return out

    def _crossing(self) -> list[int]:
        """The number of values that cross each gap between two nodes; gap i is before node i."""
        change = [0] * (len(self.nodes) + 2)
        for name, last in self.ends.items():
            change[self.maker[name] + 1] += 1
            change[last + 1] -= 1
        out, held = [], 0
        for c in change:
            held += c
            out.append(held)
        return out

    def _items(self, first: int, last: int, deep: int = 0) -> list[Item]:
        inside = range(first + 1, last)
        if not inside:
            return [Item(first, last, self.tokens[first])] if last > first else []
        least = min(self.crossing[i] for i in inside)
        cuts = [first, *(i for i in inside if self.crossing[i] == least), last]
        out = []
        for a, b in pairwise(cuts):
            if b == a + 1:
                out.append(Item(a, b, self.tokens[a]))
                continue
            within = self._items(a, b, deep + 1) if deep < MAX_DEEP else []
            out.append(Item(a, b, self._intern(("part", self.wiring(a, b))), within))
        return out

    def wiring(self, first: int, last: int) -> Hashable:
        """A description of what some nodes compute and how they are connected. Outer values are numbered as they
        occur."""
        outside: dict[tuple[int | None, str], int] = {}
        code: list[Hashable] = []
        for i in range(first, last):
            node = self.nodes[i]
            code.append(self.tokens[i])
            for a in node.uses():
                made = self.maker.get(a.name)
                if made is not None and first <= made:
                    code.append((made - first, [o.name for o in self.nodes[made].outputs].index(a.name)))
                elif made is not None or a.name in self.entries:
                    code.append(-1 - outside.setdefault((made, a.name), len(outside)))
        return tuple(code)

    # -- blocks -------------------------------------------------------------------------------------------------------

    def replaced(self) -> list[Item]:
        """The sequence with blocks."""
        root = Item(0, len(self.nodes), -1, self._items(0, len(self.nodes)))
        for _ in range(64):
            best = self._best(root)
            if best is None:
                break
            self._replace(root, best)
        return root.items

    def _best(self, root: Item) -> tuple[tuple[int, ...], Hashable] | None:
        """The run of items that saves the most lines as a block: its tokens and its wiring."""
        lists = [held for held in root.lists() if held[0].counted]
        best: tuple[float, int, int] | None = None
        found: tuple[tuple[int, ...], Hashable] | None = None
        for tokens, at in _repeated(lists):
            if all(t in self.rules for t in tokens) or _is_power(tokens):
                continue
            if len(tokens) == 1 and not at[0][0][at[0][1]].items:
                continue
            if any(t in self.rules for t in tokens):
                at = [(held, i) for held, i in at if self._keeps_runs(held, i, len(tokens))]
            if len(at) < 2 or not self._is_step(at[0][0][at[0][1] : at[0][1] + len(tokens)]):
                continue
            upper = len(at) * self._lines(at[0][0][at[0][1] : at[0][1] + len(tokens)])
            if best is not None and upper < best[0]:
                continue
            groups: dict[Hashable, list[tuple[list[Item], int]]] = {}
            for held, start in at:
                wiring = self.wiring(held[start].first, held[start + len(tokens) - 1].last)
                groups.setdefault(wiring, []).append((held, start))
            for wiring, places in groups.items():
                saved = self._saved(places, len(tokens))
                items = places[0][0][places[0][1] : places[0][1] + len(tokens)]
                rank = (saved, self._start(items[0]), -items[0].first)
                if saved >= LEAST_SAVED and (best is None or rank > best):
                    best, found = rank, (tokens, wiring)
        return found

    def _keeps_runs(self, held: list[Item], start: int, length: int) -> bool:
        """Whether consecutive blocks are either all inside or all outside."""
        end = start + length
        before = start and held[start - 1].rule >= 0 and held[start].rule >= 0
        after = end < len(held) and held[end].rule >= 0 and held[end - 1].rule >= 0
        return not before and not after

    def _is_step(self, items: Sequence[Item]) -> bool:
        """Whether a block is one step of a model: without a branch, an item that makes the feature map smaller must be
        its last."""
        if any(item.items for item in items):
            return True
        return not any(self.nodes[item.first].op() in POOLS for item in items[:-1])

    def _start(self, item: Item) -> int:
        """How suitable an item is as the start of a block: best a branch, then a layer, then a normalization."""
        if item.items:
            return 3
        held = weights(self.nodes[item.first])
        return 0 if not held else 2 if any(_rank(a.value) > 1 for a in held) else 1

    def _lines(self, items: Iterable[Item]) -> float:
        """The approximate number of lines of some items."""
        total = 0.0
        for item in items:
            if item.rule >= 0:
                total += 1.5
            elif item.items:
                total += self._lines(item.items)
            else:
                total += self.lines[item.first]
        return total

    def _saved(self, places: Sequence[tuple[list[Item], int]], length: int) -> float:
        held, start = places[0]
        lines = self._lines(held[start : start + length])
        runs: list[int] = []
        end: tuple[int, int] | None = None
        count = 0
        for held, start in places:
            if end is not None and end[0] == id(held) and start < end[1]:
                continue
            if end == (id(held), start):
                runs[-1] += 1
            else:
                runs.append(1)
            end = (id(held), start + length)
            count += 1
        if count < 2:
            return 0
        calls = sum(2.0 if n == 1 else 2 + 0.7 * n for n in runs)
        return count * lines - (LINES_OF_A_CLASS + lines + calls)

    def _replace(self, root: Item, best: tuple[tuple[int, ...], Hashable]) -> None:
        tokens, wiring = best
        rule = self._intern(("block", tokens, wiring))
        instances: list[Item] = []
        for held in list(root.lists()):
            i = 0
            while i + len(tokens) <= len(held):
                part = held[i : i + len(tokens)]
                fits = all(item.token == t for item, t in zip(part, tokens, strict=True))
                if fits and self.wiring(part[0].first, part[-1].last) == wiring:
                    inside = part[0].items if len(part) == 1 and part[0].items else part
                    made = Item(part[0].first, part[-1].last, rule, inside, rule, held[0].counted)
                    held[i : i + len(tokens)] = [made]
                    instances.append(made)
                i += 1
        for n, made in enumerate(instances):
            if n:
                for held in made.lists():
                    for item in held:
                        item.counted = False
        self.rules[rule] = instances


def _is_layer(value: Value | None) -> bool:
    return _rank(value) > 1


def _rank(value: Value | None) -> int:
    return 0 if value is None else len(value.shape)


def _is_power(tokens: tuple[int, ...]) -> bool:
    """Whether the tokens repeat a shorter run."""
    n = len(tokens)
    return any(n % k == 0 and tokens == tokens[:k] * (n // k) for k in range(1, n // 2 + 1))


def _repeated(lists: Sequence[list[Item]]) -> Iterator[tuple[tuple[int, ...], list[tuple[list[Item], int]]]]:
    """The runs of tokens that occur twice or more, and their positions."""
    at: dict[tuple[int, ...], list[tuple[list[Item], int]]] = {}
    for held in lists:
        for i, item in enumerate(held):
            at.setdefault((item.token,), []).append((held, i))
    length = 1
    while at and length <= LONGEST:
        kept = {tokens: places for tokens, places in at.items() if len(places) > 1}
        yield from kept.items()
        at = {}
        for tokens, places in kept.items():
            for held, i in places:
                if i + length < len(held):
                    at.setdefault((*tokens, held[i + length].token), []).append((held, i))
        length += 1


# -- places -----------------------------------------------------------------------------------------------------------


class _Places:
    """Paths for blocks: items of a list for consecutive ones, else separate fields."""

    def __init__(self, sequence: _Sequence) -> None:
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
