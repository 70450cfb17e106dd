"""No file of the GPU backend imports, directly or through others, a file that imports it."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tools.paths import ROOT


def imports(folder: Path) -> dict[str, set[str]]:
    """The files of `folder` that each of its files imports, also those that it imports inside of functions."""
    files = {str(f.relative_to(folder.parent).with_suffix("")): f for f in folder.rglob("*.py")}
    found: dict[str, set[str]] = {name: set() for name in files}
    for name, file in files.items():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom) or not node.level:
                continue
            base = Path(*Path(name).parts[: -node.level], *(node.module or "").split("."))
            for alias in node.names:
                if str(base / alias.name) in files:
                    found[name].add(str(base / alias.name))
                elif str(base) in files:
                    found[name].add(str(base))
    return found


@pytest.mark.parametrize("folder", ["wgpu_backend"])
def test_no_file_imports_in_a_circle(folder: str) -> None:
    graph = imports(ROOT / folder)
    assert sum(map(len, graph.values())) > 50  # the walk finds imports
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))
