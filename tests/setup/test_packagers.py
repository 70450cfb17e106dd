"""Programs packaged by PyInstaller and zipapp run the digits on every backend."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipapp
import zipfile
from pathlib import Path

import pytest
from emberlet import codegen

from tools import components
from tools.layout import package_folders
from tools.paths import ROOT

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
PROGRAM = """\
import sys

import emberlet
from digits import Digits

for backend in sys.argv[1:]:
    model = Digits.default(backend)
    image = emberlet.ones((1, 1, 8, 8), backend=backend)
    print(backend, model(image).argmax(1).item(), flush=True)
"""
BACKENDS = ["python", "numpy", *(["wgpu"] if components.get("gpu-driver").find() else [])]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a program: __main__.py, the generated module and its weights."""
    folder = tmp_path_factory.mktemp("program")
    codegen.generate(DIGITS, folder)
    (folder / "__main__.py").write_text(PROGRAM, encoding="utf-8")
    return folder


def answers(*command: object, where: Path) -> list[str]:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, cwd=where, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout.splitlines()


def test_a_zipapp_runs_on_every_backend(program: Path, wheel: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(program, tree)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tree)
    packed = tmp_path / "digits.pyz"
    zipapp.create_archive(tree, packed)
    shutil.rmtree(tree)
    said = answers(sys.executable, packed, *BACKENDS, where=tmp_path)
    assert len({line.split()[1] for line in said}) == 1
    assert [line.split()[0] for line in said] == BACKENDS


def test_an_editable_install_is_a_folder_that_type_checkers_read(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE-MIT", "LICENSE-APACHE"):
        shutil.copy(ROOT / name, tree)
    for folder in package_folders().values():
        shutil.copytree(folder, tree / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    # Otherwise pip would take the environment's own emberlet away.
    subprocess.run([*pip, "--ignore-installed", "--prefix", tmp_path / "prefix", "--editable", tree], check=True)
    (path,) = (tmp_path / "prefix").rglob("__editable__*.pth")
    site = Path(path.read_text(encoding="utf-8").strip())
    assert (site / "emberlet" / "py.typed").exists()
    assert (site / "emberlet" / "codegen" / "__init__.py").resolve() == tree / "codegen" / "__init__.py"
    for folder in ("codegen", "core/nn"):  # files that are added later are found
        (tree / folder / "added.py").touch()
        assert (site / "emberlet" / folder.removeprefix("core/") / "added.py").exists()


def test_a_program_of_pyinstaller_runs_on_every_backend(program: Path, wheel: Path, tmp_path: Path) -> None:
    pytest.importorskip("PyInstaller")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--target", tmp_path / "site", wheel], check=True)
    # The site comes before the editable install, which PyInstaller does not follow, and brings the hook's entry point.
    build = "import sys; sys.path.insert(0, sys.argv.pop(1))\nfrom PyInstaller.__main__ import run; run()"
    command = [sys.executable, "-c", build, tmp_path / "site", "--log-level=ERROR", "--noconfirm", "--name=digits"]
    command += ["--add-data", f"{program / 'digits.bpk'}:.", "--paths", program, "--paths", tmp_path / "site"]
    command += ["--exclude-module", "PIL", "--exclude-module", "onnx", program / "__main__.py"]
    environment = {"PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run(
        [str(c) for c in command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    packages = {path.name for path in (tmp_path / "dist" / "digits" / "_internal").iterdir()}
    assert not packages & {"llvmlite", "pandas", "pyarrow", "ray"}  # the program imports none of them
    said = answers(tmp_path / "dist" / "digits" / "digits", *BACKENDS, where=tmp_path)
    assert len({line.split()[1] for line in said}) == 1
    assert [line.split()[0] for line in said] == BACKENDS
