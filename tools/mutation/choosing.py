"""Which tests concern a bug, and in which order: those most likely to catch it per second first."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

from .bugs import Bug

# Test folders by folder of the distribution, the longest that fits; without an entry every test concerns a file.
TESTS = {
    "codegen": ("tests/codegen", "tests/conformance", "tests/models", "tests/cli", "tests/fuzz"),
    "core": ("tests/core", "tests/codegen", "tests/conformance", "tests/cli", "tests/fuzz", "tests/models"),
    "micro": ("tests/micro",),
    "wgpu_backend": ("tests/wgpu", "tests/core", "tests/conformance", "tests/fuzz"),
    "wgpu_backend/browser": ("tests/browser",),
}
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
UNKNOWN_SECONDS = 5.0


class Choice:
    """The test files of a tree, with the words in each and the seconds each took."""

    def __init__(self, root: Path, seconds_file: Path) -> None:
        self.root, self.seconds_file = root, seconds_file
        self.seconds: dict[str, float] = {}
        if seconds_file.exists():
            self.seconds = json.loads(seconds_file.read_text(encoding="utf-8"))

    def tests_for(self, bug: Bug) -> list[str]:
        """Test files, best first. A file that names what is around the bug is likely to run it."""
        path = bug.file.relative_to(self.root)
        folders = [TESTS[folder.as_posix()] for folder in path.parents if folder.as_posix() in TESTS]
        below = tuple(f"{folder}/" for folder in (folders or [("tests",)])[0])
        names, own = self._names_around(bug), parts_of(path.with_suffix("").parts[1:])

        def cost(file: str) -> float:
            score = sum(1 / self._spread[name] for name in names & self._words[file])
            score += 0.05 if file.startswith(below[0]) else 0.0
            score += len(own & parts_of(Path(file).with_suffix("").parts[1:]))  # tests/…/test_pooling.py for pooling.py
            return max(self.seconds.get(file, UNKNOWN_SECONDS), 0.5) / (0.02 + score)

        return sorted((file for file in self._words if file.startswith(below)), key=cost)

    def learn(self, seconds: dict[str, float]) -> None:
        """Remember how long whole files took."""
        self.seconds.update(seconds)
        self.seconds_file.parent.mkdir(parents=True, exist_ok=True)
        self.seconds_file.write_text(json.dumps(self.seconds, indent=1, sort_keys=True), encoding="utf-8")

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


def batches(files: Sequence[str]) -> list[list[str]]:
    """A few first, then more and more: most bugs are caught by the first, and each batch costs a start of pytest."""
    found, size, at = [], 3, 0
    while at < len(files):
        found.append(list(files[at : at + size]))
        at, size = at + size, size * 3
    return found
