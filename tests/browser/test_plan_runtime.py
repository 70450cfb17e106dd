"""The modules that run a plan under MicroPython in a tab are shipped with every module that they import."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

import packages


def imported(name: str) -> set[str]:
    """The modules of emberlet that a module imports when it is imported itself."""
    spec = find_spec(name)
    assert spec is not None and spec.origin, name
    package = name if spec.submodule_search_locations else name.rpartition(".")[0]
    found = set()
    for node in ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.ImportFrom):
            continue
        outer = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        base = ".".join([*outer, *([node.module] if node.module else [])])
        if base.split(".")[0] == "emberlet":
            found |= {base, *(f"{base}.{alias.name}" for alias in node.names if is_module(f"{base}.{alias.name}"))}
    return found


def is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def test_every_module_of_the_plan_runtime_finds_what_it_imports() -> None:
    shipped = {
        package if name == "__init__" else f"{package}.{name}"
        for package, names in packages._PLAN_RUNTIME.items()
        for name in names.split()
    }
    missing = {name: sorted(imported(name) - shipped) for name in sorted(shipped) if imported(name) - shipped}
    assert missing == {}
