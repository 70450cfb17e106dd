"""Generated code is formatted as by ruff, whatever the model, and defines no name twice."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conformance.cases import node_cases
from emberlet.codegen.generation import generate, translate
from emberlet.codegen.overwriting import OverwriteError
from emberlet.errors import ModelError
from models.index import HERE, cases
from support.drawn_networks import DrawnNetwork
from support.draws import draw


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the code of a third of the node cases, others in each run, of every committed model and of drawn
    networks."""
    folder = tmp_path_factory.mktemp("sources")
    found = sorted(node_cases().items())[draw("node cases").randrange(3) :: 3]
    models: dict[str, Any] = {name: case.model for name, case in found}
    models |= {case.name.replace("/", "_"): case.model for case in cases()}
    models |= {f"drawn{seed}": DrawnNetwork(seed).model() for seed in range(60)}
    for name, model in models.items():
        try:
            written = translate(model, name)[1]
        except ModelError:
            continue  # unsupported cases are counted elsewhere
        (folder / f"{name}.py").write_text(written.source, encoding="utf-8")
    assert len(list(folder.iterdir())) > 700
    return folder


def formatted(folder: Path, *options: str) -> None:
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--no-cache", *options]
    done = subprocess.run([*command, str(folder)], capture_output=True, text=True, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stdout[-4000:]


def test_the_formatter_changes_nothing(sources: Path) -> None:
    formatted(sources, "--check", "--line-length=88")


def test_a_formatter_of_another_width_changes_the_layout_alone(sources: Path, tmp_path: Path) -> None:
    """Reformatting with wider lines and back gives the same text."""
    copies = tmp_path / "copies"
    shutil.copytree(sources, copies)
    formatted(copies, "--line-length=120")
    formatted(copies, "--line-length=88")
    changed = [p.name for p in sources.iterdir() if p.read_bytes() != (copies / p.name).read_bytes()]
    assert not changed


def test_the_linter_finds_no_mistake(sources: Path) -> None:
    """There are no undefined names, unused imports, or variables that are never read."""
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select=F,E9", "--quiet"]
    done = subprocess.run([*command, str(sources)], capture_output=True, text=True, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stdout[-4000:]


def test_another_layout_is_no_edit(tmp_path: Path) -> None:
    """A module that only a formatter changed may be overwritten; one that was edited may not."""
    path = generate(HERE / "modules" / "resnet50" / "model.onnx", tmp_path, "net").module
    written = path.read_text(encoding="utf-8")
    formatted(tmp_path, "--line-length=120")
    assert path.read_text(encoding="utf-8") != written
    generate(HERE / "modules" / "resnet50" / "model.onnx", tmp_path, "net")
    assert path.read_text(encoding="utf-8") == written
    for old, new in (("F.relu(", "F.gelu("), ("        return ", "        if x:\n            return "), ("1, ", "2, ")):
        path.write_text(written.replace(old, new), encoding="utf-8")
        with pytest.raises(OverwriteError):
            generate(HERE / "modules" / "resnet50" / "model.onnx", tmp_path, "net")
