"""Runs training steps (core/training_step) on NumPy.

Parameters and states have two arrays each: a step reads one and computes the new values into the other, and the next
step does the reverse. So nothing is copied, and a step that ends early changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from ..... import dtypes
from .....backend.structure import leaves
from .....backend.tracing import Trace, ValueNeeded
from .....errors import IndexingError
from .....tensor import Tensor
from ...backend import NumpyBackend
from ...storage import Array
from ..memory import Memory, aligned
from ..open_sizes.points import points_for, trace_typical
from ..open_sizes.tracing import Points, at_point
from ..plan import Bound, Plan
from ..tracing import Tracing, assembled, trace

SHORTEST = 3  # the least length at which a step is traced, if that of a batch is left open
MAX_LENGTHS = 8  # lengths of a batch whose calls a plan keeps; those of the one used longest ago are dropped


class Engine:
    """The memory of the parameters and states of a step, and its plans. They are known by the side, 0 or 1, that holds
    the current values."""

    CUT = ValueNeeded
    NUMBERS = dtypes.float64

    def __init__(self, backend: NumpyBackend) -> None:
        self.backend = backend
        self.drawing = backend
        self.sides: tuple[list[Any], list[Any]] = ([], [])
        self.like: list[Any] = []  # (dtype, shape) of each value
        self.generation = 0  # of the arrays

    def begin(self, count: int, states: list[Tensor]) -> int:
        """Start with `count` parameters, to be loaded, and copies of the states; returns the side."""
        self.sides = ([None] * count, [None] * count)
        self.like = [None] * count
        for x in states:
            self.sides[0].append(None)
            self.sides[1].append(None)
            self.like.append(None)
            self.load(0, len(self.like) - 1, x)
        return 0

    def load(self, side: int, i: int, x: Tensor) -> None:
        """Take the elements of x as value number i."""
        if self.like[i] is None or self.like[i] != (x.dtype, x.shape):
            self.like[i] = (x.dtype, x.shape)
            array = _new(x.data)
            self.sides[0][i] = self.sides[1][i] = array
            self.generation += 1
        np.copyto(self.sides[side][i], x.data)

    def read(self, side: int, i: int) -> Tensor:
        """A copy of value number i."""
        dtype, shape = self.like[i]
        return Tensor(self.sides[side][i].copy(), dtype, shape, self.backend)

    def values(self, side: int) -> list[Tensor]:
        """All values, as Tensors of the memory itself."""
        return [Tensor(a, d, s, self.backend) for a, (d, s) in zip(self.sides[side], self.like, strict=True)]

    def trace(self, function: Callable[..., Any], arguments: list[Any], opening: Any) -> tuple[Any, Trace]:
        """The function's Trace, with the Points where it was made if the length of a batch is left open."""
        if opening is None:
            return None, trace(function, arguments, Tracing(self.backend), frozenset())

        def numbers(guards: list[Any]) -> list[dict[str, int]]:
            return points_for(opening.names, {}, opening.scope, guards, SHORTEST)

        return trace_typical(function, arguments, opening.shapes, opening.scope, numbers, self.backend)

    def plan(self, function: Any, arguments: list[Any], opening: Any) -> StepPlan:
        """The plan of a StepFunction."""
        points, traced = self.trace(function, arguments, opening)
        plan = StepPlan(function, traced, points, self.backend, 1 + len(function.draws), self.like)
        values = None if opening is None else opening.values(arguments[-len(opening.kinds) :])
        if opening is None or values is not None:
            plan.calls(values)
        for i in plan.changed:
            if self.sides[0][i] is self.sides[1][i]:  # the first plan that changes it
                self.sides[1][i] = _new(self.sides[0][i])
                np.copyto(self.sides[1][i], self.sides[0][i])
                self.generation += 1
        return plan

    def run(
        self, plan: StepPlan, side: int, numbers: list[float], words: list[Tensor], batch: list[Any], values: Any
    ) -> tuple[Any, int]:
        """(what the loss function returned, the side of the new values). values: those of the atoms of the Opening."""
        given = [np.asarray(numbers, np.float64), *(x.data for x in words), *self.sides[side]]
        given += [x.data if isinstance(x, Tensor) else x for x in batch]
        out = plan.calls(values).step(self.sides, self.generation, side, given)
        changed = set(plan.changed)
        for i, (old, new) in enumerate(zip(self.sides[side], self.sides[1 - side], strict=True)):
            if old is not new and i not in changed:
                np.copyto(new, old)
        return out, 1 - side


def _new(like: Array) -> Array:
    array: Array = aligned(like.nbytes or 1)[: like.nbytes].view(like.dtype).reshape(like.shape)
    return array


