"""Pools and reductions on words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...quantization.reference import Bytes
from ...quantization.sixteen import MOST, SumRequant, to_bytes, to_words
from ..layer import Array, View, dense_view, emit_extreme
from ..pool import _Pool
from ..window import UNROLL
from ..words import store_word
from ..writer import Pointer, Writer, Y
from .arithmetic import WORDS, finish


@dataclass(frozen=True)
class Pool16(_Pool):
    """operation: "max", "min" or "sum" of each window; an average is a sum. shape: of the input, its last axis in
    bytes; flat: whether the input is stored in another shape, without a border; zero: of the input, for sums."""

    operation: str
    flat: bool = False
    zero: int = 0
    requant: SumRequant | None = None

    source: ClassVar[Pointer] = WORDS
    unroll: ClassVar[int] = UNROLL // 4

    @property
    def takes_borders(self) -> bool:  # type: ignore[override]
        return not self.flat

    @property
    def fill(self) -> int:
        """The border's value."""
        return self.zero

    def reference(self, *inputs: Bytes) -> Bytes:
        h, w, c = self.image
        x = to_words(inputs[0]).reshape(h, w, c // 2)
        if self.requant is None:
            patches = self.window.patches(x, self.fill)
            return to_bytes(patches.max((2, 3)) if self.operation == "max" else patches.min((2, 3)))
        sums = self.window.patches(x - self.zero, 0).sum((2, 3))
        if len(self.requant.multipliers) == 1:
            return to_bytes(self.requant.apply(sums))
        return to_bytes(self.requant.apply(sums.reshape(-1, sums.shape[2]).T).T.reshape(sums.shape))

    def constants(self) -> tuple[Array, list[int]]:
        return np.empty(0, np.uint8), [] if self.requant is None else list(self.requant.multipliers)

    def view(self, x: View) -> View:
        return dense_view(self.shape) if self.flat else x

    def begin(self, w: Writer) -> None:
        if self.requant is not None:
            w.table("q", "to")

    def end_position(self, w: Writer) -> None:
        if self.requant is not None and len(self.requant.multipliers) > 1:
            w.move_table("q", 1)

    def begin_element(self, w: Writer) -> None:
        if self.requant is None:
            w.line(f"s = {0 if self.operation == 'max' else MOST}")
            return
        kh, kw = self.window.kernel
        total = -self.zero * kh * kw
        w.line(f"h = {total >> 8}")
        w.line(f"s = {total & 255}")

    def take(self, w: Writer, i: int) -> None:
        low, high = w.load(WORDS, 2 * i), w.load(WORDS, 2 * i + 1)
        if self.requant is not None:
            w.line(f"s = {low} + s")
            w.line(f"h = {high} + h")
            return
        w.line(f"v = {low} | {high} << 8")
        emit_extreme(w, self.operation)

    def finish(self, w: Writer) -> None:
        if self.requant is not None:
            finish(w, self.requant.lines(w.word("q")), self.requant)

    def store(self, w: Writer) -> None:
        store_word(w, Y)
