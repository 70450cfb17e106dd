"""What breaks the contract and is not mended yet. An entry names the cause; test_known.py holds that its program still
breaks, so that the entry goes when the cause does."""

from __future__ import annotations

import re
from typing import NamedTuple


class Known(NamedTuple):
    """kinds: of cases; difference and program: regular expressions that are found in what is printed."""

    cause: str
    kinds: tuple[str, ...]
    difference: str
    program: str = ""


KNOWN: list[Known] = [
    Known(
        "NumPy plans copy a 0-d array from reserved memory into the blocks of a chain",
        ("programs", "modules", "layers"),
        "compiled for numpy.*(differ|changes)",
        r"F\.(max|min|sum|mean|prod|any|all|log|dynamic)",
    ),
    Known("results of NumPy plans that are constants share memory", ("programs", "modules", "layers"),
          "compiled for numpy.*(has (113|77)|changes the result)"),
    Known("sessions on wasm", ("sessions",), "on wasm.*allocations"),
    Known("plans on NumPy do not check indices as eager NumPy does", ("invalid",), "compiled for numpy"),
    Known("a compiled model that returns an object returns tensors of the trace", ("layers", "invalid"),
          "compiled for.*ValueNeeded"),
    Known("kernels, strides, dilations and padding of windows are not checked", ("layers", "invalid"), "",
          r"pool|conv|Conv|Pool|unfold|Unfold|col2im"),
    Known("backends refuse invalid arguments by different errors", ("invalid",), ""),
]  # fmt: skip


def cause(kind: str, difference: str, program: str) -> str | None:
    """The known cause of a difference, or None."""
    for known in KNOWN:
        if kind in known.kinds and re.search(known.difference, difference) and re.search(known.program, program):
            return known.cause
    return None
