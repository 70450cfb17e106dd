"""The table of docs/contrib-operators.md, written from the classes of codegen/ops: `python3 dev.py check --fix`."""

from __future__ import annotations

import sys

from ..paths import ROOT
from . import keep

PAGE = ROOT / "docs" / "contrib-operators.md"
BEGIN, END = "<!-- operators: begin (written by dev.py check --fix) -->\n", "<!-- operators: end -->"


def table() -> str:
    """One row per operator outside the standard: its name, and the first sentence of its class's docstring."""
    from emberlet.codegen.ops import REGISTRY

    rows = ["| operator | what it computes |", "|---|---|"]
    for domain, name in sorted(REGISTRY):
        if domain == "com.microsoft":
            said = " ".join((REGISTRY[domain, name].__doc__ or "").split("\n\n")[0].split())
            said = said.rstrip(".").replace("|", "\\|") or "As the standard's"
            rows.append(f"| {name} | {said} |")
    return "\n".join(rows) + "\n"


def page() -> str:
    """The page with its table as it should be."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    return before + BEGIN + table() + END + rest.split(END, 1)[1]


if __name__ == "__main__":
    sys.exit(keep(PAGE, page(), sys.argv[1:]))
