"""The type stubs are those that the tables of names give, and they tell a type checker what there is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from emberlet.host import stubs

from tools.layout import typing_tree
from tools.paths import ROOT


@pytest.mark.parametrize("name", stubs.FILES)
def test_a_stub_is_up_to_date(name):
    assert (stubs.CORE / name).read_text() == stubs.FILES[name](), "run python -m emberlet.host.stubs"


def test_a_type_checker_knows_functions_and_methods(tmp_path: Path):
    typing_tree()
    script = tmp_path / "user.py"
    script.write_text(
        "import emberlet\n"
        "from emberlet import functional as F\n"
        "x = emberlet.zeros((2, 3), dtype=emberlet.float32)\n"
        "reveal_type(F.relu(x) @ x.mT + 1)\n"
        "reveal_type(x.sum(axis=0, keepdims=True).shape)\n"
        "x.summ()\n"
        "F.reluu(x)\n"
    )
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), str(script)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    assert 'Revealed type is "emberlet.tensor.Tensor"' in said
    assert 'type is "tuple[int, ...]"' in said or 'type is "builtins.tuple[builtins.int, ...]"' in said
    assert '"Tensor" has no attribute "summ"' in said
    assert 'has no attribute "reluu"' in said
