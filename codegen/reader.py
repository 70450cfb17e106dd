"""The reader: from an ONNX file to the typed IR. The only file that knows protobuf.

A model is untrusted: sizes are checked before anything is fetched, external data cannot leave the model's folder,
nesting is limited, and every problem is collected so that one ModelError lists them all with the node each sits at.
Calls of model-local functions, and of ONNX's function operators that have no class of their own, are read in place.
"""

from __future__ import annotations

import os
import re
import struct
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any

import onnx
from emberlet import dtypes
from emberlet.dtypes import DType
from emberlet.errors import ModelError
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
)

from . import gradient
from .evaluation import known
from .ir.argument import ABSENT, Argument, Constant
from .ir.graph import Graph, Model
from .ir.node import Node
from .ir.problem import Problem, report
from .ir.types import (
    AbsentType,
    Dim,
    OptionalType,
    SequenceType,
    TensorType,
    Type,
    UnknownType,
    as_tensor,
    refine,
)
from .ir.value import Buffer, Inline, Source, Stored, Text, Value
from .ops import REGISTRY
from .ops.attributes import DTYPES, Attributes, AttributeValue, GraphReader

NEWEST_OPSET = 28
MAX_DEPTH = 64
MAX_RANK = 64


def read_model(source: str | os.PathLike[str] | bytes | ModelProto, name: str | None = None) -> Model:
    """The typed IR of a model: a path, the bytes of a file, or a ModelProto.

    Raises ModelError, which lists every problem found with the node it sits at, and OSError for a path that cannot be
    read. External data is looked for beside the path, and nowhere else.
    """
    folder: Path | None = None
    if isinstance(source, ModelProto):
        proto, origin = source, "model"
    else:
        if isinstance(source, bytes):
            data, origin = source, "model"
        else:
            path = Path(source)
            data, folder, origin = path.read_bytes(), path.parent, path.name
        proto = ModelProto()
        try:
            proto.ParseFromString(data)
        except Exception as error:
            raise ModelError(f"{origin} is no ONNX model: {error}") from None
        del data
    return _Reader(proto, folder).read(name or Path(origin).stem, origin)


def dtype_of(code: int) -> DType:
    """The DType for a TensorProto.DataType. Raises Problem for the complex ones and unknown numbers."""
    if code not in DTYPES:
        known = {v: k for k, v in TensorProto.DataType.items()}
        raise Problem(f"element type {known.get(code, code)} is not supported")
    return DTYPES[code]


@dataclass(slots=True)
class _Scope:
    """The values that names stand for, those of the enclosing graph behind them."""

    parent: _Scope | None = None
    values: dict[str, Argument] = field(default_factory=dict)
    opsets: Mapping[str, int] = field(default_factory=dict)
    depth: int = 0
    protos: Sequence[NodeProto] = ()

    def find(self, name: str) -> Argument | None:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.parent
        return None


