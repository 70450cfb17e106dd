"""Sums, differences and products of two tensors of words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...quantization.sixteen import DifferenceRequant, SumRequant, to_bytes, to_words
from ..elementwise import _Binary
from ..layer import Array, as_image
from ..writer import Writer
from .arithmetic import finish


@dataclass(frozen=True)
class Pair16(_Binary):
    """operation: "add" or "sub" (`how` is DifferenceRequant) or "mul" (SumRequant). shape, other: their last axes in
    bytes; constant: words; zeros: the operands' zero points."""

    zeros: tuple[int, int]
    how: DifferenceRequant | SumRequant

    unroll: ClassVar[int] = 2
    width: ClassVar[int] = 2

    def operands(self, inputs: Sequence[Array]) -> tuple[Array, Array]:
        words = [to_words(x) for x in inputs] if self.constant is None else [to_words(inputs[0]), self.constant]
        first, second = (
            x.reshape(*as_image(shape)[:2], -1) for x, shape in zip(words, (self.shape, self.other), strict=True)
        )
        return first, second

    def constants(self) -> tuple[Array, list[int]]:
        return (np.empty(0, np.uint8) if self.constant is None else to_bytes(self.constant.reshape(-1))), []

    def compute(self, w: Writer, a: str, b: str) -> None:
        if isinstance(self.how, DifferenceRequant):
            finish(w, self.how.lines([a, b]), self.how)
            return
        w.line(f"u = ({a}) - {self.zeros[0]}")
        w.line(f"v = ({b}) - {self.zeros[1]}")
        w.line("h = (u >> 8) * v")
        w.line("s = (u & 255) * v")
        finish(w, self.how.lines(str(self.how.multipliers[0])), self.how)
