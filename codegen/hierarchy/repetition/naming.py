"""Names repeated blocks and their layers as the file does, where it has names.

An exporter that stores equal weights once keeps the name of one layer for all of them, and one that stores a matrix
transposed drops its name. The blocks are found by repetition and take the names that are left.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...ir.graph import Graph, Node
from ...records import dataclass
from ..scopes import Path, common, owner, parameters, written


@dataclass(frozen=True)
class Named:
    """A path for each node, the paths of the blocks, the names of their classes, and those of layers that the file
    names, by their nodes."""

    scopes: list[Path]
    chosen: set[Path]
    kinds: dict[Path, str]
    layers: dict[str, str]


def named_blocks(graph: Graph, scopes: Sequence[Path], chosen: set[Path], kinds: Mapping[Path, str]) -> Named:
    """The blocks of `repetition.blocks_of` under the names of the file."""
    tops = [p for p in dict.fromkeys(q[:n] for q in scopes for n in range(1, len(q) + 1)) if p in chosen]
    tops = [p for p in tops if not any(p[:n] in chosen for n in range(1, len(p)))]
    held: dict[Path, list[Node[Any]]] = {p: [] for p in tops}
    outside: list[Path] = []
    for node, path in zip(graph.nodes, scopes, strict=True):
        if not parameters(node):
            continue
        top = next((path[:n] for n in range(1, len(path) + 1) if path[:n] in held), None)
        if top is not None:
            held[top].append(node)
        else:
            outside += [owner(a) for a in parameters(node)]
    places = _places(held)
    new = _distinct(_prefixes(places), outside)
    layers = _layers(held, places, new, scopes=dict(zip((n.name for n in graph.nodes), scopes, strict=True)))

    def moved(path: Path) -> Path:
        for n in range(1, len(path) + 1):
            if path[:n] in new:
                return (*new[path[:n]], *path[n:])
        return path

    listed = {moved(p) for p in new if p[-1].isdigit()}  # the list's name says what its items are
    return Named(
        [moved(p) for p in scopes],
        {moved(p) for p in chosen},
        {moved(p): kind for p, kind in kinds.items() if moved(p) not in listed},
        layers,
    )


def _places(held: Mapping[Path, Sequence[Node[Any]]]) -> dict[Path, list[Path]]:
    """The name of each layer of each block; a name belongs to the first layer that has it."""
    seen: set[Path] = set()
    out: dict[Path, list[Path]] = {}
    for p, nodes in held.items():
        out[p] = []
        for node in nodes:
            path = next((q for a in parameters(node) if (q := owner(a))), ())
            out[p].append(path if path not in seen else ())
            seen.add(path)
    return out


def _prefixes(places: Mapping[Path, Sequence[Path]]) -> dict[Path, Path]:
    """The name of each block: the common prefix of the names of its layers."""
    shared: dict[Path, Path] = {}
    for p, paths in places.items():
        known = [q for q in paths if q]
        if known:
            prefix = known[0]
            for q in known[1:]:
                prefix = common(prefix, q)
            shared[p] = prefix[:-1] if prefix in known else prefix
    found = {p: q for p, q in shared.items() if q and not p[-1].isdigit() and not q[-1].isdigit()}
    for base in dict.fromkeys(p[:-1] for p in places if p[-1].isdigit()):
        bases = {_list_of(shared[p], p[-1]) for p in shared if p[:-1] == base}
        if len(bases) == 1 and (name := bases.pop()):
            found.update((p, (*name, p[-1])) for p in places if p[:-1] == base)
    return found


def _list_of(prefix: Path, number: str) -> Path:
    """The list that the item of this number is in: ("model", "layers") for ("model", "layers", "0", "mlp")."""
    numbers = [n for n, part in enumerate(prefix) if part.isdigit()]
    return prefix[: numbers[-1]] if numbers and prefix[numbers[-1]] == number else ()


def _distinct(found: dict[Path, Path], outside: Iterable[Path]) -> dict[Path, Path]:
    """The names that belong to one block alone: no outside layer and no other block is under them."""
    taken = Counter(q[:n] for q in (*set(outside), *set(found.values())) for n in range(1, len(q) + 1))
    names = Counter(found.values())
    clash = {q for q, n in names.items() if n > 1 or taken[q] > 1}
    lists = {p[:-1] for p, q in found.items() if q in clash and p[-1].isdigit()}
    return {p: q for p, q in found.items() if q not in clash and p[:-1] not in lists}


def _layers(
    held: Mapping[Path, Sequence[Node[Any]]],
    places: Mapping[Path, Sequence[Path]],
    new: Mapping[Path, Path],
    scopes: Mapping[str, Path],
) -> dict[str, str]:
    """The names of layers, alike for every block of a kind; a kind of which one layer has a number has none.

    A name that ends in a dot is the name of a module with more layers, such as `self_attn.` of a bias
    `self_attn.in_proj_bias`.
    """
    alike: dict[Any, list[Path]] = {}
    for p, nodes in held.items():
        alike.setdefault(tuple((n.op(), scopes[n.name][len(p) :]) for n in nodes), []).append(p)
    out: dict[str, str] = {}
    for blocks in alike.values():
        names: dict[int, Path] = {}
        for p in blocks:
            for i, q in enumerate(places[p]):
                if p in new and q[: len(new[p])] == new[p] and len(q) > len(new[p]):
                    names.setdefault(i, q[len(new[p]) :])
        if any(q[0].isdigit() for q in names.values()) or len(set(names.values())) < len(names):
            continue
        _numbered(names, held[blocks[0]])
        for p in blocks:
            for i, node in enumerate(held[p]):
                if i in names and scopes[node.name] == p:
                    around = any(q[: len(names[i])] == names[i] != q for q in names.values())
                    out[node.name] = ".".join(names[i]) + "." * around
    return out


def _numbered(names: dict[int, Path], nodes: Sequence[Node[Any]]) -> None:
    """Name layers whose weights were stored under another layer's name after that layer, if its name has a number: ln_2
    after ln_1."""
    for i, node in enumerate(nodes):
        said = [written(a.name.partition("::")[0])[:-1] for a in parameters(node) if "::" in a.name]
        found = re.fullmatch(r"(.*\D)(\d+)", said[0][-1]) if i not in names and said and said[0] else None
        like = next((q for q in names.values() if found and q[-1] == found[0]), None)
        if found and like:
            n = int(found[2]) + 1
            while (*like[:-1], f"{found[1]}{n}") in names.values():
                n += 1
            names[i] = (*like[:-1], f"{found[1]}{n}")
