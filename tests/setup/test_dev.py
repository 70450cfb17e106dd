"""dev.py's own surface, and the files that it and npm rely on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from tools import install, steps
from tools.paths import BENCH_WEB, ROOT, WEB


def _dev(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "dev.py", *args], capture_output=True, text=True, check=False, encoding="utf-8"
    )


def test_without_a_command_it_says_which_there_are() -> None:
    done = _dev()
    assert done.returncode == 2
    for command in ("demo", "test", "check", "fuzz", "bench", "web"):
        assert f"dev.py {command}" in done.stdout


def test_a_command_that_is_not_there_is_named() -> None:
    done = _dev("tset")
    assert done.returncode == 2
    assert done.stdout.rstrip().endswith("there is no command 'tset'; did you mean 'test'?")
    assert _dev("--help").returncode == 0


def test_bench_lists_what_there_is_and_refuses_the_rest() -> None:
    assert _dev("bench").returncode == 0
    done = _dev("bench", "no-such-benchmark")
    assert done.returncode == 1
    assert "no-such-benchmark" in done.stdout


def test_ci_entry_is_executable_and_strict() -> None:
    entry = ROOT / ".ci" / "run"
    assert os.access(entry, os.X_OK)
    assert "CI=true" in entry.read_text(encoding="utf-8")


@pytest.mark.parametrize("lock", [WEB / "package-lock.json", BENCH_WEB / "package-lock.json"], ids=["web", "bench"])
def test_lock_file_pins_and_names_no_host(lock: Path) -> None:
    packages = json.loads(lock.read_text(encoding="utf-8"))["packages"]
    packages.pop("")
    assert packages
    for name, package in packages.items():
        assert "integrity" in package, name
        assert "resolved" not in package, name


def test_failing_step_shows_the_end_of_its_output() -> None:
    script = "print('first'); print('the disk is full'); raise SystemExit(3)"
    with pytest.raises(steps.StepError, match=r"(?s)status 3.*the disk is full"):
        steps.run([sys.executable, "-c", script])


def test_an_interrupt_ends_the_commands_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []

    def sleeps() -> None:
        try:
            steps.run([sys.executable, "-c", "import time; time.sleep(60)"])
        except steps.StepError as error:
            ended.append(str(error))

    class Interrupted(threading.Thread):
        def join(self, timeout: float | None = None) -> None:
            while not steps._running:
                time.sleep(0.01)
            raise KeyboardInterrupt

    with monkeypatch.context() as during:
        during.setattr(steps.threading, "Thread", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            steps.together({"sleeping": sleeps})
    deadline = time.monotonic() + 300
    while not ended and time.monotonic() < deadline:
        time.sleep(0.01)
    assert "status" in ended[0] and not steps._running


def test_a_step_that_exits_has_failed() -> None:
    def exits() -> None:
        raise SystemExit(3)

    assert isinstance(steps.together({"exiting": exits})["exiting"], SystemExit)


def test_nothing_is_installed_on_where_the_environment_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    installing = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])

    def fails() -> None:
        raise steps.StepError("no network")

    monkeypatch.setattr(install, "_begin", lambda names: installing)
    monkeypatch.setattr(install, "_venv_is_current", lambda: False)
    monkeypatch.setattr(install, "install_lock", nullcontext)
    monkeypatch.setattr(install, "_works", lambda python: True)
    monkeypatch.setattr(install, "_fill_venv", fails)
    try:
        with pytest.raises(steps.StepError, match="no network"):
            install.ensure_venv(["chromium"])
        assert installing.wait(30) != 0
    finally:
        installing.kill()
