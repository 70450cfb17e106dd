"""The wheel holds what the tree holds, and works where nothing else is installed."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from tools.check import check_packages
from tools.layout import package_folders, python_files
from tools.paths import ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy: setuptools leaves its intermediate files beside what it builds."""
    copy = tmp_path_factory.mktemp("tree")
    for name in ("pyproject.toml", "README.md", "LICENSE-MIT", "LICENSE-APACHE"):
        shutil.copy(ROOT / name, copy)
    for folder in package_folders().values():
        shutil.copytree(folder, copy / folder.relative_to(ROOT), ignore=shutil.ignore_patterns("__pycache__"))
    out = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--wheel-dir", out, copy], check=True)
    (built,) = out.glob("*.whl")
    return built


def test_every_package_of_the_tree_is_named_in_pyproject() -> None:
    assert check_packages(), "run `python3 dev.py check --fix`"


def test_every_folder_with_python_files_is_a_package() -> None:
    folders = {file.parent for _, file in python_files()}
    bare = sorted(str(folder.relative_to(ROOT)) for folder in folders if not (folder / "__init__.py").exists())
    assert not bare, f"no __init__.py in {bare}: the wheel would lack these"


def test_wheel_holds_the_tree_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    expected = {
        str(PurePosixPath(*name.split("."), file.relative_to(folder)))
        for name, folder in package_folders().items()
        for file in folder.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts and file.suffix != ".md"
    }
    assert held == expected, "a package, or a kind of file in [tool.setuptools.package-data], is missing"


def test_wheel_names_its_licences(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (archive.read(n).decode() for n in archive.namelist() if n.endswith("METADATA"))
    assert "License-Expression: MIT OR Apache-2.0" in metadata
    assert "License-File: LICENSE-MIT" in metadata
    assert "License-File: LICENSE-APACHE" in metadata


def test_wheel_needs_nothing_and_its_extras_name_what_they_bring(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (archive.read(n).decode() for n in archive.namelist() if n.endswith("METADATA"))
    required = re.findall(r"^Requires-Dist: (.*)$", metadata, re.MULTILINE)
    assert all("extra ==" in line for line in required)
    assert set(re.findall(r"^Provides-Extra: (.*)$", metadata, re.MULTILINE)) == {
        "numpy",
        "store",
        "wgpu",
        "onnx",
        "micro",
        "all",
    }


def test_wheel_imports_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*pip, wheel], check=True)
    script = "import emberlet, sys; print(emberlet.__file__); assert 'numpy' not in sys.modules"
    done = subprocess.run([python, "-I", "-c", script], capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()).is_relative_to(tmp_path / "venv")
