"""The lines that each test executes, measured once and cached under .cache/mutate until the test function changes."""

from __future__ import annotations

import ast
import difflib
import hashlib
import pickle
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..steps import say
from .rooms import Room

SAMPLE = 8  # parametrizations of one test function to measure; a fourth of them, if that is more
SECONDS = 120  # of processor time for one test file
NEAR = 3  # the number of lines after a bug's that are used to find the closest tests


@dataclass
class Measured:
    """Some tests of a file: their seconds, and for each file of the distribution the lines they execute."""

    functions: dict[str, str]  # test function -> digest of its text
    seconds: dict[str, float] = field(default_factory=dict)
    lines: dict[str, dict[str, bytes]] = field(default_factory=dict)  # file -> test -> a bit for each line
    sources: dict[str, str] = field(default_factory=dict)  # file -> digest of the text that the lines are of

    def keep(self, functions: set[str]) -> bool:
        """Forget the tests of other functions; whether any is left."""
        self.functions = {function: text for function, text in self.functions.items() if function in functions}
        self.seconds = {test: time for test, time in self.seconds.items() if _function(test) in functions}
        for file, tests in self.lines.items():
            self.lines[file] = {test: bits for test, bits in tests.items() if test in self.seconds}
        return bool(self.functions)


@dataclass
class Covering:
    """A test that executes a line (`on_line`) or only the function around it.

    rarity: the sum, over the line and the few after it that the test executes, of 1 / the number of tests that execute
    it: a line that few tests execute, such as a refusal, is tested best by those tests.
    """

    test: str
    seconds: float
    on_line: bool
    rarity: float


class Learned:
    """The measurements of a tree's tests."""

    def __init__(self, root: Path, folder: Path, below: Sequence[str], seconds: float = 600) -> None:
        """seconds: the processor time that measuring may take; the rest is measured by the next run."""
        self.root, self.folder, self.left = root, folder, seconds
        self.below = tuple(f"{name}/" for name in below)  # the distribution's folders
        self.files: dict[str, list[Measured]] = {}
        for test in sorted((root / "tests").rglob("test_*.py")):
            name = test.relative_to(root).as_posix()
            if (kept := self._file(name)).exists():
                self.files[name] = pickle.loads(kept.read_bytes())

    def learn(self, room: Room, copy: Path) -> None:
        """Run a sample of every test function of the room that is not known yet, or has changed."""
        by_file: dict[str, list[str]] = defaultdict(list)
        for item in room.items:
            by_file[item.partition("::")[0]].append(item)
        for name, items in by_file.items():
            now = _functions((self.root / name).read_text(encoding="utf-8"))
            parts = self.files.get(name, [])
            known = {
                function for part in parts for function, text in part.functions.items() if now.get(function) == text
            }
            unknown = [item for item in items if _function(item) not in known]
            if not unknown or self.left <= 0:
                continue
            measured = Measured({function: now.get(function, "") for function in map(_function, unknown)})
            for test, seconds, lines in room.learn(sample(unknown), copy, SECONDS):
                measured.seconds[test] = seconds
                for file, bits in lines.items():
                    if file.startswith(self.below):
                        measured.lines.setdefault(file, {})[test] = bits
            for file in measured.lines:
                measured.sources[file] = self._keep((copy / file).read_bytes())
            self.files[name] = [*(part for part in parts if part.keep(known)), measured]
            kept = self._file(name)
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(pickle.dumps(self.files[name]))
            self.left -= sum(measured.seconds.values())
            say(f"measured {name}: {len(measured.seconds)} of {len(items)} tests")

    def seconds(self) -> dict[str, float]:
        """The processor time of every test that was measured."""
        return {test: time for measured in self._parts() for test, time in measured.seconds.items()}

    def covering(self, file: str, line: int) -> list[Covering]:
        """The tests that execute the line, or the function around it.

        A line outside the bodies of functions runs when a module is imported. The tests that execute it are then those
        that meet its result: that enter the function whose parameters are declared there, or use the names it binds.
        """
        text = (self.root / file).read_text(encoding="utf-8")
        meets, near, function = _around(text, line)
        moved: dict[str, dict[int, int]] = {}
        found: list[tuple[str, float, list[int]]] = []
        for measured in self._parts():
            if file not in measured.lines:
                continue
            digest = measured.sources[file]
            if digest not in moved:
                moved[digest] = _moved(text, (self.folder / "sources" / digest).read_text(encoding="utf-8"))
            now = moved[digest]
            body = [old for new in function if (old := now.get(new))]
            for test, bits in measured.lines[file].items():
                if any(_has(bits, old) for old in body):
                    executed = [number for number in near if (old := now.get(number)) and _has(bits, old)]
                    found.append((test, measured.seconds[test], executed))
        times = Counter(number for _, _, executed in found for number in executed)
        return [
            Covering(test, seconds, not meets.isdisjoint(executed), sum(1 / times[number] for number in executed))
            for test, seconds, executed in found
        ]

    def _parts(self) -> Iterator[Measured]:
        for parts in self.files.values():
            yield from parts

    def _file(self, test: str) -> Path:
        return self.folder / (test.replace("/", ".") + ".pickle")

    def _keep(self, source: bytes) -> str:
        digest = _digest(source)
        kept = self.folder / "sources" / digest
        if not kept.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(source)
        return digest


