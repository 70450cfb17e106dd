"""ModuleWriter: a whole model as the source of one class, and the record of its weights."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from emberlet.dtypes import DType

from ..ir.graph import Graph, Model
from ..ir.node import Node
from ..ir.problem import Problem
from ..ir.types import TensorType, Type, describe
from ..ir.value import Fill, Transposed, Value
from .block import Block
from .emitter import shortest
from .expression import WIDTH, Attribute, Call, Expr, Name, lift, string_literal
from .layout import laid_out, names_of
from .names import Names, class_name, clean, identifier, module_path, owner_of, snake
from .statement import Assign, Def, Return, Statement, fold_return, render

SELF, BACKEND = Name("self"), Name("backend")
SMALL = 16
MAX_FILL = 2 << 30

# Fields of the base class that a layer must not hide.
_MEMBERS = (
    "forward call training backend record parameters modules children visit map named_parameters state_dict load save "
    "load_record load_file save_file to eval train from_file from_bytes from_embedded default init compile name weights"
).split()


@dataclass(slots=True)
class Written:
    """The outcome: the class's name, the module's source without its weights, and the weights by attribute path."""

    class_name: str
    source: str
    record: dict[str, Value]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    problems: list[str] = field(default_factory=list)


class ModuleWriter:
    """Collects the fields of the class while its graph is emitted."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.creates = False
        self.problems: list[str] = []
        self.fields: list[Statement] = []
        self.record: dict[str, Value] = {}
        self.names = Names(_MEMBERS)
        self.used = _used(model.graph)
        self.sizes = _sizes(model.graph)
        self._layers: dict[Hashable, Expr] = {}
        self._parameters: dict[Hashable, Expr] = {}
        self._owners: dict[str, str] = {}
        self._tables: dict[Hashable, Node[Any]] = {}
        self._note_owners(model.graph)

    def write(self, weights: str | None = None, top_comment: str = "") -> Written:
        """The class. `weights` is the file name of its burnpack, where it has one of its own."""
        graph, name = self.model.graph, class_name(self.model.name)
        inputs = input_names(graph)
        block = Block(self, graph, set(inputs))
        for a, variable in zip(graph.inputs, inputs, strict=True):
            block.bound[a.name] = Name(variable)
        block.kept |= set(inputs)
        block.run()
        results = block.outputs()
        body = fold_return([*block.statements, Return(results)])
        body = [*self._prelude(inputs, body), *body]
        lines = [*_header(self.model, top_comment), "", "import emberlet"]
        lines += [
            "from emberlet import functional as F",
            "from emberlet import nn",
            "from emberlet.model import Model",
            "",
            "",
        ]
        lines += [f"class {name}(Model):", *_docstring(self._summary(), 4), ""]
        if weights is not None:
            lines += [f"    WEIGHTS = {string_literal(weights)}", ""]
        if self.creates and not self._tensor_inputs(inputs):
            self.fields.insert(
                0, Assign(("self.backend",), Call(Attribute(Name("emberlet"), "get_backend"), (BACKEND,)))
            )
        lines += ["    def __init__(self, backend=None):", *render(self.fields, 8)]
        lines += ["", *_signature(inputs), *_docstring(self._contract(inputs), 8)]
        body = laid_out(body, 8)
        lines += [""] if isinstance(body[0], Def) else []
        lines += render(body, 8)
        source = "\n".join(lines) + "\n"
        source = _used_imports(source)
        return Written(name, source, self.record, inputs, self._outputs(), self.problems)

    # -- fields -------------------------------------------------------------------------------------------------------

    def layer(
        self,
        node: Node[Any],
        kind: str,
        args: tuple[Expr, ...],
        kwargs: tuple[tuple[str, Expr], ...],
        weights: dict[str, Value],
    ) -> Expr:
        """The field of a layer; two nodes with the same layer and weights share one."""
        for held in weights.values():
            if isinstance(held.source, Fill) and held.nbytes > MAX_FILL:
                raise Problem(f"a weight of shape {held.shape} is one number and would take {held.nbytes} bytes")
        key = (kind, args, kwargs, tuple((k, v.key()) for k, v in sorted(weights.items())))
        if key in self._layers:
            return self._layers[key]
        dtype = next((v.dtype for v in weights.values() if v.dtype.is_float), None)
        if dtype is not None and dtype.name != "float32":
            kwargs = (*kwargs, ("dtype", lift(dtype)))
        name = self.names.unique(identifier(self._layer_name(node, kind, weights.values()), "layer"))
        call = Call(Attribute(Name("nn"), kind), args, (*kwargs, ("backend", BACKEND)))
        self.fields.append(Assign((f"self.{name}",), call))
        for weight, value in weights.items():
            self.record[f"{name}.{weight}"] = value
        self._layers[key] = Attribute(SELF, name)
        return self._layers[key]

    def embedding(self, node: Node[Any], table: Value) -> Expr:
        """The field of an embedding with this table."""
        rows, width = table.shape
        return self.layer(node, "Embedding", (lift(rows), lift(width)), (), {"weight": table})

    def tied(self, weight: Value) -> Expr | None:
        """The tensor of the embedding whose table is this matrix transposed, or None: the weights are stored once."""
        if not isinstance(weight.source, Transposed):
            return None
        table = weight.source.matrix
        node = self._tables.get(table.key())
        if node is None:
            return None
        return Call(Attribute(Attribute(self.embedding(node, table), "weight"), "val"))

    def parameter(self, name: str, value: Value) -> Expr:
        """A constant as a field, or as an expression where it has no data worth a field."""
        key = (name, value.key())
        if key in self._parameters:
            return self._parameters[key]
        if isinstance(value.source, Fill):
            number = shortest(Value(value.dtype, (), value.source))
            assert not isinstance(number, str)
            return self.fill(lift(value.shape), number, value.dtype)
        if value.size == 1 and value.dtype.is_float and value.dtype.bits >= 16:
            number = shortest(value)
            assert not isinstance(number, str)
            return self.fill(lift(value.shape), number, value.dtype)
        if value.dtype.kind == "string" or (value.size <= SMALL and not value.dtype.is_float):
            return self.literal(value)
        field_name = self.names.unique(identifier(name if "/" not in name else module_path(name) or name, "constant"))
        dtype = () if value.dtype.name == "float32" else (("dtype", lift(value.dtype)),)
        zeros = Attribute(Attribute(Name("nn"), "Param"), "zeros")
        call = Call(zeros, (lift(value.shape),), (*dtype, ("backend", BACKEND)))
        self.fields.append(Assign((f"self.{field_name}",), call))
        self.record[field_name] = value
        self._parameters[key] = Call(Attribute(Attribute(SELF, field_name), "val"))
        return self._parameters[key]

    def fill(self, shape: Expr, number: int | float | bool | str, dtype: DType) -> Expr:
        """`F.zeros`, `F.ones` or `F.full`; the dtype is left out where it is the one they have without."""
        plain = not dtype.is_bool and (repr(number) in ("0", "0.0", "1", "1.0"))
        usual = "float32" if plain or isinstance(number, float) else "bool" if isinstance(number, bool) else "int64"
        kwargs = () if dtype.name == usual else (("dtype", lift(dtype)),)
        args = (shape,) if plain else (shape, lift(number))
        function = ("ones" if number == 1 else "zeros") if plain else "full"
        return Call(Attribute(Name("F"), function), args, (*kwargs, ("backend", self.backend())))

    def backend(self) -> Expr:
        """The backend that new tensors are made on: the first input's."""
        self.creates = True
        return BACKEND

    def literal(self, value: Value) -> Expr:
        """`F.asarray([…])`"""
        items: Any = value.list()
        data = lift(items[0]) if not value.shape else nested(items, value.shape)
        return self.tensor_of(data, value.dtype)

    def tensor_of(self, data: Expr, dtype: DType) -> Expr:
        kwargs = (("dtype", lift(dtype)), ("backend", self.backend()))
        return Call(Attribute(Name("F"), "asarray"), (data,), kwargs)

    def _note_owners(self, graph: Graph) -> None:
        """The name of the module that an initializer's name tells: "conv1" of "conv1.weight"."""
        for node in graph.walk():
            table = node.table()
            if table is not None:
                self._tables.setdefault(table.key(), node)
            for a in node.inputs:
                owner = owner_of(a.name) if a.value is not None else ""
                if owner:
                    self._owners.setdefault(node.name, owner)

    def _layer_name(self, node: Node[Any], kind: str, weights: Iterable[Value]) -> str:
        owner = self._owners.get(node.name) or module_path(node.name)
        if owner:
            return owner
        for value in weights:  # which a transposition may have come between
            held = value.source.matrix if isinstance(value.source, Transposed) else value
            if isinstance(held.origin, str) and owner_of(held.origin):
                return owner_of(held.origin)
        base = snake(kind).rstrip("_0123456789").removesuffix("d").rstrip("_0123456789")
        n = 1
        while f"{base}{n}" in self.names:
            n += 1
        return f"{base}{n}"

    def _tensor_inputs(self, inputs: tuple[str, ...]) -> list[str]:
        pairs = zip(inputs, self.model.graph.inputs, strict=True)
        return [variable for variable, a in pairs if isinstance(a.type, TensorType)]

    def _prelude(self, inputs: tuple[str, ...], body: list[Statement]) -> list[Statement]:
        """Where new tensors are made: on the backend of the first input, else of the model."""
        if "backend" not in names_of(body):
            return []
        tensors = self._tensor_inputs(inputs)
        return [Assign(("backend",), Attribute(Name(tensors[0]) if tensors else SELF, "backend"))]

    # -- text ---------------------------------------------------------------------------------------------------------

    def _summary(self) -> list[str]:
        said = clean(self.model.doc.strip().splitlines()[0]) if self.model.doc.strip() else ""
        return [said or f"The model {clean(self.model.name)}."]

    def _contract(self, inputs: tuple[str, ...]) -> list[str]:
        lines = ["Run the model.", ""]
        for variable, a in zip(inputs, self.model.graph.inputs, strict=True):
            lines.append(f"{variable}: {_said(a.type)}")
        outputs = self.model.graph.outputs
        for i, (said, a) in enumerate(zip(self._outputs(), outputs, strict=True)):
            lines.append(f"{'Returns ' if i == 0 else '    and '}{said}: {_said(a.type)}")
        return lines

    def _outputs(self) -> tuple[str, ...]:
        return tuple(identifier(name, "output") for name in self.model.outputs)


