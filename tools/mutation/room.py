"""Runs in a warm pytest process: collects test files once, then runs chosen tests in forks of itself.

Started by rooms.py in a copy of the tree as `python room.py SECONDS TESTS...`; SECONDS: the processor time that
collecting may take, 0 for any. Requests and answers are lines of JSON on the original standard input and output, which
the tests do not get. The first line has the tests' names ("items") and the seconds that collecting took.

    {"do": "run", "tests": [numbers], "limits": [seconds], "seconds": most, "file": path, "sound": text}
        runs tests in this order up to the first failure; if a file is given, the functions that were loaded from its
        text `sound` get the code that the file holds now
    {"do": "learn", "tests": [numbers], "limits": [seconds], "folder": path, "seconds": most}
        runs tests and reports which lines of the folder's files each executes

The answer is a line for each test that ran, {"test": number, "seconds": s, "failed": bool, "lines": {file: hex}};
{"changed_at_import": true} if the change is in code that runs on import; {"over": true} if `seconds` ran out; then
{"end": null, "seconds": s}, or {"end": why, ...} if the fork ended early. All seconds are processor time, so that other
work on the machine changes nothing. A test that uses more than its limit ends the fork.
"""

from __future__ import annotations

import json
import math
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, TextIO

import probes  # type: ignore[import-not-found]  # beside this script
import pytest
from replacing import replace  # type: ignore[import-not-found]  # beside this script

MEMORY = 12 << 30  # bytes that a test may allocate, because a bug may do so without end
WAITING = 10, 120  # a fork may take this many times its processor time, and so many seconds more; then it hangs


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
        self.say(items=[item.nodeid for item in session.items], seconds=_processor_time())
        while line := self.requests.readline():
            self.serve(json.loads(line))
        return True

    def serve(self, asked: dict[str, Any]) -> None:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.setsid()
                # Not RLIMIT_AS: an engine for WebAssembly reserves gigabytes of addresses for each memory.
                resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
                (self.learn if asked["do"] == "learn" else self.run)(asked)
                status = 0
            finally:
                self.answers.flush()
                os._exit(status)
        why, seconds = _wait(child, WAITING[0] * asked["seconds"] + WAITING[1])
        with suppress(ProcessLookupError):  # the tests' own processes too
            os.killpg(child, signal.SIGKILL)
        self.say(end=why, seconds=seconds)

    def run(self, asked: dict[str, Any]) -> None:
        if asked.get("file") and not replace(asked["file"], asked["sound"]):
            self.say(changed_at_import=True)
            return
        for number, seconds in self.each(asked):
            self.say(test=number, seconds=seconds, failed=self.failed)
            if self.failed:
                return

    def learn(self, asked: dict[str, Any]) -> None:
        folder = os.path.realpath(asked["folder"]) + os.sep
        probes.clear()
        for number, seconds in self.each(asked):
            lines = {file[len(folder) :]: bits.hex() for file, bits in probes.executed().items()}
            self.say(test=number, seconds=seconds, failed=self.failed, lines=lines)
            probes.clear()

    def each(self, asked: dict[str, Any]) -> Iterator[tuple[int, float]]:
        """Run the tests one by one, each within its limit; (test, seconds) as each is done."""
        begun = _processor_time()
        for number, limit in zip(asked["tests"], asked["limits"], strict=True):
            start = _processor_time()
            if start - begun > asked["seconds"]:
                self.say(over=True)
                return
            _limit_processor_time(limit)
            self.failed = False
            item = self.items[number]
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            yield number, _processor_time() - start


def _wait(child: int, seconds: float) -> tuple[str | None, float]:
    """(None, or why the process failed; its processor time, including that of the processes it ran)."""
    deadline = time.monotonic() + seconds
    if hasattr(os, "pidfd_open"):
        handle = os.pidfd_open(child)
        try:
            ended = bool(select.select([handle], [], [], seconds)[0])
        finally:
            os.close(handle)
    else:
        ended = False
        while not ended and time.monotonic() < deadline:
            time.sleep(0.05)
            ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    if not ended:
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
    _, status, used = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    names = {0: None, -signal.SIGXCPU: "it took too long"}
    return ("it hung" if not ended else names.get(code, f"status {code}")), used.ru_utime + used.ru_stime


def _processor_time() -> float:
    """The processor time of this process and of those it ran and waited for."""
    return sum(os.times()[:4])


def _limit_processor_time(seconds: float) -> None:
    """Limit this process's processor time from now on; the processes that it runs get the same limit each."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    limit = math.ceil(own.ru_utime + own.ru_stime + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def main() -> None:
    sys.path[0] = os.getcwd()  # as `python -m pytest` has it
    del globals()["__file__"]  # otherwise processes that tests spawn would run this script and fail
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if seconds := float(sys.argv[1]):
        _limit_processor_time(seconds)
    cache = os.path.join(os.getcwd(), ".cache")
    probes.install(os.path.join(cache, "imports"), os.path.join(cache, "probed"))
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    arguments = ["-q", "-p", "no:cacheprovider", "--tb=no", "--timeout=0", "--continue-on-collection-errors"]
    pytest.main([*arguments, *sys.argv[2:]], plugins=[Room(requests, answers)])


if __name__ == "__main__":
    main()
