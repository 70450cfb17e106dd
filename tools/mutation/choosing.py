"""Selects and orders the tests for a bug: those most likely to catch it per second first."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import accumulate
from pathlib import Path

from .bugs import Bug
from .learned import Learned

# Test folders by folder of the distribution, the longest that fits; without an entry every test concerns a file.
TESTS = {
    "codegen": ("tests/codegen", "tests/conformance", "tests/models", "tests/cli", "tests/fuzz"),
    "core": (
        "tests/core",
        "tests/codegen",
        "tests/conformance",
        "tests/cli",
        "tests/fuzz",
        "tests/models",
        "tests/contract",
    ),
    "core/autodiff": ("tests/autodiff", "tests/core"),
    "core/batch": ("tests/batch", "tests/cli"),
    "core/burnpack": ("tests/core", "tests/store", "tests/fuzz", "tests/cli", "tests/codegen", "tests/wgpu"),
    "core/data": ("tests/data",),
    "core/host/quantization": ("tests/quantization", "tests/cli", "tests/micro"),
    "core/host/data": ("tests/data", "tests/fuzz"),
    "core/onnxruntime": ("tests/codegen", "tests/session", "tests/cli", "tests/store"),
    "core/optim": ("tests/optim",),
    "core/session": ("tests/session", "tests/cli"),
    "core/store": ("tests/store", "tests/core"),
    "core/train": ("tests/train",),
    "core/training_step": ("tests/training_step", "tests/optim"),
    "micro": ("tests/micro",),
    "wgpu_backend": ("tests/wgpu", "tests/plans", "tests/core", "tests/conformance", "tests/fuzz", "tests/session"),
    "wgpu_backend/browser": ("tests/browser",),
    "wgpu_backend/llvm": ("tests/native",),
    "wgpu_backend/wasm": ("tests/wasm", "tests/native", "tests/fuzz"),
}
# Test folders that try the tree's tools, documents and examples, or the distribution as a whole.
NOT_OF_ONE_FOLDER = ("tests/digits", "tests/docs", "tests/examples", "tests/setup", "tests/soak")
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PIECE = re.compile(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z0-9]+")  # of snake_case and CamelCase
UNKNOWN_SECONDS = 0.5  # of a test when none of its file was measured
LEAD = 20  # seconds for the tests that are known to execute a bug's line, before other tests get their turn
# The share of the time that a test has, relative to one whose file and name fit the bug's words best.
ON_LINE = 4.0  # it or another parametrization of it executes the line
IN_FUNCTION = 2.0  # ... the function around the line
ELSEWHERE = 0.5  # at most, if it was measured and does not execute the function
NEIGHBOR = 0.3  # at least, if another test of its file executes the function
FIRST_BATCH, LAST_BATCH = 2.0, 24.0  # seconds


class Choice:
    """The test files of a tree, the lines each is known to execute, and the words in each."""

    def __init__(self, root: Path, learned: Learned) -> None:
        self.root, self.learned = root, learned

    def folders(self, bug: Bug) -> tuple[str, ...]:
        """The test folders that concern a bug: those that `TESTS` names, and those of tests that execute its line."""
        path = self._path(bug)
        found = [TESTS[folder.as_posix()] for folder in path.parents if folder.as_posix() in TESTS]
        named = (found or [("tests",)])[0]
        covering = self.learned.covering(path.as_posix(), bug.line)
        others = sorted({room_of(c.test) for c in covering if c.on_line} - set(NOT_OF_ONE_FOLDER))
        folders = dict.fromkeys([*named, *(others if found else ())])
        return tuple(folder for folder in folders if (self.root / folder).is_dir())

    def tests_for(self, bug: Bug, items: Sequence[str]) -> list[str]:
        """Those of `items` that may catch the bug, best first; the caller stops when its time is used.

        First those known to execute the bug's line, one parametrization of each test function before the second, fast
        and specific ones before others, as long as they take `LEAD` seconds. Then, since only a sample was measured,
        and not other processes, all other tests of the files that may concern the bug. The files take turns, so that a
        slow one does not use all the time: one whose tests execute the line gets more of it than one whose tests
        execute the function, and that one more than one that only has the words around the bug in it.
        """
        known = {covering.test: covering for covering in self.learned.covering(self._path(bug).as_posix(), bug.line)}
        on_line = {test.partition("[")[0] for test, covering in known.items() if covering.on_line}
        functions = {test.partition("[")[0] for test in known}
        files = {function.partition("::")[0] for function in functions}
        score, seconds, measured = self._scores(bug, items), self.estimated(items), self.learned.seconds()
        best = max(score.values(), default=0.0) or 1.0

        def weight(item: str) -> float:
            """Its share of the time, relative to that of other tests."""
            function, words = item.partition("[")[0], score[item] / best
            if item in known:
                return ON_LINE if known[item].on_line else IN_FUNCTION
            if item in measured:  # it does not execute the function, at least not in its own process
                return words * ELSEWHERE
            if function in functions:
                return ON_LINE if function in on_line else IN_FUNCTION
            return max(words, NEIGHBOR) if item.partition("::")[0] in files else words

        def cost(item: str) -> float:
            covering = known.get(item)
            return (seconds[item] + 0.05) / (0.02 + score[item] + (covering.rarity if covering else 0.0))

        by_cost = sorted(items, key=cost)
        times: Counter[str] = Counter()  # parametrizations of a test function so far
        executing: list[tuple[int, str]] = []
        for item in by_cost:
            if item in known and known[item].on_line:
                times[item.partition("[")[0]] += 1
                executing.append((times[item.partition("[")[0]], item))
        executing.sort(key=lambda entry: entry[0])
        until = accumulate(seconds[item] for _, item in executing)
        lead = [item for (_, item), used in zip(executing, until, strict=True) if used <= LEAD]
        first = set(lead)
        times.clear()
        weighted = []
        for item in by_cost:
            if item not in first and (share := weight(item)):
                function = item.partition("[")[0]
                times[function] += 1
                weighted.append((times[function] / share, item, share))
        weighted.sort(key=lambda entry: entry[0])
        spent: Counter[str] = Counter()  # the time of a test file so far, by its tests' weights
        turns = []
        for _, item, share in weighted:
            file = item.partition("::")[0]
            spent[file] += (seconds[item] + 0.02) / share
            turns.append((spent[file], item))
        return lead + [item for _, item in sorted(turns)]

    def estimated(self, items: Sequence[str]) -> dict[str, float]:
        """The seconds of each test: as measured, or the mean of its function's or of its file's measured tests."""
        known = self.learned.seconds()
        sums: dict[str, tuple[float, int]] = {}
        for test, time in known.items():
            for place in (test.partition("[")[0], test.partition("::")[0]):
                total, count = sums.get(place, (0.0, 0))
                sums[place] = total + time, count + 1
        means = {place: total / count for place, (total, count) in sums.items()}
        return {
            item: known.get(
                item, means.get(item.partition("[")[0], means.get(item.partition("::")[0], UNKNOWN_SECONDS))
            )
            for item in items
        }

    def _scores(self, bug: Bug, items: Sequence[str]) -> dict[str, float]:
        """How related each test is to a bug, by the words of its file and its name; 0 for unrelated."""
        names, own = self._names_around(bug), parts_of(self._path(bug).with_suffix("").parts[1:])
        of_file = defaultdict(float)
        for file, words in self._words.items():
            score = sum(1 / self._spread[name] for name in names & words)
            of_file[file] = score + len(own & parts_of(Path(file).with_suffix("").parts[1:]))
        matches = {item: names & words_of(item.partition("::")[2]) for item in items}
        spread = Counter(word for words in matches.values() for word in words)
        return {
            item: of_file[item.partition("::")[0]] + 5 * sum(1 / spread[word] for word in words)
            for item, words in matches.items()
        }

    def _path(self, bug: Bug) -> Path:
        return bug.file.relative_to(self.root)

    @cached_property
    def _words(self) -> dict[str, frozenset[str]]:
        return {
            file.relative_to(self.root).as_posix(): words_of(file.read_text(encoding="utf-8"))
            for file in sorted((self.root / "tests").rglob("test_*.py"))
        }

    @cached_property
    def _spread(self) -> Counter[str]:
        """The number of test files that contain each word."""
        return Counter(word for words in self._words.values() for word in words)

    def _names_around(self, bug: Bug) -> set[str]:
        path = bug.file.relative_to(self.root).with_suffix("").parts[1:]
        near = bug.file.read_text(encoding="utf-8").splitlines()[max(bug.line - 4, 0) : bug.line + 3]
        return parts_of([*path, *bug.scope.split(".")]) | words_of("\n".join(near))


@cache
def words_of(text: str) -> frozenset[str]:
    """The names in a text, and the parts of those with underscores or capitals, in lower case."""
    return frozenset(parts_of(set(WORD.findall(text))))


def parts_of(names: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for name in names:
        found.update(piece.lower() for piece in PIECE.findall(name) if len(piece) > 2)
        found.add(name.lower().strip("_"))
    return found - {""}


def batches(tests: Sequence[str], seconds: Mapping[str, float]) -> Iterator[list[str]]:
    """Batches of growing length in seconds, each split by test folder.

    Most bugs are caught by the first tests, and each batch costs a fork and the fixtures of its tests.
    """
    at, most = 0, FIRST_BATCH
    while at < len(tests):
        by_room: dict[str, list[str]] = {}
        used = 0.0
        while at < len(tests) and used < most:
            by_room.setdefault(room_of(tests[at]), []).append(tests[at])
            used += seconds[tests[at]] + 0.02
            at += 1
        yield from by_room.values()
        most = min(most * 3, LAST_BATCH)


def room_of(test: str) -> str:
    """The folder of a test: tests/core for tests/core/test_x.py::test_y."""
    return "/".join(test.partition("::")[0].split("/")[:2])
