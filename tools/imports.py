"""The import graph of the distribution, read from the source, including imports inside functions.

python3 -m tools.imports      the cycles, and the imports of each package
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from .layout import python_files

Graph = dict[str, set[str]]


@cache
def modules() -> dict[str, Path]:
    """The file of every module of the distribution, by import name."""
    found = {}
    for target, file in python_files():
        parts = target.with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def graph() -> Graph:
    """module -> the modules it imports.

    Imports inside functions of a package's `__init__` of the package's own files are left out, because they only load
    parts of the package on first use, to save memory on a microcontroller. So are imports for the type checker only.
    """
    return {module: set(_imports(module)) - {module} for module in modules()}


def _imports(module: str) -> Iterator[str]:
    file = modules()[module]
    is_package = file.name == "__init__.py"
    package = module if is_package else module.rpartition(".")[0]
    for node, inside in _statements(ast.parse(file.read_text(encoding="utf-8")), False):
        for target in _targets(node, package):
            if not (inside and is_package and target.startswith(module + ".")):
                yield target


def _statements(tree: ast.AST, inside: bool) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Every import, and whether it is inside a function."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, inside
        elif not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)):
            yield from _statements(node, inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _targets(node: ast.Import | ast.ImportFrom, package: str) -> Iterator[str]:
    known = modules()
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in known)
        return
    above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
    base = ".".join([*above, *([node.module] if node.module else [])])
    for alias in node.names:
        if f"{base}.{alias.name}" in known:
            yield f"{base}.{alias.name}"
        elif base in known:
            yield base


def circles(imports: Graph) -> list[list[str]]:
    """The cycles of imports: strongly connected groups of modules, each sorted (Tarjan 1972)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def walk(module: str) -> None:
        order[module] = low[module] = len(order)
        stack.append(module)
        for other in imports[module]:
            if other not in order:
                walk(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], order[other])
        if low[module] == order[module]:
            at = stack.index(module)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for module in imports:
        if module not in order:
            walk(module)
    return sorted(found)


def room(module: str) -> str:
    """The part of the distribution a module belongs to: its first folder or file below emberlet; within `host`, the
    larger folders."""
    parts = module.split(".")[1:]
    if not parts:
        return "emberlet"
    if parts[0] == "host" and len(parts) > 1:
        if parts[1] in ("cli", "data", "interface", "numpy_backend"):
            return ".".join(parts[:2])
    return parts[0]


def rooms(imports: Graph) -> Graph:
    """room -> the other rooms it imports."""
    found: Graph = {}
    for module, targets in imports.items():
        found.setdefault(room(module), set()).update(room(target) for target in targets)
    return {name: targets - {name} for name, targets in found.items()}


if __name__ == "__main__":
    everything = graph()
    for group in circles(everything):
        print("circle:", " ".join(group))
    for name, targets in sorted(rooms(everything).items()):
        print(f"{name}: {' '.join(sorted(targets))}")
