"""Invalid arguments and indices: every way refuses what eager NumPy refuses, with the same words, and computes what is
valid before and after."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import emberlet
import numpy as np

from ..case import Case
from ..properties import broken
from ..reference import Refused, choice, expected
from ..ways import Way
from . import layers
from .layers import Drawn, case_of, changed, lines, program, valid

NEEDS: tuple[str, ...] = ()
TRIED = 12
FAR = (1000, -1000)
__all__ = ["NEEDS", "difference", "draw", "program", "simpler"]


def draw(choose: random.Random) -> Drawn | None:
    """A call with an invalid argument, or one whose indices get invalid values (a negative seed)."""
    text = choose.choice(lines(choose.choice(layers.TOPICS)))
    if "V(" in text and choose.random() < 0.6:
        return Drawn(text, -choose.randrange(1, 1 << 30))
    for _ in range(TRIED):
        new = changed(choose, text)
        if valid(new) is False:
            return Drawn(new, choose.randrange(1 << 30))
    return None


def with_bad_indices(drawn: Drawn) -> Case | None:
    """The call as it is, then with an index out of range, mostly one beside an axis, then as it is."""
    case = case_of(drawn, "invalid calls")
    if case is None:
        return None
    choose = choice(drawn.seed, "indices")
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
    return case._replace(calls=(good, tuple(bad), good), seed=-case.seed)


def difference(drawn: Drawn, ways: Iterable[Way] | None = None) -> str:
    case = with_bad_indices(drawn) if drawn.seed < 0 else case_of(drawn, "invalid calls")
    if case is None:
        return ""
    if drawn.seed >= 0:
        case = case._replace(calls=case.calls[:1])
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
    return layers.simpler(drawn)
