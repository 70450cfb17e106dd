"""How the folders of the tree map to imports, and which files also run on MicroPython.

pyproject.toml is the one source: `[tool.setuptools.package-dir]` maps folders to packages, `[tool.emberlet]` says what
runs on a device.
"""

from __future__ import annotations

import os
import shutil
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from .paths import CACHE, ROOT

PYPROJECT = ROOT / "pyproject.toml"


@cache
def pyproject() -> dict[str, Any]:
    """The parsed pyproject.toml."""
    return tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))


def package_folders() -> dict[str, Path]:
    """The folder of each top-level mapping, by import name: `emberlet` -> core, `emberlet.micro` -> micro, ..."""
    return {name: ROOT / folder for name, folder in pyproject()["tool"]["setuptools"]["package-dir"].items()}


def packages() -> list[str]:
    """The import names of every folder with an `__init__.py`, sorted: what the wheel must hold."""
    return sorted(
        ".".join([name, *init.parent.relative_to(folder).parts])
        for name, folder in package_folders().items()
        for init in folder.rglob("__init__.py")
    )


def python_files() -> Iterator[tuple[Path, Path]]:
    """Pairs of (path below an import root, file in the tree) for every Python file of the distribution."""
    for name, folder in package_folders().items():
        for file in sorted(folder.rglob("*.py")):
            yield Path(*name.split(".")) / file.relative_to(folder), file


def runs_on_device(file: Path) -> bool:
    """Whether `file` (in the tree) also runs on MicroPython."""
    rules = pyproject()["tool"]["emberlet"]
    return _is_below(file, rules["device"]) and not _is_below(file, rules["host-only"])


def device_files() -> list[tuple[Path, Path]]:
    """Those of `python_files()` that also run on MicroPython."""
    return [(target, file) for target, file in python_files() if runs_on_device(file)]


def host_files() -> list[tuple[Path, Path]]:
    """Those of `python_files()` that need CPython."""
    return [(target, file) for target, file in python_files() if not runs_on_device(file)]


def device_tree() -> Path:
    """A folder for MICROPYPATH in which `import emberlet` finds the files that run on a device, and the GPU's shaders.

    Each call creates or refreshes it. Files are linked, not copied, so the next interpreter sees an edit in the tree.
    """
    shaders = [
        (Path(*name.split(".")) / file.relative_to(folder), file)
        for name, folder in package_folders().items()
        for file in folder.rglob("*.wgsl")
    ]
    return _link_tree(CACHE / "device", [*device_files(), *shaders])


def typing_tree() -> Path:
    """A folder in which a type checker finds the packages under their import names; made or refreshed by each call."""
    stubs = [
        (Path(*name.split(".")) / file.relative_to(folder), file)
        for name, folder in package_folders().items()
        for pattern in ("*.pyi", "py.typed")
        for file in folder.rglob(pattern)
    ]
    return _link_tree(CACHE / "typing", [*python_files(), *stubs])


def _is_below(file: Path, entries: list[str]) -> bool:
    return f"{file.as_posix()}/".startswith(tuple(f"{ROOT.as_posix()}/{entry}/" for entry in entries))


def _link_tree(base: Path, files: list[tuple[Path, Path]]) -> Path:
    """Make `base` contain exactly one link per (target, file); safe for concurrent processes."""
    wanted = {base / target: file for target, file in files}
    folders = {parent for link in wanted for parent in link.parents}
    for entry in _entries(base):
        if entry.is_symlink():
            if wanted.get(entry) != entry.readlink():
                entry.unlink(missing_ok=True)
        elif entry.is_dir() and entry not in folders:
            shutil.rmtree(entry, ignore_errors=True)
        elif entry.is_file():
            entry.unlink(missing_ok=True)  # a copy, if links cannot be created; created again below
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    for link, file in wanted.items():
        with suppress(FileExistsError):
            _link(link, file)
    return base


def _link(link: Path, file: Path) -> None:
    try:
        link.symlink_to(file)
    except OSError:
        if os.name != "nt":
            raise
        shutil.copyfile(file, link)  # Windows allows links only for administrators and developers


def _entries(folder: Path) -> list[Path]:
    """Everything below `folder` without following links, folders before their content."""
    found = []
    for entry in sorted(folder.iterdir()) if folder.is_dir() else ():
        found.append(entry)
        if entry.is_dir() and not entry.is_symlink():
            found += _entries(entry)
    return found
