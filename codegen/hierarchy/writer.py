"""Writers: turn a tree of regions into a module with a class for each distinct region."""

from __future__ import annotations

import keyword
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from emberlet import nn

from ..emit.block import Block
from ..emit.contract import signature_data
from ..emit.expression import Attribute, Call, Expr, Index, Name, flat, lift
from ..emit.handing_on import hand_on
from ..emit.layout import laid_out
from ..emit.module import (
    BACKEND,
    SELF,
    ModuleWriter,
    Written,
    defined,
    header,
    input_names,
    signature,
    used_imports,
)
from ..emit.names import Names, class_name, identifier, informative, snake
from ..emit.polish import polished
from ..emit.statement import Assign, Return, Statement, fold_return, render
from ..emit.variables import Hints
from ..ir.argument import DYNAMIC, Argument, Dynamic
from ..ir.graph import Graph, Model, Node
from ..ir.types import ScalarType, SequenceType, Shape, ShapeType, TensorType, describe_shape
from ..ir.value import Transposed, Value
from ..ops.internal import InputSize, InputSizeConfig, Sizes
from ..records import replace
from . import caches
from .block_names import CONVOLUTIONS, Part, kind_of
from .caches import Caches
from .classes import Class, Draft, classified, parameters_of
from .invoke import invoke
from .lists import held as tree_of
from .regions import Region, grouped
from .repetition import blocks_of
from .roles import Roles
from .runs import looped
from .scopes import Path, counted, names_of, parameters, scopes_of, weights, written

SMALL = 16
MOST_COUNTED = 1 << 14
_MEMBERS = {"backend", *dir(nn.Module)}


def write(model: Model, weights: str | None = None, top_comment: str = "") -> Written:
    """The module of a model: a class for each distinct module of the source model if the file names them, else for each
    repeated block, else one class."""
    scopes, said = scopes_of(model, model.graph.nodes)
    if not any(scopes):
        return nameless(model, weights, top_comment) or ModuleWriter(model).write(weights, top_comment)
    written = named(model, scopes, said, weights, top_comment)
    few = not model.scopes and (lost(model.graph) or written.source.count("\nclass ") == 1)
    if few or counted(scopes, model.graph.nodes):
        found = nameless(model, weights, top_comment)
        if found is not None and found.source.count("\n") < written.source.count("\n"):
            return found
    return written


def named(model: Model, scopes: Sequence[Path], said: set[str], weights: str | None, top_comment: str) -> Written:
    """The module of a model whose file names its modules."""
    held = caches.found(model)
    graph, paths = caches.bundled(model.graph, scopes, held)
    root, places = grouped(graph, paths, caches=held.given is not None)
    caches.collapsed(root, held)
    if not repeats(root) and not narrow(root):
        return Hierarchy(model, *grouped(model.graph, scopes, whole=True), said).write(weights, top_comment)
    hierarchy = Hierarchy(replace(model, graph=graph), root, places, said, held, model.graph)
    written = hierarchy.write(weights, top_comment)
    if hierarchy.classes and len(hierarchy.drafts) < 2 * hierarchy.classes:  # little is repeated
        single = Hierarchy(model, *grouped(model.graph, scopes, whole=True), said).write(weights, top_comment)
        if single.source.count("\n") < written.source.count("\n"):
            return single
    return written


def nameless(model: Model, weights: str | None, top_comment: str) -> Written | None:
    """The module of a model whose file names no modules, with a class for each repeated block; None if that is no
    shorter than one class."""
    graph = untied(model.graph)
    scopes, chosen, kinds = blocks_of(graph)
    if not chosen:
        return None
    from .naming import named_blocks

    found = named_blocks(graph, scopes, chosen, kinds)
    held = caches.found(model)
    bundled, paths = caches.bundled(graph, found.scopes, held)
    root, places = grouped(bundled, paths, chosen=found.chosen)
    caches.collapsed(root, held)
    named = replace(model, graph=bundled, kinds=found.kinds)
    hierarchy = Hierarchy(named, root, places, set(), held, graph, found.layers)
    written = hierarchy.write(weights, top_comment)
    lines = written.source.count("\n")
    # One class has at least a line for each node that makes a tensor.
    if lines < sum(isinstance(n.outputs[0].type, TensorType) for n in model.graph.nodes):
        return written
    return written if lines < ModuleWriter(model).write(weights, top_comment).source.count("\n") else None


