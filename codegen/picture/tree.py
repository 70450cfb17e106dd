"""The modules of a model as boxes within boxes: what flows between them, how often each repeats, and its cost."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from emberlet.errors import ModelError

from ..budget import model_budget
from ..hierarchy.regions import Region, grouped
from ..hierarchy.repetition import blocks_of
from ..hierarchy.scopes import counted, owner, parameters, scopes_of, weights
from ..hierarchy.words import class_from
from ..ir.argument import Argument
from ..ir.graph import Model, Node
from ..ir.problem import refusing
from ..ir.sizes import terms
from ..ir.types import TensorType, describe_shape
from ..ops.internal import InputSize, Sizes
from ..passes import run_passes
from ..reader import read_model
from ..records import dataclass
from .cost import flops

if TYPE_CHECKING:
    from onnx import ModelProto

TOP, PLAIN = -1, "op"
MOVES = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Identity", "Cast", "Expand"}


@dataclass(frozen=True)
class Edge:
    """A value that flows between two boxes of a module, by their indices; -1 is the module's input, the number of boxes
    its output. shape: "(batch, 8)"."""

    start: int
    end: int
    shape: str


@dataclass
class Box:
    """One module, or one operation. name: in the module around it; kind: its class, "op" for an operation. times: the
    number of equal consecutive ones. shapes: those of its inputs and outputs."""

    name: str
    kind: str
    weights: int
    flops: int
    inputs: str
    outputs: str
    times: int = 1
    detail: str = ""
    boxes: list[Box] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)

    def structure(self) -> Hashable:
        """A key that is equal for two modules that differ only in sizes."""
        if self.kind == PLAIN:
            return (self.name, self.detail)
        inner = tuple((b.structure(), b.name if b.kind != PLAIN else "") for b in self.boxes)
        return (self.kind, inner, tuple((e.start, e.end) for e in self.edges))


def tree(
    source: str | os.PathLike[str] | bytes | ModelProto, name: str | None = None, sizes: Mapping[str, int] | None = None
) -> Box:
    """The modules of a model. sizes: those of named dimensions, to count operations; others count as 1.

    Raises ModelError, also for a dimension that the model does not have.
    """
    with refusing(source), model_budget():
        model = read_model(source, name)
        model = replace(model, graph=run_passes(model.graph)[0])
        _check_names(model, sizes or {})
        scopes, _ = scopes_of(model, model.graph.nodes)
        chosen = None
        if not any(scopes) or counted(scopes, model.graph.nodes):
            scopes, chosen, kinds = blocks_of(model.graph)
            model = replace(model, kinds=kinds)
        root, _ = grouped(model.graph, scopes, chosen=chosen)
        root.inputs, root.outputs = list(model.graph.inputs), list(model.graph.outputs)
        return _Builder(model, sizes or {}).box(root, model.name)[0]


def _check_names(model: Model, sizes: Mapping[str, int]) -> None:
    """Raise ModelError for a dimension that the model does not have."""
    values = [*model.graph.inputs, *(a for node in model.graph.nodes for a in node.outputs)]
    dims = [d for a in values if isinstance(a.type, TensorType) for d in a.type.shape or () if isinstance(d, str)]
    known = {name: None for d in dims for name in (d, *(name for names in terms(d) or () for name in names))}
    for name in sizes:
        if name not in known and not any(k.startswith("min(") for k in known):
            raise ModelError(f"no value has a dimension {name!r}; there are {', '.join(known) or 'none'}")


class _Builder:
    def __init__(self, model: Model, sizes: Mapping[str, int]) -> None:
        self.model = model
        self.sizes = sizes

    def box(self, region: Region, name: str) -> tuple[Box, Hashable]:
        """(a region's box, a key that is equal for boxes that look the same)."""
        items: list[tuple[Box, Hashable, list[Argument], list[Argument], tuple[str, ...]]] = []
        for item in region.items:
            if isinstance(item, Region):
                inner, key = self.box(item, ".".join(item.path[len(region.path) :]))
                items.append((inner, key, item.inputs, item.outputs, item.path))
            elif not isinstance(item, InputSize | Sizes) and any(_drawn(o) for o in item.outputs):
                inner = self.operation(item, len(region.path))
                items.append((inner, None, list(item.uses()), list(item.outputs), ()))
        merged = _merged(items)
        boxes = [m[0][0] for m in merged]
        for box, group in zip(boxes, merged, strict=True):
            box.times = len(group)
            if len(group) > 1:
                box.name = f"{box.name} … {group[-1][0].name.rpartition('.')[2]}"
                box.outputs = group[-1][0].outputs
        edges = self.edges(region, merged)
        out = Box(
            name,
            self.kind(region),
            sum(b.weights * b.times for b in boxes),
            sum(b.flops * b.times for b in boxes),
            _shapes(region.inputs),
            _shapes(region.outputs),
            boxes=boxes,
            edges=edges,
        )
        keys = tuple((m[0][1] if m[0][1] is not None else _looks(m[0][0]), m[0][0].name, len(m)) for m in merged)
        return out, (out.kind, out.inputs, out.outputs, keys, tuple(edges))

    def kind(self, region: Region) -> str:
        found = self.model.kinds.get(region.path, "")
        if found:
            return found
        return class_from(region.path) if region.path else "Model"

    def operation(self, node: Node[Any], depth: int) -> Box:
        """A node of a module that is `depth` modules deep."""
        held = parameters(node)
        count = sum(a.value.size for a in weights(node) if a.value is not None)
        name = next((".".join(path[depth:]) for a in held if (path := owner(a))[depth:]), "")
        ins = [a for a in node.inputs if _drawn(a)]
        return Box(
            node.op(), PLAIN, count, flops(node, self.sizes), _shapes(ins[:1]), _shapes(node.outputs), detail=name
        )

    def edges(self, region: Region, merged: list[list[Any]]) -> list[Edge]:
        maker: dict[str, int] = {a.name: TOP for a in region.inputs}
        for i, group in enumerate(merged):
            for _, _, _, outputs, _ in group:
                maker.update({a.name: i for a in outputs if a.present})
        found: dict[tuple[int, int], str] = {}
        for i, group in enumerate(merged):
            for _, _, inputs, _, _ in group:
                for a in inputs:
                    at = maker.get(a.name)
                    if at is not None and at != i and _drawn(a):
                        found.setdefault((at, i), _shape(a))
        for a in region.outputs:
            if a.name in maker and _drawn(a):
                found.setdefault((maker[a.name], len(merged)), _shape(a))
        return [Edge(start, end, shape) for (start, end), shape in sorted(found.items())]


def _merged(items: list[Any]) -> list[list[Any]]:
    """The boxes, with equal neighbors of a list merged into one, and a chain of moves into one operation."""
    out: list[list[Any]] = []
    readers: dict[str, int] = {}
    for _, _, inputs, _, _ in items:
        for a in inputs:
            readers[a.name] = readers.get(a.name, 0) + 1
    for item in items:
        before = out[-1][-1] if out else None
        if before is not None:
            box, key, inputs, outputs, path = item
            last, last_key, _, last_outputs, last_path = before
            numbered = path and last_path and path[-1].isdigit() and last_path[-1].isdigit()
            if numbered and path[:-1] == last_path[:-1] and key == last_key:
                out[-1].append(item)
                continue
            chained = len(last_outputs) == 1 and readers.get(last_outputs[0].name) == 1
            chained = chained and any(a.name == last_outputs[0].name for a in inputs)
            moves = box.kind == PLAIN and last.kind == PLAIN and {box.name, last.name.split(" · ")[-1]} <= MOVES
            if chained and moves:
                joined = replace(last, name=f"{last.name} · {box.name}", outputs=box.outputs)
                others = [a for a in inputs if a.name != last_outputs[0].name]
                out[-1] = [(joined, None, before[2] + others, outputs, ())]
                continue
        out.append([item])
    return out


def _looks(box: Box) -> Hashable:
    return (box.name, box.weights, box.flops, box.inputs, box.outputs)


def _drawn(a: Argument) -> bool:
    """Whether a value is a tensor that flows between boxes."""
    return a.present and a.value is None and isinstance(a.type, TensorType)


def _shape(a: Argument) -> str:
    return describe_shape(a.type.shape) if isinstance(a.type, TensorType) else ""


def _shapes(values: Any) -> str:
    said = [_shape(a) for a in values if _drawn(a)]
    return ", ".join(said[:3]) + (", …" if len(said) > 3 else "")
