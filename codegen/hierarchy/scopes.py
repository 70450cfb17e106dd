"""Finds the module of each node of a graph, from the paths of nodes and the names of weights in the file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from ..ir.argument import Argument
from ..ir.graph import Model, Node
from ..ir.keys import trainable
from ..ir.value import Fill, Transposed, Value

Path = tuple[str, ...]
_GATES = ("Sigmoid", "HardSigmoid")
_MEANS = ("ReduceMean", "GlobalAveragePool")
_ACTIVATIONS = ("Relu", "Clip", "Swish", "HardSwish", "Gelu", "Mish", "LeakyRelu")
_COPY = re.compile(r" \d+$")
_COUNTED = re.compile(r"\w+_\d+")
_VARIABLE = re.compile(r"\w+_\d+\.[wb]_\d+")


def common(a: Path, b: Path) -> Path:
    """The longest common prefix of two paths."""
    n = 0
    while n < len(a) and n < len(b) and a[n] == b[n]:
        n += 1
    return a[:n]


def names_of(a: Argument) -> Iterator[str]:
    """The names of a constant: its own and its initializer's."""
    yield a.name
    value = a.value
    if value is not None:
        held: Value = value.source.matrix if isinstance(value.source, Transposed) else value
        if isinstance(held.origin, str):
            yield held.origin


@lru_cache(maxsize=1 << 14)
def written(name: str) -> Path:
    """The path in a weight's name, including the last word: ("fc", "weight") for "fc.weight"; () if there is none."""
    if "." not in name or "/" in name or ":" in name:
        return ()
    path = tuple(name.split("."))
    if path[-1].isdigit():
        return ()
    return tuple(map(_part, path)) if all(re.fullmatch(r"\w+", p) for p in path) else ()


def _part(text: str) -> str:
    """A name in a path; digits that are not an index, such as "00", get a letter."""
    return "n" + text if text.isdigit() and not (text.isascii() and str(int(text[:9])) == text) else text


def owner(a: Argument) -> Path:
    """The module that a weight belongs to: ("layers", "0", "fc") for "layers.0.fc.weight"; () if unknown."""
    for name in names_of(a):
        path = written(name)
        if path:
            return path[:-1]
    return ()


def weights(node: Node[Any]) -> list[Argument]:
    """The constants of a node that become parameters of the model."""
    return _held(node, False)


def parameters(node: Node[Any]) -> list[Argument]:
    """`weights`, and other constants that are too long for the code."""
    return _held(node, True)


def _held(node: Node[Any], long: bool) -> list[Argument]:
    found = []
    for i, a in enumerate(node.inputs):
        value = a.value
        if value is None or (size := value.size) < 2:
            continue
        static, fill = i in node.static, isinstance(value.source, Fill)
        if (trainable(value) and (static or not fill)) or (long and size > 16 and not static and not fill):
            found.append(a)
    return found


def scopes_of(model: Model, nodes: Sequence[Node[Any]]) -> tuple[list[Path], set[str]]:
    """A path for each node: from the file, else from its weights, else from the nodes around it; and the names of the
    nodes whose path is in the file."""
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
    paths = [p or () for p in found]
    return unwrapped(paths if model.scopes else summed(gated(paths, nodes), nodes, said), nodes), said


def gated(paths: list[Path], nodes: Sequence[Node[Any]]) -> list[Path]:
    """The paths, with a whole squeeze-and-excitation block in the module of its two convolutions: also the mean before
    them, and the product with the mean's operand."""
    maker = {o.name: i for i, node in enumerate(nodes) for o in node.outputs if o.present}
    within: dict[Path, list[int]] = {}
    for i, path in enumerate(paths):
        for n in range(1, len(path) + 1):
            within.setdefault(path[:n], []).append(i)
    out = list(paths)
    for i, node in enumerate(nodes):
        made = [maker.get(a.name, -1) for a in node.inputs]
        if node.op() != "Mul" or len(made) != 2 or -1 in made:
            continue
        for x, gate in ((0, 1), (1, 0)):
            chain = [made[gate]]  # from the gate back to the mean
            while len(chain) < 5 and nodes[chain[-1]].inputs[0].name in maker:
                chain.append(maker[nodes[chain[-1]].inputs[0].name])
            ops = [nodes[j].op() for j in chain]
            if len(ops) < 5 or ops[0] not in _GATES or ops[1] != "Conv" or ops[3] != "Conv" or ops[4] not in _MEANS:
                continue
            home = common(paths[chain[1]], paths[chain[3]])
            mean = nodes[chain[4]]
            if home and mean.inputs[0].name == node.inputs[x].name and set(within[home]) <= {*chain, i}:
                for j in (*chain, i):
                    if out[j][: len(home)] != home:
                        out[j] = home
    return out


