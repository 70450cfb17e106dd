"""The geometry of a sliding window, and the code that iterates over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from .layer import Array, Layer, View, as_image
from .writer import NEAR, Pointer, Writer

UNROLL = 32
"""Steps per iteration: as many as a load's offsets allow."""

FLAT = 36
"""A window of at most this many elements is written out without a loop.

A loop's machine code must stay below 2 KB. Jumps reach no farther on Cortex-M0+ and Xtensa, and on other Cortex-M,
MicroPython up to 1.25 miscompiles conditional jumps beyond 4 KB.
"""


@dataclass(frozen=True)
class Window:
    """A window of kernel (kh, kw) over an image: strides and dilations (y, x), pads (top, left, bottom, right)."""

    kernel: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)

    @property
    def reach(self) -> tuple[int, int]:
        """Rows and columns that one position covers."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True))  # type: ignore[return-value]

    def output(self, height: int, width: int) -> tuple[int, int]:
        """Positions of the window over an image, down and across."""
        top, left, bottom, right = self.pads
        h = (height + top + bottom - self.reach[0]) // self.strides[0] + 1
        w = (width + left + right - self.reach[1]) // self.strides[1] + 1
        return max(h, 0), max(w, 0)

    @property
    def is_padded(self) -> bool:
        return any(self.pads)

    def corner(self, x: View) -> int:
        """The element of the buffer where the first position of the window begins."""
        return x.origin - self.pads[0] * x.pitch - self.pads[1] * x.shape[2]

    def patches(self, x: Array, fill: int | float) -> Array:
        """What each position covers: (rows, columns, kh, kw, channels), the padding filled with `fill`."""
        h, w, c = x.shape
        if self.is_padded:
            top, left, bottom, right = self.pads
            padded = np.full((top + h + bottom, left + w + right, c), fill, x.dtype)
            padded[top : top + h, left : left + w] = x
        else:
            padded = np.ascontiguousarray(x)
        shape = (*self.output(h, w), *self.kernel, c)
        sy, sx, sc = padded.strides
        (dy, dx), (down, across) = self.strides, self.dilations
        found: Array = np.ndarray(shape, x.dtype, padded, strides=(sy * dy, sx * dx, sy * down, sx * across, sc))
        found.flags.writeable = False  # elements of several positions are one in memory
        return found


@dataclass(frozen=True)
class WindowLayer(Layer):
    """A layer that moves a window over an image. shape: of the input."""

    shape: tuple[int, ...]
    window: Window

    takes_borders = True

    @property
    def image(self) -> tuple[int, int, int]:
        return as_image(self.shape)

    @property
    def positions(self) -> int:
        h, w = self.window.output(*self.image[:2])
        return h * w


@contextmanager
def each_position(
    w: Writer, window: Window, image: tuple[int, int, int], x: View, y: View, out: Pointer
) -> Iterator[None]:
    """Loops over a window's positions in an image; code written inside starts at `b`.

    out: the pointer to the output, which the code inside advances along a row.
    """
    oh, ow = window.output(*image[:2])
    w.line(f"a = {w.place('i0', window.corner(x))}")
    w.go(out, w.place("o", y.origin))
    with w.times("i", oh):
        w.line("b = a")
        with w.times("j", ow):
            yield
            if ow > 1:
                w.line(f"b += {window.strides[1] * image[2]}")
        if oh > 1:
            w.line(f"a += {window.strides[0] * x.pitch}")
            w.move(out, y.pitch - y.row)


Step = Callable[[int, int], None]

Loops = tuple[tuple[int, int], ...]
"""Nested loops over a buffer, outermost first: (iterations, stride in elements)."""


def window_loops(window: Window, pitch: int, channels: int, run: int) -> tuple[Loops, int]:
    """The loops over one position, and the length of the contiguous run inside them.

    run: how many of a pixel's `channels` are read.
    """
    kh, kw = window.kernel
    loops = [(kh, pitch * window.dilations[0]), (kw, channels * window.dilations[1])]
    loops = [(n, step) for n, step in loops if n > 1]
    while loops and loops[-1][1] == run:
        run *= loops.pop()[0]
    if len(loops) == 2 and loops[0][1] == loops[1][0] * loops[1][1]:
        loops = [(loops[0][0] * loops[1][0], loops[1][1])]
    return tuple(loops), run


def offsets(loops: Loops, run: int) -> list[int]:
    """Every element of a walk, in order."""
    starts = [0]
    for n, step in loops:
        starts = [s + i * step for s in starts for i in range(n)]
    return [s + i for s in starts for i in range(run)]


def walk(
    w: Writer,
    loops: Loops,
    run: int,
    x: Pointer,
    weights: Pointer | None,
    step: Step,
    unroll: int = UNROLL,
) -> None:
    """Write `step` for each element of a walk of x, with `weights` (contiguous) moving along.

    step(i, k) writes the code for the element at offset i of x and k of the weights. At the end, the weights' pointer
    is after the last element; the position of x is unspecified. unroll: the most steps per iteration.
    """
    if _is_flat(loops, run, unroll):
        _straight(w, offsets(loops, run), x, weights, step)
        return
    if not loops:
        _stream(w, run, x, weights, step, unroll)
        return
    (turns, jump), inner = loops[0], loops[1:]
    counter = f"k{len(inner)}"
    w.line(f"{counter} = {turns}")
    with w.block(f"while {counter}"):
        moved = _advance(inner, run, unroll)
        walk(w, inner, run, x, weights, step, unroll)
        w.move(x, jump - moved)
        w.line(f"{counter} -= 1")


def _is_flat(loops: Loops, run: int, unroll: int) -> bool:
    """Whether a walk is written out without a loop."""
    total = run
    for n, _ in loops:
        total *= n
    return total <= unroll * FLAT // UNROLL


def _advance(loops: Loops, run: int, unroll: int) -> int:
    """The distance by which `walk` moves x."""
    if _is_flat(loops, run, unroll):
        return _straight_advance(offsets(loops, run))
    if not loops:
        return run
    return loops[0][0] * loops[0][1]


def _straight_advance(places: Sequence[int]) -> int:
    base = 0
    for i in places:
        if i - base >= NEAR:
            base = i
    return base


def _straight(w: Writer, places: Sequence[int], x: Pointer, weights: Pointer | None, step: Step) -> None:
    """Write every element out; pointers move when an offset would become too large."""
    base = done = 0
    for k, i in enumerate(places):
        if i - base >= NEAR:
            w.move(x, i - base)
            base = i
        if k - done >= NEAR and weights:
            w.move(weights, k - done)
            done = k
        step(i - base, k - done)
    if weights:
        w.move(weights, len(places) - done)


def _stream(w: Writer, run: int, x: Pointer, weights: Pointer | None, step: Step, most: int) -> None:
    """Write a long contiguous run as a loop over a few steps, followed by the rest."""
    unroll = best_unroll(run, most)
    w.line(f"k = {run // unroll}")
    with w.block("while k"):
        for i in range(unroll):
            step(i, i)
        w.move(x, unroll)
        if weights:
            w.move(weights, unroll)
        w.line("k -= 1")
    rest = run % unroll
    for i in range(rest):
        step(i, i)
    if rest:
        w.move(x, rest)
    if rest and weights:
        w.move(weights, rest)


def best_unroll(run: int, most: int = UNROLL) -> int:
    """The steps per iteration of a loop over `run` elements that leave the smallest remainder: between half of `most`
    and `most`."""
    return min(range(most, most // 2 - 1, -1), key=lambda u: run % u)
