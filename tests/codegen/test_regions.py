"""The parts of the search for modules, each by itself: order, cycles, lists, runs that repeat, and names of blocks."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest
from emberlet.codegen.emit.expression import Index, Name, Tuple, lift
from emberlet.codegen.hierarchy.invoke import elements, singular
from emberlet.codegen.hierarchy.ordering import circles, sorted_by
from emberlet.codegen.hierarchy.regions import _step, _steps, _wrapper
from support.rows import every


def path(text: str) -> tuple[str, ...]:
    return tuple(p for p in text.split(".") if p)


# -- order ------------------------------------------------------------------------------------------------------------


@every("seed", range(40))
def test_parts_come_after_what_they_read_and_as_early_as_in_the_file(seed: int) -> None:
    draw = random.Random(seed)
    keys: list[Any] = list(range(draw.randint(1, 9)))
    place = draw.sample(keys, len(keys))  # an order that is possible
    edges: dict[Any, set[Any]] = {
        k: {r for r in keys if place.index(r) < place.index(k) and draw.random() < 0.3} for k in keys
    }
    first = {k: draw.randint(0, 5) for k in keys}
    wanted: list[Any] = []
    while len(wanted) < len(keys):
        ready = [k for k in keys if k not in wanted and edges[k] <= set(wanted)]
        wanted.append(min(ready, key=lambda k: (first[k], k)))
    assert sorted_by(edges, first) == wanted


@every("seed", range(60))
def test_cycles_are_the_parts_that_reach_each_other(seed: int) -> None:
    draw = random.Random(seed)
    keys: list[Any] = list(range(draw.randint(1, 8)))
    often = draw.choice([0.1, 0.2, 0.4])
    edges: dict[Any, set[Any]] = {k: {r for r in keys if r != k and draw.random() < often} for k in keys}
    reached = {k: set(edges[k]) for k in keys}
    for _ in keys:
        for k in keys:
            reached[k] |= {far for r in reached[k] for far in reached[r]}
    wanted = {frozenset(o for o in keys if o in reached[k] and k in reached[o]) | {k} for k in keys}
    found = circles(edges)
    assert {frozenset(group) for group in found} == {group for group in wanted if len(group) > 1}
    assert sum(map(len, found)) == len({k for group in found for k in group})


# -- paths ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("inner", "step"), [("a.layers.0", "a.layers.*"), ("a.b", "a.b"), ("a.0.b", "a.0.b")])
def test_the_items_of_a_list_are_one_step(inner: str, step: str) -> None:
    assert _step(path(inner)) == path(step)


def test_the_steps_of_a_module_are_its_nodes_and_its_inner_modules() -> None:
    nodes = ["m.layers.0", "m.layers.1", "m.layers.1.fc", "m", "m.head.fc", "other", ""]
    found = _steps(set(map(path, ["m", "m.layers.0", "m.layers.1", "m.head"])), list(map(path, nodes)))
    assert found == {
        path("m"): {path("m.layers.*"), 3, path("m.head")}, path("m.layers.0"): {0}, path("m.layers.1"): {1, 2},
        path("m.head"): {4},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("candidates", "around", "wrapper"),
    [
        ("m m.a", 0, "m"), ("m m.a", 6, "m"), ("m m.a", 7, ""), ("m", 0, ""), ("m m.a n", 0, ""), ("m.a m.b", 0, ""),
        ("0 0.a", 0, ""), ("", 0, ""),
    ],
)  # fmt: skip
def test_a_module_around_nearly_everything(candidates: str, around: int, wrapper: str) -> None:
    from emberlet.codegen.ir.types import ScalarType, TensorType
    from emberlet.dtypes import float32, int64

    tensor, size = (
        SimpleNamespace(outputs=[SimpleNamespace(type=t)]) for t in (TensorType(float32), ScalarType(int64))
    )
    nodes = [tensor] * around + [tensor] * 9 + [size] * 9
    paths = [path("head")] * around + [path("m.a")] * 9 + [()] * 9
    assert _wrapper(set(map(path, candidates.split())), nodes, paths) == path(wrapper)  # type: ignore[arg-type]


# -- names ------------------------------------------------------------------------------------------------------------


# -- loops ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "one"),
    [
        ("layers", "layer"), ("layers2", "layer"), ("blocks_1", "block"), ("h", "block"), ("12", "block"),
        ("bus", "bu"),
        ("pass", "pass"), ("entries", "entry"), ("stage", "stage"), ("gas", "ga"), ("as", "block"), ("", "block"),
    ],
)  # fmt: skip
def test_an_item_is_called_after_its_list(name: str, one: str) -> None:
    assert singular(name) == one


def test_the_first_elements_of_a_list_are_the_list() -> None:
    a, b = Name("a"), Name("b")
    assert elements([Index(a, lift(0)), Index(a, lift(1))]) == a
    for values in ([Index(a, lift(1)), Index(a, lift(0))], [Index(a, lift(0)), Index(b, lift(1))],
                   [Index(a, lift(0)), Index(a, lift(2))], [a, b]):  # fmt: skip
        assert elements(list(values)) == Tuple(tuple(values))


# -- sizes and the order of inputs ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "symbol", "axis", "times"),
    [
        (("a", "b"), "b", 1, 1), (("2*a", 4), "a", 0, 2), (("2*a", "a"), "a", 1, 1), ((4, "3*a", "2*a"), "a", 1, 3),
        (("a + b",), "a", 0, 0), (("a + 1",), "a", 0, 0), (("a", 4), "b", 0, 0), ((None, 2), "a", 0, 0),
        ((), "a", 0, 0),
        (None, "a", 0, 0), (("a + b",), "a + b", 0, 1), (("2*a", "2*b"), "b", 1, 2),
    ],
)  # fmt: skip
def test_a_size_is_read_from_an_axis_of_its_multiple(shape: Any, symbol: str, axis: int, times: int) -> None:
    from emberlet.codegen.hierarchy.region_graph import _axis_of
    from emberlet.codegen.ir.types import SequenceType, TensorType
    from emberlet.dtypes import float32

    assert _axis_of(TensorType(float32, shape), symbol) == (axis, times)
    assert _axis_of(SequenceType(TensorType(float32, shape)), symbol) == (0, 0)


def test_tensors_of_floats_come_before_masks_and_sizes_and_caches_last() -> None:
    from emberlet import dtypes
    from emberlet.codegen.hierarchy.region_graph import _rank
    from emberlet.codegen.ir.argument import Argument
    from emberlet.codegen.ir.types import ScalarType, SequenceType, TensorType, UnknownType

    floats, mask = TensorType(dtypes.float16), TensorType(dtypes.bool)
    given = [floats, mask, ScalarType(dtypes.int64), SequenceType(floats), UnknownType()]
    assert [_rank(Argument("a", t)) for t in given] == [0, 1, 1, 2, 1]


# -- loops over drawn calls -------------------------------------------------------------------------------------------