def sample(items: Iterable[str]) -> list[str]:
    """Some of each test function's parametrizations, from its first to its last."""
    of_function: dict[str, list[str]] = defaultdict(list)
    for item in items:
        of_function[item.partition("[")[0]].append(item)
    chosen: list[str] = []
    for names in of_function.values():
        chosen += names[:: min(4, max(1, -(-len(names) // SAMPLE)))]
    return chosen


def _function(test: str) -> str:
    """test_y for tests/core/test_x.py::TestX::test_y[0]."""
    return test.partition("[")[0].rpartition("::")[2]


def _functions(text: str) -> dict[str, str]:
    """Function -> a digest of its text and its decorators'."""
    found: dict[str, str] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found[node.name] = found.get(node.name, "") + ast.unparse(node)
    return {name: _digest(text.encode()) for name, text in found.items()}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _has(bits: bytes, line: int) -> bool:
    return line // 8 < len(bits) and bool(bits[line // 8] & 1 << line % 8)


def _moved(new: str, old: str) -> dict[int, int]:
    """Line of the new text -> line of the old one, for the lines that both have."""
    if new == old:
        return {line: line for line in range(1, new.count("\n") + 2)}
    matcher = difflib.SequenceMatcher(None, new.split("\n"), old.split("\n"), autojunk=False)
    return {a + i + 1: b + i + 1 for a, b, size in matcher.get_matching_blocks() for i in range(size)}


def _around(text: str, line: int) -> tuple[set[int], list[int], list[int]]:
    """(the lines that reach a bug in this line when they run, the same and a few lines after them, the function around
    it).

    In a function's body this is the line itself; among its parameters, the body's first line; elsewhere, the lines of
    the file's functions that use a name that the statement binds, which then also stand for the function.
    """
    tree = ast.parse(text)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    around = [node for node in functions if node.lineno <= line <= (node.end_lineno or 0)]
    if around:
        node = max(around, key=lambda node: node.lineno)
        body = list(range(_start(node), (node.end_lineno or 0) + 1))
        first = max(line, body[0])
        return {first}, [number for number in body if first <= number <= first + NEAR], body
    names = {
        name.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign)
        and node.lineno <= line <= (node.end_lineno or 0)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        for name in ast.walk(target)
        if isinstance(name, ast.Name)
    }
    users = {
        max(node.lineno, _start(function))
        for function in functions
        for node in ast.walk(function)
        if (isinstance(node, ast.Name) and node.id in names) or (isinstance(node, ast.Attribute) and node.attr in names)
    }
    lines = sorted(users) or [line]
    return set(lines), lines, lines


def _start(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The first line of a function's body after the docstring."""
    return function.body[len(function.body) > 1 and ast.get_docstring(function) is not None].lineno