def _said(t: Type) -> str:
    return clean(describe(t))


def input_names(graph: Graph) -> tuple[str, ...]:
    names = Names()
    return tuple(names.unique(identifier(a.name, "input")) for a in graph.inputs)


def nested(items: list[Any], shape: tuple[int, ...]) -> Expr:
    """Nested lists of a flat list."""
    if len(shape) == 1:
        return lift(list(items))
    step = len(items) // shape[0] if shape[0] else 0
    return lift([nested(items[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])])


def _header(model: Model, top_comment: str) -> list[str]:
    lines = [f"# {clean(line)}".rstrip() for line in top_comment.splitlines()]
    made = f" by {clean(model.producer)}" if model.producer else ""
    opset = dict(model.opsets).get("", 1)
    lines.append(f"# @generated by emberlet from {clean(model.name)}.onnx (opset {opset}{made}); edit freely.")
    return lines


def _docstring(lines: list[str], indent: int) -> list[str]:
    pad = " " * indent
    if len(lines) == 1:
        return [f'{pad}"""{lines[0]}"""']
    return [f'{pad}"""{lines[0]}', *((pad + line).rstrip() for line in lines[1:]), f'{pad}"""']


def _signature(inputs: tuple[str, ...]) -> list[str]:
    line = "    def forward(" + ", ".join(("self", *inputs)) + "):"
    if len(line) <= WIDTH:
        return [line]
    return ["    def forward(", *(f"        {n}," for n in ("self", *inputs)), "    ):"]


