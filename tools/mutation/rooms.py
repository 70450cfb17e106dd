"""Warm pytest processes, one for each folder of tests, because starting pytest takes longer than most tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).with_name("room.py")
UNKNOWN_LIMIT = 30.0  # seconds of processor time for a test that was never measured
LEAST = 10.0  # seconds to try a test again by itself
SLOWER = 10  # a test that takes this many times its measured time has caught the bug


@dataclass
class Outcome:
    """The result of a run of chosen tests."""

    failed: str = ""  # the first test that failed
    why: str = ""  # whether it ended the process
    ran: dict[str, float] = field(default_factory=dict)  # seconds of each that passed
    changed_at_import: bool = False  # the bug is in code that runs on import, so only a new process has it
    over: bool = False  # whether the time ran out before all tests had run
    seconds: float = 0.0  # of the process


class Room:
    """A process that has collected some test files of a copy of the tree."""

    def __init__(self, copy: Path, tests: Sequence[str], seconds: float = 0) -> None:
        """seconds: the limit of processor time to collect the tests, 0 for none; past it there are no `items`."""
        known = os.environ.get("PYTHONPATH")
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(copy / ".cache" / "imports"), *([known] if known else [])]),
            "EMBERLET_VENV": sys.prefix,
            "HYPOTHESIS_STORAGE_DIRECTORY": str(copy / ".cache" / "hypothesis"),
        }
        self.process = subprocess.Popen(
            [sys.executable, str(SCRIPT), str(seconds), *tests],
            cwd=copy,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        collected = next(iter(self._answers()), {"items": [], "seconds": seconds})
        self.items: list[str] = collected["items"]
        self.seconds: float = collected["seconds"]  # of processor time, to collect them
        self.number = {item: at for at, item in enumerate(self.items)}

    def run(
        self,
        tests: Sequence[str],
        seconds: float,
        known: Mapping[str, float],
        file: Path | None = None,
        sound: bytes = b"",
    ) -> Outcome:
        """Run the tests in this order up to the first failure; one that ends the process has to do so by itself.

        Args:
            seconds: The limit of processor time.
            known: The seconds of each test that was measured.
            file: The file with the bug.
            sound: The file's text without the bug.
        """
        asked = self._asked("run", tests, seconds, known)
        if file is not None:
            asked |= {"file": os.path.realpath(file), "sound": sound.decode()}
        outcome = Outcome()
        started = -1
        for answer in self._ask(asked):
            if "end" in answer:
                outcome.seconds = answer["seconds"]
                if (why := answer["end"]) and not outcome.failed:
                    outcome.failed, outcome.why = tests[min(started + 1, len(tests) - 1)], f" ({why})"
            elif "test" not in answer:
                outcome.over |= answer.get("over", False)
                outcome.changed_at_import |= answer.get("changed_at_import", False)
            elif answer["failed"]:
                outcome.failed = self.items[answer["test"]]
            else:
                started += 1
                outcome.ran[self.items[answer["test"]]] = answer["seconds"]
        if outcome.why and outcome.failed != tests[0]:
            # Earlier tests may have left too much behind, such as memory: only what fails first in a process counts.
            left = max(seconds - outcome.seconds, LEAST)
            rest = self.run(tests[tests.index(outcome.failed) :], left, known, file, sound)
            rest.ran = outcome.ran | rest.ran
            rest.seconds += outcome.seconds
            return rest
        return outcome

    def learn(
        self, tests: Sequence[str], folder: Path, seconds: float
    ) -> Iterator[tuple[str, float, dict[str, bytes]]]:
        """(test, seconds, {file: its executed lines, a bit for each}) of every test that passes."""
        for answer in self._ask(self._asked("learn", tests, seconds, {}) | {"folder": str(folder)}):
            if "test" in answer and not answer["failed"]:
                lines = {file: bytes.fromhex(bits) for file, bits in answer["lines"].items()}
                yield self.items[answer["test"]], answer["seconds"], lines

    def _asked(self, do: str, tests: Sequence[str], seconds: float, known: Mapping[str, float]) -> dict[str, Any]:
        limits = [SLOWER * (known[test] + 1) if test in known else UNKNOWN_LIMIT for test in tests]
        return {"do": do, "tests": [self.number[test] for test in tests], "limits": limits, "seconds": seconds}

    def close(self) -> None:
        with suppress(OSError):
            self.process.stdin.close()  # type: ignore[union-attr]
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()  # type: ignore[union-attr]

    def _ask(self, what: dict[str, Any]) -> Iterator[dict[str, Any]]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        for answer in self._answers():
            yield answer
            if "end" in answer:
                return

    def _answers(self) -> Iterator[dict[str, Any]]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            yield json.loads(line)
