"""Operations along an axis: the k largest elements and their indices, cumulative sums, gathering by index.

A lane is the elements along the middle axis of (outer, length, inner).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..quantization.reference import Bytes, Requant, requantize
from .arg import store_index, two_bytes
from .layer import Array, Layer, View, emit_requantize
from .nest import start_at
from .pool import load_words, packed, words_of
from .writer import Pointer, Writer, X, Y, Z

TABLE = Pointer("x", "W")

FARTHEST = 3.4e38


@dataclass(frozen=True)
class TopK(Layer):
    """The k largest or smallest elements of each lane in order, or their indices, for bytes and floats.

    shape: (outer, length, inner) of the input; the first of equal elements wins; words: indices take two bytes.
    """

    shape: tuple[int, int, int]
    k: int
    largest: bool
    indices: bool
    words: bool = False

    @property
    def turns(self) -> int:
        outer, length, inner = self.shape
        return outer * length * inner * self.k

    def reference(self, *inputs: Array) -> Array:
        x = inputs[0].reshape(self.shape)
        key = x.astype(np.float64) * (-1 if self.largest else 1)
        order = np.argsort(key, 1, kind="stable")[:, : self.k]
        if self.words:
            return two_bytes(order)
        return order.astype(x.dtype) if self.indices else np.take_along_axis(x, order, 1)

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        outer, length, inner = self.shape
        w = Writer(dialect, (X, "s", "i"), self.places())
        beyond = (FARTHEST if w.float else 256) if self.largest else (-FARTHEST if w.float else -1)
        after, better = ("<", ">") if self.largest else (">", "<")
        size = 2 if self.words else 1
        w.line(f"a = {w.place('i0', inputs[0].origin)}")
        w.line(f"b = {w.place('o', output.origin)}")
        with w.times("m", outer):
            with w.times("n", inner):
                w.go(Y, "b")
                # The last element found, and its index; the next one comes after it.
                w.line(f"h = {beyond}")
                w.line("g = -1")
                with w.times("j", self.k):
                    w.go(X, "a")
                    w.line(f"s = {'0.0' if w.float else 0}")
                    w.line("d = -1")
                    w.line("i = 0")
                    with w.block(f"while i < {length}"):
                        w.line(f"v = {w.load(X)}")
                        with w.block(f"if v {after} h or v == h and i > g"):
                            with w.block(f"if d < 0 or v {better} s"):
                                w.line("s = v")
                                w.line("d = i")
                        w.move(X, inner)
                        w.line("i += 1")
                    w.line("h = s")
                    w.line("g = d")
                    store_index(w, Y, "g" if self.indices else "h", self.words)
                    w.move(Y, size * inner)
                w.line("a += 1")
                w.line(f"b += {size}")
            if outer > 1:
                w.line(f"a += {(length - 1) * inner}")
                w.line(f"b += {size * (self.k - 1) * inner}")
        return w


@dataclass(frozen=True)
class _RunningSum(Layer):
    """shape: (outer, length, inner); exclusive: without the element itself; reverse: from the end."""

    shape: tuple[int, int, int]
    exclusive: bool
    reverse: bool

    def sums(self, x: Array) -> Array:
        x = x.reshape(self.shape)
        x = x[:, ::-1] if self.reverse else x
        y = np.cumsum(x, 1) - (x if self.exclusive else 0)
        return y[:, ::-1] if self.reverse else y

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        outer, length, inner = self.shape
        w = Writer(dialect, (X, "s", Y), self.places())
        self.begin(w)
        start, step = ((length - 1) * inner, -inner) if self.reverse else (0, inner)
        w.line(f"a = {w.place('i0', inputs[0].origin + start)}")
        w.line(f"b = {w.place('o', output.origin + start)}")
        with w.times("m", outer):
            with w.times("n", inner):
                w.go_all((X, "a"), (Y, "b"))
                w.line(f"c = {'0.0' if w.float else 0}")
                with w.times("k", length):
                    if self.exclusive:
                        self.finish(w)
                        w.line(f"c = {self.element(w)} + c")
                    else:
                        w.line(f"c = {self.element(w)} + c")
                        self.finish(w)
                    w.store(Y, "s")
                    w.move_all((X, step), (Y, step))
                w.line("a += 1")
                w.line("b += 1")
            if outer > 1 and length > 1:
                w.line(f"a += {(length - 1) * inner}")
                w.line(f"b += {(length - 1) * inner}")
        return w

    def begin(self, w: Writer) -> None:
        """Write the code that runs once, before the loops."""

    def element(self, w: Writer) -> str:
        return w.load(X)

    def finish(self, w: Writer) -> None:
        """Set `s` from the sum `c`."""
        w.line("s = c")


@dataclass(frozen=True)
class RunningSum(_RunningSum):
    """In int8. zero: of the input."""

    zero: int
    requant: Requant

    def reference(self, *inputs: Bytes) -> Bytes:
        return requantize(self.sums(inputs[0].astype(np.int64) - self.zero), self.requant)

    def constants(self) -> tuple[Array, list[int]]:
        return np.empty(0, np.uint8), packed(self.requant)

    def begin(self, w: Writer) -> None:
        w.table("q", "to")
        load_words(w, self.requant)

    def element(self, w: Writer) -> str:
        return f"{w.load(X)} - {self.zero}"

    def finish(self, w: Writer) -> None:
        w.line("s = c")
        emit_requantize(w, self.requant, words_of(self.requant))


@dataclass(frozen=True)
class RunningSumFloat(_RunningSum):
    """In float32."""

    def reference(self, *inputs: Array) -> Array:
        return self.sums(inputs[0].astype(np.float64)).astype(np.float32)


@dataclass(frozen=True)
class Take(Layer):
    """Elements at the indices that another tensor holds, as in an embedding.

    inputs: the source, unless it is constant (`table`), and the indices. shape: (outer, length, inner) of the source;
    count: number of indices; zero: their zero point; words: they take two bytes. Negative indices count from the end;
    an index out of range gives the last element.
    """

    shape: tuple[int, int, int]
    count: int
    table: Array | None
    zero: int = 0
    words: bool = False

    def reference(self, *inputs: Array) -> Array:
        x = inputs[0] if self.table is None else self.table
        length = self.shape[1]
        at = inputs[-1].reshape(-1).astype(np.int64)
        at = (at[::2] + 256 * at[1::2] if self.words else at) - self.zero
        at = np.clip(np.where(at < 0, at + length, at), 0, length - 1)
        return x.reshape(self.shape)[:, at]

    def constants(self) -> tuple[Array, list[int]]:
        return (np.empty(0, np.uint8) if self.table is None else self.table.reshape(-1)), []

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        outer, length, inner = self.shape
        source = X if self.table is None else TABLE
        w = Writer(dialect, (source, Y, Z), self.places())
        w.line(f"a = {w.place('i0', inputs[0].origin) if self.table is None else w.place('wo')}")
        w.go(Y, w.place("o", output.origin))
        ids = w.place(f"i{len(inputs) - 1}", inputs[-1].origin)
        w.go(Z, ids)
        with w.times("m", outer):
            with w.times("j", self.count):
                w.line(f"s = {_index(w, Z, self.zero, self.words)}")
                with w.block("if s < 0"):
                    w.line(f"s += {length}")
                with w.block("if s < 0"):
                    w.line("s = 0")
                with w.block(f"elif s >= {length}"):
                    w.line(f"s = {length - 1}")
                w.go(source, f"a + s * {inner}")
                unroll = next(u for u in (8, 7, 6, 5, 4, 3, 2, 1) if inner % u == 0)
                with w.times("k", inner // unroll):
                    for u in range(unroll):
                        w.store(Y, w.load(source, u), u)
                    w.move_all((source, unroll), (Y, unroll))
                w.move(Z, 2 if self.words else 1)
            if outer > 1:
                w.line(f"a += {length * inner}")
                w.move(Z, -self.count * (2 if self.words else 1))
        return w


@dataclass(frozen=True)
class OneHot(Layer):
    """Along a new axis of size `depth`, the element at the input's index is `on` and the others are `off`.

    outer, inner: elements of the input before and after that axis; zero: the zero point of the indices, which count
    from the end if negative.
    """

    outer: int
    depth: int
    inner: int
    off: float
    on: float
    zero: int = 0

    def reference(self, *inputs: Array) -> Array:
        at = inputs[0].reshape(self.outer, 1, self.inner).astype(np.int64) - self.zero
        at = np.where(at < 0, at + self.depth, at)
        found = at == np.arange(self.depth).reshape(1, -1, 1)
        return np.where(found, self.on, self.off).astype(inputs[0].dtype)

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        w = Writer(dialect, (X, Y, "s"), self.places())
        off, on = (repr(float(v)) if w.float else str(int(v)) for v in (self.off, self.on))
        start_at(w, inputs[0], output)
        with w.times("m", self.outer):
            w.line("d = 0")
            with w.block(f"while d < {self.depth}"):
                with w.times("n", self.inner):
                    w.line(f"s = {_index(w, X, self.zero)}")
                    with w.block("if s < 0"):
                        w.line(f"s += {self.depth}")
                    with w.block("if s == d"):
                        w.store(Y, on)
                    with w.block("else"):
                        w.store(Y, off)
                    w.move_all((X, 1), (Y, 1))
                w.move(X, -self.inner)
                w.line("d += 1")
            w.move(X, self.inner)
        return w


def _index(w: Writer, p: Pointer, zero: int, words: bool = False) -> str:
    """The index that an element stands for."""
    if w.float:
        return f"int({w.load(p)})"
    if words:
        return f"{w.load(p)} + ({w.load(p, 1)} << 8) - {zero}"
    return f"{w.load(p)} - {zero}" if zero else w.load(p)
