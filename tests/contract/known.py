"""What breaks the contract and is not mended yet. An entry names the cause; test_known.py holds that its program still
breaks, so that the entry goes when the cause does."""

from __future__ import annotations

import re
from typing import Any, NamedTuple


class Known(NamedTuple):
    """kinds: of cases; difference and program: regular expressions that are found in what is printed; example: the case
    that shows it."""

    cause: str
    kinds: tuple[str, ...]
    difference: str
    program: str = ""
    example: Any = None


KNOWN: list[Known] = []


def cause(kind: str, difference: str, program: str) -> str | None:
    """The known cause of a difference, or None."""
    for known in KNOWN:
        if kind in known.kinds and re.search(known.difference, difference) and re.search(known.program, program):
            return known.cause
    return None
