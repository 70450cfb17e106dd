"""dev.py mutate: which bugs are seeded, and which of them the tests of a small project catch."""

from __future__ import annotations

import ast
import os
import subprocess
from pathlib import Path

import pytest

from tools.layout import package_folders
from tools.mutation import runner
from tools.mutation.bugs import bugs_of, compiles
from tools.mutation.choosing import Choice, batches
from tools.paths import ROOT
from tools.steps import StepError

SOURCE = '''"""Adds; nothing here is 1 < 2."""


def clamp(x: int, high: int) -> int:
    if x > high:
        return high
    return x


def untested(a, b):
    return a - b
'''
TESTS = """from scratch.clamp import clamp


def test_clamp():
    assert (clamp(1, 5), clamp(7, 5)) == (1, 5)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("", encoding="utf-8")
    (tmp_path / "package" / "clamp.py").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_clamp.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / ".gitignore").write_text(".cache\n", encoding="utf-8")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    return tmp_path


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = a > b", "x = a >= b"),
        ("x = a is not None", "x = a is None"),
        ("x = a not in b", "x = a in b"),
        ("x = é + a", "x = é - a"),
        ("x //= b", "x *= b"),
        ("x = (a) and (b)", "x = (a) or (b)"),
        ("x = not a", "x = a"),
        ("x = [1]", "x = [2]"),
        ("x = True", "x = False"),
        ("x = f(a, b)", "x = f(b, a)"),
        ("x = a if b else c", "x = a if not (b) else c"),
        ("while a: b()", "while not (a): b()"),
    ],
)
def test_a_bug_changes_one_expression(before: str, after: str) -> None:
    source = (before + "\n").encode()
    changed = [bug.apply(source).decode().strip() for bug in bugs_of(Path("x.py"), source)]
    assert [ast.unparse(ast.parse(text)) for text in changed] == [ast.unparse(ast.parse(after))]


def test_a_guard_is_removed() -> None:
    source = b"def f(a):\n    if a < 0:\n        raise ValueError(f'{a + 1} is below 0')\n"
    changed = {bug.apply(source).decode().splitlines()[1].strip() for bug in bugs_of(Path("x.py"), source)}
    assert changed == {"if a <= 0:", "if a < 1:", "if not (a < 0):", "if False:"}


@pytest.mark.parametrize("source", ['"""a < b"""', "x: A | B = y", "raise E(1 + 2)", "x = 'a' + b", "A = B | None"])
def test_what_only_a_reader_sees_is_left_alone(source: str) -> None:
    assert bugs_of(Path("x.py"), source.encode()) == []


def test_survivors_are_named_and_the_tree_is_untouched(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packages = {"scratch": project / "package"}
    file = project / "package" / "clamp.py"
    status = runner.main([f"{file}:5", f"{file}:11", "--count=9", "--seed=3", "--jobs=2"], project, packages)
    said = capsys.readouterr().out
    assert status == 1
    assert "caught; seed 3" in said
    assert "caught by tests/test_clamp.py::test_clamp" in said
    assert "survived: package/clamp.py:11, arithmetic in untested\n- return a - b\n+ return a + b" in said
    assert "- if x > high:\n+ if x >= high:" in said  # the same for every x: a survivor to be judged
    assert "+ if False:" not in said
    assert file.read_text(encoding="utf-8") == SOURCE


def test_a_test_file_that_fails_anyway_catches_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "tests" / "test_broken.py").write_text("def test_clamp_high_x():\n    assert False\n", encoding="utf-8")
    file = project / "package" / "clamp.py"
    bugs = runner.draw(runner.candidates(project, [file.parent], [f"{file}:11"]), 1, 0)
    verdicts = runner.run(bugs, project, {"scratch": file.parent}, 1, 60)
    assert [verdict.caught_by for verdict in verdicts] == [""]
    assert "tests/test_broken.py fails without a bug" in capsys.readouterr().out


def test_a_seed_draws_the_same_bugs_of_every_kind() -> None:
    found = runner.candidates(ROOT, list(package_folders().values()), ["core/shapes.py", "codegen/budget.py"])
    drawn = runner.draw(found, 30, 7)
    assert drawn == runner.draw(found, 30, 7) != runner.draw(found, 30, 8)
    assert len({bug.kind for bug in drawn}) > 5
    assert all(compiles(bug) for bug in drawn)


def test_a_path_that_is_not_there_is_named() -> None:
    with pytest.raises(StepError, match=r"core/nothing\.py: no Python file of the distribution"):
        runner.candidates(ROOT, list(package_folders().values()), [os.path.join("core", "nothing.py")])


def test_the_tests_that_name_what_is_around_a_bug_come_first(tmp_path: Path) -> None:
    file = ROOT / "core" / "burnpack" / "cbor.py"
    bug = bugs_of(file, file.read_bytes())[0]
    first = Choice(ROOT, tmp_path / "seconds.json").tests_for(bug)[:8]
    assert any("burnpack" in test for test in first)
    assert batches(list("abcdefgh")) == [list("abc"), list("defgh")]
