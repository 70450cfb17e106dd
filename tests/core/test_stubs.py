"""The type stubs are those that the tables of names give, and they tell a type checker what there is."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from emberlet.host import module_stubs, stubs

from tools.layout import typing_tree
from tools.paths import ROOT


@pytest.mark.parametrize("name", stubs.FILES)
def test_a_stub_is_up_to_date(name):
    assert (stubs.CORE / name).read_text(encoding="utf-8") == stubs.FILES[name](), "run python -m emberlet.host.stubs"


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
        "F.reluu(x)\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), str(script)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, encoding="utf-8").stdout
    assert 'Revealed type is "emberlet.tensor.Tensor"' in said
    assert 'type is "tuple[int, ...]"' in said or 'type is "builtins.tuple[builtins.int, ...]"' in said
    assert '"Tensor" has no attribute "summ"' in said
    assert 'has no attribute "reluu"' in said


@pytest.mark.parametrize("name", module_stubs.FILES)
def test_a_stub_of_modules_is_up_to_date(name):
    assert (module_stubs.CORE / name).read_text(encoding="utf-8") == module_stubs.FILES[name](), (
        "run python3 dev.py check --fix"
    )


def test_every_public_function_has_types():
    untyped = []
    for file in stubs.CORE.rglob("*.pyi"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                arguments = [*node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
                bare = [a.arg for a in arguments if a and a.annotation is None and a.arg not in ("self", "cls")]
                if bare or node.returns is None:
                    untyped.append(f"{file.name}: {node.name} {bare}")
    assert not untyped


def test_dir_lists_the_layers():
    from emberlet import nn

    assert {"Linear", "Conv2d", "BiLstm", "Module", "Param", "Model", "causal_mask"} <= set(dir(nn))
    assert all(getattr(nn, name).__name__ for name in dir(nn))
    assert not [name for name in dir(nn) if name.startswith("_")]
    assert "packed" not in dir(nn)
