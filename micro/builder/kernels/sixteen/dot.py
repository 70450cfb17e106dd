"""Dense layers and convolutions on words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from emberlet.errors import UnsupportedError

from ...quantization.reference import Bytes, Ints
from ...quantization.sixteen import LIFT, Deep, joined, parted
from ..dot import WEIGHTS, _Dot
from ..layer import Array, View
from ..window import UNROLL, each_position, walk, window_loops
from ..words import store_word
from ..writer import Writer
from .arithmetic import WORDS, Y, finish


@dataclass(frozen=True)
class Dot16(_Dot):
    """A dense layer or a convolution. shape: of the input, its last axis in bytes; weights: bytes around weight_zero;
    bias: in steps of the sums; zero: the input's zero point."""

    zero: int
    requant: Deep
    weight_zero: int

    @property
    def folded(self) -> Ints:
        """The bias with what the zero points add to it."""
        w = self.weights.reshape(len(self.weights), -1).astype(np.int64) - self.weight_zero
        return np.asarray(self.bias - self.zero * w.sum(1), np.int64)

    def reference(self, *inputs: Bytes) -> Bytes:
        return parted(self.numbers(*inputs))

    def numbers(self, *inputs: Bytes) -> Ints:
        """The output as words."""
        h, w, c = self.image
        x = (joined(inputs[0]) - self.zero).reshape(h, w, c // 2)
        steps = self.weights.astype(np.int64) - self.weight_zero
        patches = self.window.patches(x.astype(np.float64), 0)
        oh, ow, _, _, c = patches.shape
        each, n = c // self.groups, len(steps) // self.groups
        sums = np.empty((oh, ow, len(steps)))
        for g in range(self.groups):
            part = patches[..., g * each : (g + 1) * each].reshape(oh, ow, -1)
            sums[..., g * n : (g + 1) * n] = part @ steps[g * n : (g + 1) * n].reshape(n, -1).T.astype(np.float64)
        return self.requant.apply(np.rint(sums).astype(np.int64) + self.bias)

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

    def put(self, w: Writer) -> None:
        """Store `s`, and move on."""
        store_word(w, Y)
        w.move(Y, 2)

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        x = inputs[0]
        w = Writer(dialect, (WORDS, "s", WEIGHTS), self.places())
        each, n = self.weights.shape[3], len(self.weights) // self.groups
        loops = window_loops(self.window, x.pitch // 2, self.image[2] // 2, each)
        by = f"(t << 7) - {LIFT}" if self.weight_zero == 128 else f"t * {self.weight_zero} - {LIFT}"
        low = "(s << 7)" if self.weight_zero == 128 else f"s * {self.weight_zero}"

        def add(i: int, k: int) -> None:
            w.line(f"v = {w.load(WEIGHTS, k)}")
            w.line(f"s = v * {w.load(WORDS, 2 * i)} + s")
            w.line(f"h = v * {w.load(WORDS, 2 * i + 1)} + h")

        def add_up(i: int, k: int) -> None:
            w.line(f"s = {w.load(WORDS, 2 * i)} + s")
            w.line(f"t = {w.load(WORDS, 2 * i + 1)} + t")

        with each_position(w, self.window, self.image, x, output, Y):
            w.line("c = b")
            w.table("q", "to")
            w.go(WEIGHTS, w.place("wo"))
            with w.times("g", self.groups):
                w.go(WORDS, "c")
                w.line("s = 0")
                w.line("t = 0")
                walk(w, *loops, WORDS, None, add_up, UNROLL // 4)
                w.line(f"t = 0 - {by}")
                w.line(f"d = 0 - {low}")
                with w.times("n", n):
                    w.go(WORDS, "c")
                    w.line(f"h = {w.word('q')} + t")
                    w.line(f"s = {w.word('q', 1)} + d")
                    walk(w, *loops, WORDS, WEIGHTS, add, UNROLL // 4)
                    finish(w, self.requant.lines(w.word("q", 2), w.word("q", 3)), self.requant)
                    w.move_table("q", 2 + self.requant.words)
                    self.put(w)
                if self.groups > 1:
                    w.line(f"c += {2 * each}")
        return w
