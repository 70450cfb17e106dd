"""A plan for all lengths of the open axes: the NumPy calls, and how their arguments depend on the lengths.

The trace (tracing.py) is lowered at several points (points.py); a point gives every open axis a length. The calls must
be the same at all points. What differs (addresses, shapes, strides and numbers) must be a polynomial of second degree
in the lengths (polynomials.py): it is solved from as many points as it has coefficients, and checked at one more. A
call of the plan evaluates all polynomials at once and makes the views that change (bound.py). Buffers are allocated
for the largest lengths so far.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from threading import Lock
from typing import Any

import numpy as np

from .....backend.axes import Axes, closed
from .....backend.opening import Opening, Rooms, kinds_of, shapes_of
from .....backend.tracing import Trace, ValueNeeded
from .....errors import IndexingError
from .....sizes.polynomial import atom_values, broken
from .....tensor import Tensor
from ... import NumpyBackend
from ...storage import Array, numpy_dtype
from ..blocks import lifetimes
from ..lowering import lower
from ..memory import Buffer
from ..steps import Step, Writer
from ..tracing import assembled
from .arguments import Finder, changes
from .bound import Bound
from .points import points_for, trace_typical
from .polynomials import CAPACITY, Polynomials
from .tracing import at_point


class OpenPlan:
    """A model traced for all lengths of the axes `opened`. opening: the Opening that it serves; rooms: the Rooms of the
    states that it appends to in place, or None."""

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: list[Any],
        eager: NumpyBackend,
        axes: Axes,
        opened: list[str],
        rooms: Rooms | None = None,
        fixed: Collection[int] = (),
    ) -> None:
        shapes = shapes_of(arguments)
        numbers = axes.numbers(shapes)
        if numbers is None:
            raise ValueNeeded("the lengths of the inputs do not match")
        self.fixed = fixed
        self.rooms = rooms
        self.backend = eager
        self.axes = axes
        self._atoms: list[tuple[int, int]] = []
        self._parts: list[int] = []
        for attempt in (0, 2):
            self.opening = Opening(_of_any_step(axes), opened, numbers, attempt, shapes, kinds_of(arguments, fixed))
            self.scope = self.opening.scope
            symbols = [*self.opening.names, CAPACITY] if rooms else self.opening.names
            traced = self._traced(function, arguments, symbols)
            if self.lengths(arguments) is not None:
                break
        else:
            raise ValueNeeded("the model computes something different at the current lengths")
        for value in (*traced.inputs, *(v for call in traced.calls for v in call.results)):
            if value.dtype.kind == "string":
                raise ValueNeeded("the model uses strings, which a plan cannot hold")
        self.structure = traced.structure
        self._shapes = [v.shape for v in traced.roots]
        self.dtypes = [v.dtype for v in traced.roots]
        self._numbers = Polynomials(symbols, self.points.numbers)
        self._write(traced)
        if self._parts and self.lengths(arguments) is None:
            raise ValueNeeded("the number of NumPy calls depends on the lengths")
        self._lock = Lock()
        self._free: list[Bound] = []

    # -- made once

    def _traced(self, function: Callable[..., Any], arguments: list[Any], symbols: list[str]) -> Trace:
        opening = self.opening

        def numbers(guards: list[Any]) -> list[dict[str, int]]:
            return points_for(symbols, opening.closed, opening.scope, guards)

        self.points, traced = trace_typical(
            function, arguments, opening.shapes, opening.scope, numbers, self.backend, self.fixed
        )
        return traced

    def _write(self, traced: Trace) -> None:
        lowered = [_Lowered(at_point(traced, self.points, i), self, i) for i in range(len(self.points))]
        first = lowered[0]
        if len({(len(x.steps), len(x.buffers.all), len(x.inputs)) for x in lowered}) > 1:
            raise ValueNeeded("the NumPy calls depend on the lengths")
        self.inputs = first.positions
        self.grown = first.grown
        index = [{id(b): i for i, b in enumerate(x.buffers.all)} for x in lowered]
        find = Finder([x.buffers for x in lowered], index, self._numbers)
        self._functions = []
        self._arguments = []
        for steps in zip(*(x.steps for x in lowered), strict=True):
            if any(s.function is not steps[0].function and s.function != steps[0].function for s in steps):
                raise ValueNeeded("the NumPy calls depend on the lengths")
            self._functions.append(steps[0].function)
            self._arguments.append(find(tuple(s.args for s in steps)))
        self._given = [find(arrays) for arrays in zip(*(x.inputs for x in lowered), strict=True)]
        self._results = [find(arrays) for arrays in zip(*(x.roots for x in lowered), strict=True)]
        self._sizes = []
        for buffers in zip(*(x.buffers.all for x in lowered), strict=True):
            lengths = zip(*(b.array.shape for b in buffers), strict=True)
            self._sizes.append([self._numbers.number(n) for n in lengths])
        # Quotients and maxima of lengths are polynomials for some lengths only.
        at = [atom_values(self.scope.atoms, numbers) for numbers in self.points.numbers]
        self._atoms = [
            (i, self._numbers.number([v[i] for v in at]))
            for i, what in enumerate(self.scope.atoms)
            if type(what) is not str
        ]
        self._numbers.solve()
        self._buffers = first.buffers
        self._rooms = [index[0][id(r)] for r in first.rooms]
        self._views = list(find.views.values())
        # The last of several parts of a step would have fewer than 0 lines where an axis ends before it.
        lines = {number for v in self._views for number in v.numbers[1 : v.rank + 1]}
        self._parts = [n for n in lines if self._numbers.may_be_negative(n)]
        # What changes with the lengths or the rooms, rather than only where buffers get other memory.
        rooms = set(self._rooms)
        self._moving = [
            v for v in self._views if (type(v.memory) is int and v.memory in rooms) or any(map(find.varies, v.numbers))
        ]
        moving = {v.place for v in self._moving}
        self._changing = [(i, a.parts) for i, a in enumerate(self._arguments) if changes(a, moving, find.varies)]
        self._bordered = []
        for i, buffer in enumerate(first.buffers.all):
            if i in self._rooms:
                buffer.last = -1
            elif buffer.last >= 0:
                if not all(map(self._numbers.grows, self._sizes[i])):
                    raise ValueNeeded("a buffer shrinks as lengths grow")
                if buffer.fill is not None and any(x.buffers.all[i].array.shape != buffer.array.shape for x in lowered):
                    self._bordered.append(i)  # the position of an image's border depends on the lengths

    def __repr__(self) -> str:
        names = ", ".join(self.opening.names)
        return f"{len(self._functions)} calls of NumPy for every {names}"

    # -- for each call

    def lengths(self, arguments: list[Any]) -> dict[str, int] | None:
        """The lengths of all axes for arguments that the plan serves, else None."""
        return self.sizes(shapes_of(arguments), kinds_of(arguments, self.fixed), self.rooms)

    def sizes(self, shapes: list[Any], kinds: list[Any], rooms: Any = None) -> dict[str, int] | None:
        """`lengths`, for arguments of these shapes and kinds (`kinds_of`)."""
        found: dict[str, int] | None = self.opening.lengths(shapes, kinds)
        if found is None or (self.rooms is not None and not self.rooms.serves(rooms)):
            return None
        if not all(found[n] and self.axes.within(n, found[n]) for n in self.opening.names):
            return None
        atoms = atom_values(self.scope.atoms, found)
        if broken(self.scope.guards, atoms):
            return None
        if self._atoms or self._parts:
            expected = self._numbers.evaluate({CAPACITY: 0, **found})
            if any(atoms[i] != expected[number] for i, number in self._atoms):
                return None
            if any(expected[number] < 0 for number in self._parts):
                return None
        return found

    def root(self, output: int) -> int:
        """The number of the root that an output of the model is."""
        kind, parts = self.structure
        number: int = parts if kind == "tensor" else parts[output][1]
        return number

    def length(self, root: int, axis: int, lengths: dict[str, int]) -> int:
        """The length of an axis of a result."""
        found: int = closed(self._shapes[root][axis], atom_values(self.scope.atoms, lengths))
        return found

    def finish(self, found: list[Any]) -> Any:
        """The model's result from those of `run`, where some may be Tensors already."""
        pairs = zip(found, self.dtypes, strict=True)
        return assembled(
            self.structure, [x if isinstance(x, Tensor) else Tensor(x, d, x.shape, self.backend) for x, d in pairs]
        )

    def run(self, arguments: list[Any], lengths: dict[str, int], rooms: Sequence[Array] = ()) -> list[Any]:
        """The results for arguments of these lengths, an array for each; None for a state that was appended to. rooms:
        the arrays of the states, in their order. Calls of several threads may overlap."""
        if self.rooms is not None:
            lengths = {**lengths, CAPACITY: rooms[0].shape[self.rooms.states[0][2]]}
        bound = self._taken(rooms)
        bound.fit(lengths, rooms)
        with np.errstate(all="ignore"):
            for array, position in zip(bound.inputs, self.inputs, strict=True):
                np.copyto(array, arguments[position].data)
            try:
                for function, args in bound.steps:
                    function(*args)
            except IndexError as error:
                raise IndexingError(str(error)) from None
        out = [None if i in self.grown else a.copy() for i, a in enumerate(bound.outputs)]
        if len(self._free) < 2:
            self._free.append(bound)
        return out

    def _taken(self, rooms: Sequence[Array]) -> Bound:
        """Memory that no call has now; that with views of these rooms, which sessions have, if it is there."""
        for i, bound in enumerate(self._free):
            if len(rooms) == len(bound.rooms) and all(map(operator.is_, rooms, bound.rooms)):
                with suppress(IndexError):  # another thread's by now
                    return self._free.pop(i)
        try:
            return self._free.pop()
        except IndexError:
            return Bound(self)


