"""Imports point toward core: which package may import which, checked in the source."""

from __future__ import annotations

import ast
from functools import cache

import pytest

from tools import imports
from tools.paths import ROOT

GROUND = "errors dtypes shapes sizes"
# room -> the rooms it may import, inside functions too. A room that is missing here may import none.
ROOMS = {
    "dtypes": "errors",
    "shapes": "errors",
    "sizes": "errors shapes",
    "reduced_shapes": "errors shapes",
    "backend": "errors shapes sizes dtypes tensor host",
    "lazy": "errors",
    "lookup": "names",
    "names": "",
    "tensor": "emberlet errors lookup host",
    "display": "dtypes errors",
    "tensor_data": f"{GROUND} backend functional host host.interface",
    "functional": f"{GROUND} backend tensor tensor_data lookup names host",
    "python_backend": f"{GROUND} backend tensor",
    "param": f"{GROUND} backend host.interface",
    "burnpack": f"{GROUND} backend host",
    "module": f"{GROUND} backend param tensor burnpack atomic_write store session host host.interface "
    "host.numpy_backend wgpu_backend",
    "session": f"{GROUND} backend tensor functional python_backend host host.numpy_backend",
    "autodiff": f"{GROUND} backend tensor lookup functional linalg module param",
    "linalg": f"{GROUND} backend tensor functional lookup",
    "fft": f"{GROUND} functional",
    "optim": f"{GROUND} lazy backend config functional module param",
    "data": f"{GROUND} lazy backend tensor functional host.data",
    "host.data": f"{GROUND} backend data batch host",
    "train": f"{GROUND} lazy backend tensor functional data autodiff optim burnpack host",
    "nn": f"{GROUND} backend tensor functional linalg param module lookup host.interface",
    "training_step": f"{GROUND} backend tensor lookup functional module param autodiff optim host.numpy_backend",
    "store": f"{GROUND} backend tensor tensor_data functional burnpack module param nn model host",
    "model": "errors burnpack module host",
    "atomic_write": "host",
    "config": "errors atomic_write",
    "host": f"{GROUND} backend tensor tensor_data names lookup functional burnpack "
    "module param python_backend host.numpy_backend host.interface",
    "host.numpy_backend": f"{GROUND} backend tensor functional host",
    "host.interface": f"{GROUND} backend tensor config functional host names module model nn param session",
    # Only the command line calls the packages built on core.
    "__main__": "host.cli",
    "host.cli": f"emberlet {GROUND} backend tensor functional param burnpack module store model host "
    "host.interface batch onnxruntime train codegen micro wgpu_backend",
    # So do the code that runs models over data sets and the replacement for onnxruntime.
    "batch": f"emberlet {GROUND} backend host host.cli host.numpy_backend codegen",
    "onnxruntime": f"emberlet {GROUND} backend functional host codegen",
    "codegen": f"{GROUND} backend tensor functional burnpack module model store nn host host.numpy_backend "
    "host.interface",
    "micro": f"{GROUND} burnpack host codegen",
    # `emberlet profile` takes a model as the other commands do; the room of a session's state lies in the GPU's memory.
    "wgpu_backend": f"{GROUND} backend tensor tensor_data functional burnpack session training_step host "
    "host.numpy_backend host.cli",
}


TESTS = ("support", "tests", "conftest")
graph = cache(imports.graph)


def test_rooms_import_only_what_they_may() -> None:
    found = imports.rooms(graph())
    wrong = {
        room: sorted(targets - set(ROOMS.get(room, "").split()))
        for room, targets in found.items()
        if targets - set(ROOMS.get(room, "").split())
    }
    assert not wrong, f"these rooms import others that the table does not allow: {wrong}"


def test_imports_do_not_run_in_circles() -> None:
    found = imports.circles(graph())
    assert not found, f"modules import each other: {found}"


@pytest.mark.parametrize("folder", ["tools", "benches", "examples", "web", "core", "codegen", "micro", "wgpu_backend"])
def test_only_tests_import_tests(folder: str) -> None:
    wrong = []
    for file in sorted((ROOT / folder).rglob("*.py")):
        if {"node_modules", "__pycache__"} & set(file.parts):
            continue
        text = file.read_text(encoding="utf-8")
        if not any(name in text for name in TESTS):
            continue
        for node in ast.walk(ast.parse(text)):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if any(name.partition(".")[0] in TESTS for name in names):
                wrong.append(str(file.relative_to(ROOT)))
    assert not wrong, f"{wrong} import the tests' helpers; put what they share into tools/"
