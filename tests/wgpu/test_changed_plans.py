"""Saved plans with one thing changed are read or refused, and so are calls that do not fit a plan. The reader needs
no GPU: nothing is allocated or compiled."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from emberlet.errors import EmberletError
from emberlet.wgpu_backend.plan import open_ports, reading
from emberlet.wgpu_backend.plan.ports import Ported

PLANS: dict[str, dict[str, Any]] = {
    "plain": {
        "page_bytes": 256,
        "inputs": [["x", "float32", [4, 4], 0], ["i", "int32", [3], 4]],
        "outputs": [["y", "float32", [2, 8], 3]],
        "indices": [[1, 50]],
        "buffers": [["external", 64], ["external", 600], ["temporary", 64], ["output", 64], ["external", 12]],
        "kernels": [["add", "first"], ["mul", "second"]],
        "steps": {"gpu": [[1, [1, 2, 3], [0, 1, 2], [1, 3, 1]], [0, [1, 1, 1], [2, 3]]]},
        "constants": [[1, "w"]],
    },
    "stored": {
        "inputs": [["x", "int8", [2, 3], 0]],
        "outputs": [["y", "bool", [3], 3]],
        "buffers": [["external", 8], ["external", 128], ["external", 256], ["output", 12]],
        "kernels": [["add", "first"]],
        "steps": {"gpu": [[0, [1, 1, 1], [0, 1, 2, 3]]]},
        "constants": [[1, "w", "q8", "w.scales"], [2, "v", "float16", None]],
    },
    "open": {
        "inputs": [["x", "float32", [[[1, 0]], 2], 0], ["i", "int64", [3, [[1, 1], [2]]], 1]],
        "outputs": [["y", "float32", [[[1, 0], [1, 1]], 4], 2]],
        "indices": [[1, [[1, 0]]]],
        "buffers": [["external", [[8, 0]]], ["external", [[12, 1], [24]]], ["output", [[16, 0], [16, 1]]]],
        "kernels": [["add", "first"]],
        "steps": {"gpu": [[0, [[[1, 2]], [[1, 3]], 1], [0, 1, 2], [1, 1, 1]]]},
        "constants": [],
        "sizes": {
            "symbols": [["length", 1, 16], ["past", 0, 5]],
            "atoms": [0, 1, ["//", [[1, 0], [7]], 8], ["max", [[1, 0]], [[2, 1]]]],
            "block": [[[1, 0]], 7, [[3, 0, 1]]],
            "guards": [[[[1, 0], [-9]], "<", True], [[[1, 0], [-3]], "==", False]],
        },
    },
}
OTHERS = [None, True, -1, 0, 1.5, "4", [], {}, 1 << 33, [[1, 0]]]


def refusal(content: Any) -> str:
    """Why the reader does not take a plan; empty if it does. Raises whatever is no error of a file."""
    try:
        reading.read(content, "gpu")
    except ValueError as error:
        return str(error)
    return ""


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*path, key))


def changes(content: dict[str, Any], path: tuple[Any, ...]) -> Iterator[tuple[str, Callable[[Any, Any], Any]]]:
    """(what it is called, a function of what holds the value and its key) of each change at a place."""
    value: Any = content
    for key in path:
        value = value[key]

    def to(new: Any) -> Callable[[Any, Any], Any]:
        return lambda holder, key: holder.__setitem__(key, new)

    others = list(OTHERS)
    if type(value) is int:
        others += [value - 1, value + 1]
    elif isinstance(value, list):
        others += [value[:-1], [*value, value[-1] if value else None]]
    for new in others:
        if type(new) is not type(value) or new != value:
            yield json.dumps(new), to(new)
    yield "left out", lambda holder, key: holder.__delitem__(key)


@pytest.mark.parametrize("name", list(PLANS))
def test_a_plan_with_one_field_changed_is_read_or_refused(name: str) -> None:
    """By a FormatError with its reason, and never by an error of Python."""
    assert refusal(PLANS[name]) == ""
    refused = 0
    for path in places(PLANS[name]):
        for what, change in changes(PLANS[name], path):
            content = copy.deepcopy(PLANS[name])
            holder: Any = content
            for part in path[:-1]:
                holder = holder[part]
            change(holder, path[-1])
            try:
                refused += bool(refusal(content))
            except Exception as error:
                pytest.fail(f"{' '.join(map(str, path))} {what}: {type(error).__name__}: {error}")
    assert refused > 300


# -- the sizes of calls -----------------------------------------------------------------------------------------------


class Saved(Ported):
    """A plan that is only read."""

    origin = "plan"

    def __init__(self, content: Any) -> None:
        self.plan, self.inputs, self.outputs, _ = reading.read(content, "gpu")
        self.counts = self.plan.counts


def x(rows: int, columns: int = 2, dtype: Any = np.float32) -> Any:
    return np.arange(rows * columns, dtype=dtype).reshape(rows, columns)


def i(columns: int, rows: int = 3, dtype: Any = np.int64) -> Any:
    return np.zeros((rows, columns), dtype)


OPEN_CALLS: dict[str, list[Any]] = {
    **{
        f"lengths {n} and {past}": [x(n), i(past + 2)]
        for n, past in [(1, 0), (2, 5), (3, 1), (8, 5), (9, 0), (16, 6), (17, 0), (0, 0), (4, -1)]
    },
    "bytes": [x(5).tobytes(), i(4).tobytes()],
    "bytes of no whole row": [x(5).tobytes() + b"123", i(4).tobytes()],
    "bytes of one element more": [x(5).tobytes() + b"1234", i(4).tobytes()],
    "a flat array": [x(5).reshape(-1), i(4)],
    "a flat array of one element more": [np.zeros(11, np.float32), i(4)],
    "two axes more": [x(5).reshape(5, 2, 1, 1), i(4)],
    "another fixed axis": [x(5, 3), i(4)],
    "another fixed axis of the second": [x(5), i(4, 2)],
    "the first alone": [x(5), None],
    "the second alone": [None, i(4)],
    "neither": [None, None],
    "one input": [x(5)],
    "three inputs": [x(5), i(4), i(4)],
    "a list": [[1, 2], i(4)],
    "a text": ["12", i(4)],
    "another dtype": [x(5, dtype=np.int32), i(4)],
    "the bits of another dtype": [x(5, dtype=np.uint32), i(4)],
    "another order of bytes": [x(5, dtype=">f4"), i(4)],
    "large integers": [x(5), i(4) + (1 << 40)],
    **{f"the index {n} of 5": [x(5), i(4) + n] for n in (4, 5, -5, -6)},
}  # fmt: skip


CLOSED_CALLS: dict[str, list[Any]] = {
    "arrays": [x(4, 4), np.array([0, 1, 49], np.int32)],
    "bytes": [x(4, 4).tobytes(), bytes(12)],
    "a flat array": [x(4, 4).reshape(-1), np.zeros(3, np.int32)],
    "another shape": [x(2, 8), np.zeros(3, np.int32)],
    "too few": [x(4, 3).reshape(-1), np.zeros(3, np.int32)],
    "too many bytes": [bytes(65), bytes(12)],
    "another dtype": [x(4, 4, np.float64), np.zeros(3, np.int32)],
    "unsigned": [x(4, 4), np.zeros(3, np.uint32)],
    "unchanged": [None, None],
    **{f"the index {n} of 50": [x(4, 4), np.array([0, n, 1], np.int32)] for n in (49, 50, -50, -51, 2**31 - 1)},
    "one input": [x(4, 4)],
    "no array": [3, bytes(12)],
}


TAKEN = {
    "arrays", "bytes", "a flat array", "unchanged", "unsigned", "the bits of another dtype", "lengths 1 and 0",
    "lengths 2 and 5", "lengths 8 and 5", *(f"the index {n} of 5" for n in (4, -5)),
    *(f"the index {n} of 50" for n in (49, -50)),
}  # fmt: skip


@pytest.mark.parametrize(("name", "calls"), [("open", OPEN_CALLS), ("plain", CLOSED_CALLS)], ids=["open", "closed"])
def test_calls_that_do_not_fit_a_plan_are_refused(name: str, calls: dict[str, list[Any]]) -> None:
    taken = set()
    for what, given in calls.items():
        saved = Saved(PLANS[name])
        try:
            found = saved.sizes(given)
            saved.words(given, found)
        except EmberletError:
            continue
        taken.add(what)
    assert taken == {what for what in calls if what in TAKEN}


@pytest.mark.parametrize("depth", [3, 40, 2_000, 50_000])
@pytest.mark.parametrize(
    "atom",
    [
        lambda i: ["//", [[2, i], [2, i, 0]], 2],  # each has the one before twice: 2 ** depth in words
        lambda i: ["//", [[2, i]], 2],
        lambda i: ["max", [[1, *[i] * 8]], 0],  # a number of 8 ** depth digits
        lambda i: ["max", [[1, i], [1]], [[1, i]]],
    ],
)
def test_sizes_of_sizes_are_read_in_words_and_numbers_of_a_few_bytes(atom: Any, depth: int) -> None:
    content = copy.deepcopy(PLANS["open"])
    content["sizes"] = {"symbols": [["length", 1, 16]], "atoms": [0, *map(atom, range(depth))], "guards": [],
                        "block": [[[1, depth]]]}  # fmt: skip
    content |= {"inputs": [["x", "float32", [[[2, depth]], 2], 0]], "outputs": [], "indices": [], "steps": {"gpu": []}}
    content["buffers"] = [["external", [[8, 0]]]] * 3
    why = refusal(content)
    assert not why or "larger than any" in why
    if not why:
        plan, [port], _, _ = reading.read(content, "gpu")
        assert len(repr(port)) < 2_000
        assert abs(plan.counts.largest()[-1]) < 1 << 128
        with pytest.raises(ValueError, match="takes"):
            open_ports.sizes_of(plan.counts, [port], [np.zeros((10**6 + 1, 3), np.float32)])


def test_a_plan_has_at_most_64_open_sizes() -> None:
    content = copy.deepcopy(PLANS["open"])
    content["sizes"] = {"symbols": [["n", 1, 2]] * 65, "atoms": [*range(65)], "block": [], "guards": []}
    assert "too long" in refusal(content)