class _Lowered:
    """The plan at one point."""

    def __init__(self, traced: Trace, plan: OpenPlan, point: int) -> None:
        writer = Writer(traced)
        self.buffers = writer.buffers
        used = {v for call in writer.calls for v in call.operands()} | set(traced.roots)
        given = [v for v in traced.inputs if v in used]
        by_position = {v.index: v for v in given}
        self.rooms: list[Buffer] = []
        self.grown: set[int] = set()
        kind, parts = plan.structure
        outputs = [plan.structure] if kind == "tensor" else parts
        for position, output, axis in plan.rooms.states if plan.rooms else ():
            value = by_position.get(position)
            number = outputs[output][1] if kind in ("tensor", tuple) and outputs[output][0] == "tensor" else None
            if value is None or number is None:
                raise ValueNeeded("a state is not appended to")
            root = traced.roots[number]
            call = root.call
            if call is None or call.op != "concat" or call.args[1] != axis or call.args[0][0] is not value:
                raise ValueNeeded("a state is not appended to by one concatenation")
            shape = list(value.shape)
            shape[axis] = plan.points.numbers[point][CAPACITY]
            room = writer.buffers.new(tuple(shape), numpy_dtype(value.dtype))
            ahead = (slice(None),) * axis
            writer.put(value, room[(*ahead, slice(0, value.shape[axis]))])
            writer.grow(call, room[(*ahead, slice(0, root.shape[axis]))])
            self.rooms.append(writer.buffers.all[-1])
            self.grown.add(number)
            given.remove(value)
        for value in given:
            writer.out(value)
        lower(writer)
        self.positions = [v.index for v in given]
        self.inputs = [writer.array(v) for v in given]
        self.roots = [writer.array(v) for v in traced.roots]
        self.steps: list[Step] = writer.steps
        lifetimes([[s] for s in self.steps], writer.buffers, self.inputs, self.roots)


def _of_any_step(axes: Axes) -> Axes:
    """The axes with lengths that need be no multiples: a plan serves those too."""
    out = copy.copy(axes)
    out.limits = {name: (*limit[:3], 1) for name, limit in axes.limits.items()}
    return out
