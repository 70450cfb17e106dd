"""What breaks the contract and is not mended yet. An entry names the cause; test_known.py holds that its program still
breaks, so that the entry goes when the cause does."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from .kinds.layers import Drawn


class Known(NamedTuple):
    """kinds: of cases; difference and program: regular expressions that are found in what is printed; example: the case
    that shows it."""

    cause: str
    kinds: tuple[str, ...]
    difference: str
    program: str = ""
    example: Any = None


KNOWN: list[Known] = [
    Known(
        "causal_conv with open sizes takes a state of another length",
        ("invalid",),
        "open sizes",
        "causal_conv",
    ),
    Known("qlinear_conv takes negative padding on some backends", ("invalid",), "", "qlinear_conv"),
    Known("dequantize_linear does not check the shape of block scales", ("invalid",), "", "dequantize_linear"),
    Known(
        "group_query_attention with all three in q: eagerly another argument is blamed for an index outside its axis",
        ("invalid",),
        "k is None; it takes a tensor",
        "group_query_attention",
    ),
    Known(
        "linear_attention with open sizes takes k and v of different lengths",
        ("invalid",),
        "open sizes",
        "linear_attention",
    ),
    Known(
        "functions that index without a check: computed on wgpu and wasm, refused by NumPy's own error",
        ("invalid", "layers"),
        "",
        "searchsorted|slice_axes|pad_axes",
    ),
    Known(
        "saved plans do not check indices that are computed from inputs",
        ("invalid",),
        "saved for .*returns .*IndexingError",
        "",
        Drawn("gather_nd(X(1, 3), V([[0, 1], [1, -3]]))", 1),
    ),
]


def cause(kind: str, difference: str, program: str) -> str | None:
    """The known cause of a difference, or None."""
    for known in KNOWN:
        if kind in known.kinds and re.search(known.difference, difference) and re.search(known.program, program):
            return known.cause
    return None
