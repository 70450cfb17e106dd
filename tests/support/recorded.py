"""Recorded texts, in files of sections. `UPDATE_SNAPSHOTS=1 pytest FILE` records them again, for review."""

from __future__ import annotations

import fcntl
import os
from functools import cache
from pathlib import Path

HEAD = "## "


def recording() -> bool:
    return bool(os.environ.get("UPDATE_SNAPSHOTS"))


@cache
def sections(file: Path) -> dict[str, str]:
    """Title -> text, of a file whose titles begin with "## "."""
    found: dict[str, list[str]] = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        if line.startswith(HEAD):
            found[line.removeprefix(HEAD)] = []
        elif line:
            found[list(found)[-1]].append(line)
    return {title: "\n".join(lines) for title, lines in found.items()}


def assert_recorded(file: Path, title: str, text: str) -> None:
    """Assert that a section has this text; with UPDATE_SNAPSHOTS in the environment, record it."""
    if recording():
        with file.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            sections.cache_clear()
            found = {**sections(file), title: text}
            file.write_text("\n".join(f"{HEAD}{name}\n{found[name]}\n" for name in sorted(found)), encoding="utf-8")
        file.with_suffix(".lock").unlink(missing_ok=True)
        sections.cache_clear()
    assert text.splitlines() == sections(file).get(title, "").splitlines(), title