def _used_imports(source: str) -> str:
    """Without the imports that nothing refers to."""
    head, mark, body = source.partition("\nclass ")
    kept = []
    for line in head.split("\n"):
        needed = {
            "import emberlet": "emberlet.",
            "from emberlet import functional as F": "F.",
            "from emberlet import nn": "nn.",
        }.get(line)
        if needed is None or _refers(body, needed):
            kept.append(line)
    return "\n".join(kept) + mark + body


def _refers(body: str, prefix: str) -> bool:
    return re.search(r"(?<![\w.])" + re.escape(prefix), body) is not None


def _used(graph: Graph) -> set[str]:
    """The names of values that somebody reads, in the graph and its subgraphs."""
    used = {a.name for a in graph.outputs}
    for node in graph.nodes:
        used |= {a.name for a in node.inputs}
        for inner in node.graphs():
            used |= _used(inner)
    return used


def _sizes(graph: Graph) -> dict[str, int]:
    """A guess of the bytes each tensor takes: unknown dimensions count as 1."""
    sizes: dict[str, int] = {}
    for node in graph.walk():
        for o in node.outputs:
            if isinstance(o.type, TensorType) and o.type.shape is not None:
                n = 1
                for d in o.type.shape:
                    n *= d if isinstance(d, int) else 1
                sizes[o.name] = o.type.dtype.nbytes(n)
    return sizes
