"""Generates codegen/ops/places.py: the file in codegen/ops that defines each operator."""

from __future__ import annotations

import sys

from ..paths import ROOT
from . import keep

TABLE = ROOT / "codegen" / "ops" / "places.py"


def table() -> str:
    """The source of the file."""
    from emberlet.codegen.ops import REGISTRY

    places: dict[str, dict[str, str]] = {}
    for (domain, name), operator in sorted(REGISTRY.items()):
        places.setdefault(domain, {})[name] = operator.__module__.rpartition(".")[2]
    lines = [
        '"""Which file of this folder holds which operator: by domain. `dev.py check --fix` writes it."""',
        "",
        "PLACES: dict[str, dict[str, str]] = {",
    ]
    for domain, operators in places.items():
        lines += [
            f'    "{domain}": {{',
            *(f'        "{name}": "{file}",' for name, file in operators.items()),
            "    },",
        ]
    return "\n".join([*lines, "}", ""])


if __name__ == "__main__":
    sys.exit(keep(TABLE, table(), sys.argv[1:]))