class _Reader:
    def __init__(self, proto: ModelProto, folder: Path | None) -> None:
        self.proto = proto
        self.folder = folder
        self.problems: list[str] = []
        self.taken: set[str] = set()
        self.counts: dict[str, int] = {}
        self.functions: dict[tuple[str, str, str], FunctionProto] = {}

    def read(self, name: str, origin: str) -> Model:
        proto = self.proto
        opsets = _opsets(proto.opset_import)
        newest = opsets.get("", 1)
        if newest > NEWEST_OPSET:
            self.problems.append(f"opset {newest} is newer than {NEWEST_OPSET}, the newest this release knows")
        if newest < 1:
            self.problems.append(f"opset {newest} does not exist")
        if not proto.HasField("graph"):
            self.problems.append("holds no graph")
        for f in proto.functions:
            self.functions[(_domain(f.domain), f.name, getattr(f, "overload", ""))] = f
        graph = Graph(name, (), (), ())
        if not self.problems:
            graph = self.graph(proto.graph, _Scope(opsets=opsets), None)
        if self.problems:
            raise ModelError(report(origin, self.problems))
        producer = " ".join(p for p in (proto.producer_name, proto.producer_version) if p)
        outputs = tuple(o.name for o in proto.graph.output)
        return Model(name, graph, tuple(sorted(opsets.items())), outputs, producer, proto.doc_string)

    # -- graphs -------------------------------------------------------------------------------------------------------

    def graph(self, proto: GraphProto, outer: _Scope, inputs: Sequence[Type] | None) -> Graph:
        """Read a graph or subgraph; `inputs` are the types of a subgraph's inputs where its node knows them."""
        if outer.depth >= MAX_DEPTH:
            raise Problem(f"subgraphs nest deeper than {MAX_DEPTH}")
        scope = _Scope(outer, {}, outer.opsets, outer.depth + 1)
        constants = self.initializers(proto)
        for key, value in constants.items():
            argument = Argument(self.unique(key), TensorType(value.dtype, value.shape), Constant(value))
            scope.values[key] = argument
        graph_inputs = []
        for i, info in enumerate(proto.input):
            given = inputs[i] if inputs is not None and i < len(inputs) else None
            if info.name in constants and inputs is None:
                # IR version 3 lists every initializer among the inputs; from 4 on, it is a default that callers
                # may replace. Neither makes it an input a person would want to pass.
                continue
            argument = Argument(self.unique(info.name), self.declared(info, given))
            scope.values[info.name] = argument
            graph_inputs.append(argument)
        declared = {v.name: v for v in (*proto.value_info, *proto.output)}
        nodes: list[Node[Any]] = []
        scope.protos = self.ordered(proto.node, scope)
        self.nodes(scope.protos, scope, declared, nodes)
        outputs = []
        for info in proto.output:
            found = scope.find(info.name) if info.name else ABSENT
            if found is None:
                self.problems.append(f"graph {proto.name!r}: nothing produces the output {info.name!r}")
                found = Argument(info.name, UnknownType())
            outputs.append(found)
        return Graph(proto.name, tuple(nodes), tuple(graph_inputs), tuple(outputs))

    def nodes(
        self,
        protos: Iterable[NodeProto],
        scope: _Scope,
        declared: Mapping[str, ValueInfoProto],
        out: list[Node[Any]],
        references: Mapping[str, AttributeProto] | None = None,
    ) -> None:
        """Read nodes into `out`, binding their outputs in `scope`; a problem is noted and the rest is still read."""
        for i, proto in enumerate(protos):
            label = proto.name or (proto.output[0] if proto.output else f"number {i}")
            try:
                self.node(proto, label, scope, declared, out, references or {})
            except Problem as problem:
                self.problems.append(f"node {label!r} ({_domain_prefix(proto.domain)}{proto.op_type}): {problem}")
                for key in proto.output:
                    if key and key not in scope.values:
                        scope.values[key] = Argument(key, UnknownType())

    def node(
        self,
        proto: NodeProto,
        label: str,
        scope: _Scope,
        declared: Mapping[str, ValueInfoProto],
        out: list[Node[Any]],
        references: Mapping[str, AttributeProto],
    ) -> None:
        domain = _domain(proto.domain)
        inputs = tuple(self.input(key, scope) for key in proto.input)
        function = self.functions.get((domain, proto.op_type, getattr(proto, "overload", "")))
        if function is not None:
            self.inline(function, proto, label, inputs, scope, out, references)
            return
        opset = scope.opsets.get(domain)
        if opset is None:
            raise Problem(f"the model imports no opset of the domain {domain or 'ai.onnx'!r}")
        _check_schema(proto, domain, opset)
        operator = REGISTRY.get((domain, proto.op_type))
        if (domain, proto.op_type) == (gradient.DOMAIN, "Gradient"):
            forward, backward = gradient.gradient(proto, label, scope.protos)
            self.nodes(forward, scope, {}, out)
            self.nodes(backward, replace(scope, opsets=gradient.OPSET), {}, out)
            return
        if operator is None:
            complete = NodeProto()
            complete.CopyFrom(proto)
            del complete.attribute[:]
            complete.attribute.extend(b for a in proto.attribute if (b := self.resolved(a, references)) is not None)
            body = _schema_function(complete, domain, opset, inputs)
            if body is None:
                raise Problem("the operator is not supported")
            self.inline(body, proto, label, inputs, scope, out, references, _defaults(proto.op_type, opset, domain))
            return
        if (domain, proto.op_type) == ("", "If") and self.decided(proto, label, inputs[0], scope, out, references):
            return
        outputs = tuple(Argument(self.unique(key), UnknownType()) if key else ABSENT for key in proto.output)
        attributes = Attributes(self.attributes(proto, scope, references), opset, inputs, outputs)
        if any(isinstance(a.type, UnknownType) for a in inputs):
            typed: tuple[Argument, ...] = outputs
        else:
            node = known(operator.make(self.unique(label, "node "), inputs, outputs, attributes).typed())
            typed = node.outputs
            if not node.absorbed:
                out.append(node)
        for key, argument in zip(proto.output, typed, strict=True):
            if not key:
                continue
            if key in scope.values:
                raise Problem(f"{key!r} is produced twice")
            if key in declared and isinstance(argument.type, TensorType):
                argument = replace(argument, type=self.declared(declared[key], argument.type))
            scope.values[key] = argument
        if typed is not outputs and not node.absorbed:
            out[-1] = replace(node, outputs=tuple(scope.values[k] if k else ABSENT for k in proto.output))

    def input(self, key: str, scope: _Scope) -> Argument:
        if not key:
            return ABSENT
        found = scope.find(key)
        if found is None:
            raise Problem(f"reads {key!r}, which nothing before it produces")
        return found

    def ordered(self, nodes: Sequence[NodeProto], scope: _Scope) -> Sequence[NodeProto]:
        """The nodes so that each comes after what it reads; the file's own order where that is one already."""
        produced = {o: i for i, n in enumerate(nodes) for o in n.output if o}
        reads = [sorted({produced[key] for key in _reads(n) if key in produced}) for n in nodes]
        if all(j < i for i, js in enumerate(reads) for j in js):
            return nodes
        users: list[list[int]] = [[] for _ in nodes]
        waiting = [len(js) for js in reads]
        for i, js in enumerate(reads):
            for j in js:
                users[j].append(i)
        ready, order = [i for i, n in enumerate(waiting) if n == 0], []
        while ready:
            i = ready.pop(0)
            order.append(i)
            for user in users[i]:
                waiting[user] -= 1
                if not waiting[user]:
                    ready.append(user)
        if len(order) < len(nodes):
            stuck = sorted(set(range(len(nodes))) - set(order))[0]
            self.problems.append(f"node {nodes[stuck].name or nodes[stuck].op_type!r}: is part of a cycle")
        return [nodes[i] for i in order]

    # -- functions ----------------------------------------------------------------------------------------------------

    def inline(
        self,
        function: FunctionProto,
        call: NodeProto,
        label: str,
        inputs: tuple[Argument, ...],
        scope: _Scope,
        out: list[Node[Any]],
        references: Mapping[str, AttributeProto],
        defaults: Mapping[str, AttributeProto] | None = None,
    ) -> None:
        """Read a function's body in place of a call to it."""
        if scope.depth >= MAX_DEPTH:
            raise Problem(f"functions call each other deeper than {MAX_DEPTH}")
        opsets = {**scope.opsets, **_opsets(function.opset_import)} if function.opset_import else scope.opsets
        inner = _Scope(None, {}, opsets, scope.depth + 1)
        for i, key in enumerate(function.input):
            inner.values[key] = inputs[i] if i < len(inputs) else ABSENT
        given = {a.name: self.resolved(a, references) for a in call.attribute}
        named = {**(defaults or {}), **{a.name: a for a in function.attribute_proto}}
        named.update({k: a for k, a in given.items() if a is not None})
        body = self.ordered(function.node, inner)
        before = len(self.problems)
        self.nodes([_prefixed(n, label) for n in body], inner, {}, out, named)
        if len(self.problems) > before:
            self.problems[before:] = [f"in {label!r} ({call.op_type}), {p}" for p in self.problems[before:]]
        for key, formal in zip(call.output, function.output, strict=False):
            found = inner.find(formal)
            if key and found is None:
                raise Problem(f"the function's body does not produce {formal!r}")
            if key and found is not None:
                scope.values[key] = found

    def decided(
        self,
        node: NodeProto,
        label: str,
        condition: Argument,
        scope: _Scope,
        out: list[Node[Any]],
        references: Mapping[str, AttributeProto],
    ) -> bool:
        """Read an If whose condition is a constant as the branch it takes. The other may not even have types that fit.

        Exporters put such an If where a model's rank decides what is to be done.
        """
        if condition.value is None:
            return False
        taken = "then_branch" if condition.value.item() else "else_branch"
        branch = self.attributes(node, scope, references).get(taken)
        if branch is None or not callable(branch):
            raise Problem(f"has no {taken}")
        graph = branch(())
        out.extend(graph.nodes)
        for key, a in zip(node.output, graph.outputs, strict=False):
            if key:
                scope.values[key] = a
        return True

    def resolved(self, a: AttributeProto, references: Mapping[str, AttributeProto]) -> AttributeProto | None:
        """An attribute, one of the enclosing function in place of a reference to it; None where that is not given."""
        if not a.ref_attr_name:
            return a
        found = references.get(a.ref_attr_name)
        if found is None:
            return None
        copy = AttributeProto()
        copy.CopyFrom(found)
        copy.name = a.name
        return copy

    # -- attributes, types, values ------------------------------------------------------------------------------------

    def attributes(
        self, node: NodeProto, scope: _Scope, references: Mapping[str, AttributeProto]
    ) -> dict[str, AttributeValue]:
        values: dict[str, AttributeValue] = {}
        for proto in node.attribute:
            a = self.resolved(proto, references)
            if a is not None:
                values[a.name] = self.attribute(a, scope, references)
        return values

    def attribute(self, a: AttributeProto, scope: _Scope, references: Mapping[str, AttributeProto]) -> AttributeValue:
        kind = a.type
        if kind == AttributeProto.INT:
            return int(a.i)
        if kind == AttributeProto.FLOAT:
            return _short(a.f)
        if kind == AttributeProto.STRING:
            return _utf8(a.s)
        if kind == AttributeProto.INTS:
            return tuple(int(v) for v in a.ints)
        if kind == AttributeProto.FLOATS:
            return tuple(_short(v) for v in a.floats)
        if kind == AttributeProto.STRINGS:
            return tuple(_utf8(v) for v in a.strings)
        if kind == AttributeProto.TENSOR:
            return self.value(a.t)
        if kind == AttributeProto.SPARSE_TENSOR:
            return self.dense(a.sparse_tensor)
        if kind == AttributeProto.TYPE_PROTO:
            return self.type(a.tp)
        if kind == AttributeProto.GRAPH:
            return self.subgraph(a.g, scope, references)
        raise Problem(f"attribute {a.name!r} has the unsupported kind {AttributeProto.AttributeType.Name(kind)}")

    def subgraph(self, proto: GraphProto, scope: _Scope, references: Mapping[str, AttributeProto]) -> GraphReader:
        body = _substituted(proto, references, self.resolved) if references else proto

        def read(inputs: Sequence[Type]) -> Graph:
            return self.graph(body, scope, inputs)

        return read

    def declared(self, info: ValueInfoProto, given: Type | None = None) -> Type:
        if not info.HasField("type") or info.type.WhichOneof("value") is None:
            if given is None:
                raise Problem(f"{info.name!r} has no type")
            return given
        if info.type.WhichOneof("value") == "tensor_type" and not info.type.tensor_type.elem_type and given is not None:
            return given
        declared = self.type(info.type)
        return declared if given is None else refine(given, declared)

    def type(self, proto: TypeProto) -> Type:
        kind = proto.WhichOneof("value")
        if kind == "tensor_type":
            t = proto.tensor_type
            if not t.HasField("shape"):
                return TensorType(dtype_of(t.elem_type))
            if len(t.shape.dim) > MAX_RANK:
                raise Problem(f"a tensor has {len(t.shape.dim)} dimensions; at most {MAX_RANK} are supported")
            return TensorType(dtype_of(t.elem_type), tuple(_dim(d) for d in t.shape.dim))
        if kind == "sequence_type":
            return SequenceType(self.type(proto.sequence_type.elem_type))
        if kind == "optional_type":
            return OptionalType(self.type(proto.optional_type.elem_type))
        if kind is None:
            return AbsentType()
        raise Problem(f"values of kind {kind} are not supported")

    def initializers(self, proto: GraphProto) -> dict[str, Value]:
        out: dict[str, Value] = {}
        for t in proto.initializer:
            try:
                out[t.name] = self.value(t)
            except Problem as problem:
                self.problems.append(f"initializer {t.name!r}: {problem}")
        for s in proto.sparse_initializer:
            try:
                out[s.values.name] = self.dense(s)
            except Problem as problem:
                self.problems.append(f"sparse initializer {s.values.name!r}: {problem}")
        return out

    def value(self, t: TensorProto) -> Value:
        """A TensorProto as a Value; its size is checked now, its bytes are fetched when needed."""
        dtype = dtype_of(t.data_type)
        shape = tuple(int(d) for d in t.dims)
        if any(d < 0 for d in shape) or len(shape) > MAX_RANK:
            raise Problem(f"the shape {shape} is impossible")
        size = prod(shape)
        if t.HasField("segment"):
            raise Problem("a tensor in segments is not supported")
        if t.data_location == TensorProto.EXTERNAL:
            return Value(dtype, shape, self.external(t, dtype.nbytes(size)))
        if dtype is dtypes.string:
            if len(t.string_data) != size:
                raise Problem(f"holds {len(t.string_data)} strings, its shape {shape} needs {size}")
            return Value(dtype, shape, Text(tuple(_utf8(s) for s in t.string_data)))
        expected = dtype.nbytes(size)
        if t.HasField("raw_data"):
            if len(t.raw_data) != expected:
                raise Problem(f"holds {len(t.raw_data)} bytes, its shape {shape} of {dtype} needs {expected}")
            return Value(dtype, shape, Stored(lambda: bytes(t.raw_data), (id(t),)) if size > 64 else Inline(t.raw_data))
        found = len(_typed_field(t, dtype)) * max(8, dtype.bits) // 8
        if found != expected:
            raise Problem(f"holds {found} bytes, its shape {shape} of {dtype} needs {expected}")
        if size > 64:
            return Value(dtype, shape, Stored(lambda: _typed_data(t, dtype), (id(t),)))
        return Value(dtype, shape, Inline(_typed_data(t, dtype)))

    def external(self, t: TensorProto, expected: int) -> Source:
        entries = {e.key: e.value for e in t.external_data}
        location = entries.get("location", "")
        if self.folder is None:
            raise Problem(f"its data lies in the file {location!r}; give the model's path, not its bytes")
        parts = re.split(r"[/\\]", location)
        if (
            not location
            or os.path.isabs(location)
            or ".." in parts
            or "\0" in location
            or re.match(r"^[A-Za-z]:", location)
        ):
            raise Problem(f"its data lies at {location!r}, which is not a path inside the model's folder")
        root = self.folder.resolve()
        path = (root / location).resolve()
        if not path.is_relative_to(root):
            raise Problem(f"its data lies at {location!r}, which leads out of the model's folder")
        if not path.is_file():
            raise Problem(f"its data file {location!r} is missing")
        try:
            offset = int(entries.get("offset", "0"))
            length = int(entries.get("length", str(expected)))
        except ValueError:
            raise Problem("its external offset or length is no number") from None
        if length != expected or offset < 0 or offset + length > path.stat().st_size:
            raise Problem(f"bytes {offset} to {offset + length} of {location!r} are not the {expected} its shape needs")

        def load() -> Buffer:
            with open(path, "rb") as f:
                f.seek(offset)
                return f.read(length)

        return Stored(load, (str(path), offset, length))

    def dense(self, s: Any) -> Value:
        """A SparseTensorProto as a dense Value."""
        values, indices = self.value(s.values), self.value(s.indices).ints()
        shape = tuple(int(d) for d in s.dims)
        if values.dtype.bits < 8 or values.dtype is dtypes.string:
            raise Problem(f"a sparse tensor of {values.dtype} is not supported")
        if any(d < 0 for d in shape) or prod(shape) > 1 << 28:
            raise Problem(f"a sparse tensor of shape {shape} is too large to be made dense")
        width, count, rank = values.dtype.bits // 8, values.size, len(shape)
        strides = [prod(shape[k + 1 :]) for k in range(rank)]
        if len(indices) == count:
            flat = list(indices)
        elif len(indices) == count * rank:
            flat = [sum(indices[k * rank + j] * strides[j] for j in range(rank)) for k in range(count)]
        else:
            raise Problem(f"a sparse tensor has {count} values and {len(indices)} indices")
        data, raw = bytearray(prod(shape) * width), bytes(values.raw())
        for k, at in enumerate(flat):
            if not 0 <= at < prod(shape):
                raise Problem(f"a sparse tensor has the index {at}, outside its shape {shape}")
            data[at * width : (at + 1) * width] = raw[k * width : (k + 1) * width]
        return Value(values.dtype, shape, Inline(bytes(data)))

    def unique(self, name: str, kind: str = "") -> str:
        """`name`, numbered where the model uses it again elsewhere (in a subgraph, or an inlined function)."""
        if kind + name not in self.taken:
            self.taken.add(kind + name)
            return name
        while True:
            self.counts[kind + name] = self.counts.get(kind + name, 1) + 1
            candidate = f"{name}_{self.counts[kind + name]}"
            if kind + candidate not in self.taken:
                self.taken.add(kind + candidate)
                return candidate


