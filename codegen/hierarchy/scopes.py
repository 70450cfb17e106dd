"""Which module each node of a graph belongs to, from what the file says: paths of nodes, and names of weights."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from ..ir.argument import Argument
from ..ir.graph import Model, Node
from ..ir.keys import trainable
from ..ir.value import Fill, Transposed, Value

Path = tuple[str, ...]
_COPY = re.compile(r" \d+$")
_COUNTED = re.compile(r"\w+_\d+")
_VARIABLE = re.compile(r"\w+_\d+\.[wb]_\d+")


def common(a: Path, b: Path) -> Path:
    """The longest path that both begin with."""
    n = 0
    while n < len(a) and n < len(b) and a[n] == b[n]:
        n += 1
    return a[:n]


def names_of(a: Argument) -> Iterator[str]:
    """The names by which a constant may be known: its own, and its initializer's."""
    yield a.name
    value = a.value
    if value is not None:
        held: Value = value.source.matrix if isinstance(value.source, Transposed) else value
        if isinstance(held.origin, str):
            yield held.origin


def written(name: str) -> Path:
    """The path that a weight's name tells, its own last word included: ("fc", "weight") of "fc.weight"; else ()."""
    if "." not in name or "/" in name or ":" in name:
        return ()
    path = tuple(name.split("."))
    if path[-1].isdigit():
        return ()
    return tuple(map(_part, path)) if all(re.fullmatch(r"\w+", p) for p in path) else ()


def _part(text: str) -> str:
    """A name in a path; one of digits that is no index, such as "00", gets a letter."""
    return "n" + text if text.isdigit() and not (text.isascii() and str(int(text[:9])) == text) else text


def owner(a: Argument) -> Path:
    """The module whose weight a constant is: ("layers", "0", "fc") of "layers.0.fc.weight"; () where nothing says."""
    for name in names_of(a):
        path = written(name)
        if path:
            return path[:-1]
    return ()


def weights(node: Node[Any]) -> list[Argument]:
    """The constants of a node that become parameters of the model."""
    found = []
    for i, a in enumerate(node.inputs):
        value = a.value
        if value is None or not trainable(value) or value.size < 2:
            continue
        if not isinstance(value.source, Fill) or i in node.static:
            found.append(a)
    return found


def parameters(node: Node[Any]) -> list[Argument]:
    """`weights`, and other constants that are too long to be written in the code."""
    if all(a.value is None for a in node.inputs):
        return []
    held = weights(node)
    return [
        a
        for i, a in enumerate(node.inputs)
        if a.value is not None
        and a.value.size > 1
        and (a in held or (i not in node.static and a.value.size > 16 and not isinstance(a.value.source, Fill)))
    ]


def scopes_of(model: Model, nodes: Sequence[Node[Any]]) -> tuple[list[Path], set[str]]:
    """A path for each node: of the file, else of its weights, else of the nodes around it; and the names of the nodes
    of which the file says it."""
    found: list[Path | None] = []
    for node in nodes:
        path = _said(model, node.name)
        for a in parameters(node):
            held = owner(a)
            if held and (path is None or (len(held) > len(path) and held[: len(path)] == path)):
                path = held
                break
        found.append(path)
    said = {node.name for node, path in zip(nodes, found, strict=True) if path is not None}
    _fill(nodes, found)
    return unwrapped([p or () for p in found], nodes), said


def counted(paths: Sequence[Path], nodes: Sequence[Node[Any]]) -> bool:
    """Whether the paths are no modules, but Paddle's variables, counted over the whole model: "conv2d_7.w_0"."""
    if not all(not p or (len(p) == 1 and _COUNTED.fullmatch(p[0])) for p in paths):
        return False
    return any(_VARIABLE.fullmatch(n) for node in nodes for a in parameters(node) for n in names_of(a))


def unwrapped(paths: list[Path], nodes: Sequence[Node[Any]]) -> list[Path]:
    """The paths without a module around the whole model that no weight's name knows."""
    said = {owner(a)[:1] for node in nodes for a in parameters(node)} - {()}
    while True:
        first = {p[:1] for p in paths if p}
        if (
            len(first) != 1
            or first & said
            or not all(len(p) != 1 or not parameters(n) for p, n in zip(paths, nodes, strict=True))
        ):
            return paths
        paths = [p[1:] for p in paths]


def _said(model: Model, name: str) -> Path | None:
    base = name.partition("::")[0]
    for known in (name, base, _COPY.sub("", base)):
        if known in model.scopes:
            return tuple(map(_part, model.scopes[known]))
    return None


def _fill(nodes: Sequence[Node[Any]], found: list[Path | None]) -> None:
    """Give a node without a path that of the nodes between which it stands."""
    if all(p is not None for p in found):
        return
    maker: dict[str, int] = {o.name: i for i, node in enumerate(nodes) for o in node.outputs if o.present}
    following: list[Path | None] = [None] * len(nodes)
    for i in range(len(nodes) - 1, -1, -1):
        mine = found[i] if found[i] is not None else following[i]
        if mine is None:
            continue
        for a in nodes[i].uses():
            at = maker.get(a.name)
            if at is not None:  # the first user in order wins
                following[at] = mine
    for i, node in enumerate(nodes):
        if found[i] is not None:
            continue
        made = [maker[a.name] for a in node.uses() if a.name in maker]
        before = found[max(made)] if made else None
        after = following[i]
        found[i] = between(before, after)


def between(before: Path | None, after: Path | None) -> Path:
    """The path of what stands between two modules: the innermost that holds both; of two items of one list, the first,
    which ends there."""
    if before is None or after is None:
        return ()
    shared = common(before, after)
    n = len(shared)
    if n + 1 < len(before) and n < len(after) and before[n].isdigit() and after[n].isdigit():
        return before[: n + 1]
    return shared
