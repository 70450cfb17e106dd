"""Invalid arguments and indices, and arguments of other types: every way refuses what eager NumPy refuses, with the
same words, and computes what is valid before and after."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, NamedTuple

import emberlet
import numpy as np

from ..case import Case
from ..properties import broken
from ..reference import Refused, choice, expected
from ..ways import Way
from . import layers
from .layers import case_of, changed, lines, valid

NEEDS: tuple[str, ...] = ()
TRIED = 12
FAR = (1000, -1000)
# In place of a tensor. Numbers and lists of them are tensors of the default backend.
OTHERS: tuple[Any, ...] = ("abc", "", None, [[1.0], [2.0, 3.0]], [None], {}, {"a": 1}, int, slice(1, 2),
                           emberlet.nn.Relu(), emberlet.nn.Linear)  # fmt: skip


class Drawn(NamedTuple):
    """A call as in tests/core/calls, and a seed. how: "argument", the call itself is invalid; "index", its indices get
    invalid values; "type", a tensor of it becomes something else."""

    text: str
    seed: int
    how: str = "argument"


def draw(choose: random.Random) -> Drawn | None:
    text = choose.choice(lines(choose.choice(layers.TOPICS)))
    seed = choose.randrange(1 << 30)
    if choose.random() < 0.25:
        return Drawn(text, seed, "type")
    if "V(" in text and choose.random() < 0.6:
        return Drawn(text, seed, "index")
    for _ in range(TRIED):
        new = changed(choose, text)
        if valid(new) is False:
            return Drawn(new, seed)
    return None


def with_bad_indices(case: Case) -> Case | None:
    """The call as it is, then with an index out of range, mostly one beside an axis, then as it is."""
    choose = choice(case.seed, "indices")
    good = case.calls[0]
    places = [i for i, a in enumerate(good) if a.dtype.kind in "iu" and a.size]
    if not places:
        return None
    bad: list[Any] = [np.array(a) for a in good]
    at = choose.choice(places)
    edges = sorted({edge for a in good for n in a.shape for edge in (n, -n - 1)})
    far = choose.choice(edges if edges and choose.random() < 0.8 else FAR)
    if bad[at].dtype.kind == "u" or not np.iinfo(bad[at].dtype).min <= far <= np.iinfo(bad[at].dtype).max:
        far = 100
    bad[at].reshape(-1)[choose.randrange(bad[at].size)] = far
    return case._replace(calls=(good, tuple(bad), good))


def with_another_type(case: Case) -> Case:
    """The call as it is, then with something else in place of a tensor, then as it is."""
    choose = choice(case.seed, "types")
    good = case.calls[0]
    at = choose.randrange(len(good))
    return case._replace(calls=(good, (*good[:at], choose.choice(OTHERS), *good[at + 1 :]), good))


def invalid(drawn: Drawn) -> Case | None:
    case = case_of(layers.Drawn(drawn.text, drawn.seed), "invalid calls")
    if case is None or drawn.how == "index":
        return case and with_bad_indices(case)
    return with_another_type(case) if drawn.how == "type" else case._replace(calls=case.calls[:1])


def difference(drawn: Drawn, ways: Iterable[Way] | None = None) -> str:
    case = invalid(drawn)
    if case is None:
        return ""
    try:
        wanted = [expected(case, arrays) for arrays in case.calls]
        if not any(isinstance(w, Refused) for w in wanted):
            return ""
        return broken(case, ways, wanted)
    except Exception as error:
        return f"eager NumPy raises {type(error).__name__}: {error}"
    finally:
        emberlet.set_default_backend(None)


def simpler(drawn: Drawn) -> Iterable[Drawn]:
    return layers.simpler(drawn)  # type: ignore[arg-type, return-value]


def program(drawn: Drawn) -> str:
    case = invalid(drawn)
    return drawn.text if case is None else f"# {drawn.text}\n{case.text()}"
