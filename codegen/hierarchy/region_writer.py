"""Writes the code of one region: the constructor's fields and the statements of `forward`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from emberlet import nn

from ..emit.block import Block
from ..emit.expression import Attribute, Call, Expr, Index, Name, Tuple, flat, lift
from ..emit.module import BACKEND, SELF, ModuleWriter, input_names
from ..emit.names import Names, class_name, identifier, informative, snake
from ..emit.statement import Assign, Return, Statement
from ..emit.variables import Hints
from ..ir.argument import Argument
from ..ir.graph import Node
from ..ir.types import ScalarType, Shape, ShapeType, TensorType, describe_shape
from ..ir.value import Transposed, Value
from ..ops.internal import InputSize
from ..records import replace
from . import caches
from .classes import Draft
from .lists import held as tree_of
from .region_graph import graph_of
from .regions import Region
from .repetition.block_names import CONVOLUTIONS, Part, kind_of
from .roles import LAYER_SCALE, Roles, channels
from .scopes import Path, names_of, parameters, written
from .words import attribute, class_from, word_of

if TYPE_CHECKING:
    from .writer import Hierarchy

SMALL = 16
MOST_COUNTED = 1 << 14
_MEMBERS = {"backend", *dir(nn.Module)}


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
        super().__init__(replace(hierarchy.model, graph=graph_of(hierarchy, region)))
        self.uses: Roles | None = None
        self.roles = Roles(region.nodes()) if hierarchy.nameless and not self.is_root else None
        self.names = Names(())

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
            if not made.trailing and not isinstance(held, Tuple | Name):
                name = self.word("present")
                block.statements.append(Assign((name,), held))
                held = Name(name)
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

    def _tensor_inputs(self, inputs: tuple[str, ...]) -> list[str]:
        given = self.hierarchy.caches.given
        if not self.is_root or given is None:
            return super()._tensor_inputs(inputs)
        pairs = zip(inputs, self.hierarchy.face.graph.inputs[: given.start if given.trailing else None], strict=False)
        return [name for name, a in pairs if isinstance(a.type, TensorType) and a.type.shape != ()]

    def _parameter(self, i: int, a: Argument) -> str:
        name = f"p{i}"
        word = self.hierarchy.caches.words.get(a.name, "") or word_of(a) or self.hierarchy.origin(a)
        if isinstance(a.type, ScalarType) and isinstance(a.type.value, str) and a.type.value.isidentifier():
            word = identifier(a.type.value, limit=22)
        if not word and i == 0:
            looked_up = any(n.table() is not None and a in n.inputs for n in self.region.nodes())
            word = "ids" if looked_up else "x"
        self.hints.words[name] = word
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
        if name == "Block" and any(n.op() in CONVOLUTIONS for n in nodes):  # the path is not informative
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
            # The exporter stores equal weights once, so their uses say more than their shared name.
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
        """A constant. A range or a single number is not a parameter of the source model."""
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
        if len(value.shape) > 1 and channels(value) and self._parameter_name(name) == LAYER_SCALE:
            # The source has a vector, which the exporter broadcast.
            behind = len(value.shape) - 1 - value.shape.index(channels(value))
            vector = super().parameter(name, replace(value, shape=(channels(value),)))
            return vector if not behind else Call(Attribute(vector, "reshape"), (lift((-1, *(1,) * behind)),))
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
            if _mixes(tree, part) or not isinstance(tree.setdefault(part, {}), dict):  # there is a layer at this path
                return self._put((attribute("_".join(parts)),), value)
            tree = tree[part]
        if _mixes(tree, parts[-1]) or (parts[-1].isdigit() and parts[-1] in tree):
            return self._put((attribute("_".join(parts)),), value)
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

    def _key(self, name: str, weights: Mapping[str, Value]) -> Hashable:
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


def _mixes(tree: Mapping[str, Any], part: str) -> bool:
    """Whether a field would be the only number among words, or the only word among numbers: neither a list nor a group
    holds both."""
    return part.isdigit() is not next(iter(tree), part).isdigit()


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
