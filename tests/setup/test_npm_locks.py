"""The lock files of npm's packages hold all that `npm ci` looks for: it installs nothing where a package is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("folder", ["web", "benches/web"])
def test_each_dependency_of_a_locked_package_is_locked(folder: str) -> None:
    packages = _read(folder, "package-lock")["packages"]
    missing = [
        f"{where or folder}: {name}"
        for where, package in packages.items()
        for kind in ("dependencies", "devDependencies", "optionalDependencies")
        for name in package.get(kind, {})
        if not any(f"{above}node_modules/{name}" in packages for above in _above(where))
    ]
    assert not missing


@pytest.mark.parametrize("folder", ["web", "benches/web"])
def test_the_lock_file_is_of_these_requirements(folder: str) -> None:
    wanted, locked = _read(folder, "package"), _read(folder, "package-lock")["packages"][""]
    for kind in ("dependencies", "devDependencies"):
        assert locked.get(kind) == wanted.get(kind)


def _read(folder: str, name: str) -> Any:
    return json.loads((ROOT / folder / f"{name}.json").read_text(encoding="utf-8"))


def _above(where: str) -> list[str]:
    """The folders in which Node looks for what a package needs."""
    parts = where.split("/node_modules/") if where else []
    return ["/node_modules/".join(parts[:n]) + "/" for n in range(len(parts), 0, -1)] + [""]
