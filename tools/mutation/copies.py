"""A copy of the tree in which bugs are seeded and tests run; the original files are never changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

from .bugs import Bug

LINKED = (".cache/micropython", ".cache/mpy-cross", "web/node_modules")


class Copy:
    """The files that git knows or would add, with links to what is installed."""

    def __init__(self, root: Path, folder: Path, packages: dict[str, Path]) -> None:
        self.root, self.folder = root, folder
        shutil.rmtree(folder, ignore_errors=True)
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root,
            capture_output=True,
            check=True,
        ).stdout
        for name in listed.decode().split("\0"):
            if name and (root / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, folder / name)
        for name in LINKED:
            if (root / name).exists():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).symlink_to(root / name)
        shared = folder.parent / "shared"
        if (root.parent / "shared").exists() and not shared.is_symlink():
            shared.symlink_to(root.parent / "shared")
        link_imports(folder, root, packages)
        self.mtime = time.time_ns()
        self.sound = b""  # the original content of the file with the bug

    def seed(self, bug: Bug) -> None:
        file = self.folder / bug.file.relative_to(self.root)
        self.sound = file.read_bytes()
        file.write_bytes(bug.apply(self.sound))
        self._touch(file)

    def mend(self, bug: Bug) -> None:
        file = self.folder / bug.file.relative_to(self.root)
        file.write_bytes(self.sound)  # the person's own file may have changed since
        self._touch(file)

    def _touch(self, file: Path) -> None:
        """Give each mutant a distinct timestamp, because Python reuses bytecode if a file's size and second are
        unchanged."""
        self.mtime += 2_000_000_000
        os.utime(file, ns=(self.mtime, self.mtime))


def link_imports(folder: Path, root: Path, packages: dict[str, Path]) -> None:
    """Make .cache/imports in a copy of the tree `root`, for PYTHONPATH: it comes before an editable installation."""
    for name, source in packages.items():
        package = folder / ".cache" / "imports" / Path(*name.split("."))
        package.mkdir(parents=True, exist_ok=True)
        for entry in (folder / source.relative_to(root)).iterdir():
            if entry.name != "__pycache__":
                (package / entry.name).symlink_to(entry)
