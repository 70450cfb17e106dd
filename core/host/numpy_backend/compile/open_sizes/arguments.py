"""What becomes of the arguments of a call, given what they are at each point (plan.py)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .....backend.tracing import ValueNeeded
from .....tensor import Tensor
from ...storage import Array
from ..memory import Buffers, address, owner
from .polynomials import Polynomials


class View:
    """An array of a plan's own. memory: the number of its buffer, or constant memory; kind: its dtype; numbers: the
    polynomials of offset, shape and strides; pick: takes their values from those of all; place: its number among all
    Views."""

    __slots__ = ("kind", "memory", "numbers", "pick", "place", "rank")

    def __init__(self, memory: Any, kind: np.dtype[Any], numbers: list[int], place: int) -> None:
        self.memory = memory
        self.kind = kind
        self.numbers = numbers
        self.pick = operator.itemgetter(*numbers, 0)  # a second index, because with one it returns no tuple
        self.rank = len(numbers) // 2
        self.place = place


class Number:
    """A number that depends on the lengths."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


class Whole:
    """A Tensor, list or tuple with such parts."""

    __slots__ = ("make", "parts")

    def __init__(self, make: Callable[[list[Any]], Any], parts: list[Any]) -> None:
        self.make = make
        self.parts = parts


class Finder:
    """Finds what becomes of an argument, given what it is at each point: itself, or a View, Number or Whole."""

    def __init__(self, buffers: list[Buffers], index: list[dict[int, int]], numbers: Polynomials) -> None:
        self.buffers = buffers
        self.index = index
        self.numbers = numbers
        self.views: dict[Any, View] = {}

    def varies(self, number: int) -> bool:
        """Whether a polynomial is not constant."""
        return bool(self.numbers.coefficients[number][1:].any())

    def __call__(self, xs: Sequence[Any]) -> Any:
        x = xs[0]
        if any(type(v) is not type(x) for v in xs):
            raise ValueNeeded("the NumPy calls depend on the lengths")
        if isinstance(x, np.ndarray):
            return self._array(xs)
        if isinstance(x, Tensor):
            data = self([v.data for v in xs])
            if data is x.data:
                return x
            dtype, backend = x.dtype, x.backend
            return Whole(lambda parts: Tensor(parts[0], dtype, parts[0].shape, backend), [data])
        if type(x) in (list, tuple):
            if any(len(v) != len(x) for v in xs):
                raise ValueNeeded("the NumPy calls depend on the lengths")
            parts = [self(v) for v in zip(*xs, strict=True)]
            if all(p is v for p, v in zip(parts, x, strict=True)):
                return x
            return Whole(type(x), parts)
        if type(x) is int and any(v != x for v in xs):
            return Number(self.numbers.number(xs))
        if any(v is not x and v != x for v in xs):
            raise ValueNeeded("the NumPy calls depend on the lengths")
        return x

    def _array(self, xs: Sequence[Array]) -> Any:
        x = xs[0]
        if any(v.ndim != x.ndim or v.dtype != x.dtype for v in xs):
            raise ValueNeeded("the NumPy calls depend on the lengths")
        found = [b.of(v) for b, v in zip(self.buffers, xs, strict=True)]
        if found[0] is not None:
            at = {index[id(b)] for index, b in zip(self.index, found, strict=True) if b is not None}
            if len(at) > 1 or None in found:
                raise ValueNeeded("the NumPy calls depend on the lengths")
            starts = [address(b.base) for b in found if b is not None]
            return self._view(at.pop(), xs, starts)
        if any(b is not None for b in found):
            raise ValueNeeded("the NumPy calls depend on the lengths")
        if all(v is x for v in xs):
            return x
        if all(v.shape == x.shape and v.strides == x.strides for v in xs):
            if all(address(v) == address(x) for v in xs) or all(np.array_equal(v, x) for v in xs):
                return x
        if len({owner(v) for v in xs}) > 1:
            raise ValueNeeded("the elements of a constant depend on the lengths")
        whole = x
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        if not whole.flags.c_contiguous:
            raise ValueNeeded("a constant lies in memory with gaps")
        return self._view(whole.reshape(-1).view(np.uint8), xs, [address(whole)] * len(xs))

    def _view(self, memory: Any, xs: Sequence[Array], starts: list[int]) -> View:
        number = self.numbers.number
        offset = number([address(v) - start for v, start in zip(xs, starts, strict=True)])
        shape = [number(n) for n in zip(*(v.shape for v in xs), strict=True)]
        # Along an axis of one element NumPy's stride may be anything.
        strides = [number(n) for n in zip(*(v.strides for v in xs), strict=True)]
        key = (memory if type(memory) is int else id(memory.base), xs[0].dtype.str, offset, *shape, *strides)
        if key not in self.views:
            self.views[key] = View(memory, xs[0].dtype, [offset, *shape, *strides], len(self.views))
        return self.views[key]


def changes(x: Any, moving: set[int], varies: Callable[[int], bool]) -> bool:
    """Whether an argument depends on the lengths."""
    if type(x) is View:
        return x.place in moving
    if type(x) is Number:
        return varies(x.number)
    if type(x) is Whole:
        return any(changes(v, moving, varies) for v in x.parts)
    return False
