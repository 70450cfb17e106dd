"""Caches: the keys and values that a language model takes and returns for every layer become one value per layer.

The file has inputs past.0.key, past.0.value, past.1.key, …, and outputs like them. Here each layer's tensors become one
value, which the layer's module takes and returns, and all layers' values become one list, which the modules around the
layers take and return.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field
from typing import Any

from ..emit.contract import Repeated, uniform
from ..emit.emitter import Emission, Emitter
from ..emit.expression import Binary, Call, Comprehension, Expr, Index, List, Name, SliceKey, Tuple, lift
from ..emit.names import identifier
from ..ir.argument import Argument
from ..ir.graph import Graph, Model, Node
from ..ir.types import SequenceType, TensorType, Type, UnknownType
from ..ops.internal import InputSize, Internal
from ..records import dataclass, replace
from .regions import Region
from .scopes import Path, common

MOST = 8  # tensors per layer
_DIGITS = re.compile(r"(\d+)")
_PLACES = ("in", "input", "past", "prev", "previous")
_ROLES = {"k": "key", "v": "value", "keys": "key", "values": "value"}


@dataclass(frozen=True)
class Group:
    """The caches of all layers, as inputs or as outputs. whole: their list; layers: the value of each layer; members:
    the tensors in it; start: the index of the first; parts: the name of each tensor of a layer."""

    whole: Argument
    layers: tuple[Argument, ...]
    members: tuple[tuple[Argument, ...], ...]
    start: int
    trailing: bool
    parts: tuple[str, ...]
    name: str

    @property
    def width(self) -> int:
        return len(self.parts)

    @property
    def flat(self) -> tuple[Argument, ...]:
        return tuple(a for layer in self.members for a in layer)

    @property
    def repeated(self) -> Repeated | None:
        """The group as a tail of the inputs or outputs; None if it is not one."""
        return Repeated(self.start, len(self.layers), self.parts, self.name) if self.trailing else None


@dataclass(frozen=True)
class Caches:
    """The input and output caches of a model. words: names for the values that the code unpacks from them."""

    given: Group | None = None
    made: Group | None = None
    words: dict[str, str] = field(default_factory=dict)

    def repeated(self) -> tuple[Repeated | None, Repeated | None]:
        """Both, as the tails of the inputs and outputs."""
        given = None if self.given is None else self.given.repeated
        return given, None if self.made is None else self.made.repeated

    def way_to(self, a: Argument, size: str, here: str) -> list[Node[Any]]:
        """The nodes that read, from a cache value, a tensor with a size of this name."""
        if self.given is None or a not in (self.given.whole, *self.given.layers):
            return []
        n = self.given.layers.index(a) if a in self.given.layers else 0
        for m, member in enumerate(self.given.members[n]):
            t = member.type
            if isinstance(t, TensorType) and t.shape is not None and size in t.shape:
                layer = replace(self.given.layers[n], name=f"{self.given.layers[n].name} in {here}")
                tensor = replace(member, name=f"{member.name} in {here}")
                take = Part(tensor.name, (layer,), (tensor,), PartConfig(m))
                if a is not self.given.whole:
                    return [replace(take, inputs=(a,))]
                return [Part(layer.name, (a,), (layer,), PartConfig(n)), take]
        return []


# -- finding them -----------------------------------------------------------------------------------------------------


def found(model: Model) -> Caches:
    """The caches among a model's inputs and outputs: states that are alike for every layer."""
    graph = model.graph
    states = {s.input: s.output for s in model.states}
    layout = _layout(model.inputs)
    if layout is None:
        return Caches()
    start, width, count = layout
    places = range(start, start + width * count)
    if not all(isinstance(graph.inputs[i].type, TensorType) for i in places):
        return Caches()
    kept = [[start + n * width + m in states for m in range(width)] for n in range(count)]
    if not any(kept[0]) or any(k != kept[0] for k in kept):
        return Caches()
    parts = _parts([model.inputs[start + m] for m in range(width)])
    name = _base([model.inputs[start + m] for m in range(width)])
    given = _group(graph.inputs, list(places), width, parts, name, "caches")
    outs = [states.get(i, -1) for i in places]
    made = None
    alone = len({a.name for a in graph.outputs}) == len(graph.outputs) > len(outs)
    if alone and -1 not in outs and all(graph.outputs[o].value is None for o in outs):
        made = _group(graph.outputs, outs, width, parts, "present", "new caches")
    words = {a.name: f"past_{part}" for layer in given.members for a, part in zip(layer, parts, strict=True)}
    for group in (given, made):
        if group is not None:
            words[group.whole.name] = "caches" if group is given else "present"
            words.update((a.name, "cache") for a in group.layers)
    for layer in made.members if made is not None else ():
        words.update((a.name, part) for a, part in zip(layer, parts, strict=True))
    return Caches(given, made, words)


