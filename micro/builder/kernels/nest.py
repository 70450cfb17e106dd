"""Nested loops over several tensors at once, each with its own strides, for elementwise layers and copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from .layer import View
from .writer import NEAR, Pointer, Writer, X, Y

MOST_UNROLL = 8


@dataclass(frozen=True)
class Axis:
    """One loop: its iterations, and the stride of each tensor."""

    turns: int
    steps: tuple[int, ...]


def image_axes(views: Sequence[View]) -> list[Axis]:
    """The loops over images of one shape that may have borders."""
    h, w, c = views[0].shape
    return [Axis(h, tuple(v.pitch for v in views)), Axis(w * c, (1,) * len(views))]


def start_at(w: Writer, x: View, y: View) -> None:
    """Point X at the first input, and Y at the output."""
    w.go_all((X, w.place("i0", x.origin)), (Y, w.place("o", y.origin)))


def copied(w: Writer, axes: Sequence[Axis], source: Pointer, table: Pointer | None = None) -> None:
    """Write code that copies elements from `source` to Y, through a table if there is one."""

    def element(at: tuple[int, ...]) -> None:
        value = w.load(source, at[0])
        w.store(Y, w.load(table, value) if table else value, at[1])

    nest(w, axes, (source, Y), element)


def merged(axes: Sequence[Axis]) -> list[Axis]:
    """The same loops, merged as far as possible."""
    kept: list[Axis] = []
    for axis in axes:
        if axis.turns == 1:
            continue
        if kept and all(o == i * axis.turns for o, i in zip(kept[-1].steps, axis.steps, strict=True)):
            kept[-1] = Axis(kept[-1].turns * axis.turns, axis.steps)
        else:
            kept.append(axis)
    return kept


@contextmanager
def each_lane(w: Writer, shape: tuple[int, int, int], x: View, y: View, width: int = 1, out: int = 1) -> Iterator[None]:
    """Loops over the lanes along the middle axis of (outer, length, inner); code written inside starts at `a` and
    stores at Y. width, out: bytes of an element of both tensors."""
    outer, length, inner = shape
    w.line(f"a = {w.place('i0', x.origin)}")
    w.go(Y, w.place("o", y.origin))
    with w.times("i", outer):
        with w.times("n", inner):
            yield
            w.move(Y, out)
            w.line(f"a += {width}")
        if outer > 1 and length > 1:
            w.line(f"a += {(length - 1) * inner * width}")


def nest(
    w: Writer,
    axes: Sequence[Axis],
    pointers: Sequence[Pointer],
    body: Callable[[tuple[int, ...]], None],
    most: int = MOST_UNROLL,
) -> None:
    """Write `body` for every element. most: elements per iteration, fewer if their code is long, since loops of machine
    code must stay below 2 KB.

    pointers: one for each entry of the axes' steps, at their first elements; where they end is unspecified.
    body(offsets): writes one element's lines; the pointers' offsets are constants that a load can reach.
    """
    axes = merged(axes)
    if not axes:
        body((0,) * len(pointers))
        return
    _level(w, axes, pointers, body, most)


def _level(
    w: Writer,
    axes: list[Axis],
    pointers: Sequence[Pointer],
    body: Callable[[tuple[int, ...]], None],
    most: int,
) -> None:
    axis, inner = axes[0], axes[1:]
    counter = f"l{len(inner)}"
    if inner:
        w.line(f"{counter} = {axis.turns}")
        with w.block(f"while {counter}"):
            _level(w, inner, pointers, body, most)
            for p, step, back in zip(pointers, axis.steps, _moved(inner), strict=True):
                w.move(p, step - back)
            w.line(f"{counter} -= 1")
        return
    unroll = _unroll(axis, most)
    with w.times(counter, axis.turns // unroll):
        for u in range(unroll):
            body(tuple(u * step for step in axis.steps))
        for p, step in zip(pointers, axis.steps, strict=True):
            w.move(p, unroll * step)
    rest = axis.turns % unroll
    for u in range(rest):
        body(tuple(u * step for step in axis.steps))
    for p, step in zip(pointers, axis.steps, strict=True):
        w.move(p, rest * step)


def _moved(axes: list[Axis]) -> tuple[int, ...]:
    """How far the loops move each pointer."""
    return tuple(axes[0].turns * step for step in axes[0].steps)


def _unroll(axis: Axis, most: int) -> int:
    """Elements per iteration: a divisor of the number of iterations if there is one."""
    most = max(1, min(most, axis.turns, NEAR // max(map(abs, axis.steps))))
    if min(axis.steps) < 0:
        most = 1
    return next((u for u in range(most, most // 2, -1) if axis.turns % u == 0), most)
