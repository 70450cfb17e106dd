"""A file that is written by a tool and committed: `python3 dev.py check` compares, `check --fix` writes."""

from __future__ import annotations

from pathlib import Path

from ..paths import ROOT


def keep(path: Path, wanted: str, arguments: list[str]) -> int:
    """Returns 0 if the file's text is `wanted`, or was updated with `--fix`; else prints that it is out of date and
    returns 1."""
    if path.is_file() and path.read_text(encoding="utf-8") == wanted:
        return 0
    if "--fix" in arguments:
        path.write_text(wanted, encoding="utf-8", newline="\n")
        return 0
    print(f"{path.relative_to(ROOT)} is out of date; run `python3 dev.py check --fix`")
    return 1
