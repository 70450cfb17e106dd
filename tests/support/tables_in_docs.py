"""Tables in docs that a test computes: it checks them, or with EMBERLET_WRITE_DOCS=1 writes them anew."""

from __future__ import annotations

import os
from pathlib import Path


def shows(document: Path, begin: str, table: str, end: str) -> None:
    """Fails unless `table` is what stands between the lines `begin` and `end` of a document."""
    text = document.read_text(encoding="utf-8")
    before, rest = text.split(begin)
    current = before + begin + "\n" + table + end + rest.split(end)[1]
    if os.environ.get("EMBERLET_WRITE_DOCS"):
        document.write_text(current, encoding="utf-8")
    else:
        assert text == current, f"docs/{document.name} is stale: run this file with EMBERLET_WRITE_DOCS=1"
