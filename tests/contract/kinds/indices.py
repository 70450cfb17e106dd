"""Functions with indices into axes of known lengths: those one beside the ends are refused, eagerly and on every way,
in the same words; all others are looked up. Tables of several axes share indices, which may be the first argument."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ..case import COUNTED, Case
from ..properties import broken
from ..reference import Refused, choice, expected

NEEDS: tuple[str, ...] = ()
SAID = re.compile(r"index -?\d+ is outside axis [01] of length \d+")
# name -> (parameters, what is returned, the axes of x (m, n) that i indexes)
CALLS: dict[str, tuple[str, str, str]] = {
    "take rows": ("x, i", "F.take(x, i, 0)", "m"),
    "take columns": ("i, x", "F.take(x, i, 1) * 2.0", "n"),
    "rows by square brackets": ("x, i", "x[i] + 1.0", "m"),
    "columns by square brackets": ("i, x", "x[:, i]", "n"),
    "embedding": ("i, x", "F.embedding(F.reshape(i, (1, -1)), x)", "m"),
    "elements": ("x, i", "x[i, i]", "mn"),
    "both axes": ("x, i", "F.take(x, i, 0)[:, :1] + F.take(F.permute_dims(x, (1, 0)), i, 0)[:, :1]", "mn"),
    "gather_nd": ("i, x", "F.gather_nd(x, F.reshape(i, (-1, 1)))", "m"),
    "take_along_axis": ("x, i", "F.take_along_axis(x, F.reshape(i, (-1, 1)), 0)", "m"),
    "gather": ("x, i", "F.gather(x, 0, F.reshape(i, (-1, 1)))", "m"),
    "scatter": ("x, i", "F.scatter(x, 0, F.reshape(i, (-1, 1)), F.ones((i.shape[0], 1), dtype=D.float32, "
                "device=x.backend))", "m"),
    "scatter_nd": ("i, x", "F.scatter_nd(x, F.reshape(i, (-1, 1)), F.ones((i.shape[0], x.shape[1]), dtype=D.float32, "
                   "device=x.backend), 'add')", "m"),
    "positions": ("x, i", "F.rotary_embedding(F.ones((1, 1, i.shape[0], 4), dtype=D.float32, device=x.backend), "
                  "F.tile(x, (1, 2))[:, :2], F.tile(x, (1, 2))[:, :2], F.reshape(i, (1, -1)))", "m"),
    "after a step": ("x, i", "F.take(F.tanh(x), i + 0, 0) + F.take(x, i, 0)", "m"),
}  # fmt: skip


class Drawn(NamedTuple):
    """name: of CALLS; dtype, count: of the indices; below: whether the bad index is beyond the first element."""

    name: str
    shape: tuple[int, int]
    count: int
    dtype: str
    below: bool
    seed: int


def draw(choose: random.Random) -> Drawn | None:
    shape = choose.choice([1, 2, 3, 5, 8]), choose.choice([1, 2, 4, 7])
    return Drawn(choose.choice(sorted(CALLS)), shape, choose.choice([1, 1, 2, 3, 5, 9]),
                 choose.choice(["int32", "int64"]), choose.random() < 0.5, choose.randrange(1 << 30))  # fmt: skip


def case_of(drawn: Drawn) -> Case:
    """A call, one with an index just outside, one with others, the first again."""
    taken, returned, axes = CALLS[drawn.name]
    choose, values = choice(drawn.seed, "values"), np.random.default_rng(drawn.seed)
    least = min(n for n, name in zip(drawn.shape, "mn", strict=True) if name in axes)
    calls = []
    for outside in (False, True, False):
        i = values.integers(-least, least, drawn.count).astype(drawn.dtype)
        if outside:
            i[choose.randrange(drawn.count)] = -least - 1 if drawn.below else least
        x = values.standard_normal(drawn.shape).astype(np.float32)
        calls.append((i, x) if taken[0] == "i" else (x, i))
    source = f"def program({taken}):\n    return {returned}\n\n\ndef make(B):\n    return program\n"
    return Case(source, tuple(calls), drawn.seed, "indices")


def difference(drawn: Drawn) -> str:
    case = case_of(drawn)
    wanted = [expected(case, arrays) for arrays in case.calls]
    for number, found in enumerate(wanted):
        if isinstance(found, Refused) is not (number == 1):
            return f"eager NumPy, call {number}: {found if isinstance(found, Refused) else 'nothing is refused'}"
        if isinstance(found, Refused) and not SAID.fullmatch(found.words):
            return f"eager NumPy says {found.words!r}"
    COUNTED["refused indices"] += 1
    return broken(case, wanted=wanted)


def simpler(drawn: Drawn) -> Iterable[Drawn]:
    if drawn.count > 1:
        yield drawn._replace(count=1)
    for shape in ((2, 2), (1, 2), (2, 1)):
        if sum(shape) < sum(drawn.shape):
            yield drawn._replace(shape=shape)


def program(drawn: Drawn) -> str:
    return case_of(drawn).text()