def lost(graph: Graph) -> bool:
    """Whether most layers have no weight of their own with a name: an exporter that stores equal weights once leaves
    the name of one layer for all of them."""
    held = [[n for a in weights(node) for n in names_of(a)] for node in graph.nodes]
    held = [names for names in held if names]
    users = Counter(n for names in held for n in set(names))
    return 2 * sum(any(users[n] == 1 and written(n) for n in names) for names in held) < len(held)


def untied(graph: Graph) -> Graph:
    """The graph, with a copy of each vector for each layer that has it. Exporters store equal vectors once, such as the
    ones and zeros of every normalization before training; the layers of the source have their own."""
    users = Counter(a.name for node in graph.nodes for a in weights(node) if _is_vector(a))
    if max(users.values(), default=0) < 2:
        return graph
    nodes = []
    seen: set[str] = set()
    for node in graph.nodes:
        held = {a.name for a in weights(node) if _is_vector(a) and users[a.name] > 1}
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


class RegionWriter(ModuleWriter):
    """Writes the class of one region."""

    separate = True

    def __init__(self, hierarchy: Hierarchy, region: Region) -> None:
        self.hierarchy = hierarchy
        self.region = region
        self.tree: dict[str, Any] = {}
        self.hints = Hints()
        self.numbers = 0
        self.places: dict[Path, Expr] = {}
        self.words: set[str] = set()
        self.is_root = not region.path
        super().__init__(replace(hierarchy.model, graph=self._graph()))
        self.uses: Roles | None = None
        self.roles = Roles(region.nodes()) if hierarchy.nameless and not self.is_root else None
        self.names = Names(())

    # -- the region as a graph ----------------------------------------------------------------------------------------

    def _graph(self) -> Graph:
        region = self.region
        sizes, renamed = ([], {}) if self.is_root else self._local_sizes()
        nodes: list[Node[Any]] = []
        for item in region.items:
            if isinstance(item, Region):
                given = [renamed.get(a.name, a) for a in item.inputs]
                made = invoke(item.path, ".".join(item.path), given, item.outputs)
                if any(not n.pure for n in item.nodes()):
                    self.hierarchy.impure.add(made.name)
                nodes.append(made)
            else:
                inputs = tuple(renamed.get(a.name, a) for a in item.inputs)
                nodes.append(item if inputs == item.inputs else replace(item, inputs=inputs))
        if self.is_root:
            graph = self.hierarchy.model.graph
            results = {a.name for a in graph.outputs}
            return replace(graph, nodes=tuple(looped(nodes, results, self.hierarchy.lengths)))
        nodes = looped(nodes, {a.name for a in region.outputs}, self.hierarchy.lengths)
        used = {a.name for n in nodes for a in n.uses()}
        read = []
        for n in reversed(sizes):
            if n.outputs[0].name in used:
                read.append(n)
                used |= {a.name for a in n.inputs}
        sizes = read[::-1]
        region.inputs = sorted((a for a in region.inputs if a.name in used), key=_rank)
        return Graph(".".join(region.path), (*sizes, *nodes), tuple(region.inputs), tuple(region.outputs))

    def _local_sizes(self) -> tuple[list[Node[Any]], dict[str, Argument]]:
        """Outer sizes, read from the region's own inputs if one has them."""
        region = self.region
        sizes: list[Node[Any]] = []
        renamed: dict[str, Argument] = {}
        for a in region.inputs:
            t = a.type
            if not isinstance(t, ScalarType) or not isinstance(t.value, str):
                continue
            here = ".".join(region.path)
            for given in region.inputs:
                way = self.hierarchy.caches.way_to(given, t.value, here)
                read = way[-1].outputs[0] if way else given
                g = read.type
                if isinstance(g, TensorType) and g.shape is not None and t.value in g.shape:
                    mine = Argument(f"{a.name} in {here}", t, DYNAMIC)
                    config = InputSizeConfig(g.shape.index(t.value), t.value)
                    sizes += [*way, InputSize(f"size {mine.name}", (read,), (mine,), config)]
                    renamed[a.name] = mine
                    break
        return sizes, renamed

    # -- the draft ----------------------------------------------------------------------------------------------------

    def draft(self) -> Draft:
        graph = self.model.graph
        if self.is_root:
            inputs, bound, taken = self._taken()
            for name in inputs:
                self.hints.words[name] = name
        else:
            inputs = [self._parameter(i, a) for i, a in enumerate(graph.inputs)]
            bound, taken = {a.name: Name(v) for a, v in zip(graph.inputs, inputs, strict=True)}, []
        block = Block(self, graph, set(inputs))
        block.bound.update(bound)
        block.statements += taken
        block.run()
        made = self.hierarchy.caches.made
        if self.is_root and made is not None:
            *others, held = block.outputs()
            results = caches.returned(made, others, held, self.hierarchy.face.graph.outputs)
        elif self.is_root:
            results = block.outputs()
        else:
            results = tuple(block.constant(a) if a.value is not None else block.bound[a.name] for a in graph.outputs)
        body: list[Statement] = [*block.statements, Return(results)]
        body = [*self._prelude(tuple(inputs), body), *body]
        self.hints.words["backend"] = "backend"
        fields = [Assign((f"self.{n}",), v if not isinstance(v, dict) else tree_of(v)) for n, v in self.tree.items()]
        if (self.is_root and not self.record) or (self.creates and not self._tensor_inputs(tuple(inputs))):
            fields.insert(0, Assign(("self.backend",), Call(Attribute(Name("emberlet"), "get_backend"), (BACKEND,))))
        fields += [s for s in self.fields if isinstance(s, Assign)]
        about, shapes = self._about(), self._shapes()
        return Draft(self.region.path, self._class_name(), fields, inputs, body, self.hints, self.record, about, shapes)

    def _taken(self) -> tuple[list[str], dict[str, Expr], list[Statement]]:
        """The inputs of the model's own `forward`: the names of its parameters, the values of the graph's inputs, and
        the statements that compute these from the parameters."""
        face, given = self.hierarchy.face.graph, self.hierarchy.caches.given
        names = list(input_names(face))
        bound: dict[str, Expr] = {a.name: Name(n) for a, n in zip(face.inputs, names, strict=True)}
        if given is None:
            return names, bound, []
        flat_names = names[given.start : given.start + len(given.flat)]
        star = ""
        if given.repeated is not None:
            del names[given.start :]
            star = Names(names).unique(given.name)
            names.append(star)
        value = caches.listed(given, flat_names, star)
        if isinstance(value, Name):
            bound[given.whole.name] = value
            return names, bound, []
        variable = self.word("caches")
        bound[given.whole.name] = Name(variable)
        return names, bound, [Assign((variable,), value)]

    def _parameter(self, i: int, a: Argument) -> str:
        name = f"p{i}"
        word = self.hierarchy.caches.words.get(a.name, "") or _word(a) or self.hierarchy.origin(a)
        if isinstance(a.type, ScalarType) and isinstance(a.type.value, str) and a.type.value.isidentifier():
            word = identifier(a.type.value, limit=22)
        self.hints.words[name] = word or ("x" if i == 0 else "")
        if not self.hints.words[name]:
            del self.hints.words[name]
            self._kind(name, a)
        return name

    def _class_name(self) -> str:
        path = self.region.path
        if not path:
            return class_name(self.model.name)
        kind = self.hierarchy.model.kinds.get(path, "")
        if kind and kind.isidentifier() and kind not in ("Sequential", "ModuleList"):
            return class_name(kind)
        name = class_from(path)
        nodes = self.region.nodes()
        if name == "Block" and any(n.op() in CONVOLUTIONS for n in nodes):  # the path says nothing
            return kind_of(Part(nodes, len(self.region.inputs)))
        return name

    def _shapes(self) -> tuple[Shape, Shape] | None:
        """The shapes of the first input and output."""
        graph = self.model.graph
        ins = [a.type.shape for a in graph.inputs if isinstance(a.type, TensorType)]
        outs = [a.type.shape for a in graph.outputs if isinstance(a.type, TensorType)]
        if not ins or not outs or ins[0] is None or outs[0] is None:
            return None
        return ins[0], outs[0]

    def _about(self) -> str:
        found = self._shapes()
        if found is None:
            return ""
        shapes = [describe_shape(s) for s in found]
        if any('"' in s or "\\" in s or len(s) > 34 or not s.isprintable() or "?" in s for s in shapes):
            return ""
        return f"{shapes[0]} to {shapes[1]}."

    # -- what Block asks ----------------------------------------------------------------------------------------------

    def variable(self, output: Argument, node: Node[Any]) -> str:
        self.numbers += 1
        name = f"v{self.numbers}"
        self._kind(name, output)
        if not node.pure or node.name in self.hierarchy.impure:
            self.hints.fixed.add(name)
        if isinstance(node, InputSize):
            self.hints.words[name] = identifier(node.config.symbol, limit=22)
        elif output.name in self.hierarchy.caches.words:
            self.hints.words[name] = self.hierarchy.caches.words[output.name]
        elif self.is_root and informative(output.name, node.op()) and "/" not in output.name:
            word = identifier(output.name, limit=22)
            if informative(word, node.op()):
                self.hints.words[name] = word
        return name

    def _kind(self, name: str, a: Argument) -> None:
        t = a.type
        if isinstance(t, ScalarType):
            self.hints.kinds[name] = "scalar"
        elif isinstance(t, ShapeType):
            self.hints.kinds[name] = "shape"
        elif isinstance(t, TensorType) and t.dtype.is_bool:
            self.hints.kinds[name] = "bool"

    def list_word(self, a: Argument) -> str:
        """A word for the list of values collected by a loop, of which `a` is the first; empty if unknown."""
        made = self.hierarchy.caches.made
        return self.hierarchy.caches.words[made.whole.name] if made is not None and a in made.layers else ""

    def cache_width(self, a: Argument) -> int:
        """The number of tensors in a layer's new cache, if `a` is the first layer's; else 0."""
        made = self.hierarchy.caches.made
        return made.width if made is not None and a in made.layers else 0

    def place(self, n: int, width: int) -> Expr:
        """The position of the n-th iteration's value in what a loop collects."""
        return caches.place(n, max(width, 1))

    def word(self, wanted: str) -> str:
        """A variable for a loop."""
        self.numbers += 1
        name = f"v{self.numbers}"
        self.hints.words[name] = identifier(wanted)
        return name

    # -- fields -------------------------------------------------------------------------------------------------------

    def child(self, place: Path) -> Expr:
        """The field of an inner region."""
        if place not in self.places:
            draft = self.hierarchy.drafts[place]
            expr, path = self._put(place[len(self.region.path) :], draft.call())
            for name, value in draft.record.items():
                self.record[f"{path}.{name}"] = value
            self.places[place] = expr
            if draft.kind is not None:
                self.hints.callees[flat(expr)] = draft.kind.parameters
            for key, (at, read) in list(self.hierarchy.tables.items()):
                if at == place:
                    self.hierarchy.tables[key] = (self.region.path, _rooted(read, expr))
        return self.places[place]

    def _layer_name(self, node: Node[Any], kind: str, weights: Iterable[Value]) -> str:
        """The path of a layer below this region, joined by dots; else a name."""
        if self.roles is not None:
            role = self.roles.layer(node, kind)
            name = self.hierarchy.layers.get(node.name, "")
            return name + role if name.endswith(".") else name or role
        here = self.region.path
        said: list[Path] = []
        for a in parameters(node):
            for name in names_of(a):
                path = written(name)[:-1]
                if path:
                    said.append(path)
        place = self.hierarchy.places.get(node.name, ())
        below = [p for p in said if p[: len(here)] == here and len(p) > len(here)]
        if node.name in self.hierarchy.said and place[: len(here)] == here and len(place) > len(here):
            # The exporter stores equal weights once; then their names say less than their uses.
            shared = any(self.hierarchy.owners.get(n, 0) > 1 for a in parameters(node) for n in names_of(a))
            below = [place, *below] if shared else [*below, place]
        if below:
            return ".".join(below[0][len(here) :])
        for path in said:  # in another item of the same list
            other = [p for p, q in zip(path, here, strict=False) if p != q]
            if len(path) > len(here) and all(p.isdigit() for p in other):
                return ".".join(path[len(here) :])
        name = super()._layer_name(node, kind, weights).replace(".", "_").replace("/", "_")
        return snake(kind).rstrip("_0123456789d") if here and name == "_".join(here) else name

    def _unnamed(self, node: Node[Any], kind: str) -> str:
        return self._uses().layer(node, kind) if self.hierarchy.nameless else super()._unnamed(node, kind)

    def _uses(self) -> Roles:
        """Names for what the file does not name, by their uses."""
        if self.uses is None:
            own = self.region.nodes() if not self.is_root else self.region.own()
            self.uses = Roles(own, {a.name for a in self.model.graph.outputs} if self.is_root else set())
        return self.uses

    def parameter(self, name: str, value: Value) -> Expr:
        """A constant. One that counts up, or is a single number, is not a parameter of the source model."""
        if SMALL < value.size <= MOST_COUNTED and value.dtype.is_integer and value.dtype.bits == 64:
            numbers = value.ints()
            step = numbers[1] - numbers[0]
            if step == 0 and len(set(numbers)) == 1:
                return self.fill(lift(value.shape), numbers[0], value.dtype)
            if step == 1 and all(n == numbers[0] + i for i, n in enumerate(numbers)):
                ends = (numbers[-1] + 1,) if numbers[0] == 0 else (numbers[0], numbers[-1] + 1)
                dtype = () if value.dtype.name == "int64" else (("dtype", lift(value.dtype)),)
                kwargs = (*dtype, ("backend", self.backend()))
                counted: Expr = Call(Attribute(Name("F"), "arange"), tuple(map(lift, ends)), kwargs)
                if len(value.shape) > 1:
                    counted = Call(Attribute(counted, "reshape"), (lift(value.shape),))
                return counted
        if self.roles is not None and self.roles.is_vector(value):
            return self.stored(name, value)
        return super().parameter(name, value)

    def _parameter_name(self, name: str) -> str:
        if self.roles is not None:
            return self.roles.constant(name)
        here, path = self.region.path, written(name)
        if path and path[: len(here)] == here and len(path) > len(here):
            return ".".join(path[len(here) :])
        if not path and not informative(name, ""):  # the exporter has lost the name
            return self._uses().constant(name)
        return (path[-1] if path else super()._parameter_name(name)).replace(".", "_")

    def placed(self, name: str, fallback: str, value: Expr) -> tuple[Expr, str]:
        return self._put(tuple(p for p in name.split(".") if p) or (fallback,), value)

    def _put(self, path: Sequence[str], value: Expr) -> tuple[Expr, str]:
        """A new field at a path: (the expression that reads it, its path in the record)."""
        parts = [p if i and p.isdigit() else attribute(p) for i, p in enumerate(path)]
        tree = self.tree
        for part in parts[:-1]:
            below = tree.setdefault(part, {})
            if not isinstance(below, dict):  # there is a layer at this path
                return self._put((attribute("_".join(parts)),), value)
            tree = below
        members = self._members() if tree is self.tree else _MEMBERS
        base, n = parts[-1] + "_" * (parts[-1] in members), 1
        last = base
        while last in tree:
            n += 1
            last = f"{base.rstrip('_')}_{n}"
        parts[-1] = last
        tree[last] = value
        if tree is self.tree:
            self.names.unique(last)
        expr: Expr = SELF
        for part in parts:
            if part.isdigit():
                expr = Index(expr, lift(int(part)))
            else:
                expr = Attribute(expr, part)
        return expr, ".".join(parts)

    def _members(self) -> set[str]:
        from ..emit.module import _MEMBERS as members

        return members if self.is_root else _MEMBERS

    def _apart(self, name: str, weights: Mapping[str, Value]) -> Hashable:
        if self.roles is not None and any(v.origin is None for v in weights.values()):
            return name
        return name if all(len(v.shape) == 1 for v in weights.values()) else None

    def embedding(self, node: Node[Any], table: Value) -> Expr:
        expr = super().embedding(node, table)
        self.hierarchy.tables[table.key()] = (self.region.path, expr)
        return expr

    def tied(self, weight: Value) -> Expr | None:
        if not isinstance(weight.source, Transposed):
            return None
        key = weight.source.matrix.key()
        if key in self._tables:
            return super().tied(weight)
        found = self.hierarchy.tables.get(key)
        if found is not None and found[0] in {r.path for r in self.region.regions()}:
            self.child(found[0])
            found = self.hierarchy.tables[key]
        if found is not None and found[0] == self.region.path:
            return Call(Attribute(Attribute(found[1], "weight"), "val"))
        return None


