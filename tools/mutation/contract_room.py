"""Runs the contract in forks of a warm process; placed.py starts it in a copy of the tree.

A request is a line of JSON, {"first": kinds of cases to run first, "backends": on which, "seconds": limit}. The answer
is a line too, {"caught": test or "", "why": text, "seconds": processor time, "over": whether they ran out}. Only
packages of others are imported before the fork, so each fork imports emberlet as the copy has it.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import sys
import tempfile
import time
from contextlib import suppress
from typing import Any

import pytest

WARM = ("numpy", "onnx", "onnx.helper", "onnxruntime", "onnxruntime.quantization", "wgpu", "wgpu.backends.wgpu_native",
        "wasmtime", "hypothesis", "ml_dtypes")  # fmt: skip
WAITING = 30.0  # seconds without any processor time, after which a fork hangs


# The cases of each kind that run in turns before the whole contract does: most bugs show in the first of some kind.
TURN = {
    "operations": 60,
    "chains": 20,
    "indices": 30,
    "programs": 50,
    "networks": 20,
    "layers": 30,
    "modules": 20,
    "sessions": 60,
    "invalid": 40,
    "random_numbers": 10,
    "large": 1,
}


class Answer:
    """The first failure of a pytest run as the answer."""

    def __init__(self, say: Any) -> None:
        self.say = say

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.say(report.nodeid, report.longreprtext.strip().splitlines()[-1])


def contract(first: list[str], backends: list[str], say: Any) -> int:
    """Run the cases of some kinds on some backends in turns, each on half of their ways, then the whole contract.
    say(test, why): called for the first failure."""
    sys.path[:0] = ["tests", "."]
    os.environ["EMBERLET_PLANS"] = "always"
    os.environ["EMBERLET_CACHE"] = tempfile.mkdtemp(prefix="emberlet-contract-")
    engine = importlib.import_module("fuzz.differential.engine")
    engine.SHRINKING, engine.SHOWN = 0.0, 1  # type: ignore[attr-defined]
    short = importlib.import_module("contract.test_contract")
    properties = importlib.import_module("contract.properties")
    properties.ONLY = tuple(backends)  # type: ignore[attr-defined]
    share = properties.SHARE
    properties.SHARE = dict.fromkeys(share, 0.5)  # type: ignore[attr-defined]
    left = {name: short.asked(name)[1] for name in first}
    done = dict.fromkeys(first, 0)
    while left:
        for name in list(left):
            count = min(TURN.get(name, 20), left[name])
            try:
                row = short.fuzz.run(name, short.asked(name)[0], count=count, first=done[name])
            except Exception as error:
                say(f"test_contract.py[{name}]", f"raises {type(error).__name__}: {error}")
                return 1
            if row.found:
                say(f"test_contract.py[{name}]", row.found[0].difference)
                return 1
            done[name] += count
            left[name] -= count
            if not left[name]:
                del left[name]
    properties.ONLY, properties.SHARE = None, share  # type: ignore[attr-defined]
    arguments = ["tests/contract", "-x", "-q", "-n0", "-p", "no:cacheprovider", "-p", "no:faulthandler"]
    return int(pytest.main(arguments, plugins=[Answer(say)]))


def ticks(process: int) -> int:
    """A number that grows with the processor time of a process, and while it has to wait for a processor."""
    try:
        used = 0
        for thread in os.listdir(f"/proc/{process}/task"):
            with open(f"/proc/{process}/task/{thread}/stat", encoding="ascii", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
            if fields[0] in "RD":
                return int(time.monotonic() * 1000)
            used += int(fields[11]) + int(fields[12])
        return used
    except OSError:
        return int(time.monotonic() * 1000)


def run(first: list[str], backends: list[str], seconds: float) -> dict[str, Any]:
    """The verdict of one run."""
    reading, writing = os.pipe()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    child = os.fork()
    if not child:
        os.close(reading)
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 5))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        quiet = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(quiet, fd)

        def say(test: str, why: str) -> None:
            os.write(writing, json.dumps({"caught": test, "why": why[:300]}).encode() + b"\n")

        status = 3
        try:
            status = contract(first, backends, say)
        except BaseException as error:
            say("tests/contract", f"raises {type(error).__name__}: {error}")
        finally:
            os._exit(status)
    os.close(writing)
    hangs = False
    latest, used = time.monotonic(), 0
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        now = ticks(child)
        if now != used:
            latest, used = time.monotonic(), now
        if time.monotonic() > latest + WAITING:
            hangs = True
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.1)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    with os.fdopen(reading) as answers:
        said = answers.read().splitlines()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    taken = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    answer: dict[str, Any] = {"caught": "", "why": "", "seconds": taken, "over": False}
    if said:
        answer |= json.loads(said[0])
    elif hangs or os.WIFSIGNALED(status):
        over = not hangs and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
        how = "it waits forever" if hangs else "it runs too long" if over else f"by signal {os.WTERMSIG(status)}"
        answer |= {"caught": "tests/contract", "why": how, "over": over}
    elif os.WEXITSTATUS(status):
        answer |= {
            "caught": "tests/contract",
            "why": f"pytest ends with {os.WEXITSTATUS(status)}",
        }
    return answer


def main() -> None:
    for name in WARM:
        with suppress(ImportError):
            importlib.import_module(name)
    answers = os.dup(1)
    os.dup2(2, 1)
    os.write(answers, b"{}\n")
    for line in sys.stdin:
        asked = json.loads(line)
        os.write(answers, json.dumps(run(asked["first"], asked["backends"], asked["seconds"])).encode() + b"\n")


if __name__ == "__main__":
    main()
