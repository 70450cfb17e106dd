"""A test run that loses a worker process continues and reports how it was lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support.workers import LONG, FileScheduling

from tools.paths import ROOT

FILES = 16
ORDINARY = "def test_{0}():\n    pass\n"
DYING = "def test_{0}():\n    import os, signal\n    os.kill(os.getpid(), signal.SIGKILL)\n"


def test_every_other_test_runs_after_a_worker_has_died(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text(encoding="utf-8"), "utf-8")
    for file in range(FILES):
        tests = [DYING if (file, number) == (8, 1) else ORDINARY for number in range(3)]
        text = "".join(test.format(number) for number, test in enumerate(tests))
        (tmp_path / f"test_{file:02}.py").write_text(text, encoding="utf-8")
    where = f"pythonpath={ROOT} {ROOT / 'tests'}"
    command = [sys.executable, "-m", "pytest", "-q", "-n2", "--dist=loadfile", "-p", "no:cacheprovider", "-o", where]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", check=False)
    assert f"1 failed, {3 * FILES - 1} passed" in done.stdout, done.stdout + done.stderr
    assert "a worker's process ended by SIGKILL" in done.stdout
    assert "crashed while running 'test_08.py::test_1'" in done.stdout


def test_the_long_files_are_there() -> None:
    assert all((ROOT / file).exists() for file in LONG)


def test_the_browser_tests_are_one_piece_of_work() -> None:
    scope = FileScheduling.__new__(FileScheduling)._split_scope
    assert scope("tests/browser/test_a.py::test_b[c]") == "tests/browser" and "tests/browser" in LONG
    assert scope("tests/core/test_a.py::test_b[c]") == "tests/core/test_a.py"
