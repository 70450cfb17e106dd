"""`dev.py mutate`: seed bugs at random, run the tests that concern each, name those that no test catches."""

from __future__ import annotations

import argparse
import os
import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from queue import SimpleQueue
from threading import Lock

from ..steps import StepError, say
from . import report
from .bugs import KINDS, Bug, bugs_of, compiles
from .checking import Checks
from .choosing import Choice, batches, room_of
from .copies import Copy
from .learned import Learned
from .rooms import Outcome, Room

ENOUGH = 0.95  # the share of bugs to be caught
GENERATED = "_bytecode.py"  # generated from another file: `dev.py check` compares them
FRESH = 0.15  # the share of a bug's time that is left to run its first tests in a new process
FEW = 60  # of them at most, if the bug is not in code that runs on import
COLLECTING = 120  # seconds of processor time to import a tree with a bug


@dataclass
class Verdict:
    """The tests' verdict on a bug."""

    bug: Bug
    diff: str  # the line before and after
    caught_by: str  # the test; empty for a survivor
    ran: int  # tests that passed
    decided: bool  # whether there was time for all tests that may concern it
    seconds: float  # of processor time, its tests'


def main(args: list[str], root: Path, packages: dict[str, Path]) -> int:
    """Seed bugs in the packages' files.

    Returns:
        0 where at least 95 of 100 are caught, else 1.

    Raises:
        StepError: A path names no file that can be given a bug, or the system cannot fork.
    """
    parser = argparse.ArgumentParser("dev.py mutate", description="Seed one-line bugs and name those no test catches.")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="a folder, a file, or FILE:LINE; else everything")
    parser.add_argument("--count", type=int, default=20, help="how many bugs (20)")
    parser.add_argument("--seed", type=int, help="draws the same bugs again in the same tree")
    parser.add_argument("--kind", nargs="+", choices=KINDS, metavar="KIND", help=f"only some of {', '.join(KINDS)}")
    parser.add_argument("--jobs", type=int, default=1, help="copies of the tree that work side by side (1)")
    parser.add_argument("--seconds", type=float, default=60, help="of processor time for the tests of a bug (60)")
    parser.add_argument(
        "--measure", type=float, default=30, help="minutes of processor time to find out what tests execute (30)"
    )
    parser.add_argument("--minutes", type=float, default=600, help="stop with fewer bugs after so long")
    parser.add_argument("--write", action="store_true", help="add the result to benches/results/mutation.md")
    asked = parser.parse_args(args)
    if not hasattr(os, "fork"):
        raise StepError("dev.py mutate forks its test processes, which this system cannot do: use Linux or macOS")
    seed = asked.seed if asked.seed is not None else random.randrange(10**6)
    found = candidates(root, list(packages.values()), asked.paths)
    bugs = draw([bug for bug in found if bug.kind in (asked.kind or KINDS)], asked.count, seed)
    say(f"{len(bugs)} bugs, seed {seed}")
    start = time.monotonic()
    verdicts = run(bugs, root, packages, asked.jobs, asked.seconds, asked.measure * 60, start + asked.minutes * 60)
    used = sum(os.times()[:4])
    result = report.Result(seed, verdicts, used, asked.paths)
    for verdict in result.survivors:
        bug = verdict.bug
        why = report.equivalent(verdict, root)
        said = "makes no difference" if why else "survived" if verdict.decided else "survived, time ran out"
        say(f"\n{said}: {place(bug, root)}, {bug.kind} in {bug.scope or 'the module'}")
        say(verdict.diff)
        if why:
            say(why)
    say(f"\n{result.caught} of {len(verdicts)} caught; seed {seed}")
    if asked.write:
        report.write(result, root)
    return int(result.caught < ENOUGH * len(verdicts))


def candidates(root: Path, folders: list[Path], paths: list[str]) -> list[Bug]:
    """Every bug that can be seeded in the named files, by default in all.

    Raises:
        StepError: A path names no such file, or there is no bug to seed.
    """
    chosen: list[tuple[Path, int | None]] = []
    for path in paths or [str(folder) for folder in folders]:
        name, _, line = path.partition(":") if not Path(path).exists() else (path, "", "")
        place = (root / name).resolve()
        files = sorted(place.rglob("*.py")) if place.is_dir() else [place]
        files = [file for file in files if any(folder in file.parents for folder in folders) and file.is_file()]
        if not files:
            raise StepError(f"{path}: no Python file of the distribution is there")
        chosen += [(file, int(line) if line else None) for file in files if not file.name.endswith(GENERATED)]
    found = [bug for file, line in chosen for bug in bugs_of(file, file.read_bytes()) if line in (None, bug.line)]
    if not found:
        raise StepError("nothing there can be given a bug")
    return list(dict.fromkeys(found))


