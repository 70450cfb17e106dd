"""The memory of a plan for all lengths, and its steps in it at the lengths of a call."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...storage import Array
from .arguments import Number, View, Whole
from .polynomials import CAPACITY

if TYPE_CHECKING:
    from .plan import OpenPlan


class Bound:
    """The memory of one call at a time, and the plan's steps in it."""

    def __init__(self, plan: OpenPlan) -> None:
        self.plan = plan
        self.numbers: list[int] = []
        self.rooms: list[Array] = []
        self.arrays: list[Any] = [None] * len(plan._views)
        self.capacity: dict[str, int] = {}
        self.steps: list[tuple[Callable[..., Any], Sequence[Any]]] = []

    def fit(self, lengths: dict[str, int], rooms: Sequence[Array]) -> None:
        """Make the views for these lengths."""
        plan = self.plan
        numbers = [lengths[s] for s in plan._numbers.symbols]
        if numbers == self.numbers and len(rooms) == len(self.rooms) and all(map(operator.is_, rooms, self.rooms)):
            return
        everything = any(lengths[s] > self.capacity.get(s, 0) for s in plan._numbers.symbols)
        if everything:
            with plan._lock:
                self._allocate(lengths)
        for i, room in zip(plan._rooms, rooms, strict=True):
            self.places[i] = (room.reshape(-1).view(np.uint8), 0)
        n = plan._numbers.evaluate(lengths)
        places, arrays = self.places, self.arrays
        for view in plan._views if everything else plan._moving:
            memory, offset = places[view.memory] if type(view.memory) is int else (view.memory, 0)
            found = view.pick(n)
            end = view.rank + 1
            shape = found[1:end]
            if 0 in shape:  # it may lie outside of the memory
                arrays[view.place] = np.empty(shape, view.kind)
            else:
                arrays[view.place] = np.ndarray(shape, view.kind, memory, offset + found[0], found[end:-1])

        def made(x: Any) -> Any:
            kind = type(x)
            if kind is View:
                return arrays[x.place]
            if kind is Whole:
                return x.make([made(v) for v in x.parts])
            return n[x.number] if kind is Number else x

        functions = plan._functions
        for i in () if everything else plan._bordered:
            buffer = plan._buffers.all[i]
            shape = [n[k] for k in plan._sizes[i]]
            np.ndarray(shape, buffer.array.dtype, places[i][0], places[i][1]).fill(buffer.fill)
        if everything:
            self.steps = [(f, made(args)) for f, args in zip(functions, plan._arguments, strict=True)]
        else:
            for i, parts in plan._changing:
                args = tuple([arrays[x.place] if type(x) is View else made(x) for x in parts])
                self.steps[i] = (functions[i], args)
        self.inputs = [made(x) for x in plan._given]
        self.outputs = [made(x) for x in plan._results]
        self.numbers = numbers
        self.rooms = list(rooms)

    def _allocate(self, lengths: dict[str, int]) -> None:
        """Allocate for these lengths; for axes that have grown, for twice the length."""
        plan = self.plan
        for s in plan._numbers.symbols:
            if lengths[s] > self.capacity.get(s, 0):
                limit = plan.axes.limits.get(s, (0, None, 0, 0))[1]
                more = 2 * lengths[s] if s in self.capacity else lengths[s]
                self.capacity[s] = max(lengths[s], min(more, limit) if limit else more)
        if CAPACITY in self.capacity:
            for s in plan.opening.names:
                self.capacity[s] = max(self.capacity[s], self.capacity[CAPACITY])
        n = plan._numbers.evaluate(self.capacity)
        for buffer, shape in zip(plan._buffers.all, plan._sizes, strict=True):
            buffer.nbytes = max(1, math.prod(n[i] for i in shape) * buffer.array.itemsize)
        end = plan._buffers.arrange()
        whole = np.empty(end + 64, np.uint8)
        arena = whole[-whole.ctypes.data % 64 :]
        self.places: dict[int, tuple[Array, int]] = {}
        for i, buffer in enumerate(plan._buffers.all):
            if buffer.offset >= 0:
                self.places[i] = (arena, buffer.offset)
            elif buffer.last >= 0:  # it has a fill
                array = np.full([n[k] for k in plan._sizes[i]], buffer.fill, buffer.array.dtype)
                self.places[i] = (array.reshape(-1).view(np.uint8), 0)
