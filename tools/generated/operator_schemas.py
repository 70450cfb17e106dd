"""Generates codegen/reader/schemas.json: the operators' schemas from the `onnx` package."""

from __future__ import annotations

import json
import sys
from typing import Any

from ..paths import ROOT
from . import keep

TABLE = ROOT / "codegen" / "reader" / "schemas.json"


def table() -> str:
    """JSON: domain -> operator -> its versions, the oldest first; see codegen/reader/schema.py."""
    from onnx import defs

    schemas: Any = defs.get_all_schemas_with_history()  # the stubs of onnx lack most of what they have
    found: dict[str, dict[str, list[list[object]]]] = {}
    for s in sorted(schemas, key=lambda s: (s.domain, s.name, s.since_version)):
        gone = s.deprecated and not (s.has_function or s.has_context_dependent_function)
        counts = [s.min_input, s.max_input, s.min_output, s.max_output]
        version = [s.since_version, *counts, " ".join(sorted(s.attributes)), *([True] if gone else [])]
        found.setdefault(s.domain, {}).setdefault(s.name, []).append(version)
    lines = []
    for domain, operators in found.items():
        rows = [f"{json.dumps(name)}: {json.dumps(rows, separators=(',', ':'))}" for name, rows in operators.items()]
        lines.append(f"{json.dumps(domain)}: {{\n" + ",\n".join(rows) + "\n}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    sys.exit(keep(TABLE, table(), sys.argv[1:]))
