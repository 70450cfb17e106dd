"""What the reader says of a saved plan with one thing changed, recorded for every field.

`UPDATE_SNAPSHOTS=1 pytest` on this file records it again. The reader needs no GPU: nothing is allocated or compiled.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emberlet.wgpu_backend.plan import open_ports, reading
from emberlet.wgpu_backend.plan.counts import Count
from emberlet.wgpu_backend.plan.ports import Ported
from support.recorded import assert_recorded
from support.work.counting import digest

RECORDED = Path(__file__).with_name("changed_plans.txt")

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
GUARDS = [(relation, answer, "") for relation in ("<", "==") for answer in (True, False)]
OTHERS = [None, True, -1, 0, 1.5, "4", [], {}, 1 << 33, [[1, 0]]]


def described(found: Any) -> str:
    """Everything that was read."""
    plan, inputs, outputs, constants = found

    def said(value: Any) -> Any:
        if isinstance(value, Count):
            return [value.terms, value.most]
        if isinstance(value, tuple) and len(value) == 4 and value[1:] in GUARDS:
            value = value[:3]  # no function assumed the answer
        if isinstance(value, list | tuple):
            return [said(v) for v in value]
        if hasattr(value, "__dict__") and not hasattr(value, "bits"):
            return {name: said(v) for name, v in sorted(vars(value).items()) if name != "_last"}
        return value if value is None or isinstance(value, int | str) else str(value)

    return json.dumps([said(plan), said(inputs), said(outputs), said(constants)])


def outcome(content: Any) -> str:
    try:
        return f"taken, {digest(described(reading.read(content, 'gpu')))}"
    except ValueError as error:
        return str(error)


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


@pytest.mark.parametrize("key", list(dict.fromkeys(key for plan in PLANS.values() for key in plan)))
@pytest.mark.parametrize("name", list(PLANS))
def test_a_plan_with_one_field_changed(name: str, key: str) -> None:
    lines = []
    for path in places(PLANS[name]):
        if path[0] != key:
            continue
        said: dict[str, list[str]] = {}
        for what, change in changes(PLANS[name], path):
            content = copy.deepcopy(PLANS[name])
            holder: Any = content
            for part in path[:-1]:
                holder = holder[part]
            change(holder, path[-1])
            said.setdefault(outcome(content), []).append(what)
        lines.append(" ".join(map(str, path)))
        lines += [f"  {' | '.join(tried)}: {found}" for found, tried in said.items()]
    assert_recorded(RECORDED, f"{name}: {key}", "\n".join([outcome(PLANS[name]), *lines]))


def plan(name: str, **changed: Any) -> dict[str, Any]:
    return {**copy.deepcopy(PLANS[name]), **changed}


def sizes(**changed: Any) -> dict[str, Any]:
    return plan("open", sizes={**copy.deepcopy(PLANS["open"]["sizes"]), **changed})


def port(**changed: Any) -> dict[str, Any]:
    """A plan of one input and large buffers."""
    given = {"dtype": "float32", "shape": [4], "nbytes": 64, "out": 16} | changed
    return {
        "page_bytes": given.get("page_bytes", 1 << 27),
        "inputs": [["x", given["dtype"], given["shape"], 0]],
        "outputs": [["y", "float32", [4], 1]],
        "buffers": [["external", given["nbytes"]], ["output", given["out"]]],
        "kernels": [["add", "first"]],
        "steps": {"gpu": [[0, given.get("groups", [1, 1, 1]), [0, 1], given.get("pages", [1, 1])]]},
        "constants": given.get("constants", []),
    }


LARGE = [sign * ((1 << 40) + n) for n in (0, 1) for sign in (1, -1)]
AT_LIMITS: dict[str, Callable[[], Any]] = {
    **{f"a buffer of 2^31 {n:+}": lambda n=n: port(nbytes=(1 << 31) + n) for n in (0, 1)},
    **{f"2^32 - 1 {n:+} workgroups": lambda n=n: port(groups=[1, (1 << 32) - 1 + n, 1]) for n in (0, 1)},
    **{f"{n} dimensions": lambda n=n: port(shape=[1] * n) for n in (64, 65)},
    **{f"a dimension of 2^31 {n:+}": lambda n=n: port(shape=[0, (1 << 31) + n]) for n in (0, 1)},
    **{f"{n} pages of 16": lambda n=n: port(page_bytes=256, nbytes=4096, pages=[n, 1]) for n in (15, 16, 17)},
    **{f"{n} pages of 4097 bytes": lambda n=n: port(page_bytes=256, nbytes=4097, pages=[n, 1]) for n in (16, 17)},
    **{f"{n} pages of 513 bytes": lambda n=n: port(page_bytes=256, nbytes=513, pages=[n, 1]) for n in (2, 3, 4)},
    **{f"pages of {n}": lambda n=n: port(page_bytes=n) for n in (0, 1, 128, 255, 256, 257, 384, 1 << 31, 1 << 32)},
    **{
        f"{count} elements of {dtype} in {nbytes} bytes": lambda d=dtype, c=count, n=nbytes: port(
            dtype=d, shape=[c], nbytes=n
        )
        for dtype in ("float32", "float16", "int64", "int8", "bool", "float64", "uint16", "bfloat16")
        for count, nbytes in [(4, 16), (5, 16), (4, 4), (5, 4), (5, 8), (0, 4)]
    },
    **{f"{n} buffers": lambda n=n: plan("stored", buffers=[["external", 4]] * n) for n in (100_000, 100_001)},
    **{
        f"constants stored as q8 in {n} bytes": lambda n=n: port(
            page_bytes=256, nbytes=n, shape=[0], pages=[1, 1], constants=[[0, "w", "q8", "s"]]
        )
        for n in (256, 257)
    },
    **{f"a constant of {n} items": lambda n=n: port(constants=[[0, "w", "q8", "s", None][:n]]) for n in range(6)},
    "a constant of an unknown encoding": lambda: port(constants=[[0, "w", "q9", "s"]]),
    "a constant stored as q8 in one part": lambda: port(constants=[[0, "w", "q8", None]]),
    "a constant stored as float16 in two": lambda: port(constants=[[0, "w", "float16", "s"]]),
    "a step that binds nothing": lambda: plan("stored", steps={"gpu": [[0, [1, 1, 1], []]]}),
    "a result that a constant is": lambda: plan(
        "stored", steps={"gpu": []}, outputs=[["y", "float32", [32], 1]], constants=[[1, "w"]]
    ),
    "a result that an input is": lambda: plan("stored", steps={"gpu": []}, outputs=[["y", "int8", [2], 0]]),
    "a result that nothing writes": lambda: plan("stored", steps={"gpu": []}),
    "a result of no elements that nothing writes": lambda: plan(
        "stored", steps={"gpu": []}, outputs=[["y", "int8", [0, 9], 3]]
    ),
    "a kernel that no step uses": lambda: plan("stored", kernels=[["other", "o"], ["add", "first"]]),
    "steps for another device": lambda: plan("stored", steps={"software": []}),
    **{f"a size from {low} to {high}": lambda low=low, high=high: sizes(symbols=[["n", low, high], ["m", 0, 5]])
       for low, high in [(0, 0), (3, 3), (4, 3), (-1, 3), (0, 1 << 31), (0, (1 << 31) + 1), (0, True), (0.0, 2)]},
    **{f"{n} terms": lambda n=n: sizes(block=[[[1, 0]] * n]) for n in (0, 1, 64, 65)},
    **{f"a term of {n} atoms": lambda n=n: sizes(block=[[[1] + [0] * n]]) for n in (0, 8, 9)},
    **{f"the number {n}": lambda n=n: sizes(block=[n]) for n in LARGE},
    **{f"the factor {n}": lambda n=n: sizes(block=[[[n, 0]]]) for n in LARGE},
    **{f"{n} numbers": lambda n=n: sizes(block=[1] * n) for n in (100_000, 100_001)},
    "no symbols": lambda: sizes(symbols=[], atoms=[], block=[], guards=[]),
    "a symbol twice among the atoms": lambda: sizes(atoms=[0, 1, 1]),
    "symbols in another order": lambda: sizes(atoms=[1, 0]),
    "an atom of later ones": lambda: sizes(atoms=[0, 1, ["//", [[1, 2]], 8], ["max", 1, 2]]),
    "another function": lambda: sizes(atoms=[0, 1, ["min", [[1, 0]], 8], ["max", 1, 2]]),
    **{f"a guard {relation} {answer}": lambda r=relation, a=answer: sizes(guards=[[[[1, 0]], r, a]])
       for relation in ("<", "==", ">", None) for answer in (True, False, 1)},
    "an open constant": lambda: plan("open", constants=[[0, "w"]]),
    "a closed port in an open buffer": lambda: plan("open", inputs=[["x", "float32", [3], 0]]),
    "no sizes": lambda: {key: value for key, value in PLANS["open"].items() if key != "sizes"},
}  # fmt: skip


@pytest.mark.parametrize("name", list(AT_LIMITS))
def test_a_plan_at_and_beyond_a_limit(name: str) -> None:
    assert_recorded(RECORDED, f"limit: {name}", outcome(AT_LIMITS[name]()))


# -- the sizes of calls -----------------------------------------------------------------------------------------------


class Saved(Ported):
    """A plan that is only read."""

    origin = "plan"

    def __init__(self, content: Any) -> None:
        self.plan, self.inputs, self.outputs, _ = reading.read(content, "gpu")
        self.counts = self.plan.counts


def called(saved: Saved, given: list[Any]) -> str:
    """The sizes of a call, the shapes of its ports and the words of its inputs; or why there are none."""
    try:
        found = saved.sizes(given)
        ports = [*saved.ports(found, saved.inputs), *saved.ports(found, saved.outputs)]
        words = [None if w is None else bytes(w).hex() for w in saved.words(given, found)]
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return f"{found}, {ports}, lengths {[p.length for p in ports]}, words {digest(words)}"


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


@pytest.mark.parametrize("name", list(OPEN_CALLS))
def test_a_call_of_open_sizes(name: str) -> None:
    assert_recorded(RECORDED, f"call: {name}", called(Saved(PLANS["open"]), OPEN_CALLS[name]))


TWO_LENGTHS = {
    **PLANS["open"],
    "inputs": [["x", "float32", [[[1, 0]], [[1, 1]]], 0], ["i", "int64", [3, [[1, 1], [2]]], 1]],
    "indices": [],
}


@pytest.mark.parametrize("given", ["array and bytes", "bytes and array", "bytes", "the first alone", "uneven bytes"])
def test_bytes_of_two_open_axes(given: str) -> None:
    """One of them has to be known from another input."""
    a, b = x(5, 3), i(5)
    calls = {
        "array and bytes": [a, b.tobytes()], "bytes and array": [a.tobytes(), b], "bytes": [a.tobytes(), b.tobytes()],
        "the first alone": [a.tobytes(), None], "uneven bytes": [a.tobytes()[4:], b],
    }  # fmt: skip
    assert_recorded(RECORDED, f"two lengths: {given}", called(Saved(TWO_LENGTHS), calls[given]))


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


@pytest.mark.parametrize("name", list(CLOSED_CALLS))
def test_a_call_of_closed_sizes(name: str) -> None:
    assert_recorded(RECORDED, f"closed call: {name}", called(Saved(PLANS["plain"]), CLOSED_CALLS[name]))


def test_later_calls_may_keep_inputs_of_the_same_sizes() -> None:
    saved = Saved(PLANS["open"])
    a, b = x(5), i(4)
    longer, wider = x(6), i(5)
    calls: list[list[Any]] = [[a, b], [None, None], [a, None], [longer, None], [None, b], [None, wider]]
    calls += [[longer, wider], [None, wider]]
    assert_recorded(RECORDED, "later calls", "\n".join(called(saved, given) for given in calls))


@pytest.mark.parametrize(
    "terms",
    [
        [[1, 0]], [[2, 0]], [[1, 0], [1, 1]], [[3]], [[1]], [[1], [2, 1]], [[1, 0, 1]], [[1, 2]], [[8, 2]], [[1, 3]],
        [[4, 4]], [[7, 4]], [],
    ],
    ids=str,
)  # fmt: skip
def test_a_length_in_words(terms: list[list[int]]) -> None:
    """8 * (… // 8) is a length that is a multiple of 8."""
    atoms = [*PLANS["open"]["sizes"]["atoms"], ["//", [[1, 0]], 4]]
    counts = open_ports.read_counts({**PLANS["open"]["sizes"], "atoms": atoms})
    values = counts.values((11, 3))
    text = f"{open_ports.as_text(Count(terms, 0), counts)}: {Count(terms, 0).at(values)} of {values}"
    found = open_ports.OpenPort("x", "float32", (Count(terms, 0), 3, Count([[2, 1], [1]], 0)), 7, counts)
    assert_recorded(RECORDED, f"length {terms}", f"{text}\n{found}, {found.words().terms}, {found.words().at(values)}")
