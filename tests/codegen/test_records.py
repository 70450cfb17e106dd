"""`records.dataclass` makes the same class as `dataclasses.dataclass`, but when the first instance is created."""

from __future__ import annotations

import ast
import dataclasses
import threading
from abc import ABC
from typing import Any, ClassVar, Generic, TypeVar

import pytest
from emberlet.codegen import records

from tools.paths import ROOT

T = TypeVar("T")


def classes(dataclass: Any) -> dict[str, Any]:
    """The same classes by either decorator."""

    @dataclass(frozen=True)
    class Base(ABC, Generic[T]):
        name: str
        held: T
        kind: ClassVar[str] = "base"

    @dataclass(frozen=True)
    class Longer(Base[int]):
        more: tuple[int, ...] = ()
        hidden: str = dataclasses.field(default="h", repr=False)

    class Plain(Longer):
        kind = "plain"

    @dataclass(frozen=True)
    class Empty:
        pass

    @dataclass(frozen=True)
    class One:
        x: int

    @dataclass
    class Open:
        x: int = 1
        found: list[int] = dataclasses.field(default_factory=list)

    return {c.__name__: c for c in (Base, Longer, Plain, Empty, One, Open)}


OURS, THEIRS = classes(records.dataclass), classes(dataclasses.dataclass)
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("Plain", ("n", 3), {}), ("Longer", ("n", 3, (1, 2)), {"hidden": "x"}), ("Base", ("n", "t"), {}), ("Empty", (), {}),
    ("One", (4,), {}), ("One", (), {"x": 4}), ("Open", (), {}), ("Open", (2, [3]), {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "keywords"), CALLS)
def test_instances_are_those_of_the_standard_library(name: str, args: Any, keywords: Any) -> None:
    ours, theirs = OURS[name](*args, **keywords), THEIRS[name](*args, **keywords)
    assert vars(ours) == vars(theirs)
    assert repr(ours) == repr(theirs)
    assert OURS[name].__match_args__ == THEIRS[name].__match_args__
    assert [f.name for f in dataclasses.fields(ours)] == [f.name for f in dataclasses.fields(theirs)]
    assert ours == OURS[name](*args, **keywords) and ours != object() and dataclasses.replace(ours) == ours
    if name == "Open":
        assert ours != OURS[name](5) and type(ours).__hash__ is None
        ours.x = 7
        assert ours.x == 7 and OURS[name]().found is not OURS[name]().found
        return
    assert hash(ours) == hash(theirs)
    for change in (lambda: setattr(ours, "x", 1), lambda: delattr(ours, "x")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            change()


def test_threads_may_make_the_first_instance_together() -> None:
    for _ in range(20):
        kinds = classes(records.dataclass)
        ready, found = threading.Barrier(4), []

        def make(kinds: Any = kinds, ready: Any = ready, found: Any = found) -> None:
            ready.wait()
            found.append((kinds["Plain"]("n", 3), kinds["Longer"]("n", 3), kinds["Base"]("n", 3)))

        threads = [threading.Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 4 and len(set(found)) == 1


def test_what_is_imported_at_the_start_uses_them() -> None:
    """The standard decorator takes 0.3 ms for each class of a file that is imported."""
    own = {"generation.py", "records.py"}  # a result for users, and the decorator itself
    wrong = []
    for file in sorted((ROOT / "codegen").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "dataclasses" and file.name not in own:
                wrong += [str(file.relative_to(ROOT)) for a in node.names if a.name == "dataclass"]
    assert not wrong
