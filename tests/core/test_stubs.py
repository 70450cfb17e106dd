"""The type stubs match the tables of names and describe the whole API to a type checker."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from emberlet.host.interface import module_stubs, stubs

from tools.layout import typing_tree
from tools.paths import ROOT


@pytest.mark.parametrize("name", stubs.FILES)
def test_a_stub_is_up_to_date(name):
    assert (stubs.CORE / name).read_text(encoding="utf-8") == stubs.FILES[name](), "run dev.py check --fix"


def test_a_type_checker_knows_functions_and_methods(tmp_path: Path):
    typing_tree()
    script = tmp_path / "user.py"
    script.write_text(
        "import emberlet\n"
        "from emberlet import functional as F\n"
        "x = emberlet.zeros((2, 3), dtype=emberlet.float32)\n"
        "reveal_type(F.relu(x) @ x.mT + 1)\n"
        "reveal_type(x.sum(axis=0, keepdims=True).shape)\n"
        "from emberlet import nn\n"
        "layer = nn.Linear(2, 3)\n"
        "reveal_type(layer.compile(x)(x))\n"
        "reveal_type(nn.Gru(2, 3).compile(x, backend='numpy')(x))\n"
        "session = layer.session(4)\n"
        "reveal_type(session.rewind(1))\n"
        "reveal_type((x > 0).all().item())\n"
        "reveal_type(x.argmax().item())\n"
        "reveal_type(x.astype(emberlet.float16).item())\n"
        "reveal_type(F.astype(x, 'string').item())\n"
        "reveal_type(x.sum().item())\n"
        "session.stepp(x)\n"
        "x.summ()\n"
        "F.reluu(x)\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), str(script)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, encoding="utf-8").stdout
    assert re.search(r'user.py:4: .* "emberlet.tensor.Tensor\[Any\]"', said)
    assert 'type is "tuple[int, ...]"' in said or 'type is "builtins.tuple[builtins.int, ...]"' in said
    assert re.search(r'user.py:8: .* "emberlet.tensor.Tensor\[Any\]"', said)
    assert re.search(
        r'user.py:9: .* "(builtins\.)?tuple\[emberlet.tensor.Tensor\[Any\], emberlet.tensor.Tensor\[Any\]\]"', said
    )
    assert 'type is "emberlet.session.Session"' in said
    for line, kind in enumerate(("bool", "int", "float", "str", "Any"), 12):  # what `item` gives, by dtype
        assert re.search(rf'user.py:{line}: .* "(builtins\.)?{kind}"', said), said
    assert '"Session" has no attribute "stepp"' in said
    assert '"Tensor[Any]" has no attribute "summ"' in said
    assert 'has no attribute "reluu"' in said


@pytest.mark.parametrize("name", module_stubs.FILES)
def test_a_stub_of_modules_is_up_to_date(name):
    assert (module_stubs.CORE / name).read_text(encoding="utf-8") == module_stubs.FILES[name](), (
        "run python3 dev.py check --fix"
    )


STUBBED = ["backend", "module", "nn", "param", "session", "tensor"]


def _declared(body, where):
    """(name, the object of that name, its stub) of each function and method in a stub."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from _declared(node.body, getattr(where, node.name))
        elif isinstance(node, ast.FunctionDef) and not node.decorator_list:
            yield node.name, getattr(where, node.name, None), node


@pytest.mark.parametrize("name", STUBBED)
def test_a_stub_gives_the_parameters_that_the_code_has(name):
    module = importlib.import_module(f"emberlet.{name}")
    file = stubs.CORE / name / "__init__.pyi"
    file = file if file.exists() else stubs.CORE / f"{name}.pyi"
    differ, compared = [], 0
    for function, found, stub in _declared(ast.parse(file.read_text(encoding="utf-8")).body, module):
        if not inspect.isfunction(found):
            if found is None and function not in ("__getattr__",):
                differ.append(f"{function} is not there")
            continue
        a = stub.args
        said = [x.arg for x in a.args + a.kwonlyargs], len(a.defaults) + sum(d is not None for d in a.kw_defaults)
        parameters = inspect.signature(found).parameters.values()
        has = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        real = [p.name for p in has], sum(p.default is not p.empty for p in has)
        compared += 1
        if name == "tensor":  # its methods are the functions, whose first parameter has another name there
            said, real = (said[0][1:], said[1]), (real[0][1:], real[1])
        if said != real and not function.startswith("__"):
            differ.append(f"{function}: the stub says {said}, the code {real}")
    assert not differ
    assert compared > 3


def test_the_stub_of_backend_names_every_public_function():
    text = (stubs.CORE / "backend" / "__init__.pyi").read_text(encoding="utf-8")
    named = {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    public = set()
    for file in ("__init__.py", "registry.py"):
        body = ast.parse((stubs.CORE / "backend" / file).read_text(encoding="utf-8")).body
        public |= {n.name for n in body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")}
    # What the files have for each other, and for autodiff.
    assert public - named == {"lacks", "missing", "not_within", "has_additions", "was_added", "other"}
    assert named <= public


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


@pytest.mark.parametrize("name", ["codegen", "codegen.onnx_backend", "wgpu_backend", "micro"])
def test_dir_shows_what_is_public_and_the_docs_list_it(name):
    module = importlib.import_module(f"emberlet.{name}")
    table = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    (row,) = [line for line in table.splitlines() if line.startswith(f"| `emberlet.{name}` |")]
    assert sorted(re.findall(r"`(\w+)`", row.split("|", 2)[2])) == dir(module)
    for public in dir(module):
        assert getattr(module, public, None) or importlib.util.find_spec(f"emberlet.{name}.{public}")


STRICT = """
from collections.abc import Sequence

import emberlet
from emberlet import Tensor
from emberlet import functional as F


def network(x: Tensor, weight: Tensor, sizes: Sequence[int]) -> tuple[Tensor, list[int]]:
    y = F.conv2d(x, weight, stride=2, padding=(1, 1)).mish().softmax(axis=-1)
    values, indices = F.topk_with_indices(y, 3)
    parts: list[Tensor] = y.split(2, axis=1)
    y = y.sum(axis=(0, 1), keepdims=True) + F.relu([1.0, 2.0]) * 2
    largest: int = emberlet.iinfo("int8").max
    shape: tuple[int, ...] = F.broadcast_shapes((2, 1), (1, 3))
    return y.reshape(tuple(sizes)), [largest, *shape, *parts[0].shape, *indices.shape, *values.shape]


F.softmax(emberlet.ones((2, 3)), axis="last")
F.conv2d(emberlet.ones((1, 1, 4, 4)))
emberlet.ones((2, 3)).topk("many")
"""


def test_strict_mypy_knows_arguments_and_results(tmp_path: Path):
    """Three wrong calls are errors, and nothing else is."""
    typing_tree()
    script = tmp_path / "user.py"
    script.write_text(STRICT, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml"), str(script)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, encoding="utf-8").stdout
    errors = [line for line in said.splitlines() if "user.py" in line and ": error:" in line]
    assert len(errors) == 3, said
    assert 'Argument "axis" to "softmax"' in errors[0]
    assert 'Missing positional argument "weight"' in errors[1]
    assert 'Argument 1 to "topk"' in errors[2]


def test_an_older_python_is_told_which_it_needs(monkeypatch):
    import importlib

    from emberlet import host

    monkeypatch.setattr(sys, "version_info", (3, 10, 4, "final", 0))
    with pytest.raises(ImportError, match=r"Python 3\.11.*3\.10"):
        importlib.reload(host)
