"""Generated code is as ruff's formatter would leave it, whatever the model, and names nothing twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conformance.cases import node_cases
from emberlet.codegen.generation import translate
from emberlet.errors import ModelError
from models.index import cases


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the code of every node case and of every committed model."""
    folder = tmp_path_factory.mktemp("sources")
    models = {name: case.model for name, case in node_cases().items()}
    models |= {case.name.replace("/", "_"): case.model for case in cases()}
    for name, model in models.items():
        try:
            written = translate(model, name)[1]
        except ModelError:
            continue  # what is not supported is counted elsewhere
        (folder / f"{name}.py").write_text(written.source, encoding="utf-8")
    assert len(list(folder.iterdir())) > 1800
    return folder


@pytest.mark.parametrize("width", [88, 120])
def test_the_formatter_changes_nothing(sources: Path, width: int) -> None:
    command = [sys.executable, "-m", "ruff", "format", "--check", "--isolated", "--no-cache", f"--line-length={width}"]
    done = subprocess.run([*command, str(sources)], capture_output=True, text=True, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stdout[-4000:]


def test_the_linter_finds_no_mistake(sources: Path) -> None:
    """Nothing undefined, unused imports, no variable that is never read."""
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select=F,E9", "--quiet"]
    done = subprocess.run([*command, str(sources)], capture_output=True, text=True, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stdout[-4000:]
