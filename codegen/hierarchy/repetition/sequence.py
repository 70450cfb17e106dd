"""The sequence of a graph's nodes that depend on weights, and the blocks among them: runs of nodes that occur more than
once, equal except for numbers and weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import field, fields, is_dataclass
from enum import Enum
from itertools import pairwise
from typing import Any

from ...ir.graph import Graph, Node
from ...ir.keys import trainable
from ...ir.value import Value
from ...records import dataclass
from ..scopes import owner, parameters, weights
from .block_names import POOLS
from .patterns import PATCH_STEPS, embeds, excites

MAX_DEEP = 48
LONGEST = 64  # items of a block
LINES_OF_A_CLASS = 6
LEAST_SAVED = 2
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


class NodeSequence:
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
        self._name_patterns(root)
        for _ in range(64):
            best = self._best(root)
            if best is None:
                break
            self._replace(root, best)
        return root.items

    def _name_patterns(self, root: Item) -> None:
        """Make blocks of the modules that have a name: of squeeze-and-excitations, if there are several, and of the
        embedding of patches."""
        found: Counter[tuple[tuple[int, ...], Hashable]] = Counter()
        for held in root.lists():
            for i, item in enumerate(held):
                steps = held[i : i + PATCH_STEPS]
                if item.items and excites(self.nodes[item.first : item.last]):
                    found[(item.token,), self.wiring(item.first, item.last)] += 1
                elif self._embeds(steps):
                    found[tuple(s.token for s in steps), self.wiring(item.first, steps[-1].last)] += 2
        for what, times in found.items():
            if times > 1:
                for made in self._replace(root, what, None if len(what[0]) == 1 else self._embeds):
                    made.items = []  # its layers belong to no other block

    def _embeds(self, items: Sequence[Item]) -> bool:
        """Whether items are the embedding of the patches of an image, and not of tokens in rows and columns, which the
        file does not name."""
        nodes = self.nodes[items[0].first : items[-1].last]
        if not embeds(nodes) or any(owner(a) for a in weights(nodes[0])):
            return False
        before = self.maker.get(nodes[0].inputs[0].name)
        return before is None or self.nodes[before].op() != "Reshape"

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

    def _replace(
        self,
        root: Item,
        best: tuple[tuple[int, ...], Hashable],
        where: Callable[[Sequence[Item]], bool] | None = None,
    ) -> list[Item]:
        """Make a run of items a block wherever it occurs and `where` allows it; returns the blocks."""
        tokens, wiring = best
        rule = self._intern(("block", tokens, wiring))
        instances: list[Item] = []
        for held in list(root.lists()):
            i = 0
            while i + len(tokens) <= len(held):
                part = held[i : i + len(tokens)]
                fits = all(item.token == t for item, t in zip(part, tokens, strict=True))
                fits = fits and self.wiring(part[0].first, part[-1].last) == wiring
                if fits and (where is None or where(part)):
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
        return instances


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
