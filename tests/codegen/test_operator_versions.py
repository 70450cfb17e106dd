"""The opset versions at which operators changed, compared with ONNX's schemas."""

from __future__ import annotations

import onnx.defs
from emberlet.codegen.ops import OPERATORS

SCHEMAS = sorted(onnx.defs.get_all_schemas_with_history(), key=lambda schema: schema.since_version)


def test_operators_changed_at_the_versions_of_onnxs_schemas() -> None:
    """A last version that only deprecates the operator may be missing."""
    wrong = []
    for kind in OPERATORS:
        schemas = [s for s in SCHEMAS if (s.domain, s.name) == (kind.domain, kind.op())]
        versions = [s.since_version for s in schemas]
        alive = [s.since_version for s in schemas if not s.deprecated]
        if schemas and list(kind.since) not in (versions, alive):
            wrong.append((kind.op(), kind.since, versions))
    assert wrong == []


def test_operators_that_onnx_does_not_define_never_changed() -> None:
    names = {(schema.domain, schema.name) for schema in SCHEMAS}
    own = [kind for kind in OPERATORS if kind.domain in ("", "emberlet") and (kind.domain, kind.op()) not in names]
    assert {kind.since for kind in own} == {(1,)}
