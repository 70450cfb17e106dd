"""Cases of other kinds in other runtimes (contract/runtimes): saved models in JavaScript, functions in MicroPython."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, NamedTuple

from ..case import COUNTED
from ..runtimes import runtimes
from . import invalid, layers, programs

NEEDS: tuple[str, ...] = ("node",)
KINDS: dict[str, Any] = {"programs": programs, "layers": layers, "invalid": invalid}


class Drawn(NamedTuple):
    """A case of another kind."""

    kind: str
    case: Any


def draw(choose: random.Random) -> Drawn | None:
    kind = choose.choice(sorted(KINDS))
    case = KINDS[kind].draw(choose)
    return None if case is None else Drawn(kind, case)


def difference(drawn: Drawn) -> str:
    COUNTED["other runtimes"] += 1
    found: str = KINDS[drawn.kind].difference(drawn.case, runtimes())
    return found


def simpler(drawn: Drawn) -> Iterable[Drawn]:
    return (drawn._replace(case=case) for case in KINDS[drawn.kind].simpler(drawn.case))


def program(drawn: Drawn) -> str:
    found: str = KINDS[drawn.kind].program(drawn.case)
    return found
