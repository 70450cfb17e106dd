"""Reads graphs, nodes and functions from protobuf."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from emberlet import dtypes
from emberlet.dtypes.decimal import shortest
from emberlet.errors import ModelError

from ..emit.names import clean
from ..evaluation import known
from ..ir.argument import ABSENT, Argument, Constant
from ..ir.graph import Graph, Model, Node
from ..ir.problem import MALFORMED, Enough, Problem, Problems, explained, quoted, report
from ..ir.types import TensorType, Type, UnknownType
from ..ir.value import Value
from ..ops import REGISTRY
from ..ops.attributes import Attributes, AttributeValue, GraphReader
from ..protobuf import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, ValueInfoProto
from ..protobuf.messages import AttributeType
from ..records import replace
from . import freezing, gradient, modules
from .order import ordered
from .schema import check_schema, domain_of, domain_prefix, opsets_of, prefixed, substituted
from .scope import Names, Scope, resolved
from .values import Values, utf8

NEWEST_OPSET = 28
MAX_DEPTH = 64
MAX_NODES = 1 << 18
FEW_NODES = 1 << 12  # a file of few nodes may still expand to this many

# Domains whose nodes may name their last outputs "" as well as leave them out.
MAY_END_EARLY = ("", "com.microsoft")


class Reader:
    """Reads one model. Problems are collected; the rest is still read."""

    def __init__(self, proto: ModelProto, folder: Path | None, freeze: freezing.Frozen | None = None) -> None:
        self.proto = proto
        self.freeze = freeze or {}
        self.frozen: dict[str, Value] = {}
        self.values = Values(folder)
        self.problems = Problems()
        self.read_nodes = 0
        written = len(proto.graph.node) + sum(len(f.node) for f in proto.functions)
        self.most_nodes = min(MAX_NODES, FEW_NODES + 64 * written)
        self.names = Names()
        self.functions: dict[tuple[str, str, str], FunctionProto] = {}
        self.scopes: dict[str, modules.Path] = {}
        self.kinds: dict[modules.Path, str] = {}

    def read(self, name: str, origin: str) -> Model:
        proto = self.proto
        opsets = opsets_of(proto.opset_import)
        newest = opsets.get("", 1)
        if newest > NEWEST_OPSET:
            self.problems.append(f"opset {newest} is newer than {NEWEST_OPSET}, the newest this release knows")
        if newest < 1:
            self.problems.append(f"opset {newest} does not exist")
        if not proto.HasField("graph"):
            self.problems.append("holds no graph")
        for f in proto.functions:
            self.functions[(domain_of(f.domain), f.name, getattr(f, "overload", ""))] = f
        graph = Graph(name, (), (), ())
        if not self.problems:
            with suppress(Enough):
                self.read_frozen(proto.graph)
                graph = self.graph(proto.graph, Scope(opsets=opsets), None)
        if self.problems:
            raise ModelError(report(origin, self.problems))
        producer = " ".join(p for p in (proto.producer_name, proto.producer_version) if p)
        inputs, outputs = tuple(a.name for a in graph.inputs), tuple(o.name for o in proto.graph.output)
        return Model(
            name,
            graph,
            tuple(sorted(opsets.items())),
            inputs,
            outputs,
            producer,
            proto.doc_string,
            scopes=self.scopes,
            kinds=self.kinds,
            frozen=self.frozen,
        )

    def read_frozen(self, proto: GraphProto) -> None:
        """Bind the frozen inputs. Sizes that they fix are replaced in every other type."""
        names = [i.name for i in proto.input]
        defaults = {t.name for t in proto.initializer}
        self.problems += freezing.unknown(self.freeze, names, defaults)
        sizes: dict[str, int] = {}
        for info in proto.input:
            if info.name in self.freeze:
                try:
                    value = freezing.frozen(self.freeze[info.name], self.values.declared(info), sizes)
                    self.frozen[info.name] = value
                except Problem as problem:
                    self.problems.append(f"input {quoted(info.name)} cannot be frozen: {problem}")
        self.values.sizes = sizes

    # -- graphs -------------------------------------------------------------------------------------------------------

    def graph(self, proto: GraphProto, outer: Scope, inputs: Sequence[Type] | None) -> Graph:
        """Read a graph or subgraph; `inputs` are the types of a subgraph's inputs, if its node knows them."""
        if outer.depth >= MAX_DEPTH:
            raise Problem(f"subgraphs nest deeper than {MAX_DEPTH}")
        scope = Scope(outer, {}, outer.opsets, outer.depth + 1)
        top = inputs is None
        constants = self.values.initializers(proto, self.problems)
        if top:
            constants = {key: value for key, value in constants.items() if key not in self.frozen}
        for key, value in constants.items():
            name = self.names.unique(key)
            argument = Argument(name, TensorType(value.dtype, value.shape), Constant(replace(value, origin=name)))
            scope.values[key] = argument
        graph_inputs = []
        named: set[str] = set()
        for i, info in enumerate(proto.input):
            if info.name in named:
                self.problems.append(f"graph {quoted(proto.name)}: two inputs are called {quoted(info.name)}")
            named.add(info.name)
            given = inputs[i] if inputs is not None and i < len(inputs) else None
            if top and info.name in self.frozen:
                name = self.names.unique(info.name)
                value = replace(self.frozen[info.name], origin=name)
                scope.values[info.name] = Argument(name, TensorType(value.dtype, value.shape), Constant(value))
                continue
            if info.name in constants and inputs is None:
                # IR version 3 lists every initializer as an input; from 4 on, that marks a default which callers may
                # replace. In neither case would a caller want to pass it.
                continue
            try:
                t = self.values.declared(info, given)
            except Problem as problem:
                self.problems.append(f"input {quoted(info.name)}: {problem}")
                t = UnknownType()
            argument = Argument(self.names.unique(info.name), t)
            scope.values[info.name] = argument
            graph_inputs.append(argument)
        declared = {v.name: v for v in (*proto.value_info, *proto.output)}
        nodes: list[Node[Any]] = []
        scope.protos = ordered(proto.node, scope.values, self.problems)
        self.nodes(scope.protos, scope, declared, nodes)
        outputs = []
        for info in proto.output:
            found = scope.find(info.name) if info.name else None
            if found is None:
                self.problems.append(f"graph {quoted(proto.name)}: nothing produces the output {quoted(info.name)}")
                found = Argument(info.name, UnknownType())
            outputs.append(found)
        return Graph(proto.name, tuple(nodes), tuple(graph_inputs), tuple(outputs))

    def nodes(
        self,
        protos: Iterable[NodeProto],
        scope: Scope,
        declared: Mapping[str, ValueInfoProto],
        out: list[Node[Any]],
        references: Mapping[str, AttributeProto] | None = None,
    ) -> None:
        """Read nodes into `out`, binding their outputs in `scope`; problems are noted and the rest is still read."""
        for i, proto in enumerate(protos):
            label = proto.name or (proto.output[0] if proto.output else f"number {i}")
            self.read_nodes += 1
            if self.read_nodes > self.most_nodes:  # functions can call functions, so a small file may expand enormously
                if self.read_nodes == self.most_nodes + 1:
                    self.problems.append(f"its functions and subgraphs expand to more than {self.most_nodes} nodes")
                return
            try:
                self.node(proto, label, scope, declared, out, references or {})
            except MALFORMED as error:
                operator = clean(domain_prefix(proto.domain) + proto.op_type, 80)
                self.problems.append(f"node {quoted(label)} ({operator}): {explained(error)}")
                for key in proto.output:
                    if key and key not in scope.values:
                        scope.values[key] = Argument(key, UnknownType())

    def add_outputs(
        self,
        names: Sequence[str],
        found: Sequence[Argument],
        scope: Scope,
        declared: Mapping[str, ValueInfoProto],
    ) -> None:
        """Add a node's outputs to the values of the scope. Raises Problem."""
        for key, argument in zip(names, found, strict=True):
            if not key:
                continue
            if key in scope.values:
                raise Problem(
                    f"writes {quoted(key)}, which an earlier node already writes; every value needs a unique name"
                )
            if key in declared and isinstance(argument.type, TensorType):
                argument = replace(argument, type=self.values.declared(declared[key], argument.type))
            scope.values[key] = argument

    def node(
        self,
        proto: NodeProto,
        label: str,
        scope: Scope,
        declared: Mapping[str, ValueInfoProto],
        out: list[Node[Any]],
        references: Mapping[str, AttributeProto],
    ) -> None:
        domain = domain_of(proto.domain)
        inputs = tuple(self.input(key, scope) for key in proto.input)
        function = self.functions.get((domain, proto.op_type, getattr(proto, "overload", "")))
        if function is not None:
            self.inline(function, proto, label, inputs, scope, out, references)
            return
        opset = scope.opsets.get(domain)
        if opset is None:
            raise Problem(f"the model imports no opset of the domain {domain or 'ai.onnx'!r}")
        check_schema(proto, domain, opset)
        written = list(proto.output)
        while len(written) > 1 and not written[-1] and domain in MAY_END_EARLY:
            written.pop()
        operator = REGISTRY.get((domain, proto.op_type))
        if (domain, proto.op_type) == (gradient.DOMAIN, "Gradient"):
            forward, backward = gradient.gradient(proto, label, scope.protos)
            self.nodes(forward, scope, {}, out)
            self.nodes(backward, replace(scope, opsets=gradient.OPSET), {}, out)
            return
        if operator is None:
            raise Problem("the operator is not supported")
        if (domain, proto.op_type) == ("", "If") and self.decided(proto, label, inputs[0], scope, out, references):
            return
        outputs = tuple(Argument(self.names.unique(key), UnknownType()) if key else ABSENT for key in written)
        attributes = Attributes(self.attributes(proto, scope, references), opset, inputs, outputs)
        if any(isinstance(a.type, UnknownType) for a in inputs):
            typed: tuple[Argument, ...] = outputs
        else:
            name = self.names.unique(label, "node ")
            self.note_scope(name, proto)
            node = known(operator.make(name, inputs, outputs, attributes).typed())
            typed = tuple(_originated(o) for o in node.outputs) if node.absorbed else node.outputs
            if not node.absorbed:
                node = node.settled()
                out.append(node)
        self.add_outputs(written, typed, scope, declared)
        if typed is not outputs and not node.absorbed:
            out[-1] = replace(node, outputs=tuple(scope.values[k] if k else ABSENT for k in written))

    def note_scope(self, name: str, proto: NodeProto) -> None:
        """Note the module that a node came from, if the file says so."""
        scope = modules.written_scopes(proto, self.kinds) if proto.metadata_props else None
        if scope is None:
            scope = modules.named_scope(proto.name)
        if scope is not None:
            self.scopes[name] = scope

    def input(self, key: str, scope: Scope) -> Argument:
        if not key:
            return ABSENT
        found = scope.find(key)
        if found is None:
            raise Problem(f"reads {quoted(key)}, which nothing before it produces")
        return found

    # -- functions ----------------------------------------------------------------------------------------------------

    def inline(
        self,
        function: FunctionProto,
        call: NodeProto,
        label: str,
        inputs: tuple[Argument, ...],
        scope: Scope,
        out: list[Node[Any]],
        references: Mapping[str, AttributeProto],
    ) -> None:
        """Read a function's body in place of a call to it."""
        if scope.depth >= MAX_DEPTH:
            raise Problem(f"functions call each other deeper than {MAX_DEPTH}")
        opsets = {**scope.opsets, **opsets_of(function.opset_import)} if function.opset_import else scope.opsets
        inner = Scope(None, {}, opsets, scope.depth + 1)
        for i, key in enumerate(function.input):
            inner.values[key] = inputs[i] if i < len(inputs) else ABSENT
        given = {a.name: resolved(a, references) for a in call.attribute}
        named = {a.name: a for a in function.attribute_proto}
        named.update({k: a for k, a in given.items() if a is not None})
        body = ordered(function.node, inner.values, self.problems)
        before = len(self.problems)
        self.nodes([prefixed(n, label) for n in body], inner, {}, out, named)
        if len(self.problems) > before:
            self.problems[before:] = [f"in {quoted(label)} ({call.op_type}), {p}" for p in self.problems[before:]]
        for key, formal in zip(call.output, function.output, strict=False):
            if not key:
                continue
            found = inner.find(formal)
            if found is None:
                if self.read_nodes <= self.most_nodes:  # else reported already
                    raise Problem(f"the function's body does not produce {quoted(formal)}")
                found = Argument(key, UnknownType())
            scope.values[key] = found

    def decided(
        self,
        node: NodeProto,
        label: str,
        condition: Argument,
        scope: Scope,
        out: list[Node[Any]],
        references: Mapping[str, AttributeProto],
    ) -> bool:
        """Read an If with a constant condition as the branch it takes. The types of the other branch may not even fit.

        Exporters write such an If where the rank of a tensor decides what to do.
        """
        if condition.value is None:
            return False
        taken = "then_branch" if condition.value.item() else "else_branch"
        branch = self.attributes(node, scope, references).get(taken)
        if not callable(branch):
            raise Problem(f"has no {taken}")
        graph = branch(())
        out.extend(graph.nodes)
        for key, a in zip(node.output, graph.outputs, strict=False):
            if key:
                scope.values[key] = a
        return True

    # -- attributes, types, values ------------------------------------------------------------------------------------

    def attributes(
        self, node: NodeProto, scope: Scope, references: Mapping[str, AttributeProto]
    ) -> dict[str, AttributeValue]:
        values: dict[str, AttributeValue] = {}
        for proto in node.attribute:
            a = resolved(proto, references)
            if a is not None:
                values[a.name] = self.attribute(a, scope, references)
        return values

    def attribute(self, a: AttributeProto, scope: Scope, references: Mapping[str, AttributeProto]) -> AttributeValue:
        kind = a.type
        if kind == AttributeType.INT:
            return int(a.i)
        if kind == AttributeType.FLOAT:
            return shortest(a.f, dtypes.float32)
        if kind == AttributeType.STRING:
            return utf8(a.s)
        if kind == AttributeType.INTS:
            return tuple(int(v) for v in a.ints)
        if kind == AttributeType.FLOATS:
            return tuple(shortest(v, dtypes.float32) for v in a.floats)
        if kind == AttributeType.STRINGS:
            return tuple(utf8(v) for v in a.strings)
        if kind == AttributeType.TENSOR:
            return self.values.value(a.t)
        if kind == AttributeType.SPARSE_TENSOR:
            return self.values.dense(a.sparse_tensor)
        if kind == AttributeType.TYPE_PROTO:
            return self.values.type(a.tp)
        if kind == AttributeType.GRAPH:
            return self.subgraph(a.g, scope, references)
        raise Problem(f"attribute {quoted(a.name)} has the unsupported kind {AttributeType(kind).name}")

    def subgraph(self, proto: GraphProto, scope: Scope, references: Mapping[str, AttributeProto]) -> GraphReader:
        body = substituted(proto, references, resolved) if references else proto

        def read(inputs: Sequence[Type]) -> Graph:
            return self.graph(body, scope, inputs)

        return read


def _originated(a: Argument) -> Argument:
    """A node's constant, distinguished by its name from others with the same elements."""
    if a.value is None or a.value.origin is not None:
        return a
    return replace(a, source=Constant(replace(a.value, origin=a.name)))
