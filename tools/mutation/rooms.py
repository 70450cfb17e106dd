"""Warm pytest processes, one for each folder of tests: most of the time of a test is otherwise pytest's own start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).with_name("room.py")


@dataclass
class Outcome:
    """What a run of chosen tests said."""

    failed: str = ""  # the first test that failed
    why: str = ""  # where it took the process down with it
    ran: dict[str, float] = field(default_factory=dict)  # seconds of each that passed
    changed_at_import: bool = False  # the bug is in what runs on import: only a new process has it
    ended: str | None = None  # why the process ended before its tests


class Room:
    """A process that has collected some test files of a copy of the tree."""

    def __init__(self, copy: Path, tests: Sequence[str]) -> None:
        known = os.environ.get("PYTHONPATH")
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(copy / ".cache" / "imports"), *([known] if known else [])]),
            "EMBERLET_VENV": sys.prefix,
            "HYPOTHESIS_STORAGE_DIRECTORY": str(copy / ".cache" / "hypothesis"),
        }
        self.process = subprocess.Popen(
            [sys.executable, str(SCRIPT), *tests],
            cwd=copy,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        self.items: list[str] = next(iter(self._answers()), {}).get("items", [])
        self.number = {item: at for at, item in enumerate(self.items)}

    def run(self, tests: Sequence[str], seconds: float, file: Path | None = None, sound: bytes = b"") -> Outcome:
        """The tests in their order up to the first failure; file: where a bug is, `sound` its text without it."""
        asked: dict[str, Any] = {"do": "run", "tests": [self.number[test] for test in tests], "seconds": seconds}
        if file is not None:
            asked |= {"file": os.path.realpath(file), "sound": sound.decode()}
        outcome = Outcome()
        started = None
        for answer in self._ask(asked):
            if "end" in answer:
                outcome.ended = answer["end"]
            elif answer.get("changed_at_import"):
                outcome.changed_at_import = True
            elif answer["failed"]:
                outcome.failed = self.items[answer["test"]]
            else:
                started = self.items[answer["test"]]
                outcome.ran[started] = answer["seconds"]
        if outcome.ended and outcome.ended != "time" and not outcome.failed:
            at = tests.index(started) + 1 if started else 0
            outcome.failed = tests[min(at, len(tests) - 1)]
            outcome.why = f" (the process ended with {outcome.ended})"
        return outcome

    def learn(
        self, tests: Sequence[str], folder: Path, seconds: float
    ) -> Iterator[tuple[str, float, dict[str, bytes]]]:
        """(test, seconds, {file: its executed lines as coverage's numbits}) of every test that passes."""
        numbers = [self.number[test] for test in tests]
        for answer in self._ask({"do": "learn", "tests": numbers, "folder": str(folder), "seconds": seconds}):
            if "test" in answer and not answer["failed"]:
                lines = {file: bytes.fromhex(bits) for file, bits in answer["lines"].items()}
                yield self.items[answer["test"]], answer["seconds"], lines

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
