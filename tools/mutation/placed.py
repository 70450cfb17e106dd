"""`dev.py mutate --placed`: bugs placed by hand, and the contract (tests/contract) alone to catch them.

placed/*.toml has the bugs, a file for each room of the product:

    first = ["programs", "large"]      # kinds of cases (tests/contract/kinds) that are to run first,
    backends = ["numpy"]               # and on which backends

    [[bug]]
    file = "core/host/numpy_backend/compile/blocks.py"
    what = "the last block of a chain is left out"
    old = "stop = min(start + count, shape[axis])"     # occurs once in the file
    new = "stop = start + count"

Each bug is written into a copy of the tree. The kinds that the room names run first, in a fork of a process that has
imported the product and knows what eager NumPy gives; then, in one that imports the product anew, they and the whole
contract, until something fails: with one seed (`--seed`), so that verdicts repeat, and without making failures smaller.
Verdicts are kept in .cache/mutate, so that a later run can try those that are `--left`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from ..steps import StepError, say
from .copies import Copy

FOLDER = Path(__file__).with_name("placed")
PAGE = Path("benches/results/placed_bugs.md")
ENOUGH = 195 / 200
SCRIPT = Path(__file__).with_name("contract_room.py")
WARM_LIMIT = 60.0  # seconds of processor time for the kinds that run first
SOUND = 30.0  # seconds of processor time for these kinds without a bug
LIMIT = 960.0  # seconds of processor time for the contract: 8 minutes of two cores


class Bug(NamedTuple):
    """A bug, with the interface of copies.py. first, backends: which cases run first."""

    room: str
    number: int
    name: str
    what: str
    old: str
    new: str
    first: tuple[str, ...]
    backends: tuple[str, ...]
    file: Path

    def apply(self, text: bytes) -> bytes:
        return text.replace(self.old.encode(), self.new.encode())

    @property
    def key(self) -> str:
        """A digest of what is changed."""
        return hashlib.sha256("\0".join((self.name, self.old, self.new)).encode()).hexdigest()[:16]


class Verdict(NamedTuple):
    """caught: the test that failed, or empty; why: what it said; seconds: of processor time; commit: of the tree."""

    bug: Bug
    caught: str
    why: str
    seconds: float
    commit: str


class Kept:
    """The verdicts of all runs, the latest of each bug."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        self.rows: dict[str, list[Any]] = {key: rest for key, *rest in map(json.loads, lines)}

    def add(self, verdict: Verdict) -> None:
        self.rows[verdict.bug.key] = row = [verdict.caught, verdict.why, verdict.seconds, verdict.commit]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([verdict.bug.key, *row]) + "\n")

    def verdict(self, bug: Bug) -> Verdict | None:
        return Verdict(bug, *self.rows[bug.key]) if bug.key in self.rows else None


def bugs(root: Path, folder: Path = FOLDER) -> list[Bug]:
    """All bugs.

    Raises:
        StepError: The old text of a bug does not occur exactly once, or nothing changes.
    """
    found, wrong = [], []
    for listed in sorted(folder.glob("*.toml")):
        data = tomllib.loads(listed.read_text(encoding="utf-8"))
        for number, entry in enumerate(data["bug"], 1):
            first = tuple(entry.get("first", data["first"]))
            bug = Bug(
                listed.stem,
                number,
                entry["file"],
                entry["what"],
                entry["old"],
                entry["new"],
                first,
                tuple(entry.get("backends", data["backends"])),
                root / entry["file"],
            )
            times = bug.file.read_text(encoding="utf-8").count(bug.old) if bug.file.is_file() else 0
            if times != 1 or bug.old == bug.new:
                wrong.append(
                    f"{listed.name}, bug {number} ({bug.what}): its old text occurs {times} times in {bug.name}"
                )
            found.append(bug)
    if wrong:
        raise StepError("\n".join(["placed bugs that do not fit the tree any more:", *wrong]))
    return found


