"""The inside of a warm pytest process: it collects test files once, then runs chosen tests in forks of itself.

Started by rooms.py in a copy of the tree as `python room.py TESTS...`. Requests are lines of JSON on what was the
standard input, answers lines of JSON on what was the standard output; the tests get neither.

    {"do": "run", "tests": [numbers], "seconds": most, "file": path, "sound": text}
        runs tests in this order up to the first failure; where a file is given, the functions that were loaded from
        its text `sound` get the code that the file holds now
    {"do": "learn", "tests": [numbers], "folder": path, "seconds": most}
        runs tests and tells which lines of the folder's files each executes (needs the package coverage)

The answer is a line for each test that ran, {"test": number, "seconds": s, "failed": bool, "lines": {file: hex}}, or
{"changed_at_import": true} where the change is in what runs on import; then {"end": null}, or {"end": why} where the
fork ended early.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import sys
import time
from contextlib import suppress
from types import CodeType, FunctionType
from typing import Any, TextIO

import pytest

MEMORY = 12 << 30  # bytes of address space: a bug may ask for all there is


class Room:
    def __init__(self, requests: TextIO, answers: TextIO) -> None:
        self.requests, self.answers = requests, answers
        self.failed = False

    def say(self, **what: object) -> None:
        self.answers.write(json.dumps(what) + "\n")
        self.answers.flush()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.items = session.items
        self.say(items=[item.nodeid for item in session.items])
        while line := self.requests.readline():
            self.serve(json.loads(line))
        return True

    def serve(self, asked: dict[str, Any]) -> None:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.setsid()
                _limit_memory()
                (self.learn if asked["do"] == "learn" else self.run)(asked)
                status = 0
            finally:
                self.answers.flush()
                os._exit(status)
        why = _wait(child, asked["seconds"])
        with suppress(ProcessLookupError):  # the tests' own processes too
            os.killpg(child, signal.SIGKILL)
        self.say(end=why)

    def run(self, asked: dict[str, Any]) -> None:
        if asked.get("file") and not replace(asked["file"], asked["sound"]):
            self.say(changed_at_import=True)
            return
        for number in asked["tests"]:
            start = time.monotonic()
            self.one(number)
            self.say(test=number, seconds=time.monotonic() - start, failed=self.failed)
            if self.failed:
                return

    def learn(self, asked: dict[str, Any]) -> None:
        from coverage import Coverage, CoverageData
        from coverage.numbits import nums_to_numbits

        folder = os.path.realpath(asked["folder"]) + os.sep
        for number in asked["tests"]:
            measured = Coverage(data_file=None, config_file=False, source=[folder], messages=False)
            measured.start()
            start = time.monotonic()
            self.failed = False
            try:
                self.one(number)
            finally:
                measured.stop()
            seconds = time.monotonic() - start
            data: CoverageData = measured.get_data()
            lines: dict[str, str] = {}
            for file in data.measured_files():
                real = os.path.realpath(file)
                if real.startswith(folder) and (found := data.lines(file)):
                    lines[real[len(folder) :]] = nums_to_numbits(found).hex()
            self.say(test=number, seconds=seconds, failed=self.failed, lines=lines)

    def one(self, number: int) -> None:
        item = self.items[number]
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)


def replace(file: str, sound: str) -> bool:
    """Give every loaded function of the file the code that the file holds now; `sound`: the text it was loaded from.

    Returns False where what runs while the module is imported has changed, and the module is loaded.
    """
    with open(file, "rb") as opened:
        new = compile(opened.read(), file, "exec", dont_inherit=True)
    old = compile(sound, file, "exec", dont_inherit=True)
    loaded = [
        module
        for module in list(sys.modules.values())
        if (path := getattr(module, "__file__", None)) and os.path.realpath(path) == file
    ]
    if not loaded:
        return True
    changed: dict[tuple[str, int], CodeType] = {}
    if not _changes(old, new, changed):
        return False
    for function in [found for found in gc.get_objects() if isinstance(found, FunctionType)]:
        code = function.__code__
        key = (code.co_qualname, code.co_firstlineno)
        if key in changed and os.path.realpath(code.co_filename) == file:
            if len(changed[key].co_freevars) != len(code.co_freevars):
                return False
            function.__code__ = changed[key]
    return True


def _changes(old: CodeType, new: CodeType, changed: dict[tuple[str, int], CodeType]) -> bool:
    """Collect the functions whose code differs; False where a module's or a class's own code does."""
    inner = [[c for c in code.co_consts if isinstance(c, CodeType)] for code in (old, new)]
    if len(inner[0]) != len(inner[1]):
        return False
    if not old.co_flags & 0x1:  # no CO_OPTIMIZED: the code of a module or of a class
        plain = [[c for c in code.co_consts if not isinstance(c, CodeType)] for code in (old, new)]
        if old.co_code != new.co_code or repr(plain[0]) != repr(plain[1]) or old.co_names != new.co_names:
            return False
    elif old != new:
        changed[old.co_qualname, old.co_firstlineno] = new
    return all(_changes(a, b, changed) for a, b in zip(*inner, strict=True))


def _wait(child: int, seconds: float) -> str | None:
    """None where the process ended well, else why not."""
    handle = os.pidfd_open(child) if hasattr(os, "pidfd_open") else None
    if handle is not None:
        try:
            ended = bool(select.select([handle], [], [], seconds)[0])
        finally:
            os.close(handle)
    else:
        deadline = time.monotonic() + seconds
        ended = False
        while not ended and time.monotonic() < deadline:
            time.sleep(0.05)
            ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    if not ended:
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not ended:
        return "time"
    return None if status == 0 else f"status {status}"


def _limit_memory() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def main() -> None:
    sys.path[0] = os.getcwd()  # as `python -m pytest` has it
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    arguments = ["-q", "-p", "no:cacheprovider", "--tb=no", "--timeout=60", "--continue-on-collection-errors"]
    pytest.main([*arguments, *sys.argv[1:]], plugins=[Room(requests, answers)])


if __name__ == "__main__":
    main()