class StepPlan:
    """The plan of a step: its trace, and the NumPy calls for each length of a batch so far. changed: the numbers of the
    values that a step changes."""

    def __init__(
        self, function: Any, traced: Trace, points: Points | None, eager: NumpyBackend, first: int, like: list[Any]
    ) -> None:
        self.function = function
        self.traced = traced
        self.points = points
        self.eager = eager
        self.first = first
        self.like = like
        self.changed: list[int] = function.places()
        self.memory: Array | None = None  # of the calls of all lengths: they run one after the other
        self._calls: dict[Any, StepCalls] = {}
        self._uses = 0

    def __repr__(self) -> str:
        if self.points is None:
            return repr(next(iter(self._calls.values())))
        return "NumPy calls for batches of every length"

    def calls(self, values: list[int] | None) -> StepCalls:
        """The calls for these values of the atoms of the open length, None where it is not open."""
        key = None if values is None else tuple(values)
        found = self._calls.get(key)
        if found is None:
            traced = self.traced
            if self.points is not None and values is not None:
                scope = self.points.scope
                lengths = {what: n for what, n in zip(scope.atoms, values, strict=True) if type(what) is str}
                traced = at_point(traced, Points(scope, [lengths]), 0, alone=True)
            found = StepCalls(self, traced)
            if len(self._calls) == MAX_LENGTHS:
                del self._calls[min(self._calls, key=lambda key: self._calls[key].used)]
            self._calls[key] = found
        found.used = self._uses = self._uses + 1
        return found


class StepCalls(Plan):
    """The calls of a step. states: (number of the root, number of the value) of each value that changes."""

    def __init__(self, plan: StepPlan, traced: Trace) -> None:
        self.plan = plan
        self.used = 0
        self.function = plan.function
        self.first = plan.first
        self.like = plan.like
        self.held = frozenset(range(plan.first, plan.first + len(plan.like)))
        self.states: list[tuple[int, int]] = []
        self._bound: list[Any] = [None, None]
        self._generation = 0
        super().__init__(traced, [], plan.eager, frozenset())

    def __repr__(self) -> str:
        return f"{len(self.steps)} NumPy calls"

    def _traced(self, function: Any, arguments: list[Any], eager: NumpyBackend, fixed: Collection[int]) -> Trace:
        traced: Trace = function
        return traced

    def _allocate(self) -> None:
        parts = self.structure[1]
        new = [p for _, group in parts[1:] for p in group]
        if any(kind != "tensor" for kind, _ in new):
            raise ValueNeeded("a parameter becomes a constant")
        self.states = [(root, i) for (_, root), i in zip(new, self.function.places(), strict=True)]
        if any((self.dtypes[root], self.root_arrays[root].shape) != self.like[i] for root, i in self.states):
            raise ValueNeeded("a parameter or a state becomes of another dtype or shape")
        buffers = self._buffers
        roots = [number for number, _ in self.states]
        taken = [id(buffers.of(a)) for a in (*self.input_arrays, *self.root_arrays)]

        def alone(array: Array) -> bool:
            """Whether the array is all of a buffer, in which no other argument or result lies."""
            b = buffers.of(array)
            return bool(
                b is not None and b.fill is None and array.flags.c_contiguous and b.nbytes == max(1, array.nbytes)
                and taken.count(id(b)) == 1 and array.size
            )  # fmt: skip

        # Where an argument or a result lies in the memory of the values itself: base of its buffer -> value.
        self._read = {}
        self._written = {}
        for array, position in zip(self.input_arrays, self.inputs, strict=True):
            if position in self.held and alone(array):
                self._read[position] = array
        for root, i in self.states:
            if roots.count(root) == 1 and alone(self.root_arrays[root]):
                self._written[root] = i
        for array in (*self._read.values(), *(self.root_arrays[r] for r in self._written)):
            buffers.of(array).last = -1  # type: ignore[union-attr]
        self._arena = buffers.arrange()
        self._memory = Memory(buffers, self._arena, self.plan.memory)
        self.plan.memory = self._memory.arena
        self.nbytes = self._memory.nbytes
        self._copied_in = [(k, p) for k, p in enumerate(self.inputs) if p not in self._read]
        self._copied_out = [(root, i) for root, i in self.states if root not in self._written]
        self._given_out = [k for k in range(len(self.root_arrays)) if k not in roots or self._in_output(k)]

    def _in_output(self, root: int) -> bool:
        """Whether a new value is also a part of what the loss function returned."""
        return ("tensor", root) in leaves(self.structure[1][0])

    def _bind(self, sides: tuple[list[Any], list[Any]], side: int) -> Bound:
        places = {}
        for position, array in self._read.items():
            places[id(self._buffers.of(array).base)] = _bytes(sides[side][position - self.first])  # type: ignore[union-attr]
        for root, i in self._written.items():
            places[id(self._buffers.of(self.root_arrays[root]).base)] = _bytes(sides[1 - side][i])  # type: ignore[union-attr]
        return Bound(self, self._memory.with_places(places))

    def step(self, sides: tuple[list[Any], list[Any]], generation: int, side: int, given: list[Any]) -> Any:
        """Run the step from the values of one side to the other; returns what the loss function returned."""
        if self._generation != generation:
            self._generation, self._bound = generation, [None, None]
        # What an error or an interrupt ended is not run again: its threads would be told so once more.
        run, self._bound[side] = self._bound[side], None
        if run is None:
            run = self._bind(sides, side)
        with np.errstate(all="ignore"):
            for k, position in self._copied_in:
                np.copyto(run.inputs[k], given[position])
            try:
                run.run()
            except IndexError as error:
                raise IndexingError(str(error)) from None
            for root, i in self._copied_out:
                np.copyto(sides[1 - side][i], run.outputs[root])
        self._bound[side] = run
        found: list[Any] = [None] * len(self.root_arrays)
        for k in self._given_out:
            a = run.outputs[k].copy()
            found[k] = Tensor(a, self.dtypes[k], a.shape, self.backend)
        return assembled(self.structure[1][0], found)


def _bytes(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)