def _layout(names: Sequence[str]) -> tuple[int, int, int] | None:
    """(index of the first, tensors per layer, layers) of the names that differ only in the number of the layer."""
    for start in range(len(names)):
        for width in range(1, min(MOST, (len(names) - start) // 2) + 1):
            count = 1
            while start + (count + 1) * width <= len(names) and all(
                _next(names[start + m], names[start + count * width + m], count) for m in range(width)
            ):
                count += 1
            if count > 1 and len({_number(names[start + m], names[start + width + m]) for m in range(width)}) == 1:
                return start, width, count
    return None


def _next(first: str, other: str, step: int) -> bool:
    """Whether one name is the other with one number increased by `step`."""
    a, b = _DIGITS.split(first), _DIGITS.split(other)
    differ = [k for k in range(min(len(a), len(b))) if a[k] != b[k]]
    if len(a) != len(b) or len(differ) != 1 or not differ[0] % 2:
        return False
    return int(b[differ[0]]) == int(a[differ[0]]) + step


def _number(first: str, second: str) -> str:
    """The number in the first of two names that differ only in a number."""
    return next(p for p, q in zip(_DIGITS.split(first), _DIGITS.split(second), strict=True) if p != q)


def _unnumbered(name: str) -> list[str]:
    return [p for p in re.split(r"[^A-Za-z]+", name) if p]


def _shared(words: Sequence[list[str]]) -> list[str]:
    """Their common prefix."""
    n = 0
    while n < min(map(len, words)) and len({w[n] for w in words}) == 1:
        n += 1
    return words[0][:n]


def _base(names: Sequence[str]) -> str:
    """The common name of a layer's tensors: "past" for past_key_0 and past_value_0."""
    shared = _shared([_unnumbered(n) for n in names])
    return identifier("_".join(shared), "caches")


def _parts(names: Sequence[str]) -> tuple[str, ...]:
    """The name of each tensor of a layer: "key" and "value"."""
    words = [[w for w in _unnumbered(n) if w.lower() not in _PLACES] or [""] for n in names]
    shared = len(_shared(words)) if len(words) > 1 else 0
    made = ["_".join(_ROLES.get(w, w) for w in ws[shared:]) or f"part{i}" for i, ws in enumerate(words)]
    if len(set(made)) < len(made):
        made = [f"part{i}" for i in range(len(made))]
    return tuple(identifier(m.lower(), "part") for m in made)


def _group(
    of: Sequence[Argument], places: list[int], width: int, parts: tuple[str, ...], name: str, whole: str
) -> Group:
    flat = [of[i] for i in places]
    members = tuple(tuple(flat[n : n + width]) for n in range(0, len(flat), width))
    bundle: Type = SequenceType(UnknownType())
    layers = tuple(Argument(f"{whole} {n}", bundle) for n in range(len(members)))
    trailing = places == list(range(places[0], len(of))) and uniform(flat, width)
    return Group(Argument(whole, bundle), layers, members, min(places), trailing, parts, name)


# -- the nodes that take them apart and put them together -------------------------------------------------------------


@dataclass(frozen=True)
class PartConfig:
    index: int


class Part(Internal[PartConfig]):
    """One item of a value: a layer's value in the list, a tensor in a layer's value."""

    def infer(self) -> tuple[Type, ...]:
        return (self.outputs[0].type,)

    def emit(self, e: Emitter) -> Emission:
        held = Index(e.block.held(self.inputs[0]), lift(self.config.index))
        e.block.settle(self, (held,))
        return (held,)


class Unpack(Internal[None]):
    """The tensors of a layer: `past_key, past_value = cache`."""

    def infer(self) -> tuple[Type, ...]:
        return tuple(o.type for o in self.outputs)

    def emit(self, e: Emitter) -> Emission:
        held = e.block.held(self.inputs[0])
        if len(self.outputs) == 1:
            e.block.settle(self, (held,))
        return held


class Pack(Internal[int]):
    """Packs a layer's tensors into its value, or those of all layers into one tuple. Config: the number of tensors per
    layer."""

    def infer(self) -> tuple[Type, ...]:
        return tuple(o.type for o in self.outputs)

    def emit(self, e: Emitter) -> Emission:
        parts = tuple(e.block.held(a) for a in self.inputs)
        held = parts[0] if len(parts) == 1 and isinstance(self.inputs[0].type, TensorType) else Tuple(parts)
        whole = isinstance(self.inputs[0].type, SequenceType)
        made = together(parts, self.config) if whole else held
        e.block.settle(self, (made,))
        return (made,)


def together(parts: Sequence[Expr], width: int) -> Expr:
    """The tensors of all layers as one tuple. parts: for each layer a tuple of `width` tensors, or its only tensor, or
    their position in a tuple of several layers' tensors."""
    made: Expr | None = None
    i = 0
    while i < len(parts):
        n = 1
        match parts[i]:
            case Index(base, _) if (whole := _all_of(base, parts[i:], width)) == _count_of(base, parts):
                n, part = whole, base
            case other:
                part = other if width > 1 else Tuple((other,))
        if isinstance(made, Tuple) and isinstance(part, Tuple):
            made = Tuple((*made.items, *part.items))
        else:
            made = part if made is None else Binary("+", made, part)
        i += n
    return made if made is not None else Tuple(())


def _count_of(base: Expr, parts: Sequence[Expr]) -> int:
    """The number of layers that a tuple of several layers' tensors holds: all of them are among the parts."""
    return sum(isinstance(p, Index) and p.object == base for p in parts)


def _all_of(base: Expr, parts: Sequence[Expr], width: int) -> int:
    """The number of the first parts that are the first layers of such a tuple, in order."""
    n = 0
    while n < len(parts) and parts[n] == Index(base, place(n, width)):
        n += 1
    return n


def place(layer: int, width: int) -> Expr:
    """The position of a layer's tensors in the tuple of all layers' tensors."""
    return lift(layer) if width == 1 else SliceKey(lift(layer * width), lift((layer + 1) * width))


def bundled(graph: Graph, scopes: Sequence[Path], caches: Caches) -> tuple[Graph, list[Path]]:
    """The graph with each layer's caches as one value, and the paths of its nodes."""
    nodes, paths = list(graph.nodes), list(scopes)
    inputs, outputs = list(graph.inputs), list(graph.outputs)
    if caches.given is not None:
        nodes, paths = _taken_apart(caches.given, nodes, paths)
        inputs = [a for a in inputs if a not in caches.given.flat] + [caches.given.whole]
    if caches.made is not None:
        nodes, paths = _put_together(caches.made, nodes, paths)
        outputs = [a for a in outputs if a not in caches.made.flat] + [caches.made.whole]
    return replace(graph, nodes=tuple(nodes), inputs=tuple(inputs), outputs=tuple(outputs)), paths


def _taken_apart(group: Group, nodes: list[Node[Any]], paths: list[Path]) -> tuple[list[Node[Any]], list[Path]]:
    """The graph with a node per layer that unpacks its value in the module that reads it."""
    read: dict[str, list[int]] = {}
    for i, node in enumerate(nodes):
        for name in {a.name for a in node.uses()}:
            read.setdefault(name, []).append(i)
    before: list[tuple[Node[Any], Path]] = []
    ahead: dict[int, tuple[Node[Any], Path]] = {}
    for n, (layer, members) in enumerate(zip(group.layers, group.members, strict=True)):
        before.append((Part(layer.name, (group.whole,), (layer,), PartConfig(n)), ()))
        inside: list[int] = []
        for m, a in enumerate(members):
            early = [i for i in read.get(a.name, []) if _outside(nodes[i], paths[i])]
            inside += [i for i in read.get(a.name, []) if i not in early]
            if early:
                mine = replace(a, name=f"{a.name} before the layers")
                before.append((Part(mine.name, (layer,), (mine,), PartConfig(m)), ()))
            for i in early:
                given = tuple(mine if b.name == a.name else b for b in nodes[i].inputs)
                nodes[i] = replace(nodes[i], inputs=given)
        if inside:
            path = paths[inside[0]]
            for i in inside:
                path = common(path, paths[i])
            ahead[min(inside)] = (Unpack(f"{layer.name} unpacked", (layer,), members, None), path)
    made = list(before)
    for i, pair in enumerate(zip(nodes, paths, strict=True)):
        if i in ahead:
            made.append(ahead[i])
        made.append(pair)
    return [n for n, _ in made], [p for _, p in made]


def _outside(node: Node[Any], path: Path) -> bool:
    """Whether a node that reads a cache comes before the layers: it reads the cache's length."""
    return isinstance(node, InputSize) or (not any(p.isdigit() for p in path) and not node.graphs())


def _put_together(group: Group, nodes: list[Node[Any]], paths: list[Path]) -> tuple[list[Node[Any]], list[Path]]:
    """The graph with a node per layer that packs the module's results, and one for all layers at the end."""
    maker = {o.name: i for i, node in enumerate(nodes) for o in node.outputs if o.present}
    behind: dict[int, list[tuple[Node[Any], Path]]] = {}
    for layer, members in zip(group.layers, group.members, strict=True):
        made = [maker[a.name] for a in members if a.name in maker]
        path: Path = paths[made[0]] if made else ()
        for i in made:
            path = common(path, paths[i])
        packed = Pack(f"{layer.name} packed", members, (layer,), group.width)
        behind.setdefault(max(made, default=len(nodes) - 1), []).append((packed, path))
    out: list[tuple[Node[Any], Path]] = []
    for i, pair in enumerate(zip(nodes, paths, strict=True)):
        out += [pair, *behind.get(i, [])]
    out.append((Pack(group.whole.name, group.layers, (group.whole,), group.width), ()))
    return [n for n, _ in out], [p for _, p in out]


def collapsed(region: Region, caches: Caches) -> None:
    """Let the modules that take or return every layer's value take or return one list instead."""
    for inner in region.regions():
        collapsed(inner, caches)
    given, made = caches.given, caches.made
    if made is not None and any(made.whole in inner.outputs for inner in region.regions()):
        region.items = [i for i in region.items if isinstance(i, Region) or made.whole not in i.outputs]
    if not region.path:
        return
    if given is not None:
        names = [a.name for a in given.layers]
        if set(names) <= {a.name for a in region.inputs}:
            region.inputs = [a for a in region.inputs if a.name not in names] + [given.whole]
            parts = [Part(a.name, (given.whole,), (a,), PartConfig(n)) for n, a in enumerate(given.layers)]
            region.items = [*parts, *region.items]
    if made is not None:
        names = [a.name for a in made.layers]
        if set(names) <= {a.name for a in region.outputs}:
            region.outputs = [a for a in region.outputs if a.name not in names] + [made.whole]
            if not any(made.whole in inner.outputs for inner in region.regions()):
                region.items = [*region.items, Pack(made.whole.name, made.layers, (made.whole,), made.width)]
    region.outputs.sort(key=lambda a: made is not None and (a in made.layers or a == made.whole))


# -- how the model takes and returns them -----------------------------------------------------------------------------


def listed(group: Group, names: Sequence[str], star: str) -> Expr:
    """The list of the layers' values, built from the arguments of `forward`: named ones, or those collected by
    `star`."""
    if not group.trailing:
        layers = [tuple(map(Name, names[i : i + group.width])) for i in range(0, len(names), group.width)]
        return List(tuple(Tuple(layer) if group.width > 1 else layer[0] for layer in layers))
    if group.width == 1:
        return Name(star)
    step = lift(group.width)
    part = Index(Name(star), SliceKey(Name("i"), Binary("+", Name("i"), step)))
    return Comprehension(part, "i", Call(Name("range"), (lift(0), Call(Name("len"), (Name(star),)), step)))


def returned(group: Group, others: Sequence[Expr], held: Expr, outputs: Sequence[Argument]) -> tuple[Expr, ...]:
    """What `forward` returns: `others`, and the tensors of the caches in `held` at their positions in OUTPUTS."""
    if group.trailing and not isinstance(held, Tuple):
        return (Binary("+", Tuple(tuple(others)), held),)
    items = held.items if isinstance(held, Tuple) else [Index(held, lift(n)) for n in range(len(group.flat))]
    flat = dict(zip([a.name for a in group.flat], items, strict=True))
    left = list(others)
    return tuple(flat[a.name] if a.name in flat else left.pop(0) for a in outputs)
