"""No reader and no command runs what is in a file: an audit hook watches while all of them read hostile files."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.hostile_files import hostile_files
from support.processes import python


def watched(tmp_path: Path, digits: Path, *more: str) -> list[str]:
    trap = tmp_path / "trap"
    hostile_files(tmp_path / "files", trap)
    script = Path(__file__).with_name("watched.py")
    done = python(script, tmp_path / "files", trap, digits, *more, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert not (trap.exists() and not more)
    return done.stdout.splitlines()


@pytest.mark.skipif(sys.platform == "win32", reason="the trap is a POSIX command")
def test_nothing_in_a_file_runs(tmp_path: Path, digits: Path) -> None:
    assert watched(tmp_path, digits) == ["done"]


@pytest.mark.skipif(sys.platform == "win32", reason="the trap is a POSIX command")
def test_the_hook_sees_a_careless_reader(tmp_path: Path, digits: Path) -> None:
    seen = "\n".join(watched(tmp_path, digits, "--careless"))
    assert "pickle.find_class" in seen and "os.system" in seen and "compile of text from outside" in seen
