"""Dense layers and convolutions on words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from emberlet.errors import UnsupportedError

from ...quantization.reference import ZERO, Bytes, Ints
from ...quantization.sixteen import LIFT, SumRequant, to_bytes, to_words
from ..dot import ByteWeights, _Dot
from ..layer import Array
from ..window import UNROLL, Loops, walk
from ..words import store_word
from ..writer import WEIGHTS, Pointer, Writer, Y
from .arithmetic import WORDS, finish


@dataclass(frozen=True)
class Dot16(_Dot, ByteWeights):
    """A dense layer or a convolution. shape: of the input, its last axis in bytes."""

    zero: int
    requant: SumRequant
    weight_zero: int

    source: ClassVar[Pointer] = WORDS

    def reference(self, *inputs: Bytes) -> Bytes:
        return to_bytes(self.numbers(*inputs))

    def numbers(self, *inputs: Bytes) -> Ints:
        """The output as words."""
        return self.requant.apply(self.total(to_words(inputs[0])))

    def check(self) -> None:
        """Raises UnsupportedError if a sum of bytes may not fit a word."""
        w = self.weights.reshape(len(self.weights), -1).astype(np.int64)
        ends = [self.folded >> 8, (self.folded >> 8) + 255 * (w - self.weight_zero).clip(0).sum(1)]
        most = max(int(np.abs(e).max()) for e in ends) + 255 * self.weight_zero * w.shape[1]
        if most >= LIFT:
            raise UnsupportedError(
                f"{self.name}: a sum of 16-bit activations may reach {most << 8}, beyond {LIFT << 8}; calibrate the "
                "model to 8 bits with samples (--calibration samples.npz), or build it with --float"
            )

    def constants(self) -> tuple[Array, list[int]]:
        words: list[int] = []
        for channel, bias in enumerate(self.folded):
            words += [int(bias >> 8) + LIFT, int(bias & 255), *self.requant.packed(channel)]
        return self.weights.reshape(-1), words

    def begin_position(self, w: Writer) -> None:
        w.table("q", "to")

    def begin_window(self, w: Writer, start: str, loops: Loops, run: int) -> None:
        """The bytes of weights are products too great by the sums of the window's bytes."""
        w.go(WORDS, start)
        w.line("s = 0")
        w.line("t = 0")

        def add(i: int, k: int) -> None:
            w.line(f"s = {w.load(WORDS, 2 * i)} + s")
            w.line(f"t = {w.load(WORDS, 2 * i + 1)} + t")

        walk(w, loops, run, WORDS, None, add, UNROLL // 4)
        low, high = (f"({v} << 7)" if self.weight_zero == ZERO else f"{v} * {self.weight_zero}" for v in "st")
        w.line(f"t = 0 - {high} - {LIFT}")
        w.line(f"d = 0 - {low}")

    def begin_sum(self, w: Writer) -> None:
        w.line(f"h = {w.word('q')} + t")
        w.line(f"s = {w.word('q', 1)} + d")

    def walk(self, w: Writer, loops: Loops, run: int) -> None:
        """Add the products of a window to `s` and `h`."""

        def add(i: int, k: int) -> None:
            w.line(f"v = {w.load(WEIGHTS, k)}")
            w.line(f"s = v * {w.load(WORDS, 2 * i)} + s")
            w.line(f"h = v * {w.load(WORDS, 2 * i + 1)} + h")

        walk(w, loops, run, WORDS, WEIGHTS, add, UNROLL // 4)

    def finish(self, w: Writer) -> None:
        finish(w, self.requant.lines(w.word("q", 2), w.word("q", 3)), self.requant)
        w.move_table("q", 2 + self.requant.words)

    def put(self, w: Writer) -> None:
        store_word(w, Y)
        w.move(Y, 2)
