"""The forms and ranges that index expressions are simplified to, for small expressions drawn at random.

An expression that is simplified less, or whose range is wider, has the same value: only the record shows it. Each is
also evaluated for all counters. `UPDATE_SNAPSHOTS=1 pytest` on this file records the forms again.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from emberlet.backend.sizes import Scope
from emberlet.wgpu_backend.lower import index as ix
from support.recorded import assert_recorded
from support.work.counting import digest

RECORDED = Path(__file__).with_name("recorded_indices.txt")
NUMBERS = [1, 2, 3, 4, 6, 8, 12, 24]


def text(a: Any) -> str:
    """The expression in WGSL, its range and everything that later simplification depends on."""
    return f"{ix.render(a, lambda atom: atom.key)} in [{a.lo}, {a.hi}] {digest(a.identity)}"


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


@pytest.mark.parametrize("seed", range(60))
def test_expressions_have_the_recorded_form_and_their_value(seed: int) -> None:
    choose = random.Random(seed)
    lines = []
    for _ in range(12):
        a, value = drawn(choose, choose.choice([2, 3, 4, 5]))
        lines.append(text(a))
        for at in every()[::7]:
            found = ix.evaluate(a, lambda name, at=at: at.get(name, 0))
            assert found == value(at), a
            assert a.lo <= found <= a.hi, a
    assert_recorded(RECORDED, f"seed {seed:02}", f"{lines[0]}\n{digest(lines)}")


def open_sizes() -> list[Any]:
    scope = Scope()
    n = scope.symbol("n", 1, 64, 16)
    m = scope.symbol("m", 0, 9, 3)
    eights = scope.symbol("eights", 8, 64, 16, 8)
    return [n, m, eights, n + 1, n * 4, n + m, n * m, n - 1, n // 2, eights // 4, 5]


def answered(function: Callable[..., Any], *given: Any) -> str:
    """The text of what a function gives; or what it needs to know."""
    try:
        found = function(*given)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ", ".join(map(text, found)) if isinstance(found, list) else text(found)


OF_OPEN_SIZES: dict[str, Callable[[Any, Any, Any, Any], list[str]]] = {
    "floordiv": lambda a, b, n, other: [answered(ix.floordiv, x, n) for x in (a, b)],
    "mod": lambda a, b, n, other: [answered(ix.mod, x, n) for x in (a, b)],
    "mul": lambda a, b, n, other: [answered(ix.mul, x, n) for x in (a, b)],
    "add": lambda a, b, n, other: [answered(ix.add, x, ix.const(n)) for x in (a, b)],
    "bounded": lambda a, b, n, other: [answered(x.bounded, 0, n) for x in (a, b)],
    "flatten": lambda a, b, n, other: [answered(ix.flatten, [a, b, ix.ZERO], (n, other, 1))],
    "unflatten": lambda a, b, n, other: [answered(ix.unflatten, a, (3, n, 1, other))],
}


@pytest.mark.parametrize("name", list(OF_OPEN_SIZES))
def test_expressions_of_open_sizes_have_the_recorded_form(name: str) -> None:
    lines = []
    for at in range(len(open_sizes())):
        sizes = open_sizes()
        for other in (1, 2, 4, 8, 24, sizes[0], sizes[1], sizes[2], sizes[4]):
            a = ix.add(ix.mul(ix.counter("i", sizes[at]), other), ix.counter("j", 4))
            b = ix.add(ix.counter("i", 24), ix.const(-other))
            found = OF_OPEN_SIZES[name](a, b, sizes[at], other)
            lines.append(f"{sizes[at]}, {other}: {digest(found)} {found[0][:60]}")
    assert_recorded(RECORDED, f"open sizes, {name}", "\n".join(lines))


def test_digits_have_the_recorded_form() -> None:
    """(base // div) % mod of every kind, at both sides of where one of the two does nothing."""
    lines = []
    for extent, div in itertools.product((1, 2, 6, 12), (1, 2, 5, 6, 7, 12)):
        for base in ("i", ix.add(ix.mul(ix.counter("j", 5), 3), ix.counter("k", 3))):
            lines.append(
                f"{extent} // {div}: "
                + ", ".join(text(ix._digit(base, extent, div, mod)) for mod in (0, 1, 2, 3, 6, 12))
            )
    assert_recorded(RECORDED, "digits", "\n".join(lines))


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


def test_consecutive_indices_are_four_from_a_multiple_of_four() -> None:
    i, j = ix.counter("i", 24), ix.counter("j", 5)
    lines = []
    for c, offset, step in itertools.product((1, 2, 4, 8, -4), (-4, 0, 1, 2, 4), (1, 2)):
        first = ix.add(ix.add(ix.mul(i, c), ix.mul(j, 4)), ix.const(offset))
        four = [ix.add(first, ix.const(step * n)) for n in range(4)]
        others = [[*four[:3], first], [four[0], four[2], four[1], four[3]]]
        lines.append(
            f"{c}, {offset}, {step}: {ix.fours(first)} {[ix.consecutive(found) for found in [four, *others]]} "
            f"{text(ix.quarter(first)) if ix.fours(first) and offset % 4 == 0 else ''}"
        )
    scope = Scope()
    n = scope.symbol("n", 1, 64, 16)
    for size in (n, n * 4, n * 4 + 4, n * 2):
        for a in (ix.mul(i, size), ix.add(ix.mul(i, 4), ix.const(size))):
            lines.append(f"{a.key}: {ix.fours(a)} {ix.consecutive([ix.add(a, ix.const(k)) for k in range(4)])}")
    assert_recorded(RECORDED, "consecutive", "\n".join(lines))


def test_expressions_are_rendered_as_recorded() -> None:
    i, j = ix.counter("i", 24), ix.counter("j", 5)
    scope = Scope()
    n = scope.symbol("n", 1, 64, 16)
    lines = []
    for c, d, offset in itertools.product((1, 2, -1, -3, n, 0 - n), (0, 1, -1, -2, 4), (0, 7, -7, n, 1 - n)):
        a = ix.add(ix.add(ix.mul(i, c), ix.mul(j, d)), ix.const(offset))
        lines.append(f"{c}, {d}, {offset}: {ix.render(a, lambda atom: atom.payload[0])}")
    lines += [f"{k}: {ix.render(ix.const(k), str)}" for k in (0, 1, -1, -(1 << 31), n)]
    assert_recorded(RECORDED, "rendered", "\n".join(lines))


def test_ranges_of_open_sums_have_the_recorded_bounds() -> None:
    scope = Scope()
    n = scope.symbol("n", 1, 64, 16)
    both = n - 9  # of either sign
    lines = []
    for c in (both, n, 0 - n, 2, -2, 0):
        for x in (ix.counter("i", 5), ix.counter("i", n), ix.of_value(_Value(), -3, 4)):
            for a in (ix.mul(x, c), ix.Index(tuple((c, atom) for _, atom in x.terms), 1, -100, n)):
                lines.append(f"{c} * {x.key}: [{a.lo}, {a.hi}]")
    for lo, hi in [(-5, 100), (0, 3), (n, n + 1), (-1 - n, 9)]:
        a = ix.counter("i", 24).bounded(lo, hi)
        lines.append(f"bounded {lo}, {hi}: [{a.lo}, {a.hi}]")
    lines.append(f"last {ix.last(0)} {ix.last(1)} {ix.last(7)} {ix.last(n)}")
    assert_recorded(RECORDED, "ranges", "\n".join(lines))


class _Value:
    id = 7
