"""Index expressions drawn at random have their value for all counters, within the range that they state."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from emberlet.wgpu_backend.lower import index as ix

NUMBERS = [1, 2, 3, 4, 6, 8, 12, 24]


def drawn(choose: random.Random, depth: int) -> tuple[Any, Any]:
    """(an expression, a function from the counters i < 24, j < 5 and k < 2 to its value)."""
    if depth == 0:
        if choose.random() < 0.2:
            n = choose.choice([-7, -1, 0, 1, 5, 24])
            return ix.const(n), lambda at: n
        name, extent = choose.choice([("i", 24), ("i", 24), ("j", 5), ("k", 2), ("one", 1)])
        return ix.counter(name, extent), lambda at: at.get(name, 0)
    a, value = drawn(choose, depth - 1)
    kind = choose.choice(["add", "mul", "floordiv", "mod", "mod", "floordiv", "const", "bounded", "negative"])
    n = choose.choice(NUMBERS)
    if kind == "add":
        b, other = drawn(choose, depth - 1)
        return ix.add(a, b), lambda at: value(at) + other(at)
    if kind == "const":
        c = choose.choice([-n, n, 0])
        return ix.add(a, ix.const(c)), lambda at: value(at) + c
    if kind == "mul":
        return ix.mul(a, n), lambda at: value(at) * n
    if kind == "negative":
        return ix.mul(a, -n), lambda at: -value(at) * n
    if kind == "floordiv":
        return ix.floordiv(a, n), lambda at: value(at) // n
    if kind == "mod":
        return ix.mod(a, n), lambda at: value(at) % n
    values = [value(at) for at in every()]
    return a.bounded(min(values), max(values)), value


def every() -> list[dict[str, int]]:
    return [dict(zip("ijk", at, strict=True)) for at in itertools.product(range(24), range(5), range(2))]


@pytest.mark.parametrize("seed", range(4))
def test_expressions_have_their_value_within_their_range(seed: int) -> None:
    choose = random.Random(seed)
    for _ in range(180):
        a, value = drawn(choose, choose.choice([2, 3, 4, 5]))
        for at in every()[::7]:
            found = ix.evaluate(a, lambda name, at=at: at.get(name, 0))
            assert found == value(at), a
            assert a.lo <= found <= a.hi, a


def test_what_changes_nothing_gives_the_expression_itself() -> None:
    a = ix.add(ix.mul(ix.counter("i", 24), -3), ix.counter("j", 5)).bounded(-60, 3)
    assert ix.mul(a, 1) is a
    assert ix.floordiv(a, 1) is a
    assert ix.mod(a, 1) is ix.ZERO
    assert ix.mul(a, 0) is ix.ZERO
    assert ix.add(a, ix.ZERO) is a and ix.add(ix.ZERO, a) is a
    low = ix.counter("j", 5)
    assert ix.mod(low, 5) is low and ix.mod(low, 6) is low and ix.floordiv(low, 5) is ix.ZERO
    assert ix.mod(low, 4) is not low and ix.floordiv(low, 4) is not ix.ZERO