def draw(bugs: list[Bug], count: int, seed: int) -> list[Bug]:
    """Up to `count` different bugs at random. Every kind is equally likely."""
    rng = random.Random(seed)
    by_kind: dict[str, list[Bug]] = {}
    for bug in bugs:
        by_kind.setdefault(bug.kind, []).append(bug)
    drawn: list[Bug] = []
    while by_kind and len(drawn) < count:
        kind = rng.choice(sorted(by_kind))
        of_kind = by_kind[kind]
        bug = of_kind.pop(rng.randrange(len(of_kind)))
        if compiles(bug):
            drawn.append(bug)
        if not of_kind:
            del by_kind[kind]
    return drawn


def run(
    bugs: list[Bug],
    root: Path,
    packages: dict[str, Path],
    jobs: int,
    seconds: float,
    measure: float = 1800,
    deadline: float = float("inf"),
) -> list[Verdict]:
    """Try one bug after the other until `deadline` (of time.monotonic), and print a line for each.

    Args:
        seconds: The processor time that the tests of one bug may take.
        measure: The processor time that finding out what tests execute may take.
    """
    cache = root / ".cache" / "mutate"
    below = [folder.relative_to(root).as_posix() for folder in packages.values()]
    trials = Trials(Choice(root, Learned(root, cache / "learned", below, measure)), seconds)
    copies = [Copy(root, cache / f"copy-{number}", packages) for number in range(min(jobs, len(bugs)))]
    free: SimpleQueue[Copy] = SimpleQueue()
    for copy in copies:
        free.put(copy)
    done = 0

    def one(bug: Bug) -> Verdict | None:
        nonlocal done
        if time.monotonic() > deadline:
            return None
        copy = free.get()
        try:
            verdict = trials.verdict(bug, copy)
        finally:
            free.put(copy)
        with trials.lock:
            done += 1
            ended = "all" if verdict.decided else "time ran out after"
            said = f"caught by {verdict.caught_by}" if verdict.caught_by else f"SURVIVED {ended} {verdict.ran} tests"
            say(f"[{done}/{len(bugs)}] {place(bug, root)} {bug.kind}: {said}, {verdict.seconds:.0f} s")
        return verdict

    try:
        with ThreadPoolExecutor(max(jobs, 1)) as pool:
            return [verdict for verdict in pool.map(one, bugs) if verdict]
    finally:
        trials.close()


