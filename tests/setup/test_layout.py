"""The trees that give MicroPython and the type checker the packages under their import names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import layout
from tools.paths import ROOT


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small project of the same shape."""
    (tmp_path / "pyproject.toml").write_text(
        "[tool.setuptools.package-dir]\nemberlet = 'core'\n'emberlet.micro' = 'micro'\n"
        "[tool.emberlet]\ndevice = ['core', 'micro/arena.py']\nhost-only = ['core/host']\n",
        encoding="utf-8",
    )
    for name in (
        "core/__init__.py",
        "core/nn/__init__.py",
        "core/host/__init__.py",
        "micro/arena.py",
        "micro/deploy.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"# {name}\n", encoding="utf-8")
    monkeypatch.setattr(layout, "ROOT", tmp_path)
    monkeypatch.setattr(layout, "PYPROJECT", tmp_path / "pyproject.toml")
    monkeypatch.setattr(layout, "CACHE", tmp_path / ".cache")
    layout.pyproject.cache_clear()
    yield tmp_path
    layout.pyproject.cache_clear()


def _files(folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in folder.rglob("*.py")}


def test_device_tree_leaves_out_what_needs_cpython(tree: Path) -> None:
    assert _files(layout.device_tree()) == {
        "emberlet/__init__.py",
        "emberlet/nn/__init__.py",
        "emberlet/micro/arena.py",
    }


def test_device_tree_follows_the_tree(tree: Path) -> None:
    device = layout.device_tree()
    (tree / "core/nn/__init__.py").unlink()
    (tree / "core/shapes.py").write_text("# new\n", encoding="utf-8")
    assert layout.device_tree() == device
    assert _files(device) == {"emberlet/__init__.py", "emberlet/shapes.py", "emberlet/micro/arena.py"}
    assert not (device / "emberlet/nn").exists()
    assert (device / "emberlet/shapes.py").read_text(encoding="utf-8") == "# new\n"


def test_what_pyproject_says_of_devices_exists() -> None:
    rules = layout.pyproject()["tool"]["emberlet"]
    gone = [entry for entry in rules["device"] + rules["host-only"] if not (ROOT / entry).exists()]
    assert not gone, f"pyproject.toml's [tool.emberlet] names {gone}, which are gone"


# Folders whose files are peers of one kind, each named for what it holds (docs/architecture.md).
PEERS = {
    "benches",
    "codegen/ops",
    "codegen/passes",
    "core/host/numpy_backend/compile",
    "core/nn",
    "core/python_backend",
    "micro/builder/assembly",
    "micro/builder/importer",
    "micro/builder/kernels",
    "wgpu_backend/record",
}
MOST_FILES = 20


def test_folders_stay_small_enough_to_find_things() -> None:
    counts = Counter(file.parent.relative_to(ROOT).as_posix() for file in _python_files())
    large = {folder: count for folder, count in counts.items() if count > MOST_FILES and folder not in PEERS}
    assert not large, f"group the files of {large} into packages, or add the folder to PEERS and say why"
    small = {folder for folder in PEERS if counts[folder] <= MOST_FILES}
    assert not small, f"{small} need no exception"


def _python_files() -> Iterator[Path]:
    for top in ("benches", "codegen", "core", "examples", "micro", "tools", "web", "wgpu_backend"):
        for file in (ROOT / top).rglob("*.py"):
            if not {"node_modules", "__pycache__", "dist"} & set(file.parts):
                yield file
