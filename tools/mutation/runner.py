"""`dev.py mutate`: seed bugs at random, run the tests that concern each, name those that no test catches."""

from __future__ import annotations

import argparse
import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from threading import Lock

from ..steps import StepError, say
from .bugs import Bug, bugs_of, compiles
from .choosing import Choice, batches
from .copies import Copy

ENOUGH = 0.95  # of the bugs are to be caught
GENERATED = "_bytecode.py"  # what another file gives: `dev.py check` compares them


@dataclass
class Verdict:
    """What the tests said of a bug."""

    bug: Bug
    caught_by: str
    files: int  # test files that ran to their end
    of: int  # test files that concern it
    seconds: float


def main(args: list[str], root: Path, packages: dict[str, Path]) -> int:
    """Seed bugs in the packages' files.

    Returns:
        0 where at least 95 of 100 are caught, else 1.

    Raises:
        StepError: A path names no file that can be given a bug.
    """
    parser = argparse.ArgumentParser("dev.py mutate", description="Seed one-line bugs and name those no test catches.")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="a folder, a file, or FILE:LINE; else everything")
    parser.add_argument("--count", type=int, default=20, help="how many bugs (20)")
    parser.add_argument("--seed", type=int, help="draws the same bugs again in the same tree")
    parser.add_argument("--jobs", type=int, default=1, help="copies of the tree that work side by side (1)")
    parser.add_argument("--seconds", type=float, default=120, help="of tests for each bug (120)")
    asked = parser.parse_args(args)
    seed = asked.seed if asked.seed is not None else random.randrange(10**6)
    bugs = draw(candidates(root, list(packages.values()), asked.paths), asked.count, seed)
    say(f"{len(bugs)} bugs, seed {seed}")
    verdicts = run(bugs, root, packages, asked.jobs, asked.seconds)
    survivors = [verdict.bug for verdict in verdicts if not verdict.caught_by]
    for bug in survivors:
        say(f"\nsurvived: {_place(bug, root)}, {bug.kind} in {bug.scope or 'the module'}")
        say(bug.diff(bug.file.read_bytes()))
    caught = len(verdicts) - len(survivors)
    say(f"\n{caught} of {len(verdicts)} caught; seed {seed}")
    return int(caught < ENOUGH * len(verdicts))


def candidates(root: Path, folders: list[Path], paths: list[str]) -> list[Bug]:
    """Every bug that the named files can be given; without a name, those of every folder.

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
    """`count` different ones at random, each kind as likely as another; all of them where there are fewer."""
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


def run(bugs: list[Bug], root: Path, packages: dict[str, Path], jobs: int, seconds: float) -> list[Verdict]:
    """Try each bug; a line for each as it is done."""
    cache = root / ".cache" / "mutate"
    trials = Trials(Choice(root, cache / "seconds.json"), seconds)
    free: SimpleQueue[Copy] = SimpleQueue()
    for number in range(min(jobs, len(bugs))):
        free.put(Copy(root, cache / f"copy-{number}", packages))
    done = 0

    def one(bug: Bug) -> Verdict:
        nonlocal done
        copy = free.get()
        try:
            verdict = trials.verdict(bug, copy)
        finally:
            free.put(copy)
        with trials.lock:
            done += 1
            said = (
                f"caught by {verdict.caught_by}"
                if verdict.caught_by
                else f"SURVIVED {verdict.files} of {verdict.of} test files"
            )
            say(f"[{done}/{len(bugs)}] {_place(bug, root)} {bug.kind}: {said}, {verdict.seconds:.0f} s")
        return verdict

    with ThreadPoolExecutor(max(jobs, 1)) as pool:
        return list(pool.map(one, bugs))


class Trials:
    """Runs tests on bugs, and leaves out test files that fail without one."""

    def __init__(self, choice: Choice, seconds: float) -> None:
        self.choice, self.limit = choice, seconds
        self.lock = Lock()
        self.sound: dict[str, bool] = {}  # test files, once they caught something: whether they pass without a bug

    def verdict(self, bug: Bug, copy: Copy) -> Verdict:
        start, ran = time.monotonic(), 0
        concerned = self.choice.tests_for(bug)
        for batch in batches(concerned):
            tests = [test for test in batch if self.sound.get(test, True)]
            while tests and (left := self.limit - (time.monotonic() - start)) > 0:
                copy.seed(bug)
                try:
                    outcome = copy.run(tests, left)
                finally:
                    copy.mend(bug)
                with self.lock:
                    self.choice.learn(outcome.seconds)
                if not outcome.failed:
                    ran += len(outcome.seconds)
                    break
                culprit = outcome.failed.partition("::")[0].partition(" ")[0]
                suspects = [culprit] if culprit in tests else tests  # pytest itself may have ended badly
                if all(self._passes_without(test, copy) for test in suspects):
                    return Verdict(bug, outcome.failed, ran, len(concerned), time.monotonic() - start)
                tests = [test for test in tests if self.sound.get(test, True)]
        return Verdict(bug, "", ran, len(concerned), time.monotonic() - start)

    def _passes_without(self, test: str, copy: Copy) -> bool:
        if test not in self.sound:
            self.sound[test] = not copy.run([test], 600).failed
            if not self.sound[test]:
                say(f"{test} fails without a bug in the copy: left out")
        return self.sound[test]


def _place(bug: Bug, root: Path) -> str:
    return f"{bug.file.relative_to(root).as_posix()}:{bug.line}"