def summed(paths: list[Path], nodes: Sequence[Node[Any]], said: set[str]) -> list[Path]:
    """The paths, with the sum that ends an item of a list placed in the item, together with the activation of that sum.

    A sum without a path of its own ends an item if both summands are computed in the item or taken by it: the names of
    weights locate the layers of a residual block, but not its sum and what follows.
    """
    out = list(paths)
    maker = {o.name: i for i, node in enumerate(nodes) for o in node.outputs if o.present}
    layers = {path for path, node in zip(paths, nodes, strict=True) if node.name in said}
    readers: dict[str, list[int]] = {}
    takers: dict[str, set[Path]] = {}

    def items(path: Path) -> set[Path]:
        return {p for n in range(1, len(path) + 1) if path[n - 1][-1].isdigit() and (p := path[:n]) not in layers}

    for i, node in enumerate(nodes):
        for a in node.uses():
            readers.setdefault(a.name, []).append(i)
            if node.name in said:
                takers.setdefault(a.name, set()).update(items(out[i]))
    for i, node in enumerate(nodes):
        if node.name in said or node.op() != "Add" or any(a.value is not None for a in node.inputs):
            continue
        left, right = (items(out[maker[a.name]]) if a.name in maker else set() for a in node.inputs)
        takes = [takers.get(a.name, set()) for a in node.inputs]
        homes = (left & right) | (left & takes[1]) | (right & takes[0])
        if not homes:
            continue
        home = max(homes, key=len)
        out[i] = home
        after = readers.get(node.outputs[0].name, [])
        if len(after) == 1 and nodes[after[0]].op() in _ACTIVATIONS and nodes[after[0]].name not in said:
            out[after[0]] = home
    return out


def counted(paths: Sequence[Path], nodes: Sequence[Node[Any]]) -> bool:
    """Whether the paths are not modules but Paddle's variables, numbered over the whole model: "conv2d_7.w_0"."""
    if not all(not p or (len(p) == 1 and _COUNTED.fullmatch(p[0])) for p in paths):
        return False
    return any(_VARIABLE.fullmatch(n) for node in nodes for a in parameters(node) for n in names_of(a))


def unwrapped(paths: list[Path], nodes: Sequence[Node[Any]]) -> list[Path]:
    """The paths without an outer module around the whole model that no weight's name contains."""
    said = {owner(a)[:1] for node in nodes for a in parameters(node)} - {()}
    while True:
        first = {p[:1] for p in paths if p}
        holds = any(len(p) == 1 and parameters(n) for p, n in zip(paths, nodes, strict=True))
        if len(first) != 1 or first & said or holds:
            return paths
        paths = [p[1:] for p in paths]


def _said(model: Model, name: str) -> Path | None:
    base = name.partition("::")[0]
    for known in (name, base, _COPY.sub("", base)):
        if known in model.scopes:
            return tuple(map(_part, model.scopes[known]))
    return None


def _fill(nodes: Sequence[Node[Any]], found: list[Path | None]) -> None:
    """Give a node without a path that of its neighbors."""
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
            if at is not None:  # the first user wins
                following[at] = mine
    for i, node in enumerate(nodes):
        if found[i] is not None:
            continue
        made = [maker[a.name] for a in node.uses() if a.name in maker]
        before = next((found[j] for j in sorted(made, reverse=True) if found[j]), () if made else None)
        after = following[i]
        found[i] = between(before, after)


def between(before: Path | None, after: Path | None) -> Path:
    """The path of a node between two modules: the innermost that holds both or, for two items of one list, the first of
    them, which ends there."""
    if before is None or after is None:
        return ()
    shared = common(before, after)
    n = len(shared)
    if n + 1 < len(before) and n < len(after) and before[n].isdigit() and after[n].isdigit():
        return before[: n + 1]
    return shared
