"""What ONNX's own schemas say of operators: what a node may have, and the functions some are defined as."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import onnx
from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto

from ..ir.problem import Problem
from ..ops import REGISTRY


def defaults(op: str, opset: int, domain: str) -> dict[str, AttributeProto]:
    """The attributes an operator has where a node does not give them."""
    attributes = onnx.defs.get_schema(op, opset, domain).attributes
    return {k: a.default_value for k, a in attributes.items() if a.default_value.type != AttributeProto.UNDEFINED}


def domain_of(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def domain_prefix(domain: str) -> str:
    return domain_of(domain) + "." if domain_of(domain) else ""


def opsets_of(imports: Iterable[Any]) -> dict[str, int]:
    return {domain_of(i.domain): int(i.version) for i in imports}


def prefixed(node: NodeProto, label: str) -> NodeProto:
    """A function body's node, named after the call it is read for."""
    copy = NodeProto()
    copy.CopyFrom(node)
    copy.name = f"{label}/{node.name or node.op_type}"
    return copy


def substituted(
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
                    whole.g.CopyFrom(substituted(b.g, references, resolved))
                    b = whole
                kept.append(b)
        del node.attribute[:]
        node.attribute.extend(kept)
    return copy


def check_schema(node: NodeProto, domain: str, opset: int) -> None:
    """Whether the node's inputs, outputs and attributes are ones the standard gives the operator at this opset."""
    try:
        schema = onnx.defs.get_schema(node.op_type, opset, domain)
    except onnx.defs.SchemaError:
        if (domain, node.op_type) not in REGISTRY:
            raise Problem("the operator is not supported") from None
        if not onnx.defs.has(node.op_type, domain):
            return  # not of the standard at all: the class itself says what it takes
        raise Problem(f"opset {opset} has no such operator") from None
    defined: Any = schema  # onnx's stubs lack these two
    if schema.deprecated and not (defined.has_function or defined.has_context_dependent_function):
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


def schema_function(node: NodeProto, domain: str, opset: int) -> FunctionProto | None:
    """The body that ONNX itself defines for an operator, or None.

    Bodies that depend on the node are left alone: ONNX's own code ends the process where such a node is malformed.
    """
    schema: Any = onnx.defs.get_schema(node.op_type, opset, domain)  # onnx's stubs lack most of it
    versions = [v for v in schema.function_opset_versions if v <= opset] if schema.has_function else []
    body = schema.get_function_with_opset_version(max(versions)) if versions else None
    if not body:
        return None
    function = FunctionProto()
    function.ParseFromString(body if isinstance(body, bytes) else body.SerializeToString())
    return function
