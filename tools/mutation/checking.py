"""What `dev.py check` finds wrong with a bug: types, names, and generated files that no longer match.

`python -m tools.mutation.checking FILE NAME...`, in a copy of the tree, runs the named checks up to the first that
fails and prints its name and first line. ruff's rules about spelling and layout are left out, because `not (a in b)` or
`if False:` would fail them whatever the code does.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .bugs import Bug
    from .copies import Copy

NAMES = ("mypy", "ruff", "generated")
RULES = "--select=F,B"  # undefined and unused names, and mistakes
SECONDS = 300  # a check that takes so long has caught the bug


class Checks:
    """The checks of a copy of the tree; none where the tree has no tools/check.py."""

    def __init__(self, copy: Copy) -> None:
        self.copy = copy
        self.names = [name for name in NAMES if (copy.folder / "tools" / "check.py").is_file()]
        # Those that fail without a bug say nothing about one.
        self.names = [name for name in self.names if not self._said("dev.py", [name])]

    def caught(self, bug: Bug) -> str:
        """The check that finds the bug and its first complaint; empty if none does."""
        if not self.names:
            return ""
        self.copy.seed(bug)
        try:
            return self._said(bug.file.relative_to(self.copy.root).as_posix(), self.names)
        finally:
            self.copy.mend(bug)

    def _said(self, file: str, names: list[str]) -> str:
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.copy.folder / ".cache" / "imports"),
            # Beside the copy, so that the next run's copy starts with the types that are known.
            "MYPY_CACHE_DIR": str(self.copy.folder.with_name(f"mypy-{self.copy.folder.name}")),
        }
        try:
            done = subprocess.run(
                [sys.executable, "-m", __name__, file, *names],
                cwd=self.copy.folder,
                env=environment,
                capture_output=True,
                text=True,
                encoding="utf-8",
                timeout=SECONDS,
            )
        except subprocess.TimeoutExpired:
            return f"dev.py check (more than {SECONDS} s)"
        return (done.stdout.strip() or "dev.py check") if done.returncode else ""


def complaint(file: str, names: list[str]) -> str:
    """The first of the checks that fails and the first line it prints."""
    from .. import check

    runs = {
        "mypy": check.type_check,
        "ruff": lambda: check.tool("ruff", ["ruff", "check", "--quiet", "--output-format=concise", RULES, file]),
        "generated": lambda: check.check_written(),
    }
    for name in names:
        with redirect_stdout(io.StringIO()) as said:
            fine = runs[name]()
        if not fine:
            lines = [line.strip() for line in said.getvalue().splitlines() if line.strip().rstrip(":") != name]
            return f"{name}: {lines[0] if lines else 'it fails'}"
    return ""


if __name__ == "__main__":
    found = complaint(sys.argv[1], sys.argv[2:])
    print(found)
    raise SystemExit(int(bool(found)))