def _rank(a: Argument) -> int:
    """The rank of an input among others: first what flows through the layers, then masks and sizes, then caches."""
    t = a.type
    if isinstance(t, SequenceType):
        return 2
    return 0 if isinstance(t, TensorType) and t.dtype.is_float else 1


def _rooted(read: Expr, base: Expr) -> Expr:
    """An expression with `self` replaced by `base`."""
    match read:
        case Name("self"):
            return base
        case Attribute(inner, name):
            return Attribute(_rooted(inner, base), name)
        case Index(inner, key):
            return Index(_rooted(inner, base), key)
        case _:
            return read


def attribute(text: str) -> str:
    """A module's name as an attribute name."""
    name = text if text.isidentifier() and not text.startswith("__") else identifier(text, "layer")
    return name + "_" if keyword.iskeyword(name) else name


def class_from(path: Path) -> str:
    """A class name for a module at a path: "Layer" for ("encoder", "layers", "0")."""
    words = [p for p in path if not p.isdigit()]
    if not words:
        return "Block"
    name = words[-1]
    if path[-1].isdigit():
        name = _SHORT.get(name, name)
        if len(name) > 3 and name.endswith("s") and not name.endswith("ss"):
            name = name[:-1]
    name = _SHORT.get(name, name)
    return class_name(name)


_SHORT = {
    "attn": "attention",
    "self": "self_attention",
    "self_attn": "self_attention",
    "ff": "feed_forward",
    "ffn": "feed_forward",
    "h": "block",
    "blk": "block",
}


_MADE_BY = {"Cos": "cos", "Sin": "sin"}
_VIEWS = ("Unsqueeze", "Expand", "Cast", "Transpose", "Reshape", "Squeeze")


def _word(a: Argument) -> str:
    """A word for a region's input, from its name."""
    name = a.name.rstrip("0123456789_.")
    if "mask" in name.lower():
        return "mask"
    for word in ("cos", "sin", "bias", "state", "key", "value"):
        if name.lower() == word:
            return word
    return ""
