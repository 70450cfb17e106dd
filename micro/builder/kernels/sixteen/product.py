"""Matrix products of two computed tensors of words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...quantization.reference import Bytes
from ...quantization.sixteen import MOST, SumRequant, to_bytes, to_words
from ..layer import Array
from ..product import _Product
from ..words import store_word
from ..writer import Pointer, Writer, Y
from .arithmetic import finish
from .long import CARRY, long_sum

A = Pointer("x", "A", 2)
B = Pointer("z", "A", 2)


@dataclass(frozen=True)
class Product16(_Product):
    """zeros: the operands' zero points; drop: bits dropped from a sum before `requant`, so that 36 remain."""

    zeros: tuple[int, int]
    drop: int
    requant: SumRequant

    width: ClassVar[int] = 2
    pointers: ClassVar[tuple[Pointer, Pointer]] = (A, B)

    @staticmethod
    def dropped(depth: int) -> int:
        """Bits to drop from a sum of this many products."""
        return max(0, (depth * MOST * MOST).bit_length() - 36)

    def reference(self, *inputs: Bytes) -> Bytes:
        a, b = self.matrices([to_words(x.reshape(-1)) for x in inputs])
        sums = (a - self.zeros[0]) @ (b - self.zeros[1])
        shape = (*(n for n, _, _ in self.batches), self.rows, 2 * self.columns)
        return to_bytes(self.requant.apply(sums >> self.drop)).reshape(shape)

    def constants(self) -> tuple[Array, list[int]]:
        return np.empty(0, np.uint8), list(self.requant.packed(0))

    def begin(self, w: Writer) -> None:
        w.table("q", "to")

    def dot(self, w: Writer) -> None:
        (low, high), other = (self.zeros[0] & 255, self.zeros[0] >> 8), self.zeros[1]
        if self.zeros[0]:
            w.line("v = 0")

        def add() -> None:
            w.line(f"u = ({w.load(B)} | {w.load(B, 1)} << 8)" + (f" - {other}" if other else ""))
            w.line(f"s = {w.load(A)} * u + s")
            w.line(f"h = {w.load(A, 1)} * u + h")
            if self.zeros[0]:
                w.line("v = v + u")
            w.move_all((A, self.first[1]), (B, self.second[0]))

        own = [f"s = s - v * {low}"] if low else []
        own += [f"h = h - v * {high}"] if high else []
        long_sum(w, self.depth, add, (*own, *(["v = 0"] if own else []), *CARRY), 2)
        if self.drop:
            w.line(f"s = (h << 8 | s) >> {self.drop}")
            w.line(f"h = t << {16 - self.drop}")
        else:
            w.line("h = (t << 16) + h")

    def finish(self, w: Writer) -> None:
        finish(w, self.requant.lines(w.word("q"), w.word("q", 1)), self.requant)

    def put(self, w: Writer) -> None:
        store_word(w, Y)
        w.move(Y, 2)