class Room:
    """A process in a copy of the tree that runs the contract. kinds: for which it is warm; none for a cold one."""

    def __init__(self, copy: Copy, seed: int, kinds: Sequence[str] = ()) -> None:
        self.copy, self.seed, self.kinds = copy, seed, kinds
        environment = {
            **os.environ,
            "PYTHONDONTWRITEBYTECODE": "",  # each fork imports the copy
            "PYTHONPATH": os.pathsep.join([str(copy.folder / ".cache" / "imports"), str(copy.folder)]),
            "EMBERLET_VENV": sys.prefix,
            "EMBERLET_CONTRACT_SEED": str(seed),
        }
        self.process = subprocess.Popen(
            [sys.executable, str(SCRIPT), *kinds],
            cwd=copy.folder,
            env=environment,
            text=True,
            encoding="utf-8",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise StepError("the process that runs the contract has ended")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def run(
        self,
        seconds: float,
        bug: Bug | None = None,
        sound: str = "",
        first: Sequence[str] = (),
        backends: Sequence[str] = (),
    ) -> dict[str, Any]:
        asked: dict[str, Any] = {"first": first, "backends": backends, "seconds": seconds}
        if bug is not None:
            file = os.path.realpath(self.copy.folder / bug.name)
            asked |= {"first": bug.first, "backends": bug.backends, "file": file, "sound": sound}
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def again(self) -> Room:
        """A new process in the place of this one."""
        self.process.kill()
        self.process.wait()
        return Room(self.copy, self.seed, self.kinds)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


class Rooms:
    """A copy of the tree with a warm process and a cold one."""

    def __init__(self, copy: Copy, seed: int, kinds: Sequence[str]) -> None:
        self.copy = copy
        self.warm, self.cold = Room(copy, seed, kinds), Room(copy, seed)

    def verdict(self, bug: Bug, seconds: float, commit: str) -> Verdict:
        """seconds: of processor time. With fewer than LIMIT, the whole contract does not run."""
        try:
            answer = self._answer(bug, seconds)
        except (StepError, OSError):  # the system has ended a process, such as for its memory
            self.warm, self.cold = self.warm.again(), self.cold.again()
            answer = self._answer(bug, seconds)
        if answer["over"] and seconds < LIMIT:
            return Verdict(bug, "", "not decided", answer["seconds"], commit)
        return Verdict(bug, answer["caught"], answer["why"], answer["seconds"], commit)

    def _answer(self, bug: Bug, seconds: float) -> dict[str, Any]:
        self.copy.seed(bug)  # type: ignore[arg-type]
        try:
            answer = self.warm.run(min(seconds, WARM_LIMIT), bug, self.copy.sound.decode())
            if (answer["over"] or not answer["caught"]) and seconds > answer["seconds"]:
                answer = self.cold.run(seconds, bug)
        finally:
            self.copy.mend(bug)  # type: ignore[arg-type]
        return answer

    def close(self) -> None:
        self.warm.close()
        self.cold.close()


def main(args: list[str], root: Path, packages: dict[str, Path]) -> int:
    """Try the bugs. Returns 0 where at least 195 of 200 are caught, else 1.

    Raises:
        StepError: The list does not fit the tree, a name fits no bug, or the contract fails without a bug.
    """
    parser = argparse.ArgumentParser("dev.py mutate --placed", description="Try bugs placed by hand on the contract.")
    parser.add_argument("names", nargs="*", metavar="ROOM[:NUMBER]", help="some of the bugs; all")
    parser.add_argument("--seed", type=int, default=1, help="the contract's seed (1)")
    parser.add_argument("--jobs", type=int, default=1, help="copies of the tree that work side by side (1)")
    parser.add_argument(
        "--seconds",
        type=float,
        default=LIMIT,
        help=f"of processor time for a bug; with fewer than {LIMIT:.0f}, some are not decided",
    )
    parser.add_argument("--left", action="store_true", help="only those that no run has caught yet")
    parser.add_argument("--resume", action="store_true", help="only those that no run has tried on this commit")
    parser.add_argument("--write", action="store_true", help=f"write the latest verdict of each bug to {PAGE}")
    asked = parser.parse_args(args)
    if not hasattr(os, "fork"):
        raise StepError("dev.py mutate forks its test processes, which this system cannot do: use Linux or macOS")
    every = bugs(root)
    chosen = [b for b in every if not asked.names or {b.room, f"{b.room}:{b.number}"} & set(asked.names)]
    kept = Kept(root / ".cache" / "mutate" / "placed.jsonl")
    commit = subprocess.run(
        ["git", "rev-parse", "--short=8", "HEAD"], cwd=root, capture_output=True, check=True, encoding="utf-8"
    ).stdout.strip()
    if not chosen:
        raise StepError(f"no bug is named so; rooms: {', '.join(sorted({b.room for b in every}))}")
    if asked.left:
        chosen = [b for b in chosen if (known := kept.verdict(b)) is None or not known.caught]
    if asked.resume:
        chosen = [b for b in chosen if (known := kept.verdict(b)) is None or known.commit != commit]
    # So that a run that is ended early has seen all rooms, and first what no run has tried.
    chosen.sort(key=lambda b: (kept.verdict(b) is not None, b.number, b.room))
    caught, tried = _tried(root, chosen, asked, kept, commit, packages) if chosen else (0, 0)
    if asked.write:
        (root / PAGE).write_text(page(every, kept), encoding="utf-8")
    return int(caught < ENOUGH * tried)


def _tried(
    root: Path, chosen: list[Bug], asked: argparse.Namespace, kept: Kept, commit: str, packages: dict[str, Path]
) -> tuple[int, int]:
    """(how many of the bugs were caught, how many there are)."""
    start = time.monotonic()
    jobs = min(asked.jobs, len(chosen))
    kinds = sorted({kind for bug in chosen for kind in bug.first})
    cache = root / ".cache" / "mutate"
    rooms = [Rooms(Copy(root, cache / f"placed-{k}", packages), asked.seed, kinds) for k in range(jobs)]
    # Without a bug: all of the contract, or the first cases of the kinds that come first.
    backends = sorted({backend for bug in chosen for backend in bug.backends})
    whole = asked.seconds >= LIMIT
    sound = rooms[0].cold.run(LIMIT) if whole else rooms[0].warm.run(SOUND, first=kinds, backends=backends)
    if sound["caught"] and not sound["over"]:
        raise StepError(f"the contract fails without a bug: {sound['caught']}: {sound['why']}")
    if whole:
        say(f"without a bug, the contract takes {sound['seconds']:.0f} s of processor time")
    say(f"{len(chosen)} bugs on {commit}")
    free: SimpleQueue[Rooms] = SimpleQueue()
    for room in rooms:
        free.put(room)

    def one(bug: Bug) -> Verdict:
        room = free.get()
        try:
            verdict = room.verdict(bug, asked.seconds, commit)
        finally:
            free.put(room)
        kept.add(verdict)
        said = f"{kind(verdict.caught)}: {verdict.why}" if verdict.caught else f"SURVIVED {verdict.why}"
        say(f"{bug.room}:{bug.number} {bug.what}: {said} ({verdict.seconds:.0f} s)")
        return verdict

    with ThreadPoolExecutor(jobs) as pool:
        verdicts = list(pool.map(one, chosen))
    for room in rooms:
        room.close()
    caught = sum(bool(v.caught) for v in verdicts)
    say(f"\n{caught} of {len(verdicts)} caught in {time.monotonic() - start:.0f} s")
    return caught, len(verdicts)


def kind(test: str) -> str:
    """What caught a bug: the contract's kind of cases, or the file of its tests."""
    if "test_contract.py" in test:
        return test.partition("[")[2].rstrip("]")
    return Path(test.partition("::")[0]).stem.removeprefix("test_").replace("_", " ") if "::" in test else "the process"


def page(every: Sequence[Bug], kept: Kept) -> str:
    """The latest verdicts, as Markdown."""
    verdicts = [found for b in every if (found := kept.verdict(b)) is not None]
    caught = [v for v in verdicts if v.caught]
    kinds = Counter(kind(v.caught) for v in caught)
    lines = [
        "# Bugs placed by hand",
        "",
        "Written by `python3 dev.py mutate --placed --write`. The bugs are in tools/mutation/placed; only the contract",
        "(tests/contract) runs. A run decides the bugs it is asked for; the others keep their latest verdict: these",
        f"are from {len({v.commit for v in verdicts})} states of the tree.",
        "",
        f"**{len(every)} are placed, {len(verdicts)} were tried, {len(caught)} are caught**, "
        f"each in {sum(v.seconds for v in caught) / max(1, len(caught)):.0f} seconds of processor time on average.",
        "",
        "| room | placed | tried | caught |",
        "|---|---:|---:|---:|",
    ]
    for room in sorted({b.room for b in every}):
        placed, tried, of = (
            sum(b.room == room for b in g) for g in (every, [v.bug for v in verdicts], [v.bug for v in caught])
        )
        lines.append(f"| {room} | {placed} | {tried} | {of} |")
    lines += ["", "| caught first by | bugs |", "|---|---:|"]
    lines += [f"| {name} | {count} |" for name, count in kinds.most_common()]
    for title, chosen in (
        ("Survivors", [v for v in verdicts if not v.caught and not v.why]),
        ("Not decided in the time that was given", [v for v in verdicts if not v.caught and v.why]),
    ):
        lines += ["", f"## {title}", ""] if chosen else []
        lines += [f"- {v.bug.room} {v.bug.number}, {v.bug.name}: {v.bug.what} ({v.seconds:.0f} s)." for v in chosen]
    return "\n".join(lines) + "\n"