def _defaults(op: str, opset: int, domain: str) -> dict[str, AttributeProto]:
    """The attributes an operator has where a node does not give them."""
    attributes = onnx.defs.get_schema(op, opset, domain).attributes
    return {k: a.default_value for k, a in attributes.items() if a.default_value.type != AttributeProto.UNDEFINED}


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _domain_prefix(domain: str) -> str:
    return _domain(domain) + "." if _domain(domain) else ""


def _opsets(imports: Iterable[Any]) -> dict[str, int]:
    return {_domain(i.domain): int(i.version) for i in imports}


def _dim(proto: Any) -> Dim:
    kind = proto.WhichOneof("value")
    if kind == "dim_value":
        return int(proto.dim_value) if proto.dim_value >= 0 else None
    if kind == "dim_param" and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_ .+*/()-]{0,39}", proto.dim_param):
        return str(proto.dim_param)
    return None


def _utf8(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise Problem(f"the string {data[:40]!r} is not UTF-8") from None


def _short(value: float) -> float:
    """A float32 attribute as the shortest decimal that means the same float32: 0.1, not 0.10000000149011612."""
    if value != value or value in (float("inf"), float("-inf")):
        return float(value)
    for digits in range(6, 10):
        short = float(f"{value:.{digits}g}")
        if struct.pack("<f", short) == struct.pack("<f", value):
            return short
    return float(value)


def _typed_field(t: TensorProto, dtype: DType) -> Sequence[Any]:
    """The field that holds the elements of a tensor without raw data."""
    if dtype is dtypes.float32:
        return t.float_data
    if dtype is dtypes.float64:
        return t.double_data
    if dtype is dtypes.int64:
        return t.int64_data
    if dtype in (dtypes.uint64, dtypes.uint32):
        return t.uint64_data
    return t.int32_data  # the bits of 16-bit floats and of packed narrow elements too


def _typed_data(t: TensorProto, dtype: DType) -> bytes:
    """The elements of a tensor that are kept in a typed field, as packed little-endian bytes."""
    data = _typed_field(t, dtype)
    code = {"float32": "f", "float64": "d", "int64": "q", "uint64": "Q", "uint32": "I"}.get(dtype.name)
    if code is not None:
        return array(code, data).tobytes()
    width = max(1, dtype.bits // 8)
    mask = (1 << (8 * width)) - 1
    return b"".join((v & mask).to_bytes(width, "little") for v in data)


def _reads(node: NodeProto) -> set[str]:
    """The names a node reads, those its subgraphs take from outside included."""
    names = {key for key in node.input if key}
    for a in node.attribute:
        for g in ([a.g] if a.HasField("g") else []) + list(a.graphs):
            inside = {i.name for i in (*g.input, *g.initializer)} | {o for n in g.node for o in n.output}
            names |= {key for n in g.node for key in _reads(n) if key not in inside}
            names |= {o.name for o in g.output if o.name not in inside}
    return names


def _prefixed(node: NodeProto, label: str) -> NodeProto:
    """A function body's node, named after the call it is read for."""
    copy = NodeProto()
    copy.CopyFrom(node)
    copy.name = f"{label}/{node.name or node.op_type}"
    return copy


def _substituted(
    proto: GraphProto,
    references: Mapping[str, AttributeProto],
    resolved: Callable[[AttributeProto, Mapping[str, AttributeProto]], AttributeProto | None],
) -> GraphProto:
    """A subgraph of a function's body with the function's attributes put in."""
    copy = GraphProto()
    copy.CopyFrom(proto)
    for node in copy.node:
        kept = []
        for a in node.attribute:
            b = resolved(a, references)
            if b is not None:
                if b.HasField("g"):
                    whole = AttributeProto()
                    whole.CopyFrom(b)
                    whole.g.CopyFrom(_substituted(b.g, references, resolved))
                    b = whole
                kept.append(b)
        del node.attribute[:]
        node.attribute.extend(kept)
    return copy


def _check_schema(node: NodeProto, domain: str, opset: int) -> None:
    """Whether the node's inputs, outputs and attributes are ones the standard gives the operator at this opset."""
    try:
        schema = onnx.defs.get_schema(node.op_type, opset, domain)
    except onnx.defs.SchemaError:
        if (domain, node.op_type) not in REGISTRY:
            raise Problem("the operator is not supported") from None
        if not onnx.defs.has(node.op_type, domain):
            return  # not of the standard at all: the class itself says what it takes
        raise Problem(f"opset {opset} has no such operator") from None
    known = REGISTRY.get((domain, node.op_type))
    if schema.deprecated and (known is None or schema.since_version not in known.since):
        raise Problem(f"the operator does not exist any more in opset {opset}")
    if not schema.min_input <= len(node.input) <= schema.max_input:
        raise Problem(f"has {len(node.input)} inputs, expected {_between(schema.min_input, schema.max_input)}")
    if not schema.min_output <= len(node.output) <= schema.max_output:
        raise Problem(f"has {len(node.output)} outputs, expected {_between(schema.min_output, schema.max_output)}")
    for a in node.attribute:
        if a.name not in schema.attributes:
            raise Problem(f"has the attribute {a.name!r}, which opset {opset} does not know")


def _between(low: int, high: int) -> str:
    if low == high:
        return str(low)
    return f"at least {low}" if high > 1 << 20 else f"{low} to {high}"


def _schema_function(node: NodeProto, domain: str, opset: int, inputs: tuple[Argument, ...]) -> FunctionProto | None:
    """The body ONNX itself defines for an operator, or None."""
    schema: Any = onnx.defs.get_schema(node.op_type, opset, domain)  # onnx's stubs lack most of it
    body: bytes | None = None
    if schema.has_function:
        versions = [v for v in schema.function_opset_versions if v <= opset]
        if versions:
            body = schema.get_function_with_opset_version(max(versions))
    elif schema.has_context_dependent_function:
        versions = [v for v in schema.context_dependent_function_opset_versions if v <= opset]
        types = [_type_proto(a.type).SerializeToString() for a in inputs]
        if versions:
            body = schema.get_context_dependent_function_with_opset_version(
                max(versions), node.SerializeToString(), types
            )
    if not body:
        return None
    function = FunctionProto()
    function.ParseFromString(body if isinstance(body, bytes) else body.SerializeToString())
    return function


def _type_proto(t: Type) -> TypeProto:
    proto = TypeProto()
    if isinstance(t, AbsentType | UnknownType):
        return proto
    if isinstance(t, SequenceType):
        proto.sequence_type.elem_type.CopyFrom(_type_proto(t.element))
        return proto
    tensor = as_tensor(t)
    proto.tensor_type.elem_type = next(code for code, d in DTYPES.items() if d is tensor.dtype)
    if tensor.shape is not None:
        proto.tensor_type.shape.SetInParent()
        for d in tensor.shape:
            dim = proto.tensor_type.shape.dim.add()
            if isinstance(d, int):
                dim.dim_value = d
            elif isinstance(d, str):
                dim.dim_param = d
    return proto
