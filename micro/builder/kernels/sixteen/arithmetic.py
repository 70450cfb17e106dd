"""Shared by the kernels on words."""

from __future__ import annotations

from collections.abc import Sequence

from ...quantization.sixteen import DifferenceRequant, SumRequant
from ..layer import emit_clamp
from ..writer import Pointer, Writer

WORDS = Pointer("x", "A", 2)


def finish(w: Writer, lines: Sequence[str], how: SumRequant | DifferenceRequant) -> None:
    """Write the lines that set `s`, and clamp it."""
    for line in lines:
        w.line(line)
    emit_clamp(w, how.low, how.high)
