"""Configs whose fields are the attributes of their operator (`Attributes.record`): the defaults are ONNX's own."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from emberlet.codegen.ir.graph import Node
from emberlet.codegen.ops import REGISTRY
from emberlet.codegen.ops.attributes import Attributes
from onnx.defs import OpSchema, get_all_schemas_with_history
from support.rows import every

KINDS = OpSchema.AttrType
REQUIRED: dict[Any, Any] = {KINDS.INT: 1, KINDS.FLOAT: 1.0, KINDS.STRING: "a", KINDS.INTS: (1,), KINDS.FLOATS: (1.0,)}


def _declared(schema: OpSchema) -> bool:
    kind = REGISTRY.get((schema.domain, schema.name))
    return kind is not None and kind.read.__func__ is Node.read.__func__  # type: ignore[attr-defined]


def _read(schema: OpSchema, given: dict[str, Any]) -> dict[str, Any]:
    kind = REGISTRY[schema.domain, schema.name]
    return vars(kind.read(Attributes(given, schema.since_version, (), ())))


def _value(attribute: Any) -> Any:
    found = onnx.helper.get_attribute_value(attribute)
    return found.decode() if isinstance(found, bytes) else tuple(found) if isinstance(found, list) else found


SCHEMAS = [s for s in get_all_schemas_with_history() if _declared(s)]


@every("schema", SCHEMAS)
def test_a_missing_attribute_has_the_default_of_the_schema(schema: OpSchema) -> None:
    needed = {name: REQUIRED[a.type] for name, a in schema.attributes.items() if a.required}
    given = {name: _value(a.default_value) for name, a in schema.attributes.items() if a.default_value.type}
    bare, full = _read(schema, needed), _read(schema, {**needed, **given})
    assert bare == {k: pytest.approx(v, rel=1e-6) if isinstance(v, float) else v for k, v in full.items()}


def test_the_schemas_are_those_of_many_operators() -> None:
    assert len({s.name for s in SCHEMAS}) > 15
