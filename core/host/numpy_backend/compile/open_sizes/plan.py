"""A plan for all lengths of the open axes: the NumPy calls, and how their arguments depend on the lengths.

The trace (tracing.py) is lowered at several points; a point gives every open axis a length. The calls must be the
same at all points. What differs (addresses, shapes, strides and numbers) must be a polynomial of second degree in the
lengths: it is solved from as many points as it has coefficients, and checked at one more. A call of the plan evaluates
all polynomials at once and makes the views that change. Buffers are allocated for the largest lengths so far.
"""

from __future__ import annotations

import copy
import math
import operator
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from itertools import combinations_with_replacement
from threading import Lock
from typing import Any

import numpy as np

from .....backend.axes import Axes, closed
from .....backend.opening import kinds_of, shapes_of
from .....backend.tracing import Trace, ValueNeeded
from .....errors import IndexingError
from .....sizes.polynomial import atom_values, broken
from .....sizes.scope import Scope
from .....sizes.size import is_open
from .....tensor import Tensor
from ... import NumpyBackend
from ...storage import Array, numpy_dtype
from ..lowering import lower
from ..memory import Buffer, Buffers, address, owner
from ..steps import Step, Writer, lifetimes
from ..tracing import assembled
from .tracing import Points, at_point, trace

LARGEST = 1 << 24  # maximum elements of an input while a model is traced at other lengths
CAPACITY = "room"  # the symbol for the capacity, in positions, of the states' arrays


class States:
    """Inputs that are appended to in place. entries: for each (index of the input, index of the output, axis); length:
    the capacity of their arrays in positions."""

    def __init__(self, entries: list[tuple[int, int, int]], length: int) -> None:
        self.entries = entries
        self.length = length


class Polynomials:
    """Polynomials of second degree in some symbols, given by their values at points."""

    def __init__(self, symbols: list[str], points: list[dict[str, int]]) -> None:
        self.symbols = symbols
        self._monomials = [m for degree in range(3) for m in combinations_with_replacement(symbols, degree)]
        self._at = np.array([self._row(p) for p in points], np.int64)
        try:
            self._inverse = np.linalg.inv(self._at[: len(self._monomials)].astype(np.float64))
        except np.linalg.LinAlgError:
            raise ValueNeeded("the lengths that were tried do not tell polynomials apart") from None
        self._numbers: dict[tuple[int, ...], int] = {}
        self._known: list[tuple[int, ...]] = []
        self.coefficients = np.zeros((0, len(self._monomials)), np.int64)

    @staticmethod
    def points_needed(symbols: int) -> int:
        """The number of points: one more than a polynomial has coefficients."""
        return 2 + symbols + symbols * (symbols + 1) // 2

    def _row(self, numbers: dict[str, int]) -> list[int]:
        return [math.prod(numbers[s] for s in m) for m in self._monomials]

    def number(self, found: Sequence[int]) -> int:
        """The index of the polynomial with these values at the points."""
        key = tuple(found)
        if key not in self._numbers:
            self._numbers[key] = len(self._known)
            self._known.append(key)
        return self._numbers[key]

    def solve(self) -> None:
        """Find the coefficients. Raises ValueNeeded if no polynomial with integer coefficients has the values."""
        wanted = np.array(self._known, np.int64).reshape(len(self._known), len(self._at)).T
        found = np.rint(self._inverse @ wanted[: len(self._inverse)].astype(np.float64)).astype(np.int64)
        if not np.array_equal(self._at @ found, wanted):
            raise ValueNeeded("an array's place does not follow from the open lengths by a polynomial")
        self.coefficients = np.ascontiguousarray(found.T)

    def evaluate(self, numbers: dict[str, int]) -> list[int]:
        """The values of all of them."""
        out: list[int] = (self.coefficients @ np.array(self._row(numbers), np.int64)).tolist()
        return out

    def grows(self, number: int) -> bool:
        """Whether a polynomial never decreases as lengths grow."""
        return bool((self.coefficients[number][1:] >= 0).all())

    def may_be_negative(self, number: int) -> bool:
        """Whether a polynomial that does not depend on a capacity may be less than 0 for lengths of 1 or more."""
        row = self.coefficients[number]
        if any(c and CAPACITY in m for c, m in zip(row, self._monomials, strict=True)):
            return False
        return not self.grows(number) or int(row.sum()) < 0


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