class Trials:
    """Runs tests on bugs, and leaves out tests that fail without one."""

    def __init__(self, choice: Choice, seconds: float) -> None:
        self.choice, self.limit = choice, seconds
        self.lock, self.learning = Lock(), Lock()
        self.seconds: dict[str, float] = {}  # of the tests that were measured
        self.rooms: dict[tuple[Path, str], Room] = {}
        self.checks: dict[Path, Checks] = {}  # by copy
        self.sound: dict[str, bool] = {}  # tests that caught something: whether they pass without a bug

    def verdict(self, bug: Bug, copy: Copy) -> Verdict:
        rooms = {folder: self.room(copy, folder) for folder in self.choice.folders(bug)}
        by_test = {item: room for room in rooms.values() for item in room.items}
        tests = self.choice.tests_for(bug, [item for item in by_test if self.sound.get(item, True)])
        verdict = Verdict(bug, bug.diff((copy.folder / bug.file.relative_to(copy.root)).read_bytes()), "", 0, True, 0.0)
        limit = self.limit * (1 - FRESH)
        checked = at_import = False
        for batch in batches(tests, self.choice.estimated(tests)):
            while batch and verdict.decided and not at_import:
                outcome = self.seeded(bug, copy, by_test[batch[0]], batch, limit - verdict.seconds)
                at_import = outcome.changed_at_import
                if self.caught(outcome, verdict, by_test):
                    return verdict
                batch = batch[batch.index(outcome.failed) + 1 :] if outcome.failed else []
                verdict.decided = not outcome.over and verdict.seconds < limit
            if not checked and self.checked(bug, copy, verdict):
                return verdict
            checked = True
            if at_import or not verdict.decided:
                break
        if not checked and self.checked(bug, copy, verdict):
            return verdict
        self.in_a_new_process(bug, copy, tests, verdict, by_test, at_import)
        return verdict

    def checked(self, bug: Bug, copy: Copy, verdict: Verdict) -> bool:
        """Whether `dev.py check` finds the bug."""
        if copy.folder not in self.checks:
            self.checks[copy.folder] = Checks(copy)
        verdict.caught_by = self.checks[copy.folder].caught(bug)
        return bool(verdict.caught_by)

    def in_a_new_process(
        self, bug: Bug, copy: Copy, tests: list[str], verdict: Verdict, by_test: dict[str, Room], at_import: bool
    ) -> None:
        """Run the first tests where modules are imported with the bug; if it is `at_import`, as many as there is time
        for."""
        left = max(self.limit - verdict.seconds, self.limit * FRESH)
        seconds = self.choice.estimated(tests)
        enough = accumulate(seconds[test] for test in tests)
        first = [test for test, used in zip(tests, enough, strict=True) if used <= left and self.sound.get(test, True)]
        first = first if at_import else first[:FEW]
        files: dict[str, list[str]] = {}
        for file in dict.fromkeys(test.partition("::")[0] for test in first):
            files.setdefault(room_of(file), []).append(file)
        fresh: dict[str, Room] = {}
        copy.seed(bug)
        try:
            for batch in batches(first, seconds):
                folder = room_of(batch[0])
                if folder not in fresh:
                    room = fresh[folder] = Room(copy.folder, files[folder], COLLECTING)
                    left -= room.seconds
                    verdict.seconds += room.seconds
                    if missing := [test for test in first if room_of(test) == folder and test not in room.number]:
                        verdict.caught_by = f"{missing[0].partition('::')[0]} (it cannot be collected)"
                        return
                while batch and left > 0:
                    outcome = fresh[folder].run(batch, left, self.seconds)
                    left -= outcome.seconds
                    copy.mend(bug)
                    if self.caught(outcome, verdict, by_test):
                        return
                    copy.seed(bug)
                    batch = batch[batch.index(outcome.failed) + 1 :] if outcome.failed else []
        finally:
            copy.mend(bug)
            for room in fresh.values():
                room.close()
        verdict.decided = verdict.decided and (left > 0 or not at_import) and len(first) >= min(len(tests), FEW)

    def caught(self, outcome: Outcome, verdict: Verdict, by_test: dict[str, Room]) -> bool:
        verdict.ran += len(outcome.ran)
        verdict.seconds += outcome.seconds
        if outcome.failed and self.passes_without(outcome.failed, by_test):
            verdict.caught_by = outcome.failed + outcome.why
        return bool(verdict.caught_by)

    def seeded(self, bug: Bug, copy: Copy, room: Room, tests: list[str], seconds: float) -> Outcome:
        copy.seed(bug)
        try:
            file = copy.folder / bug.file.relative_to(copy.root)
            return room.run(tests, seconds, self.seconds, file, copy.sound)
        finally:
            copy.mend(bug)

    def room(self, copy: Copy, folder: str) -> Room:
        """The warm process for a folder of tests. Measures which lines its tests execute if that is not known."""
        if (copy.folder, folder) not in self.rooms:
            room = self.rooms[copy.folder, folder] = Room(copy.folder, [folder])
            with self.learning:
                self.choice.learned.learn(room, copy.folder)
                self.seconds = self.choice.learned.seconds()
        return self.rooms[copy.folder, folder]

    def passes_without(self, test: str, rooms: dict[str, Room]) -> bool:
        if test not in self.sound:
            self.sound[test] = not rooms[test].run([test], 600, self.seconds).failed
            if not self.sound[test]:
                say(f"{test} fails without a bug in the copy: left out")
        return self.sound[test]

    def close(self) -> None:
        for room in self.rooms.values():
            room.close()


def place(bug: Bug, root: Path) -> str:
    return f"{bug.file.relative_to(root).as_posix()}:{bug.line}"
