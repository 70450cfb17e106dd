"""Selects and orders the tests for a bug: those most likely to catch it per second first."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from pathlib import Path

from .bugs import Bug
from .learned import Learned

# Test folders by folder of the distribution, the longest that fits; without an entry every test concerns a file.
TESTS = {
    "codegen": ("tests/codegen", "tests/conformance", "tests/models", "tests/cli", "tests/fuzz"),
    "core": ("tests/core", "tests/codegen", "tests/conformance", "tests/cli", "tests/fuzz", "tests/models"),
    "core/batch": ("tests/batch", "tests/cli"),
    "core/session": ("tests/session", "tests/cli"),
    "core/store": ("tests/store", "tests/core"),
    "micro": ("tests/micro",),
    "wgpu_backend": ("tests/wgpu", "tests/core", "tests/conformance", "tests/fuzz", "tests/session"),
    "wgpu_backend/browser": ("tests/browser",),
    "wgpu_backend/wasm": ("tests/wasm", "tests/fuzz"),
}
# Test folders that try the tree's tools, documents and examples, or the distribution as a whole.
NOT_OF_ONE_FOLDER = ("tests/digits", "tests/docs", "tests/examples", "tests/setup", "tests/soak")
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PIECE = re.compile(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z0-9]+")  # of snake_case and CamelCase
UNKNOWN_SECONDS = 0.5  # of a test that was not measured
OTHERS = 300  # the maximum number of tests to run that are not known to execute a bug's line


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
        """Those of `items` that may catch the bug, best first.

        First those known to execute the bug's line, fast and specific ones before others. Then, since only a sample was
        measured, and not other processes: other parametrizations of those tests (of those known to execute the
        function, if none is known to execute the line), then tests whose names or files have
        the words around the bug in them, then those known to execute the function. Within each of the four, the first
        parametrization of every test function comes before the second.
        """
        known = {covering.test: covering for covering in self.learned.covering(self._path(bug).as_posix(), bug.line)}
        executing = [test for test, covering in known.items() if covering.on_line] or list(known)
        functions = {test.partition("[")[0] for test in executing}
        score = self._scores(bug, items)
        rank: Counter[tuple[int, str]] = Counter()

        def group(item: str) -> int:
            if item in known:
                return 0 if known[item].on_line else 3
            return 1 if item.partition("[")[0] in functions else 2

        def cost(item: str) -> float:
            covering = known.get(item)
            seconds = covering.seconds if covering else UNKNOWN_SECONDS
            return (seconds + 0.05) / (0.02 + score[item] + (covering.rarity if covering else 0.0))

        ordered = []
        for item in sorted(items, key=cost):
            place = group(item), item.partition("[")[0]
            if place[0] == 2 and not score[item]:
                continue
            ordered.append((place[0], rank[place], item))
            rank[place] += 1
        ordered.sort(key=lambda entry: entry[:2])
        others = [entry for entry in ordered if entry[0] == 1]
        if others and ordered[0] is others[0]:  # half of what may run, as it is only the function that they execute
            ordered = others[: OTHERS // 2] + ordered[len(others) :]
        on_line = sum(entry[0] == 0 for entry in ordered)
        return [item for *_, item in ordered[: on_line + OTHERS]]

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


def batches(tests: Sequence[str]) -> Iterator[list[str]]:
    """Batches of growing size, each split by test folder.

    Most bugs are caught by the first tests, and each batch costs a fork and the fixtures of its tests.
    """
    at, size = 0, 24
    while at < len(tests):
        by_room: dict[str, list[str]] = {}
        for test in tests[at : at + size]:
            by_room.setdefault(room_of(test), []).append(test)
        yield from by_room.values()
        at, size = at + size, size * 4


def room_of(test: str) -> str:
    """The folder of a test: tests/core for tests/core/test_x.py::test_y."""
    return "/".join(test.partition("::")[0].split("/")[:2])