class OpenPlan:
    """A model traced for all lengths of some axes.

    sizes: what the axes are called, of which `opened` are left open; the others are `numbers` as in the arguments.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: list[Any],
        eager: NumpyBackend,
        axes: Axes,
        opened: list[str],
        states: States | None = None,
        fixed: Collection[int] = (),
    ) -> None:
        shapes = shapes_of(arguments)
        numbers = axes.numbers(shapes)
        if numbers is None:
            raise ValueNeeded("the lengths of the inputs do not match")
        self.axes = axes
        self.opened = opened
        self.closed = {n: numbers[n] for n in numbers if n not in opened}
        self.fixed = fixed
        self.kinds = kinds_of(arguments, fixed)
        self.states = states
        self.backend = eager
        symbols = [*opened, CAPACITY] if states else opened
        self._atoms: list[tuple[int, int]] = []
        self._parts: list[int] = []
        for attempt in (0, 2):
            self.scope, sizes = _of_any_step(axes).scope(opened, numbers, attempt)
            traced = self._traced(function, arguments, axes.shapes(sizes, shapes), symbols)
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
        self._free: list[_Bound] = []

    # -- made once

    def _traced(
        self, function: Callable[..., Any], arguments: list[Any], shapes: list[Any], symbols: list[str]
    ) -> Trace:
        def numbers(guards: list[Any]) -> list[dict[str, int]]:
            return points_for(symbols, self.closed, self.scope, guards)

        self.points, traced = trace_typical(function, arguments, shapes, self.scope, numbers, self.backend, self.fixed)
        return traced

    def _write(self, traced: Trace) -> None:
        lowered = [_Lowered(at_point(traced, self.points, i), self, i) for i in range(len(self.points))]
        first = lowered[0]
        if len({(len(x.steps), len(x.buffers.all), len(x.inputs)) for x in lowered}) > 1:
            raise ValueNeeded("the NumPy calls depend on the lengths")
        self.inputs = first.positions
        self.grown = first.grown
        index = [{id(b): i for i, b in enumerate(x.buffers.all)} for x in lowered]
        find = _Finder([x.buffers for x in lowered], index, self._numbers)
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
        self._changing = [(i, a.parts) for i, a in enumerate(self._arguments) if _changes(a, moving, find.varies)]
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
        names = ", ".join(self.opened)
        return f"{len(self._functions)} calls of NumPy for every {names}"

    # -- for each call

    def lengths(self, arguments: list[Any]) -> dict[str, int] | None:
        """The lengths of all axes for arguments that the plan serves, else None."""
        return self.sizes(shapes_of(arguments), kinds_of(arguments, self.fixed))

    def sizes(self, shapes: list[Any], kinds: list[Any], rooms: Any = None) -> dict[str, int] | None:
        """`lengths`, for arguments of these shapes and kinds (`kinds_of`)."""
        if kinds != self.kinds:
            return None
        found: dict[str, int] | None = self.axes.numbers(shapes)
        if found is None or any(found[n] != self.closed[n] for n in self.closed):
            return None
        if not all(found[n] and self.axes.within(n, found[n]) for n in self.opened):
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
        if self.states:
            lengths = {**lengths, CAPACITY: rooms[0].shape[self.states.entries[0][2]]}
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

    def _taken(self, rooms: Sequence[Array]) -> _Bound:
        """Memory that no call has now; that with views of these rooms, which sessions have, if it is there."""
        for i, bound in enumerate(self._free):
            if len(rooms) == len(bound.rooms) and all(map(operator.is_, rooms, bound.rooms)):
                with suppress(IndexError):  # another thread's by now
                    return self._free.pop(i)
        try:
            return self._free.pop()
        except IndexError:
            return _Bound(self)


def trace_typical(
    function: Callable[..., Any],
    arguments: list[Any],
    shapes: list[Any],
    scope: Scope,
    numbers: Callable[[list[Any]], list[dict[str, int]]],
    eager: NumpyBackend,
    fixed: Collection[int] = (),
) -> tuple[Points, Trace]:
    """The Trace at points for which the function decides as for typical lengths; a first trace tells how it does.
    numbers: the lengths at points that meet these guards."""
    guards: list[Any] = []
    for _ in range(4):
        points = Points(scope, numbers(guards))
        for shape in shapes:
            if any(map(is_open, shape or ())) and any(
                math.prod(points.at(shape, i)) > LARGEST for i in range(len(points))
            ):
                raise ValueNeeded("an input would be too large at the lengths that a plan is traced at")
        traced = trace(function, arguments, shapes, points, eager, fixed)
        if not any(broken(scope.guards, atom_values(scope.atoms, n)) for n in points.numbers):
            return points, traced
        if len(guards) == len(scope.guards):
            break
        guards = list(scope.guards)
    raise ValueNeeded("the operations of the model depend on its lengths in too many cases")


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
        for position, output, axis in plan.states.entries if plan.states else ():
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


class _Finder:
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


def _changes(x: Any, moving: set[int], varies: Callable[[int], bool]) -> bool:
    """Whether an argument depends on the lengths."""
    if type(x) is View:
        return x.place in moving
    if type(x) is Number:
        return varies(x.number)
    if type(x) is Whole:
        return any(_changes(v, moving, varies) for v in x.parts)
    return False


class _Bound:
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
            for s in plan.opened:
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


def _of_any_step(axes: Axes) -> Axes:
    """The axes with lengths that need be no multiples: a plan serves those too."""
    out = copy.copy(axes)
    out.limits = {name: (*limit[:3], 1) for name, limit in axes.limits.items()}
    return out


def points_for(
    symbols: list[str], known: dict[str, int], scope: Scope, guards: list[Any], least: int | None = None
) -> list[dict[str, int]]:
    """Lengths that no other size is likely to be and for which the guards hold, as many as polynomials need. least:
    what they begin with; by default the typical length."""
    wanted = Polynomials.points_needed(len(symbols))
    start = max(23, *scope.typical[:1]) if least is None else least
    taken = set(known.values())
    all_of_them = [*_primes(start, start + 600, taken), *_primes(2, start, taken)[::-1], *range(2, start + 100)]
    candidates = list(dict.fromkeys(all_of_them))
    out: list[dict[str, int]] = []
    used: set[int] = set()
    at = 0
    while len(out) < wanted:
        free = [n for n in candidates[at:] if n not in used][: len(symbols)]
        if len(free) < len(symbols):
            raise ValueNeeded("the operations of the model depend on its lengths in too many cases")
        numbers = {**known, **dict(zip(symbols, free, strict=True))}
        if CAPACITY in numbers:  # there is room for what a call appends
            numbers[CAPACITY] += 64 * (1 + len(out) ** 2) + max(numbers.values())
        if not broken(guards, atom_values(scope.atoms, numbers)):
            out.append(numbers)
            used.update(free)
        else:
            at = candidates.index(free[0]) + 1
    return out


def _primes(start: int, stop: int, taken: set[int]) -> list[int]:
    return [n for n in range(start, stop) if n not in taken and all(n % i for i in range(2, int(n**0.5) + 1))]
