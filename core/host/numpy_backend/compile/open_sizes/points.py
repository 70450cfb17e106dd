"""At which lengths a model is traced whose plan is for all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Any

from .....backend.tracing import Trace, ValueNeeded
from .....sizes.polynomial import atom_values, broken
from .....sizes.scope import Scope
from .....sizes.size import is_open
from ... import NumpyBackend
from .polynomials import CAPACITY, Polynomials
from .tracing import Points, trace

LARGEST = 1 << 24  # maximum elements of an input while a model is traced at other lengths


def trace_typical(
    function: Callable[..., Any],
    arguments: list[Any],
    shapes: list[Any],
    scope: Scope,
    numbers: Callable[[list[Any]], list[dict[str, int]]],
    eager: NumpyBackend,
    fixed: Collection[int] = (),
) -> tuple[Points, Trace]:
    """The Trace at points for which the function decides as for typical lengths; a first trace tells how it does.
    numbers: the lengths at points that meet these guards."""
    guards: list[Any] = []
    for _ in range(4):
        points = Points(scope, numbers(guards))
        for shape in shapes:
            if any(map(is_open, shape or ())) and any(
                math.prod(points.at(shape, i)) > LARGEST for i in range(len(points))
            ):
                raise ValueNeeded("an input would be too large at the lengths that a plan is traced at")
        traced = trace(function, arguments, shapes, points, eager, fixed)
        if not any(broken(scope.guards, atom_values(scope.atoms, n)) for n in points.numbers):
            return points, traced
        if len(guards) == len(scope.guards):
            break
        guards = list(scope.guards)
    raise ValueNeeded("the operations of the model depend on its lengths in too many cases")


def points_for(
    symbols: list[str], known: dict[str, int], scope: Scope, guards: list[Any], least: int | None = None
) -> list[dict[str, int]]:
    """Lengths that no other size is likely to be and for which the guards hold, as many as polynomials need. least:
    what they begin with; by default the typical length."""
    wanted = Polynomials.points_needed(len(symbols))
    start = max(23, *scope.typical[:1]) if least is None else least
    taken = set(known.values())
    all_of_them = [*_primes(start, start + 600, taken), *_primes(2, start, taken)[::-1], *range(2, start + 100)]
    candidates = list(dict.fromkeys(all_of_them))
    out: list[dict[str, int]] = []
    used: set[int] = set()
    at = 0
    while len(out) < wanted:
        free = [n for n in candidates[at:] if n not in used][: len(symbols)]
        if len(free) < len(symbols):
            raise ValueNeeded("the operations of the model depend on its lengths in too many cases")
        numbers = {**known, **dict(zip(symbols, free, strict=True))}
        if CAPACITY in numbers:  # there is room for what a call appends
            numbers[CAPACITY] += 64 * (1 + len(out) ** 2) + max(numbers.values())
        if not broken(guards, atom_values(scope.atoms, numbers)):
            out.append(numbers)
            used.update(free)
        else:
            at = candidates.index(free[0]) + 1
    return out


def _primes(start: int, stop: int, taken: set[int]) -> list[int]:
    return [n for n in range(start, stop) if n not in taken and all(n % i for i in range(2, int(n**0.5) + 1))]
