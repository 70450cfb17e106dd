"""Writers: turn a tree of regions into a module with a class for each distinct region."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence

from ..emit.contract import signature_data
from ..emit.expression import Expr
from ..emit.handing_on import hand_on
from ..emit.layout import laid_out
from ..emit.module import ModuleWriter, Written, defined, header, input_names, signature, used_imports
from ..emit.names import Names, class_name
from ..emit.polish import polished
from ..emit.statement import fold_return, render
from ..ir.argument import Argument, Dynamic
from ..ir.graph import Graph, Model
from ..ir.types import TensorType
from ..ops.internal import InputSize, Sizes
from ..records import replace
from . import caches
from .caches import Caches
from .classes import Class, Draft, classified, parameters_of
from .region_writer import RegionWriter
from .regions import Region, grouped
from .repetition import blocks_of
from .scopes import Path, counted, names_of, parameters, scopes_of, weights, written

LONG = 120  # the most lines of a class that is preferred to several because it is a little shorter
LONG_SAVES = 1.4
_MADE_BY = {"Cos": "cos", "Sin": "sin"}
_VIEWS = ("Unsqueeze", "Expand", "Cast", "Transpose", "Reshape", "Squeeze")


def write(model: Model, weights: str | None = None, top_comment: str = "") -> Written:
    """The module of a model: a class for each distinct module of the source model if the file names them, else for each
    repeated block, else one class."""
    scopes, said = scopes_of(model, model.graph.nodes)
    if any(scopes):
        return _named(model, scopes, said, weights, top_comment)
    found = nameless(model, weights, top_comment)
    # One class has at least a line for each node that makes a tensor.
    if found is not None and _lines(found) < _tensors(model.graph):
        return found
    return _shorter(found, ModuleWriter(model).write(weights, top_comment))


def _named(model: Model, scopes: Sequence[Path], said: set[str], weights: str | None, top_comment: str) -> Written:
    """The module of a model whose file names its modules, or some of its weights."""
    held = caches.found(model)
    graph, paths = caches.bundled(model.graph, scopes, held)
    root, places = grouped(graph, paths, caches=held.given is not None)
    caches.collapsed(root, held)
    if repeats(root) or narrow(root):
        hierarchy = Hierarchy(replace(model, graph=graph), root, places, said, held, model.graph)
        written = hierarchy.write(weights, top_comment)
        if hierarchy.classes and len(hierarchy.drafts) < 2 * hierarchy.classes:  # little is repeated
            single = _single(model, scopes, said, weights, top_comment)
            if _lines(single) <= LONG or LONG_SAVES * _lines(single) < _lines(written):
                written = _shorter(single, written)
        few = not model.scopes and (lost(model.graph) or written.source.count("\nclass ") == 1)
        found = nameless(model, weights, top_comment) if few or counted(scopes, model.graph.nodes) else None
        return _shorter(found, written)
    found = nameless(model, weights, top_comment) if not model.scopes or counted(scopes, model.graph.nodes) else None
    if found is not None and _lines(found) < _least(model.graph):
        return found
    return _shorter(found, _single(model, scopes, said, weights, top_comment))


def _single(model: Model, scopes: Sequence[Path], said: set[str], weights: str | None, top_comment: str) -> Written:
    """One class, with the names of the file."""
    return Hierarchy(model, *grouped(model.graph, scopes, whole=True), said).write(weights, top_comment)


def _shorter(first: Written | None, other: Written) -> Written:
    """The first module if it has fewer lines, else the other."""
    return first if first is not None and _lines(first) < _lines(other) else other


def _lines(written: Written) -> int:
    return written.source.count("\n")


def _tensors(graph: Graph) -> int:
    return sum(isinstance(n.outputs[0].type, TensorType) for n in graph.nodes)


def _least(graph: Graph) -> int:
    """A lower estimate of the lines of one class for a whole graph: one for each layer, and one for every two
    tensors."""
    return 8 + sum(bool(weights(n)) for n in graph.nodes) + _tensors(graph) // 2


def nameless(model: Model, weights: str | None, top_comment: str) -> Written | None:
    """The module of a model whose file names no modules, with a class for each repeated block; None if nothing
    repeats."""
    graph = untied(model.graph)
    scopes, chosen, kinds = blocks_of(graph)
    if not chosen:
        return None
    from .repetition.naming import named_blocks

    found = named_blocks(graph, scopes, chosen, kinds)
    held = caches.found(model)
    bundled, paths = caches.bundled(graph, found.scopes, held)
    root, places = grouped(bundled, paths, chosen=found.chosen)
    caches.collapsed(root, held)
    named = replace(model, graph=bundled, kinds=found.kinds)
    hierarchy = Hierarchy(named, root, places, set(), held, graph, found.layers)
    return hierarchy.write(weights, top_comment)


def lost(graph: Graph) -> bool:
    """Whether most layers, or most of those with a matrix, have no weight of their own with a name: an exporter that
    stores equal weights once leaves the name of one layer for all of them, and one that stores a matrix transposed
    drops its name."""
    held = [(node, [n for a in weights(node) for n in names_of(a)]) for node in graph.nodes]
    held = [(node, names) for node, names in held if names]
    users = Counter(n for _, names in held for n in set(names))
    known = [any(users[n] == 1 and written(n) for n in names) for _, names in held]
    large = [k for k, (node, _) in zip(known, held, strict=True) if not all(map(_is_vector, weights(node)))]
    return 2 * sum(known) < len(known) or 2 * sum(large) < len(large)


def untied(graph: Graph) -> Graph:
    """The graph, with a separate copy of a shared vector for each layer. Exporters store equal vectors once, such as
    the ones and zeros of every normalization before training; the layers of the source have their own."""
    nodes = []
    seen: set[str] = set()
    for node in graph.nodes:
        held = {a.name for a in weights(node) if _is_vector(a)}
        if held & seen:
            inputs = tuple(_copied(a, node.name) if a.name in held & seen else a for a in node.inputs)
            node = replace(node, inputs=inputs)
        seen |= held
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes))


def _is_vector(a: Argument) -> bool:
    return a.value is not None and len(a.value.shape) == 1


def _copied(a: Argument, owner: str) -> Argument:
    assert not isinstance(a.source, Dynamic)
    value = replace(a.source.value, origin=(a.source.value.origin, owner))
    return replace(a, name=f"{a.name}::{owner}", source=replace(a.source, value=value))


def repeats(root: Region) -> bool:
    """Whether any two regions might share a class; otherwise one class is shorter than several."""
    seen: set[tuple[str, ...]] = set()
    todo = root.regions()
    while todo:
        region = todo.pop()
        operators = tuple(sorted(n.op() for n in region.nodes() if not isinstance(n, Sizes | InputSize)))
        if operators in seen:
            return True
        seen.add(operators)
        todo += region.regions()
    return False


def narrow(root: Region) -> bool:
    """Whether parameters need an explicit dtype, so that their lines are shorter in a separate class."""
    found = {a.value.dtype for n in root.nodes() for a in parameters(n) if a.value is not None}
    return any(d.is_float and d.name != "float32" for d in found)


class Hierarchy:
    """The classes of one model, made from the innermost regions outward. face: its inputs and outputs as callers see
    them, when the graph holds the caches as single values."""

    def __init__(
        self,
        model: Model,
        root: Region,
        places: Mapping[str, Path],
        said: set[str],
        held: Caches | None = None,
        face: Graph | None = None,
        layers: Mapping[str, str] | None = None,
    ) -> None:
        self.model = model
        self.nameless = layers is not None
        self.layers = layers or {}
        self.caches = held or Caches()
        self.face = replace(model, graph=face or model.graph)
        self.root = root
        self.places = places
        self.said = said
        self.drafts: dict[Path, Draft] = {}
        self.tables: dict[Hashable, tuple[Path, Expr]] = {}
        self.impure: set[str] = set()
        self.problems: list[str] = []
        self.classes = 0
        self.names = Names({class_name(model.name), "Model", "F", "nn", "emberlet"})
        self.lengths = _lengths(places[n.name] for n in root.nodes() if parameters(n))
        self.owners = _single_owners(root)
        self.makers = {o.name: node for node in root.nodes() for o in node.outputs if o.present}

    def origin(self, a: Argument) -> str:
        """A word for a value that modules share, from the operator that computes it."""
        node = self.makers.get(a.name)
        for _ in range(4):
            if node is None or node.op() not in _VIEWS:
                break
            node = self.makers.get(node.inputs[0].name)
        if node is None:
            return ""
        if node.op() == "Where" and all(b.value is not None and b.value.size == 1 for b in node.inputs[1:]):
            return "mask"
        return _MADE_BY.get(node.op(), "")

    def _levels(self) -> dict[int, list[Region]]:
        """The regions by their height; those at the same place in items of a list are together, as they may be one
        class of which some items have an optional part."""
        found: list[Region] = []

        def visit(region: Region) -> None:
            for inner in region.regions():
                visit(inner)
                found.append(inner)

        visit(self.root)
        heights: dict[Path, int] = {}
        for region in sorted(found, key=lambda r: -len(r.path)):
            height = 1 + max((heights[self._place(r)] for r in region.regions()), default=-1)
            heights[self._place(region)] = max(height, heights.get(self._place(region), 0))
        levels: dict[int, list[Region]] = {}
        for region in found:
            levels.setdefault(heights[self._place(region)], []).append(region)
        return levels

    def _place(self, region: Region) -> Path:
        """A region's path without the numbers of items, and its kind."""
        path = tuple("*" if p.isdigit() else p for p in region.path)
        return (*path, self.model.kinds.get(region.path, ""))

    def write(self, weights: str | None, top_comment: str) -> Written:
        levels = self._levels()
        classes: list[Class] = []
        known: dict[str, Class] = {}
        for height in sorted(levels):
            drafts = []
            for region in levels[height]:
                writer = RegionWriter(self, region)
                self.drafts[region.path] = writer.draft()
                drafts.append(self.drafts[region.path])
                self.problems += writer.problems
            new = classified(drafts, self.names, known, self.nameless)
            for kind in new:
                kind.parameters, kind.body = polished(kind.parameters, kind.body, kind.hints)
            classes += new
        self.classes = len(classes)
        writer = RegionWriter(self, self.root)
        draft = writer.draft()
        name = class_name(self.model.name)
        lines = [*header(self.model, top_comment), "", "import emberlet"]
        lines += ["from emberlet import functional as F", "from emberlet import nn", "from emberlet.model import Model"]
        for made in classes:
            lines += ["", "", *_class_lines(made)]
        lines += ["", "", f"class {name}(Model):", *writer._summary()]
        if weights is not None:
            lines += [f'    WEIGHTS = "{weights}"'] if '"' not in weights else [f"    WEIGHTS = {weights!r}"]
        given, results = self.caches.repeated()
        lines += [*signature_data(self.face, given, results), ""]
        lines += ["    def __init__(self, backend=None):", *render(laid_out(list(draft.fields), 8), 8)]
        inputs = input_names(self.face.graph)
        names, body = polished(draft.parameters, draft.body, draft.hints)
        starred = [*names[:-1], "*" + names[-1]] if given is not None else names
        writer.model = self.face
        lines += ["", *signature(tuple(starred))]
        lines += render(laid_out(hand_on(fold_return(body)), 8), 8)
        source = used_imports("\n".join(lines) + "\n")
        record = writer.record
        return Written(name, source, record, inputs, writer._outputs(), [*self.problems, *writer.problems])


def _class_lines(made: Class) -> list[str]:
    """A class's source."""
    lines = [f"class {made.name}(nn.Module):"]
    if made.about:
        lines += [f'    """{made.about}"""', ""]
    lines += defined("__init__", ["self", *parameters_of(made.arguments, made.defaults)])
    lines += render(laid_out(list(made.fields), 8), 8)
    lines += ["", *signature(tuple(made.parameters))]
    return lines + render(laid_out(hand_on(fold_return(made.body)), 8), 8)


def _lengths(paths: Iterable[Path]) -> dict[Path, int]:
    """The number of items of each list of modules that is numbered without gaps."""
    seen: dict[Path, set[int]] = {}
    for path in paths:
        for n, part in enumerate(path):
            if part.isdigit():
                seen.setdefault(path[:n], set()).add(int(part))
    return {path: len(numbers) for path, numbers in seen.items() if numbers == set(range(len(numbers)))}


def _single_owners(root: Region) -> dict[str, int]:
    """The number of nodes that have each initializer as a parameter."""
    out: dict[str, int] = {}
    for node in root.nodes():
        for a in parameters(node):
            for name in set(names_of(a)):
                out[name] = out.get(name, 0) + 1
    return out
