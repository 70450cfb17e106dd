"""A test run that loses a worker process continues and reports how it was lost."""

from __future__ import annotations

import subprocess
import sys
from collections import OrderedDict
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.workers import LONG, TOGETHER, WAITING, FileScheduling, computes

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
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", check=False, timeout=120
    )
    assert f"1 failed, {3 * FILES - 1} passed" in done.stdout, done.stdout + done.stderr
    assert "a worker's process ended by SIGKILL" in done.stdout
    assert "crashed while running 'test_08.py::test_1'" in done.stdout


def test_the_named_files_are_there() -> None:
    files = (*LONG, *TOGETHER, *(scope for scope in WAITING if scope.endswith(".py")))
    assert [file for file in files if not (ROOT / file).exists()] == []


def test_the_browser_tests_are_two_pieces_of_work() -> None:
    scope = FileScheduling.__new__(FileScheduling)._split_scope
    assert scope("tests/browser/test_a.py::test_b[c]") == "tests/browser"
    assert {scope(f"{file}::test_b[c]") for file in TOGETHER} == {"tests/browser/page"}
    assert {"tests/browser", "tests/browser/page"} < {*WAITING}
    assert scope("tests/core/test_a.py::test_b[c]") == "tests/core/test_a.py"


def test_workers_beyond_one_for_each_processor_begin_with_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    class Worker:
        def __init__(self, name: str) -> None:
            self.gateway, self.got = SimpleNamespace(id=name), []

        def send_runtest_some(self, indexes: list[int]) -> None:
            self.got += indexes

    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert [computes(f"gw{i}", 4) for i in range(4)] == [False, False, True, True]
    assert not any(computes(f"gw{i}", 2) for i in range(2))
    tests = [f"{scope}::test_it" for scope in ("tests/a/test_few.py", WAITING[2], WAITING[0], LONG[1], LONG[0])]
    scheduling = FileScheduling.__new__(FileScheduling)
    scheduling.numnodes, scheduling.assigned_work, scheduling.registered_collections = 4, {}, {}
    scheduling.workqueue = OrderedDict((test.partition("::")[0], {test: False}) for test in tests)
    took = []
    for name in ("gw0", "gw2", "gw1", "gw3", "gw3"):
        worker = Worker(name)
        scheduling.registered_collections[worker] = tests
        scheduling._assign_work_unit(worker)
        took.append(tests[worker.got[0]].partition("::")[0])
    assert took == [WAITING[0], LONG[0], WAITING[2], LONG[1], "tests/a/test_few.py"]


def test_long_files_come_first(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text(encoding="utf-8"), "utf-8")
    log = "def test_{0}():\n    open({1!r}, 'a', encoding='utf-8').write(__file__ + chr(10))\n"
    order = tmp_path / "order.txt"
    for name in ("tests/a/test_first.py", "tests/a/test_second.py", LONG[0]):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        count = 1 if name in LONG else 3
        file.write_text("".join(log.format(n, str(order)) for n in range(count)), encoding="utf-8")
    where = f"pythonpath={ROOT} {ROOT / 'tests'}"
    command = [sys.executable, "-m", "pytest", "-q", "-n1", "--dist=loadfile", "-p", "no:cacheprovider", "-o", where]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=120, capture_output=True)
    assert order.read_text(encoding="utf-8").splitlines()[0].endswith(LONG[0])
