"""The wheel contains the tree's files and works where nothing else is installed."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from tools.check import check_packages
from tools.layout import package_folders, python_files
from tools.paths import ROOT, python_of


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


def test_wheel_names_its_licenses(wheel: Path) -> None:
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
        "wgpu",
        "wasm",
        "native",
        "onnx",
        "micro",
        "tflite",
        "train",
        "ray",
        "all",
    }


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that holds the wheel and nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    python = python_of(folder / "venv")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*pip, wheel], check=True)
    return python


def test_wheel_imports_in_an_empty_environment(installed: Path) -> None:
    script = "import emberlet, sys; print(emberlet.__file__); assert 'numpy' not in sys.modules"
    done = subprocess.run([installed, "-I", "-c", script], capture_output=True, text=True, check=True, encoding="utf-8")
    assert Path(done.stdout.strip()).is_relative_to(installed.parent.parent)


PROGRAM = """import emberlet
from emberlet import Param, Tensor, nn
from emberlet import functional as F
from emberlet.nn import Model, Module


class Block(Module):
    def __init__(self, width: int) -> None:
        self.linear = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.scale = Param.zeros((width,))

    def forward(self, x: Tensor, gain: float = 1.0) -> Tensor:
        return F.relu(self.norm(self.linear(x))) * self.scale.val() * gain


class Net(Model):
    def __init__(self) -> None:
        self.blocks = [Block(4) for _ in range(2)]
        self.lstm = nn.Lstm(4, 8)

    def forward(self, x: Tensor) -> tuple[Tensor, nn.LstmState]:
        for block in self.blocks:
            x = block(x, gain=2.0)
        return self.lstm(x)


"""
USES = """
y, state = net(emberlet.zeros((1, 2, 4)))
reveal_type(y)
reveal_type(state.cell)
reveal_type(net.blocks[0].linear.weight.val())
reveal_type(net.blocks[0].linear.bias)
reveal_type(Net.from_file("net").to("numpy"))
reveal_type([p.shape for p in net.params()])
net(3)
nn.Linear("a", 2)
nn.Linnear(1, 2)
"""
# line of USES -> what the type checker says of it
SAID = {
    "reveal_type(y)": '"emberlet.tensor.Tensor[Any]"',
    "reveal_type(state.cell)": '"emberlet.tensor.Tensor[Any]"',
    "reveal_type(net.blocks[0].linear.weight.val())": '"emberlet.tensor.Tensor[Any]"',
    "reveal_type(net.blocks[0].linear.bias)": '"emberlet.param.Param | None"',
    'reveal_type(Net.from_file("net").to("numpy"))': 'Net"',
    "reveal_type([p.shape for p in net.params()])": "tuple[",
    "net(3)": 'incompatible type "int"; expected "Tensor[Any]"',
    'nn.Linear("a", 2)': 'incompatible type "str"; expected "int"',
    "nn.Linnear(1, 2)": "Module has no attribute",
}


def test_a_user_of_the_wheel_gets_types(installed: Path, tmp_path: Path) -> None:
    """Under mypy --strict: user-defined modules, layers, functions, models."""
    (tmp_path / "user.py").write_text(PROGRAM + "net = Net()" + USES, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(installed), "user.py"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, encoding="utf-8").stdout
    lines = (tmp_path / "user.py").read_text(encoding="utf-8").splitlines()
    found = {int(number): text for number, text in re.findall(r"^user\.py:(\d+): (.*)$", said, re.MULTILINE)}
    assert sorted(lines[number - 1] for number in found) == sorted(SAID), said
    assert all(SAID[lines[number - 1]] in text for number, text in found.items()), said
