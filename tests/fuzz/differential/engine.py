"""Draws cases of a kind for a given time, and shrinks and prints differences."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import random
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol, cast

from tools import components

from . import kinds

SHRINKING = 60.0  # seconds spent on making one case smaller
SHOWN = 5  # different failures after which a run of a kind ends
DRAWS = 100  # consecutive draws of a kind that may give nothing


class Kind(Protocol):
    """The interface of a module in kinds/; the package's docstring explains it."""

    NEEDS: tuple[str, ...]

    def draw(self, choose: random.Random) -> Any: ...
    def difference(self, case: Any) -> str: ...
    def simpler(self, case: Any) -> Iterable[Any]: ...
    def program(self, case: Any) -> str: ...


class Found(NamedTuple):
    """A case that differs: its number in the run, what differs, and the program that shows it."""

    number: int
    difference: str
    program: str


class Ran(NamedTuple):
    """The outcome of a run of one kind: how many cases were compared, and those that differ."""

    cases: int
    found: list[Found]


def names() -> list[str]:
    """The kinds there are."""
    return sorted(m.name for m in pkgutil.iter_modules(kinds.__path__))


def kind(name: str) -> Kind:
    """The kind of that name."""
    return cast(Kind, importlib.import_module(f"{kinds.__name__}.{name}"))


def run(
    what: Kind,
    seed: int,
    *,
    seconds: float = 1e9,
    first: int = 0,
    count: int = 1 << 40,
    say: Callable[[str], None] = print,
) -> Ran:
    """Compare cases number `first`, `first` + 1, … of `seed`, until `seconds` or `count` are used up."""
    end = time.monotonic() + seconds
    found: list[Found] = []
    done = 0
    while done < count and time.monotonic() < end and len(found) < SHOWN:
        number = first + done
        case = _drawn(what, seed, number)
        difference = what.difference(case)
        done += 1
        if difference:
            case, difference = shrunk(what, case, difference, time.monotonic() + SHRINKING)
            found.append(Found(number, difference, what.program(case)))
            say(f"\ncase {number} of seed {seed} differs: {difference}\n\n{found[-1].program}")
    return Ran(done, found)


def _drawn(what: Kind, seed: int, number: int) -> Any:
    for attempt in range(DRAWS):
        case = what.draw(random.Random(f"{seed}/{number}/{attempt}"))
        if case is not None:
            return case
    raise RuntimeError(f"{DRAWS} draws of case {number} of seed {seed} gave nothing")


def shrunk(what: Kind, case: Any, difference: str, end: float) -> tuple[Any, str]:
    """The smallest case found by `end` (time.monotonic) that still differs, with its difference."""
    smaller = True
    while smaller:
        smaller = False
        for candidate in what.simpler(case):
            if time.monotonic() > end:
                return case, difference
            found = what.difference(candidate)
            if found:
                case, difference, smaller = candidate, found, True
                break
    return case, difference


def main(arguments: Sequence[str]) -> int:
    """The command `dev.py fuzz`; returns 1 if anything differed."""
    parser = argparse.ArgumentParser(prog="dev.py fuzz", description="Differential fuzzing, for as long as it is told.")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"what to compare, of {', '.join(names())}; all")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long, over all kinds; 10")
    parser.add_argument("--seed", type=int, help="the seed of an earlier run; a fresh one is printed otherwise")
    parser.add_argument("--first", type=int, default=0, help="number of the first case; 0")
    parser.add_argument("--count", type=int, default=1 << 40, help="the most cases of each kind")
    parser.add_argument("--write", action="store_true", help="write the table of kinds that have one")
    given = parser.parse_args(list(arguments))
    if unknown := [name for name in given.kinds if name not in names()]:
        parser.error(f"there is no kind {', '.join(unknown)}; there are {', '.join(names())}")
    seed = secrets.randbelow(1 << 32) if given.seed is None else given.seed
    chosen = given.kinds or names()
    differing = 0
    for name in chosen:
        what = kind(name)
        if missing := [c for c in what.NEEDS if components.get(c).find() is None]:
            print(f"fuzz {name}: left out, {', '.join(missing)} is not installed")
            continue
        print(f"fuzz {name}: seed {seed}", flush=True)
        start = time.monotonic()
        ran = run(what, seed, seconds=given.minutes * 60 / len(chosen), first=given.first, count=given.count)
        taken = time.monotonic() - start
        print(f"fuzz {name}: {ran.cases} cases in {taken:.0f} s, {len(ran.found)} of them differ", flush=True)
        differing += len(ran.found)
        if given.write and hasattr(what, "write"):
            what.write(ran.cases, len(ran.found), seed)
    return int(differing > 0)
