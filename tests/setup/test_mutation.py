"""dev.py mutate: which bugs are seeded, and which of them the tests of a small project catch."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tools.layout import package_folders
from tools.mutation import runner
from tools.mutation.bugs import bugs_of, compiles
from tools.mutation.choosing import NOT_OF_ONE_FOLDER
from tools.mutation.choosing import TESTS as FOLDERS
from tools.mutation.copies import Copy
from tools.mutation.learned import Learned
from tools.mutation.rooms import Room
from tools.paths import ROOT

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
def project(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small project. Its processes of pytest load no other plugins, and mypy reads Python's own stubs once."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "pytest_timeout")
    monkeypatch.setenv("MYPY_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "mypy"))
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


@pytest.mark.parametrize("source", ['"""a < b"""', "x: A | B = y", "raise E(1 + 2)", "x = 'a' + b", "A = B | None",
                                    "x = min(a, b)", "x = math.gcd(a, b)", "x = zip(a, strict=True)"])  # fmt: skip
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
    assert "- if x > high:\n+ if x >= high:" in said  # the same for every x: a survivor to be reviewed
    assert "+ if False:" not in said
    assert file.read_text(encoding="utf-8") == SOURCE


def test_a_test_file_that_fails_anyway_catches_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "tests" / "test_broken.py").write_text("def test_clamp_high_x():\n    assert False\n", encoding="utf-8")
    file = project / "package" / "clamp.py"
    bugs = runner.draw(runner.candidates(project, [file.parent], [f"{file}:11"]), 1, 0)
    verdicts = runner.run(bugs, project, {"scratch": file.parent}, 1, 60)
    assert [verdict.caught_by for verdict in verdicts] == [""]
    assert "tests/test_broken.py::test_clamp_high_x fails without a bug" in capsys.readouterr().out


def test_a_seed_draws_the_same_bugs_of_every_kind() -> None:
    found = runner.candidates(ROOT, list(package_folders().values()), ["core/shapes.py", "codegen/budget.py"])
    drawn = runner.draw(found, 30, 7)
    assert drawn == runner.draw(found, 30, 7) != runner.draw(found, 30, 8)
    assert len({bug.kind for bug in drawn}) > 5
    assert all(compiles(bug) for bug in drawn)


CHECK = """import subprocess, sys


def type_check():
    return tool("mypy", [sys.executable, "-m", "mypy", "package"])


def tool(name, command):
    command = [sys.executable, "-m", *command] if name == "ruff" else command
    done = subprocess.run(command, capture_output=True, text=True)
    print("\\n".join([f"{name}:", done.stdout]))
    return done.returncode == 0


def check_written():
    return True
"""
CHECKED = """from math import inf


def length(of: str | None) -> int:
    if of is None:
        return 0
    return len(of)


def finite(x: float) -> bool:
    if x == inf:
        return False
    return True
"""


@pytest.mark.parametrize(
    ("line", "said"), [(5, r"mypy: package.checked\.py:7: error: Argument 1 to \"len\""), (11, "ruff: .*`math.inf`")]
)
def test_what_check_finds_is_caught(project: Path, line: int, said: str) -> None:
    """A guard that only narrows a type, and an import that only a guard needs."""
    file = project / "package" / "checked.py"
    file.write_text(CHECKED, encoding="utf-8")
    shutil.copytree(ROOT / "tools" / "mutation", project / "tools" / "mutation")
    for name in ("__init__.py", "paths.py", "steps.py"):
        shutil.copy(ROOT / "tools" / name, project / "tools")
    (project / "tools" / "check.py").write_text(CHECK, encoding="utf-8")
    (bug,) = [bug for bug in bugs_of(file, file.read_bytes()) if bug.line == line and bug.kind == "guard"]
    (verdict,) = runner.run([bug], project, {"scratch": file.parent}, 1, 60)
    assert re.match(said, verdict.caught_by)


def test_every_folder_of_tests_is_chosen_for_some_folder_of_the_distribution() -> None:
    found = {path.relative_to(ROOT).parts[1] for path in (ROOT / "tests").rglob("test_*.py")}
    named = [folder for folders in FOLDERS.values() for folder in folders]
    assert {*named, *NOT_OF_ONE_FOLDER} == {f"tests/{name}" for name in found}
    assert all((ROOT / folder).is_dir() for folder in FOLDERS)


def test_a_test_that_ends_the_process_counts_if_it_does_so_by_itself(project: Path) -> None:
    (project / "tests" / "test_ends.py").write_text(
        "import os\nleft = []\n"
        "def test_first(): left.append(1)\n"
        "def test_second(): left and os._exit(3)\n"
        "def test_third(): pass\n"
        "def test_fourth(): os._exit(4)\n",
        encoding="utf-8",
    )
    room = Room(
        Copy(project, project / ".cache" / "copy", {"scratch": project / "package"}).folder, ["tests/test_ends.py"]
    )
    try:
        all_four, two = room.run(room.items, 60, {}), room.run(room.items[:2], 60, {})
    finally:
        room.close()
    assert [test.partition("::test_")[2] for test in all_four.ran] == ["first", "second", "third"]
    assert (all_four.failed, all_four.why) == ("tests/test_ends.py::test_fourth", " (status 4)")
    assert (len(two.ran), two.failed) == (2, "")


def test_what_a_test_executes_is_measured_and_found_where_lines_have_moved(project: Path) -> None:
    packages = {"scratch": project / "package"}
    copy = Copy(project, project / ".cache" / "copy", packages)
    room = Room(copy.folder, ["tests"])
    try:
        learned = Learned(project, project / ".cache" / "learned", ["package"])
        learned.learn(room, copy.folder)
    finally:
        room.close()
    test = "tests/test_clamp.py::test_clamp"
    assert [(c.test, c.on_line) for c in learned.covering("package/clamp.py", 6)] == [(test, True)]
    assert learned.covering("package/clamp.py", 11) == []
    (project / "package" / "clamp.py").write_text("# moved\n" * 3 + SOURCE, encoding="utf-8")
    again = Learned(project, project / ".cache" / "learned", ["package"])
    assert [(c.test, c.on_line) for c in again.covering("package/clamp.py", 9)] == [(test, True)]
