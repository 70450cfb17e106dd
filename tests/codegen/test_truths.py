"""The terms of masks: what is simplified has the same value for all indices and sizes, and what can be decided is."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product
from typing import Any

from emberlet.codegen.passes.masks.formulas import (
    All,
    Bounds,
    Compared,
    Element,
    Negated,
    Number,
    Truth,
    conjunction,
    constant,
    index,
    negated,
    size,
)
from support.rows import every

SHAPE = (3, 4, "S", 1)
SEES = Element("mask", (index(0),))


def places() -> Iterator[tuple[tuple[int, ...], dict[str, int]]]:
    """Every index into the shape for a few sizes; P, which is not in the shape, may be 0."""
    for s, p in product((1, 2, 4), (0, 1, 3)):
        for at in product(range(3), range(4), range(s), range(1)):
            yield at, {"S": s, "P": p}


def number_at(n: Number, at: tuple[int, ...], sizes: dict[str, int]) -> int:
    total = 0
    for factors, k in n.parts:
        for f in factors:
            k *= at[f] if isinstance(f, int) else sizes[f]
        total += k
    return total


def truth_at(t: Any, at: tuple[int, ...], sizes: dict[str, int]) -> bool:
    match t:
        case bool():
            return t
        case Element():
            return at[0] == 1
        case Compared(n, equal):
            value = number_at(n, at, sizes)
            return value == 0 if equal else value >= 0
        case All(items):
            return all(truth_at(i, at, sizes) for i in items)
        case Negated(item):
            return not truth_at(item, at, sizes)
    raise AssertionError(t)


def drawn_number(draw: random.Random, symbols: bool) -> Number:
    n = constant(draw.randint(-4, 6))
    for axis in draw.sample(range(3 if symbols else 2), draw.randint(0, 2)):
        n = n + index(axis).scaled(draw.choice((-2, -1, 1, 2)))
    for symbol in draw.sample(("S", "P"), draw.randint(0, 2)) if symbols else ():
        found = size(symbol)
        assert found is not None
        n = n + found.scaled(draw.choice((-1, 1, 1)))
    return n


def drawn_truth(draw: random.Random, depth: int = 2) -> Truth:
    kind = draw.choice(("compared", "compared", "element", "both", "negated", "bool")) if depth else "compared"
    if kind == "compared":
        return Compared(drawn_number(draw, True), draw.random() < 0.3)
    if kind == "both":
        return conjunction(drawn_truth(draw, depth - 1), drawn_truth(draw, depth - 1))
    if kind == "negated":
        return negated(drawn_truth(draw, depth - 1))
    return SEES if kind == "element" else draw.random() < 0.5


@every("seed", range(40), share=4)
def test_what_is_never_negative_is_at_least_0_everywhere(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(10):
        n = drawn_number(draw, True)
        if Bounds(SHAPE).never_negative(n):
            assert all(number_at(n, at, sizes) >= 0 for at, sizes in places()), n


@every("seed", range(10), share=2)
def test_with_known_sizes_alone_every_bound_is_found(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(20):
        n = drawn_number(draw, False)
        least = min(number_at(n, at, sizes) for at, sizes in places())
        assert Bounds(SHAPE).never_negative(n) is (least >= 0), n


@every("seed", range(60), share=4)
def test_logic_is_simplified_without_another_value(seed: int) -> None:
    draw = random.Random(seed)
    a, b = drawn_truth(draw), drawn_truth(draw)
    made = {"both": conjunction(a, b), "not": negated(a), "settled": Bounds(SHAPE).settled(conjunction(a, b))}
    for at, sizes in places():
        x, y = truth_at(a, at, sizes), truth_at(b, at, sizes)
        got = {k: truth_at(t, at, sizes) for k, t in made.items()}
        assert got == {"both": x and y, "not": not x, "settled": x and y}
