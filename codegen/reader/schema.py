"""ONNX's schemas: the inputs, outputs and attributes that each operator may have."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from ..ir.problem import Problem
from ..ops import REGISTRY
from ..protobuf import AttributeProto, GraphProto, NodeProto


class Schema(NamedTuple):
    """One version of an operator, as onnx.defs describes it."""

    since: int
    min_inputs: int
    max_inputs: int
    min_outputs: int
    max_outputs: int
    attributes: str  # names, a space between them
    gone: bool = False  # deprecated without a replacement


@cache
def schemas() -> dict[str, dict[str, tuple[Schema, ...]]]:
    """Domain -> operator -> its versions, the oldest first. `dev.py check --fix` writes the table from onnx.defs."""
    # Read by the module's loader, which also reads archives; importlib.resources would import 15 modules.
    read: Callable[[str], bytes] = __spec__.loader.get_data  # type: ignore[union-attr]
    table = json.loads(read(os.path.join(os.path.dirname(__file__), "schemas.json")))
    return {
        domain: {name: tuple(Schema(*row) for row in rows) for name, rows in operators.items()}
        for domain, operators in table.items()
    }


def domain_of(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def domain_prefix(domain: str) -> str:
    return domain_of(domain) + "." if domain_of(domain) else ""


def opsets_of(imports: Iterable[Any]) -> dict[str, int]:
    return {domain_of(i.domain): int(i.version) for i in imports}


def prefixed(node: NodeProto, label: str) -> NodeProto:
    """A node of a function's body, with names prefixed by the call."""
    copy = type(node)()
    copy.CopyFrom(node)
    copy.name = f"{label}/{node.name or node.op_type}"
    return copy


def substituted(
    proto: GraphProto,
    references: Mapping[str, AttributeProto],
    resolved: Callable[[AttributeProto, Mapping[str, AttributeProto]], AttributeProto | None],
) -> GraphProto:
    """A subgraph of a function's body with the function's attributes substituted."""
    copy = type(proto)()
    copy.CopyFrom(proto)
    for node in copy.node:
        kept = []
        for a in node.attribute:
            b = resolved(a, references)
            if b is not None:
                if b.HasField("g"):
                    whole = type(b)()
                    whole.CopyFrom(b)
                    whole.g.CopyFrom(substituted(b.g, references, resolved))
                    b = whole
                kept.append(b)
        del node.attribute[:]
        node.attribute.extend(kept)
    return copy


def check_schema(node: NodeProto, domain: str, opset: int) -> None:
    """Check that the standard allows the node's inputs, outputs and attributes at this opset. Raises Problem."""
    versions = schemas().get(domain, {}).get(node.op_type, ())
    schema = next((s for s in reversed(versions) if s.since <= opset), None)
    if schema is None:
        if (domain, node.op_type) not in REGISTRY:
            raise Problem("the operator is not supported")
        if not versions:
            return  # not in the standard: the class itself checks them
        raise Problem(f"opset {opset} has no such operator")
    if schema.gone:
        raise Problem(f"the operator does not exist any more in opset {opset}")
    if not schema.min_inputs <= len(node.input) <= schema.max_inputs:
        raise Problem(f"has {len(node.input)} inputs, expected {_between(schema.min_inputs, schema.max_inputs)}")
    if not schema.min_outputs <= len(node.output) <= schema.max_outputs:
        raise Problem(f"has {len(node.output)} outputs, expected {_between(schema.min_outputs, schema.max_outputs)}")
    known = schema.attributes.split()
    for a in node.attribute:
        if a.name not in known:
            raise Problem(f"has the attribute {a.name!r}, which opset {opset} does not know")


def _between(low: int, high: int) -> str:
    if low == high:
        return str(low)
    return f"at least {low}" if high > 1 << 20 else f"{low} to {high}"
