"""Drawn programs of the functional layer, on every way, with other values in each call.

The programs are those of fuzz/differential; so are their tolerances, which compare with float64.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from fuzz.differential import operations
from fuzz.differential.drawing import Pool, Skip, comparable
from fuzz.differential.straight import Program, moved

from ..case import Case, of_other_lengths, other_values
from ..properties import broken
from ..reference import EPSILON, Expected, Leaf, choice, quiet
from ..ways import Way

NEEDS: tuple[str, ...] = ()
LENGTHS = (1, 1, 2, 3, 4, 6, 9)
TRIED = 6  # times other values are drawn until the program is well defined for them


class Drawn(NamedTuple):
    """A program, the arrays of its calls beside its own inputs, and a seed."""

    program: Program
    seed: int


def draw(choose: random.Random) -> Drawn | None:
    pool = Pool(choose)
    try:
        operations.inputs(pool)
        operations.grow(pool, choose.choice(LENGTHS))
        return Drawn(pool.program(None), choose.randrange(1 << 30))
    except Skip:
        return None


def source(program: Program) -> str:
    return f"{program.body()}\n\ndef make(B):\n    return program\n"


def calls(drawn: Drawn) -> list[tuple[Any, ...]]:
    """The program's inputs, then others of the same shapes."""
    choose = choice(drawn.seed, "values")
    own = tuple(i.array for i in drawn.program.inputs)
    found = [own]
    for _ in range(TRIED):
        other = tuple(a if _indexes(drawn.program, i) else other_values(a, choose) for i, a in enumerate(own))
        if len(found) < 2 and _well_defined(drawn.program, other):
            found.append(other)
    for other in [of_other_lengths(own, choose), of_other_lengths(own, choose)]:
        if _well_defined(drawn.program, other):
            found.append(other)
    return found


def _indexes(program: Program, number: int) -> bool:
    """Whether an input may hold indices, which are valid only as they are."""
    return bool(program.inputs[number].array.dtype.kind in "iu")


def _given(program: Program, arrays: tuple[Any, ...]) -> Program:
    pairs = zip(program.inputs, arrays, strict=True)
    return program._replace(inputs=tuple(i._replace(array=a) for i, a in pairs))


def _well_defined(program: Program, arrays: tuple[Any, ...]) -> bool:
    every = _given(program, arrays)._replace(outputs=tuple(line.name for line in program.lines))
    try:
        with quiet():
            found = every.function()(*every.tensors("numpy"))
            wide = every.function(wide=True)(*every.widened())
            return all(comparable(x, w) for x, w in zip(found, wide, strict=True))
    except Exception:
        return False


def wanted(program: Program, arrays: tuple[Any, ...]) -> Expected | None:
    """The reference with the tolerances of fuzz/differential; None if the program is not valid (any more)."""
    now = _given(program, arrays)
    try:
        with quiet():
            found = now.function()(*now.tensors("numpy"))
            wide = [np.asarray(x) for x in now.function(wide=True)(*now.widened())]
            shaken = moved(now)
    except Exception:
        return None
    return [_leaf(x, w, m, arrays) for x, w, m in zip(found, wide, shaken, strict=True)]


def _leaf(x: Any, wide: Any, moved: float, arrays: tuple[Any, ...]) -> Leaf:
    array, dtype = np.array(np.asarray(x)), x.dtype.name
    if dtype not in EPSILON:
        return Leaf(array, dtype, sure=array == wide)
    exact = array.astype(np.float64)
    with np.errstate(all="ignore"):
        both = np.isfinite(exact) & np.isfinite(wide)
        lost = max(moved, float(np.abs(exact - wide)[both].max(initial=0.0)))
    size = float(np.abs(wide)[both].max(initial=0.0))
    given = [np.asarray(a, np.float64) for a in arrays]
    largest = max((float(np.abs(a[np.isfinite(a)]).max(initial=0.0)) for a in given), default=0.0)
    limit = 8 * lost + EPSILON[dtype] * (64 * size + 8 * largest)
    return Leaf(array, dtype, sure=np.isfinite(exact) == np.isfinite(wide), limit=limit)


def case_of(drawn: Drawn) -> Case:
    return Case(source(drawn.program), tuple(calls(drawn)), drawn.seed)


def difference(drawn: Drawn, ways: Iterable[Way] | None = None) -> str:
    case = case_of(drawn)
    references = [wanted(drawn.program, arrays) for arrays in case.calls]
    if any(r is None for r in references):
        return ""
    return broken(case, ways, wanted=[r for r in references if r is not None])


def simpler(drawn: Drawn) -> Iterable[Drawn]:
    return (drawn._replace(program=p) for p in drawn.program.simpler())


def program(drawn: Drawn) -> str:
    return case_of(drawn).text()
