"""Runs the contract in forks of a process; placed.py starts it in a copy of the tree.

`contract_room.py` imports only packages of others before the fork, so each fork imports emberlet as the copy has it.
`contract_room.py KIND...` is warm: it has imported emberlet and drawn the first cases of these kinds, with the results
of eager NumPy, and a fork gives the functions of a changed file their code. Nothing is compiled before the fork.

A request is a line of JSON, {"first": kinds of cases to run first, "backends": on which, "seconds": limit, "file": the
changed file, "sound": its text before}; the last two for a warm process. The answer is a line too, {"caught": test or
"", "why": text, "seconds": processor time, "over": whether they ran out}. A warm process runs only the kinds that are
asked for, on half of the ways; what it does not catch is tried in a cold one, which runs the whole contract after them.
"""

from __future__ import annotations

import importlib
import json
import os
import pickle
import pkgutil
import resource
import signal
import sys
import tempfile
import time
from contextlib import suppress
from typing import Any

import pytest
from replacing import replace  # type: ignore[import-not-found]  # beside this script

WARM = ("numpy", "onnx", "onnx.helper", "onnxruntime", "onnxruntime.quantization", "wgpu", "wgpu.backends.wgpu_native",
        "wasmtime", "hypothesis", "ml_dtypes")  # fmt: skip
WAITING = 30.0  # seconds without any processor time, after which a fork hangs
# Where plans are made: what eager NumPy gives does not depend on it.
PLANS = ("emberlet.host.numpy_backend.compile", "emberlet.wgpu_backend")
FOLDERS = ("core/host/numpy_backend/compile/", "wgpu_backend/")
COMPILES = ("sessions", "large", "other_runtimes", "fronts", "generated", "promises", "random_numbers")  # by themselves
REMEMBERED = 150  # cases of a kind whose results are computed before the fork
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


def prepare(backends: list[str] | tuple[str, ...]) -> Any:
    """The kinds' runs on some backends, each on half of their ways: the module test_contract."""
    if "tests" not in sys.path:
        sys.path[:0] = ["tests", "."]
    os.environ["EMBERLET_PLANS"] = "always"
    os.environ["EMBERLET_CACHE"] = tempfile.mkdtemp(prefix="emberlet-contract-")
    engine = importlib.import_module("fuzz.differential.engine")
    engine.SHRINKING, engine.SHOWN = 0.0, 1  # type: ignore[attr-defined]
    properties = importlib.import_module("contract.properties")
    properties.ONLY = tuple(backends)  # type: ignore[attr-defined]
    properties.SHARE = dict.fromkeys(importlib.import_module("contract.ways").SHARE, 0.5)  # type: ignore[attr-defined]
    return importlib.import_module("contract.test_contract")


def turns(first: list[str], backends: list[str], say: Any) -> bool:
    """Run the cases of some kinds on some backends in turns. say(test, why): called for the first failure."""
    short = prepare(backends)
    left = {name: short.asked(name)[1] for name in first}
    done = dict.fromkeys(first, 0)
    while left:
        for name in list(left):
            count = min(TURN.get(name, 20), left[name])
            try:
                row = short.fuzz.run(name, short.asked(name)[0], count=count, first=done[name])
            except Exception as error:
                say(f"test_contract.py[{name}]", f"raises {type(error).__name__}: {error}")
                return True
            if row.found:
                say(f"test_contract.py[{name}]", row.found[0].difference)
                return True
            done[name] += count
            left[name] -= count
            if not left[name]:
                del left[name]
    return False


def contract(first: list[str], backends: list[str], say: Any) -> int:
    """Run the cases of some kinds in turns, then the whole contract."""
    if turns(first, backends, say):
        return 1
    properties = importlib.import_module("contract.properties")
    properties.ONLY, properties.SHARE = None, importlib.import_module("contract.ways").SHARE  # type: ignore[attr-defined]
    arguments = ["tests/contract", "-x", "-q", "-n0", "-p", "no:cacheprovider", "-p", "no:faulthandler", "--timeout=0"]
    return int(pytest.main(arguments, plugins=[Answer(say)]))


def warm(asked: dict[str, Any], known: list[Remembered], say: Any) -> int:
    """Run the cases of some kinds with the code of a changed file."""
    if "file" not in asked:  # no bug
        return int(turns(asked["first"], asked["backends"], say))
    if not replace(asked["file"], asked["sound"]):
        return 0  # code that runs on import has changed
    if not os.path.relpath(asked["file"]).startswith(FOLDERS):
        for function in known:
            function.known.clear()
    return int(turns(asked["first"], asked["backends"], say))


class Remembered:
    """A function that remembers its results by its arguments, those of before the fork."""

    def __init__(self, module: Any, name: str) -> None:
        self.function = getattr(module, name)
        self.known: dict[bytes, Any] = {}
        self.learns = True
        setattr(module, name, self)

    def __call__(self, *args: Any) -> Any:
        try:
            key = pickle.dumps(args)
        except Exception:
            return self.function(*args)
        if key in self.known:
            return self.known[key]
        found = self.function(*args)
        if self.learns:
            self.known[key] = found
        return found


def warmed(names: list[str]) -> list[Remembered]:
    """Import the product, and compute what eager NumPy gives for the first cases of some kinds."""
    for package in PLANS:
        module = importlib.import_module(package)
        for found in pkgutil.walk_packages(module.__path__, package + "."):
            if "micropython" not in found.name and "browser" not in found.name:
                with suppress(ImportError):
                    importlib.import_module(found.name)
    short = prepare([])
    programs = importlib.import_module("contract.kinds.programs")
    kept = [Remembered(programs, "wanted"), Remembered(programs, "_well_defined")]
    for name in importlib.import_module("contract.fuzz").names():
        kind = importlib.import_module(f"contract.kinds.{name}")
        kept += [Remembered(kind, "expected")] if hasattr(kind, "expected") else []
    for name in [n for n in names if n not in COMPILES]:
        short.fuzz.run(name, short.asked(name)[0], count=min(REMEMBERED, short.asked(name)[1]))
    for function in kept:
        function.learns = False
    return kept


def ticks(group: int) -> int:
    """A number that grows with the processor time of a group of processes, and while one has to wait for a processor:
    a fork may wait for a runtime that it has started, and that for a busy machine."""
    if not os.path.isdir("/proc"):
        return int(time.monotonic() * 1000)
    used = 0
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.getpgid(int(process)) != group:
                continue
            for thread in os.listdir(f"/proc/{process}/task"):
                with open(f"/proc/{process}/task/{thread}/stat", encoding="ascii", errors="replace") as file:
                    fields = file.read().rpartition(")")[2].split()
                if fields[0] in "RD":
                    return int(time.monotonic() * 1000)
                used += int(fields[11]) + int(fields[12])
        except OSError:  # it has ended
            used += 1
    return used


def run(asked: dict[str, Any], known: list[Remembered]) -> dict[str, Any]:
    """The verdict of one run. known: what a warm process remembers; empty in a cold one."""
    first, backends, seconds = asked["first"], asked["backends"], asked["seconds"]
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
            status = warm(asked, known, say) if known else contract(first, backends, say)
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
    known = warmed(sys.argv[1:]) if sys.argv[1:] else []
    os.write(answers, b"{}\n")
    for line in sys.stdin:
        asked = json.loads(line)
        os.write(answers, json.dumps(run(asked, known)).encode() + b"\n")


if __name__ == "__main__":
    main()
