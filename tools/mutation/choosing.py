"""Which tests concern a bug, and in which order: those most likely to catch it per second first."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
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
UNKNOWN_SECONDS = 0.5  # of a test that was not measured


class Choice:
    """The test files of a tree, what each is known to execute, and the words in each."""

    def __init__(self, root: Path, learned: Learned) -> None:
        self.root, self.learned = root, learned

    def folders(self, bug: Bug) -> tuple[str, ...]:
        """The test folders that concern a bug."""
        found = [TESTS[folder.as_posix()] for folder in self._path(bug).parents if folder.as_posix() in TESTS]
        return tuple(folder for folder in (found or [("tests",)])[0] if (self.root / folder).is_dir())

    def tests_for(self, bug: Bug, items: Iterable[str]) -> list[str]:
        """Those of `items` that may catch the bug, best first.

        First what is known to execute the bug's line, then its function; then other parametrizations of those tests,
        then the tests of files that have the words around the bug in them. Within each of the four, the first
        parametrization of every test function comes before the second of any.
        """
        known = {covering.test: covering for covering in self.learned.covering(self._path(bug).as_posix(), bug.line)}
        functions = {test.partition("[")[0] for test in known}
        score = self._scores(bug)
        rank: Counter[tuple[int, str]] = Counter()

        def group(item: str) -> int:
            if item in known:
                return 0 if known[item].on_line else 1
            return 2 if item.partition("[")[0] in functions else 3

        def cost(item: str) -> float:
            covering = known.get(item)
            seconds = covering.seconds if covering else UNKNOWN_SECONDS
            return (seconds + 0.05) / (0.02 + score[item.partition("::")[0]] + (covering.rarity if covering else 0.0))

        ordered = []
        for item in sorted(items, key=cost):
            place = group(item), item.partition("[")[0]
            if place[0] == 3 and not score[item.partition("::")[0]]:
                continue
            ordered.append((place[0], rank[place], item))
            rank[place] += 1
        return [item for *_, item in sorted(ordered, key=lambda entry: entry[:2])]

    def _scores(self, bug: Bug) -> dict[str, float]:
        """How much each test file has to do with a bug, by its words: 0 for nothing."""
        names, own = self._names_around(bug), parts_of(self._path(bug).with_suffix("").parts[1:])
        scores = defaultdict(float)
        for file, words in self._words.items():
            score = sum(1 / self._spread[name] for name in names & words)
            scores[file] = score + len(own & parts_of(Path(file).with_suffix("").parts[1:]))
        return scores

    def _path(self, bug: Bug) -> Path:
        return bug.file.relative_to(self.root)

    @cached_property
    def _words(self) -> dict[str, set[str]]:
        return {
            file.relative_to(self.root).as_posix(): words_of(file.read_text(encoding="utf-8"))
            for file in sorted((self.root / "tests").rglob("test_*.py"))
        }

    @cached_property
    def _spread(self) -> Counter[str]:
        """In how many test files each word is."""
        return Counter(word for words in self._words.values() for word in words)

    def _names_around(self, bug: Bug) -> set[str]:
        path = bug.file.relative_to(self.root).with_suffix("").parts[1:]
        near = bug.file.read_text(encoding="utf-8").splitlines()[max(bug.line - 4, 0) : bug.line + 3]
        return parts_of([*path, *bug.scope.split(".")]) | words_of("\n".join(near))


def words_of(text: str) -> set[str]:
    """The names in a text, and the parts of those with underscores, in lower case."""
    return parts_of(set(WORD.findall(text)))


def parts_of(names: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for name in names:
        pieces = [piece for piece in re.split(r"_+", name.lower()) if len(piece) > 2]
        found.update(pieces)
        found.add(name.lower().strip("_"))
    return found - {""}


def batches(tests: Sequence[str]) -> Iterator[list[str]]:
    """A few first, then more and more, each batch from one test folder after the other: most bugs are caught by the
    first, and a batch costs a fork and the fixtures of its tests."""
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
